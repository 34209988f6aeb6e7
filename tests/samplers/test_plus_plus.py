"""k-means++ landmarks, drawn in blocks, against the law of drawing one after the other."""

from itertools import permutations

import numpy as np
import pytest

from gramian import RBF, ArrayRows, Factors, Gram, KMeansPlusPlus
from gramian.samplers import plus_plus as seeding
from gramian.samplers.plus_plus import Nearest, Whole, plus_plus


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


class TestFirstCentres:
    """Greedy k-means++ for k-means, on all rows and from pools."""

    @pytest.fixture(name="Z")
    def points(self):
        rng = np.random.default_rng(0)
        return (
            rng.standard_normal((3000, 5)) + 6 * rng.standard_normal((40, 5))[np.arange(3000) % 40]
        )

    @pytest.fixture
    def pools(self, monkeypatch):
        monkeypatch.setattr(seeding, "POOL", 256)
        monkeypatch.setattr(seeding, "SAVING", 1)

    @staticmethod
    def squared(Z, rows):
        return ((Z[:, None, :] - Z[rows]) ** 2).sum(axis=2)

    def cost(self, Z, k, weights=1.0, seeds=range(4)):
        factors = Factors(ArrayRows(Z))
        weights = np.full(len(Z), 1.0) * weights
        found = [plus_plus(factors, k, np.random.default_rng(s), weights=weights) for s in seeds]
        assert {len(set(rows.tolist())) for rows in found} == {k}
        return np.mean([weights @ self.squared(Z, rows).min(axis=1) for rows in found])

    def test_distances_and_the_best_candidate(self, Z):
        factors, rows = Factors(ArrayRows(Z)), np.arange(40)
        nearest = Nearest(factors)
        nearest.add(rows)
        expected = self.squared(Z, rows).min(axis=1)
        assert np.allclose(nearest.squared, expected, atol=1e-10)
        others = np.arange(50, 70)
        less = np.maximum(expected[:, None] - self.squared(Z, others), 0)
        best = nearest.add_best(others)
        assert best == less.sum(axis=0).argmax()
        assert np.allclose(nearest.squared, expected - less[:, best], atol=1e-10)

    def test_draws_are_those_of_numpy(self, Z):
        weights = np.arange(3000.0) % 3
        nearest = Nearest(Factors(ArrayRows(Z)), weights)
        nearest.add(np.arange(5))
        mass = weights * nearest.squared
        expected = np.random.default_rng(1).choice(3000, size=50, p=mass / mass.sum())
        assert (nearest.drawn(np.random.default_rng(1), 50) == expected).all()

    def test_pools_are_as_good_as_all_rows(self, Z, pools, monkeypatch):
        pooled = self.cost(Z, 60)
        monkeypatch.setattr(seeding, "_pays", lambda *sizes: False)
        assert pooled < 1.05 * self.cost(Z, 60)

    def test_few_rows_of_many_clusters_are_all_tried(self, monkeypatch):
        # A pool would have three rows for each cluster, and its choice would hardly be greedy.
        Z = np.random.default_rng(0).standard_normal((7500, 6))
        cost = self.cost(Z, 300, seeds=range(2))
        monkeypatch.setattr(seeding, "_pays", lambda *sizes: False)
        assert cost < 1.005 * self.cost(Z, 300, seeds=range(2))

    def test_pools_regard_weights(self, Z, pools, monkeypatch):
        weights = np.where(np.arange(3000) % 40 < 8, 1.0, 1e-9)
        pooled = self.cost(Z, 60, weights)
        assert pooled < 0.7 * 600 / 3000 * self.cost(Z, 60)
        monkeypatch.setattr(seeding, "_pays", lambda *sizes: False)
        assert pooled < 1.05 * self.cost(Z, 60, weights)

    def test_few_products_with_all_rows(self, Z, pools):
        gram = Gram(RBF(0.01), Z)
        plus_plus(gram, 100, np.random.default_rng(0))
        assert gram.evaluations < 3000 * (100 + 50) + 60 * 256**2

    def test_pools_end_where_all_rows_coincide(self, pools):
        X = np.repeat(np.arange(20.0)[:, None], 200, axis=0)
        found = plus_plus(Gram(RBF(1.0), X), 64, np.random.default_rng(0))
        assert sorted(X[found, 0]) == list(range(20))

    def test_torch_selects_the_same_rows(self, Z, pools):
        torch = pytest.importorskip("torch")
        found = [
            plus_plus(Factors(ArrayRows(values)), 60, np.random.default_rng(0))
            for values in (Z, torch.asarray(Z))
        ]
        assert (found[0] == found[1]).all()


def test_the_whole_matrix_gives_the_draws_of_its_columns():
    X = np.random.default_rng(0).standard_normal((60, 3))
    factors = Factors(ArrayRows(X))
    drawn = [plus_plus(m, 9, np.random.default_rng(1)) for m in (factors, Whole(factors, 60))]
    np.testing.assert_array_equal(*drawn)
    i, j = np.array([3, 50]), np.array([7, 8, 2])
    np.testing.assert_allclose(Whole(factors, 60).block(i, j), factors.block(i, j))
