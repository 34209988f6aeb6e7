"""Choose alpha on a sample of the rows, where a choice by all would cost far more than a fit.

Kernel ridge is the mean of a Gaussian process whose noise has the variance alpha, whatever the
number of rows: so the best alpha of a sample serves all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.kernels import Precomputed
from gramian.learners.ridge.alpha_path import ExactPath
from gramian.learners.ridge.alpha_search import ExactSearch
from gramian.learners.ridge.systems import Solution, System
from gramian.learners.strategy import Strategy
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows

SAMPLED = 2000  # rows, at most
MATRICES = 6  # of these rows by these rows, at once


class Sampled(Strategy[System]):
    """Choose alpha by leaving out rows of a sample; a solver then takes it for all rows."""

    def __init__(self, solver: Strategy[System]) -> None:
        self.solver = solver

    def serves(self, system: System) -> bool:
        return system.rule is not None and self.solver.serves(system.settled())

    def memory(self, system: System) -> Sequence[Amounts]:
        sample = {"sampled rows": sample_bytes(system, SAMPLED)}
        return [sample, *self.solver.memory(system.settled())]

    def solve(self, system: System) -> Solution:
        """Return the solution of the sample; its alphas are those of the system of all rows."""
        return best_of_sample(system, SAMPLED)


def best_of_sample(system: System, most: int) -> Solution:
    """Return the solution for a sample of the rows, with the alphas that suit it best."""
    some = _sample(system, most)
    search = ExactSearch()
    return (search if search.serves(some) else ExactPath()).solve(some)


def _size(n: int, most: int) -> int:
    """Return how many rows are drawn: their matrices take at most a quarter of the budget."""
    return min(n, most, max(isqrt(config.memory_budget() // 4 // (8 * MATRICES)), 2))


def sample_bytes(system: System, most: int) -> int:
    """Return the memory of the search on sampled rows."""
    size = _size(system.rows.shape[0], most)
    features = 0 if isinstance(system.matrix, Gram) else 2 * system.factors.rank
    own = 8 * size * (MATRICES * size + features + 6 * system.n_targets)
    return own + 3 * size * system.rows.row_bytes


def _sample(system: System, most: int) -> System:
    """Return the system of sampled rows that have a weight, in this process."""
    rows, weights = system.rows, None
    usable = np.arange(rows.shape[0])
    if system.weights is not None:
        weights = array_ops.host_float64(system.weights)
        usable = np.flatnonzero(weights)
    size = _size(len(usable), most)
    if size < len(usable):
        usable = np.sort(np.random.default_rng(0).choice(usable, size, replace=False))
    K = _matrix(system, usable)
    matrix = Gram(Precomputed(), ArrayRows(K))
    taken = K if rows.are_objects else array_ops.dense(rows.take(usable))
    return replace(
        system,
        matrix=matrix,
        rows=ArrayRows(taken),
        solver="direct",
        validates=False,
        Y=array_ops.like(array_ops.take_rows(system.Y, usable), K, K.dtype),
        weights=None if weights is None else array_ops.like(weights[usable], K, K.dtype),
        held_out=None,
        sampled=None,
    ).centred()[0]


def _matrix(system: System, numbers: np.ndarray) -> Array:
    """Return K or K̃ of these rows in float64, on the device that computes it."""
    matrix = system.matrix
    if isinstance(matrix, Factors):
        K = matrix.take(numbers).dense()
    else:
        K = matrix.block(numbers, numbers)
    return array_ops.astype(K, array_ops.namespace(K).float64)
