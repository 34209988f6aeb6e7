"""k-means on the features of all rows, after restarts on a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.learners.kmeans.clustering import Clustering, Run, drawn, init_features, with_weight
from gramian.learners.kmeans.lloyd import best_run, means
from gramian.learners.kmeans.sketch import sketch_bytes, sketched
from gramian.learners.kmeans.swaps import swapped_run
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors
from gramian.samplers.plus_plus import POOL, Whole, plus_plus_bytes

MORE = 4  # times as many starts as restarts, at most
COLUMNS = 40  # centres of all starts in one pass, if that affords more starts


class FeaturedLloyd(Strategy[Clustering]):
    """Passes over the features of all rows; as many as fit the memory budget are cached."""

    def serves(self, problem: Clustering) -> bool:
        return not problem.is_exact and problem.batch_size is None

    def memory(self, problem: Clustering) -> Sequence[Amounts]:
        return [keeping(problem.factors, other_memory(problem), partly=True, half=problem.half)]

    def solve(self, problem: Clustering) -> Run:
        factors, weights = problem.factors, problem.weights
        # On a cluster, gather the sample before workers are busy with features.
        early = factors.parts.place.early(lambda: Sample.draw(problem, problem.factors))
        room = room_left(other_memory(problem))
        factors = factors.persist(room, partly=True, half=problem.half)
        sample = early or Sample.draw(problem, factors)
        start = first_centres(problem, sample, factors)
        options: Any = {"sample": start.sample, "max_iter": problem.max_iter, "tol": problem.tol}
        centres, cached = start.centres, factors.parts.kept()
        if cached is not None and len(centres) == 1:  # passes over cached rows are far cheaper
            some, numbers = Factors(cached[0], factors.core), cached[1]
            some_weights = array_ops.take_rows(weights, numbers)
            before = best_run(some, some_weights, centres, **options)
            centres = [before.next_centres]
        if start.swapped or not isinstance(problem.init, str):
            return best_run(factors, weights, centres, **options)
        return swapped_run(factors, weights, centres, problem.rng, **options)


def other_memory(problem: Clustering) -> Amounts:
    """Return the memory that passes over factors take, in addition to the features."""
    factors, k = problem.factors, problem.k
    n, r, item = factors.shape[0], factors.rank, array_ops.itemsize(factors.dtype)
    size = min(n, _sample_size(k))
    starts = MORE * problem.restarts if isinstance(problem.init, str) else 1
    walks = (Z.walk_bytes(2 * k * item, 8 * k * Z.shape[1]) for Z in factors.parts)
    taken = factors.parts.take_bytes(size)  # half of it are copies, no longer there when seeding
    seeded = _seeding_size(size, k)
    seeding = plus_plus_bytes(seeded, k, starts)
    if seeded < size:
        seeding += factors.parts.take_bytes(seeded)
    return {
        "labels, weights and margins": 56 * n,
        "distances to first centres": max(seeding - taken // 2, 0),
        "sampled rows": taken + 8 * size * (3 * starts + 8),
        "sketch": sketch_bytes(factors, size, k),
        "centres": 8 * k * r * (3 * starts + 12),
        "blocks": max(walks, default=0),
    }


def with_features(problem: Clustering) -> Clustering:
    """Cache as many features as fit the memory budget."""
    room = room_left(other_memory(problem))
    return replace(problem, matrix=problem.factors.persist(room, partly=True))


def _sample_size(k: int) -> int:
    """Return how many rows restarts run on: many for each cluster, even a small one."""
    return 2000 + 400 * k


def _seeding_size(size: int, k: int) -> int:
    """Return from how many of the sampled rows first centres are drawn: from few of many.

    With fewer rows for each cluster, the objective would end higher.
    """
    few = max(5 * POOL // 2, 50 * k)
    return few if size > 1.5 * few else size


class Sample(NamedTuple):
    """Some rows: their factors, None if they are all rows, and their weights."""

    factors: Factors | None
    weights: np.ndarray  # (sampled rows,)

    @classmethod
    def draw(cls, problem: Clustering, factors: Factors, single: bool = False) -> Sample:
        """Draw rows that have weight; all rows if there are few, unless ``single``."""
        n, weights = factors.shape[0], problem.weights
        usable = with_weight(weights)
        most = n if usable is None else len(usable)
        size = min(most, _sample_size(problem.k))
        numbers = most if usable is None else usable
        chosen = np.sort(problem.rng.choice(numbers, size=size, replace=False))
        sampled = np.asarray(array_ops.to_numpy(array_ops.take_rows(weights, chosen)))
        whole = size == n and not single
        return cls(None if whole else factors.take(chosen), sampled)


class Start(NamedTuple):
    """First centres, one set for each restart that continues, and rows for empty clusters."""

    centres: list[Array]  # each (k, r)
    masses: Array  # the total weight of the rows averaged in each, (k,)
    sample: Factors
    swapped: bool = False  # whether swaps have improved them


def first_centres(problem: Clustering, drawn_rows: Sample, factors: Factors) -> Start:
    """Return the centres from which passes over all rows start.

    For large data they are one set, the best of the restarts, each run to convergence on the
    sample.
    """
    k, n, init = problem.k, problem.rows.shape[0], problem.init
    whole, weights = drawn_rows.factors is None, drawn_rows.weights
    sample, size = drawn_rows.factors or factors, len(weights)
    double = problem.rows.xp.float64
    nothing = array_ops.like(np.zeros(k), factors.parts.example(), double)
    if not isinstance(init, str):
        assert problem.approximation is not None
        first = init_features(init, k, problem.rows, problem.approximation)
        return Start([first], nothing, sample)
    starts = _starts(problem, 0 if whole else n // (4 * size))
    counts = array_ops.like(weights, factors.parts.example(), double)
    options: Any = {"max_iter": problem.max_iter, "tol": problem.tol}
    sketch = sketched(sample, k, problem.rng)
    centres = _seeds(problem, sketch, weights, starts)
    if sketch is not sample:
        best = swapped_run(sketch, counts, centres, problem.rng, sample=sketch, **options)
        centres = [means(sample, counts, best.labels, k)]
        return Start(centres, best.masses, sample, swapped=True)
    if whole:
        return Start(centres, nothing, sample)
    best = swapped_run(sample, counts, centres, problem.rng, sample=sample, **options)
    return Start([best.next_centres], best.masses, sample, swapped=True)


def _starts(problem: Clustering, affordable: int) -> int:
    """Return how many first centres are drawn.

    There are more than restarts, up to four times as many, if there are few clusters, since a pass
    then costs little for all starts together, or if a pass over all rows costs far more than one
    over the sample.
    """
    return max(
        problem.restarts, min(MORE * problem.restarts, max(COLUMNS // problem.k, affordable))
    )


def _seeds(problem: Clustering, rows: Factors, weights: np.ndarray, starts: int) -> list[Array]:
    """Draw the first centres (k, r) of each start, from some of the rows if there are many."""
    k, rng = problem.k, problem.rng
    size = _seeding_size(len(weights), k)
    if size < len(weights):
        chosen = np.sort(rng.choice(len(weights), size=size, replace=False))
        rows, weights = rows.take(chosen), weights[chosen]
    matrix = Whole(rows, size) if Whole.pays(size, k, starts) else rows
    assert isinstance(problem.init, str)
    found = (drawn(matrix, k, problem.init, weights, rng) for _ in range(starts))
    return [rows.coordinates(each) for each in found]
