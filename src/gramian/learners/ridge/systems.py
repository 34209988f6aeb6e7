"""The linear systems of kernel ridge, and the solutions of the exact one.

(W^½ K W^½ + alpha I) b = W^½ y gives the coefficients a = W^½ b of f(x) = Σ k(x, x_i) a_i. The
systems of factors are solved in ``_factored`` and ``_falkon``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.matrices.gram import Gram
from gramian.samplers.pivoted import pivoted_cholesky

PATIENCE = 5  # iterations that may pass without a smaller error on the rows held out


class System(NamedTuple):
    """What is to be solved: columns of targets, each with its alpha, over weighted rows."""

    matrix: Any  # Gram or Factors
    Y: Array  # in float64
    alphas: np.ndarray
    weights: Array | None  # 0 for rows that are held out
    held_out: Array | None  # the weights of rows that only tell when to stop, 0 for all others
    tol: float
    max_iter: int
    rng: np.random.Generator

    def local(self, coefficients: Any) -> Array:
        """Coefficients, of the library and device of the matrix, in float64."""
        example = self.matrix.parts.example()
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


class Solution(NamedTuple):
    """Coefficients, and how they came about."""

    coefficients: Array
    residuals: tuple[float, ...] = ()  # relative, after each iteration
    errors: tuple[float, ...] | None = None  # mean squared, on the rows held out
    met: bool = True  # whether the tolerance was met, or the rows held out ended the iteration

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
        if self._error is None:
            return Solution(X, tuple(self.residuals), None, left <= tol)
        best = X if self.best is None else self.best
        met = left <= tol or (bool(self.errors) and self._stalled())
        return Solution(best, tuple(self.residuals), tuple(self.errors), met)


def exact_direct(system: System) -> Solution:
    """Factorise K + alpha I once for each different alpha."""
    gram, alphas = system.matrix, system.alphas
    K, B = weighted_matrix(system), system.weighted(system.Y)
    xp = array_ops.namespace(K)
    diagonal = array_ops.copy(xp.linalg.diagonal(K))
    out = xp.zeros_like(B)
    # OpenBLAS's threaded Cholesky crashes on larger matrices than this (its issue 2562).
    with one_blas_thread() if gram.shape[0] > 10_000 else nullcontext():
        for alpha in np.unique(alphas):
            where = np.flatnonzero(alphas == alpha)
            A = array_ops.set_diagonal(K, diagonal + float(alpha))
            part = array_ops.solve_symmetric(A, array_ops.take_columns(B, where))
            for i, column in enumerate(where):
                out[:, int(column)] = part[:, i]
    return Solution(system.weighted(out))


def weighted_matrix(system: System) -> Array:
    """W^½ K W^½, stored."""
    gram, root = system.matrix, system.root
    K = array_ops.astype(gram.dense(), gram.rows.xp.float64)
    if root is not None:
        K *= root
        K *= gram.rows.xp.matrix_transpose(root)
    return K


@one_blas_thread()
def exact_iteration(system: System) -> Solution:
    """Conjugate gradients on ``gram.matmul``, with a pivoted Cholesky preconditioner."""
    gram: Gram = system.matrix
    xp, n = gram.rows.xp, gram.shape[0]
    B = system.weighted(system.Y)
    rank = preconditioner_rank(n)
    F = pivoted_cholesky(gram, rank, system.rng, tol=1e-10, dtype=xp.float64).factor
    Q, eigenvalues = linalg.orthonormal_columns(system.weighted(F))
    shift = array_ops.like(system.alphas, B)
    # (Q Λ Qᵀ + αI)⁻¹ = I/α + Q ((Λ + α)⁻¹ - 1/α) Qᵀ
    middle = 1.0 / (eigenvalues[:, None] + shift) - 1.0 / shift
    held = _HeldOutRows(system)

    def apply(V: Array) -> Array:
        image = gram.matmul(system.weighted(V))
        held.look_at(image)
        return system.weighted(image) + shift * V

    def precondition(V: Array) -> Array:
        return V / shift + Q @ (middle * (xp.matrix_transpose(Q) @ V))

    watch = Watch(None if system.held_out is None else held.error)
    try:
        dual, _, left = linalg.conjugate_gradients(
            apply, B, precondition, tol=system.tol, max_iter=system.max_iter, watch=watch
        )
    except linalg.NotPositiveDefiniteError as error:
        raise ValueError(
            f"K + alpha I is not positive definite: {gram.kernel!r} is indefinite on these "
            "rows. Use a larger alpha, a positive semi-definite kernel such as RBF, or "
            "solver='direct'."
        ) from error
    solution = watch.solution(dual, left, system.tol)
    return solution._replace(coefficients=system.weighted(solution.coefficients))


def preconditioner_rank(n: int) -> int:
    """The pivots of the preconditioner: its factor takes a quarter of the memory budget at most."""
    room = config.memory_budget() // 4 // (8 * n)
    return max(min(int(10 * n**0.5), 2000, room), 1)


class _HeldOutRows:
    """The error on rows held out, which have no weight: K times a direction gives its values there.

    So predictions of them follow the iteration without further kernel values.
    """

    def __init__(self, system: System) -> None:
        if system.held_out is None:
            self._numbers = np.empty(0, dtype=int)
            return
        self._numbers = np.flatnonzero(array_ops.to_numpy(system.held_out))
        self._left = array_ops.take_rows(system.Y, self._numbers)
        weights = array_ops.take_rows(system.held_out, self._numbers)[:, None]
        self._xp = array_ops.namespace(weights)
        self._weights = weights / (float(self._xp.sum(weights)) * system.Y.shape[1])

    def look_at(self, image: Array) -> None:
        if len(self._numbers):
            self._image = array_ops.take_rows(image, self._numbers)

    def error(self, X: Array, length: Array) -> float:
        self._left = self._left - length * self._image
        return float(self._xp.sum(self._weights * self._left**2))
