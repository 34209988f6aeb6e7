"""Rows that share a huge number, such as a code for a missing value, keep their kernel values."""

import numpy as np
import pytest
import scipy.sparse

from gramian import RBF, Cauchy, Exponential


def coded(code):
    X = np.random.default_rng(0).standard_normal((60, 4))
    X[::3, 3] = code
    return X


def exact(kernel, X):
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    if isinstance(kernel, RBF):
        return np.exp(-0.5 * squared)
    return 1 / (1 + 0.5 * squared) if isinstance(kernel, Cauchy) else np.exp(-0.5 * squared**0.5)


@pytest.mark.parametrize("code", [1e6, 9999999.0, 1e9, 1e200])
@pytest.mark.parametrize("kernel", [RBF(0.5), Cauchy(0.5), Exponential(0.5)])
def test_float64(kernel, code):
    X = coded(code)
    with np.errstate(over="ignore"):
        expected = exact(kernel, X)
    np.testing.assert_allclose(kernel(X), expected, atol=1e-9)
    np.testing.assert_allclose(kernel(X, X.copy()), expected, atol=1e-9)


@pytest.mark.parametrize("code", [1e6, 9999999.0, 1e9])
def test_float32(code):
    X = coded(code).astype(np.float32)
    np.testing.assert_allclose(RBF(0.5)(X), exact(RBF(0.5), X.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("sides", [(0, 0), (0, 1), (1, 0)])
def test_sparse(sides):
    X = coded(9999999.0)
    left, right = (X if dense else scipy.sparse.csr_array(X) for dense in sides)
    np.testing.assert_allclose(RBF(0.5)(left, right), exact(RBF(0.5), X), atol=1e-9)
