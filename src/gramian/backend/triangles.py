"""Cholesky factors of several matrices: by LAPACK one after another, all together on a device."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array

LEAF = 256  # rows of the parts that a library decomposes; matrix products do the rest


class Triangles:
    """The lower triangles L of positive definite matrices A = L Lᵀ.

    On the CPU, LAPACK decomposes one matrix at a time. On a device that would leave most of it
    idle: there, all matrices are decomposed together, half by half, so that nearly all work is in
    products of stacked matrices.

    Parameters
    ----------
    A : array of shape (matrices, n, n)
        It is overwritten.
    """

    def __init__(self, A: Array) -> None:
        self._several = array_ops.is_foreign(A) and A.shape[0] > 1
        if self._several:
            _decompose(A)
            if not array_ops.all_finite(array_ops.namespace(A).linalg.diagonal(A)):
                raise linalg.NotPositiveDefiniteError("a matrix has no Cholesky factor")
            self._all = A
        else:
            self._each = [linalg.lower_factor(A[i, ...]) for i in range(A.shape[0])]

    def halfway(self, B: Array) -> Array:
        """Return L⁻¹ B for B of shape (matrices, n, k)."""
        if self._several:
            return _forward(self._all, B)
        return self._stacked([linalg.solve_lower(L, b) for L, b in self._with(B)])

    def solve(self, B: Array) -> Array:
        """Return A⁻¹ B for B of shape (matrices, n, k)."""
        half = self.halfway(B)
        if self._several:
            return _backward(self._all, half)
        pairs = self._with(half)
        return self._stacked([linalg.solve_lower(L, b, transposed=True) for L, b in pairs])

    def inverse_diagonal(self) -> Array:
        """Return the diagonals of A⁻¹, of shape (matrices, n); L may be overwritten."""
        if self._several:
            xp, (count, n, _) = array_ops.namespace(self._all), self._all.shape
            eye = array_ops.like(np.eye(n), self._all, self._all.dtype)
            inverse = _forward(self._all, xp.broadcast_to(eye, (count, n, n)))
            return xp.sum(inverse**2, axis=1)
        return self._stacked([linalg.diagonal_of_inverse(L) for L in self._each])

    def _with(self, B: Array) -> list[tuple[Array, Array]]:
        return [(L, B[i, ...]) for i, L in enumerate(self._each)]

    def _stacked(self, parts: list[Array]) -> Array:
        one = len(parts) == 1
        return parts[0][None, ...] if one else array_ops.namespace(parts[0]).stack(parts)


def _halves(n: int) -> int:
    """Where a triangle is divided: at a multiple of the leaves."""
    return (n + LEAF - 1) // LEAF // 2 * LEAF


def _decompose(A: Array) -> None:
    """Replace the lower triangles of stacked matrices by their factors; NaN where there is none."""
    n, xp = A.shape[-1], array_ops.namespace(A)
    if n <= LEAF:
        A[...] = linalg.lower_leaves(A)
        return
    half = _halves(n)
    first, below, last = A[:, :half, :half], A[:, half:, :half], A[:, half:, half:]
    _decompose(first)
    below[...] = xp.matrix_transpose(_forward(first, xp.matrix_transpose(below)))
    last -= below @ xp.matrix_transpose(below)
    _decompose(last)


def _forward(L: Array, B: Array) -> Array:
    """L⁻¹ B for stacked triangles; what is above their diagonal is not used."""
    n, xp = L.shape[-1], array_ops.namespace(L)
    if n <= LEAF:
        return linalg.solve_lower(L, B)
    half = _halves(n)
    top = _forward(L[:, :half, :half], B[:, :half, :])
    bottom = _forward(L[:, half:, half:], B[:, half:, :] - L[:, half:, :half] @ top)
    return xp.concat((top, bottom), axis=1)


def _backward(L: Array, B: Array) -> Array:
    """L⁻ᵀ B for stacked triangles."""
    n, xp = L.shape[-1], array_ops.namespace(L)
    if n <= LEAF:
        return linalg.solve_lower(L, B, transposed=True)
    half = _halves(n)
    bottom = _backward(L[:, half:, half:], B[:, half:, :])
    above = B[:, :half, :] - xp.matrix_transpose(L[:, half:, :half]) @ bottom
    return xp.concat((_backward(L[:, :half, :half], above), bottom), axis=1)
