"""Few rows that stand for many."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gramian.learners.losses.thinning import thinned


def test_few_rows_are_all_taken():
    numbers, weights = thinned(np.array([0.0, 2.0, 1e-15, 0.5]), 3)
    assert_array_equal(numbers, [1, 3])
    assert_array_equal(weights, [2.0, 0.5])


def test_rows_without_weight_are_none():
    numbers, weights = thinned(np.zeros(5), 2)
    assert numbers.shape == weights.shape == (0,)


def test_large_weights_stay_and_the_others_share_the_rest(rng):
    weights = 0.1 * rng.random(1000)
    weights[:3] = 50.0, 20.0, 30.0
    numbers, found = thinned(weights, 100)
    assert_array_equal(numbers[:3], [0, 1, 2])
    assert_array_equal(found[:3], weights[:3])
    assert len(np.unique(found[3:])) == 1  # rows that were drawn count alike
    assert len(numbers) == pytest.approx(100, abs=1)
    assert_allclose(found.sum(), weights.sum(), atol=found[3])


def test_sums_over_the_rows_have_no_bias(rng):
    weights, values = rng.random(300) ** 4, rng.standard_normal(300)
    found = []
    for _ in range(400):
        order = rng.permutation(300)
        numbers, w = thinned(weights[order], 60)
        found.append(w @ values[order][numbers])
    error = np.std(found) / 20
    assert abs(np.mean(found) - weights @ values) < 4 * error
