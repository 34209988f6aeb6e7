"""What ``tune`` tries: transforms of columns and families of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from gramian.kernels import RBF, Laplacian, Matern
from gramian.kernels.learning import Trial

QUANTILES = 1000

# By name: a function of the number of rows that returns a transformer.
TRANSFORMS: dict[str, Callable[[int], Any]] = {
    "standard": lambda n: StandardScaler(),
    "normal": lambda n: _quantiles(n, "normal"),
    "ranks": lambda n: _quantiles(n, "uniform"),
}
FAMILIES = {"laplacian": Laplacian("loo"), "rbf": RBF("loo"), "matern": Matern("loo", nu=1.5)}


def _quantiles(n: int, shape: str) -> QuantileTransformer:
    return QuantileTransformer(
        n_quantiles=min(n, QUANTILES), output_distribution=shape, subsample=None
    )


class Candidate(NamedTuple):
    """A transform, a family, and the best that was found with them so far."""

    transform: str
    family: str
    trial: Trial
    rate: float  # the part of rows whose class is missed; the error, without classes
    rows: int  # that the errors are of
    seconds: float

    @property
    def merit(self) -> tuple[float, float]:
        """What candidates are sorted by: the smaller, the better."""
        return self.rate, self.trial.error

    @property
    def has_scales(self) -> bool:
        """Whether some columns count more than others."""
        scales = self.trial.kernel.scales
        return scales is not None and np.ptp(scales) > 0

    def entry(self) -> dict[str, Any]:
        """Return the candidate as a row of the table of all that was tried."""
        kernel, fit = self.trial.kernel, self.trial.fit
        return {
            "transform": self.transform,
            "kernel": self.family,
            "scales": "learned" if self.has_scales else "equal",
            "gamma": float(kernel.gamma),
            "alpha": float(fit.alpha),
            "rows": self.rows,
            "leave_one_out_error": float(fit.error),
            "missed_classes": float(self.rate) if self.rate != fit.error else np.nan,
            "seconds": self.seconds,
        }
