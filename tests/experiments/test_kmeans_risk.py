"""The parts of the experiments on the risk of k-means, against brute force."""

import numpy as np
import pytest

from gramian.experiments import reference
from gramian.experiments.kmeans_risk import cost, margin, partitions


@pytest.mark.parametrize(("k", "count"), [(2, 511), (3, 9330)])  # Stirling numbers
def test_all_partitions_are_there_once(k, count):
    found = {tuple(labels) for labels in partitions(k)}
    assert len(found) == len(partitions(k)) == count
    assert all(len(set(labels)) == k for labels in found)


def test_margin_and_cost_are_those_of_points():
    rng = np.random.default_rng(0)
    own = np.repeat([0, 1, 2], 5)
    X = np.array([[0.0, 0], [9, 0], [0, 9]])[own] + rng.uniform(-1, 1, (15, 2))
    K, centres = X @ X.T, reference.means(X, own)
    least = np.inf
    for x, i in zip(X, own, strict=True):
        for j in {0, 1, 2} - {i}:
            across = (centres[j] - centres[i]) / np.linalg.norm(centres[j] - centres[i])
            least = min(least, ((centres[i] + centres[j]) / 2 - x) @ across)
    assert margin(K, own) == pytest.approx(least / 2)
    A = rng.standard_normal((15, 2))
    assert cost(K, A) == pytest.approx(reference.objective(X, A.T @ X))
