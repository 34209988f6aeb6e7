"""The intercept of kernel ridge: the dense bordered system, whatever the strategy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import Ridge

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    Exact,
    KernelRidge,
    KernelRidgeClassifier,
    Linear,
    Local,
    Nystroem,
    RandomFourier,
)
from gramian.estimators.base import generator

KERNEL = RBF(0.5)
KERNELS = {
    "exact": KERNEL,
    "Nyström": Nystroem(KERNEL, 25, random_state=0),
    "Fourier": RandomFourier(KERNEL, 25, random_state=0),
    "blocks": BKA(KERNEL, 30, n_blocks=3, random_state=0),
    "links": MEKA(KERNEL, 30, n_blocks=3, random_state=0),
    "local": Local(KERNEL, 4, random_state=0),
    "local and Nyström": Local(Nystroem(KERNEL, 20, random_state=0), 4, random_state=0),
}


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    Y = np.column_stack((np.sin(2 * X[:, 0]) * X[:, 1] + 7.0, X[:, 2] ** 2 - 30.0))
    weights = np.where(rng.random(n) < 0.2, 0.0, rng.exponential(1.0, n))
    return X, Y + 0.2 * rng.standard_normal(Y.shape), weights


def dense(K, Y, weights, alphas, new=None):
    """Predictions by Σ w (y - K a - b)² + alpha aᵀK a, as one bordered system for each target."""
    used = weights > 0
    n = int(used.sum())
    found = []
    for y, alpha in zip(Y.T, alphas, strict=True):
        A = np.zeros((n + 1, n + 1))
        A[:n, :n] = K[np.ix_(used, used)] + alpha * np.diag(1.0 / weights[used])
        A[:n, n] = A[n, :n] = 1.0
        a = np.linalg.solve(A, np.append(y[used], 0.0))
        found.append((K if new is None else new)[:, used] @ a[:n] + a[n])
    return np.column_stack(found)


def fitted_matrix(kernel, X):
    if isinstance(kernel, RBF):
        return kernel, kernel(X)
    approximation = clone(kernel).fit(X)
    return approximation, np.asarray(approximation.factor(X).dense())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["direct", "iterative"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_bordered_system(name, solver, weighted):
    X, Y, weights = table()
    kernel, K = fitted_matrix(KERNELS[name], X)
    alphas = [0.05, 2.0]
    model = KernelRidge(alphas, kernel, solver=solver, tol=1e-11, random_state=0)
    model.fit(X, Y, weights if weighted else None)
    wanted = dense(K, Y, weights if weighted else np.ones(len(X)), alphas)
    assert_allclose(model.predict(X), wanted, atol=1e-6)
    assert model.intercept_.shape == (2,)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by", ["loo", "gcv"])
@pytest.mark.parametrize("name", KERNELS)
def test_errors_of_left_out_rows(name, by, weighted):
    X, Y, weights = table(60)
    weights = weights if weighted else np.ones(len(X))
    kernel, K = fitted_matrix(KERNELS[name], X)
    grid = [0.03, 0.5]
    model = KernelRidge((by, grid), kernel, random_state=0)
    model.fit(X, Y, weights if weighted else None)
    used = np.flatnonzero(weights)
    assert_allclose(model.path_.alphas, grid)
    for alpha, errors in zip(grid, model.path_.errors, strict=True):
        if by == "loo":
            missed = np.empty((len(used), 2))
            for k, i in enumerate(used):
                without = np.where(np.arange(len(X)) == i, 0.0, weights)
                missed[k] = Y[i] - dense(K, Y, without, [alpha] * 2)[i]
            wanted = weights[used] @ missed**2 / weights.sum()
        else:
            n = len(used)
            hat = dense(K, np.eye(len(X)), weights, [alpha] * len(X))[np.ix_(used, used)]
            left = Y[used] - hat @ Y[used]
            wanted = weights[used] @ left**2 / weights.sum() / (1 - np.trace(hat) / n) ** 2
        assert_allclose(errors, wanted, rtol=1e-6)
    best = np.array(grid)[np.argmin(model.path_.errors, axis=0)]
    assert_allclose(model.predict(X), dense(K, Y, weights, best), atol=1e-7)


@pytest.mark.parametrize("name", ["Nyström", "links"])
@pytest.mark.parametrize("alpha", [0.1, "gcv"])
def test_batches(name, alpha):
    X, Y, weights = table(200)
    kernel, _ = fitted_matrix(KERNELS[name], X)
    model, whole = (KernelRidge(alpha, kernel, solver="direct") for _ in range(2))
    if alpha == "gcv":
        model.set_params(solver="auto")
        whole.set_params(solver="auto")
    for part in np.array_split(np.arange(200), 4):
        model.partial_fit(X[part], Y[part], weights[part])
    whole.fit(X, Y, weights)
    assert_allclose(model.predict(X), whole.predict(X), atol=1e-6)
    assert_allclose(model.intercept_, whole.intercept_, atol=1e-5)


@pytest.mark.parametrize("name", ["exact", "Nyström", "links"])
def test_held_out_rows(name):
    X, Y, _ = table(300)
    kernel, _ = fitted_matrix(KERNELS[name], X)
    model = KernelRidge(1e-3, kernel, validation_fraction=0.3, random_state=1).fit(X, Y)
    if name == "exact":
        left_out = np.flatnonzero(~model.dual_coef_.any(axis=1))
    else:
        left_out = generator(1).choice(300, 90, replace=False)
    missed = Y[left_out] - model.predict(X[left_out])
    assert model.validation_errors_.min() == pytest.approx((missed**2).mean())


def test_far_from_the_data_predictions_are_the_intercept():
    X, Y, weights = table()
    for kernel in (KERNEL, KERNELS["Nyström"]):
        model = KernelRidge(1.0, kernel).fit(X, Y, weights)
        assert_allclose(model.predict(X[:1] + 100.0)[0], model.intercept_)
        assert_allclose(model.intercept_, [7.0, -28.5], atol=1.0)
        without = KernelRidge(1.0, kernel, fit_intercept=False).fit(X, Y, weights)
        assert_allclose(without.predict(X[:1] + 100.0), 0.0, atol=1e-12)
        assert not without.intercept_.any()


def test_a_linear_kernel_is_ridge_regression():
    X, Y, weights = table()
    theirs = Ridge(0.3).fit(X, Y[:, 0], weights)
    for kernel in (Linear(), Exact(Linear()), Nystroem(Linear(), 3, random_state=0)):
        model = KernelRidge(0.3, kernel).fit(X, Y[:, 0], weights)
        assert_allclose(model.predict(X), theirs.predict(X), atol=1e-8)
        assert model.intercept_ == pytest.approx(theirs.intercept_)


def test_a_shift_of_the_targets_shifts_predictions():
    X, Y, _ = table(200)
    X = X.astype(np.float32)
    for kernel in (KERNEL, KERNELS["Nyström"], KERNELS["local and Nyström"]):
        model = KernelRidge(0.1, kernel, random_state=0)
        near, far = (model.fit(X, Y[:, 0] + s).predict(X) for s in (0.0, 1e4))
        assert_allclose(far - 1e4, near, atol=5e-3)


def test_constant_features():
    """A constant among the features: the intercept takes it over, and nothing breaks."""
    X, Y, _ = table()
    ones = np.column_stack((X, np.ones(len(X))))
    for alpha in (1e-12, 1e-6, 1.0):
        for solver in ("direct", "iterative"):
            wanted = Ridge(alpha).fit(X, Y).predict(X)
            kernel = Nystroem(Linear(), 4, random_state=0)
            model = KernelRidge(alpha, kernel, solver=solver, tol=1e-10, random_state=0)
            assert_allclose(model.fit(ones, Y).predict(ones), wanted, atol=1e-4)


@pytest.mark.parametrize("name", ["exact", "Nyström", "local and Nyström"])
def test_classes_and_files(name, tmp_path):
    X, Y, _ = table(200)
    labels = np.digitize(Y[:, 1], [-30, -28])
    model = KernelRidgeClassifier(0.1, KERNELS[name], random_state=0).fit(X, labels)
    assert model.intercept_.shape == (3,)
    gramian.save(model, tmp_path / "model")
    assert_allclose(
        gramian.load(tmp_path / "model").decision_function(X), model.decision_function(X)
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_an_almost_constant_kernel_in_float32(weighted):
    """Rounding of the mean of the features must leave no negative curvature."""
    X = np.random.default_rng(0).standard_normal((2000, 8)).astype(np.float32)
    y = (np.arange(2000) % 5 < 2).astype(float)
    weights = np.where(np.arange(2000) % 7 < 3, 2.0, 0.5) if weighted else None
    kernel = Nystroem(RBF(0.004), 100, random_state=0).fit(X)
    fits = {
        solver: KernelRidge(1.0, kernel, solver=solver, tol=1e-4, random_state=0)
        for solver in ("direct", "iterative")
    }
    direct, iterative = (fits[s].fit(X, y, weights).predict(X) for s in fits)
    size = np.abs(direct - direct.mean()).max()
    assert_allclose(iterative, direct, atol=1e-3 * size)
    for f in (direct, iterative):  # whatever rounding does to the mean of the features
        assert abs(np.average(f - y, weights=weights)) < 1e-4 * size
