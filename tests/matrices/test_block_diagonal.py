"""D, what features leave out inside blocks, against dense matrices."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from gramian import RBF, ArrayRows, FeatureRows, Nystroem, config_context
from gramian.matrices.block_diagonal import BlockDiagonal
from gramian.matrices.block_function import BlockFunction
from gramian.matrices.block_gram import BlockGram
from gramian.matrices.block_rows import Grouped
from gramian.matrices.factors import Factors
from gramian.rows import as_rows

KERNEL = RBF(0.3)
COUNT = 4


@pytest.fixture(name="X")
def rows(rng):
    return rng.standard_normal((60, 3))


@pytest.fixture(name="labels")
def blocks(rng):
    labels = rng.integers(0, COUNT, 60)
    labels[labels == 2] = 0  # an empty block
    return labels


def made(X, labels, features=True):
    """D, the features of the rows, and D as a dense matrix."""
    nystroem = Nystroem(KERNEL, 8, random_state=0).fit(X) if features else None
    map_rows = None if nystroem is None else nystroem._features
    width = 0 if nystroem is None else nystroem.n_components_
    local = BlockDiagonal(KERNEL, Grouped.of(as_rows(X), labels, COUNT), map_rows, width)
    Z = np.zeros((len(labels), 0)) if nystroem is None else nystroem.transform(X)
    dense = (KERNEL(X) - Z @ Z.T) * (labels[:, None] == labels)
    return local, Z, dense


@pytest.mark.parametrize("features", [True, False])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_operations_are_those_of_the_dense_matrix(X, labels, rng, features, kept, threads):
    local, Z, D = made(X, labels, features)
    V, some, others = rng.standard_normal((60, 3)), np.array([7, 3, 3, 41]), np.array([0, 7, 59])
    with config_context(n_threads=threads):
        local = local.persist(2**20) if kept else local
        assert_allclose(local.matmul(V), D @ V, atol=1e-12)
        assert_allclose(local.dense(), D, atol=1e-12)
        assert_allclose(local.columns(some), D[:, some], atol=1e-12)
        pair = local.take(some).dense(local.take(others))
        assert_allclose(pair, D[np.ix_(some, others)], atol=1e-12)
        factors = Factors(ArrayRows(Z), local=local)
        assert_allclose(factors.matmul(V), (Z @ Z.T + D) @ V, atol=1e-12)
        assert_allclose(factors.diagonal(), np.ones(60), atol=1e-12)


def test_blocks_are_kept_only_where_they_fit(X, labels):
    local = made(X, labels)[0]
    assert local.nbytes == 8 * (np.bincount(labels) ** 2).sum()
    assert local.persist(local.nbytes - 1) is local
    kept = local.persist(local.nbytes)
    assert kept is not local
    assert kept.block(0) is kept.block(0)
    assert kept.persist(0) is kept


def test_rows_are_grouped_and_restored(X, labels):
    groups = Grouped.of(as_rows(X), labels, COUNT)
    assert (groups.sizes == np.bincount(labels, minlength=COUNT)).all()
    for b in range(COUNT):
        assert (groups.rows(b) == X[labels == b]).all()
    assert (groups.restore(groups.arrange(X)) == X).all()


def test_rows_that_are_computed_are_grouped_in_one_pass(X, labels):
    doubled = FeatureRows(as_rows(X), lambda x, out=None: 2 * x, 3, X.dtype)
    with config_context(memory_budget="1MB"):
        groups = Grouped.of(doubled, labels, COUNT)
    assert (groups.points == 2 * X[groups.order]).all()


def test_sparse_rows(X, labels):
    sparse = made(scipy.sparse.csr_array(X), labels)[0]
    assert scipy.sparse.issparse(sparse.groups.points)
    assert_allclose(sparse.dense(), made(X, labels)[2], atol=1e-10)


@pytest.mark.parametrize("features", [True, False])
def test_a_function_of_new_rows(X, labels, rng, features):
    local, Z, _ = made(X, labels, features)
    dual, new = rng.standard_normal((60, 2)), rng.standard_normal((30, 3))
    new_labels = rng.choice([0, 1, 3], 30)
    z = np.zeros((30, 0)) if not features else local.features(new)
    inside = (KERNEL(new, X) - z @ Z.T) * (new_labels[:, None] == labels)
    function = BlockFunction.of(local, dual)
    assert_allclose(function.at(local, new, new_labels), (z @ Z.T + inside) @ dual, atol=1e-12)


@pytest.mark.parametrize("features", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_oracle(X, labels, rng, features, dtype):
    X = X.astype(dtype)
    local, Z, D = made(X, labels, features)
    K = Z.astype(float) @ Z.T + D
    gram = BlockGram(Factors(ArrayRows(Z), local=local), as_rows(X))
    V, tolerance = rng.standard_normal((60, 2)), 1e-12 if dtype == np.float64 else 1e-5
    for each in (gram, gram.persist()):
        assert_allclose(each.matmul(V), K @ V, atol=10 * tolerance)
        assert_allclose(each.matmul(V[:, 0]), K @ V[:, 0], atol=10 * tolerance)
        assert_allclose(each.columns([5, 2]), K[:, [5, 2]], atol=tolerance)
        assert_allclose(each.block([5, 2], [2, 9, 9]), K[np.ix_([5, 2], [2, 9, 9])], atol=tolerance)
        assert_allclose(each.dense(), K, atol=tolerance)
        assert_allclose(each.diag(), np.ones(60), atol=tolerance)
        assert each.columns([5]).dtype == each.dense().dtype == dtype
    assert gram.persist().factors.local._kept is not None
    with config_context(memory_budget="20kB"):
        assert gram.persist().factors.local is local
        assert gram.kept_bytes == 0


def test_a_budget_of_nothing(X, labels):
    local, _, D = made(X, labels, features=False)
    kept = local.persist(2**20)
    with config_context(memory_budget=1, n_threads=3):
        assert_allclose(kept.matmul(X), D @ X, atol=1e-12)
