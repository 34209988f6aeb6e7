"""Sketches of features, on which restarts run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from gramian import MEKA, RBF, ArrayRows, Factors, KernelKMeans, Nystroem
from gramian.learners.kmeans import sketch
from gramian.learners.kmeans.lloyd import means
from gramian.learners.kmeans.sketch import sketched


def test_distances_are_those_of_rows_that_vary_in_few_dimensions(rng):
    few = rng.standard_normal((900, 60)) @ rng.standard_normal((60, 200))
    factors = Factors(ArrayRows(few))
    found = sketched(factors, 10, rng)
    assert found.rank == sketch.LEAST
    assert_allclose(found.dense(), factors.dense(), rtol=1e-9, atol=1e-8)


def test_the_dimensions_are_those_in_which_the_rows_vary_most(rng):
    Z = rng.standard_normal((2000, 300)) * np.repeat([3.0, 0.1], [40, 260])
    found = sketched(Factors(ArrayRows(Z)), 10, rng).parts[0].collect()
    explained = np.sum(found**2) / np.sum(Z**2)
    best = np.sum(np.linalg.svd(Z)[1][: sketch.LEAST] ** 2) / np.sum(Z**2)
    assert 0.999 * best < explained <= best


def test_none_where_it_would_save_little(rng):
    factors = Factors(ArrayRows(rng.standard_normal((300, 95))))
    assert sketched(factors, 10, rng) is factors
    wide = Factors(ArrayRows(rng.standard_normal((300, 96))))
    assert sketched(wide, 10, rng) is not wide
    assert sketched(wide, 60, rng) is wide  # the sketch would have 75 columns
    X = rng.standard_normal((400, 3))
    blocks = MEKA(RBF(0.5), n_components=200, n_blocks=2, random_state=0).fit(X).factor(X)
    assert blocks.core is not None
    assert sketched(blocks, 2, rng) is blocks


def test_means_are_those_of_the_rows(rng):
    Z, labels, weights = rng.random((50, 4)), rng.integers(3, size=50), rng.random(50)
    found = means(Factors(ArrayRows(Z)), weights, labels, 4)
    for j in range(3):
        assert_allclose(found[j], np.average(Z[labels == j], axis=0, weights=weights[labels == j]))
    assert_array_equal(found[3], 0.0)


@pytest.mark.parametrize("n", [1500, 8000])  # all rows, or a sample of them
def test_the_objective_is_not_above_that_of_scikit_learn(n):
    X = make_blobs(n, 12, centers=12, cluster_std=3.0, random_state=0)[0]
    kernel = Nystroem(RBF(0.003), 150, landmarks="uniform", random_state=0).fit(X)
    Z, seeds = kernel.transform(X), range(6)
    assert sketch.is_sketched(kernel.factor(X), 10)
    ours = [KernelKMeans(10, kernel=kernel, random_state=s).fit(X).inertia_ for s in seeds]
    theirs = [KMeans(10, n_init=3, random_state=s).fit(Z).inertia_ for s in seeds]
    assert np.mean(ours) <= np.mean(theirs)
