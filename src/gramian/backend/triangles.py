"""Cholesky factors of several matrices: by LAPACK one after another, all together on a device."""

from __future__ import annotations

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array


class Triangles:
    """The lower triangles L of positive definite matrices A = L Lᵀ.

    LAPACK decomposes one matrix at a time. Other libraries decompose all of them together: one at a
    time would leave most of a GPU idle.

    Parameters
    ----------
    A : array of shape (matrices, n, n)
        It may be overwritten.
    """

    def __init__(self, A: Array) -> None:
        single = not array_ops.is_foreign(A) or A.shape[0] == 1
        self._parts = [A[i, ...] for i in range(A.shape[0])] if single else [A]
        self._parts = [linalg.lower_factor(part) for part in self._parts]

    def halfway(self, B: Array) -> Array:
        """Return L⁻¹ B for B of shape (matrices, n, k)."""
        return self._stacked([linalg.solve_lower(L, b) for L, b in self._with(B)])

    def solve(self, B: Array) -> Array:
        """Return A⁻¹ B for B of shape (matrices, n, k)."""
        half = self._with(self.halfway(B))
        return self._stacked([linalg.solve_lower(L, b, transposed=True) for L, b in half])

    def inverse_diagonal(self) -> Array:
        """Return the diagonals of A⁻¹, of shape (matrices, n); L may be overwritten."""
        return self._stacked([linalg.diagonal_of_inverse(L) for L in self._parts])

    @property
    def _together(self) -> bool:
        return self._parts[0].ndim == 3

    def _with(self, B: Array) -> list[tuple[Array, Array]]:
        right = [B] if self._together else [B[i, ...] for i in range(len(self._parts))]
        return list(zip(self._parts, right, strict=True))

    def _stacked(self, parts: list[Array]) -> Array:
        if self._together:
            return parts[0]
        one = len(parts) == 1  # a view
        return parts[0][None, ...] if one else array_ops.namespace(parts[0]).stack(parts)
