"""The linear systems of kernel ridge, and their solutions.

The solution of (W^½ K W^½ + alpha I) d = W^½ y gives the coefficients a = W^½ d of
f(x) = Σ k(x, x_i) a_i. An intercept b has no penalty: Σ w (y - f - b)² + alpha ‖f‖² is smallest
where d is orthogonal to q = W^½ 1 / √Σw and solves the same system projected onto the complement
of q, (Π W^½ K W^½ Π + alpha I) d = Π W^½ y with Π = I - q qᵀ. There Σ w (y - f - b) = 0. Features
are centred instead, by their weighted mean, which is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.learners.ridge.calibration import sample_size
from gramian.learners.ridge.rounding import rounds_too_much, sums_allow
from gramian.learners.strategy import Problem
from gramian.matrices.block_function import BlockFunction

PATIENCE = 5  # iterations without a smaller error on the held-out rows, before it stops


STEPS = 49  # alphas in the default grid
LARGEST, LEAST = 1e2, 1e-10  # its ends, relative to the largest eigenvalue


class Rule(NamedTuple):
    """How alpha is chosen: by which error, from which values, and whether targets share it."""

    error: str  # "loo" or "gcv"
    grid: np.ndarray | None
    shared: bool

    def alphas(self, largest: float, dtype: DType) -> np.ndarray:
        """Return the grid, by default from far above the largest eigenvalue down to rounding."""
        if self.grid is not None:
            return self.grid
        grid = np.geomspace(LARGEST, LEAST, STEPS)
        grid = grid[grid >= 10 * array_ops.eps(dtype)]
        # A matrix of zeros has no scale.
        return (float(largest) if largest > np.finfo(float).tiny ** 0.5 else 1.0) * grid

    def choose(self, alphas: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Return the alpha with the smallest error for each target, shape (n_targets,).

        ``alphas`` has shape (n_alphas,), ``errors`` (n_alphas, n_targets).
        """
        if self.shared:
            errors = np.repeat(errors.mean(axis=1, keepdims=True), errors.shape[1], axis=1)
        best = errors.argmin(axis=0)
        if not np.isfinite(errors.min(axis=0)).all():
            indefinite("negative eigenvalues larger than each alpha")
        return alphas[best]


@dataclass(frozen=True, eq=False, kw_only=True)
class System(Problem):
    """A linear system: columns of targets, each with its alpha, over weighted rows.

    While a fit is planned, only the length of ``alphas`` is known.
    """

    solver: str
    rule: Rule | None  # how alpha is chosen; None if it is set
    max_iter: int
    validates: bool = False  # whether rows are held out
    alphas: np.ndarray  # (n_targets,); empty if there is a rule
    tol: float
    intercept: bool = False
    Y: Array | None = None  # (n, n_targets), in float64; with an intercept, centred
    held_out: Array | None = None  # (n,): weights of held-out rows, 0 for the others
    rounds: bool = False  # whether sums in float32 could change eigenvalues by a tenth of alpha
    calibrates: bool = False  # whether scores of left-out rows are wanted
    sampled: np.ndarray | None = None  # the numbers of these rows

    @property
    def iterates(self) -> bool:
        """Whether the parameters require an iteration."""
        return self.solver == "iterative" or self.validates

    def settled(self, alphas: np.ndarray | None = None) -> System:
        """Return the system with alphas (n_targets,) that are set; any, while a fit is planned."""
        count = 1 if self.rule is None or self.rule.shared else self.n_targets
        return replace(self, rule=None, alphas=np.ones(count) if alphas is None else alphas)

    @property
    def sample_size(self) -> int:
        """The number of rows whose scores are wanted as if they were left out."""
        return sample_size(self.rows.shape[0], self.n_targets) if self.calibrates else 0

    def of_sample(self, V: Array) -> np.ndarray:
        """Return the sampled rows of an array (n, c), on the host."""
        assert self.sampled is not None
        return array_ops.host_float64(array_ops.take_rows(V, self.sampled))

    def left_out(self, scores: np.ndarray, leverage: np.ndarray) -> np.ndarray:
        """Return scores of sampled rows as if they were left out; both are (rows, n_targets)."""
        y = self.of_sample(self.Y)
        return y - (y - scores) / np.maximum(1.0 - leverage, 1e-10)

    @property
    def least_alpha(self) -> float | None:
        """The smallest alpha; None if the alphas follow from the largest eigenvalue."""
        if self.rule is None:
            return float(self.alphas.min())
        return None if self.rule.grid is None else float(self.rule.grid.min())

    @cached_property
    def precise(self) -> bool:
        """Whether float64 is needed because float32 features would round too much."""
        return rounds_too_much(self.factors, self.least_alpha, self.weights)

    @cached_property
    def precise_sums(self) -> bool:
        """Whether sums over features have to be in float64."""
        return self.rounds or self.precise

    @cached_property
    def late(self) -> bool:
        """Whether sums over C in float64, multiplied with P afterwards, are as exact as needed."""
        double = array_ops.itemsize(self.factors.dtype) == 8
        return (double or self.precise_sums) and sums_allow(
            self.factors, self.least_alpha, self.weights
        )

    def local(self, coefficients: Array) -> Array:
        """Convert coefficients (r, n_targets) to the matrix's array library, in float64."""
        example = self.factors.parts.example()
        return array_ops.like(coefficients, example, array_ops.namespace(example).float64)

    @property
    def root(self) -> Array | None:
        """W^½ as a column (n, 1); None without weights."""
        if self.weights is None:
            return None
        return array_ops.namespace(self.weights).sqrt(self.weights)[:, None]

    def weighted(self, V: Array) -> Array:
        """Return W^½ V for V (n, c); weighting both sides of K keeps systems symmetric."""
        root = self.root
        return V if root is None else V * root

    @cached_property
    def weight(self) -> float:
        """The sum of the weights."""
        if self.weights is None:
            return float(self.rows.shape[0])
        return float(array_ops.namespace(self.weights).sum(self.weights))

    @cached_property
    def q(self) -> Array:
        """The unit vector W^½ 1 / √Σw, as a column (n, 1)."""
        assert self.Y is not None
        xp = array_ops.namespace(self.Y)
        return self.weighted(xp.ones_like(self.Y[:, :1])) / self.weight**0.5

    def projected(self, V: Array, *, overwrite: bool = False) -> Array:
        """Return Π V for V (n, c), or V without an intercept; it may overwrite V."""
        if not self.intercept:
            return V
        constant = self.q @ (array_ops.namespace(V).matrix_transpose(self.q) @ V)
        if not overwrite:
            return V - constant
        V -= constant
        return V

    def share(self) -> Array:
        """The share of each row in the weight, which is its leverage on the intercept: (n, 1)."""
        if self.weights is None:
            return self.rows.place.constant(1.0 / self.weight)[:, None]
        return self.weights[:, None] / self.weight

    def centred(self) -> tuple[System, np.ndarray]:
        """Return the system with targets minus their weighted means, and the means (n_targets,)."""
        if not self.intercept:
            return self, np.zeros(self.n_targets)
        assert self.Y is not None
        xp = array_ops.namespace(self.Y)
        total = self.Y if self.weights is None else self.Y * self.weights[:, None]
        means = array_ops.host_float64(xp.sum(total, axis=0)) / self.weight
        return replace(self, Y=self.Y - array_ops.beside(means, self.Y)), means


class Mean(NamedTuple):
    """W^½ K W^½ q / √Σw (n, 1): its product with d is the weighted mean of fitted values."""

    image: Array | None  # None without an intercept

    def intercepts(self, d: Array) -> Array | float:
        """Return b (n_targets,) for centred targets."""
        if self.image is None:
            return 0.0
        return -(array_ops.namespace(d).matrix_transpose(self.image) @ d)[0, :]


class AlphaPath(NamedTuple):
    """The alphas that were tried, and the error of each."""

    alphas: np.ndarray  # (n_alphas,)
    errors: np.ndarray  # (n_alphas, n_targets), or (n_alphas,) for a single target


class Solution(NamedTuple):
    """Coefficients, and how they were found."""

    coefficients: Array  # of rows (n, n_targets), or of features (r, n_targets)
    intercepts: np.ndarray | None = None  # (n_targets,)
    residuals: tuple[float, ...] = ()  # relative, after each iteration
    errors: tuple[float, ...] | None = None  # mean squared, on the held-out rows
    met: bool = True  # whether the tolerance was met, or the held-out rows ended the iteration
    alphas: np.ndarray | None = None  # the chosen ones, (n_targets,)
    path: AlphaPath | None = None  # all that were tried
    left_out: np.ndarray | None = None  # scores of the sampled rows, (rows, n_targets)
    function: BlockFunction | None = None  # what coefficients of rows in blocks are for new rows

    @property
    def at_lower_end(self) -> bool:
        """Whether an alpha that was chosen is the smallest of its path."""
        return self.path is not None and bool((self.alphas <= self.path.alphas.min()).any())

    @property
    def iterations(self) -> int:
        return len(self.residuals) or 1


class Watch:
    """Records the progress of conjugate gradients, and stops them by the held-out rows.

    ``error(X, length)``, if set, is the error of X on these rows. The iterate with the smallest
    error is the solution.
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
        """Return the solution after the last iterate X (r, n_targets), at residual ``left``."""
        residuals = tuple(self.residuals)
        if self._error is None:
            return Solution(X, residuals=residuals, met=left <= tol)
        best = X if self.best is None else self.best
        met = left <= tol or (bool(self.errors) and self._stalled())
        return Solution(best, residuals=residuals, errors=tuple(self.errors), met=met)


def indefinite(what: str) -> NoReturn:
    raise ValueError(
        f"K̃ + alpha I is not positive definite: the approximation has {what}. Use psd='clip' or a "
        "larger alpha."
    )
