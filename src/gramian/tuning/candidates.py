"""What ``tune`` tries: transforms of columns, families of kernels and approximations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from gramian.approximations import Approximation
from gramian.backend.typing import Array
from gramian.kernels import RBF, Kernel, Laplacian, Matern
from gramian.kernels.learning import Trial

QUANTILES = 1000
RANKED = 100_000  # rows whose quantiles are taken, at most

# By name: a function of the number of rows that returns a transformer.
TRANSFORMS: dict[str, Callable[[int], BaseEstimator]] = {
    "standard": lambda n: StandardScaler(),
    "normal": lambda n: _quantiles(n, "normal"),
    "ranks": lambda n: _quantiles(n, "uniform"),
}
FAMILIES = {"laplacian": Laplacian("loo"), "rbf": RBF("loo"), "matern": Matern("loo", nu=1.5)}


def _quantiles(n: int, shape: str) -> QuantileTransformer:
    some: dict[str, int | None] = {"subsample": None}
    if n > RANKED:
        some = {"subsample": RANKED, "random_state": 0}
    return QuantileTransformer(n_quantiles=min(n, QUANTILES), output_distribution=shape, **some)


class Candidate(NamedTuple):
    """A transform, a family, and the best that was found with them so far."""

    transform: str
    family: str
    trial: Trial
    rate: float  # the part of rows whose class is missed; the error, without classes
    rows: int  # that the errors are of
    seconds: float
    approximation: Approximation | None = None  # unfitted; None for the exact kernel
    classes: bool = False
    validated: bool = False  # whether rows that were put aside judged, not leave-one-out

    @property
    def merit(self) -> tuple[float, float]:
        """What candidates are sorted by: the smaller, the better."""
        return self.rate, self.trial.error

    @property
    def has_scales(self) -> bool:
        """Whether some columns count more than others."""
        scales = self.trial.kernel.scales
        return scales is not None and np.ptp(scales) > 0

    def rounded(self) -> Kernel:
        """Return the kernel with four digits, as the code shows it; no scales if all are equal."""
        kernel = self.trial.kernel
        scales = rounded(kernel.scales) if self.has_scales else None
        return clone(kernel).set_params(gamma=rounded(kernel.gamma), scales=scales)

    def _described(self) -> str:
        if self.approximation is not None:
            return _named(self.approximation)
        return "landmarks" if self.validated else "exact"

    def entry(self) -> dict[str, str | int | float]:
        """Return the candidate as a row of the table of all that was tried."""
        kernel, fit = self.trial.kernel, self.trial.fit
        return {
            "transform": self.transform,
            "kernel": self.family,
            "scales": "learned" if self.has_scales else "equal",
            "gamma": float(kernel.gamma),
            "alpha": float(fit.alpha),
            "approximation": self._described(),
            "rows": self.rows,
            "leave_one_out_error": np.nan if self.validated else float(fit.error),
            "validation_error": float(fit.error) if self.validated else np.nan,
            "missed_classes": float(self.rate) if self.classes else np.nan,
            "seconds": self.seconds,
        }


def _named(approximation: Approximation) -> str:
    """Return the name of an approximation with its number of landmarks."""
    name, inner = type(approximation).__name__, approximation.kernel
    size = getattr(approximation, "n_components", None)
    return f"{name}({_named(inner) if size is None else size})"


def rounded(numbers: Array) -> Array:
    """Return numbers with four digits."""
    if np.ndim(numbers):
        return np.array([rounded(number) for number in numbers])
    return float(f"{numbers:.4g}")
