"""The linear systems of kernel ridge, and what their solutions are.

(W^½ K W^½ + alpha I) b = W^½ y gives the coefficients a = W^½ b of f(x) = Σ k(x, x_i) a_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.learners.strategy import Problem
from gramian.matrices.factors import Factors, unprojected

PATIENCE = 5  # iterations that may pass without a smaller error on the rows held out


STEPS = 41  # of the grid of alphas where none is given
LEAST = 1e-10  # its smallest alpha, relative to the largest eigenvalue


class Rule(NamedTuple):
    """How alpha is chosen: by which error, among which values, and whether one serves all."""

    error: str  # "loo" or "gcv"
    grid: np.ndarray | None
    shared: bool

    def alphas(self, values: np.ndarray, dtype: Any) -> np.ndarray:
        """The grid, falling from the largest eigenvalue to what can be told from 0."""
        if self.grid is not None:
            return self.grid
        least = max(LEAST, 10 * array_ops.eps(dtype))
        return max(float(values.max()), np.finfo(float).tiny) * np.geomspace(1.0, least, STEPS)

    def choose(self, alphas: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """For each target the alpha of the least error."""
        if self.shared:
            errors = np.repeat(errors.mean(axis=1, keepdims=True), errors.shape[1], axis=1)
        best = errors.argmin(axis=0)
        if not np.isfinite(errors.min(axis=0)).all():
            indefinite("negative eigenvalues larger than each alpha")
        return alphas[best]


@dataclass(frozen=True, eq=False, kw_only=True)
class System(Problem):
    """What is to be solved: columns of targets, each with its alpha, over weighted rows.

    Where a fit is planned, ``alphas`` has the right length alone.
    """

    solver: str
    rule: Rule | None  # how alpha is to be chosen; None where it is given
    max_iter: int
    validates: bool = False  # whether rows are held out
    alphas: np.ndarray  # of shape (n_targets,); empty where there is a rule
    tol: float
    Y: Any = None  # of shape (n, n_targets), in float64
    held_out: Any = None  # of shape (n,): weights of rows that only tell when to stop, or 0

    @property
    def iterates(self) -> bool:
        """Whether an iteration is asked for."""
        return self.solver == "iterative" or self.validates

    @property
    def least_alpha(self) -> float | None:
        """None where the alphas follow from the largest eigenvalue."""
        if self.rule is None:
            return float(self.alphas.min())
        return None if self.rule.grid is None else float(self.rule.grid.min())

    @cached_property
    def precise(self) -> bool:
        """Whether float32 features would round too much, so that float64 is needed."""
        return rounds_too_much(self.factors, self.least_alpha, self.weights)

    def local(self, coefficients: Any) -> Array:
        """Coefficients, of the library and device of the matrix, in float64."""
        example = self.factors.parts.example()
        return array_ops.like(coefficients, example, array_ops.namespace(example).float64)

    @property
    def root(self) -> Array | None:
        """W^½, as a column."""
        if self.weights is None:
            return None
        return array_ops.namespace(self.weights).sqrt(self.weights)[:, None]

    def weighted(self, V: Array) -> Array:
        """W^½ V: systems stay symmetric when rows are weighted from both sides."""
        root = self.root
        return V if root is None else V * root


class AlphaPath(NamedTuple):
    """The alphas that were tried, and the error of each."""

    alphas: np.ndarray
    errors: np.ndarray  # of shape (n_alphas, n_targets), or (n_alphas,) for a single target


class Solution(NamedTuple):
    """Coefficients, and how they came about."""

    coefficients: Array  # of shape (n, n_targets), or of features (r, n_targets)
    residuals: tuple[float, ...] = ()  # relative, after each iteration
    errors: tuple[float, ...] | None = None  # mean squared, on the rows held out
    met: bool = True  # whether the tolerance was met, or the rows held out ended the iteration
    alphas: np.ndarray | None = None  # those chosen, of shape (n_targets,)
    path: AlphaPath | None = None  # and among which

    @property
    def iterations(self) -> int:
        return len(self.residuals) or 1


class Watch:
    """What conjugate gradients have reached; ends them when the rows held out say so.

    ``error(X, length)``, where given, is the error of X on these rows. The iterate of the least
    error is kept.
    """

    def __init__(self, error: Callable[[Array, Array], float] | None) -> None:
        self._error = error
        self.residuals: list[float] = []
        self.errors: list[float] = []
        self.best: Array | None = None

    def __call__(self, X: Array, length: Array, left: float) -> bool:
        self.residuals.append(left)
        if self._error is None:
            return False
        self.errors.append(self._error(X, length))
        if self.errors[-1] <= min(self.errors):
            self.best = X
        return self._stalled()

    def _stalled(self) -> bool:
        return len(self.errors) - int(np.argmin(self.errors)) > PATIENCE

    def solution(self, X: Array, left: float, tol: float) -> Solution:
        """What the iteration ended with, at a relative residual of ``left``."""
        residuals = tuple(self.residuals)
        if self._error is None:
            return Solution(X, residuals, None, left <= tol)
        best = X if self.best is None else self.best
        met = left <= tol or (bool(self.errors) and self._stalled())
        return Solution(best, residuals, tuple(self.errors), met)


@one_blas_thread()
def rounds_too_much(
    factors: Factors, alpha: float | None, weights: Array | None, *, seen: int = 0
) -> bool:
    """Whether float32 features would change eigenvalues by more than a tenth of alpha.

    Features C P are small differences of kernel values where P is large. How much their rounding
    changes K̃ is seen on a sample of rows; ``seen`` are rows to be added to these. Without alpha,
    that of the default path is meant, which is relative to the largest eigenvalue.
    """
    C, P = unprojected(factors)
    if P is None or array_ops.itemsize(factors.dtype) == 8:
        return False
    n = factors.shape[0]
    numbers = np.linspace(0, n - 1, min(n, 256)).astype(int)
    rounded, values = (
        array_ops.astype(rows.take(numbers).parts[0].collect(), factors.xp.float64)
        for rows in (factors, C)
    )
    exact, rounded = array_ops.to_numpy(values @ P), array_ops.to_numpy(rounded)
    K = exact @ exact.T
    change = np.abs(np.linalg.eigvalsh(rounded @ rounded.T - K)).max()
    if alpha is None:
        alpha = 10 * array_ops.eps(factors.dtype) * np.linalg.eigvalsh(K)[-1]
        return bool(change > 0.1 * alpha)
    weight = 1.0
    if weights is not None:
        weight = float(array_ops.namespace(weights).mean(weights))
    return bool(change * weight * (n + seen) / len(numbers) > 0.1 * alpha)


def indefinite(what: str) -> NoReturn:
    raise ValueError(
        f"K̃ + alpha I is not positive definite: the approximation has {what}. Use psd='clip', or "
        "a larger alpha."
    )
