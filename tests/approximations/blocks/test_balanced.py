"""Blocks of similar size: no row is lost, no block is much larger than the mean."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gramian import BKA, MEKA, RBF, Gram
from gramian.approximations.blocks.balanced import (
    LEAST_SHARE,
    _halves,
    balanced_centres,
    halved,
)
from gramian.approximations.blocks.partition import largest_size, split
from gramian.testing.examples import example_rows


def labels_of(X, count, seed=0):
    found = split(Gram(RBF(0.1), X), "balanced", count, np.random.default_rng(seed))
    return np.asarray(found.labels), np.asarray(found.centres)


def uneven(n, rng):
    """Nine tenths of the rows in one narrow cloud."""
    X = rng.standard_normal((n, 3))
    X[: 9 * n // 10] *= 0.01
    return X


@pytest.mark.parametrize("count", [2, 3, 10, 40])
def test_sizes_are_within_the_bound(rng, count):
    labels, centres = labels_of(uneven(2000, rng), count)
    sizes = np.bincount(labels)
    assert 0.9 * count <= len(sizes) == len(centres) <= 2 * count + 1
    assert sizes.min() >= 1
    assert sizes.max() <= largest_size(2000, count)


@given(n=st.integers(2, 200), count=st.integers(1, 20), seed=st.integers(0, 5))
def test_each_row_is_in_one_block_that_has_rows(n, count, seed):
    X = np.random.default_rng(seed).standard_normal((n, 2))
    count = min(n, count)
    labels, centres = labels_of(X, count, seed)
    assert labels.shape == (n,)
    assert (np.unique(labels) == np.arange(len(centres))).all()


def test_a_row_is_in_the_block_of_the_nearest_centre(rng):
    X = rng.standard_normal((500, 3))
    labels, centres = labels_of(X, 12)
    assert (labels == ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)).all()


def test_one_block(rng):
    labels, centres = labels_of(rng.standard_normal((50, 2)), 1)
    assert not labels.any()
    assert centres.shape == (1, 2)


def test_as_many_blocks_as_rows(rng):
    X = rng.standard_normal((20, 2))
    labels, centres = labels_of(X, 20)
    assert sorted(labels) == list(range(20))
    assert_allclose(centres[labels], X)


@pytest.mark.parametrize("count", [1, 5])
def test_equal_rows_are_one_block(count):
    labels, centres = labels_of(np.ones((60, 3)), count)
    assert not labels.any()
    assert_allclose(centres, np.ones((1, 3)))


def test_many_equal_rows_among_others(rng):
    X = np.concatenate((np.zeros((300, 2)), rng.standard_normal((300, 2)) + 5))
    labels, _ = labels_of(X, 6)
    assert len(np.unique(labels[:300])) == 1
    assert np.bincount(labels[300:]).max() <= largest_size(600, 6)


def test_sparse_and_single_precision_rows_get_the_same_blocks():
    X = example_rows(300)
    labels, _ = labels_of(X, 7)
    assert (labels_of(scipy.sparse.csr_array(X), 7)[0] == labels).all()
    assert (labels_of(X.astype(np.float32), 7)[0] == labels).all()


def test_equal_seeds_give_equal_blocks(rng):
    X = rng.standard_normal((400, 3))
    assert (labels_of(X, 9, seed=3)[0] == labels_of(X, 9, seed=3)[0]).all()


def test_blocks_are_compact(rng):
    """Three clouds of equal size are three blocks."""
    X = example_rows(300)
    labels, _ = labels_of(X, 3)
    assert all(len(np.unique(labels[cloud::3])) == 1 for cloud in range(3))
    assert (np.bincount(labels) == 100).all()


def test_halves_keep_their_least_share(rng):
    x = rng.standard_normal((1000, 2))
    x[0] = 1e3  # a single row far away
    right = _halves(x, rng)
    assert LEAST_SHARE - 0.01 <= right.mean() <= 1 - LEAST_SHARE + 0.01
    assert _halves(np.zeros((9, 2)), rng).sum() == 5


def test_halved_centres_have_half_of_the_rows_each(rng):
    x = uneven(1001, rng)
    squared = ((x[:, None] - halved(x, rng)) ** 2).sum(axis=2)
    assert 450 <= (squared[:, 0] < squared[:, 1]).sum() <= 550
    assert_allclose(halved(np.ones((4, 2)), rng), np.ones((2, 2)))


def test_centres_of_more_blocks_than_one_row_each_can_fill():
    assert balanced_centres(np.zeros((3, 2)), 3, np.random.default_rng(0)).shape == (3, 2)


@pytest.mark.parametrize("cls", [BKA, MEKA])
def test_block_approximations_take_it(cls, rng):
    X = uneven(600, rng)
    fitted = cls(RBF(0.5), 60, n_blocks=6, partition="balanced", random_state=0).fit(X)
    assert np.bincount(fitted.labels_).max() <= largest_size(600, 6)
    assert_allclose(fitted(X), fitted(X.copy()), atol=1e-10)
