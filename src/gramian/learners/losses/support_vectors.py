"""Support vector machines on a matrix of all rows that fits in memory.

The dual variables are changed two at a time, and only columns of rows that become support vectors
are touched. Up to some thousand rows nothing here is faster. The matrix is that of the exact kernel
or of features, and all classes share it. A compiled loop takes the steps if numba is installed,
otherwise libsvm does. What they find is judged here: the duality gap tells the accuracy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.backend import array_ops, config
from gramian.backend.memory import Amounts
from gramian.backend.numba_loops import is_available
from gramian.backend.threads import one_blas_thread, side_by_side
from gramian.learners.losses.classification import Novelty
from gramian.learners.losses.columns import (
    BLOCK,
    ColumnSource,
    Computed,
    InnerProducts,
    Stored,
    inner_products,
    weighted_sum,
)
from gramian.learners.losses.exact import exact_solution
from gramian.learners.losses.factored import as_solution, small_memory
from gramian.learners.losses.interior import NARROW
from gramian.learners.losses.kinks import stored_features
from gramian.learners.losses.libsvm import CACHE, MACHINES, LibSVM
from gramian.learners.losses.loss import Kinked
from gramian.learners.losses.newton import NOTHING, Minimum
from gramian.learners.losses.pairs import Dual, Pairs
from gramian.learners.losses.problem import LossProblem, LossSolution, joined
from gramian.learners.losses.walks import Walks
from gramian.learners.strategy import Strategy
from gramian.matrices.gram import Gram

FEW_ROWS = 100  # with fewer, time matters little, and Newton steps find more digits
MOST_BYTES = 2**30  # of the matrix: beyond, its columns take longer than interior points
MANY_ROWS = 2000  # with more, and few features, interior points are faster
MOST_STEPS = 50  # for each row: with more, other strategies are faster
LEAST_TOL = 1e-6  # columns of libsvm are in float32
LEAST_COMPILED = 500  # rows: with fewer, libsvm ends long before numba is imported
MOST_ROWS = 6000  # that take part in a round, if not all
SHARED_ROWS = 2000  # with fewer, steps are so short that threads wait for each other
# A one-class machine computes the columns it needs if they are few, or rows are many.
FEW_COLUMNS, MOST_STORED = 0.35, 2000
KEPT = 1 / 8  # of the room for a matrix: for columns of one that is not stored
ARRAYS = 30  # of one number per row that libsvm and the gap take
TINY = np.finfo(float).tiny


class SupportVectors(Strategy[LossProblem]):
    """Pairs of dual variables over the matrix of all rows, of many rows one output in each thread.

    Where this takes too many steps, or rounds too much, the first of ``otherwise`` that serves the
    problem solves it.
    """

    def __init__(self, *otherwise: Strategy[LossProblem]) -> None:
        self._otherwise = otherwise

    def serves(self, problem: LossProblem) -> bool:
        n = problem.rows.shape[0]
        if type(problem.loss) not in MACHINES or problem.leaves_out or not problem.intercept:
            return False
        if n < FEW_ROWS or array_ops.is_on_gpu(problem.rows.place.reference):
            return False
        if problem.tol < LEAST_TOL or not (_stores(problem) or _finds_columns(problem)):
            return False
        return problem.is_exact or n <= MANY_ROWS or problem.factors.rank > NARROW

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        n, t, stores = problem.rows.shape[0], problem.loss.outputs, _stores(problem)
        threads, most = min(config.n_threads(), t), _most(problem)
        amounts = {
            "targets": 8 * n * 5,
            "kernel matrix": _item(problem) * n**2 if stores else 0,
            "pairs": threads * (8 * ARRAYS * n + _item(problem) * most**2),
            "blocks": 8 * config.n_threads() * min(BLOCK, n) * n if stores else 0,
        }
        if not _compiles(problem):
            amounts["columns"] = threads * min(4 * n**2, CACHE)
        if problem.is_exact:
            gram = problem.gram
            if not stores:
                amounts["columns"] = Computed.kept_bytes(gram, _kept(problem))
            amounts["coefficients"] = 3 * 8 * n * t
            if array_ops.itemsize(gram.dtype) < _item(problem):  # converted
                amounts["kernel matrix"] += array_ops.itemsize(gram.dtype) * n**2
            walk = gram.rows.walk_bytes(8 * n if stores else 8 * most) + gram.product_bytes
            amounts["blocks"] = max(amounts["blocks"], walk + most * gram.rows.row_bytes)
        else:
            amounts |= small_memory(problem)
            copies = 3 if stores else 4
            amounts["features"] = copies * 8 * n * (problem.factors.rank + 1)
        return [amounts, *self._other(problem).memory(problem)]

    def solve(self, problem: LossProblem) -> LossSolution:
        solution = self._solved(problem)
        return solution if solution.met else self._other(problem).solve(problem)

    def _other(self, problem: LossProblem) -> Strategy[LossProblem]:
        return next(each for each in self._otherwise if each.serves(problem))

    @one_blas_thread()
    def _solved(self, problem: LossProblem) -> LossSolution:
        rows = _Rows.of(problem)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap tells
            minima = side_by_side(
                lambda k: _minimum(problem.of([k]), rows),
                range(problem.loss.outputs),
                "support vectors",
                serial=problem.rows.shape[0] < SHARED_ROWS,
            )
        minimum = joined(minima)
        if rows.Z is not None:
            walks = Walks(problem, problem.factors, None, dtype=problem.factors.dtype)
            return as_solution(minimum, walks)
        point = np.zeros((problem.rows.shape[0] + 1, problem.loss.outputs))
        point[np.append(rows.numbers, -1)] = minimum.point
        return exact_solution(minimum._replace(point=point), problem.gram)


def _compiles(problem: LossProblem) -> bool:
    """Whether a compiled loop takes the steps; otherwise libsvm does."""
    return problem.rows.shape[0] >= LEAST_COMPILED and is_available()


def _item(problem: LossProblem) -> int:
    """Return the most bytes of a number of the matrix. Features may turn out to need float64."""
    is_single = _compiles(problem) and isinstance(problem.matrix, Gram)
    return array_ops.itemsize(problem.matrix.dtype) if is_single else 8


def _room() -> int:
    return min(MOST_BYTES, config.memory_budget() // 4)


def _most(problem: LossProblem) -> int:
    """Return how many rows may take part in a round, if not all."""
    return int(min(problem.rows.shape[0], MOST_ROWS, (_room() // (4 * _item(problem))) ** 0.5))


def _kept(problem: LossProblem) -> int:
    """Return how many columns are kept of an exact matrix that is not stored.

    Threads that solve for an output each do not share them.
    """
    return Computed.keepable(problem.gram, int(KEPT * _room())) if problem.loss.outputs == 1 else 0


def _stores(problem: LossProblem) -> bool:
    """Whether the matrix is stored: it fits, and most of its columns are needed."""
    n = problem.rows.shape[0]
    # At least this part of the weight is in support vectors.
    few = n > MOST_STORED or problem.tilt < FEW_COLUMNS * problem.weight
    if few and isinstance(problem.loss, Novelty) and _finds_columns(problem):
        return False
    return _item(problem) * n**2 <= _room()


def _finds_columns(problem: LossProblem) -> bool:
    """Whether single columns can be computed at little cost."""
    if not _compiles(problem):
        return False
    if problem.is_exact:
        return type(problem.matrix) is Gram and not problem.gram.kernel.is_matrix
    n, r = problem.factors.shape[0], problem.factors.rank
    return isinstance(problem.loss, Novelty) and 8 * n * r <= _room()


class _Rows(NamedTuple):
    """The rows that have a weight."""

    numbers: np.ndarray
    y: np.ndarray  # (n, 1)
    w: np.ndarray  # (n,)
    matrix: ColumnSource
    Z: np.ndarray | None  # the features, if the matrix is not exact
    eps: float  # how much the matrix is rounded

    @classmethod
    def of(cls, problem: LossProblem) -> _Rows:
        y = array_ops.host_float64(problem.y)
        w = np.ones(len(y))
        if problem.weights is not None:
            w = array_ops.host_float64(problem.weights)
        stores, most = _stores(problem), _most(problem)
        numbers = np.flatnonzero(w > 0) if stores or not problem.is_exact else np.arange(len(w))
        some, Z = len(numbers) < len(w), None
        matrix: ColumnSource
        if not problem.is_exact:
            Z = stored_features(problem)
            Z = Z[numbers] if some else Z
            dtype = Z.dtype if _compiles(problem) else np.dtype(np.float64)
            matrix = Stored(inner_products(Z, dtype), most) if stores else InnerProducts(Z, most)
        elif stores:
            K = array_ops.to_numpy(problem.gram.dense())
            K = np.ascontiguousarray(K, dtype=K.dtype if _compiles(problem) else np.float64)
            matrix = Stored(K[np.ix_(numbers, numbers)] if some else K, most)
        else:
            matrix = Computed(problem.gram, most, _kept(problem))
        eps = array_ops.eps(problem.gram.dtype if Z is None else Z.dtype)
        return cls(numbers, y[numbers], w[numbers], matrix, Z, eps)


def _minimum(problem: LossProblem, rows: _Rows) -> Minimum:
    """Return the minimum of one output: coefficients of the features, or of the rows."""
    judge, n, steps = _Judge(problem, rows), len(rows.y), 0
    tol = max(problem.tol, 50 * rows.eps)
    solver, accuracy = _solver(problem, rows), tol
    best: _Judged | None = None
    most = min(problem.max_iter, MOST_STEPS) * n
    while best is None or (best.gap > tol and steps < most):
        steps += max(solver.descend(accuracy, judge.least / problem.alpha, most - steps), 1)
        found = judge.judged(solver)
        if best is not None and found.gap > 0.9 * best.gap:
            break  # it rounds
        best = found
        accuracy *= float(np.clip(0.5 * tol / max(found.gap, tol), 0.01, 0.5))
    true = problem.loss.unsmoothed()
    values, iterations = np.array([best.value]), ceil(steps / n)
    return Minimum(best.point, values, true, true, iterations, best.gap, best.gap <= tol)


def _solver(problem: LossProblem, rows: _Rows) -> Pairs | LibSVM:
    if not _compiles(problem):
        assert rows.matrix.whole is not None
        return LibSVM(problem, rows.y, rows.w, rows.matrix.whole)
    assert isinstance(problem.loss, Kinked)
    dual = Dual.of(problem.loss, rows.y, rows.w, problem.alpha)
    return Pairs(rows.matrix, dual, problem.tilt / problem.alpha)


class _Judged(NamedTuple):
    """A point, its objective, and what is left to gain at most, relative to it."""

    point: np.ndarray  # (coefficients + 1, 1)
    value: float
    gap: float


class _Judge:
    """The objective of the loss, and the duality gap, of coefficients of the rows.

    A term max(o + slope · f, 0) has a dual variable β = alpha · max(-slope · a, 0), and
    Σ β o - ½ alpha ‖f‖² is below the minimum.
    """

    def __init__(self, problem: LossProblem, rows: _Rows) -> None:
        assert isinstance(problem.loss, Kinked)
        self._problem, self._rows = problem, rows
        self._loss = problem.loss.unsmoothed()
        self._pieces = problem.loss.pieces(rows.y, np.zeros_like(rows.y))
        start = np.zeros(1) if problem.start is None else problem.start
        self.least = NOTHING * abs(self._value(np.zeros(len(rows.y)), float(start[0]), 0.0))

    def judged(self, solver: Pairs | LibSVM) -> _Judged:
        a, b, Z, alpha = solver.a, solver.b, self._rows.Z, self._problem.alpha
        if Z is None:
            theta, f, squares = a, solver.f, float(a @ solver.f)
        else:
            theta = weighted_sum(Z, np.flatnonzero(a), a[a != 0])
            f, squares = (Z @ theta.astype(Z.dtype)).astype(np.float64), float(theta @ theta)
            solver.f = f  # the matrix has rounded more: further steps correct that
        value, dual = self._value(f, b, squares), -0.5 * alpha * squares
        for piece in self._pieces:
            beta = alpha * np.maximum(-piece.slope * a[:, None], 0.0)
            dual += float(np.sum(beta * piece.argument))
        gap = max(value - dual, 0.0) / max(abs(value), self.least, TINY)
        return _Judged(np.append(theta, b)[:, None], value, gap)

    def _value(self, f: np.ndarray, b: float, squares: float) -> float:
        losses = self._loss.value(self._rows.y, f[:, None] + b)[:, 0]
        problem = self._problem
        return float(self._rows.w @ losses) + 0.5 * problem.alpha * squares + problem.tilt * b
