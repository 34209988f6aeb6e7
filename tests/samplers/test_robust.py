"""RobustCentres: as good as the better of k-means centres and pivots."""

import numpy as np
import pytest

from gramian import RBF, Gram, KMeansCentres, RobustCentres, RPCholesky
from gramian.samplers.pivoted import pivoted_cholesky


def rows(kind, n=900):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 4))
    if kind == "far rows":
        X[:15] = 30 * rng.standard_normal((15, 4))
    elif kind == "heavy tails":
        X = rng.standard_t(2, (n, 4))
    elif kind == "ordinary":
        X = rng.standard_normal((n, 20))
    return X


def error(kernel, X, points):
    K, C = kernel(X), kernel(X, points)
    return np.linalg.norm(K - C @ np.linalg.pinv(kernel(points), 1e-12, hermitian=True) @ C.T)


def points(sampler, kernel, X, m, seed=0):
    return sampler.select(Gram(kernel, X), m, np.random.default_rng(seed)).points


@pytest.mark.parametrize(
    ("kind", "gamma", "pivots"),
    [
        ("far rows", 0.05, True),
        ("heavy tails", 0.01, True),
        ("normal", 0.03, True),  # smooth: the tails carry the error
        ("ordinary", 0.05, False),
        ("normal", 1.0, False),
        ("far rows", 1.0, False),  # most rows are as badly explained as the far ones
    ],
)
def test_its_error_is_that_of_the_better_of_the_two(kind, gamma, pivots):
    X, kernel = rows(kind), RBF(gamma)
    found = points(RobustCentres(), kernel, X, 80)
    assert np.isin(found[:, 0], X[:, 0]).all() == pivots
    errors = [
        np.median([error(kernel, X, points(sampler, kernel, X, 80, seed)) for seed in range(3)])
        for sampler in (KMeansCentres(), RPCholesky())
    ]
    assert error(kernel, X, found) < 1.5 * min(errors)


def test_where_residuals_are_even_it_has_the_centres_of_k_means():
    X, kernel = rows("ordinary"), RBF(0.05)
    found = [points(sampler, kernel, X, 40) for sampler in (RobustCentres(), KMeansCentres())]
    np.testing.assert_array_equal(*found)


def test_far_rows_are_found_among_many_others():
    X = rows("normal", 20_000)
    X[-5:] = [[60.0 + 40 * i, 0, 0, 0] for i in range(5)]
    found = points(RobustCentres(), RBF(0.01), X, 60)
    assert np.isin(X[-5:, 0], found[:, 0]).all()


def test_it_has_as_many_landmarks_as_requested_even_if_fewer_explain_all():
    X = rows("far rows", 400).astype(np.float32)
    assert len(points(RobustCentres(), RBF(1e-4), X, 100)) == 100


def test_weights_stand_for_repeated_rows(rng):
    X, counts = np.arange(6.0)[:, None] * 10, np.array([1, 1, 1, 1, 1, 20])
    gram = Gram(RBF(1.0), X)
    first = [pivoted_cholesky(gram, 1, rng, weights=counts).pivots[0] for _ in range(200)]
    assert np.mean(np.array(first) == 5) == pytest.approx(0.8, abs=0.1)
