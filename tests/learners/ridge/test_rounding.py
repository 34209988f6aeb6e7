"""What a change of features does to solutions, against the dense form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.backend import array_ops
from gramian.learners.ridge.factored import shifted_norms
from gramian.learners.ridge.rounding import _change


def features(n=120, r=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, r)) * 0.7 ** np.arange(r)


def dense_change(Z, rounded, alpha):
    """The largest eigenvalue of (K + alpha I)^-½ E (K + alpha I)^-½."""
    K = Z @ Z.T
    values, V = np.linalg.eigh(K + alpha * np.eye(len(K)))
    root = (V / np.sqrt(values)) @ V.T
    return np.abs(np.linalg.eigvalsh(root @ (rounded @ rounded.T - K) @ root)).max()


@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_change_of_solutions(alpha):
    Z = features()
    rounded = Z + 1e-5 * np.random.default_rng(1).standard_normal(Z.shape)
    expected = dense_change(Z, rounded, alpha)
    assert 0.3 * expected < _change(Z, rounded, alpha) < 3 * expected
    # It bounds what a solution changes, in the norm of K + alpha I.
    y, A = np.sin(np.arange(len(Z))), Z @ Z.T + alpha * np.eye(len(Z))
    exact = np.linalg.solve(A, y)
    other = np.linalg.solve(rounded @ rounded.T + alpha * np.eye(len(Z)), y)
    left = other - exact
    assert left @ A @ left <= (1.01 * expected / (1 - expected)) ** 2 * (exact @ A @ exact)


def test_noise_beside_a_large_direction_hardly_counts():
    Z = features()
    Z[:, 0] = 1e3  # all rows are alike
    rounded = Z.copy()
    rounded[:, 0] += 1e-6 * np.random.default_rng(1).standard_normal(len(Z))
    E = rounded @ rounded.T - Z @ Z.T
    assert np.linalg.norm(E, 2) > 1e-2
    assert _change(Z, rounded, 1e-2) < 1e-3
    assert dense_change(Z, rounded, 1e-2) < 1e-3
    # The same of features that are a product.
    P = np.triu(np.random.default_rng(2).standard_normal((40, 40))) + 4 * np.eye(40)
    product = np.linalg.solve(P.T, rounded.T).T
    assert_allclose(_change(Z, product, 1e-2, P), _change(Z, product @ P, 1e-2), rtol=1e-3)


def test_norms_of_half_solved_rows():
    Z = features()
    A, rows = Z.T @ Z, features(7, seed=3)
    expected = np.diagonal(rows @ np.linalg.solve(A + 0.1 * np.eye(40), rows.T))
    assert_allclose(shifted_norms(A, 0.1, rows), expected, rtol=1e-10)
    # Rounding may leave a negative eigenvalue, which counts as 0.
    broken = A - 1e-3 * np.eye(40)
    assert np.isfinite(shifted_norms(broken, 1e-5, rows)).all()


@pytest.mark.parametrize("columns", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [3, 700])
def test_transposed_products_in_slabs(rows, columns):
    rng = np.random.default_rng(0)
    a, b = rng.random((rows, 900)), rng.random((rows, columns))
    assert_allclose(array_ops.transposed_matmul(a, b), a.T @ b)
    single = array_ops.transposed_matmul(a.astype("float32"), b.astype("float32"))
    assert single.dtype == np.float32
