"""Probabilities from the scores of a ridge classifier.

p = softmax(scale f + offset) for several classes, or 1 / (1 + exp(-(scale f + offset))) for two: a
temperature and a shift of each class, after Platt (1999) and Guo et al. (2017). They are fitted
to the scores that sampled rows have if the fit leaves them out, since scores of rows that a fit has
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

MOST_ROWS = 2000  # that are left out
LEAST_ROWS = 500
MOST_SCORES = 4_000_000  # of these rows for all classes
PENALTY = 1.0  # of squared offsets, as if little were known


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
    offset: np.ndarray  # (outputs,)

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

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            scores = np.exp(x[0]) * f / size + x[1:]
            g = w * loss.gradient(y, scores)
            value = float((w * loss.value(y, scores)).sum() + 0.5 * PENALTY * (x[1:] ** 2).sum())
            along = float((g * f).sum()) * np.exp(x[0]) / size
            return value, np.concatenate(([along], g.sum(axis=0) + PENALTY * x[1:]))

        start = np.zeros(outputs + 1)
        bounds = [(-10.0, 10.0)] + [(None, None)] * outputs
        found = scipy.optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds
        ).x
        return cls(float(np.exp(found[0]) / size), found[1:])

    def probabilities(self, f: Array) -> Array:
        """Return probabilities (rows, classes) of scores f (rows, outputs)."""
        moved = self.scale * f + array_ops.beside(self.offset, f)
        loss: Any = _loss(f.shape[1])
        if loss.coupled:
            return loss.inverse_link(moved)
        xp = array_ops.namespace(f)
        return xp.concat((loss.inverse_link(-moved), loss.inverse_link(moved)), axis=1)


def _loss(outputs: int) -> Loss:
    return Logistic() if outputs == 1 else Multinomial(outputs)
