"""Shift-invariant kernels as laws of random frequencies.

By Bochner's theorem k(x, y) = k(0) E cos(wᵀ(x - y)) for random frequencies w. A sum of kernels
mixes the laws of its parts, a product adds independent frequencies. Every law here is that of

    w = √(v + Σ v_i s_i) g + c h

with a normal vector g, a vector h of independent Cauchy numbers, and random factors s_i; so a
product of kernels of the Euclidean distance keeps one normal vector, whose direction is uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtri

__all__ = ["Law", "Mixing"]


@dataclass(frozen=True)
class Mixing:
    """The random factor s of a variance: gamma-distributed of mean 1, or the inverse of that."""

    variance: float
    shape: float
    inverse: bool = False

    def variances(self, u: np.ndarray) -> np.ndarray:
        """variance * s at these points of (0, 1), by the inverse of the distribution function."""
        factor = gammaincinv(self.shape, u) / self.shape
        # Frequencies so large that no two rows are near enough for them need not be infinite.
        return self.variance * (1.0 / np.maximum(factor, 1e-30) if self.inverse else factor)


@dataclass(frozen=True)
class Law:
    """The law of the frequencies of one kernel."""

    weight: float = 1.0  # k(0)
    variance: float = 0.0  # v
    mixings: tuple[Mixing, ...] = ()  # v_i s_i
    cauchy: float = 0.0  # c

    def __mul__(self, other: Law) -> Law:
        """The law of the product of two kernels."""
        return Law(
            self.weight * other.weight,
            self.variance + other.variance,
            self.mixings + other.mixings,
            self.cauchy + other.cauchy,
        )

    @property
    def is_radial(self) -> bool:
        """Whether the direction of w is uniform, whatever its length."""
        return self.cauchy == 0

    @property
    def _has_normal(self) -> bool:
        return self.variance > 0 or bool(self.mixings)

    def coordinates(self, d: int) -> int:
        """How many uniform numbers make one frequency of d columns."""
        return len(self.mixings) + d * (self._has_normal + (self.cauchy > 0))

    def frequencies(self, u: np.ndarray, d: int, directions: np.ndarray | None) -> np.ndarray:
        """One frequency from each row of points in (0, 1), of shape (points, d).

        Where directions are given, they take the place of those of the normal vectors.
        """
        first = len(self.mixings)
        w = np.zeros((len(u), d))
        if self._has_normal:
            w = ndtri(u[:, first : first + d])
            if directions is not None:
                w = directions * np.linalg.norm(w, axis=1, keepdims=True)
            factors = (m.variances(u[:, i]) for i, m in enumerate(self.mixings))
            w *= np.sqrt(sum(factors, np.full(len(u), self.variance)))[:, None]
        if self.cauchy:
            w += self.cauchy * np.tan(np.pi * (u[:, -d:] - 0.5))
        return w
