"""Systems with a shifted matrix, by Cholesky factors or by one eigendecomposition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.backend import linalg


def matrix(n=30):
    A = np.random.default_rng(0).standard_normal((n, n))
    return A @ A.T, np.random.default_rng(1).standard_normal((n, 12))


@pytest.mark.parametrize("shifts", [[0.5], [0.5] * 12, [0.5, 2.0] * 6, np.linspace(0.1, 3.0, 12)])
def test_solutions_are_those_of_each_shift(shifts):
    A, B = matrix()
    each = np.broadcast_to(shifts, B.shape[1])
    pairs = zip(each, B.T, strict=True)
    right = [np.linalg.solve(A + shift * np.eye(len(A)), b) for shift, b in pairs]
    solve = linalg.shifted_solver(A, np.asarray(shifts))
    assert_allclose(solve(B), np.column_stack(right), rtol=1e-7)


def test_an_indefinite_matrix_counts_negative_eigenvalues_as_zero_or_is_refused():
    A, B = matrix()
    values, vectors = np.linalg.eigh(A)
    values[0] = -1.0
    A = (vectors * values) @ vectors.T
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    solve = linalg.shifted_solver(A, np.array([0.5]))
    assert_allclose(solve(B), np.linalg.solve(clipped + 0.5 * np.eye(len(A)), B), rtol=1e-7)
    with pytest.raises(linalg.NotPositiveDefiniteError):
        linalg.shifted_solver(A, np.array([0.5]), definite=True)


def test_columns_of_a_cholesky_factor_stand_for_the_matrix():
    F = np.random.default_rng(0).standard_normal((40, 7))
    Z = linalg.cholesky_columns(F @ F.T, 1e-10)
    assert Z.shape == (40, 7)
    assert_allclose(Z @ Z.T, F @ F.T, atol=1e-9)
