"""k-means on the features of all rows, after restarts on a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gramian.backend import array_ops
from gramian.backend.memory import Amounts
from gramian.learners.kmeans.clustering import Clustering, Run
from gramian.learners.kmeans.lloyd import best_run
from gramian.learners.kmeans.sketch import sketch_bytes
from gramian.learners.kmeans.starts import MORE, Sample, first_centres, sample_size, seeding_size
from gramian.learners.kmeans.swaps import swapped_run
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors
from gramian.samplers.plus_plus import plus_plus_bytes


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
    size = min(n, sample_size(k))
    starts = MORE * problem.restarts if isinstance(problem.init, str) else 1
    walks = (Z.walk_bytes(2 * k * item, 8 * k * Z.shape[1]) for Z in factors.parts)
    taken = factors.parts.take_bytes(size)  # half of it are copies, no longer there when seeding
    seeded = seeding_size(size, k)
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
