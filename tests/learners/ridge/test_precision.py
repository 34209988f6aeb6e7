"""float32 rows give the predictions of the same rows in float64."""

import numpy as np
import pytest
from sklearn.base import clone

from gramian import (
    BKA,
    MEKA,
    RBF,
    Exact,
    KernelJL,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    RandomFourier,
)
from gramian.learners.ridge import base, factored, systems
from gramian.matrices.factors import unprojected

SMOOTH = Nystroem(RBF(2.0), 100, landmarks="uniform", random_state=0)  # W of condition 1e14
KERNELS = [
    SMOOTH,
    Nystroem(RBF(20.0), 100, random_state=0),
    BKA(RBF(20.0), 60, n_blocks=3, random_state=0),
    MEKA(RBF(20.0), 60, n_blocks=3, random_state=0),
    RandomFourier(RBF(10.0), 200, random_state=0),
    RandomFourier(RBF(10.0), 201, random_state=0),
    KernelJL(RBF(20.0), 50, random_state=0),
    Exact(RBF(20.0)),
]


def curved(n=900):
    """Rows on a surface in nine columns, in [0, 1], as float32; and targets."""
    rng = np.random.default_rng(0)
    t = rng.random((n, 2))
    X = np.sin(1.5 * t @ rng.standard_normal((2, 9)) + rng.random(9))
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    y = np.sin(9 * t[:, 0]) * np.cos(7 * t[:, 1]) + 0.05 * rng.standard_normal(n)
    return X.astype(np.float32), y


def difference(model, X, y):
    """How far predictions from float32 rows are from those in float64, relative to these."""
    single = clone(model).fit(X[:600], y[:600]).predict(X[600:])
    assert single.dtype == np.float32
    double = X.astype(np.float64)
    double = clone(model).fit(double[:600], y[:600]).predict(double[600:])
    return np.linalg.norm(single - double) / np.linalg.norm(double)


@pytest.mark.parametrize("alpha", [1e-7, 1e-4, "loo", "gcv"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_within_one_percent(kernel, alpha):
    assert difference(KernelRidge(alpha, kernel=kernel), *curved()) < 0.01


def test_several_targets_and_weights():
    X, y = curved()
    targets = np.column_stack((y, y**2))
    for solver in ("direct", "iterative"):
        model = KernelRidge([1e-5, 1e-2], kernel=SMOOTH, solver=solver, tol=1e-12, max_iter=2000)
        assert difference(model, X, targets) < 0.01


def test_classifier():
    X, y = curved()
    model = KernelRidgeClassifier(1e-6, kernel=SMOOTH)
    single = clone(model).fit(X, y > 0).decision_function(X)
    double = clone(model).fit(X.astype(np.float64), y > 0).decision_function(X.astype(np.float64))
    assert np.linalg.norm(single - double) < 0.01 * np.linalg.norm(double)


def test_float32_alone_would_lose(monkeypatch):
    monkeypatch.setattr(Nystroem, "in_double", lambda self, rows: None)
    assert difference(KernelRidge(1e-7, kernel=SMOOTH), *curved()) > 0.02


def test_float32_features_stay_where_rounding_does_not_show():
    X, y = curved()
    model = KernelRidge(1.0, kernel=Nystroem(RBF(20.0), 100, random_state=0)).fit(X, y)
    assert model.approximation_.transform(X).dtype == np.float32


@pytest.mark.parametrize("solver", ["direct", "iterative"])
def test_kernel_values_computed_in_float64_are_stored_in_float32(solver, monkeypatch):
    X, y = curved()
    made, in_single, shows = [], base.in_single, iter([True, False])

    def noted(factors):
        made.append((factors, in_single(factors)))
        return made[-1][1]

    monkeypatch.setattr(base, "in_single", noted)
    monkeypatch.setattr(base, "rounding_shows", lambda *_: next(shows))
    model = KernelRidge(1e-5, kernel=Nystroem(RBF(20.0), 100, random_state=0), solver=solver)
    fitted = clone(model).fit(X[:600], y[:600])
    ((double, single),) = made
    assert single.dtype == np.float32
    for exact, rounded in [(double, single), (unprojected(double)[0], unprojected(single)[0])]:
        np.testing.assert_array_equal(rounded.parts.values(), np.float32(exact.parts.values()))
    assert fitted.approximation_.transform(X).dtype == np.float64
    expected = clone(model).fit(X[:600].astype(np.float64), y[:600]).predict(X[600:])
    assert np.linalg.norm(fitted.predict(X[600:]) - expected) < 0.01 * np.linalg.norm(expected)


def test_float64_is_stored_where_rounding_to_float32_shows(monkeypatch):
    X, y = curved()
    stored = []
    keep = base.RidgeLearner._keep

    def noted(self, solution, system):
        stored.append(system.matrix.dtype)
        return keep(self, solution, system)

    monkeypatch.setattr(base.RidgeLearner, "_keep", noted)
    monkeypatch.setattr(base, "rounding_shows", lambda *_: True)
    KernelRidge(1e-5, kernel=Nystroem(RBF(20.0), 100, random_state=0)).fit(X, y)
    assert stored == [np.float64]


@pytest.mark.parametrize("alpha", [1e-3, "gcv"])
def test_sums_in_float64_where_float32_would_round_too_much(alpha, monkeypatch):
    X, y = curved()
    kernel = Nystroem(RBF(2.0), 100, landmarks="uniform", random_state=0).fit(X)
    ways = []
    products = factored.inner_products

    def noted(*args, **options):
        ways.append((options["late"], options["precise"]))
        return products(*args, **options)

    monkeypatch.setattr(Nystroem, "in_double", lambda self, rows: None)
    monkeypatch.setattr(factored, "inner_products", noted)
    model = KernelRidge(alpha, kernel=kernel, solver="direct")
    late = clone(model).fit(X, y).predict(X)
    monkeypatch.setattr(systems, "sums_allow", lambda *a, **k: False)
    precise = clone(model).fit(X, y).predict(X)
    assert (True, False) in ways
    assert (False, True) in ways
    assert np.linalg.norm(late - precise) < 1e-3 * np.linalg.norm(precise)
