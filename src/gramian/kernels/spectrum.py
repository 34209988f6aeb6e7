"""Distributions of the random frequencies of shift-invariant kernels.

By Bochner's theorem k(x, y) = k(0) E cos(wᵀ(x - y)) for random frequencies w. A sum of kernels
mixes the distributions of its terms; a product adds independent frequencies. Every distribution
here is that of

    w = A (√(v + Σ v_i s_i) g + c h)

with the scales A of columns, a normal vector g, a vector h of independent Cauchy numbers, and
random factors s_i. A product of kernels of the Euclidean distance that scale columns alike
therefore needs only one normal vector, with uniform direction.
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
        """Return variance * s at the quantiles u in (0, 1)."""
        factor = gammaincinv(self.shape, u) / self.shape
        # Bound the frequencies: beyond this, no two different rows are close enough to matter.
        return self.variance * (1.0 / np.maximum(factor, 1e-30) if self.inverse else factor)


@dataclass(frozen=True)
class Law:
    """The distribution of the frequencies of one kernel."""

    weight: float = 1.0  # k(0)
    variance: float = 0.0  # v
    mixings: tuple[Mixing, ...] = ()  # v_i s_i
    cauchy: float = 0.0  # c
    columns: np.ndarray | None = None  # scales of the columns (d,), or a linear map (d, d)

    def __mul__(self, other: Law) -> Law:
        """Return the distribution for the product of two kernels that scale columns alike."""
        assert self.agrees(other)
        return Law(
            self.weight * other.weight,
            self.variance + other.variance,
            self.mixings + other.mixings,
            self.cauchy + other.cauchy,
            self.columns if other.is_constant else other.columns,
        )

    @property
    def is_constant(self) -> bool:
        """Whether all frequencies are 0, as for a multiple of other kernels."""
        return not self.has_normal and self.cauchy == 0

    def agrees(self, other: Law) -> bool:
        """Whether both scale columns alike, or one has no frequencies to scale."""
        if self.is_constant or other.is_constant:
            return True
        if self.columns is None or other.columns is None:
            return self.columns is other.columns
        return np.array_equal(self.columns, other.columns)

    @property
    def is_radial(self) -> bool:
        """Whether the direction of w is uniform and independent of its length."""
        return self.cauchy == 0

    @property
    def has_normal(self) -> bool:
        """Whether frequencies have a normal vector g."""
        return self.variance > 0 or bool(self.mixings)

    def coordinates(self, d: int) -> int:
        """Return how many uniform numbers are needed for one frequency with d features."""
        return len(self.mixings) + d * (self.has_normal + (self.cauchy > 0))

    def frequencies(
        self,
        u: np.ndarray,
        d: int,
        directions: np.ndarray | None = None,
        normal: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return one frequency, of d features, for each row of uniform numbers u in (0, 1).

        If ``directions`` are passed, they replace the directions of the normal vectors. If
        ``normal`` vectors are passed, u has no columns for them; they are overwritten.
        """
        first = len(self.mixings)
        w = np.zeros((len(u), d))
        if self.has_normal:
            w = ndtri(u[:, first : first + d]) if normal is None else normal
            if directions is not None:
                w = directions * np.linalg.norm(w, axis=1, keepdims=True)
            factors = (m.variances(u[:, i, None]) for i, m in enumerate(self.mixings))
            w *= np.sqrt(sum(factors, self.variance))
        if self.cauchy:
            w += self.cauchy * np.tan(np.pi * (u[:, -d:] - 0.5))
        if self.columns is None:
            return w
        return w * self.columns if self.columns.ndim == 1 else w @ self.columns.T
