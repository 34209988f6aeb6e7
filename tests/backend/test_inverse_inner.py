"""The inverse of PᵀP, for triangles and other matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.backend import linalg


@pytest.mark.parametrize("kind", ["triangle", "square", "tall", "lower triangle"])
def test_the_inverse_of_the_inner_products(kind, rng):
    P = rng.standard_normal((30 if kind == "tall" else 20, 20))
    P = P + 20 * np.eye(len(P), 20)
    P = {"triangle": np.triu, "lower triangle": np.tril}.get(kind, np.asarray)(P)
    assert_allclose(linalg.inverse_inner(P) @ (P.T @ P), np.eye(20), atol=1e-8)
