"""The kernel alone, for rows as they are."""

from __future__ import annotations

import numpy as np

from gramian.kernels import Kernel
from gramian.tuning.candidates import rounded
from gramian.tuning.search import Search


def tuned_kernel(
    X: np.ndarray, Y: np.ndarray, classes: bool, seconds: float, rng: np.random.Generator
) -> Kernel:
    """Return the kernel that ``tune`` chooses for standardised columns, for columns as they are.

    A kernel of a distance sees standardised columns if its scales are divided by their spread.
    """
    best = Search(X, Y, classes, seconds, rng, ["standard"]).kernel()
    kernel = best.rounded()
    spread = X.std(axis=0)
    spread[spread == 0] = 1.0
    scales = (1.0 if kernel.scales is None else kernel.scales) / spread
    return kernel.set_params(scales=rounded(scales))
