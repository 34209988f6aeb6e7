"""Triangular products and inverse factors in place, without Python's lock."""

import numpy as np
import pytest

from gramian import RBF, Nystroem
from gramian.backend import blas


@pytest.fixture(params=["by address", "by SciPy's wrappers"])
def found(request, monkeypatch):
    """Whether SciPy's functions are found by their addresses."""
    if request.param != "by address":
        monkeypatch.setattr(blas, "_function", lambda *_: None)
    return request.param == "by address"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "width"), [(7, 5, 5), (1, 1, 1), (40, 30, 33), (0, 3, 3)])
def test_products_with_a_triangle(n, m, width, dtype, rng):
    """In rows that may lie apart; what is below the diagonal is not read, nor are other columns."""
    P = np.triu(rng.standard_normal((m, m))).astype(dtype)
    whole = rng.standard_normal((n, width)).astype(dtype)
    values = whole[:, :m]
    expected, others = values @ P, whole[:, m:].copy()
    P[np.tril_indices(m, -1)] = np.nan
    assert blas.multiply_triangle(values, P)
    np.testing.assert_allclose(values, expected, atol=1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(whole[:, m:], others)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.ones((4, 3), np.float32), np.float64),
        (np.ones((3, 4)).T, np.float64),
        (np.ones((4, 6))[:, ::2], np.float64),
        (np.ones((4, 3), np.float16), np.float16),
    ],
)
def test_what_it_cannot_multiply_is_left_alone(values, dtype):
    before = values.copy()
    assert not blas.multiply_triangle(values, np.eye(3, dtype=dtype) * 2)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 64, 65, 150])
def test_the_inverse_of_a_factor(found, n, dtype, rng):
    A = rng.standard_normal((n, n + 20))
    A = A @ A.T + n * np.eye(n)
    M = A.astype(dtype)
    assert blas.invert_factor(M)
    expected = np.linalg.inv(np.linalg.cholesky(A))
    np.testing.assert_allclose(M, expected, atol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("at", [0, 30, 69])
def test_a_matrix_that_is_not_positive_definite_has_none(found, at, rng):
    M = np.eye(70)
    M[at, at] = -1.0
    assert not blas.invert_factor(M)


def test_a_function_with_other_arguments_is_not_called():
    assert blas._function("cython_blas", "f", "trmm", "ccccii" + "xxixi") is not None
    assert blas._function("cython_blas", "f", "trmm", "ccccii" + "xixxi") is None
    assert blas._function("cython_blas", "f", "no such function", "c") is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_the_same_with_and_without_it(dtype, rng, monkeypatch):
    X = rng.standard_normal((500, 4)).astype(dtype)
    model = Nystroem(RBF(0.3), 150, landmarks="uniform", random_state=0).fit(X)
    Z = model.transform(X)
    assert model._projected._triangle is not None
    monkeypatch.setattr(blas, "multiply_triangle", lambda *_: False)
    np.testing.assert_allclose(Z, model.transform(X), atol=1e-4 if dtype == np.float32 else 1e-10)
