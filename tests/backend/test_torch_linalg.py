"""Torch's twin of the linear algebra of LAPACK."""

import numpy as np
import pytest
from on_device import DEVICE, assert_close, assert_equal, host, tensor, torch

from gramian import RBF
from gramian.backend import linalg, torch_linalg


@pytest.fixture
def matrix(rng):
    return RBF(0.1)(rng.normal(size=(60, 3)))


@pytest.mark.parametrize("panel", [7, 256])
@pytest.mark.parametrize("tol", [1e-12, 1e-3, 0.5])
def test_pivots_in_panels(matrix, tol, panel, monkeypatch):
    """A factor of the chosen rows that leaves at most tol, of hardly more rows than LAPACK's."""
    monkeypatch.setattr(torch_linalg, "PANEL", panel)
    lower, chosen = torch_linalg.searched_pivots(tensor(matrix), tol)
    lower, best = host(lower), linalg.pivoted_cholesky(matrix, tol)[1]
    assert len(set(chosen)) == len(chosen) <= len(best) + 1
    assert_close(lower @ lower.T, matrix[np.ix_(chosen, chosen)], atol=1e-14)
    assert_equal(lower, np.tril(lower))
    assert (np.diagonal(lower) ** 2 > tol).all()
    explained = np.linalg.solve(lower, matrix[chosen])
    left = np.diagonal(matrix) - (explained**2).sum(axis=0)
    assert np.delete(left, chosen).max(initial=0.0) <= tol


def test_pivots_of_repeated_rows(rng):
    """Large residuals come first, and a repeated row never has two pivots."""
    X = rng.normal(size=(300, 2))
    K = RBF(5.0)(np.concatenate((X, X)))
    _, chosen = torch_linalg.searched_pivots(tensor(K), 1e-10)
    assert len(set(chosen % 300)) == len(chosen)
    scaled = K * np.outer(*[np.linspace(1.0, 10.0, len(K))] * 2)
    lower, chosen = torch_linalg.searched_pivots(tensor(scaled), 1e-8)
    assert (np.diagonal(host(lower)) ** 2)[0] == pytest.approx(scaled.max())


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
