"""Random frequencies of shift-invariant kernels, and the uniform points behind them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import ceil, log, log2
from typing import TYPE_CHECKING

import numpy as np

from gramian.backend import config
from gramian.kernels import Kernel, Polynomial
from gramian.kernels.spectrum import Law

if TYPE_CHECKING:
    from scipy.stats import qmc

# Half the spacing of Sobol points: keeps away from 0 and 1, where frequencies are infinite.
MARGIN = 2.0**-31
OTHERS = "Use frequencies='sobol', 'orthogonal' or 'iid'"  # instead of Halton


def laws(kernel: Kernel) -> list[Law]:
    """Return the laws of the kernel's frequencies; ``ValueError`` if it is not shift-invariant."""
    spectrum = kernel.spectrum()
    if spectrum is not None:
        return spectrum
    part = _without_spectrum(kernel)
    which = "" if part is kernel else f", of which {part!r} is not"
    raise ValueError(
        f"RandomFourier needs a shift-invariant kernel; got {kernel!r}{which}. "
        f"Use {_others(kernel)}."
    )


def _without_spectrum(kernel: Kernel) -> Kernel:
    """Return the first part of a composed kernel that is not shift-invariant."""
    for part in kernel.parts():
        if part.spectrum() is None:
            return _without_spectrum(part)
    return kernel


def _others(kernel: Kernel) -> str:
    """Return what to use for a kernel that is not shift-invariant."""
    if not kernel.psd:
        return "an exact learner: kernel=Exact(...)"
    if kernel.maclaurin(1) is None:
        return "Nystroem"
    if isinstance(kernel, Polynomial):
        return "Nystroem, RandomMaclaurin or TensorSketch"
    return "Nystroem or RandomMaclaurin"


def draw(law: Law, n: int, d: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Draw n frequencies of this law for rows with d columns; shape (n, d)."""
    width, normal = law.coordinates(d), None
    if kind in ("halton", "sobol"):
        u = _low_discrepancy(kind, n, width, rng)
    else:
        u = rng.random((n, width - d * law.has_normal))
        if law.has_normal:  # drawing them takes half as long as inverting their law
            normal = rng.standard_normal((n, d))
    directions = _orthogonal(n, d, rng) if kind == "orthogonal" else None
    u = np.minimum(np.maximum(u, MARGIN), 1 - MARGIN)
    return law.frequencies(u, d, directions, normal)


def _low_discrepancy(kind: str, n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return the first n points of a scrambled sequence; shape (n, width)."""
    from scipy.stats import qmc  # takes long to import

    if kind == "halton":
        config.check_fits(
            halton_bytes(width), f"a scrambled Halton sequence of {width} coordinates", OTHERS
        )
        return _engine(qmc.Halton, width, rng).random(n)
    if width > qmc.Sobol.MAXDIM:
        raise ValueError(
            f"A Sobol sequence has at most {qmc.Sobol.MAXDIM} coordinates; these frequencies need "
            f"{width}. Use frequencies='orthogonal' or 'iid'."
        )
    # SciPy warns if the number of points is not a power of 2, so we draw more and take the first.
    return _engine(qmc.Sobol, width, rng).random(2 ** ceil(log2(n)))[:n]


def halton_bytes(width: int) -> int:
    """Return the memory of the digit permutations, one for each of the first primes."""
    return int(20 * width**2 * log(width + 1))


def _engine(
    cls: Callable[..., qmc.QMCEngine], width: int, rng: np.random.Generator
) -> qmc.QMCEngine:
    # SciPy before 1.15 calls the parameter ``seed``.
    name = "rng" if "rng" in inspect.signature(cls).parameters else "seed"
    return cls(width, scramble=True, **{name: rng})


def _orthogonal(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n uniform directions, orthogonal in blocks of d (Yu et al. 2016); shape (n, d).

    They are uniform up to signs, which do not change cosines.
    """
    sizes = [min(d, n - start) for start in range(0, n, d)]
    return np.concatenate([np.linalg.qr(rng.standard_normal((d, k)))[0].T for k in sizes])
