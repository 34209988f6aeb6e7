"""Several classes over the exact matrix, through the features of its Cholesky factor."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian import RBF, Exact, KernelLogisticRegression, Linear, config_context
from gramian.learners.losses.classification import Logistic, Multinomial
from gramian.learners.losses.exact import ExactNewton, ExactSpace
from gramian.learners.losses.exact_features import ExactFeatures
from gramian.learners.losses.problem import LossProblem
from gramian.matrices.gram import Gram
from gramian.testing import check_memory


def table(n=120):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    noisy = np.sin(2 * X[:, 0]) + X[:, 1] + 0.4 * rng.standard_normal(n)
    return X, np.digitize(noisy, [-0.7, 0.7])


def problem(kernel, X, y, *, loss=None, alpha=0.1, weights=None, **more):
    gram = Gram(kernel, X)
    return LossProblem(
        matrix=gram, rows=gram.rows, loss=loss or Multinomial(3), alpha=alpha, intercept=True,
        tol=1e-8, max_iter=500, y=np.asarray(y, dtype=float)[:, None], weights=weights,
        rng=np.random.default_rng(0), n_targets=3, start=np.zeros(3), **more,
    )  # fmt: skip


@pytest.fixture
def otherwise(monkeypatch):
    """Count the fits that ExactNewton solves."""
    fits, solve = [], ExactNewton.solve

    def counted(self, problem):
        fits.append(problem)
        return solve(self, problem)

    monkeypatch.setattr(ExactNewton, "solve", counted)
    return fits


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [10.0, 1e-3])
@pytest.mark.parametrize("kernel", [RBF(2.0), Linear()], ids=["full rank", "rank 2"])
def test_it_finds_the_minimum_that_newton_steps_find(kernel, alpha, weighted):
    X, y = table()
    weights = np.arange(len(X)) % 4.0 if weighted else None
    posed = problem(kernel, X, y, alpha=alpha, weights=weights)
    ours, newton = ExactFeatures(ExactNewton()).solve(posed), ExactNewton().solve(posed)
    assert ours.met and ours.accuracy <= 1e-8
    assert_allclose(ours.values, newton.values, rtol=1e-7)
    scores = [
        Gram(kernel, X).matmul(np.asarray(each.coefficients)) + each.intercepts
        for each in (ours, newton)
    ]
    centred = [f - f.mean(axis=1, keepdims=True) for f in scores]
    assert_allclose(*centred, atol=2e-4 * np.abs(centred[1]).max())


def test_accuracy_is_judged_by_tol():
    X, y = table()
    posed = replace(problem(RBF(2.0), X, y, alpha=1e-3), max_iter=1)
    solution = ExactFeatures(ExactNewton()).solve(posed)
    assert not solution.met
    posed = replace(posed, tol=1.1 * solution.accuracy)  # the steps aim at a hundredth of it
    assert ExactFeatures(ExactNewton()).solve(posed).met


def test_coefficients_stay_small_where_the_matrix_is_nearly_singular():
    X, y = table()
    posed = problem(RBF(0.01), X, y)
    a = ExactFeatures(ExactNewton()).solve(posed).coefficients
    assert np.abs(a).max() <= 1.0 / 0.1 * 1.01  # a = -g / alpha, and |g| is at most 1


def test_a_matrix_that_is_not_positive_semi_definite_is_left_to_newton_steps(otherwise):
    X, y = table()
    K = RBF(2.0)(X) - 0.9 * RBF(1.0)(X)
    with np.errstate(all="ignore"), suppress(ValueError):  # it may have no minimum
        KernelLogisticRegression(1.0, "precomputed").fit(K, y)
    assert len(otherwise) == 1


def test_many_rows_of_the_exact_kernel_take_products_with_it(otherwise):
    X, y = table()
    with config_context(memory_budget="0.4MB"):
        KernelLogisticRegression(1.0, Exact(RBF(2.0)), random_state=0).fit(X, y)
    assert len(otherwise) == 1


@pytest.mark.parametrize("intercept", [False, True])
def test_leverages_are_those_of_the_inverse(intercept):
    X, y = table()
    posed = replace(problem(RBF(2.0), X, y, loss=Logistic()), intercept=intercept)
    K = posed.gram.dense()
    space = ExactSpace(posed, posed.gram, K)
    c = np.random.default_rng(1).exponential(1.0, len(X)) ** 4
    c[::10] = 0.0
    whole = space._pairs(K, c, np.arange(len(X)))
    assert_allclose(space._leverages(K, c), np.diag(whole), rtol=1e-5)


def test_alpha_is_chosen_as_with_newton_steps():
    X, y = table()
    grid = np.array([3.0, 0.3, 0.03])
    posed = problem(RBF(2.0), X, y, leaves_out=True, alphas=grid)
    ours, newton = ExactFeatures(ExactNewton()).solve(posed), ExactNewton().solve(posed)
    assert ours.alpha == newton.alpha
    assert_allclose(ours.path.errors, newton.path.errors, rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.1, "loo"])
def test_memory(alpha):
    check_memory(KernelLogisticRegression(alpha, Exact(RBF(1.0))), budgets=("1GB", "100MB"))
