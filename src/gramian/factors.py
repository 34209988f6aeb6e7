"""Factors: an approximation of the kernel matrix, K̃ = Z S Zᵀ, never multiplied out."""

from __future__ import annotations

from typing import Any

from gramian import _arrays
from gramian._arrays import Array
from gramian.rows import Rows

__all__ = ["Factors"]


class Factors:
    """K̃ = Z S Zᵀ with the features Z of n rows and a small symmetric core S.

    Parameters
    ----------
    Z : Rows
        One row of features for each row of the data; kept, or computed whenever it is walked.
    core : array of shape (r, r), optional
        S. By default the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import ArrayRows, Factors
    >>> factors = Factors(ArrayRows(np.array([[1.0, 0.0], [1.0, 2.0]])))
    >>> factors.matmul(np.array([1.0, 1.0]))
    array([2., 6.])
    >>> factors.diagonal()
    array([1., 5.])
    """

    def __init__(self, Z: Rows, core: Array | None = None) -> None:
        self.Z = Z
        self.core = core

    def __repr__(self) -> str:
        n, r = self.Z.shape
        return f"Factors(n={n}, rank={r}, {self.nbytes / 1e6:.3g} MB)"

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of K̃."""
        return self.Z.shape[0], self.Z.shape[0]

    @property
    def rank(self) -> int:
        return self.Z.shape[1]

    @property
    def nbytes(self) -> int:
        """What Z and S take when they are kept."""
        n, r = self.Z.shape
        size = n * r * _arrays.itemsize(self.Z.dtype)
        return size if self.core is None else size + 8 * r * r

    def persist(self) -> Factors:
        """These factors with Z kept in memory, if that fits the budget."""
        return Factors(self.Z.persist(), self.core)

    def features_matmul(self, W: Array) -> Array:
        """Z @ W, in float64."""
        xp = self.Z.xp
        if W.ndim == 1:
            return self.features_matmul(W[:, None])[:, 0]
        W = _arrays.astype(W, self.Z.dtype)

        def part(z: Array, out: Array) -> Array:
            return _arrays.astype(z @ W, xp.float64)

        return self.Z.map(part, width=W.shape[1], dtype=xp.float64, label="features")

    def rmatmul(self, V: Array) -> Array:
        """Zᵀ @ V, in float64."""
        xp = self.Z.xp
        if V.ndim == 1:
            return self.rmatmul(V[:, None])[:, 0]
        V = _arrays.like(V, V, self.Z.dtype)
        return self.Z.sum(lambda z, v: xp.matrix_transpose(z) @ v, V, label="features")

    def matmul(self, V: Array) -> Array:
        """K̃ @ V, in float64."""
        projected = self.rmatmul(V)
        return self.features_matmul(projected if self.core is None else self.core @ projected)

    def inner(self) -> Array:
        """Zᵀ Z, in float64."""
        xp = self.Z.xp
        return self.Z.sum(lambda z: xp.matrix_transpose(z) @ z, label="features")

    def normal_equations(self, V: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """Zᵀ W Z and Zᵀ W V with W = diag(weights), in float64 and one pass."""
        xp, dtype = self.Z.xp, self.Z.dtype
        aligned = (V,) if weights is None else (V, weights)

        def part(z: Array, v: Array, *w: Array) -> tuple[Array, Array]:
            scaled = z * _arrays.astype(w[0], dtype)[:, None] if w else z
            turned = xp.matrix_transpose(scaled)
            return turned @ z, turned @ _arrays.astype(v, dtype)

        return self.Z.sum(part, *aligned, label="features")

    def diagonal(self) -> Array:
        """The diagonal of K̃, in float64."""
        xp = self.Z.xp
        core = None if self.core is None else _arrays.astype(self.core, self.Z.dtype)

        def part(z: Array, out: Array) -> Array:
            if core is None:
                return _arrays.astype(_arrays.row_norms(z), xp.float64)
            return _arrays.astype(xp.sum((z @ core) * z, axis=1), xp.float64)

        return self.Z.map(part, dtype=xp.float64, label="features")

    def dense(self) -> Array:
        """K̃ itself, for small n."""
        Z: Any = _arrays.astype(self.Z.collect(), self.Z.xp.float64)
        left = Z if self.core is None else Z @ self.core
        return left @ self.Z.xp.matrix_transpose(Z)
