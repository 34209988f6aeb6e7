"""k-means of a sample: Lloyd's algorithm, and that it leaves the process as it was."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from gramian import BKA, RBF, Gram, KernelRidge, KMeansCentres, Nystroem, config_context
from gramian.samplers.centroids import centred, lloyd

X = np.random.default_rng(0).standard_normal((6000, 10))


def plain(sample, starts, steps):
    """Lloyd's algorithm as a book has it."""
    centres = sample[starts]
    for _ in range(steps):
        labels = ((sample[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.array([sample[labels == j].mean(axis=0) for j in range(len(centres))])
    return centres


def test_steps_are_those_of_the_book(rng):
    sample = rng.standard_normal((400, 3))
    starts = rng.choice(400, 20, replace=False)
    centres, masses = lloyd(sample, starts, 4)
    np.testing.assert_allclose(centres, plain(sample, starts, 4))
    assert masses.sum() == 400 and masses.all()


def test_a_step_that_lowers_the_objective_little_is_the_last(rng):
    sample, starts, tol = rng.uniform(size=(600, 1)), np.arange(8), 0.01
    objectives = [np.inf]
    for steps in range(30):
        centres = plain(sample, starts, steps)
        objectives.append(((sample[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum())
        if objectives[-1] > (1 - tol) * objectives[-2]:
            break
    assert 1 < steps < 29
    np.testing.assert_allclose(lloyd(sample, starts, 30, tol)[0], plain(sample, starts, steps + 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_samples_have_the_same_centres(rng, dtype):
    sample = rng.standard_normal((300, 6)).astype(dtype) * (rng.random((300, 6)) < 0.4)
    starts = rng.choice(300, 10, replace=False)
    dense, _ = lloyd(sample, starts, 3)
    sparse, _ = lloyd(scipy.sparse.csr_array(sample), starts, 3)
    np.testing.assert_allclose(sparse, dense, rtol=1e-5, atol=1e-6)


def test_far_from_zero_in_single_precision(rng):
    sample = rng.standard_normal((500, 2)).astype(np.float32)
    far = sample + np.float32(4096)
    near = far.astype(np.float64) - 4096
    middle = centred(far)
    centres, _ = lloyd(far, np.arange(8), 5)
    np.testing.assert_allclose(centres + middle - 4096, plain(near, np.arange(8), 5), atol=1e-3)


def test_empty_clusters_take_far_rows():
    sample = np.array([[0.0], [0.0], [0.0], [1.0], [9.0]])
    centres, masses = lloyd(sample, np.array([0, 1, 2]), 4)
    assert sorted(centres.ravel()) == [0.0, 1.0, 9.0] and sorted(masses) == [1, 1, 3]
    centres, masses = lloyd(np.zeros((5, 2)), np.array([0, 1, 2]), 4)
    assert masses.tolist() == [5, 0, 0] and not centres.any()


def test_centres_are_as_good_as_those_of_scikit_learn(rng):
    sample = np.concatenate([rng.standard_normal((200, 2)) + 5 * rng.standard_normal(2)] * 5)

    def inertia(centres):
        return ((sample[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum()

    ours = [inertia(lloyd(sample, rng.choice(1000, 30, False), 4)[0]) for _ in range(10)]
    options = {"init": "random", "n_init": 1, "max_iter": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = [
            inertia(KMeans(30, random_state=i, **options).fit(sample).cluster_centers_)
            for i in range(10)
        ]
    assert np.mean(ours) < 1.1 * np.mean(theirs)


def test_results_do_not_depend_on_threads():
    points = []
    for threads in (1, 2, 5):
        with config_context(n_threads=threads):
            model = Nystroem(RBF(0.1), 50, landmarks=KMeansCentres(), random_state=0).fit(X)
            points.append(model.landmarks_.points)
    np.testing.assert_array_equal(points[0], points[1])
    np.testing.assert_array_equal(points[0], points[2])


def _fit(blocks=False):
    kernel = BKA(RBF(0.1), 50, n_blocks=2) if blocks else Nystroem(RBF(0.1), 50, random_state=0)
    KernelRidge(0.1, kernel=kernel).fit(X, X[:, 0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("blocks", [False, True])
def test_a_forked_child_fits_too(blocks):
    """scikit-learn's KMeans in such a child waits forever for threads that it does not have."""
    _fit(blocks)
    child = multiprocessing.get_context("fork").Process(target=_fit, args=(blocks,))
    child.start()
    child.join(60)
    hangs = child.is_alive()
    if hangs:
        child.kill()
        child.join()
    assert not hangs and child.exitcode == 0


def _blas_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [False, True])
def test_fits_in_many_threads_leave_blas_as_it_was(blocks):
    before = _blas_threads()
    for _ in range(3):
        threads = [threading.Thread(target=_fit, args=(blocks,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _blas_threads() == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", ["columns", "metric", "with a zero"])
def test_centres_follow_the_scales_of_the_kernel(shape, dtype):
    """They are those of rows that are scaled before."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)).astype(dtype)
    scales = np.array([3.0, 1.0, 0.1, 0.0 if shape == "with a zero" else 0.5])
    if shape == "metric":
        M = rng.standard_normal((4, 4))
        scales = M @ M.T
    turned = X * scales if scales.ndim == 1 else X @ scales
    found = KMeansCentres().select(Gram(RBF(0.5, scales=scales), X), 10, np.random.default_rng(1))
    before = KMeansCentres().select(
        Gram(RBF(0.5), turned.astype(dtype)), 10, np.random.default_rng(1)
    )
    seen = found.points * scales if scales.ndim == 1 else found.points @ scales
    assert found.points.dtype == dtype
    assert_allclose(seen, before.points, atol=1e-3 if dtype == np.float32 else 1e-9)
    one, other = RBF(0.5, scales=scales)(X, found.points), RBF(0.5)(turned, before.points)
    assert_allclose(one, other, atol=1e-4)
