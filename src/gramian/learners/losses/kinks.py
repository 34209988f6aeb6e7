"""A loss with kinks over few enough features: the interior point method as a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import ceil

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread, side_by_side
from gramian.learners.losses.factored import as_solution, is_precise, small_memory
from gramian.learners.losses.interior import SHARE, InteriorPoint, terms_of
from gramian.learners.losses.loss import Kinked
from gramian.learners.losses.newton import Minimum
from gramian.learners.losses.problem import LossProblem, LossSolution, joined
from gramian.learners.losses.walks import Walks
from gramian.learners.strategy import Strategy
from gramian.matrices.factors import features, unprojected

MOST_FEATURES = 2**22  # numbers: for more, Newton steps over walks were faster
ARRAYS = 40  # of one number per row, term and output, at most two terms each
PART = 8  # a group of outputs takes at most this part of the budget
PARTS = 4  # those that are solved at the same time
TOGETHER = 4  # outputs in a group, at most: their arrays should fit in a cache
LARGE = 2**19  # features: with fewer, threads cost more than they save


class InteriorPoints(Strategy[LossProblem]):
    """Interior points over stored features; groups of outputs on threads of their own."""

    def serves(self, problem: LossProblem) -> bool:
        if problem.is_exact or problem.leaves_out or not isinstance(problem.loss, Kinked):
            return False
        factors = problem.factors
        few = factors.shape[0] * factors.rank <= MOST_FEATURES
        return few and not array_ops.is_on_gpu(factors.parts.example())

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        n, r = problem.factors.shape[0], problem.factors.rank
        return [
            {
                **small_memory(problem),
                "features": 3 * 8 * n * (r + 1),
                "decomposition": 6 * 8 * (r + 1) ** 2,
                "interior points": _threads(problem) * _group(problem) * _output_bytes(problem),
            }
        ]

    def solve(self, problem: LossProblem) -> LossSolution:
        walks = Walks(problem, problem.factors, None, dtype=problem.factors.dtype)
        outputs = np.arange(problem.loss.outputs)
        groups = np.array_split(outputs, ceil(len(outputs) / _group(problem)))
        with nullcontext() if _is_large(problem) else one_blas_thread():
            turned = _Turned(problem)
            minima = side_by_side(
                lambda group: turned.minimum(problem.of(group.tolist())),
                groups,
                "interior points",
                serial=_threads(problem) == 1,
            )
        return as_solution(joined(minima), walks)


class _Turned:
    """The centred features in the directions of their principal components, and a constant."""

    def __init__(self, problem: LossProblem) -> None:
        Z = stored_features(problem)
        self._y, self._w = array_ops.host_float64(problem.y), None
        if problem.weights is not None:
            w = array_ops.host_float64(problem.weights)
            used = w > 0  # the others have no room for dual variables
            Z, self._y, self._w = Z[used], self._y[used], w[used, None]
        self._mean = Z.mean(axis=0, dtype=np.float64) if problem.intercept else np.zeros(Z.shape[1])
        Z = Z - self._mean.astype(Z.dtype)
        values, self._Q = np.linalg.eigh((Z.T @ Z).astype(np.float64))
        self._Z = np.empty((len(Z), Z.shape[1] + 1), dtype=Z.dtype)
        self._Z[:, :-1] = Z @ self._Q.astype(Z.dtype)
        self._Z[:, -1] = float(problem.intercept)
        self._scales = np.append(np.maximum(values, 0.0), float(len(Z)))

    def minimum(self, problem: LossProblem) -> Minimum:
        loss, mean = problem.loss, self._mean @ self._Q
        assert isinstance(loss, Kinked)
        penalty = np.append(np.full(len(mean), problem.alpha), 0.0 if problem.intercept else 1.0)
        tilt = problem.tilt * np.append(-mean, 1.0)
        solver = InteriorPoint(
            self._Z, terms_of(loss, self._y, self._w), penalty, tilt, self._scales
        )
        start = np.zeros((len(penalty), loss.outputs))
        if problem.intercept and problem.start is not None:
            start[-1] = problem.start
        tol = max(problem.tol, 50 * array_ops.eps(self._Z.dtype))
        found = solver.minimise(start, tol=tol, max_iter=problem.max_iter)
        theta, b = found.theta[:-1], found.theta[-1:] - mean @ found.theta[:-1]
        point = np.concatenate((self._Q @ theta, b if problem.intercept else 0.0 * b))
        true = loss.unsmoothed()
        accuracy = float(np.max(found.gaps / found.sizes))
        return Minimum(point, found.values, true, true, found.iterations, accuracy, accuracy <= tol)


def stored_features(problem: LossProblem) -> np.ndarray:
    """Return the features of all rows, in float64 if float32 would round too much."""
    if not is_precise(problem):
        return array_ops.to_numpy(features(problem.factors))
    C, P = unprojected(problem.factors)
    Z = array_ops.host_float64(features(C))
    return Z if P is None else Z @ array_ops.host_float64(P)


def _output_bytes(problem: LossProblem) -> int:
    """Return the memory that each output of a group takes."""
    n, r = problem.factors.shape[0], problem.factors.rank + 1
    return 8 * (ARRAYS * n + 2 * (r // SHARE) * (r + r // SHARE))


def _group(problem: LossProblem) -> int:
    """Return how many outputs are solved together, whatever the number of threads."""
    most = config.memory_budget() // PART // _output_bytes(problem)
    return int(np.clip(most, 1, min(TOGETHER, problem.loss.outputs)))


def _is_large(problem: LossProblem) -> bool:
    return problem.factors.shape[0] * problem.factors.rank >= LARGE


def _threads(problem: LossProblem) -> int:
    """Return how many groups are solved at the same time: one if the features are few."""
    size, count = _group(problem), config.n_threads()
    fit = count * size * _output_bytes(problem) <= config.memory_budget() // PARTS
    return min(count, ceil(problem.loss.outputs / size)) if fit and _is_large(problem) else 1
