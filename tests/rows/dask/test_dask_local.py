"""Local on rows of dask: workers factor the blocks, and the results are those of NumPy."""

import numpy as np
import pytest
from dask_examples import KERNEL, QUIET, X, Y, da, spread
from numpy.testing import assert_allclose
from sklearn.base import clone

from gramian import (
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Local,
    Nystroem,
    OnlineKernelKMeans,
    as_rows,
)
from gramian.matrices.block_diagonal import BlockDiagonal

pytestmark = QUIET
ROWS, TARGETS = X[:700], np.column_stack((Y, X[:, 2]))[:700]
INNER = [KERNEL, Nystroem(KERNEL, 20, random_state=0)]


def local_of(inner):
    return Local(inner, 9, random_state=0)


ALPHAS = [0.1, [0.1, 2.0], ("loo", [0.1, 1.0]), ("gcv", [0.1, 1.0])]
EVERYWHERE = [("threads", INNER[0], alpha, False) for alpha in ALPHAS]
EVERYWHERE += [("threads", INNER[1], alpha, True) for alpha in ALPHAS]
EVERYWHERE += [("cluster", INNER[0], ALPHAS[2], True), ("cluster", INNER[1], ALPHAS[1], False)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "inner", "alpha", "weighted"), EVERYWHERE, indirect=["scheduler"]
)
def test_ridge(scheduler, inner, alpha, weighted):
    model = KernelRidge(alpha, kernel=local_of(inner))
    weights = np.linspace(0.1, 2.0, 700) if weighted else None
    here = clone(model).fit(ROWS, TARGETS, sample_weight=weights)
    lazy = None if weights is None else spread(weights, 300)
    there = clone(model).fit(spread(ROWS, 300), spread(TARGETS, 300), sample_weight=lazy)
    assert_allclose(there.dual_coef_, here.dual_coef_, atol=1e-8)
    assert_allclose(there.alpha_, here.alpha_)
    predicted = there.predict(spread(X, 500))
    assert isinstance(predicted, da.Array)
    assert_allclose(predicted, here.predict(X), atol=1e-8)


def test_blocks_are_computed_by_workers(scheduler, monkeypatch):
    """In this process no block of the training rows is computed."""
    model = KernelRidge(0.1, kernel=local_of(INNER[1]))
    expected = clone(model).fit(ROWS, Y[:700]).dual_coef_
    rows, targets = spread(ROWS, 300), spread(Y[:700], 300)
    called = []
    only = BlockDiagonal.only
    monkeypatch.setattr(
        BlockDiagonal, "only", lambda self, *span: (called.append(span), only(self, *span))[1]
    )
    if scheduler == "cluster":
        monkeypatch.setattr(BlockDiagonal, "left_out", None)  # workers have their own
    found = model.fit(rows, targets).dual_coef_
    assert_allclose(found, expected, atol=1e-8)
    assert sum(b - a for a, b in set(called)) == len(model.approximation_.block_sizes_)


def test_products_are_computed_by_workers(scheduler, monkeypatch):
    """K-means, PCA and DP-means work on products with the matrix."""
    V = ROWS[:, :2]
    expected = local_of(INNER[1]).fit(ROWS).factor(ROWS).matmul(V)
    rows = as_rows(spread(ROWS, 300))
    there = local_of(INNER[1]).fit(rows)
    factors = there.factor_rows(rows)
    if scheduler == "cluster":
        monkeypatch.setattr(BlockDiagonal, "left_out", None)  # workers have their own
    assert_allclose(np.asarray(factors.persist(10**9).matmul(V)), expected, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [
        KernelRidgeClassifier(0.1),
        KernelKMeans(3, random_state=0),
        KernelPCA(2, random_state=0),
        OnlineKernelKMeans(0.7, random_state=0),
    ],
)
def test_learners(learner):
    model, y = clone(learner).set_params(kernel=local_of(INNER[1])), (Y[:700] > 0).astype(int)
    here, there = clone(model).fit(ROWS, y), clone(model).fit(spread(ROWS, 300), spread(y, 300))
    name = "transform" if hasattr(model, "transform") else "predict"
    result = getattr(there, name)(spread(X, 500))
    assert_allclose(result, getattr(here, name)(X), atol=1e-8)


def test_the_matrix(scheduler):
    here = local_of(INNER[1]).fit(ROWS)
    there = local_of(INNER[1]).fit(spread(ROWS, 300))
    assert (there.labels_ == here.labels_).all()
    assert_allclose(there(ROWS[:50]), here(ROWS[:50]), atol=1e-10)
