"""The command: what a person with a file asks for, and what is said where it cannot be."""

import io
import os
import pty
import re
import resource
import select
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import gramian
from gramian import (
    BKA,
    RBF,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    RandomFourier,
    datasets,
)
from gramian.backend import config
from gramian.command import COMMANDS, main, signatures
from gramian.command.estimators import APPROXIMATIONS, KERNELS
from gramian.command.screen import visible
from gramian.tables import TableModel, open_table
from gramian.testing.laws import example_rows

X = example_rows(200, 4)
NAMES = ["length", "width", "height", "mass"]
SPECIES = np.array(["setosa", "virginica", "other"])[np.arange(200) % 3]
PRICE = X[:, 0] + np.sin(X[:, 1])
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Each test runs in an empty folder of its own, and without named sets of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAMIAN_DATA", raising=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Runs the command; gives what it printed, after a look at its exit status."""

    def command(text, *more, status=0):
        assert main([*text.split(), *more]) == status, capsys.readouterr().err
        out, err = capsys.readouterr()
        if status:
            assert out == "" or status == 2
            assert err.count("\n") == 1 and err.endswith("\n"), err
            assert err.startswith("gramian")
        return err if status else out

    return command


def real(*arguments, **options):
    """The command as a process of its own."""
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(
        [sys.executable, "-m", "gramian", *arguments],
        capture_output=True, text=True, env=environment, **options,
    )  # fmt: skip


@pytest.mark.slow
def test_a_new_user(here):
    """A file with a column of text: the error says what to do, and then there are labels."""
    rows = example_rows(1000, 4)
    frame = pd.DataFrame(rows, columns=NAMES)
    frame["species"] = np.array(["a", "b", "c"])[np.arange(1000) % 3]
    frame.to_csv("flowers.csv", index=False)
    first = real("cluster", "flowers.csv")
    assert first.returncode == 2 and first.stdout == ""
    assert first.stderr == (
        "gramian cluster: error: 'flowers.csv' has columns that are not numeric: 'species'. Drop "
        "them with --exclude, or encode them with --one-hot.\n"
    )
    asked = ("--n-clusters", "3", "--target", "species", "--model", "flowers.gramian")
    second = real("cluster", "flowers.csv", *asked)
    assert (second.returncode, second.stderr) == (0, "")
    labels = pd.read_csv("flowers.labels.csv")["cluster"]
    assert list(labels) == list(KernelKMeans(3, random_state=0).fit(rows).labels_)
    for said in (
        "1,000 rows, 4 columns from 'flowers.csv' (without species)\n",
        "gamma = ",
        "clusters  0: 33",
        "adjusted Rand index 1.000",
        "→ flowers.labels.csv\n",
        "→ flowers.gramian\n",
    ):
        assert said in second.stdout
    new = frame.sample(frac=0.1, random_state=0)[["species", *NAMES[::-1]]]
    third = real("predict", "flowers.gramian", "-", input=new.to_csv(index=False))
    assert (third.returncode, third.stderr) == (0, "")
    assert list(pd.read_csv("stdin.labels.csv")["cluster"]) == list(labels[new.index])


class TestData:
    def write(self, kind):
        if kind == "csv":
            FRAME.to_csv("rows.csv", index=False)
        elif kind == "csv.gz":
            FRAME.to_csv("rows.csv.gz", index=False)
        elif kind == "tsv":
            FRAME.to_csv("rows.tsv", index=False, sep="\t")
        elif kind == "txt":
            FRAME.to_csv("rows.txt", index=False, sep="\t")
        elif kind == "no-header.csv":
            FRAME.to_csv("rows.no-header.csv", index=False, header=False)
        elif kind == "parquet":
            FRAME.to_parquet("rows.parquet")
        elif kind == "feather":
            pyarrow.feather.write_feather(pyarrow.Table.from_pandas(FRAME), "rows.feather")
        elif kind == "npy":
            np.save("rows.npy", X)
        elif kind == "npz":
            np.savez("rows.npz", X=X, y=PRICE)
        elif kind == "one.npz":
            np.savez("rows.one.npz", X)
        elif kind == "svm":
            dump_svmlight_file(X, PRICE, "rows.svm", zero_based=False)
        elif kind == "dat":  # told by its content
            dump_svmlight_file(X, PRICE, "rows.dat", zero_based=True)
        elif kind == "parts":
            os.mkdir("rows.parts")
            for i, part in enumerate((FRAME[:50], FRAME[50:120], FRAME[120:])):
                part.to_parquet(f"rows.parts/{i}.parquet")
        return f"rows.{kind}"

    @pytest.mark.parametrize(
        "kind",
        ["csv", "csv.gz", "tsv", "txt", "no-header.csv", "parquet", "feather", "npy", "npz",
         "one.npz", "svm", "dat", "parts"],
    )  # fmt: skip
    def test_every_kind(self, run, kind):
        expected = KernelKMeans(3, random_state=0).fit(X)
        out = run(f"cluster {self.write(kind)} --n-clusters 3 -o labels.npy --model m")
        assert "200 rows, 4 columns" in out
        assert (np.load("labels.npy") == expected.labels_).all()
        run(f"predict m rows.{kind} -o again.npy")
        assert (np.load("again.npy") == expected.predict(X)).all()
        assert (gramian.load("m").predict(f"rows.{kind}") == expected.predict(X)).all()

    @pytest.mark.parametrize("form", ["csv", "parquet", "npy", None])
    def test_standard_input(self, run, monkeypatch, form):
        data = {
            "csv": lambda: FRAME.to_csv(index=False, header=False).encode(),
            "parquet": lambda: FRAME.to_parquet(),
            "npy": lambda: _bytes(np.save, X),
            None: lambda: FRAME.to_csv(index=False).encode(),  # told by its content
        }[form]()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        run(f"cluster - --n-clusters 3{f' --format {form}' if form else ''}")
        found = pd.read_csv("stdin.labels.csv")["cluster"]
        assert list(found) == list(KernelKMeans(3, random_state=0).fit(X).labels_)

    def test_errors_of_standard_input(self, run, monkeypatch):
        for data, said in [
            (b"", "Standard input is empty"),
            (b"hello\nworld\n", "format of standard input is not clear.*csv, tsv"),
            (b"a,b\n1,2\n3\n", "Standard input could not be read.*Expected 2 columns"),
            (b"a,b\n1,x\n3,y\n", "standard input has columns that are not numeric: 'b'"),
            (b"a,b\n1,2\n3,\n", "Standard input contains NaN.*row 1, column 'b'"),
        ]:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
            assert_says(run("cluster -", status=2), said)

    def test_named_sets_and_their_test_part(self, run, monkeypatch, here):
        digits = load_digits()
        np.savez("mine.npz", X_train=digits.data[:900], y_train=digits.target[:900],
                 X_test=digits.data[900:], y_test=digits.target[900:])  # fmt: skip
        monkeypatch.setenv("GRAMIAN_DATA", str(here))
        os.mkdir("work")
        monkeypatch.chdir("work")
        out = run("ridge mine --holdout 0 --alpha 0.1 --model m")
        assert "10 classes (--task regress treats them as numbers)" in out and "score" not in out
        out = run("predict m mine:test")
        model = KernelRidgeClassifier(0.1, random_state=0).fit(
            digits.data[:900], digits.target[:900]
        )
        right = model.score(digits.data[900:], digits.target[900:])
        assert f"accuracy {right:.1%} on 897 rows" in out
        found = pd.read_csv("mine-test.predictions.csv")["prediction"]
        assert (found == model.predict(digits.data[900:])).all()
        out = run("datasets")
        assert "mine" in out and "900" in out and "897" in out and "GRAMIAN_DATA" in out
        assert set(datasets.names()) <= set(out.split())

    def test_columns_of_text(self, run):
        FRAME.assign(species=SPECIES, site=np.array(["x", "y"])[np.arange(200) % 2]).to_csv(
            "rows.csv", index=False
        )
        frame = pd.read_csv("rows.csv")
        expected = pd.get_dummies(frame, columns=["species", "site"], dtype=float).to_numpy()
        run("pca rows.csv --one-hot -o components.npy --kernel rbf --gamma 0.1 --model m")
        model = KernelPCA(2, kernel=RBF(0.1), random_state=0).fit(expected)
        np.testing.assert_allclose(np.load("components.npy"), model.transform(expected), atol=1e-9)
        loaded = gramian.load("m")
        assert loaded.preparation.columns[4:7] == ["species=other", "species=setosa",
                                                   "species=virginica"]  # fmt: skip
        frame.assign(site="z").to_csv("new.csv", index=False)
        assert_says(run("predict m new.csv", status=2), r"'site' has the entry 'z'.*'x', 'y'")
        frame.assign(site=None).to_csv("new.csv", index=False)
        run("predict m new.csv", status=2)
        assert not os.path.exists("new.components.csv")

    def test_texts_with_many_entries_are_refused(self, run):
        pd.DataFrame({"a": np.arange(1500.0), "id": [f"n{i}" for i in range(1500)]}).to_csv(
            "rows.csv", index=False
        )
        assert_says(run("pca rows.csv --one-hot", status=2), "'id' has more than 1000 different")

    @pytest.mark.parametrize("scale", ["standard", "minmax"])
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_scaling_is_remembered(self, run, scale, dtype):
        data = (X * [1, 1e3, 1e-2, 0] + [0, 5, 10, 7]).astype(dtype)
        pd.DataFrame(data, columns=NAMES).to_parquet("rows.parquet")
        scaler = (StandardScaler if scale == "standard" else MinMaxScaler)().fit(data.astype(float))
        run(f"embed rows.parquet --scale {scale} --gamma 0.3 --approximation "
            "random-fourier:n_components=10 --model m")  # fmt: skip
        prepared = scaler.transform(data.astype(float)).astype(dtype)
        expected = RandomFourier(RBF(0.3), 10, random_state=0).fit(prepared).transform(prepared)
        close = {"atol": 1e-9 if dtype == "float64" else 2e-3}
        np.testing.assert_allclose(np.load("rows.features.npy"), expected, **close)
        pd.DataFrame(data[:50, ::-1], columns=NAMES[::-1]).to_csv("new.csv", index=False)
        run("predict m new.csv")
        np.testing.assert_allclose(np.load("new.features.npy"), expected[:50], **close)
        for file, n in (("rows.parquet", 200), ("new.csv", 50)):
            rows = gramian.load("m").rows(file).collect()
            np.testing.assert_allclose(rows, prepared[:n], rtol=1e-4, atol=1e-4)

    def test_sparse_rows_are_scaled_if_they_fit(self, run):
        dump_svmlight_file(np.where(X > 0, X, 0), PRICE, "rows.svm")
        run("embed rows.svm --scale standard --approximation random-fourier:n_components=10")
        said = run("embed rows.svm --scale standard --memory 4kB --force", status=2)
        assert_says(said, "dense form.*--memory")

    def test_svmlight_columns_keep_their_numbers(self, run):
        """A file without the last columns, or the first, is of the same width."""
        dump_svmlight_file(X, PRICE, "rows.svm", zero_based=True)
        model = KernelKMeans(3, random_state=0).fit(X)
        run("cluster rows.svm --n-clusters 3 --model m")
        part = X[:20] * [0, 1, 1, 0]
        dump_svmlight_file(part, PRICE[:20], "new.svm", zero_based=True)
        run("predict m new.svm -o labels.npy")
        assert (np.load("labels.npy") == model.predict(part)).all()
        dump_svmlight_file(np.hstack((X, X)), PRICE, "wide.svm", zero_based=True)
        assert_says(run("predict m wide.svm", status=2), "n_features")

    def test_columns_without_names(self, run):
        """A target that is chosen by number may be there or not when the model is applied."""
        data = np.column_stack((X[:, :2], PRICE, X[:, 2:]))
        pd.DataFrame(data).to_csv("rows.csv", index=False, header=False)
        run("ridge rows.csv --target 2 --holdout 0 --model m --no-header")
        expected = KernelRidge(random_state=0).fit(X, PRICE).predict(X)
        np.save("with.npy", data)
        np.save("without.npy", X)
        FRAME.to_csv("named.csv", index=False)
        for file in ("with.npy", "without.npy", "named.csv"):
            out = run(f"predict m {file} -o {file}.out.npy")
            np.testing.assert_allclose(np.load(f"{file}.out.npy"), expected, atol=1e-9)
            assert ("R²" in out) == (file == "with.npy")
        np.save("other.npy", X[:, :3])
        said = run("predict m other.npy", status=2)
        assert_says(said, "has 3 columns; the model was fitted on 4, or 5 including")

    def test_header_option(self, run):
        pd.DataFrame(X, columns=[1, 2, 3, 5]).to_csv("rows.csv", index=False)
        assert "201 rows" in run("embed rows.csv")
        assert "200 rows" in run("embed rows.csv --header --force")
        assert "201 rows" in run("embed rows.csv --no-header --force")

    def test_larger_than_the_budget(self, run):
        """Block by block, from any format; the same as in memory."""
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((20_000, 20))
        frame = pd.DataFrame(rows, columns=[f"c{i}" for i in range(20)])
        frame["kind"] = np.array(["u", "v"])[rng.integers(2, size=20_000)]
        frame.to_parquet("rows.parquet", row_group_size=3000)
        how = "--one-hot --scale standard --approximation random-fourier:n_components=16"
        run(f"embed rows.parquet {how} -o whole.npy --model m")
        run(f"embed rows.parquet {how} -o blocks.npy --memory 1MB --threads 2")
        np.testing.assert_allclose(np.load("blocks.npy"), np.load("whole.npy"), atol=1e-10)
        run("predict m rows.parquet -o again.npy --memory 1MB")
        np.testing.assert_allclose(np.load("again.npy"), np.load("whole.npy"), atol=1e-10)
        run("predict m rows.parquet -o out.csv --memory 1MB", status=2)  # text is made at once


def _bytes(save, data):
    file = io.BytesIO()
    save(file, data)
    return file.getvalue()


class TestRidge:
    @pytest.fixture(autouse=True)
    def table(self):
        frame = FRAME.assign(
            price=PRICE, species=SPECIES, stars=np.arange(200) % 5, big=PRICE > 0, id=np.arange(200)
        )
        frame.to_csv("rows.csv", index=False)

    others = "--exclude price --exclude species --exclude stars --exclude big --exclude id"

    @pytest.mark.parametrize(
        ("target", "classes"),
        [("price", None), ("species", 3), ("stars", 5), ("big", 2), ("id", None)],
    )
    def test_task_by_the_target(self, run, target, classes):
        others = self.others.replace(f"--exclude {target}", "")
        out = run(f"ridge rows.csv --target {target} {others} --model m")
        model = gramian.load("m").estimator
        assert isinstance(model, KernelRidgeClassifier if classes else KernelRidge)
        assert ("accuracy" in out) == bool(classes) and ("R²" in out) == (not classes)
        assert (f"{classes} classes" in out) == bool(classes)
        found = pd.read_csv("rows.predictions.csv")
        assert len(found) == 200 and found["held_out"].sum() == 40
        truth = pd.read_csv("rows.csv")[target]
        train = ~found["held_out"].to_numpy()
        again = type(model)(random_state=0).fit(X[train], truth[train])
        predicted = again.predict(X)
        if classes:
            assert (found["prediction"].to_numpy() == predicted).all()
            right = np.mean(predicted[~train] == truth[~train])
            assert f"accuracy {right:.1%} on 40 held-out rows" in out
        else:
            np.testing.assert_allclose(found["prediction"], predicted)
            assert f"R² {again.score(X[~train], truth[~train]):.4f}" in out

    def test_scaling_looks_at_the_rows_of_the_fit_alone(self, run):
        run("ridge rows.csv --target price --one-hot --scale standard --model m")
        train = _fitted_to()
        shift = gramian.load("m").preparation.shift
        np.testing.assert_allclose(shift[:4], X[train].mean(axis=0))
        assert np.abs(shift[:4] - X.mean(axis=0)).max() > 1e-3

    def test_task_as_asked(self, run):
        others = self.others.replace("--exclude stars", "")
        assert "R²" in run(f"ridge rows.csv --target stars {others} --task regress")
        said = run(
            f"ridge rows.csv --target species {others[:-13]} --task regress --force", status=2
        )
        assert_says(said, "contains text, which only --task classify")

    def test_options_reach_the_estimator(self, run):
        others = self.others.replace("--exclude stars", "")
        out = run(
            f"ridge rows.csv --target stars {others} --alpha loo:0.1,1,10 --class-weight balanced "
            "--kernel matern:nu=2.5 --gamma percentile:25 --seed 3 --holdout 0.5 --model m "
            "--approximation meka:n_components=30,n_blocks=3,psd=shift,link_fraction=0.1"
        )
        model = gramian.load("m").estimator
        assert model.alpha == ("loo", [0.1, 1, 10]) and model.class_weight == "balanced"
        assert model.random_state == 3
        assert repr(model.kernel) == repr(
            gramian.MEKA(
                gramian.Matern(("percentile", 25), nu=2.5), 30, n_blocks=3, psd="shift",
                link_fraction=0.1,
            )
        )  # fmt: skip
        assert "chosen" in out and "MEKA, 30 features" in out and "error" in out
        error = gramian.relative_error(model.approximation_, X[_fitted_to()])
        assert f"{error}, relative" in out


def _fitted_to():
    return ~pd.read_csv("rows.predictions.csv")["held_out"].to_numpy()


def exact_numbers(path, separator=","):
    """A table of numbers as they were written: pandas before 3 rounds the last digit."""
    names = pd.read_csv(path, sep=separator, nrows=0).columns
    return pd.DataFrame(np.loadtxt(path, delimiter=separator, skiprows=1), columns=names)


class TestOutput:
    @pytest.fixture(autouse=True)
    def table(self):
        FRAME.assign(species=SPECIES).to_csv("rows.csv", index=False)

    def test_every_format(self, run):
        expected = KernelPCA(3, random_state=0).fit(X).transform(X)
        names = ["component_1", "component_2", "component_3"]
        for ending, read in [
            (".csv", exact_numbers),
            (".tsv", partial(exact_numbers, separator="\t")),
            (".parquet", pd.read_parquet),
            (".arrow", pd.read_feather),
            (".npy", lambda f: pd.DataFrame(np.load(f), columns=names)),
        ]:
            run(f"pca rows.csv --exclude species --n-components 3 -o out{ending}")
            found = read(f"out{ending}")
            assert list(found.columns) == names
            np.testing.assert_array_equal(found.to_numpy(), expected)

    def test_text_labels(self, run):
        for ending in (".csv", ".parquet", ".npy"):
            run(f"ridge rows.csv --target species --holdout 0 -o out{ending}")
        expected = list(KernelRidgeClassifier(random_state=0).fit(X, SPECIES).predict(X))
        assert list(np.load("out.npy")) == expected
        assert list(pd.read_csv("out.csv")["prediction"]) == expected
        assert list(pd.read_parquet("out.parquet")["prediction"]) == expected

    @pytest.mark.parametrize("name", ["bka:n_components=20,n_blocks=2", "nystroem:n_components=20"])
    def test_features(self, run, name):
        for ending in ("npy", "csv"):
            run(f"embed rows.csv --exclude species --approximation {name} -o out.{ending}")
        cls = BKA if "bka" in name else Nystroem
        made = cls(n_components=20, random_state=0)
        made = (made.set_params(n_blocks=2) if cls is BKA else made).fit(X)
        np.testing.assert_array_equal(np.load("out.npy"), made.transform(X))
        np.testing.assert_array_equal(exact_numbers("out.csv").to_numpy(), made.transform(X))

    def test_nothing_is_replaced_unasked(self, run):
        run("cluster rows.csv --exclude species --model m")
        before = [Path(name).read_bytes() for name in ("rows.labels.csv", "m")]
        said = run("cluster rows.csv --exclude species --n-clusters 2", status=2)
        assert_says(said, "'rows.labels.csv' already exists: use --force to replace it.*--output")
        said = run("cluster rows.csv --exclude species -o other.csv --model m", status=2)
        assert_says(said, "'m' already exists.*--model")
        assert not os.path.exists("other.csv")
        assert before == [Path(name).read_bytes() for name in ("rows.labels.csv", "m")]
        run("cluster rows.csv --exclude species --n-clusters 2 --model m --force")
        assert gramian.load("m").estimator.n_clusters == 2
        for text in (
            "cluster rows.csv --exclude species -o rows.csv --force",
            "cluster rows.csv --exclude species -o x.csv --model rows.csv --force",
            "predict m.csv rows.csv -o m.csv --force",
        ):
            if "m.csv" in text:
                os.rename("m", "m.csv")
            assert_says(run(text, status=2), "would replace an input file")

    def test_quiet(self, run):
        assert run("cluster rows.csv --exclude species --quiet") == ""
        assert os.path.exists("rows.labels.csv")
        assert run("predict m rows.csv --quiet", status=2)

    def test_models_saved_from_python(self, run):
        gramian.save(KernelRidge(random_state=0).fit(FRAME, PRICE), "named")
        gramian.save(KernelRidge(random_state=0).fit(X, PRICE), "numbered")
        expected = KernelRidge(random_state=0).fit(X, PRICE).predict(X)
        FRAME[NAMES[::-1]].assign(more=1.0).to_csv("new.csv", index=False)
        run("predict named new.csv -o out.npy")
        np.testing.assert_allclose(np.load("out.npy"), expected)
        FRAME.to_csv("plain.csv", index=False)
        run("predict numbered plain.csv -o plain.npy")
        np.testing.assert_allclose(np.load("plain.npy"), expected)
        assert_says(run("predict numbered new.csv", status=2), "5 features.*expecting 4")
        gramian.save(RBF(1.0), "kernel")
        assert_says(run("predict kernel new.csv", status=2), "RBF cannot predict on its own")
        gramian.save(KernelRidge(), "unfitted")
        assert_says(run("predict unfitted plain.csv", status=2), "not fitted")

    def test_models_in_python(self, run):
        run("pca rows.csv --exclude species --model m --fit-inverse-transform")
        model = gramian.load("m")
        assert isinstance(model, TableModel) and "KernelPCA" in repr(model)
        np.testing.assert_array_equal(
            model.transform("rows.csv"), model.estimator.transform(model.rows("rows.csv"))
        )
        assert model.estimator.inverse_transform(model.transform("rows.csv")).shape == (200, 4)


def assert_says(text, pattern):
    assert re.search(pattern, text), f"{pattern!r} is not in {text!r}"


WRONG = [
    ("clusterr rows.csv", "no command 'clusterr'. Did you mean 'cluster'"),
    ("--seed 3", "Unknown option --seed|A command is missing"),
    ("cluster", "required: DATA.*--help"),
    ("cluster rows.csv more.csv", "Unexpected argument 'more.csv'"),
    ("cluster rows.csv --n-cluster 3", "Unknown option --n-cluster. Did you mean --n-clusters"),
    ("cluster rows.csv --zzzzz", "Unknown option --zzzzz. gramian cluster --help"),
    ("cluster rows.csv --n-clusters three", "--n-clusters: expected a whole number; got 'three'"),
    ("cluster rows.csv --n-clusters 2.5", "expected a whole number; got '2.5'"),
    ("cluster rows.csv --n-clusters 0", "n_clusters .*positive integer"),
    ("cluster rows.csv --n-clusters 500", "500"),
    ("cluster rows.csv --init k-means+", r"k-means\+\+ or random.*did you mean 'k-means\+\+'"),
    ("cluster rows.csv --kernel rbg", "Unknown kernel 'rbg'. Did you mean 'rbf'"),
    ("cluster rows.csv --kernel rbf:gama=1", "no parameter 'gama'. Did you mean 'gamma'"),
    ("cluster rows.csv --kernel rbf:3", "Expected rbf:PARAMETER=VALUE.*gamma, bandwidth"),
    ("cluster rows.csv --kernel linear --gamma 1", "--gamma: the kernel linear has no gamma"),
    ("cluster rows.csv --kernel matern:nu=x", "nu of the kernel matern: expected a number"),
    ("cluster rows.csv --gamma -1", "gamma of RBF must be a positive number"),
    ("cluster rows.csv --gamma mode", "gamma of RBF must be"),
    ("cluster rows.csv --gamma 1 --kernel rbf:bandwidth=2", "gamma or bandwidth, not both"),
    ("cluster rows.csv --approximation nystrom", "Unknown approx.*Did you mean 'nystroem'"),
    (
        "cluster rows.csv --approximation nystroem:n_components=9,landmarks=kmens",
        "Unknown landmarks 'kmens'",
    ),
    ("cluster rows.csv --approximation meka:psd=no", "clip, shift or none; got 'no'"),
    ("cluster rows.csv --approximation nystroem:kernel=rbf", "has no parameter 'kernel'"),
    ("embed rows.csv --approximation exact", "has no features"),
    ("cluster missing.csv", "no file, folder or data set 'missing.csv'"),
    ("cluster row.csv", "Did you mean 'rows.csv'"),
    ("cluster digit", "Did you mean 'digits'"),
    ("cluster iris:test", "'iris' has no test set"),
    ("cluster empty.csv", "'empty.csv' is empty"),
    ("cluster header.csv", "no rows|has no column"),
    ("cluster text.csv", "'text.csv' has no numeric column"),
    ("cluster ragged.csv", "ragged.csv' could not be read: .*Expected 2 columns, got 3"),
    ("cluster gaps.csv", "contains NaN, infinity or a missing value: one is in row 1, column 'b'"),
    ("cluster late.csv", "late.csv' could not be read.*invalid value 'x'"),
    ("cluster broken.parquet", "broken.parquet' could not be read"),
    ("cluster broken.npz", "broken.npz' could not be read"),
    ("cluster pickled.npz", "allow_pickle"),
    ("cluster two.npz", "X and y.*or a single array; got 'a', 'b'"),
    ("cluster flat.npy", "two dimensions"),
    ("cluster broken.svm", "broken.svm' could not be read as svmlight"),
    ("cluster unknown.dat", "format of 'unknown.dat' is not clear.*svmlight"),
    ("cluster rows.csv --format parqet", "invalid choice: 'parqet'"),
    ("cluster folder", "folder' has no files"),
    ("cluster folder --format csv", "'folder' is a folder"),
    ("cluster rows.csv --exclude nothing", "has no column 'nothing'. Its columns: 'a', 'b', 'y'"),
    ("cluster rows.csv --exclude a --exclude b --exclude y", "no numeric column"),
    ("cluster rows.csv --scale standrd", "invalid choice: 'standrd'"),
    ("ridge rows.csv", "no target: name the column to predict with --target COLUMN"),
    ("ridge rows.csv --target z", "has no column 'z'"),
    ("ridge rows.csv --target 7", "has no column '7'"),
    ("ridge rows.csv --target y --alpha lo", "loo, gcv, a number.*did you mean 'loo'"),
    ("ridge rows.csv --target y --alpha -3", "alpha of KernelRidge.* must be"),
    ("ridge rows.csv --target y --holdout 2", "--holdout: expected a number from 0 to less"),
    ("ridge rows.csv --target a --class-weight balanced", "--class-weight does not apply"),
    ("ridge gaps.csv --target b --exclude y", "'b' has no value in row 1|NaN"),
    ("pca rows.csv --n-components 0", "n_components of KernelPCA"),
    ("pca rows.csv --target y", "Unknown option --target"),
    ("cluster rows.csv --memory much", "Expected a size in bytes"),
    ("cluster rows.csv --memory 1kB", "memory budget of .*--memory"),
    ("cluster rows.csv --threads 0", "n_threads"),
    ("cluster rows.csv --seed x", "--seed: invalid int"),
    ("cluster rows.csv --seed -1", "seed|non-negative"),
    ("cluster rows.csv --device gpu", "--device must be 'cpu', 'cuda'"),
    ("cluster rows.csv --output labels.xlsx", r"must end in one of \.csv, \.tsv"),
    ("cluster rows.csv --output nowhere/labels.csv", "no folder 'nowhere'"),
    ("cluster rows.csv --output folder/inside.csv/", "inside.csv' is a folder"),
    ("cluster rows.csv -o x.csv --model x.csv", "different files"),
    ("predict rows.csv rows.csv", "rows.csv' is not a model"),
    ("predict nothing rows.csv", "nothing"),
    ("predict folder rows.csv", "folder"),
    (
        "predict model wide.csv",
        "lacks columns that the model was fitted on: 'b'. Did you rename 'b' to 'bb'",
    ),
    ("predict model narrow.npy", "has 1 column; the model was fitted on 2"),
    ("predict cut rows.csv", "cut' is not a model"),
]


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    before = os.getcwd()
    os.chdir(folder)
    good = pd.DataFrame({"a": [1.0, 2.0, 3.5] * 10, "b": [2.0, 1.0, 0.5] * 10, "y": [0, 1] * 15})
    good["a"] += np.arange(30) / 7
    good.to_csv("rows.csv", index=False)
    texts = {
        "empty.csv": "",
        "header.csv": "a,b\n",
        "text.csv": "a,b\nx,y\nz,w\n",
        "ragged.csv": "a,b\n1,2\n3,4,5\n",
        "gaps.csv": "a,b,y\n1,2,1\n3,,2\n5,6,3\n",
        "late.csv": "a,b\n" + "1,2\n" * 400_000 + "3,x\n",
        "broken.svm": "1 1:a\n",
        "unknown.dat": "hello\nworld\n",
        "wide.csv": "a,bb,y\n1,2,3\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    for name in ("broken.parquet", "broken.npz"):
        Path(name).write_bytes(b"PK\x03\x04nothing")
    np.savez("pickled.npz", np.array([[object()]]))
    np.savez("two.npz", a=X, b=X)
    np.save("flat.npy", np.arange(3))
    np.save("narrow.npy", X[:, :1])
    os.makedirs("folder/inside.csv")
    text = "cluster rows.csv --exclude y --n-clusters 2 --model model --quiet"
    assert main(text.split()) == 0
    os.remove("rows.labels.csv")
    Path("cut").write_bytes(Path("model").read_bytes()[:-30])
    os.chdir(before)
    return folder


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_wrong_use_ends_with_one_line(run, bad_files, monkeypatch, text, message):
    monkeypatch.chdir(bad_files)
    before = sorted(os.listdir())
    assert_says(run(text, status=2), message)
    assert sorted(os.listdir()) == before


def test_wrong_use_in_debug(capsys, here):
    assert main(["cluster", "nothing.csv", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_no_permission(run, here):
    FRAME.to_csv("rows.csv", index=False)
    os.mkdir("closed", 0o500)
    if os.access("closed", os.W_OK):  # an administrator may write anywhere
        return
    assert_says(run("cluster rows.csv -o closed/labels.csv", status=2), "No permission")


def test_a_folder_that_refuses(run, here):
    """Where even an administrator cannot write."""
    FRAME.to_csv("rows.csv", index=False)
    assert_says(run("cluster rows.csv -o /proc/labels.csv", status=2), "/proc")


def test_errors_that_nobody_foresaw(run, monkeypatch, capsys):
    def broken(*args):
        raise KeyError("a bug")

    monkeypatch.setattr(KernelKMeans, "fit", broken)
    assert main(["cluster", "iris"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert_says(err, r"unexpected KeyError: 'a bug' \(please report it; --debug shows the trace")
    assert main(["cluster", "iris", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert not os.listdir()


def test_too_little_memory(run, monkeypatch):
    def too_much(*args):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(KernelKMeans, "fit", too_much)
    assert_says(run("cluster iris", status=2), "not enough memory. Unable to allocate 9 TiB")


def test_an_interrupt(run, monkeypatch, capsys):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelKMeans, "fit", interrupted)
    assert main(["cluster", "iris"]) == 130
    assert capsys.readouterr().err == "gramian cluster: interrupted\n"
    assert not os.listdir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_signals_while_results_are_written(here, number, status):
    """A real signal to a real process, while there is a half-written file."""
    code = (
        "import os, sys\n"
        "from gramian.command import main, results\n"
        "write = results._write_table\n"
        "def slowly(file, ending, columns):\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    print('writing', os.listdir(), flush=True)\n"
        "    __import__('time').sleep(60)\n"
        "results._write_table = slowly\n"
        "sys.exit(main(['cluster', 'iris', '--model', 'm', '--quiet']))\n"
    )
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as process:  # fmt: skip
        line = process.stdout.readline()
        assert line.startswith("writing") and line.count(".part") == 2
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert err == ("gramian cluster: interrupted\n" if status == 130 else "")
    assert os.listdir() == []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["cluster digits --model m", "embed digits"])
def test_a_full_disk(here, command):
    """A process that may write no more than 3,000 bytes to a file stands for a full disk."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = real(*command.split(), "--quiet", preexec_fn=limited)
    assert done.returncode == 2 and done.stdout == ""
    assert_says(done.stderr, "^gramian .*: error: .*File too large")
    assert done.stderr.count("\n") == 1
    assert os.listdir() == []


@pytest.mark.slow
def test_a_bar_on_a_terminal_only(here):
    main_end, end = pty.openpty()
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    arguments = ("cluster", "digits", "--approximation", "nystroem", "--n-init", "2")
    process = subprocess.Popen(
        [sys.executable, "-m", "gramian", *arguments],
        stderr=end, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": source, "TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(end)
    shown = b""
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        if not select.select([main_end], [], [], 1)[0]:
            continue
        try:
            part = os.read(main_end, 4096)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        shown += part
    os.close(main_end)
    assert process.wait() == 0
    assert "━".encode() in shown


class TestNames:
    """Names that would do harm in a terminal are shown, not obeyed."""

    EVIL = "\x1b[31mred\x1b[0m [bold]x[/bold]\u202e\a\r:smile:"

    def test_visible(self):
        assert visible(self.EVIL) == r"\x1b[31mred\x1b[0m [bold]x[/bold]\u202e\x07\r:smile:"
        assert visible("a\n  b\nc ") == "a b c"
        assert visible("ü 語 \udcff") == r"ü 語 \udcff"

    def test_columns(self, run):
        pd.DataFrame(X, columns=[self.EVIL, "b", "c", "d\ne"]).to_parquet("rows.parquet")
        out = run("cluster rows.parquet --target", "b")
        out += run("cluster rows.parquet --force --exclude", self.EVIL)
        assert r"\x1b[31mred\x1b[0m [bold]x[/bold]\u202e" in out and ":smile:" in out
        err = run("ridge rows.parquet --force --target", self.EVIL + "?", status=2)
        assert r"\x1b[31m" in err and "[bold]" in err
        for text in (out, err):
            assert not set(text) & set("\x1b\a\r\u202e")

    def test_files(self, run):
        evil = self.EVIL.replace("/", "")
        name = f"{evil}.csv"
        FRAME.to_csv(name, index=False)
        out = run("cluster", name)
        assert os.path.exists(f"{evil}.labels.csv")
        err = run("cluster", f"{evil}.cs", status=2) + run("predict", name, name, status=2)
        for text in (out, err):
            assert r"\x1b[31mred" in text and "[bold]" in text
            assert not set(text) & set("\x1b\a\r\u202e")

    def test_labels(self, run):
        FRAME.assign(y=[self.EVIL, "b"] * 100).to_parquet("rows.parquet")
        out = run("ridge rows.parquet --target y")
        assert "\x1b" not in out
        assert set(pd.read_csv("rows.predictions.csv", lineterminator="\n")["prediction"]) <= {
            self.EVIL,
            "b",
        }


class TestDevices:
    def test_cuda(self, run):
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            run("cluster iris --device cuda --n-clusters 3 --model m")
            run("predict m iris -o again.csv")
            assert Path("again.csv").read_text() == Path("iris.labels.csv").read_text()
        else:
            said = run("cluster iris --device cuda", status=2)
            assert_says(said, "no CUDA device.*--device 'cpu'")

    def test_torch_rows(self, run, monkeypatch):
        """All but the device itself, on torch's CPU."""
        pytest.importorskip("torch")
        monkeypatch.setitem(config._CHECKS, "device", lambda device: None)
        monkeypatch.setattr(config, "device", lambda: "cpu")
        FRAME.assign(species=SPECIES, price=PRICE).to_csv("rows.csv", index=False)
        for i, text in enumerate([
            "cluster rows.csv --target species --exclude price --n-clusters 3",
            "ridge rows.csv --target species --exclude price",
            "ridge rows.csv --target price --exclude species --approximation nystroem",
            "pca rows.csv --exclude species --exclude price",
            "embed rows.csv --exclude species --exclude price",
        ]):  # fmt: skip
            run(f"{text} --device cuda -o out{i}.parquet --model m{i}")
            run(f"predict m{i} rows.csv -o again{i}.parquet")
            out = pd.read_parquet(f"out{i}.parquet").drop(columns="held_out", errors="ignore")
            pd.testing.assert_frame_equal(
                out, pd.read_parquet(f"again{i}.parquet"), check_exact=False
            )


@pytest.mark.slow
def test_nobody_reads_on():
    """As in ``gramian datasets | head -1``: the command ends, and says nothing of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gramian", "datasets"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 1)
    process.stderr.close()


def test_help(capsys):
    for arguments in ([], ["--help"], *([command, "--help"] for command in COMMANDS)):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert out.startswith("usage: gramian")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gramian {gramian.__version__}\n"


def test_options_are_those_of_the_signatures():
    """Every parameter can be read from text, and its default is one of what it takes."""
    estimators = (KernelKMeans, KernelRidge, KernelRidgeClassifier, KernelPCA)
    for cls in (*estimators, *APPROXIMATIONS.values(), *KERNELS.values()):
        found = signatures.parameters(cls, skip=signatures.ELSEWHERE)
        for parameter in found.values():
            text = str(parameter.default)
            assert parameter.value(text) == parameter.default or text == "None", parameter
            assert parameter.takes
            with pytest.raises(ValueError, match="expected"):
                if "str" not in parameter.types:
                    parameter.value("no such thing")
                else:
                    raise ValueError("expected")
    assert signatures.parameters(gramian.RBF)["gamma"].value("percentile:10") == ("percentile", 10)
    assert signatures.parameters(KernelRidge)["alpha"].value("1e-3") == 1e-3


def test_examples_in_the_document(run, here):
    """Every line of docs/command.md, in its order."""
    text = (Path(__file__).parents[2] / "docs" / "command.md").read_text()
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    flowers = load_iris()
    frame = pd.DataFrame(flowers.data, columns=names)
    frame.assign(species=flowers.target_names[flowers.target]).to_csv("flowers.csv", index=False)
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, flags=re.S)
        for line in block.splitlines()
    ]
    assert {line.split()[1] for line in lines} == set(COMMANDS) - {"datasets"}
    for line in lines:
        force = [] if "--output" in line or "--force" in line else ["--force"]
        assert main([*shlex.split(line)[1:], *force, "--quiet"]) == 0, line
    (python,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    done = {}
    exec(python, done)
    assert done["labels"].shape == (150,) and done["distances"].shape == (150, 3)


def test_warnings_are_lines(capsys):
    assert main(["cluster", "iris", "--gamma", "1e9", "--n-clusters", "3"]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("gramian cluster: warning: RBF with gamma=1e+09")


def test_tables_know_their_columns():
    table = open_table("iris")
    assert table.find("2") == "2"
    with pytest.raises(ValueError, match="has no column '9'"):
        table.find("9")
    with pytest.raises(ValueError, match="no text columns"):
        table.entries("0", 10)


class TestCompare:
    def test_a_line_for_each_and_a_report(self, here, capsys):
        name = "<script>alert(1)</script> [red]\n"
        frame = pd.DataFrame(load_iris().data, columns=[name, "b", "c", "d"])
        frame.assign(kind=load_iris().target).to_csv("x.csv", index=False)
        arguments = ["compare", "x.csv", "--target", "kind", "--sizes", "5", "10"]
        assert main([*arguments, "--approximation", "nystroem", "--approximation", "meka"]) == 0
        out = capsys.readouterr().out
        for shown in ("Nystr", "MEKA", "Exact", "advice", "KernelRidgeClassifier", "x.report.html"):
            assert shown in out
        page = (here / "x.report.html").read_text(encoding="utf-8")
        assert "<script>alert" not in page and page.rstrip().endswith("</html>")

    def test_wrong_uses(self, run, here):
        assert_says(run("compare", "iris", "--sizes", "0", status=2), "size")
        assert_says(run("compare", "iris", "-o", "report.csv", status=2), "html")
        assert_says(run("compare", "iris", "--approximation", "nystrom", status=2), "nystroem")
        assert list(here.iterdir()) == []
