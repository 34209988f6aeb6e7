"""k-means++ landmarks, drawn in blocks, against the law of drawing one after the other."""

from itertools import permutations

import numpy as np
import pytest

from gramian import RBF, Gram, KMeansPlusPlus


def law(K, m):
    """The probability of each ordered choice of m rows."""
    D = np.diag(K)[:, None] + np.diag(K) - 2 * K
    found = {}
    for order in permutations(range(len(K)), m):
        p = 1 / len(K)
        for i in range(1, m):
            closest = D[:, list(order[:i])].min(axis=1)
            p *= closest[order[i]] / closest.sum()
        found[order] = p
    return found


@pytest.mark.slow
def test_blocks_follow_the_law_of_single_draws():
    X = np.array([[0.0], [0.3], [2.5], [2.6]])
    gram, rng = Gram(RBF(0.5), X), np.random.default_rng(0)
    expected, times = law(np.array(gram.dense()), 3), 600
    counts = dict.fromkeys(expected, 0)
    for _ in range(times):
        counts[tuple(KMeansPlusPlus().select(gram, 3, rng).indices.tolist())] += 1
    far = sum((counts[o] - times * p) ** 2 / (times * p) for o, p in expected.items())
    assert far < 49.7  # a chi-square of 23 degrees of freedom is above it once in a thousand


def test_a_column_for_each_landmark_and_small_blocks():
    X = np.random.default_rng(0).standard_normal((400, 3))
    gram = Gram(RBF(0.5), X)
    assert len(KMeansPlusPlus().select(gram, 60, np.random.default_rng(0))) == 60
    assert gram.evaluations < 400 * 62 + 60 * 4 * 15


def test_it_ends_where_all_rows_coincide_with_one_of_them():
    X = np.repeat(np.arange(3.0)[:, None], 5, axis=0)
    found = KMeansPlusPlus().select(Gram(RBF(1.0), X), 10, np.random.default_rng(0))
    assert sorted(found.points.ravel().tolist()) == [0.0, 1.0, 2.0]
