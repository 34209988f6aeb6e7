"""ZᵀWZ and ZᵀWV of features Z = C P, with P multiplied with every row or only once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian import RBF, Nystroem
from gramian.learners.ridge.rounding import sums_allow
from gramian.matrices.factors import unprojected
from gramian.matrices.normal_equations import inner_products, late_rounding


def factors_of(gamma, dtype="float32", n=700, m=60):
    rng = np.random.default_rng(0)
    X = rng.random((n, 4)).astype(dtype)
    return Nystroem(RBF(gamma), m, landmarks="uniform", random_state=0).fit(X).factor(X)


def by_rows(factors, weights=None):
    """The same from C P in float64."""
    C, P = unprojected(factors)
    Z = C.parts.values().astype(np.float64) @ P
    return Z.T @ (Z if weights is None else weights[:, None] * Z), Z


def norm(A):
    return np.abs(np.linalg.eigvalsh(A)).max()


@pytest.mark.parametrize("weighted", [False, True])
def test_late_is_the_same(weighted):
    factors, rng = factors_of(3.0), np.random.default_rng(1)
    V, weights = rng.random((700, 2)), rng.random(700) if weighted else None
    expected, Z = by_rows(factors, weights)
    ((inner, right),) = inner_products(factors, V, weights, late=True, ones=True)
    assert inner.dtype == right.dtype == np.float64
    assert_allclose(inner, expected, atol=1e-7 * norm(expected))
    turned = Z.T if weights is None else Z.T * weights
    assert_allclose(right, turned @ np.column_stack((V, np.ones(700))), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("gamma", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_is_no_more_than_estimated(gamma, dtype):
    factors = factors_of(gamma, dtype)
    expected = by_rows(factors)[0]
    late = inner_products(factors, late=True)[0][0]
    rounding = late_rounding(factors, np.arange(50), 700.0)
    assert norm(late - expected) < rounding


def test_late_rounds_far_less_than_float32_features():
    factors = factors_of(0.3)
    expected = by_rows(factors)[0]
    late, single = (inner_products(factors, late=late)[0][0] for late in (True, False))
    assert 100 * norm(late - expected) < norm(single - expected)


def test_alpha_and_dtype_decide():
    smooth, rough = factors_of(0.3), factors_of(30.0)
    assert sums_allow(smooth, 1.0, None)
    assert not sums_allow(smooth, 1e-7, None)
    assert not sums_allow(smooth, 1.0, np.full(700, 1e7))
    assert sums_allow(rough, 1e-7, None)
    assert sums_allow(rough, None, None)
    assert sums_allow(factors_of(30.0, "float64"), 1.0, None)
    assert not sums_allow(factors_of(3.0, "float64"), 1e-3, None)  # as exact as float64
