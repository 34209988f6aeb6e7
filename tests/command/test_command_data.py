"""The data that the command reads: every format, standard input, named sets, columns."""

import io
import os

import numpy as np
import pandas as pd
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from command_examples import FRAME, NAMES, PRICE, SPECIES, X, assert_says
from sklearn.datasets import dump_svmlight_file, load_digits
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import gramian
from gramian import (
    RBF,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    RandomFourier,
    datasets,
)
from gramian.tables import ArrayTable, Preparation


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
        out = run(f"cluster {self.write(kind)} --n-clusters 3 --scale none -o labels.npy --model m")
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
        run(f"cluster - --n-clusters 3 --scale none{f' --format {form}' if form else ''}")
        found = pd.read_csv("stdin.labels.csv")["cluster"]
        assert list(found) == list(KernelKMeans(3, random_state=0).fit(X).labels_)

    def test_errors_of_standard_input(self, run, monkeypatch):
        for data, said in [
            (b"", "Standard input is empty"),
            (b"hello\nworld\n", "format of standard input is not clear.*csv, tsv"),
            (b"a,b\n1,2\n3\n", "Standard input could not be read.*Expected 2 columns"),
            (b"a,b\n1,2\n3,\n4,5\n", r"standard input has missing values: 'b' 1 \(line 3\)"),
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
        out = run("ridge mine --scale none --holdout 0 --alpha 0.1 --model m")
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
        run("pca rows.csv --scale none -o components.npy --kernel rbf --gamma 0.1 --model m")
        model = KernelPCA(2, kernel=RBF(0.1), random_state=0).fit(expected)
        np.testing.assert_allclose(np.load("components.npy"), model.transform(expected), atol=1e-9)
        loaded = gramian.load("m")
        assert loaded.preparation.columns[4:7] == ["species=other", "species=setosa",
                                                   "species=virginica"]  # fmt: skip
        frame.assign(site="z").to_csv("new.csv", index=False)
        said = run("predict m new.csv --unknown error", status=2)
        assert_says(said, r"'site' has 200 rows with a value.*: 'x', 'y'")
        assert "200 rows with a value of 'site'" in run("predict m new.csv -o ignored.npy")
        expected = expected * ([1] * 7 + [0] * 2)  # neither site
        np.testing.assert_allclose(np.load("ignored.npy"), model.transform(expected), atol=1e-9)
        frame.assign(site=None).to_csv("new.csv", index=False)
        run("predict m new.csv", status=2)
        assert not os.path.exists("new.components.csv")

    def test_texts_with_many_entries_are_left_out(self, run):
        pd.DataFrame({"a": np.arange(1500) % 7, "id": [f"n{i}" for i in range(1500)]}).to_csv(
            "rows.csv", index=False
        )
        assert "left out 'id': it is an identifier" in run("pca rows.csv --one-hot")
        said = run("pca rows.csv --include id --force", status=2)
        assert_says(said, "'id' has more than 1000 distinct")

    @pytest.mark.parametrize("scale", ["standard", "minmax"])
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_scaling_is_remembered(self, run, scale, dtype):
        data = (X * [1, 1e3, 1e-2, 1] + [0, 5, 10, 7]).astype(dtype)
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
        with gramian.config_context(memory_budget=1000):
            table = ArrayTable(scipy.sparse.csr_array(X), "sparse")
            with pytest.raises(MemoryError, match="dense form"):
                Preparation(numbers=table.names).fit(table)

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
        run("ridge rows.csv --target 2 --holdout 0 --scale none --model m --no-header")
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

    @pytest.mark.slow
    def test_larger_than_the_budget(self, run):
        """Block by block, from any format; the same as in memory."""
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((8000, 20))
        frame = pd.DataFrame(rows, columns=[f"c{i}" for i in range(20)])
        frame["kind"] = np.array(["u", "v"])[rng.integers(2, size=8000)]
        frame.to_parquet("rows.parquet", row_group_size=1200)
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
