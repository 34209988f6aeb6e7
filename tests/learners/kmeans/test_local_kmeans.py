"""k-means on a matrix that is exact inside blocks, against the dense matrix."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

import gramian
from gramian import RBF, Exact, KernelKMeans, Local, Nystroem
from gramian.testing import check_learner, check_memory

KERNEL = RBF(0.3)
INNER = [KERNEL, Nystroem(KERNEL, 20, random_state=0)]


@pytest.fixture(name="X")
def rows(rng):
    return rng.standard_normal((150, 3))


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_centres_and_distances(X, rng, inner, weighted):
    local, new = Local(inner, 5, random_state=0).fit(X), rng.standard_normal((40, 3))
    weights = rng.uniform(0.0, 2.0, 150) if weighted else np.ones(150)
    model = KernelKMeans(4, kernel=local, tol=0, random_state=0)
    model.fit(X, sample_weight=weights)
    K, members = local(X), np.eye(4)[model.labels_] * weights[:, None]
    means = members / members.sum(axis=0)
    squared = np.diag(K)[:, None] - 2 * K @ means + np.diag(means.T @ K @ means)
    assert_allclose(model.inertia_, weights @ squared.min(axis=1), rtol=1e-8)
    if not weighted:
        H = members / np.sqrt(members.sum(axis=0))
        assert_allclose(model.inertia_, np.trace(K) - np.trace(H.T @ K @ H), rtol=1e-8)
    to_new = 1.0 - 2 * local(new, X) @ means + np.diag(means.T @ K @ means)
    assert_allclose(model.transform(new) ** 2, to_new, atol=1e-8)
    assert (model.predict(new) == to_new.argmin(axis=1)).all()


@pytest.mark.parametrize("inner", INNER)
def test_it_finds_what_lloyd_finds_on_the_dense_matrix(X, inner):
    local, init = Local(inner, 5, random_state=0).fit(X), np.array([3, 50, 99, 120])
    ours = KernelKMeans(4, kernel=local, init=init, tol=0).fit(X)
    dense = KernelKMeans(4, kernel="precomputed", init=init, tol=0).fit(local(X))
    assert (ours.labels_ == dense.labels_).all()
    assert ours.n_iter_ == dense.n_iter_
    assert_allclose(ours.inertia_, dense.inertia_, rtol=1e-8)


def test_one_block_is_the_exact_fit(X):
    models = [
        KernelKMeans(3, kernel=kernel, random_state=0).fit(X)
        for kernel in (Local(INNER[1], 1, random_state=0), Exact(KERNEL))
    ]
    assert_allclose(models[0].inertia_, models[1].inertia_, rtol=1e-2)


@pytest.mark.parametrize("inner", INNER)
def test_sparse_rows_and_models_on_disk(X, tmp_path, inner):
    sparse = scipy.sparse.csr_array(X)
    local = Local(inner, 5, random_state=0)
    model = KernelKMeans(4, kernel=local, random_state=0).fit(X)
    other = KernelKMeans(4, kernel=local, random_state=0).fit(sparse)
    assert_allclose(other.transform(sparse), model.transform(X), atol=1e-7)
    gramian.save(model, tmp_path / "model.gram")
    again = gramian.load(tmp_path / "model.gram")
    assert_allclose(again.transform(X), model.transform(X), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("inner", [KERNEL, Nystroem(KERNEL, 20)])
def test_laws(inner):
    check_learner(KernelKMeans(3, kernel=Local(inner, 4)))
    check_memory(KernelKMeans(3, kernel=Local(inner)))
