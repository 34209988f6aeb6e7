"""Torch's twin of the linear algebra of LAPACK."""

import numpy as np
import pytest
from on_device import DEVICE, assert_close, assert_equal, tensor, torch

from gramian import RBF
from gramian.backend import linalg, torch_linalg


@pytest.fixture
def matrix(rng):
    return RBF(0.1)(rng.normal(size=(60, 3)))


@pytest.mark.parametrize("tol", [1e-12, 1e-3, 0.5])
def test_the_same_pivots_as_lapack(matrix, tol, monkeypatch):
    monkeypatch.setattr(torch_linalg, "PANEL", 7)
    lower, kept = linalg.pivoted_cholesky(matrix, tol)
    found, numbers = torch_linalg.searched_pivots(tensor(matrix), tol)
    assert_equal(numbers, kept)
    assert_close(found, lower, atol=1e-8)


def test_pivots_are_searched_only_where_the_rank_falls(matrix):
    _, kept = torch_linalg.pivoted_cholesky(tensor(matrix), 1e-3)
    assert len(kept) < len(matrix)
    definite = matrix + np.eye(len(matrix))
    lower, kept = torch_linalg.pivoted_cholesky(tensor(definite), 1e-3)
    assert_equal(kept, np.arange(len(matrix)))
    assert_close(lower @ lower.T, definite)
    everything, order = torch_linalg.searched_pivots(tensor(definite), 1e-3)
    assert_close(everything @ everything.T, definite[np.ix_(order, order)])


@pytest.mark.parametrize("shifts", [[0.5] * 3, [0.5, 0.1, 0.5]])
def test_inverses_of_shifted_matrices(matrix, shifts, rng):
    shifts, B = np.array(shifts), rng.normal(size=(len(matrix), 3))
    found = torch_linalg.shifted_inverse(tensor(matrix), shifts)(tensor(B))
    assert_close(found, linalg.shifted_solver(matrix, shifts)(B), rtol=1e-8)
    assert torch_linalg.shifted_inverse(tensor(-matrix), shifts) is None


def test_nothing_is_left_of_a_matrix_of_zeros():
    lower, kept = torch_linalg.pivoted_cholesky(
        torch.zeros((3, 3), dtype=torch.float64, device=DEVICE), 0.0
    )
    assert lower.shape == (0, 0)
    assert len(kept) == 0


def test_shifted_solver(matrix, rng):
    shifts, B = np.array([0.1, 2.0, 0.1]), rng.normal(size=(60, 3))
    solve = torch_linalg.shifted_solver(tensor(matrix), shifts)
    assert_close(solve(B), linalg.shifted_solver(matrix, shifts)(B))
    assert torch_linalg.shifted_solver(tensor(-matrix), np.array([1e-3])) is None


def test_inverses(rng):
    lower = np.tril(rng.normal(size=(9, 9))) + 9 * np.eye(9)
    P = rng.normal(size=(20, 9))
    for function, argument in (("inverse_triangle", lower), ("inverse_inner", P)):
        own, host = getattr(torch_linalg, function), getattr(linalg, function)
        assert_close(own(tensor(argument)), host(argument), atol=1e-12)
    assert_close(linalg.inverse_inner(P), np.linalg.inv(P.T @ P), rtol=1e-8)
