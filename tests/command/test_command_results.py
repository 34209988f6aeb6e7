"""What the command learns and writes: predictions, models, output files."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_examples import FRAME, NAMES, PRICE, SPECIES, X, assert_says

import gramian
from gramian import (
    BKA,
    RBF,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
)
from gramian.tables import TableModel


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
        out = run(f"ridge rows.csv --target {target} {others} --scale none --model m")
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
        run("ridge rows.csv --target price --exclude id --model m")
        train = _fitted_to()
        shift = gramian.load("m").preparation.shift_
        np.testing.assert_allclose(shift[:4], X[train].mean(axis=0))
        assert np.abs(shift[:4] - X.mean(axis=0)).max() > 1e-3

    def test_task_as_asked(self, run):
        others = self.others.replace("--exclude stars", "")
        assert "R²" in run(f"ridge rows.csv --target stars {others} --task regress")
        said = run(
            f"ridge rows.csv --target species {others[:-13]} --task regress --force", status=2
        )
        assert_says(said, "contains text: use gramian classify")

    def test_options_reach_the_estimator(self, run):
        others = self.others.replace("--exclude stars", "")
        out = run(
            f"ridge rows.csv --target stars {others} --scale none --alpha loo:0.1,1,10 "
            "--class-weight balanced "
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

    @pytest.mark.slow
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
            run(f"pca rows.csv --exclude species --n-components 3 --scale none -o out{ending}")
            found = read(f"out{ending}")
            if ending != ".npy":
                assert list(found.pop("row")) == list(range(1, 201))
            assert list(found.columns) == names
            np.testing.assert_array_equal(found.to_numpy(), expected)

    def test_text_labels(self, run):
        for ending in (".csv", ".parquet", ".npy"):
            run(f"ridge rows.csv --target species --holdout 0 --scale none -o out{ending}")
        expected = list(KernelRidgeClassifier(random_state=0).fit(X, SPECIES).predict(X))
        assert list(np.load("out.npy")) == expected
        assert list(pd.read_csv("out.csv")["prediction"]) == expected
        assert list(pd.read_parquet("out.parquet")["prediction"]) == expected

    @pytest.mark.parametrize("name", ["bka:n_components=20,n_blocks=2", "nystroem:n_components=20"])
    def test_features(self, run, name):
        for ending in ("npy", "csv"):
            how = f"--exclude species --scale none --approximation {name}"
            run(f"embed rows.csv {how} -o out.{ending}")
        cls = BKA if "bka" in name else Nystroem
        made = cls(n_components=20, random_state=0)
        made = (made.set_params(n_blocks=2) if cls is BKA else made).fit(X)
        np.testing.assert_array_equal(np.load("out.npy"), made.transform(X))
        np.testing.assert_array_equal(exact_numbers("out.csv").to_numpy()[:, 1:], made.transform(X))

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
