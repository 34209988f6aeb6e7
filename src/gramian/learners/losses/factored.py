"""A loss over the features of an approximation: Newton steps from sums over the rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, DType
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.losses.easing import minimised
from gramian.learners.losses.leaving_out import MOST_KINDS as MOST_LEFT_OUT
from gramian.learners.losses.leaving_out import (
    best_of_path,
    error,
    pairs_bytes,
    sample_size,
    sampled,
)
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.newton import Evaluation, Minimum, Space
from gramian.learners.losses.problem import LossProblem, LossSolution, joined
from gramian.learners.losses.walks import TEMPORARY, Walks
from gramian.learners.ridge.systems import rounds_too_much
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors, keepable, projected, unprojected

SLACK = 8  # threads keep freed memory: this part of the budget, if not all features fit
SHARE = 8  # sums of a group of outputs take at most this part of the budget


class FactoredSpace(Space):
    """The features of the rows: what both ways to find a direction share."""

    def __init__(self, problem: LossProblem, walks: Walks) -> None:
        self.problem, self.walks = problem, walks
        self.loss, self.weight = problem.loss, problem.weight
        self.rounding = 50 * array_ops.eps(walks.dtype)

    def start(self) -> np.ndarray:
        problem = self.problem
        if problem.warm is not None:
            return problem.warm
        root = self.walks.root
        size = self.walks.rank if root is None else root.shape[1]
        point = np.zeros((size + 1, problem.loss.outputs))
        if problem.intercept and problem.start is not None:
            point[-1] = problem.start
        return point

    def _kinds(self) -> list[int] | None:
        """Return the kinds of curvature that each evaluation needs."""
        return None

    def evaluate(self, point: np.ndarray) -> Evaluation:
        return self._evaluated(self.loss, point)

    def _evaluated(self, loss: Loss, point: np.ndarray) -> Evaluation:
        problem, kinds = self.problem, self._kinds()
        here, curvature = self.walks.evaluate(loss, point, kinds)
        gradient = here.gradient
        gradient[:-1] += problem.alpha * point[:-1]
        gradient[-1] = gradient[-1] + problem.tilt if problem.intercept else 0.0
        values = here.values + self._penalty(point)
        return here._replace(values=values, gradient=gradient, more=curvature)

    def along(self, here: Evaluation, direction: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        loss, point, moved = self.loss, here.point, np.flatnonzero(direction.any(axis=0))
        if not loss.coupled and len(moved) < loss.outputs:
            loss, point, direction = loss.of(moved.tolist()), point[:, moved], direction[:, moved]
        values = self.walks.along(loss, point, direction, lengths)
        values += np.stack([self._penalty(point + s * direction) for s in lengths])
        if values.shape[1] == len(here.values):
            return values
        return replaced(np.tile(here.values, (len(lengths), 1)), moved, values)

    def _penalty(self, point: np.ndarray) -> np.ndarray:
        problem = self.problem
        squares = np.sum(point[:-1] ** 2, axis=0)
        squares = squares.sum(keepdims=True) if self.loss.coupled else squares
        return 0.5 * problem.alpha * squares + problem.tilt * point[-1].sum()

    @abstractmethod
    def inverses(self, point: np.ndarray, kinds: list[int]) -> list[Any]:
        """Return H⁻¹, or about it, at a point for each kind of curvature."""

    def slopes(self, here: Evaluation, direction: np.ndarray) -> np.ndarray:
        slopes = -np.sum(here.gradient * direction, axis=0)
        slopes = slopes.sum(keepdims=True) if self.loss.coupled else slopes
        return np.maximum(slopes, 0.0)


class SummedSpace(FactoredSpace):
    """Directions from ZᵀWZ, which each evaluation sums too."""

    @classmethod
    def over(cls, walks: Walks) -> Callable[[LossProblem], Self]:
        """Return a function that makes the space of a problem with another alpha."""
        return lambda problem: cls(problem, walks.on(problem))

    def _kinds(self) -> list[int]:
        return list(range(self.loss.outputs))

    def direction(self, here: Evaluation, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        direction = np.zeros_like(here.point)
        for k in np.flatnonzero(wanted):
            solve = self.walks.solver(here.more, int(k))
            direction[:, k] = -solve(here.gradient[:, [k]])[:, 0]
        return direction, self.slopes(here, direction)

    def inverses(self, point: np.ndarray, kinds: list[int]) -> list[Any]:
        _, curvature = self.walks.evaluate(self.loss, point, kinds)
        assert curvature is not None
        return [self.walks.solver(curvature, k) for k in range(len(kinds))]


class Summed(Strategy[LossProblem]):
    """Newton steps from ZᵀWZ, summed in one pass each; groups of outputs share the passes."""

    def serves(self, problem: LossProblem) -> bool:
        return not problem.is_exact and not problem.loss.coupled

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        other = with_slack(problem.factors, self._other_memory(problem))
        return [keeping(problem.factors, other, partly=True)]

    def _other_memory(self, problem: LossProblem) -> Amounts:
        factors, group = problem.factors, _group(problem)
        widest, r = factors.parts.widest, factors.rank
        result = 8 * widest**2 * group + 8 * widest * group
        spare, P, walked = 8 * TEMPORARY * group + 16 * widest, 0, projected(factors)
        if walked is not None and array_ops.itemsize(factors.dtype) == 4:  # it may be precise
            spare, P = spare + 8 * (walked.rank + r), 8 * walked.rank * r
        passes = max((Z.walk_bytes(spare, result) for Z in (walked or factors).parts), default=0)
        core = 0 if factors.core is None else 4 * 8 * r**2
        return {
            **small_memory(problem),
            "left-out rows": left_out_bytes(problem),
            "sums": P + passes + 2 * group * 8 * sum(Z.shape[1] ** 2 for Z in factors.parts),
            "decomposition": 2 * 8 * widest**2 + core,
        }

    @one_blas_thread()
    def solve(self, problem: LossProblem) -> LossSolution:
        walked, P, dtype = problem.factors, None, problem.factors.dtype
        if is_precise(problem):
            walked, P = unprojected(walked)
            dtype = walked.xp.float64
        other = with_slack(walked, self._other_memory(problem))
        walked = walked.persist(room_left(other), partly=True)
        return best_of_path(problem, lambda part: self._solved(part, walked, P, dtype))

    def _solved(
        self, problem: LossProblem, walked: Factors, P: Array | None, dtype: DType
    ) -> LossSolution:
        step, outputs = _group(problem), list(range(problem.loss.outputs))
        minima, left_out = [], 0.0
        rows = LeftOut(problem) if problem.leaves_out else None
        for first in range(0, len(outputs), step):
            part = problem.of(outputs[first : first + step])
            walks = Walks(part, walked, P, dtype=dtype, inside=P is not None)
            minimum, space = minimised(part, SummedSpace.over(walks))
            minima.append(minimum)
            if rows is not None:
                left_out += rows.error(space, minimum)
        solution = as_solution(joined(minima), walks)
        return solution if rows is None else solution._replace(error=left_out)


class LeftOut:
    """Some rows, to be left out; H counts each of them ``scale`` times."""

    def __init__(
        self, problem: LossProblem, among: np.ndarray | None = None, scale: float = 1.0
    ) -> None:
        self._numbers, self._scale = sampled(problem, among), scale
        self._Z = array_ops.host_float64(problem.factors.coordinates(self._numbers))

    def error(self, space: FactoredSpace, minimum: Minimum) -> float:
        """Return the mean loss of the rows if they are left out."""
        root, outputs = space.walks.root, space.loss.outputs
        Z = self._Z if root is None else self._Z @ root
        Z = np.column_stack((Z, np.ones(len(Z))))
        kinds = list(range(outputs)) if outputs <= MOST_LEFT_OUT else [-1]

        def leverages(loss: Loss, whole: bool) -> Iterator[np.ndarray]:
            space.loss = loss
            for solve in space.inverses(minimum.point, kinds):
                yield Z @ solve(Z.T) if whole else np.sum(Z.T * solve(Z.T), axis=0)

        f = Z @ minimum.point
        # A leverage that outputs share is not that of any of them, so it is taken as it is.
        counted = 0.0 if kinds == [-1] else self._scale
        return error(space.problem, minimum.smoothed, self._numbers, f, leverages, counted=counted)


def replaced(values: np.ndarray, outputs: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return values (..., outputs) with those of some outputs replaced."""
    values = values.copy()
    values[..., outputs] = new
    return values


def left_out_bytes(problem: LossProblem) -> int:
    t = problem.loss.outputs
    rows = 8 * sample_size(problem) * (5 * (problem.factors.rank + 1) + 6 * t)
    return rows + pairs_bytes(problem)


def with_slack(factors: Factors, other: Amounts) -> Amounts:
    """Return ``other`` with room for what the allocator keeps, if not all rows fit beside it."""
    room = room_left(other)
    if keepable(factors, room, partly=True) == factors.shape[0]:
        return other
    return {**other, "freed blocks": min(config.memory_budget() // SLACK, room)}


def is_precise(problem: LossProblem) -> bool:
    return rounds_too_much(problem.factors, problem.alpha, problem.weights)


def _group(problem: LossProblem) -> int:
    """Return how many outputs are solved together."""
    size = 8 * (problem.factors.parts.widest**2 + 1)
    most = config.memory_budget() // SHARE // (8 * size)
    return int(np.clip(most, 1, problem.loss.outputs))


def small_memory(problem: LossProblem) -> Amounts:
    n, t, r = problem.factors.shape[0], problem.loss.outputs, problem.factors.rank
    return {"targets": 8 * n * 5, "coefficients": 8 * 8 * (r + 1) * t}


def as_solution(minimum: Minimum, walks: Walks) -> LossSolution:
    coefficients = minimum.point[:-1]
    if walks.root is not None:
        coefficients = walks.root @ coefficients
    return LossSolution(
        walks._local(coefficients),
        minimum.point[-1].copy(),
        minimum.values,
        minimum.loss,
        minimum.iterations,
        minimum.accuracy,
        minimum.met,
        minimum.point,
    )
