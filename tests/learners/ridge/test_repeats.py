"""Paths of alphas on data with repeated rows, and paths that end at an edge of their grid."""

import numpy as np
import pytest
import scipy.sparse

from gramian import RBF, KernelRidge, Local, Nystroem, PathWarning


def repeated(counts, same_target=False, seed=0):
    rng = np.random.default_rng(seed)
    distinct = rng.uniform(-3, 3, (len(counts), 2))
    truth = np.sin(2 * distinct[:, 0]) + np.cos(distinct[:, 1])
    X, y = np.repeat(distinct, counts, axis=0), np.repeat(truth, counts)
    if same_target:
        return X, np.repeat(truth + 0.3 * rng.standard_normal(len(counts)), counts)
    return X, y + 0.3 * rng.standard_normal(len(y))


def left_out(X, y, kernel, alpha, w, intercept):
    """The mean squared error of fits without all rows that equal a row."""
    K, total = kernel(X), 0.0
    for i in range(len(X)):
        others = (X[i] != X).any(axis=1)
        border = np.full((others.sum(), 1), float(intercept))
        A = K[np.ix_(others, others)] + alpha * np.diag(1 / w[others])
        A = np.block([[A, border], [border.T, np.full((1, 1), 1.0 - intercept)]])
        a = np.linalg.solve(A, np.append(y[others], 0.0))
        total += w[i] * (y[i] - K[i, others] @ a[:-1] - intercept * a[-1]) ** 2
    return total / w.sum()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("exact", [True, False])
def test_equal_rows_are_left_out_together(exact, weighted, intercept, rng):
    X, y = repeated(rng.integers(1, 4, 20))
    w = rng.uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    kernel, grid = RBF(1.0), [0.1, 0.5, 2.0]
    given = kernel if exact else Nystroem(kernel, 20, landmarks=np.unique(X, axis=0))
    model = KernelRidge(("loo", grid), given, fit_intercept=intercept)
    model.fit(X, y, w if weighted else None)
    expected = [left_out(X, y, kernel, alpha, w, intercept) for alpha in grid]
    np.testing.assert_allclose(model.path_.errors, expected, rtol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("features", [0, 6])
def test_equal_rows_of_a_block_are_left_out_together(features, weighted, intercept, rng):
    X, y = repeated(rng.integers(1, 4, 20))
    w = rng.uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    kernel, grid = RBF(1.0), [0.1, 0.5, 2.0]
    given = Nystroem(kernel, features, random_state=0) if features else kernel
    local = Local(given, 3, random_state=0).fit(X)
    model = KernelRidge(("loo", grid), local, fit_intercept=intercept)
    model.fit(X, y, w if weighted else None)
    expected = [left_out(X, y, local, alpha, w, intercept) for alpha in grid]
    np.testing.assert_allclose(model.path_.errors, expected, rtol=1e-6)


def test_equal_rows_in_different_blocks_are_not_one_row():
    X, y = repeated(np.full(10, 2))
    local = Local(RBF(1.0), partition=np.tile([0, 1], 10))
    model = KernelRidge(("loo", [0.5]), local, fit_intercept=False).fit(X, y)
    halves = [KernelRidge(("loo", [0.5]), RBF(1.0), fit_intercept=False) for _ in range(2)]
    errors = [half.fit(X[i::2], y[i::2]).path_.errors for i, half in enumerate(halves)]
    np.testing.assert_allclose(model.path_.errors, np.mean(errors), rtol=1e-8)


@pytest.mark.parametrize("rule", ["loo", "gcv"])
@pytest.mark.parametrize(
    "kernel",
    [RBF(1.0), Nystroem(RBF(1.0), 60, random_state=0), Local(RBF(1.0), 3, random_state=0)],
    ids=str,
)
@pytest.mark.parametrize("same_target", [True, False])
def test_repeated_rows_do_not_run_a_path_to_its_end(rule, kernel, same_target):
    X, y = repeated(np.full(100, 3), same_target)
    alone = KernelRidge(rule, kernel).fit(X[::3], y.reshape(-1, 3).mean(axis=1))
    model = KernelRidge(rule, kernel).fit(X, y)
    assert model.alpha_ == pytest.approx(3 * alone.alpha_, rel=2.0)


@pytest.mark.parametrize("local", [False, True])
def test_gcv_is_that_of_the_groups(local):
    counts = np.r_[np.ones(60, int), np.full(20, 4)]
    X, y = repeated(counts)
    edges = np.cumsum(counts) - counts
    means = np.add.reduceat(y, edges) / counts
    within = np.sum((y - np.repeat(means, counts)) ** 2)
    grid = np.geomspace(1e-2, 1e2, 5)
    side = X[:, 0] > 0
    kernels = [Local(RBF(1.0), partition=b) if local else RBF(1.0) for b in (side, side[edges])]
    of_rows = KernelRidge(("gcv", grid), kernels[0]).fit(X, y)
    of_groups = KernelRidge(("gcv", grid), kernels[1]).fit(X[edges], means, counts)
    np.testing.assert_allclose(of_rows.path_.errors, of_groups.path_.errors, rtol=1e-8)
    assert within > 0


def test_sparse_rows_and_float32_have_the_same_groups():
    X, y = repeated(np.full(40, 3), same_target=True)
    X[X < 0] = 0
    alphas = [
        KernelRidge("loo", RBF(1.0)).fit(rows, y).alpha_
        for rows in (X, scipy.sparse.csr_array(X), X.astype(np.float32))
    ]
    np.testing.assert_allclose(alphas, alphas[0], rtol=0.3)


@pytest.mark.parametrize(("grid", "end"), [([1e2, 1e3], "smallest"), ([1e-6, 1e-3], "largest")])
def test_a_path_that_ends_at_an_edge_says_so(grid, end):
    X, y = repeated(np.ones(80, int))
    with pytest.warns(PathWarning, match=f"{end} alpha .* of its path"):
        KernelRidge(("loo", grid), RBF(1.0)).fit(X, y)


@pytest.mark.filterwarnings("error::gramian.PathWarning")
def test_a_single_alpha_and_one_inside_say_nothing():
    X, y = repeated(np.ones(80, int))
    assert KernelRidge(("loo", [1.0]), RBF(1.0)).fit(X, y).alpha_ == 1.0
    model = KernelRidge("gcv", RBF(1.0)).fit(X, y)
    assert model.path_.alphas.min() < model.alpha_ < model.path_.alphas.max()
