"""Shift-invariant kernels as laws of frequencies, and the points that frequencies are made from.

By Bochner's theorem k(x, y) = k(0) E cos(wᵀ(x - y)) for random frequencies w. A sum of kernels
mixes the laws of its parts, a product adds independent frequencies. Every law here is that of

    w = √(v + Σ v_i s_i) g + c h

with a normal vector g, a vector h of independent Cauchy numbers, and random factors s_i; so a
product of kernels of the Euclidean distance keeps one normal vector, whose direction is uniform.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from math import ceil, log, log2
from typing import Any

import numpy as np
from scipy.special import gammaincinv, ndtri
from scipy.stats import qmc

from gramian.backend import config
from gramian.backend.checks import positive
from gramian.kernels import (
    RBF,
    Cauchy,
    Exponential,
    ExponentialDot,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
)

# Half the distance of Sobol's points: neither 0 nor 1, where frequencies would be infinite.
MARGIN = 2.0**-31
OTHERS = "Use frequencies='sobol', 'orthogonal' or 'iid'"  # than Halton's


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


def laws(kernel: Kernel, whole: Kernel | None = None) -> list[Law]:
    """The laws whose mixture, by their weights, is that of the kernel's frequencies."""
    whole = kernel if whole is None else whole
    match kernel:
        case Sum():
            return laws(kernel.left, whole) + laws(kernel.right, whole)
        case Product():
            right = laws(kernel.right, whole)
            return [a * b for a in laws(kernel.left, whole) for b in right]
        case Scaled():
            return [Law(kernel._checked_factor()) * law for law in laws(kernel.kernel, whole)]
        case RBF():
            return [Law(variance=2 * kernel._gamma)]
        case Cauchy():
            return [Law(mixings=(Mixing(2 * kernel._gamma, 1.0),))]
        case RationalQuadratic():
            alpha = positive(kernel, "alpha", kernel.alpha)
            return [Law(mixings=(Mixing(2 * kernel._gamma, alpha),))]
        case Matern():  # a multivariate Student's t with 2ν degrees of freedom
            nu = positive(kernel, "nu", kernel.nu)
            return [Law(mixings=(Mixing(2 * kernel._gamma, nu, inverse=True),))]
        case Exponential():
            return [Law(mixings=(Mixing(kernel._gamma**2, 0.5, inverse=True),))]
        case Laplacian():
            return [Law(cauchy=kernel._gamma)]
    part = "" if kernel is whole else f", of which {kernel!r} is not"
    raise ValueError(
        f"RandomFourier needs a shift-invariant kernel; got {whole!r}{part}. Use {_others(whole)}."
    )


def _others(kernel: Kernel) -> str:
    """What serves a kernel that is not shift-invariant."""
    if not kernel.psd:
        return "an exact learner: kernel=Exact(...)"
    if isinstance(kernel, Polynomial):
        return "Nystroem, RandomMaclaurin or TensorSketch"
    if isinstance(kernel, Linear | ExponentialDot):
        return "Nystroem or RandomMaclaurin"
    return "Nystroem"


def draw(law: Law, n: int, d: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """n frequencies of this law for rows of d columns, in the lines of a matrix."""
    width = law.coordinates(d)
    if kind in ("halton", "sobol"):
        u = _low_discrepancy(kind, n, width, rng)
    else:
        u = rng.random((n, width))
    directions = _orthogonal(n, d, rng) if kind == "orthogonal" else None
    return law.frequencies(np.clip(u, MARGIN, 1 - MARGIN), d, directions)


def _low_discrepancy(kind: str, n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """The first n points of a scrambled sequence."""
    if kind == "halton":
        config.check_fits(
            halton_bytes(width), f"a scrambled Halton sequence of {width} coordinates", OTHERS
        )
        return _engine(qmc.Halton, width, rng).random(n)
    if width > qmc.Sobol.MAXDIM:
        raise ValueError(
            f"Sobol's sequence has at most {qmc.Sobol.MAXDIM} coordinates; these frequencies need "
            f"{width}. Use frequencies='orthogonal' or 'iid'."
        )
    # SciPy warns of numbers of points that are no power of 2: the points are good all the same.
    return _engine(qmc.Sobol, width, rng).random(2 ** ceil(log2(n)))[:n]


def halton_bytes(width: int) -> int:
    """What a permutation of the digits for each of the first primes takes."""
    return int(20 * width**2 * log(width + 1))


def _engine(cls: Any, width: int, rng: np.random.Generator) -> Any:
    # SciPy before 1.15 has another name for it.
    name = "rng" if "rng" in inspect.signature(cls).parameters else "seed"
    return cls(width, scramble=True, **{name: rng})


def _orthogonal(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """n directions, each uniform, those of each d in turn orthogonal (Yu et al. 2016).

    Uniform but for signs, which no cosine sees.
    """
    sizes = [min(d, n - start) for start in range(0, n, d)]
    return np.concatenate([np.linalg.qr(rng.standard_normal((d, k)))[0].T for k in sizes])
