"""A loss over the features of an approximation: Newton steps from sums, or by iteration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array, DType
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.losses.leaving_out import MOST_KINDS as MOST_LEFT_OUT
from gramian.learners.losses.leaving_out import best_of_path, error, sample_size, sampled
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.newton import Evaluation, Minimum, Space, minimise
from gramian.learners.losses.problem import LossProblem, LossSolution, joined
from gramian.learners.losses.walks import TEMPORARY, Curvature, Walks
from gramian.learners.ridge.falkon import KERNEL_VALUE, PASS, PASS_TARGET
from gramian.learners.ridge.systems import rounds_too_much
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors, keepable, projected, unprojected
from gramian.rows import FeatureRows

PRODUCTS = 12  # expected in a Newton step by iteration
MOST_PRODUCTS = 200
MOST_KINDS = 4  # more outputs share one preconditioner
SAMPLE_SHARE = 1 / 8  # of the budget, for the features of the preconditioner's rows
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
        problem, kinds = self.problem, self._kinds()
        here, curvature = self.walks.evaluate(self.loss, point, kinds)
        gradient = here.gradient
        gradient[:-1] += problem.alpha * point[:-1]
        gradient[-1] = gradient[-1] + problem.tilt if problem.intercept else 0.0
        values = here.values + self._penalty(point)
        return here._replace(values=values, gradient=gradient, more=curvature)

    def along(self, here: Evaluation, direction: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        values = self.walks.along(self.loss, here.point, direction, lengths)
        return values + np.stack([self._penalty(here.point + s * direction) for s in lengths])

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


class IteratedSpace(FactoredSpace):
    """Directions by conjugate gradients, each product in a pass over the rows.

    The preconditioner is the matrix of a sample of rows.
    """

    def __init__(self, problem: LossProblem, walks: Walks, sample: Walks, scale: float) -> None:
        super().__init__(problem, walks)
        self._sample, self._scale = sample, scale
        P = unprojected(problem.factors)[1]
        # Some features may be nonzero only for a landmark far from all other rows. Since
        # P Pᵀ = W⁺, the features of the landmarks have the inner products (PᵀP)⁻¹.
        self._landmarks = None if P is None else linalg.inverse_inner(P)
        self._relative = 1.0  # what the last direction could gain, relative to the objective

    def direction(self, here: Evaluation, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        loss, walks, problem = self.loss, self.walks, self.problem
        shape = here.point.shape
        right = -here.gradient * (1.0 if loss.coupled else wanted)
        columns = 1 if loss.coupled else shape[1]
        solvers = self._preconditioners(here)

        def precondition(R: np.ndarray) -> np.ndarray:
            R = R.reshape(shape)
            if len(solvers) == 1:
                return solvers[0](R).reshape(-1, columns)
            pairs = zip(solvers, R.T, strict=True)
            return np.column_stack([solve(r[:, None])[:, 0] for solve, r in pairs])

        def apply(V: np.ndarray) -> np.ndarray:
            V = V.reshape(shape)
            image = walks.curve(loss, here.point, V)
            image[:-1] += problem.alpha * V[:-1]
            image[-1] = image[-1] + 1e-12 * problem.weight * V[-1] if problem.intercept else V[-1]
            return image.reshape(-1, columns)

        tol = float(np.clip(0.3 * sqrt(self._relative), 1e-5, 0.1))
        with one_blas_thread():
            found = linalg.conjugate_gradients(
                apply, right.reshape(-1, columns), precondition, tol=tol, max_iter=MOST_PRODUCTS
            )[0]
        direction = found.reshape(shape)
        slopes = self.slopes(here, direction)
        sizes = np.maximum(np.abs(here.values), np.finfo(float).tiny)
        self._relative = min(float(np.max(slopes / sizes)), 1.0)
        return direction, slopes

    def _preconditioners(self, here: Evaluation) -> list[Any]:
        kinds = [-1]
        if not self.loss.coupled and self.loss.outputs <= MOST_KINDS:
            kinds = list(range(self.loss.outputs))
        return self._inverses(here.point, kinds, self._landmarks)

    def inverses(self, point: np.ndarray, kinds: list[int]) -> list[Any]:
        # The landmarks would count twice: the rows that are left out are all in the sample.
        return self._inverses(point, kinds, None)

    def _inverses(self, point: np.ndarray, kinds: list[int], landmarks: Array | None) -> list[Any]:
        curvature: Curvature | None
        _, curvature = self._sample.evaluate(self.loss, point, kinds)
        assert curvature is not None
        solvers = []
        for i in range(len(kinds)):
            extra = None
            if landmarks is not None:
                mean = self._scale * float(curvature.totals[i]) / self.problem.rows.shape[0]
                block = curvature.blocks[0]
                extra = mean * array_ops.like(landmarks, block, block.dtype)
            solvers.append(self._sample.solver(curvature, i, scale=self._scale, extra=extra))
        return solvers


class Summed(Strategy[LossProblem]):
    """Newton steps from ZᵀWZ, summed in one pass each; groups of outputs share the passes."""

    def serves(self, problem: LossProblem) -> bool:
        return not problem.is_exact and not problem.loss.coupled

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        return [keeping(problem.factors, self._other_memory(problem), partly=True)]

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
            **_small_memory(problem),
            "left-out rows": _left_out_bytes(problem),
            "sums": P + passes + 2 * group * 8 * sum(Z.shape[1] ** 2 for Z in factors.parts),
            "decomposition": 2 * 8 * widest**2 + core,
        }

    @one_blas_thread()
    def solve(self, problem: LossProblem) -> LossSolution:
        walked, P, dtype = problem.factors, None, problem.factors.dtype
        if _precise(problem):
            walked, P = unprojected(walked)
            dtype = walked.xp.float64
        walked = walked.persist(room_left(self._other_memory(problem)), partly=True)
        return best_of_path(problem, lambda part: self._solved(part, walked, P, dtype))

    def _solved(
        self, problem: LossProblem, walked: Factors, P: Array | None, dtype: DType
    ) -> LossSolution:
        step, outputs = _group(problem), list(range(problem.loss.outputs))
        minima, left_out = [], 0.0
        rows = _LeftOut(problem) if problem.leaves_out else None
        for first in range(0, len(outputs), step):
            part = problem.of(outputs[first : first + step])
            walks = Walks(part, walked, P, dtype=dtype, inside=P is not None)
            space = SummedSpace(part, walks)
            minima.append(minimise(space, tol=part.tol, max_iter=part.max_iter))
            if rows is not None:
                left_out += rows.error(space, minima[-1])
        solution = _solution(joined(minima), walks)
        return solution if rows is None else solution._replace(error=left_out)


class Iterated(Strategy[LossProblem]):
    """Newton steps by conjugate gradients over C, whatever the loss."""

    def serves(self, problem: LossProblem) -> bool:
        if problem.is_exact:
            return False
        return problem.loss.coupled or (not problem.loss.kinked and self._pays(problem))

    def _pays(self, problem: LossProblem) -> bool:
        """Whether passes over C should cost less than summing ZᵀWZ."""
        factors, t = problem.factors, problem.loss.outputs
        C = projected(factors) or factors
        n, r, m = factors.shape[0], factors.rank, C.rank
        room = room_left(self._other_memory(problem))
        missing = 1.0 - keepable(C, room, partly=True) / max(n, 1)
        make = KERNEL_VALUE if any(isinstance(Z, FeatureRows) for Z in C.parts) else 0
        sums = r * r * t + missing * (make * m + m * r)
        return PRODUCTS * m * (PASS + 2 * PASS_TARGET * t + missing * make) < sums

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        C = projected(problem.factors) or problem.factors
        return [keeping(C, self._other_memory(problem), partly=True, name="kernel values")]

    def _other_memory(self, problem: LossProblem) -> Amounts:
        factors, t = problem.factors, problem.loss.outputs
        C, r = projected(factors) or factors, factors.rank
        m, kinds = C.rank, t if t <= MOST_KINDS and not problem.loss.coupled else 1
        widest = factors.parts.widest
        sampled = max(
            (
                Z.walk_bytes(8 * TEMPORARY * t + 16 * widest, 8 * kinds * widest**2)
                for Z in factors.parts
            ),
            default=0,
        )
        passes = max((Z.walk_bytes(8 * (TEMPORARY * t + m), 8 * m * t) for Z in C.parts), default=0)
        kinds_bytes = 8 * min(t, MOST_LEFT_OUT) * widest**2 if problem.leaves_out else 0
        small = (2 + 2 * kinds) * 8 * r**2 + (0 if C is factors else 8 * (m * r + 3 * r**2))
        return {
            **_small_memory(problem),
            "left-out rows": _left_out_bytes(problem) + kinds_bytes,
            "preconditioner": small + factors.parts.take_bytes(_sample_size(factors)),
            "iteration": 12 * 8 * (r + m) * t,
            "blocks": max(sampled, passes),
        }

    def solve(self, problem: LossProblem) -> LossSolution:
        C, P = unprojected(problem.factors)
        dtype = C.xp.float64 if _precise(problem) else C.dtype
        C = C.persist(room_left(self._other_memory(problem)), partly=True)
        sample, numbers = _sample(problem)
        return best_of_path(problem, lambda part: self._solved(part, C, P, dtype, sample, numbers))

    def _solved(
        self, problem: LossProblem, C: Factors, P: Array | None, dtype: DType, sample: Walks,
        numbers: np.ndarray,
    ) -> LossSolution:  # fmt: skip
        walks, sample = Walks(problem, C, P, dtype=dtype), sample.on(problem)
        scale = problem.factors.shape[0] / len(numbers)
        space = IteratedSpace(problem, walks, sample, scale)
        minimum = minimise(space, tol=problem.tol, max_iter=problem.max_iter)
        solution = _solution(minimum, walks)
        if not problem.leaves_out:
            return solution
        rows = _LeftOut(problem, numbers, scale)  # those that H is of
        return solution._replace(error=rows.error(space, minimum))


class _LeftOut:
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

        def leverages(loss: Loss) -> np.ndarray:
            space.loss = loss
            solvers = space.inverses(minimum.point, kinds)
            return np.column_stack([np.sum(Z.T * solve(Z.T), axis=0) for solve in solvers])

        f = Z @ minimum.point
        # A leverage that outputs share is not that of any of them, so it is taken as it is.
        counted = 0.0 if kinds == [-1] else self._scale
        return error(space.problem, minimum.smoothed, self._numbers, f, leverages, counted=counted)


def _left_out_bytes(problem: LossProblem) -> int:
    t = problem.loss.outputs
    return 8 * sample_size(problem) * (5 * (problem.factors.rank + 1) + 6 * t)


def _sample(problem: LossProblem) -> tuple[Walks, np.ndarray]:
    """Return walks over some rows, and their numbers."""
    factors, n = problem.factors, problem.factors.shape[0]
    size = _sample_size(factors)
    numbers = np.sort(problem.rng.choice(n, size, replace=False))
    few = factors.take(numbers)
    y, weights = (
        None if each is None else _local_rows(each, numbers, few)
        for each in (problem.y, problem.weights)
    )
    return Walks(problem, few, None, dtype=few.dtype, y=y, weights=weights), numbers


def _sample_size(factors: Factors) -> int:
    """Return how many rows the preconditioner has: as many as a share of the budget allows."""
    n, r = factors.shape[0], factors.rank
    most = int(SAMPLE_SHARE * config.memory_budget() / max(factors.parts.take_bytes(1), 1))
    return min(ceil(max(sqrt(n * r), 4.0 * r)), 20 * r, max(most, r), n)


def _local_rows(values: Array, numbers: np.ndarray, few: Factors) -> Array:
    """Return rows of an aligned array, in the library of these factors."""
    taken = array_ops.take_rows(values, numbers)
    return array_ops.like(taken, few.parts.example(), few.xp.float64)


def _precise(problem: LossProblem) -> bool:
    return rounds_too_much(problem.factors, problem.alpha, problem.weights)


def _group(problem: LossProblem) -> int:
    """Return how many outputs are solved together."""
    size = 8 * (problem.factors.parts.widest**2 + 1)
    most = config.memory_budget() // SHARE // (8 * size)
    return int(np.clip(most, 1, problem.loss.outputs))


def _small_memory(problem: LossProblem) -> Amounts:
    n, t, r = problem.factors.shape[0], problem.loss.outputs, problem.factors.rank
    return {"targets": 8 * n * 5, "coefficients": 8 * 8 * (r + 1) * t}


def _solution(minimum: Minimum, walks: Walks) -> LossSolution:
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
