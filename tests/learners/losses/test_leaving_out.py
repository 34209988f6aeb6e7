"""Alpha by approximate leave-one-out errors, against fits without each row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from gramian import (
    MEKA,
    RBF,
    Exact,
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelOneClass,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelSVC,
    KernelSVR,
    Local,
    Nystroem,
    config_context,
)
from gramian.learners.losses.classification import Hinge, Logistic, Multinomial, SquaredHinge
from gramian.learners.losses.regression import (
    EpsilonInsensitive,
    Expectile,
    Poisson,
    Quantile,
)

KERNEL = RBF(0.5)
KERNELS = [
    KERNEL,
    Nystroem(KERNEL, 15, random_state=0),
    MEKA(KERNEL, 15, n_blocks=2, random_state=0),
    Local(KERNEL, 2, random_state=0),
]
GRID = [3.0, 0.3]


def table(n=50):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.4 * rng.standard_normal(n)
    return X, y, rng.exponential(1.0, n)


def brute_force(model, loss, X, y, weights):
    """The mean loss of each row by a fit without it."""
    total, numbers = 0.0, y
    for i in range(len(X)):
        without = clone(model).fit(X, y, np.where(np.arange(len(X)) == i, 0.0, weights))
        f = np.atleast_2d(np.asarray(without._scores(X[i : i + 1])[0]))
        total += weights[i] * loss.value(np.atleast_2d(numbers[i]), f).sum()
    return total / weights.sum()


CASES = {
    "logistic": (KernelLogisticRegression(), Logistic(), 2, 0.03),
    "multinomial": (KernelLogisticRegression(), Multinomial(3), 3, 0.1),
    "squared hinge": (KernelSVC(loss="squared_hinge", tol=1e-8), SquaredHinge(1), 2, 0.15),
    "hinge": (KernelSVC(tol=1e-4), Hinge(1), 2, 0.15),
    "Poisson": (KernelPoissonRegressor(), Poisson(), None, 0.1),
    "expectile": (KernelExpectileRegressor(level=[0.3, 0.8]), Expectile([0.3, 0.8]), None, 0.05),
    "quantile": (KernelQuantileRegressor(quantile=0.7), Quantile([0.7]), None, 0.15),
    "margin": (KernelSVR(epsilon=0.1), EpsilonInsensitive(0.1), None, 0.4),
}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS[:2])
@pytest.mark.parametrize("name", CASES)
def test_errors_are_close_to_those_of_fits_without_each_row(name, kernel):
    model, loss, classes, tolerance = CASES[name]
    X, y, weights = table(30)
    kernel = kernel if kernel is KERNEL else clone(kernel).fit(X)
    if classes is not None:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    elif name == "Poisson":
        y = np.floor(np.exp(y))
    model = clone(model).set_params(kernel=kernel, alpha=("loo", GRID), random_state=0)
    model.fit(X, y, weights)
    assert_allclose(model.path_.alphas, GRID)
    fixed = clone(model).set_params(alpha=GRID[1])
    wanted = brute_force(fixed, loss, X, y, weights)
    assert model.path_.errors[1] == pytest.approx(wanted, rel=tolerance)
    assert model.alpha_ == GRID[int(np.argmin(model.path_.errors))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinge", "margin"])
def test_errors_of_losses_with_kinks_are_closer_for_more_rows(name):
    model, loss, classes, _ = CASES[name]
    X, y, weights = table(100)
    y = (y > np.median(y)).astype(int) if classes is not None else y
    model = clone(model).set_params(kernel=KERNEL, alpha=("loo", [0.3])).fit(X, y, weights)
    wanted = brute_force(clone(model).set_params(alpha=0.3), loss, X, y, weights)
    assert model.path_.errors[0] == pytest.approx(wanted, rel=0.12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_expectile_of_a_half_is_exact(kernel):
    """Half of squares: one Newton step is the whole way."""
    X, y, weights = table(30)
    kernel = kernel if kernel is KERNEL else clone(kernel).fit(X)
    model = KernelExpectileRegressor(("loo", [0.5]), kernel, tol=1e-12).fit(X, y, weights)
    fixed = clone(model).set_params(alpha=0.5)
    wanted = brute_force(fixed, Expectile([0.5]), X, y, weights)
    assert model.path_.errors[0] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_chosen_fit_is_that_of_its_alpha(kernel):
    X, y, _ = table()
    labels = np.digitize(y, [-0.5, 0.5])
    model = KernelLogisticRegression("loo", kernel, tol=1e-9, random_state=0).fit(X, labels)
    alphas, errors = model.path_
    assert (np.diff(alphas) < 0).all() and len(alphas) == len(errors) > 3
    best = int(np.argmin(errors))
    assert model.alpha_ == alphas[best]
    assert best == len(alphas) - 3 or len(alphas) == 13  # it ended after two larger errors
    fixed = clone(model).set_params(alpha=model.alpha_).fit(X, labels)
    assert fixed.alpha_ == model.alpha_ and fixed.path_ is None
    assert_allclose(model.predict_proba(X), fixed.predict_proba(X), atol=1e-4)


def test_the_chosen_alpha_is_good_for_other_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 3))
    y = rng.random(600) < 1 / (1 + np.exp(-2 * np.sin(2 * X[:, 0]) - X[:, 1]))
    model = KernelLogisticRegression("loo", Nystroem(KERNEL, 80, random_state=0))
    model.fit(X[:300], y[:300])
    losses = {}
    for alpha in model.path_.alphas:
        p = clone(model).set_params(alpha=alpha).fit(X[:300], y[:300]).predict_proba(X[300:])
        losses[alpha] = -np.log(p[np.arange(300), y[300:].astype(int)]).mean()
    assert losses[model.alpha_] < min(losses.values()) + 0.02
    assert max(losses.values()) > min(losses.values()) + 0.05


@pytest.mark.slow
def test_groups_of_outputs_and_iterations_agree(monkeypatch):
    X, y, weights = table(200)
    kernel = Nystroem(KERNEL, 20, random_state=0).fit(X)
    model = KernelQuantileRegressor(("loo", GRID), kernel, quantile=[0.1, 0.5], tol=1e-6)
    together = model.fit(X, y, weights).path_.errors
    with monkeypatch.context() as patch:
        patch.setattr("gramian.learners.losses.factored.SHARE", 10**9)  # one output at a time
        assert_allclose(model.fit(X, y, weights).path_.errors, together, rtol=5e-3)
    labels = (y > 0).astype(int)
    kernel = Nystroem(KERNEL, 60, random_state=0).fit(X)  # so many that H is of all rows
    model = KernelLogisticRegression(("loo", GRID), kernel, tol=1e-8, random_state=0)
    summed = model.fit(X, labels).path_.errors
    monkeypatch.setattr("gramian.learners.losses.iterated.PASSES", 0)
    assert_allclose(model.fit(X, labels).path_.errors, summed, rtol=1e-4)


def test_small_alphas_of_several_classes_do_not_look_worse_than_they_are():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1200, 2))
    scores = 3 * np.column_stack((np.sin(2 * X[:, 0]), X[:, 1], -X.sum(axis=1)))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    kernel = Nystroem(RBF(2.0), 60, random_state=0)
    model = KernelLogisticRegression(("loo", [0.01]), kernel, random_state=0).fit(X[:400], y[:400])
    p = model.predict_proba(X[400:])
    left_out = -np.log(p[np.arange(800), y[400:]]).mean()
    assert 0.85 * left_out < model.path_.errors[0] < 1.15 * left_out


def test_a_fitted_scale_of_errors():
    X, y, _ = table(100)
    y[::10] += 8.0
    model = KernelHuberRegressor("loo", KERNEL).fit(X, y)
    assert 1e-3 < model.alpha_ < 30
    assert np.abs(model.predict(X) - y)[1:10].mean() < 0.6


@pytest.mark.parametrize(
    "alpha", ["gcv", ("loo", []), ("loo", [0.0]), ("gcv", [1.0]), -1.0, [1, 2]]
)
def test_bad_alphas(alpha):
    X, y, _ = table()
    with pytest.raises(ValueError, match="alpha of KernelSVR must be a positive number, 'loo'"):
        KernelSVR(alpha).fit(X, y)


def test_the_exact_matrix_must_fit():
    X, y, _ = table(300)
    with config_context(memory_budget="2MB"):
        model = KernelLogisticRegression("loo", Exact(KERNEL))
        with pytest.raises(ValueError, match="too large to store"):
            model.fit(np.tile(X, (10, 1)), np.tile(y > 0, 10))


def test_novelty_has_no_alpha():
    X, _, _ = table()
    assert not hasattr(KernelOneClass(0.1).fit(X), "alpha_")
