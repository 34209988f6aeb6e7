"""Cholesky factors of stacked matrices, against NumPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.backend.linalg import NotPositiveDefiniteError
from gramian.backend.triangles import Triangles

LIBRARIES = ["numpy", "torch"]


@pytest.fixture(params=[1, 3], name="A")
def matrices(request, rng):
    F = rng.standard_normal((request.param, 23, 30))
    return F @ F.transpose(0, 2, 1)


def of(library, array):
    return np.array(array) if library == "numpy" else pytest.importorskip(library).asarray(array)


@pytest.mark.parametrize("library", LIBRARIES)
def test_solutions_and_diagonals_are_those_of_inverses(A, library, rng):
    B, inverse = rng.standard_normal((len(A), 23, 2)), np.linalg.inv(A)
    found = Triangles(of(library, A))
    assert_allclose(found.solve(of(library, B)), inverse @ B, rtol=1e-9)
    half = np.asarray(found.halfway(of(library, B)))
    assert_allclose((half**2).sum(axis=1), np.einsum("bik,bij,bjk->bk", B, inverse, B))
    assert_allclose(found.inverse_diagonal(), np.diagonal(inverse, axis1=1, axis2=2))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("where", [2, 21])
def test_a_matrix_that_is_not_positive_definite_is_an_error(A, library, where):
    A[-1, where, where] = -1.0
    with pytest.raises(NotPositiveDefiniteError):
        Triangles(of(library, A))
