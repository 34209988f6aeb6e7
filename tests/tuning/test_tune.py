"""``tune``: what it returns, what it keeps to, and that it does no harm."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian
from gramian import RBF, KernelRidge, KernelRidgeClassifier, Local, Nystroem, tune
from gramian.kernels import learning, leave_one_out, refining
from gramian.rows import FeatureRows, as_rows
from gramian.rows.files.rows import FileRows
from gramian.tuning import approximating
from gramian.tuning import search as searching
from gramian.tuning.approximating import Approximating
from gramian.tuning.candidates import FAMILIES, TRANSFORMS
from gramian.tuning.search import Search, missed_classes
from gramian.tuning.source import code, source


def data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def regression():
    X, y = data()
    return X, y, tune(X, y, random_state=0)


@pytest.mark.slow
def test_it_returns_a_fitted_pipeline_that_generalises(regression):
    X, y, model = regression
    assert isinstance(model, Pipeline)
    assert model.score(*data(seed=1)) > 0.9
    assert model.score_ > 0.9
    assert model.feature_importances_.argmax() == 0
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(clone(model).fit(X, y).predict(X), model.predict(X))


def test_the_table_has_all_that_was_tried(regression):
    found = regression[2].search_
    count = len(found["kernel"])
    assert {len(column) for column in found.values()} == {count}
    first = set(zip(found["transform"], found["kernel"], strict=True))
    assert first == {(t, k) for t in TRANSFORMS for k in FAMILIES}
    assert count > len(first)
    assert "learned" in found["scales"] and np.isfinite(found["leave_one_out_error"]).all()
    assert set(found["approximation"]) == {"exact"} and np.isnan(found["validation_error"]).all()


@pytest.mark.slow
def test_the_code_makes_the_same_pipeline(regression):
    X, y, model = regression
    space = {"X": X, "y": y}
    exec(model.code_, space)
    np.testing.assert_allclose(space["model"].predict(X), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([3, 7])])
def test_text_and_few_whole_numbers_are_classes(labels):
    X, y = data(120)
    model = tune(X, labels[(y > 0).astype(int)], random_state=0)
    assert isinstance(model[-1], KernelRidgeClassifier)
    assert set(model.predict(X)) == set(labels)
    assert model.score_ > 0.8
    assert (model.search_["missed_classes"] < 0.5).all()


def test_the_task_can_be_named():
    X, _ = data(60)
    model = tune(X, np.round(X[:, 0]), "regress", random_state=0)
    assert isinstance(model[-1], KernelRidge)
    with pytest.raises(ValueError, match="task of tune must be one of"):
        tune(X, X[:, 0], "cluster")


@pytest.mark.slow
def test_rows_that_are_scored_are_not_tuned_on(monkeypatch):
    X, y = data(100)
    seen = []
    original = Search.__init__

    def spying(self, rows, *more):
        seen.append(rows)
        original(self, rows, *more)

    monkeypatch.setattr(Search, "__init__", spying)
    model = tune(X, y, holdout=0.3, random_state=0)
    (tuned_on,) = seen
    assert len(tuned_on) == 70
    held_out = np.array([not (tuned_on == x).all(axis=1).any() for x in X])
    alone = clone(model).fit(X[~held_out], y[~held_out])
    assert model.score_ == pytest.approx(alone.score(X[held_out], y[held_out]))
    assert tune(X, y, holdout=0, random_state=0).score_ is None


def test_the_search_keeps_to_its_time():
    X, y = data(100)
    model = tune(X, y, time=1e-9, holdout=0, random_state=0)  # one candidate for each step
    assert len(model.search_["kernel"]) == 3
    assert model.score(X, y) > 0.5


def test_the_search_keeps_to_the_memory_budget():
    X, y = data(3000)
    search = Search(X, y[:, None], False, 60.0, np.random.default_rng(0))
    assert len(search._few(1500)) == 1500
    with gramian.config_context(memory_budget="100MB"):
        assert 50e6 * 0.99 < 8 * 8 * len(search._few(1500)) ** 2 <= 50e6


@pytest.fixture
def many(monkeypatch):
    """Let 'many rows' be hundreds."""
    monkeypatch.setattr(approximating, "EXACT_ROWS", 300)
    monkeypatch.setattr(approximating, "FIRST", 25)
    monkeypatch.setattr(refining, "LEAST_ROWS", 300)
    monkeypatch.setattr(refining, "LANDMARKS", 60)
    monkeypatch.setattr(searching, "SCREENED", 100)
    monkeypatch.setattr(searching, "LEARNED", 100)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [False, True])
def test_many_rows_refine_scales_and_choose_landmarks(classes, many):
    X, y = data(600)
    y = np.where(y > 0, "up", "down") if classes else y
    model = tune(X, y, random_state=0)
    found = model.search_
    assert {"exact", "Nystroem(25)", "Nystroem(50)"} <= set(found["approximation"])
    assert any(name.startswith("Local(Nystroem(") for name in found["approximation"])
    by_landmarks = ~np.isnan(found["validation_error"])
    assert (np.isnan(found["leave_one_out_error"]) == by_landmarks).all()
    assert isinstance(model[-1].kernel, Nystroem | Local) and model[-1].alpha == "loo"
    assert model.score_ > 0.9 and model.feature_importances_.argmax() == 0
    space = {"X": X, "y": y}
    exec(model.code_, space)
    np.testing.assert_array_equal(space["model"].predict(X[:50]), model.predict(X[:50]))


def test_landmarks_are_doubled_while_it_helps_and_there_is_time(many):
    X, y = data(400)
    X = as_rows(X)
    hurried = Approximating(X, y, False, lambda: 0.0, 0)
    assert [one.approximation.n_components for one in hurried.tried(RBF(0.5))] == [25]
    patient = list(Approximating(X, y, False, lambda: 1e9, 0).tried(RBF(0.5)))
    sizes = [one.approximation.n_components for one in patient[:-1]]
    assert sizes == [25 * 2**i for i in range(len(sizes))] and len(sizes) > 1
    assert isinstance(patient[-1].approximation, Local)


def test_landmarks_are_as_few_as_the_memory_budget_asks_for():
    X, y = data(4000)
    with gramian.config_context(memory_budget="16MB"):
        (one,) = Approximating(as_rows(X), y, False, lambda: 0.0, 0).tried(RBF(0.5))
    assert one.approximation.n_components < 500


def test_too_many_rows_for_the_memory_budget_use_landmarks():
    assert not approximating.needed(9000) and approximating.needed(20_000)
    with gramian.config_context(memory_budget="16MB"):
        assert approximating.needed(1000)


# Rows that are not in memory.


@pytest.fixture
def hurry(monkeypatch):
    """Try one transform and one family, which handle heavy tails."""
    monkeypatch.setattr(searching, "TRANSFORMS", {"normal": TRANSFORMS["normal"]})
    monkeypatch.setattr(Search.__init__, "__defaults__", (("normal",),))
    monkeypatch.setattr(searching, "FAMILIES", {"rbf": FAMILIES["rbf"]})


def heavy(n=150):
    X, y = data(n)
    return np.sinh(2 * X), y


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["path", "dask", "frame"])
def test_files_and_dask_are_tuned_as_arrays_are(kind, hurry, tmp_path):
    X, y = heavy()
    if kind == "path":
        given, target = tmp_path / "rows.npy", y
        np.save(given, X)
    else:
        given, target = (da.from_array(values, chunks=(60, 3)[: values.ndim]) for values in (X, y))
    if kind == "frame":
        given = given.to_dask_dataframe(columns=["a", "b", "c"])
    usual, model = tune(X, y, random_state=0), tune(given, target, random_state=0)
    for name in set(usual.search_) - {"seconds"}:
        np.testing.assert_array_equal(model.search_[name], usual.search_[name])
    np.testing.assert_allclose(model.score_, usual.score_, rtol=1e-6)
    space = {"X": given, "y": y}
    exec(model.code_, space)
    gramian.save(model, tmp_path / "model")
    for each in (model, space["model"], gramian.load(tmp_path / "model")):
        np.testing.assert_allclose(np.asarray(each.predict(given)), usual.predict(X), rtol=1e-6)


def test_a_large_file_is_never_in_memory(many, hurry, tmp_path, monkeypatch):
    X, y = heavy(900)
    np.save(tmp_path / "rows.npy", X)
    monkeypatch.setattr(searching, "EXACT", 200)
    monkeypatch.setattr(searching, "LEARNED", 200)
    monkeypatch.setattr(refining, "ROWS", 350)
    monkeypatch.setattr(FileRows, "fits", lambda rows: False)
    monkeypatch.setattr(FileRows, "collect", None)  # nothing asks for all rows
    monkeypatch.setattr(FeatureRows, "persist", lambda rows: rows)
    pools, pool = [], Search._pool
    monkeypatch.setattr(Search, "_pool", lambda self: pools.append(pool(self)) or pools[0])
    model = tune(tmp_path / "rows.npy", y, time=1e-9, random_state=0)
    assert len(np.unique(pools[0])) == 350
    assert max(model.search_["rows"][:2]) <= 350 < model.search_["rows"][-1]
    assert isinstance(model[-1].kernel, Nystroem) and model.score_ > 0.8


def test_rows_that_tune_cannot_take_are_named(tmp_path):
    X, y = data(20)
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        tune(tmp_path / "rows.npy", y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        tune(tmp_path / "rows.npy", np.full(20, np.nan), "regress")
    with pytest.raises(ValueError, match="dense rows of numbers; got sparse rows"):
        tune(as_rows(scipy.sparse.csr_array(X)), y)
    np.save(tmp_path / "few.npy", X[:3])
    with pytest.raises(ValueError, match="minimum of 4 is required by tune"):
        tune(tmp_path / "few.npy", y[:3])


# Guards.


@pytest.mark.slow
def test_noise_is_no_worse_than_its_mean():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 5)), rng.standard_normal(120)
    model = tune(X, y, random_state=0)
    new = rng.standard_normal((1000, 5))
    assert np.mean(model.predict(new) ** 2) < 0.15  # nearly the mean, 0


def test_copies_of_rows_change_little():
    """If copies counted one by one, each would predict the others, noise and all."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(80)
    new = rng.standard_normal((500, 3))
    truth = np.sin(2 * new[:, 0])
    missed = []
    for copies in (1, 3):
        rows, targets = np.repeat(X, copies, axis=0), np.repeat(y, copies)
        model = tune(rows, targets, holdout=0, random_state=0)
        missed.append(np.mean((model.predict(new) - truth) ** 2) / truth.var())
    assert missed[1] < 1.3 * missed[0] < 0.4


def test_one_row_of_each_class_and_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 20))
    assert set(tune(X, list("abcdef"), random_state=0).predict(X)) <= set("abcdef")
    wide = rng.standard_normal((30, 60))
    assert np.isfinite(tune(wide, wide[:, 0], random_state=0).predict(wide)).all()


def test_bad_input_is_named():
    X, y = data(20)
    with pytest.raises(ValueError, match="time of tune must be a positive number"):
        tune(X, y, time=0)
    with pytest.raises(ValueError, match="holdout of tune must be a number from 0 to below 1"):
        tune(X, y, holdout=1.0)
    with pytest.raises(ValueError, match="NaN"):
        tune(np.full((20, 2), np.nan), y)
    with pytest.raises(ValueError, match="one class"):
        tune(X, ["same"] * 20)


# Parts.


def test_missed_classes_are_those_of_fits_without_the_row():
    X, y = data(60)
    labels = (y > 0.3).astype(int) + (y > -0.3)
    Y = (labels[:, None] == np.arange(3)).astype(float)
    sample = leave_one_out.centred(X, Y, np.ones(60))
    trial = learning.search(RBF(0.5), sample)
    wrong = 0
    for i in range(60):
        rest = np.arange(60) != i
        system = RBF(0.5)(X[rest]) + trial.fit.alpha * np.eye(59)
        said = RBF(0.5)(X[[i]], X[rest]) @ np.linalg.solve(system, sample.Y[rest]) + Y.mean(axis=0)
        wrong += said.argmax() != labels[i]
    assert missed_classes(trial, sample) == pytest.approx(wrong / 60)


def test_code_of_estimators_leaves_out_defaults_and_breaks_long_lines():
    kernel = RBF(0.5, scales=np.array([1.0, 2.5]))
    assert source(kernel) == "RBF(gamma=0.5, scales=[1.0, 2.5])"
    assert source(np.float64(0.5)) == "0.5" and source(LinearRegression()) == "LinearRegression()"
    long = RBF(1e-4, scales=np.arange(40.0))
    text = code(make_pipeline(StandardScaler(), KernelRidge(0.1, long)))
    space = {"X": np.eye(40), "y": np.arange(40.0)}
    exec(text, space)
    np.testing.assert_array_equal(space["model"][-1].kernel.scales, np.arange(40.0))
