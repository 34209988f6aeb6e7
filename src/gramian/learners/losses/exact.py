"""A loss over the exact kernel matrix: coefficients a of the rows, f = K a + b.

The derivative with respect to a is K ρ with ρ = g + alpha a, where g is that of the loss. With the
second derivatives W = A Aᵀ of the loss, a Newton step solves
(alpha I + AᵀKA) s = alpha Aᵀ1 b - AᵀK ρ, and changes a by -(ρ + A s) / alpha and the intercept by
b, which follows from the sum of A s. Rows without curvature have s = 0: only the others enter the
system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.kernels.tiles import tile_columns
from gramian.learners.losses.easing import minimised
from gramian.learners.losses.leaving_out import (
    best_of_path,
    error,
    pairs_bytes,
    sample_size,
    sampled,
)
from gramian.learners.losses.loss import Loss, Root
from gramian.learners.losses.newton import Evaluation, Minimum, Space
from gramian.learners.losses.problem import LossProblem, LossSolution, joined
from gramian.learners.losses.walks import TEMPORARY
from gramian.learners.ridge.exact import preconditioner_rank
from gramian.learners.strategy import Strategy
from gramian.matrices.gram import KEPT_BYTES, Gram
from gramian.samplers.pivoted import factor_bytes, pivoted_cholesky

MOST_PRODUCTS = 500
LEAST_CURVATURE = 1e-11  # of a row, relative to the largest: less makes its leverage round


class _State(NamedTuple):
    """What a direction needs of an evaluation, all (n, outputs), on the host."""

    f: np.ndarray
    image: np.ndarray  # K a


class ExactSpace(Space):
    """Coefficients of all rows."""

    def __init__(self, problem: LossProblem, gram: Gram, K: Array | None) -> None:
        self.problem, self.gram, self.K = problem, gram, K
        self.loss, self.weight = problem.loss, problem.weight
        self.rounding = 50 * array_ops.eps(gram.dtype)
        self._y = array_ops.host_float64(problem.y)
        self._w = np.ones((gram.shape[0], 1))
        if problem.weights is not None:
            self._w = array_ops.host_float64(problem.weights)[:, None]
        self._factor: np.ndarray | None = None
        self._along: tuple[np.ndarray, np.ndarray] | None = None  # the last direction, and K times

    def start(self) -> np.ndarray:
        if self.problem.warm is not None:
            return self.problem.warm
        point = np.zeros((self.gram.shape[0] + 1, self.loss.outputs))
        if self.problem.intercept and self.problem.start is not None:
            point[-1] = self.problem.start
        return point

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return K V, on the host."""
        if self.K is None:
            return array_ops.host_float64(self.gram.matmul(V))
        local = array_ops.like(V, self.K, self.K.dtype)
        return array_ops.host_float64(self.K @ local)

    def evaluate(self, point: np.ndarray) -> Evaluation:
        problem, loss, y, w = self.problem, self.loss, self._y, self._w
        a, b = point[:-1], point[-1]
        image = self.times(a)
        f = image + b
        values = self._value(point, image)
        g = w * loss.gradient(y, f)
        statistics = np.sum(w * loss.statistics(y, f), axis=0)
        last = g.sum(axis=0) + problem.tilt if problem.intercept else np.zeros_like(b)
        gradient = np.concatenate((g + problem.alpha * a, last[None, :]))
        return Evaluation(point, values, gradient, statistics, _State(f, image))

    def along(self, here: Evaluation, direction: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        image, change = here.more.image, self._change(direction[:-1])
        pairs = [(here.point + s * direction, image + s * change) for s in lengths]
        return np.stack([self._value(*pair) for pair in pairs])

    def _change(self, direction: np.ndarray) -> np.ndarray:
        """Return K times a direction, which is needed for its slope and for steps along it."""
        if self._along is None or not np.array_equal(self._along[0], direction):
            self._along = direction, self.times(direction)
        return self._along[1]

    def _value(self, point: np.ndarray, image: np.ndarray) -> np.ndarray:
        """Return the objective at a point with image K a."""
        problem, a, b = self.problem, point[:-1], point[-1]
        penalty = np.sum(a * image, axis=0)
        penalty = penalty.sum(keepdims=True) if self.loss.coupled else penalty
        values = np.sum(self._w * self.loss.value(self._y, image + b), axis=0)
        return values + 0.5 * problem.alpha * penalty + problem.tilt * b.sum()

    def direction(self, here: Evaluation, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        problem, loss, y, rho = self.problem, self.loss, self._y, here.gradient[:-1]
        root = loss.root(y, here.more.f)
        root = Root(np.sqrt(self._w) * root.scale, root.q)
        right = [-root.transposed_times(self.times(rho))]
        if problem.intercept:
            units = np.eye(loss.outputs) if loss.coupled else np.ones((1, loss.outputs))
            ones = np.ones((len(y), 1))
            right += [problem.alpha * root.transposed_times(ones * unit) for unit in units]
        s, *others = self._solved(root, right, here)
        b = np.zeros(loss.outputs)
        if problem.intercept:
            weights = np.stack([root.times(each).sum(axis=0) for each in others])
            lacking = -here.gradient[-1] - root.times(s).sum(axis=0)
            b = _intercepts(weights, lacking, coupled=loss.coupled, least=1e-12 * self.weight)
            shares = b if loss.coupled else [b]
            s = s + sum(share * each for share, each in zip(shares, others, strict=True))
        direction = np.concatenate((-(rho + root.times(s)) / problem.alpha, b[None, :]))
        change = self._change(direction[:-1])
        slopes = -np.sum(here.gradient[:-1] * change, axis=0)
        slopes -= here.gradient[-1] * direction[-1]
        slopes = slopes.sum(keepdims=True) if loss.coupled else slopes
        return direction, np.maximum(slopes, 0.0)

    def _solved(self, root: Root, right: list[np.ndarray], here: Evaluation) -> list[np.ndarray]:
        """Return (alpha I + AᵀKA)⁻¹ of each array (n, outputs)."""
        if self.loss.coupled:
            return self._iterated(root, right, here)
        active = np.flatnonzero(root.scale[:, 0] > 1e-8 * root.scale.max())
        if self.K is None and 8 * len(active) ** 2 > _room_for_active():
            return self._iterated(root, right, here)
        out = [np.zeros_like(each) for each in right]
        if len(active):
            B = np.column_stack([each[active, 0] for each in right])
            for each, column in zip(
                out, self._direct(root.scale[active], active, B).T, strict=True
            ):
                each[active, 0] = column
        return out

    def _direct(self, scale: np.ndarray, active: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Solve with the rows and columns of the active rows; ``scale`` has shape (active, 1)."""
        if self.K is None:
            matrix = self.gram.block(active, active)
        elif len(active) == self.K.shape[0]:
            matrix = array_ops.copy(self.K)
        else:
            matrix = array_ops.take_rows(self.K, active)
            xp = array_ops.namespace(matrix)
            matrix = xp.take(matrix, array_ops.like(active, matrix), axis=1)
        xp = array_ops.namespace(matrix)
        matrix = array_ops.astype(matrix, xp.float64)
        c = array_ops.like(scale, matrix, xp.float64)
        matrix = matrix * c
        matrix *= xp.matrix_transpose(c)
        diagonal = array_ops.copy(xp.linalg.diagonal(matrix)) + self.problem.alpha
        matrix = array_ops.set_diagonal(matrix, diagonal)
        local = array_ops.like(B, matrix, xp.float64)
        return array_ops.host_float64(array_ops.solve_symmetric(matrix, local))

    def derivatives(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the curvature of the weighted loss, (n, outputs)."""
        loss, y, w = self.loss, self._y, self._w
        return w * loss.gradient(y, f), w * loss.curvature(y, f)

    def left_out(self, point: np.ndarray, smoothed: Loss, numbers: np.ndarray) -> float:
        """Return the mean loss of some rows if they are left out; the matrix is stored."""
        K = array_ops.host_float64(self.K)
        f = K @ point[:-1] + point[-1]

        def leverages(loss: Loss, whole: bool) -> Iterator[np.ndarray]:
            for c in (self._w * loss.curvature(self._y, f)).T:
                yield self._pairs(K, c, numbers) if whole else self._leverages(K, c)[numbers]

        return error(self.problem, smoothed, numbers, f[numbers], leverages)

    def _leverages(self, K: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the diagonal of H⁻¹ between all rows, from that of (alpha I + W^½ K W^½)⁻¹."""
        alpha = self.problem.alpha
        c = np.maximum(c, LEAST_CURVATURE * c.max() + np.finfo(float).tiny)
        root = np.sqrt(c)
        M = root[:, None] * K
        M *= root
        M[np.diag_indices_from(M)] += alpha
        L = linalg.lower_factor(M)
        along = 0.0
        if self.problem.intercept:
            inner = linalg.solve_lower(L, (root * (K @ c))[:, None])
            along = linalg.solve_lower(L, inner, transposed=True)[:, 0] / root  # zᵀH⁻¹ZᵀW1
        h = (1.0 - alpha * linalg.diagonal_of_inverse(L)) / c
        if not self.problem.intercept:
            return h
        total = c.sum() - c @ along
        return h + (1.0 - along) ** 2 / max(total, 1e-12 * self.weight)

    def _pairs(self, K: np.ndarray, c: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return H⁻¹ between some rows where rows have the curvatures c (n,).

        With W = diag(c), H⁻¹ = (I - Zᵀ W^½ (alpha I + W^½ K W^½)⁻¹ W^½ Z) / alpha.
        """
        alpha, active = self.problem.alpha, np.flatnonzero(c > 1e-16 * c.max())
        root = np.sqrt(c[active])[:, None]
        M = root * K[np.ix_(active, active)] * root.T
        M[np.diag_indices_from(M)] += alpha
        L = linalg.lower_factor(M)
        ones = K[:, active] @ c[active]  # K W 1
        inner = linalg.solve_lower(
            L, root * np.column_stack((K[np.ix_(active, numbers)], ones[active]))
        )
        H = (K[np.ix_(numbers, numbers)] - inner[:, :-1].T @ inner[:, :-1]) / alpha
        if not self.problem.intercept:
            return H
        along = (ones[numbers] - inner[:, :-1].T @ inner[:, -1]) / alpha  # zᵀH⁻¹ZᵀW1
        total = c.sum() - (c[active] @ ones[active] - inner[:, -1] @ inner[:, -1]) / alpha
        return H + np.outer(1.0 - along, 1.0 - along) / max(total, 1e-12 * self.weight)

    def _iterated(self, root: Root, right: list[np.ndarray], here: Evaluation) -> list[np.ndarray]:
        n, t, count = len(self._y), self.loss.outputs, len(right)
        alpha = self.problem.alpha
        precondition = self._preconditioner(here, t * count)

        # A column of the system is one array (n, outputs), whose outputs may be coupled.
        def wide(V: np.ndarray) -> list[np.ndarray]:
            return [V[:, i].reshape(n, t) for i in range(count)]

        def tall(arrays: list[np.ndarray]) -> np.ndarray:
            return np.column_stack([each.reshape(-1) for each in arrays])

        def apply(V: np.ndarray) -> np.ndarray:
            inner = np.concatenate([root.times(each) for each in wide(V)], axis=1)
            images = np.split(self.times(inner), count, axis=1)
            return tall([root.transposed_times(each) for each in images]) + alpha * V

        def approximate(V: np.ndarray) -> np.ndarray:
            solved = precondition(np.concatenate(wide(V), axis=1))
            return tall(np.split(solved, count, axis=1))

        tol = max(1e-8, 50 * array_ops.eps(self.gram.dtype))
        found = linalg.conjugate_gradients(
            apply, tall(right), approximate, tol=tol, max_iter=MOST_PRODUCTS
        )[0]
        return wide(found)

    def _preconditioner(self, here: Evaluation, columns: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return about (alpha I + AᵀKA)⁻¹, with one curvature per row for all outputs."""
        alpha = self.problem.alpha
        c = np.sqrt(self._w * self.loss.curvature(self._y, here.more.f).mean(axis=1, keepdims=True))
        if self.K is not None:
            local = array_ops.like(c, self.K, self.K.dtype)
            scaled = self.K * local
            scaled *= array_ops.namespace(local).matrix_transpose(local)
            return linalg.shifted_solver(scaled, np.full(columns, alpha))
        if self._factor is None:
            rank = preconditioner_rank(self.gram.shape[0])
            found = pivoted_cholesky(self.gram, rank, self.problem.rng, tol=1e-10)
            self._factor = array_ops.host_float64(found.factor)
        F = c * self._factor
        inner = linalg.shifted_solver(F.T @ F, np.full(columns, alpha))
        return lambda V: (V - F @ inner(F.T @ V)) / alpha


def _room_for_active() -> int:
    """Return the memory for the matrix of the rows with curvature, if K itself is not stored."""
    return min(KEPT_BYTES, config.memory_budget() // 8)


def _intercepts(
    weights: np.ndarray, lacking: np.ndarray, *, coupled: bool, least: float
) -> np.ndarray:
    """Return b (outputs,) with weightsᵀ b = lacking: weights (outputs, outputs) or (1, outputs)."""
    if not coupled:
        # Where the curvature vanishes, the intercept moves far in the direction of its gradient.
        return lacking / np.maximum(weights[0], least)
    # The same constant for all classes changes nothing: the smallest change is taken.
    return np.linalg.lstsq(weights.T, lacking, rcond=1e-10)[0]


class ExactNewton(Strategy[LossProblem]):
    """Newton steps with the exact matrix, stored if it is small enough."""

    def serves(self, problem: LossProblem) -> bool:
        return problem.is_exact

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        gram, t = problem.gram, problem.loss.outputs
        n, item = gram.shape[0], array_ops.itemsize(gram.dtype)
        together = t if problem.loss.coupled else 1
        systems = 1 + (together if problem.intercept else 0)
        columns = min(n, tile_columns(gram.rows.place.reference))
        step = {
            "targets": 8 * n * 5,
            "coefficients": 8 * n * (TEMPORARY * together + 2 * t + 8 * together * systems),
            "blocks": gram.rows.walk_bytes(item * (columns + 4 * together * systems)),
        }
        if gram.fits():
            left_out = 3 * 8 * n * sample_size(problem) + pairs_bytes(problem)
            left_out += 8 * n**2 + 8 * sample_size(problem) ** 2 if problem.leaves_out else 0
            return [{**step, "kernel matrix": 3 * 8 * n**2, "left-out rows": left_out}]
        rank = preconditioner_rank(n)
        return [
            {**step, "preconditioner": factor_bytes(gram.rows, rank, np.float64) + 8 * n * rank},
            {**step, "active rows": 3 * min(_room_for_active(), 8 * n**2)},
        ]

    @one_blas_thread()
    def solve(self, problem: LossProblem) -> LossSolution:
        gram, K = problem.gram, None
        if gram.fits():
            K = array_ops.astype(gram.dense(), gram.rows.xp.float64)
        elif problem.leaves_out:
            raise ValueError(
                f"alpha='loo' decomposes the matrix, and that of {gram.shape[0]} rows is too large "
                "to store. Use an approximation, such as kernel=Nystroem(kernel, 1000), or set "
                "alpha to a number."
            )
        return best_of_path(problem, lambda part: self._solved(part, gram, K))

    def _solved(self, problem: LossProblem, gram: Gram, K: Array | None) -> LossSolution:
        outputs = range(problem.loss.outputs)
        groups = [list(outputs)] if problem.loss.coupled else [[k] for k in outputs]
        minima, left_out = [], 0.0
        numbers = sampled(problem) if problem.leaves_out else None
        for group in groups:
            minimum, space = minimised(problem.of(group), lambda part: ExactSpace(part, gram, K))
            minima.append(minimum)
            if numbers is not None:
                left_out += space.left_out(minimum.point, minimum.smoothed, numbers)
        solution = exact_solution(joined(minima), gram)
        return solution if numbers is None else solution._replace(error=left_out)


def exact_solution(minimum: Minimum, gram: Gram) -> LossSolution:
    point = minimum.point
    xp = gram.rows.xp
    return LossSolution(
        array_ops.like(point[:-1], gram.points.place.reference, xp.float64),
        point[-1].copy(),
        minimum.values,
        minimum.loss,
        minimum.iterations,
        minimum.accuracy,
        minimum.met,
        point,
    )
