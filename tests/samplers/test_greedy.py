"""Greedy pivots in blocks are those of one column after the other."""

import numpy as np
import pytest

from gramian import RBF, Gram, Greedy, Polynomial
from gramian.samplers import pivoted


def one_by_one(K, m):
    """Incomplete Cholesky on the dense matrix: each pivot has the largest residual diagonal."""
    left, pivots = K.astype(float), []
    for _ in range(m):
        pivots.append(int(np.argmax(left.diagonal())))
        column = left[:, pivots[-1]] / np.sqrt(left[pivots[-1], pivots[-1]])
        left -= np.outer(column, column)
        left[pivots[-1], pivots[-1]] = -1.0
    return pivots


@pytest.mark.parametrize("gamma", [0.02, 0.2, 5.0])
@pytest.mark.parametrize("d", [2, 8])
@pytest.mark.parametrize("outliers", [0, 12])
def test_pivots_are_those_of_one_column_after_the_other(monkeypatch, gamma, d, outliers):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((700, d))
    X[:outliers] *= 20
    gram = Gram(RBF(gamma), X)
    blocks = []
    extend = pivoted.Pivoted.extend
    monkeypatch.setattr(
        pivoted.Pivoted, "extend", lambda self, *new: blocks.append(new) or extend(self, *new)
    )
    found = Greedy().select(gram, 20, rng).indices
    assert len(found) == 20
    assert found.tolist() == one_by_one(np.array(Gram(RBF(gamma), X).dense()), 20)
    assert gram.evaluations <= Greedy().most_evaluations(700, 20)
    assert len(blocks) < 20


def test_unequal_diagonals_and_equal_rows():
    X = np.repeat(np.random.default_rng(0).standard_normal((90, 3)), 3, axis=0)
    K = np.array(Gram(Polynomial(gamma=0.3), X).dense())
    found = Greedy().select(Gram(Polynomial(gamma=0.3), X), 8, np.random.default_rng(0)).indices
    assert (X[found] == X[one_by_one(K, 8)]).all()  # rounding tells equal rows apart


def test_every_row_can_become_a_pivot():
    X = np.random.default_rng(0).standard_normal((40, 3))
    found = Greedy().select(Gram(RBF(5.0), X), 40, np.random.default_rng(0)).indices
    assert sorted(found.tolist()) == list(range(40))


def test_the_largest_rows_come_in_the_order_of_argmax():
    rng = np.random.default_rng(0)
    for n in range(1, 40):
        worth = rng.integers(-1, 5, size=n).astype(float)  # many equal ones
        expected = np.argsort(-worth, kind="stable")
        for count in range(1, n + 3):
            np.testing.assert_array_equal(
                pivoted.worst_first(worth, count)[:count], expected[:count]
            )
