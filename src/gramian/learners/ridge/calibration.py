"""Probabilities from the scores of a ridge classifier.

p = softmax(scale f) for several classes, or 1 / (1 + exp(-scale f)) for two: a temperature, after
Guo et al. (2017), which leaves the most probable class the one that is predicted. It is fitted to
the scores that sampled rows have if the fit leaves them out, since scores of rows that a fit has
seen are too sure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.losses.classification import Logistic, Multinomial
from gramian.learners.losses.loss import Loss

MOST_ROWS = 1000  # that are left out: a scale from n rows costs 1 / 2n of log-loss on average
LEAST_ROWS = 500
MOST_SCORES = 4_000_000  # of these rows for all classes
WIDEST = 10.0  # the range of log(scale), around that of scores up to 1


def sample_size(n: int, outputs: int) -> int:
    """Return how many of n rows are left out: at most a quarter of many, all of a few."""
    most = min(max(LEAST_ROWS, n // 4), MOST_ROWS, max(MOST_SCORES // outputs, 1))
    return min(n, most)


def sampled_rows(weights: Array | None, n: int, outputs: int) -> np.ndarray:
    """Return the numbers of rows to leave out, spread evenly over those with a weight."""
    usable = np.arange(n)
    if weights is not None:
        usable = np.flatnonzero(array_ops.to_numpy(weights))
    size = sample_size(len(usable), outputs)
    return usable[np.linspace(0, len(usable) - 1, size).astype(int)]


class Calibration(NamedTuple):
    """How scores become probabilities."""

    scale: float

    @classmethod
    def fitted(cls, f: np.ndarray, members: np.ndarray, weights: np.ndarray) -> Calibration:
        """Return the best one for scores f (rows, outputs), where ``members`` are positive.

        A row of class k has its largest target in column k, or a positive one if there is only one.
        """
        outputs = f.shape[1]
        loss = _loss(outputs)
        y = (members[:, 0] > 0) if outputs == 1 else members.argmax(axis=1)
        y, w = y.astype(np.float64)[:, None], weights[:, None] / weights.mean()
        size = max(float(np.abs(f).max()), 1.0)  # a scale of no unit

        def total(x: float) -> float:
            return float((w * loss.value(y, np.exp(x) * f / size)).sum())

        found = scipy.optimize.minimize_scalar(total, bounds=(-WIDEST, WIDEST), method="bounded").x
        return cls(float(np.exp(found) / size))

    def probabilities(self, f: Array) -> Array:
        """Return probabilities (rows, classes) of scores f (rows, outputs)."""
        moved = self.scale * f
        loss: Any = _loss(f.shape[1])
        if loss.coupled:
            return loss.inverse_link(moved)
        xp = array_ops.namespace(f)
        return xp.concat((loss.inverse_link(-moved), loss.inverse_link(moved)), axis=1)


def _loss(outputs: int) -> Loss:
    return Logistic() if outputs == 1 else Multinomial(outputs)
