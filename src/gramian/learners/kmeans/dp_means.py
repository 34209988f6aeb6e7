"""DP-means: in each pass over the features, far rows open clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.progress import progress
from gramian.learners.kmeans.clustering import with_weight
from gramian.learners.kmeans.lloyd import centre_of, distances, no_labels
from gramian.learners.kmeans.passes import FeaturedRun
from gramian.learners.strategy import Problem, Strategy, keeping, room_left
from gramian.matrices.factors import Factors
from gramian.rows import Rows, even_spans

CHUNK = 1024  # far rows that are processed together


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenClustering(Problem):
    """Divide rows into as many clusters as a threshold opens."""

    threshold: float | None  # None: it follows from expected_clusters
    expected_clusters: int
    max_clusters: int | None
    max_iter: int

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal (n,) of the matrix, in the same order."""
        return array_ops.settled(self.factors.arrange(self.factors.diagonal()))

    @cached_property
    def arranged(self) -> Array:
        """The weights (n,) in the order of the factors' parts, like labels and distances."""
        return self.factors.arrange(self.weights)


class Clusters(NamedTuple):
    """The result of DP-means; the rows are in the order of the data."""

    labels: Array  # (n,)
    squared: Array  # squared distances of the rows to their centres, (n,)
    history: list[float]
    counts: Array  # the total weight of the rows averaged in each centre, (k,)
    threshold: float
    dual: Array  # kernel values or features times this are products with centres: (n, k) or (r, k)
    norms: Array  # squared norms of the centres, (k,)
    centres: Array | None  # their features, (k, r), if there are any


class DPMeans(Strategy[OpenClustering]):
    """Passes until no row changes its cluster and none opens one."""

    def serves(self, problem: OpenClustering) -> bool:
        return not problem.is_exact

    def memory(self, problem: OpenClustering) -> Sequence[Amounts]:
        return [keeping(problem.factors, other_memory(problem), partly=True)]

    def solve(self, problem: OpenClustering) -> Clusters:
        problem = with_features(problem)
        factors, weights = problem.factors, problem.weights
        if problem.threshold is None:
            found = farthest_first(factors, weights, problem.expected_clusters, problem.rng)
            problem = replace(problem, threshold=found)
        assert problem.threshold is not None
        xp = array_ops.namespace(weights)
        mean = factors.rmatmul(weights) / float(xp.sum(weights))
        run = FeaturedRun(no_labels(problem.arranged), next_centres=mean[None, :])
        with progress("DP-means", problem.max_iter) as step:
            for _ in range(problem.max_iter):
                changed, squared = distances(factors, problem.arranged, run, problem.diagonal)
                opened, squared = open_clusters(problem, run, squared)
                dropped = _drop_empty(run)
                run.next_centres = centre_of(run.sums, run.masses)
                xp = array_ops.namespace(squared)
                inertia = float(xp.sum(problem.arranged * squared))
                run.history.append(inertia + problem.threshold**2 * run.next_centres.shape[0])
                step()
                if not changed and not opened and not dropped:
                    break
        return _clusters(problem, run, squared, run.next_centres, run.masses)


def _clusters(
    problem: OpenClustering, run: FeaturedRun, squared: Array, centres: Array, counts: Array
) -> Clusters:
    factors, xp = problem.factors, array_ops.namespace(centres)
    assert problem.threshold is not None
    turned = xp.matrix_transpose(centres)
    dual = factors.core_matmul(turned)
    labels, squared = factors.restore(run.labels), factors.restore(squared)
    norms = xp.sum(turned * dual, axis=0)
    return Clusters(labels, squared, run.history, counts, problem.threshold, dual, norms, centres)


def add_batch(problem: OpenClustering, centres: Array, counts: Array) -> Clusters:
    """Make one pass over a batch: far rows open clusters, then centres move to the new means.

    ``counts`` (k,) is the total weight of the rows averaged in each of the centres (k, r) so far.
    """
    problem = with_features(problem)
    assert problem.threshold is not None
    xp = problem.rows.xp
    run = FeaturedRun(no_labels(problem.arranged), next_centres=centres)
    _, squared = distances(problem.factors, problem.arranged, run, problem.diagonal)
    opened, squared = open_clusters(problem, run, squared)
    before = counts[:, None] * centres
    before = xp.concat((before, xp.zeros_like(run.sums[:opened, :])), axis=0)
    counts = xp.concat((counts, xp.zeros_like(run.masses[:opened])), axis=0) + run.masses
    moved = centre_of(before + run.sums, counts)
    return _clusters(problem, run, squared, moved, counts)


def with_features(problem: OpenClustering) -> OpenClustering:
    """Cache as many features as fit the memory budget."""
    room = room_left(other_memory(problem))
    return replace(problem, matrix=problem.factors.persist(room, partly=True))


def other_memory(problem: OpenClustering) -> Amounts:
    """Return the memory that passes over factors take, in addition to the features."""
    factors, expected = problem.factors, problem.expected_clusters
    n, r, item = factors.shape[0], factors.rank, array_ops.itemsize(factors.dtype)
    # The largest number of clusters if it is set, else the expected number.
    k = expected if problem.max_clusters is None else problem.max_clusters
    walks = (Z.walk_bytes(2 * k * item, 8 * k * Z.shape[1]) for Z in factors.parts)
    sample = min(n, sample_size(expected))
    return {
        "labels, weights and distances": 104 * n,
        "sampled and far rows": factors.parts.take_bytes(sample)
        + 4 * 8 * min(chunk_rows(problem.rows), n) * r,
        "centres": 8 * k * r * 8,
        "blocks": max(walks, default=0),
    }


def open_clusters(problem: OpenClustering, run: FeaturedRun, squared: Array) -> tuple[int, Array]:
    """Let rows beyond the threshold open clusters, in the order of the data.

    Updates the run's labels, sums and masses. Returns the number of new clusters, and the new
    squared distances (n,). Rows within the threshold are not compared with the new centres until
    the next pass.
    """
    assert problem.threshold is not None
    factors, limit, k = problem.factors, problem.threshold**2, run.sums.shape[0]
    beyond = (squared > limit) & (problem.arranged > 0)
    far = array_ops.where_true(factors.restore(beyond))
    room = len(far) if problem.max_clusters is None else min(len(far), problem.max_clusters - k)
    if room <= 0:
        return 0, squared
    labels, counted, before = (
        array_ops.take_rows(factors.restore(a), far)
        for a in (run.labels, problem.arranged, squared)
    )
    opened = Opened(limit, room, run.sums[:0, :])
    xp, gains, joined = factors.xp, run.sums, []
    for start, stop in even_spans(0, len(far), chunk_rows(problem.rows)):
        z, old = factors.coordinates(far[start:stop]), labels[start:stop]
        chunk = _chunk_of(z, factors, opened.centres)
        new, after, first = opened.take(chunk, array_ops.like(before[start:stop], z))
        opened.centres = xp.concat((opened.centres, array_ops.take_rows(z, first)), axis=0)
        old = array_ops.like(old, new)
        new = xp.where(new < 0, old, k + new)
        total = k + opened.centres.shape[0]
        config.check_fits(
            8 * 8 * total * factors.rank,
            f"the {total} or more clusters that threshold={problem.threshold:.3g} opens",
            "Use a larger threshold, or set max_clusters",
        )
        gains = xp.concat((gains, xp.zeros_like(opened.centres[gains.shape[0] - k :, :])), axis=0)
        w = array_ops.like(counted[start:stop], z)
        gains = gains + array_ops.sum_by_label(z, new, w, total, old)
        joined.append((new, after))
    count = opened.centres.shape[0]
    new, after = (xp.concat(each) for each in zip(*joined, strict=True))
    run.labels, squared = (
        _replaced(factors, run.labels, far, new),
        _replaced(factors, squared, far, after),
    )
    run.sums = gains
    masses = array_ops.mass_by_label(run.labels, problem.arranged, k + count)
    run.masses = array_ops.like(masses, run.sums)
    return count, squared


def _replaced(factors: Factors, values: Array, rows: np.ndarray, new: Array) -> Array:
    """Return values (n,), in the order of the parts, with new ones for some rows of the data."""
    restored = factors.restore(values)
    if array_ops.is_lazy(restored):
        host = np.array(array_ops.to_numpy(restored))
        host[rows] = array_ops.to_numpy(new)
        return factors.arrange(factors.parts.place.align(host))
    restored = array_ops.copy(restored)
    array_ops.put_rows(restored[:, None], rows, array_ops.like(new, restored)[:, None])
    return factors.arrange(restored)


def chunk_rows(rows: Rows) -> int:
    """Return how many far rows are processed together."""
    return CHUNK * 16 if array_ops.is_foreign(rows.place.reference) else CHUNK


class Chunk(NamedTuple):
    """Some far rows, by their inner products."""

    norms: Array  # squared norms, (n,)
    opened: Array  # products with the rows that opened clusters before, (n, clusters)
    column: Callable[[int], Array]  # products with one row of the chunk, (n,)


def _chunk_of(z: Array, factors: Factors, centres: Array) -> Chunk:
    """Return a chunk of rows with the features z (n, r), in the metric of the factors."""
    xp = array_ops.namespace(z)
    in_metric = z
    if factors.core is not None:
        in_metric = xp.matrix_transpose(factors.core_matmul(xp.matrix_transpose(z)))
    opened = xp.matmul(in_metric, xp.matrix_transpose(centres))
    return Chunk(xp.sum(z * in_metric, axis=1), opened, lambda at: xp.matmul(in_metric, z[at, :]))


class Opened:
    """The clusters that far rows open, one after the other."""

    def __init__(self, limit: float, room: int, centres: Array = None) -> None:
        self.limit = limit  # the squared threshold
        self.room = room  # the largest number of new clusters
        self.norms: list[float] = []  # of the rows that opened them
        self.centres = centres  # the features of these rows, if there are any

    def take(self, rows: Chunk, squared: Array) -> tuple[Array, Array, np.ndarray]:
        """Return the new cluster that each row joins, or -1, and its squared distance; both (n,).

        ``squared`` (n,) has the squared distances to the old centres. In order, each row joins the
        nearest cluster that is open by then, or opens one if all are too far; the last value
        returned has the places of these rows in the chunk.
        """
        xp = array_ops.namespace(squared)
        nearest = array_ops.copy(squared)
        labels = xp.full_like(nearest, -1, dtype=xp.int64)
        if self.norms:
            norms = array_ops.like(np.asarray(self.norms), nearest)
            distances = rows.norms[:, None] + norms - 2.0 * rows.opened
            closest, distance = xp.argmin(distances, axis=1), xp.min(distances, axis=1)
            labels = xp.where(distance < nearest, closest, labels)
            nearest = xp.minimum(distance, nearest)
        at, first = 0, []
        while len(self.norms) < self.room:
            far = xp.nonzero(nearest[at:] > self.limit)[0]
            if not far.shape[0]:
                break
            at += int(far[0])
            distances = (rows.norms + rows.norms[at] - 2.0 * rows.column(at))[at:]
            distances[0] = 0.0
            number = xp.full_like(labels[at:], len(self.norms))
            labels[at:] = xp.where(distances < nearest[at:], number, labels[at:])
            nearest[at:] = xp.minimum(distances, nearest[at:])
            self.norms.append(float(rows.norms[at]))
            first.append(at)
        return labels, nearest, np.asarray(first, dtype=np.intp)


def _drop_empty(run: FeaturedRun) -> int:
    """Remove clusters without rows; returns how many."""
    masses = array_ops.to_numpy(run.masses)
    filled = np.flatnonzero(masses > 0)
    if len(filled) == len(masses):
        return 0
    numbers = np.zeros(len(masses), dtype=np.int64)  # rows without weight go to cluster 0
    numbers[filled] = np.arange(len(filled))
    run.labels = array_ops.look_up(numbers, run.labels)
    run.sums = array_ops.take_rows(run.sums, filled)
    run.masses = array_ops.take_rows(run.masses, filled)
    return len(masses) - len(filled)


def sampled(weights: Array, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the numbers of the rows, with weight, that determine the threshold."""
    counted = with_weight(weights)
    most = weights.shape[0] if counted is None else len(counted)
    size = min(most, sample_size(rounds))
    return np.sort(rng.choice(most if counted is None else counted, size=size, replace=False))


def sample_size(clusters: int) -> int:
    """Return how many rows determine the threshold for this many clusters."""
    return 1000 + 200 * clusters


def farthest_first(
    factors: Factors, weights: Array, rounds: int, rng: np.random.Generator
) -> float:
    """Return a threshold that ``rounds`` rows exceed, each the farthest from those before.

    The first is the row farthest from the mean. ``weights`` has shape (n,).
    """
    chosen = sampled(weights, rounds, rng)
    sample, w = factors.take(chosen), array_ops.take_rows(weights, chosen)
    w = array_ops.like(w, sample.parts.example(), sample.xp.float64)
    xp, diagonal = sample.xp, sample.diagonal()

    def squared(point: Array) -> np.ndarray:
        dual = sample.core_matmul(point[:, None])
        products = sample.features_matmul(dual)[:, 0]
        return array_ops.host_float64(diagonal + xp.sum(point * dual[:, 0]) - 2.0 * products)

    noise = 1e3 * array_ops.eps(sample.dtype) * float(xp.max(diagonal))
    return threshold_of(
        squared(sample.rmatmul(w) / float(xp.sum(w))),
        lambda row: squared(sample.coordinates(np.asarray([row]))[0, :]),
        rounds,
        noise,
    )


def threshold_of(
    nearest: np.ndarray, squared_to: Callable[[int], np.ndarray], rounds: int, noise: float
) -> float:
    """Return a threshold from squared distances to the mean (n,), and to any row."""
    last = after = noise**0.5
    for _ in range(rounds + 1):
        far = int(nearest.argmax())
        last, after = after, max(float(nearest[far]), 0.0) ** 0.5
        if nearest[far] <= noise:  # all rows coincide with those taken
            break
        nearest = np.minimum(nearest, squared_to(far))
    # Halfway to the distance of the row that would be next: at a row's own distance, rounding would
    # decide whether the row opens a cluster.
    return (last + after) / 2
