"""k-means on features of all rows, after restarts on a sample of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.learners.kmeans.clustering import Clustering, Run, best_of
from gramian.learners.kmeans.lloyd import on_factors
from gramian.learners.kmeans.seeding import drawn, given_features, with_weight
from gramian.learners.strategy import Strategy, keeping, room_beside
from gramian.matrices.factors import Factors


class FeaturedLloyd(Strategy[Clustering]):
    """Passes over the features of all rows, of which as many are kept as fit the memory budget."""

    def serves(self, problem: Clustering) -> bool:
        return not problem.is_exact and problem.batch_size is None

    def memory(self, problem: Clustering) -> Sequence[Amounts]:
        beside = beside_features(problem)
        return [keeping(problem.factors, beside, partly=True, half=problem.half)]

    def solve(self, problem: Clustering) -> Run:
        factors, weights = problem.factors, problem.weights
        # On a cluster, gather the sample before workers are busy with features.
        early = factors.parts.place.early(lambda: Sample.draw(problem, problem.factors))
        room = room_beside(beside_features(problem))
        factors = factors.persist(room, partly=True, half=problem.half)
        sample = early or Sample.draw(problem, factors)
        start = first_centres(problem, sample, factors)
        stop: Any = {"max_iter": problem.max_iter, "tol": problem.tol}
        centres, kept = start.centres, factors.parts.kept()
        if kept is not None and len(centres) == 1:  # passes over these cost far less
            some, numbers = Factors(kept[0], factors.core), kept[1]
            own = array_ops.take_rows(weights, numbers)
            before = best_of(on_factors(some, own, centres, start.sample, **stop))
            centres = [before.next_centres]
        return best_of(on_factors(factors, weights, centres, start.sample, **stop))


def beside_features(problem: Clustering) -> Amounts:
    """What passes over factors take beside these."""
    factors, k = problem.factors, problem.k
    n, r, item = factors.shape[0], factors.rank, array_ops.itemsize(factors.dtype)
    size = min(n, _sample_size(k))
    starts = 4 * problem.restarts if isinstance(problem.init, str) else 1
    walks = (Z.place.walk_bytes(Z, 2 * k * item, 8 * k * Z.shape[1]) for Z in factors.parts)
    return {
        "labels, weights and margins": 56 * n,
        "sampled rows": factors.parts.take_bytes(size) + 8 * size * (3 * starts + 8),
        "centres": 8 * k * r * (3 * starts + 6),
        "blocks": max(walks, default=0),
    }


def with_features(problem: Clustering) -> Clustering:
    """With as many features kept as fit the memory budget."""
    room = room_beside(beside_features(problem))
    kept = problem.factors.persist(room, partly=True)
    return replace(problem, matrix=kept)


def _sample_size(k: int) -> int:
    """The rows on which restarts run: many for each of k clusters of any size."""
    return 2000 + 400 * k


class Sample(NamedTuple):
    """Some rows: their factors, None where they are all rows, and their weights."""

    factors: Factors | None
    weights: np.ndarray

    @classmethod
    def draw(cls, problem: Clustering, factors: Factors, single: bool = False) -> Sample:
        """Some of the rows that count; all rows where these are few, and not ``single``."""
        n, weights = factors.shape[0], problem.weights
        usable = with_weight(weights)
        most = n if usable is None else len(usable)
        size = min(most, _sample_size(problem.k))
        numbers = most if usable is None else usable
        chosen = np.sort(problem.rng.choice(numbers, size=size, replace=False))
        own = np.asarray(array_ops.to_numpy(array_ops.take_rows(weights, chosen)))
        whole = size == n and not single
        return cls(None if whole else factors.take(chosen), own)


class Start(NamedTuple):
    """First centres, one set for each restart that goes on, and rows for empty clusters."""

    centres: list[Array]  # each of shape (k, r)
    masses: Array  # of the rows that they are the means of, of shape (k,)
    sample: Factors


def first_centres(problem: Clustering, drawn_rows: Sample, factors: Factors) -> Start:
    """Where passes over all rows begin: for large data, from one set of centres.

    Those are the best of the restarts, each run to its end on the sample.
    """
    k, n, init, rng = problem.k, problem.rows.shape[0], problem.init, problem.rng
    whole, weights = drawn_rows.factors is None, drawn_rows.weights
    sample, size = drawn_rows.factors or factors, len(weights)
    double = problem.rows.xp.float64
    nothing = array_ops.like(np.zeros(k), factors.parts.example(), double)
    if not isinstance(init, str):
        given = given_features(init, k, problem.rows, problem.approximation)
        return Start([given], nothing, sample)
    starts = problem.restarts
    if not whole:  # more, while a pass over the sample stays far below one over all rows
        starts = max(starts, min(4 * starts, n // (4 * size)))
    seeds = [drawn(sample, k, init, weights, rng) for _ in range(starts)]
    centres = [sample.coordinates(each) for each in seeds]
    if whole:
        return Start(centres, nothing, sample)
    counts = array_ops.like(weights, factors.parts.example(), double)
    runs = on_factors(sample, counts, centres, sample, max_iter=problem.max_iter, tol=problem.tol)
    best = best_of(runs)
    return Start([best.next_centres], best.masses, sample)
