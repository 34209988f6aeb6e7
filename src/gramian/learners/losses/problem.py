"""The problem of a loss: Σ w ℓ(y, f) + ½ alpha ‖f‖² + tilt · b, with f = Φθ + b."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.newton import Minimum
from gramian.learners.ridge.systems import AlphaPath
from gramian.learners.strategy import Problem
from gramian.matrices.block_diagonal import BlockDiagonal

SAMPLED = 256  # rows that tell the trace


@dataclass(frozen=True, eq=False, kw_only=True)
class LossProblem(Problem):
    """A loss over weighted rows, with a penalty, and an intercept without one.

    While a fit is planned, ``y`` is not known.
    """

    loss: Loss
    alpha: float
    intercept: bool
    tol: float
    max_iter: int
    tilt: float = 0.0  # a linear term of the intercept, as novelty detection has it
    y: Array | None = None  # (n, 1), in float64
    start: np.ndarray | None = None  # the first intercepts, (outputs,)
    warm: np.ndarray | None = None  # a first point, (coefficients + 1, outputs)
    alphas: np.ndarray | None = None  # to choose from, descending; None before the rows are known
    leaves_out: bool = False  # whether alpha is chosen
    patient: bool = False  # whether a path may end early

    @cached_property
    def weight(self) -> float:
        """The sum of the weights."""
        if self.weights is None:
            return float(self.rows.shape[0])
        return float(array_ops.namespace(self.weights).sum(self.weights))

    def trace(self) -> float:
        """Return about the trace of the matrix, with weights, from some rows."""
        n = self.rows.shape[0]
        numbers = np.linspace(0, n - 1, min(n, SAMPLED)).astype(int)
        diagonal = self.gram.diag() if self.is_exact else self.factors.take(numbers).diagonal()
        return float(np.mean(array_ops.to_numpy(diagonal))) * self.weight

    def of(self, outputs: list[int]) -> LossProblem:
        """Return the problem of some of the outputs, which are not coupled."""
        if len(outputs) == self.loss.outputs:
            return self
        start = None if self.start is None else self.start[outputs]
        warm = None if self.warm is None else self.warm[:, outputs]
        return replace(self, loss=self.loss.of(outputs), start=start, warm=warm)


class LossSolution(NamedTuple):
    """Coefficients and intercepts, and how they were found."""

    coefficients: Array  # of rows (n, outputs), or of features (r, outputs)
    intercepts: np.ndarray  # (outputs,)
    values: np.ndarray  # the objective, (outputs,) or (1,)
    loss: Loss
    iterations: int
    accuracy: float
    met: bool
    point: np.ndarray | None = None  # where the next alpha starts
    error: float = np.inf  # the mean loss of rows that are left out
    alpha: float | None = None  # the chosen one
    path: AlphaPath | None = None  # all that were tried
    blocks: BlockDiagonal | None = None  # of the rows, if K̃ has blocks


def joined(minima: list[Minimum]) -> Minimum:
    """Return the minima of groups of outputs as one."""
    if len(minima) == 1:
        return minima[0]
    return Minimum(
        np.concatenate([each.point for each in minima], axis=1),
        np.concatenate([each.values for each in minima]),
        minima[-1].loss,
        minima[-1].smoothed,
        max(each.iterations for each in minima),
        max(each.accuracy for each in minima),
        all(each.met for each in minima),
    )
