"""Walks over features: the objective of a loss and its derivatives, in one pass each."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array, DType
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.newton import Evaluation
from gramian.learners.losses.problem import LossProblem
from gramian.matrices.factors import Factors
from gramian.matrices.normal_equations import inner_products

TEMPORARY = 10  # arrays of one number per row and output that a loss makes
NEGLIGIBLE = 1e-12  # curvature, relative to the largest in a block


class Curvature(NamedTuple):
    """ZᵀWZ, ZᵀW1 and the sum of W, for each kind of curvature W."""

    blocks: list[Array]  # of each part: (kinds, columns, columns)
    borders: np.ndarray  # (r, kinds)
    totals: np.ndarray  # (kinds,)


class Walks:
    """Passes over the features Z of the rows of a problem, or over C if Z = C P.

    Parameters
    ----------
    problem : LossProblem
    walked : Factors
        Z, or C.
    P : array of shape (m, r), optional
        If C is walked.
    inside : bool
        Whether each block is multiplied with P, which ZᵀWZ needs; otherwise P is applied to
        coefficients and results.
    y, weights : arrays, optional
        Of the rows that are walked, if these are not all rows of the problem.
    """

    def __init__(
        self,
        problem: LossProblem,
        walked: Factors,
        P: Array | None,
        *,
        dtype: DType,
        inside: bool = False,
        y: Array | None = None,
        weights: Array | None = None,
    ) -> None:
        self.problem = problem
        self.walked, self.P, self.dtype, self.inside = walked, P, dtype, inside
        if y is None:
            y, weights = problem.y, problem.weights
        aligned = [y] if weights is None else [y, weights[:, None]]
        self._aligned = [walked.arrange(each) for each in aligned]

    def on(self, problem: LossProblem) -> Walks:
        """Return the same walks for the same rows with another alpha."""
        other = copy(self)
        other.problem = problem
        return other

    @property
    def rank(self) -> int:
        """The number of coefficients."""
        return self.problem.factors.rank

    @cached_property
    def root(self) -> np.ndarray | None:
        """B with S = B Bᵀ; coefficients u of Z B have the penalty ½ alpha ‖u‖²."""
        core = self.problem.factors.core
        if core is None:
            return None
        try:
            return linalg.psd_root(core.dense())
        except linalg.NotPositiveDefiniteError as error:
            raise ValueError(
                f"The approximation is not positive semi-definite: {error}. Use psd='clip'."
            ) from error

    def evaluate(
        self, loss: Loss, point: np.ndarray, kinds: list[int] | None = None
    ) -> tuple[Evaluation, Curvature | None]:
        """Return the sums over the rows at a point, without the penalty.

        ``kinds`` are the outputs whose curvature is wanted; -1 stands for the mean of all.
        """
        U, b = self._lifted(point[:-1]), self._local(point[-1])
        prepare = _evaluation(loss, self.dtype, U, b, self._inner_matrix, kinds)
        width = self._width
        result = 8 * width**2 * len(kinds or ()) + 8 * width * loss.outputs
        spare = 8 * TEMPORARY * loss.outputs + (
            2 * array_ops.itemsize(self.dtype) * width if kinds else 0
        )
        sums = self._sum(prepare, spare, result)
        values, image, slope, statistics = (
            np.sum([_host(part[i]) for part in sums], axis=0)
            if i != 1
            else self._pulled(np.concatenate([_host(part[1]) for part in sums]))
            for i in range(4)
        )
        gradient = np.concatenate((image, slope[None, :]))
        here = Evaluation(point, values, gradient, statistics)
        if not kinds:
            return here, None
        borders = self._pulled(np.concatenate([_host(part[5]) for part in sums]))
        totals = np.sum([_host(part[6]) for part in sums], axis=0)
        return here, Curvature([part[4] for part in sums], borders, totals)

    def along(
        self, loss: Loss, point: np.ndarray, direction: np.ndarray, lengths: np.ndarray
    ) -> np.ndarray:
        """Return the sums of the loss after steps of these lengths, shape (lengths, values)."""
        U, b = self._lifted(point[:-1]), self._local(point[-1])
        D, c = self._lifted(direction[:-1]), self._local(direction[-1])
        prepare = _line(loss, self.dtype, U, b, D, c, self._inner_matrix, lengths)
        sums = self._sum(prepare, 8 * TEMPORARY * loss.outputs, 8 * len(lengths) * loss.outputs)
        return np.sum([_host(part) for part in sums], axis=0)

    def curve(self, loss: Loss, point: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the second derivatives at a point times V, shape (r + 1, outputs)."""
        U, b = self._lifted(point[:-1]), self._local(point[-1])
        D, c = self._lifted(V[:-1]), self._local(V[-1])
        prepare = _second(loss, self.dtype, U, b, D, c)
        sums = self._sum(prepare, 8 * TEMPORARY * loss.outputs, 8 * self._width * loss.outputs)
        image = self._pulled(np.concatenate([_host(part[0]) for part in sums]))
        return np.concatenate((image, np.sum([_host(p[1]) for p in sums], axis=0)[None, :]))

    def curvatures(self, loss: Loss, point: np.ndarray, kinds: list[int]) -> np.ndarray:
        """Return the weighted curvature of each row, shape (rows, kinds), in their first order."""
        U, b = self._lifted(point[:-1]), self._local(point[-1])

        def prepare(columns: slice) -> Callable[..., Array]:
            u = U[columns, :]

            def part(z: Array, y: Array, *weights: Array, out: Array) -> Array:
                xp = array_ops.namespace(z)
                c = loss.curvature(y, _by_outputs(array_ops.matmul(z, u), xp.float64) + b)
                c = c * weights[0] if weights else c
                return xp.concat([_kind(xp, c, k) for k in kinds], axis=1)

            return part

        values = self.walked.map(
            prepare, *self._aligned, width=len(kinds), dtype=self.walked.xp.float64,
            row_bytes=8 * TEMPORARY * loss.outputs, label="loss",
        )  # fmt: skip
        return _host(self.walked.restore(values))

    def inner(self, numbers: np.ndarray, weights: np.ndarray) -> Curvature:
        """Return ZᵀWZ, ZᵀW1 and the sum of W of some rows, one kind of weights."""
        every = len(numbers) == self.walked.shape[0]
        few = self.walked if every else self.walked.take(numbers)
        parts = inner_products(few, None, self._local(weights), ones=True)
        borders = self._pulled(np.concatenate([_host(right) for _, right in parts]))
        blocks = [each[None, :, :] for each, _ in parts]
        return Curvature(blocks, borders, weights.sum(keepdims=True))

    def solver(
        self, curvature: Curvature, kind: int, *, scale: float = 1.0, extra: Array | None = None
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return B ↦ (H + alpha)⁻¹ B for one kind of curvature, with the intercept as last row.

        ``scale`` multiplies the curvature, to which ``extra`` is added.
        """
        problem, border = self.problem, scale * curvature.borders[:, kind]
        blocks = [scale * block[kind, :, :] for block in curvature.blocks]
        if extra is not None:
            blocks[0] = blocks[0] + extra
        if self.root is not None:
            blocks = [_congruent(self.root, self.walked, blocks)]
        edges = np.cumsum([block.shape[0] for block in blocks])[:-1]
        shift = np.full(1, problem.alpha)
        solvers = [linalg.shifted_solver(block, shift) for block in blocks]

        def inverse(B: np.ndarray) -> np.ndarray:
            parts = zip(solvers, np.split(B, edges), strict=True)
            return np.concatenate([solve(part) for solve, part in parts])

        total = scale * float(curvature.totals[kind])
        return bordered(inverse, border, total, problem)

    # What differs between Z and C.

    @property
    def _width(self) -> int:
        """The number of columns of the widest result."""
        return self.rank if self.inside else self.walked.parts.widest

    @property
    def _inner_matrix(self) -> Array | None:
        return self.P if self.inside else None

    def _lifted(self, theta: np.ndarray) -> Array:
        """Convert coefficients to those of what is walked, in its library and dtype."""
        theta = theta if self.root is None else self.root @ theta
        U = self._local(theta)
        if self.P is not None and not self.inside:
            U = self.P @ U
        return array_ops.astype(U, self.dtype)

    def _local(self, values: np.ndarray) -> Array:
        return array_ops.like(values, self.walked.parts.example(), self.walked.xp.float64)

    def _pulled(self, image: np.ndarray) -> np.ndarray:
        """Undo ``_lifted`` for sums over what is walked: its transpose."""
        if self.P is not None and not self.inside:
            P = self.P
            image = _host(array_ops.namespace(P).matrix_transpose(P) @ self._local(image))
        return image if self.root is None else self.root.T @ image

    def _sum(self, prepare: Callable[[slice], Any], spare: int, result: int) -> list[Any]:
        if self.dtype != self.walked.dtype:  # blocks in float64
            spare += 8 * self.walked.rank
        spare += 8 * self.rank if self.inside else 0
        return self.walked.sum(
            prepare, *self._aligned, row_bytes=spare, result_bytes=result, label="loss"
        )


def bordered(
    inverse: Callable[[np.ndarray], np.ndarray], border: np.ndarray, total: float,
    problem: LossProblem,
) -> Callable[[np.ndarray], np.ndarray]:  # fmt: skip
    """Return B ↦ [A e; eᵀ t]⁻¹ B from A⁻¹; without an intercept, the last row is 0.

    ``border`` is e, ``total`` t. Where the curvature vanishes, t is a little larger.
    """
    if not problem.intercept:
        return lambda B: np.concatenate((inverse(B[:-1]), np.zeros_like(B[-1:])))
    e = inverse(border[:, None])
    left = max(total - float(border @ e[:, 0]), 1e-12 * problem.weight)

    def solve(B: np.ndarray) -> np.ndarray:
        X = inverse(B[:-1])
        b = (B[-1:] - border @ X) / left
        return np.concatenate((X - e @ b, b))

    return solve


def _evaluation(
    loss: Loss, dtype: DType, U: Array, b: Array, P: Array | None, kinds: list[int] | None
) -> Callable[[slice], Any]:
    def prepare(columns: slice) -> Callable[..., Any]:
        u = U if P is not None else U[columns, :]

        def part(z: Array, y: Array, *weights: Array) -> Any:
            z = array_ops.astype(z, dtype)
            z = z if P is None else z @ P
            xp = array_ops.namespace(z)
            f = _by_outputs(array_ops.matmul(z, u), xp.float64) + b
            each = [*loss.value_and_gradient(y, f), loss.statistics(y, f)]
            values, g, statistics = (a * weights[0] for a in each) if weights else each
            sums = (
                xp.sum(values, axis=0),
                _pull(z, g),
                xp.sum(g, axis=0),
                xp.sum(statistics, axis=0),
            )
            if not kinds:
                return sums
            c = loss.curvature(y, f)
            c = c * weights[0] if weights else c
            c = xp.concat([_kind(xp, c, k) for k in kinds], axis=1)
            inner = [_inner(xp, z, c[:, k])[None, :, :] for k in range(len(kinds))]
            # One matrix is not copied: it may be large.
            inner = inner[0] if len(inner) == 1 else xp.concat(inner, axis=0)
            return *sums, inner, _pull(z, c), xp.sum(c, axis=0)

        return part

    return prepare


def _by_outputs(f: Array, dtype: DType) -> Array:
    """Convert scores (rows, outputs), so that those of an output are beside each other in memory.

    NumPy then takes a tenth of the time for a sum or a maximum of the outputs of each row.
    """
    if isinstance(f, np.ndarray):
        return np.asarray(f, dtype=dtype, order="F")
    return array_ops.astype(f, dtype)


def _pull(z: Array, g: Array) -> Array:
    """Return zᵀ g, as BLAS computes it fastest if g has few columns."""
    xp = array_ops.namespace(z)
    return xp.matrix_transpose(xp.matrix_transpose(array_ops.astype(g, z.dtype)) @ z)


def _kind(xp: Any, c: Array, kind: int) -> Array:
    return xp.mean(c, axis=1, keepdims=True) if kind < 0 else c[:, kind : kind + 1]


def _inner(xp: Any, z: Array, c: Array) -> Array:
    """Return zᵀ diag(c) z; rows without curvature are left out if they are many."""
    if c.shape[0]:
        used = xp.nonzero(c > NEGLIGIBLE * xp.max(c))[0]
        if 4 * used.shape[0] < 3 * c.shape[0]:
            z, c = xp.take(z, used, axis=0), xp.take(c, used, axis=0)
    z = z * array_ops.astype(xp.sqrt(c), z.dtype)[:, None]
    return xp.matrix_transpose(z) @ z


def _line(
    loss: Loss, dtype: DType, U: Array, b: Array, D: Array, c: Array, P: Array | None,
    lengths: np.ndarray,
) -> Callable[[slice], Any]:  # fmt: skip
    def prepare(columns: slice) -> Callable[..., Any]:
        u, d = (U, D) if P is not None else (U[columns, :], D[columns, :])
        both = _both(u, b, d, c)

        def part(z: Array, y: Array, *weights: Array) -> Any:
            z = array_ops.astype(z, dtype)
            f, v = both(z if P is None else z @ P)
            xp, sums = array_ops.namespace(f), []
            f, v = array_ops.astype(f, xp.float64), array_ops.astype(v, xp.float64)
            for length in lengths.tolist():
                values = loss.value(y, f + length * v)
                sums.append(xp.sum(values * weights[0] if weights else values, axis=0))
            return xp.stack(sums)

        return part

    return prepare


def _both(u: Array, b: Array, d: Array, c: Array) -> Callable[[Array], tuple[Array, Array]]:
    """Return z ↦ the predictions z u + b and their change z d + c, in the dtype of z."""
    xp, t = array_ops.namespace(u), u.shape[1]
    slopes, constants = xp.concat((u, d), axis=1), array_ops.astype(xp.concat((b, c)), u.dtype)

    def both(z: Array) -> tuple[Array, Array]:
        product = _by_outputs(array_ops.matmul(z, slopes), slopes.dtype)
        product += constants
        return product[:, :t], product[:, t:]

    return both


def _second(
    loss: Loss, dtype: DType, U: Array, b: Array, D: Array, c: Array
) -> Callable[[slice], Any]:
    def prepare(columns: slice) -> Callable[..., Any]:
        both = _both(U[columns, :], b, D[columns, :], c)

        def part(z: Array, y: Array, *weights: Array) -> Any:
            z = array_ops.astype(z, dtype)
            f, v = both(z)
            xp = array_ops.namespace(z)
            h = loss.curve(y, f, v)
            h = h * weights[0] if weights else h
            return _pull(z, h), xp.sum(h, axis=0, dtype=xp.float64)

        return part

    return prepare


def _congruent(root: np.ndarray, factors: Factors, blocks: list[Array]) -> np.ndarray:
    """Return Bᵀ A B for a block-diagonal A."""
    pairs = zip(factors.parts.columns, blocks, strict=True)
    return sum(root[columns].T @ _host(block) @ root[columns] for columns, block in pairs)


def _host(x: Array) -> np.ndarray:
    return array_ops.host_float64(x)
