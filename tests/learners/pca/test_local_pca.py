"""Components of a matrix that is exact inside blocks, against the dense matrix."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

import gramian
from gramian import RBF, KernelPCA, Local, Nystroem
from gramian.testing import check_learner, check_memory

KERNEL = RBF(0.3)
INNER = [KERNEL, Nystroem(KERNEL, 20, random_state=0)]


@pytest.fixture(name="X")
def rows(rng):
    return rng.standard_normal((100, 3)) * np.array([3.0, 1.0, 0.5])


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("count", [3, 20])  # by iteration, and by decomposition
def test_eigenvalues_and_scores(X, rng, inner, count):
    local, new = Local(inner, 5, random_state=0).fit(X), rng.standard_normal((30, 3))
    model = KernelPCA(count, kernel=local, tol=1e-13, max_iter=40, random_state=0).fit(X)
    K = local(X)
    J = np.eye(100) - 1 / 100
    values, vectors = np.linalg.eigh(J @ K @ J)
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    scores = model.transform(X)
    assert_allclose(scores @ scores.T, (vectors * values) @ vectors.T, atol=1e-8)
    centred = (local(new, X) - K.mean(axis=0)) @ J
    expected = centred @ (vectors / np.sqrt(values))
    signs = np.sign((scores * vectors).sum(axis=0))
    assert_allclose(model.transform(new), expected * signs, atol=1e-7)


@pytest.mark.parametrize("inner", INNER)
def test_sparse_rows_and_models_on_disk(X, tmp_path, inner):
    local, sparse = Local(inner, 5, random_state=0), scipy.sparse.csr_array(X)
    model = KernelPCA(3, kernel=local, random_state=0).fit(X)
    other = KernelPCA(3, kernel=local, random_state=0).fit(sparse)
    assert_allclose(other.transform(sparse), model.transform(X), atol=1e-6)
    gramian.save(model, tmp_path / "model.gram")
    again = gramian.load(tmp_path / "model.gram")
    assert_allclose(again.transform(X), model.transform(X), atol=1e-12)


@pytest.mark.parametrize("inner", [KERNEL, Nystroem(KERNEL, 20)])
def test_laws(inner):
    check_learner(KernelPCA(2, kernel=Local(inner, 4)))


@pytest.mark.slow
def test_memory():
    check_memory(KernelPCA(100, kernel=Local(KERNEL)))
