"""A loss over the features of an approximation: steps that take passes over the rows only.

They are quasi-Newton steps while these converge, and then Newton steps by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, sqrt
from typing import Any

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread, side_by_side
from gramian.learners.losses.easing import larger_penalties, minimised
from gramian.learners.losses.factored import (
    FactoredSpace,
    LeftOut,
    as_solution,
    is_precise,
    left_out_bytes,
    replaced,
    small_memory,
    with_slack,
)
from gramian.learners.losses.leaving_out import MOST_KINDS as MOST_LEFT_OUT
from gramian.learners.losses.leaving_out import best_of_path
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.newton import Evaluation, gaps
from gramian.learners.losses.problem import LossProblem, LossSolution
from gramian.learners.losses.quasi_newton import MOST_PAIRS, Course
from gramian.learners.losses.thinning import thinned
from gramian.learners.losses.truncated import conjugate_gradients
from gramian.learners.losses.walks import TEMPORARY, Walks
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors, keepable, projected, unprojected
from gramian.rows import FeatureRows

# Costs in units of one operation of a float32 matrix product, about 0.01 ns on one core.
KERNEL_VALUE = 200  # computing one kernel value, or another feature
PASS, PASS_TARGET = 28, 4  # reading one entry of C, and multiplying it for each target
APPLIED = 50  # applying one entry of a preconditioner to a single column
PASSES = 5  # of an iteration for each step with sums: it starts from a sample, so it takes fewer
RENEWED = 12  # products in a step: with more, the next step has a new preconditioner
WORTH = 3.0  # preconditioners, in passes, before a curvature that jumps gets a new one
LAST = 4.0  # times the tolerance: a step that gains less may be the last
MOST_KINDS = 4  # more outputs share one preconditioner,
SEPARATE = 25.0  # unless their own take at most as long as so many passes,
KINDS_SHARE = 1 / 8  # and this part of the budget
THINNED = 1  # rows for each feature in one of several preconditioners, drawn from the sample
FEWER = 2.0  # times fewer rows in the sample: the minimum of the sample is the first point
ROUGH = 1e-2  # its accuracy: it differs from the minimum of all rows by more
SAMPLE_SHARE = 1 / 8  # of the budget, for the features of the preconditioner's rows
SAMPLE_MOST = 20  # of these rows for each feature
EACH = 10  # of them for each class, or the intercepts of some classes are far off


class IteratedSpace(FactoredSpace):
    """Directions from gradients, or by conjugate gradients with each product in a pass.

    The preconditioner is the matrix of a sample of rows, and of the landmarks: some features may be
    nonzero only for a landmark far from all other rows. ``landmarks`` are the inner products of
    their features, if there are any.
    """

    def __init__(
        self, problem: LossProblem, walks: Walks, sample: Walks, scale: float,
        landmarks: Array | None,
    ) -> None:  # fmt: skip
        super().__init__(problem, walks)
        self._sample, self._scale, self._landmarks = sample, scale, landmarks
        self._course = Course(coupled=problem.loss.coupled)
        self._relative = 1.0  # what the last direction could gain, relative to the objective
        self._solvers: list[Any] = []  # the preconditioner, and the loss it was made for
        self._made_for: Loss | None = None
        self._spent = 0.0  # on passes since then
        self._pass, self._renewal = self._costs()
        self._last: Evaluation | None = None
        self._last_loss: Loss | None = None

    def _costs(self) -> tuple[float, float]:
        """Return what a pass costs, and a preconditioner."""
        kinds, rows = len(self._kinds_of_curvature()), self._sample.walked.shape[0]
        rows = _thinned_size(self.problem) if kinds > 1 else rows
        one = _preconditioner_cost(rows, self.walks.rank)
        return _pass_cost(self.walks.walked, self.loss.outputs), kinds * one

    def evaluate(self, point: np.ndarray) -> Evaluation:
        self._spent += self._pass
        last, loss = self._last, self.loss
        if last is None or self._last_loss is not loss or loss.coupled:
            here = super().evaluate(point)
        else:
            moved = np.flatnonzero((point != last.point).any(axis=0))
            here = last._replace(point=point)
            if len(moved):
                there = self._evaluated(loss.of(moved.tolist()), point[:, moved])
                here = here._replace(
                    values=replaced(last.values, moved, there.values),
                    gradient=replaced(last.gradient, moved, there.gradient),
                    statistics=replaced(last.statistics, moved, there.statistics),
                )
        self._last, self._last_loss = here, loss
        return here

    def direction(self, here: Evaluation, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        jumps = self.loss.eased and self._spent > WORTH * self._renewal
        if self._made_for is not self.loss or jumps:
            if self._made_for is not self.loss and self._course.is_fast:
                self._course = Course(coupled=self.loss.coupled)
            self._solvers = []  # their memory is that of the new ones
            self._solvers, self._made_for = self._preconditioners(here), self.loss
            self._spent = 0.0
            self._course.renewed(self._precondition)
        if self._course.is_fast:
            direction = -self._course.inverse_times(here, self._precondition)
            direction *= 1.0 if self.loss.coupled else wanted
            left = self._course.left(here, direction, self.slopes(here, direction))
            if self._course.is_fast:
                return direction, left
        direction, products = self._newton(here, wanted)
        if products > RENEWED:
            self._made_for = None
        slopes = self.slopes(here, direction)
        sizes = np.maximum(np.abs(here.values), np.finfo(float).tiny)
        self._relative = min(float(np.max(slopes / sizes)), 1.0)
        return direction, slopes

    def changes_method(self) -> bool:
        was_fast, self._course.is_fast = self._course.is_fast, False
        return was_fast

    def _newton(self, here: Evaluation, wanted: np.ndarray) -> tuple[np.ndarray, int]:
        """Return a Newton direction, and how many products with the second derivatives it took."""
        loss, problem = self.loss, self.problem
        columns = 1 if loss.coupled else loss.outputs

        # A column of a coupled loss is a whole array of coefficients; else it is one output.
        def outputs(used: np.ndarray) -> np.ndarray:
            return np.arange(loss.outputs) if loss.coupled else used

        def precondition(R: np.ndarray, used: np.ndarray) -> np.ndarray:
            R = R.reshape(len(here.point), -1)
            return self._precondition(R, outputs(used)).reshape(-1, len(used))

        def apply(V: np.ndarray, used: np.ndarray) -> np.ndarray:
            V, those = V.reshape(len(here.point), -1), outputs(used)
            part = loss if len(those) == loss.outputs else loss.of(those.tolist())
            image = self.walks.curve(part, here.point[:, those], V)
            image[:-1] += problem.alpha * V[:-1]
            image[-1] = image[-1] + 1e-12 * problem.weight * V[-1] if problem.intercept else V[-1]
            return image.reshape(-1, len(used))

        right = (-here.gradient * (1.0 if loss.coupled else wanted)).reshape(-1, columns)
        least = LAST * np.maximum(problem.tol * np.abs(here.values), gaps(loss, here))
        tol = float(np.clip(0.3 * sqrt(self._relative), 1e-5, 0.1))
        found, products = conjugate_gradients(apply, right, precondition, tol=tol, least=least)
        return found.reshape(here.point.shape), products

    def _precondition(self, R: np.ndarray, outputs: np.ndarray | None = None) -> np.ndarray:
        """Return about H⁻¹ R, column by column; these are the columns of some outputs, or all."""
        if len(self._solvers) == 1:
            return self._solvers[0](R)
        numbers = range(R.shape[1]) if outputs is None else outputs
        pairs = zip(numbers, R.T, strict=True)
        image = np.column_stack([self._solvers[k](r[:, None])[:, 0] for k, r in pairs])
        return self.loss.effective(image)

    def _preconditioners(self, here: Evaluation) -> list[Any]:
        kinds = self._kinds_of_curvature()
        most = self._sample.walked.shape[0] if len(kinds) == 1 else _thinned_size(self.problem)
        return self._inverses(here.point, kinds, most, self._landmarks)

    def _kinds_of_curvature(self) -> list[int]:
        """Return the outputs that have a preconditioner each, or -1 for one that all share."""
        kinds = _kind_count(self.problem, self.walks.walked)
        return list(range(kinds)) if kinds > 1 or self.loss.outputs == 1 else [-1]

    def inverses(self, point: np.ndarray, kinds: list[int]) -> list[Any]:
        # The landmarks would count twice: the rows that are left out are all in the sample.
        return self._inverses(point, kinds, self._sample.walked.shape[0], None)

    def _inverses(
        self, point: np.ndarray, kinds: list[int], most: int, landmarks: Array | None
    ) -> list[Any]:
        """Return inverses for each kind, of up to ``most`` rows each."""
        values = self._sample.curvatures(self.loss, point, kinds)

        def inverse(i: int) -> Any:
            numbers, c = thinned(values[:, i], most)
            curvature = self._sample.inner(numbers, c)
            extra = None
            if landmarks is not None:
                mean = self._scale * float(curvature.totals[0]) / self.problem.rows.shape[0]
                block = curvature.blocks[0]
                extra = mean * array_ops.like(landmarks, block, block.dtype)
            return self._sample.solver(curvature, 0, scale=self._scale, extra=extra)

        on_gpu = array_ops.is_on_gpu(self._sample.walked.parts.example())
        return side_by_side(inverse, range(len(kinds)), "preconditioner", serial=on_gpu)


class Iterated(Strategy[LossProblem]):
    """Steps of one or several passes over C, whatever the loss."""

    def serves(self, problem: LossProblem) -> bool:
        if problem.is_exact:
            return False
        if problem.loss.coupled:
            return True
        # A sample says little about a loss without curvature almost everywhere, unless n is large.
        few = problem.loss.eased and problem.rows.shape[0] <= FEWER * _sample_size(problem)
        return not few and not problem.loss.kinked and self._pays(problem)

    def _pays(self, problem: LossProblem) -> bool:
        """Whether passes over C should cost less than summing ZᵀWZ."""
        factors, t = problem.factors, problem.loss.outputs
        C = projected(factors) or factors
        n, r, m = factors.shape[0], factors.rank, C.rank
        room = room_left(self._other_memory(problem))
        missing = 1.0 - keepable(C, room, partly=True) / max(n, 1)
        make = KERNEL_VALUE if any(isinstance(Z, FeatureRows) for Z in C.parts) else 0
        # The smaller a penalty, the more passes each step takes. The trace is not known in a plan.
        harder = 1 + larger_penalties(problem.alpha, n) if problem.loss.eased else 1
        sums = r * r * t + missing * (make * m + m * r)
        return harder * PASSES * m * (PASS + 2 * PASS_TARGET * t + missing * make) < sums

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        C = projected(problem.factors) or problem.factors
        other = with_slack(C, self._other_memory(problem))
        return [keeping(C, other, partly=True, name="kernel values")]

    def _other_memory(self, problem: LossProblem) -> Amounts:
        factors, t = problem.factors, problem.loss.outputs
        C, r = projected(factors) or factors, factors.rank
        m, kinds = C.rank, _kind_count(problem, C)
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
            **small_memory(problem),
            "left-out rows": left_out_bytes(problem) + kinds_bytes,
            "preconditioner": small + factors.parts.take_bytes(_sample_size(problem)),
            "iteration": (12 * (r + m) + (3 * MOST_PAIRS + 5) * r) * 8 * t,
            "blocks": max(sampled, passes),
        }

    @one_blas_thread()
    def solve(self, problem: LossProblem) -> LossSolution:
        C, P = unprojected(problem.factors)
        dtype = C.xp.float64 if is_precise(problem) else C.dtype
        other = with_slack(C, self._other_memory(problem))
        C = C.persist(room_left(other), partly=True)
        sample, numbers = _sample(problem)
        # Since P Pᵀ = W⁺, the features of the landmarks have the inner products (PᵀP)⁻¹.
        landmarks = None if P is None else linalg.inverse_inner(P)

        def solved(part: LossProblem) -> LossSolution:
            walks = Walks(part, C, P, dtype=dtype)
            return self._solved(part, walks, sample.on(part), numbers, landmarks)

        return best_of_path(problem, solved)

    def _solved(
        self, problem: LossProblem, walks: Walks, sample: Walks, numbers: np.ndarray,
        landmarks: Array | None,
    ) -> LossSolution:  # fmt: skip
        scale = problem.factors.shape[0] / len(numbers)
        enough = not problem.loss.coupled or len(numbers) >= EACH * problem.loss.outputs
        if problem.warm is None and scale > FEWER and enough:
            problem = replace(problem, warm=_found_on(sample, scale, landmarks))

        def space_of(part: LossProblem) -> IteratedSpace:
            return IteratedSpace(part, walks.on(part), sample.on(part), scale, landmarks)

        minimum, space = minimised(problem, space_of)
        solution = as_solution(minimum, walks)
        if not problem.leaves_out:
            return solution
        rows = LeftOut(problem, numbers, scale)  # those that H is of
        return solution._replace(error=rows.error(space, minimum))


def _kind_count(problem: LossProblem, walked: Factors) -> int:
    """Return how many preconditioners there are: one for each output, or one for all.

    What outputs share is the mean of their curvatures, which says little about rare classes.
    """
    t, r = problem.loss.outputs, problem.factors.rank
    costs = t * _preconditioner_cost(_thinned_size(problem), r)
    # Each step applies them one by one, which takes longer than a shared one for all outputs.
    separate = costs <= SEPARATE * (_pass_cost(walked, t) - APPLIED * t * r**2)
    separate &= t * 2 * 8 * r**2 <= KINDS_SHARE * config.memory_budget()
    return t if t <= MOST_KINDS or separate else 1


def _thinned_size(problem: LossProblem) -> int:
    """Return how many rows of the sample each of several preconditioners has."""
    size = _sample_size(problem)
    return min(THINNED * problem.factors.rank, size) if problem.loss.outputs > MOST_KINDS else size


def _pass_cost(walked: Factors, outputs: int) -> float:
    return float(walked.shape[0] * walked.rank * (PASS + 2 * PASS_TARGET * outputs))


def _preconditioner_cost(rows: int, rank: int) -> float:
    return float((rows + rank) * rank**2)


def _sample(problem: LossProblem) -> tuple[Walks, np.ndarray]:
    """Return walks over some rows, and their numbers."""
    factors, n = problem.factors, problem.factors.shape[0]
    size = _sample_size(problem)
    numbers = np.sort(problem.rng.choice(n, size, replace=False))
    few = factors.take(numbers)
    y, weights = (
        None if each is None else _local_rows(each, numbers, few)
        for each in (problem.y, problem.weights)
    )
    return Walks(problem, few, None, dtype=few.dtype, y=y, weights=weights), numbers


def _found_on(sample: Walks, scale: float, landmarks: Array | None) -> np.ndarray:
    """Return about the minimum of the sample, which stands for ``scale`` times its rows.

    A mean loss over fewer rows needs a larger penalty, or its minimum fits their noise: scores are
    too large, and so is the objective of all rows. Penalties grow as the root of the rows.
    """
    problem = sample.problem
    alpha, tol = problem.alpha / sqrt(scale), max(ROUGH, problem.tol)

    def space_of(part: LossProblem) -> IteratedSpace:
        there = sample.on(part)
        space = IteratedSpace(part, there, there, 1.0, landmarks)
        space.weight = problem.weight / scale
        return space

    return minimised(replace(problem, alpha=alpha, tol=tol), space_of)[0].point


def _sample_size(problem: LossProblem) -> int:
    """Return how many rows the preconditioner has: as many as a share of the budget allows.

    Leverages need more of them: where most rows have no curvature, few rows leave the others too
    free to move, and small alphas look worse than they are.
    """
    factors = problem.factors
    n, r = factors.shape[0], factors.rank
    room = int(SAMPLE_SHARE * config.memory_budget() / max(factors.parts.take_bytes(1), 1))
    most = min(SAMPLE_MOST * r, max(room, r), n)
    return most if problem.leaves_out else min(ceil(max(sqrt(n * r), 4.0 * r)), most)


def _local_rows(values: Array, numbers: np.ndarray, few: Factors) -> Array:
    """Return rows of an aligned array, in the library of these factors."""
    taken = array_ops.take_rows(values, numbers)
    return array_ops.like(taken, few.parts.example(), few.xp.float64)
