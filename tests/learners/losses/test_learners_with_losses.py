"""Learners with a loss: edges, bad input, files, dask, torch, and models on disk."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelOneClass,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelSVC,
    KernelSVR,
    Nystroem,
    RandomFourier,
    config_context,
)
from gramian.estimators.base import all_or_nothing
from gramian.learners.losses.base import LossLearner
from gramian.testing import check_learner
from gramian.testing.comparing import LIBRARIES

RNG = np.random.default_rng(0)
N = 400
X = RNG.standard_normal((N, 3))
CLASSES = np.digitize(X[:, 0] + 0.2 * RNG.standard_normal(N), [-0.5, 0.5])
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0])).astype(float)
KERNEL = RBF(0.5)
FEW = Nystroem(KERNEL, 30, random_state=0)

MODELS = [
    KernelLogisticRegression(random_state=0),
    KernelSVC(random_state=0),
    KernelSVC(loss="squared_hinge", random_state=0),
    KernelSVR(random_state=0),
    KernelQuantileRegressor(quantile=[0.9, 0.1], random_state=0),
    KernelExpectileRegressor(random_state=0),
    KernelHuberRegressor(random_state=0),
    KernelPoissonRegressor(random_state=0),
    KernelOneClass(0.2, random_state=0),
]
IDS = [type(model).__name__ for model in MODELS]
# One of each way to solve: what a loss adds to it does not depend on where the rows are.
WAYS = [MODELS[i] for i in (0, 1, 4, 8)]


def targets(model):
    return CLASSES if hasattr(model, "class_weight") else COUNTS


def outputs(model, rows=X):
    names = ("predict_proba", "decision_function", "predict")
    name = next(name for name in names if hasattr(model, name))
    return getattr(model, name)(rows)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_laws(model):
    check_learner(clone(model).set_params(kernel=FEW))


@pytest.mark.slow
@pytest.mark.parametrize("model", WAYS)
def test_laws_of_blocks(model):
    model = clone(model).set_params(kernel=BKA(KERNEL, 30, n_blocks=3, random_state=0))
    if "alpha" in model.get_params():
        model.set_params(alpha=1.0)  # the choice of alpha has its laws with the other kernel
    check_learner(model)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=IDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_on_other_arrays(model, library):
    pytest.importorskip(library)
    check_learner(clone(model).set_params(kernel=FEW), library=library)
    if model.get_params().get("loss") == "squared_hinge":  # with other losses it is a law of all
        check_learner(clone(model).set_params(kernel=KERNEL), library=library)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_on_dask(model):
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    y = targets(model)
    with dask.config.set(scheduler="threads"):
        more = (MEKA(KERNEL, 30, n_blocks=2, random_state=0), "rbf") if model in WAYS else ()
        for kernel in (FEW, *more):
            fresh = clone(model).set_params(kernel=kernel, tol=1e-6)
            here = clone(fresh).fit(X, y, np.ones(N))
            there = clone(fresh).fit(
                da.from_array(X, chunks=(150, 3)),
                da.from_array(y, chunks=150),
                sample_weight=da.ones(N, chunks=100),
            )
            lazy = outputs(there, da.from_array(X, chunks=(90, 3)))
            assert isinstance(lazy, da.Array)
            assert_allclose(lazy.compute(), outputs(here), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("model", WAYS)
def test_from_a_file_within_a_budget(model, tmp_path):
    noise = np.random.default_rng(1).standard_normal((3 * N, 3))
    rows = np.tile(X, (3, 1)) + 0.01 * noise
    y = np.tile(targets(model), 3)
    np.save(tmp_path / "rows.npy", rows)
    fresh = clone(model).set_params(kernel=clone(FEW).fit(X), tol=1e-4)
    fitted = fresh.get_params()["kernel"]
    expected = clone(fresh).set_params(kernel=fitted).fit(rows, y)
    with config_context(memory_budget="50kB"):  # the rows take 29 kB, their features 288 kB
        found = clone(fresh).set_params(kernel=fitted).fit(tmp_path / "rows.npy", y)
    assert_allclose(outputs(found), outputs(expected), atol=2e-2)


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_there_and_back(model, tmp_path):
    for kernel in (FEW, KERNEL):
        fitted = clone(model).set_params(kernel=kernel).fit(X, targets(model))
        gramian.save(fitted, tmp_path / "model")
        again = gramian.load(tmp_path / "model")
        assert_array_equal(outputs(again), outputs(fitted))


@pytest.mark.slow
def test_more_features_than_a_group_of_sums_allows():
    fitted = clone(FEW).fit(X)
    together = KernelSVC(1.0, fitted, tol=1e-3).fit(X, CLASSES)
    with config_context(memory_budget="60kB"):
        apart = KernelSVC(1.0, fitted, tol=1e-3).fit(X, CLASSES)
    assert_allclose(apart.objective_, together.objective_, rtol=2e-3)
    assert_array_equal(apart.coef_.shape, together.coef_.shape)


class TestEdges:
    def test_separable_classes(self):
        y = (X[:, 0] > 0).astype(int)
        for alpha in (1e-3, 1e-8):
            for kernel in (FEW, KERNEL):
                model = KernelLogisticRegression(alpha, kernel).fit(X, y)
                p = model.predict_proba(X)
                assert np.isfinite(p).all()
                assert model.accuracy_ <= 1e-5
                assert model.score(X, y) > 0.99

    @pytest.mark.parametrize("cls", [KernelLogisticRegression, KernelSVC])
    def test_one_class(self, cls):
        with pytest.raises(ValueError, match="at least 2 classes; y holds only one class: 3"):
            cls().fit(X, np.full(N, 3))
        with pytest.raises(ValueError, match="at least 2 classes"):
            cls().fit(X, CLASSES > 0, sample_weight=(CLASSES > 0).astype(float))

    def test_a_class_without_weight(self):
        weights = np.where(CLASSES == 1, 0.0, 1.0)
        model = KernelLogisticRegression(1.0, FEW).fit(X, CLASSES, weights)
        assert model.predict_proba(X)[:, 1].max() < 1e-4
        assert model.score(X[CLASSES != 1], CLASSES[CLASSES != 1]) > 0.95

    @pytest.mark.slow
    def test_very_many_classes(self):
        rng = np.random.default_rng(0)
        y = np.concatenate((np.arange(300), rng.integers(0, 300, 600)))
        rows = rng.standard_normal((300, 8))[y] + 0.01 * rng.standard_normal((900, 8))
        kernel = Nystroem(RBF(1.0), 60, random_state=0)
        model = KernelLogisticRegression(1e-2, kernel, tol=1e-3, random_state=0).fit(rows, y)
        p = model.predict_proba(rows[:50])
        assert p.shape == (50, 300)
        assert_allclose(p.sum(axis=1), 1.0)
        assert model.score(rows, y) > 0.5

    def test_too_many_classes_for_the_hinge(self, monkeypatch):
        monkeypatch.setattr("gramian.learners.losses.classifiers.MOST_HINGES", 1000)
        y = np.repeat(np.arange(300), 2)
        with pytest.raises(ValueError, match=r"300 classes of 600 rows.*Use KernelLogisticReg"):
            KernelSVC(kernel=FEW).fit(y[:, None], y)

    def test_unbalanced_classes(self):
        y = np.zeros(N, dtype=int)
        y[:2] = 1
        for weight in (None, "balanced"):
            model = KernelLogisticRegression(1.0, FEW, class_weight=weight).fit(X, y)
            assert np.isfinite(model.predict_proba(X)).all()
        plain = KernelLogisticRegression(1e6, FEW).fit(X, y)
        assert_allclose(plain.predict_proba(X)[:, 1], 2 / N, rtol=1e-3)
        given = KernelLogisticRegression(1e6, FEW, class_weight={0: 1.0, 1: 199.0}).fit(X, y)
        assert_allclose(given.predict_proba(X)[:, 1], 0.5, atol=1e-3)

    @pytest.mark.parametrize("model", MODELS[3:8], ids=IDS[3:8])
    def test_absurd_targets(self, model):
        for bad in (np.inf, np.nan):
            y = COUNTS.copy()
            y[0] = bad
            with pytest.raises(ValueError, match=r"infinity|NaN"):
                clone(model).fit(X, y)
        with pytest.raises(ValueError, match="one target"):
            clone(model).fit(X, np.column_stack((COUNTS, COUNTS)))
        with pytest.raises(ValueError, match="must be numeric; got text such as 'a'"):
            clone(model).fit(X, np.full(N, "a"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for huge in (1e100, 1e-100):
                found = clone(model).fit(X, huge * COUNTS).predict(X)
                assert np.isfinite(found).all()
        constant = clone(model).fit(X, np.full(N, 2.0)).predict(X)
        assert_allclose(constant, 2.0, rtol=1e-3)

    @pytest.mark.parametrize("huge", [1e160, 1e308])
    def test_targets_whose_squares_overflow(self, huge):
        for learner in (KernelSVR, KernelHuberRegressor, KernelPoissonRegressor):
            with pytest.raises(ValueError, match=f"y of {learner.__name__} is too large"):
                learner(kernel=FEW).fit(X, np.full(N, huge))

    def test_counts(self):
        with pytest.raises(ValueError, match="at least 0; the smallest is -1"):
            KernelPoissonRegressor().fit(X, COUNTS - 1)
        with pytest.raises(ValueError, match="every target is 0"):
            KernelPoissonRegressor().fit(X, 0 * COUNTS)
        assert KernelPoissonRegressor(0.1, FEW).fit(X, COUNTS).predict(X).min() > 0

    def test_not_converged(self):
        with pytest.warns(ConvergenceWarning, match=r"1 step, where.*Increase max_iter"):
            KernelLogisticRegression(1e-4, FEW, max_iter=1).fit(X, CLASSES)

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (KernelLogisticRegression(alpha=0), "alpha of .* must be a positive number"),
            (KernelLogisticRegression(tol=-1), "tol of .* must be a positive number"),
            (KernelSVC(loss="log"), "loss of KernelSVC must be one of 'hinge', 'squared_hinge'"),
            (KernelSVR(epsilon=-0.1), "epsilon of KernelSVR must be a number, at least 0"),
            (KernelHuberRegressor(epsilon=0.9), "epsilon of .* must be a number greater than 1"),
            (KernelQuantileRegressor(quantile=[0.5, 1.0]), "quantile of .* between 0 and 1"),
            (KernelQuantileRegressor(quantile="median"), "quantile of .* got 'median'"),
            (KernelExpectileRegressor(level=[]), "level of .* must be a number between 0 and 1"),
            (KernelOneClass(nu=0.0), "nu of KernelOneClass must be a number above 0"),
            (KernelOneClass(contamination=0.7), "contamination of KernelOneClass must be 'auto'"),
        ],
    )
    def test_parameters(self, model, message):
        with pytest.raises(ValueError, match=message):
            model.fit(X, targets(model))


class TestQuantiles:
    def test_they_do_not_cross(self):
        taus, noise = [0.6, 0.4, 0.5], np.random.default_rng(0).standard_normal(80)
        model = KernelQuantileRegressor(0.1, RBF(2.0), quantile=taus, tol=1e-3).fit(X[:80], noise)
        near = X[:80] + 0.3
        order = np.argsort(taus)
        assert (np.diff(model._outputs(near)[:, order], axis=1) < 0).any(), "they would cross"
        predicted = model.predict(near)
        assert (np.diff(predicted[:, order], axis=1) >= 0).all()
        assert_allclose(np.sort(predicted, axis=1), np.sort(model._outputs(near), axis=1))

    def test_they_cover(self):
        rng = np.random.default_rng(1)
        rows = rng.uniform(-3, 3, (1000, 1))
        y = np.sin(rows[:, 0]) + (0.1 + np.abs(rows[:, 0]) / 3) * rng.standard_normal(1000)
        taus = [0.9, 0.05, 0.5, 0.1, 0.95]
        model = KernelQuantileRegressor(1.0, Nystroem(RBF(1.0), 30, random_state=0), quantile=taus)
        below = (y[:, None] < model.fit(rows, y).predict(rows)).mean(axis=0)
        assert_allclose(below, taus, atol=0.02)
        assert 0 < model.score(rows, y) < 1
        one = KernelQuantileRegressor(1.0, model.approximation_, quantile=0.9).fit(rows, y)
        assert one.predict(rows).shape == (1000,)
        assert_allclose(one.objective_, model.objective_[0], rtol=3e-4)


class TestNovelty:
    def test_contamination(self):
        for share in (0.05, 0.3):
            model = KernelOneClass(0.2, FEW, contamination=share).fit(X)
            assert (model.predict(X) == -1).mean() == pytest.approx(share, abs=0.01)
        heavy = np.where(X[:, 0] > 0, 1.0, 0.0)
        model = KernelOneClass(0.2, FEW, contamination=0.1).fit(X, sample_weight=heavy)
        assert (model.predict(X[heavy > 0]) == -1).mean() == pytest.approx(0.1, abs=0.02)

    def test_far_rows_are_novel(self):
        model = KernelOneClass(0.1, KERNEL).fit(X)
        assert (model.predict(X + 20) == -1).all()
        assert (model.score_samples(X + 20) < model.score_samples(X).min()).all()


class TestIntercept:
    def test_far_from_the_data_predictions_are_the_intercept(self):
        far = np.full((1, 3), 1e3)
        model = KernelHuberRegressor(0.1, KERNEL).fit(X, COUNTS + 100)
        assert model.predict(far)[0] == pytest.approx(model.intercept_)
        assert 95 < model.intercept_ < 110
        without = KernelHuberRegressor(0.1, KERNEL, fit_intercept=False).fit(X, COUNTS + 100)
        assert without.intercept_ == without.predict(far)[0] == 0

    @pytest.mark.slow
    def test_adding_a_constant_to_the_target_adds_it_to_predictions(self):
        for kernel in (FEW, KERNEL):
            model = KernelSVR(0.1, kernel, tol=1e-7)
            moved = clone(model).fit(X, COUNTS + 7).predict(X)
            assert_allclose(moved, model.fit(X, COUNTS).predict(X) + 7, atol=1e-2)


def test_probabilities_are_better_than_chance_and_calibrated():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((3000, 2))
    p = 1 / (1 + np.exp(-2 * rows[:, 0] * rows[:, 1]))
    y = (rng.random(3000) < p).astype(int)
    model = KernelLogisticRegression(1.0, Nystroem(RBF(0.3), 60, random_state=0)).fit(
        rows[:2000], y[:2000]
    )
    found = model.predict_proba(rows[2000:])
    assert log_loss(y[2000:], found) < 1.03 * log_loss(y[2000:], p[2000:])
    assert_allclose(np.log(found), model.predict_log_proba(rows[2000:]))


@pytest.mark.slow
def test_a_sum_of_weights_is_a_repeated_row():
    counts = np.random.default_rng(2).integers(0, 3, N)
    fitted = clone(FEW).fit(X)
    for cls, kernel in ((KernelLogisticRegression, fitted), (KernelSVC, KERNEL)):
        weighted = cls(1.0, kernel, tol=1e-8).fit(X, CLASSES, counts)
        repeated = cls(1.0, kernel, tol=1e-8)
        repeated.fit(np.repeat(X, counts, axis=0), np.repeat(CLASSES, counts))
        assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)


@pytest.mark.slow
def test_a_loss_in_one_file():
    """What docs/losses.md shows: a new loss, and a learner for it."""
    text = (Path(__file__).parents[3] / "docs" / "losses.md").read_text()
    names: dict = {}
    for block in text.split("```python\n")[1:]:
        exec(block.split("```")[0], names)

    class KernelLogCosh(LossLearner):
        fit_intercept, tol, max_iter, random_state = True, 1e-9, 50, None

        def __init__(self, alpha=1.0, kernel="rbf"):
            self.alpha, self.kernel = alpha, kernel

        def _loss(self, n_targets):
            return names["LogCosh"]()

        @all_or_nothing
        def fit(self, X, y):
            problem = self._problem(X, np.random.default_rng(0))
            self._keep(self._solved(replace(problem, y=y[:, None])))
            return self

    found = [KernelLogCosh(0.5, kernel).fit(X, COUNTS) for kernel in (KERNEL, FEW)]
    for model in found:
        f = model._outputs(X)[:, 0]
        assert abs(np.tanh(f - COUNTS).sum()) < 1e-4, "the intercept is optimal"
    full = KernelLogCosh(0.5, RandomFourier(KERNEL, 300, random_state=0)).fit(X, COUNTS)
    assert_allclose(full.objective_, found[0].objective_, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [KERNEL, FEW])
def test_curvature_that_vanishes(kernel):
    """Weights that differ by 10⁷ leave the intercept of rare classes on flat ground."""
    weights = {0: 1000.0, 1: 1e-4, 2: 1e-4}
    values = [
        KernelSVC(1.0, kernel, class_weight=weights, tol=tol).fit(X, CLASSES).objective_
        for tol in (1e-4, 1e-8)
    ]
    assert_allclose(*values, rtol=5e-4)
