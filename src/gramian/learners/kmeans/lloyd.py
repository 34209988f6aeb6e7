"""Lloyd's algorithm on features: a centre is the mean of its rows of Z; S defines distances.

||z - c||² = zᵀSz - 2 zᵀSc + cᵀSc. A run checks only the rows whose cluster may have changed, or
several advance together and share each pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.learners.kmeans.clustering import best_few
from gramian.learners.kmeans.margins import Doubt
from gramian.learners.kmeans.passes import FeaturedRun, walk
from gramian.matrices.factors import Factors

RACE = 400  # passes of all restarts times clusters, after which only the best goes on
LEAST_RACE = 5  # passes
CLOSE = 4  # restarts from which on more passes decide: the more there are, the closer is the race
APART = 32  # clusters from which on restarts make passes of their own


def on_factors(
    factors: Factors,
    weights: Array,
    first: list[Array],
    sample: Factors,
    *,
    max_iter: int,
    tol: float,
) -> list[FeaturedRun]:
    """Run from first centres, shape (k, r) for each restart; one pass over all rows per iteration.

    An empty cluster gets the farthest row of ``sample``. ``weights`` has shape (n,).
    """
    runs = started(factors, first)
    advance(factors, factors.arrange(weights), runs, sample, max_iter=max_iter, tol=tol)
    return [finished(factors, run) for run in runs]


def started(factors: Factors, first: list[Array]) -> list[FeaturedRun]:
    """Return runs from first centres (k, r), before their first pass.

    With many clusters, each makes passes of its own, over the rows in doubt. Otherwise they share
    passes, which also is better if passes compute the features, or workers have them.
    """
    parts = factors.parts
    doubts = Doubt.is_possible(factors) and first[0].shape[0] > 1
    if len(first) > 1:
        here = parts.evaluations == 0 and parts.place.now(lambda: True) is not None
        doubts = doubts and here and first[0].shape[0] >= APART
    return [
        FeaturedRun(
            no_labels(parts.place.constant(1.0)),
            next_centres=centres,
            doubt=Doubt(factors) if doubts else None,
        )
        for centres in first
    ]


def finished(factors: Factors, run: FeaturedRun) -> FeaturedRun:
    """Return the run with its labels in the order of the data; it does not go on."""
    run.labels, run.doubt = factors.restore(run.labels), None
    return run


def advance(
    factors: Factors, weights: Array, runs: list[FeaturedRun], sample: Factors, *, max_iter: int,
    tol: float,
) -> None:  # fmt: skip
    """Advance runs until they are done, by at most ``max_iter`` passes.

    ``weights`` (n,) are in the order of the parts.
    """
    if len(runs) > 1 and runs[0].doubt is not None:
        for run in runs:
            advance(factors, weights, [run], sample, max_iter=max_iter, tol=tol)
        return
    with progress("kernel k-means", max_iter) as step:
        for _ in range(max_iter):
            going = [run for run in runs if not run.done]
            if not going:
                break
            first = going[0].masses is None
            changes, inertia = assign(factors, weights, going, first, going[0].doubt)
            if first:  # it computes the trace
                trace = inertia - going[0].objective()
                for run in going:
                    run.trace = trace
            for run, changed in zip(going, changes, strict=True):
                centres = centre_of(run.sums, run.masses)
                run.next_centres, refilled = fill_empty(centres, run.masses, run.centres, sample)
                if run.doubt is not None:
                    run.doubt.move(run)
                unchanged = changed == 0 and not refilled
                run.record(run.objective(), unchanged, 0.0 if refilled else tol)
            step()


def best_run(
    factors: Factors, weights: Array, first: list[Array], sample: Factors, *, max_iter: int,
    tol: float,
) -> FeaturedRun:  # fmt: skip
    """Run all restarts for a few passes, and the best of them until convergence."""
    lloyd = partial(advance, factors, factors.arrange(weights), sample=sample, tol=tol)
    return finished(factors, winner(lloyd, started(factors, first), factors, max_iter))


def raced(
    factors: Factors, weights: Array, first: list[Array], *, max_iter: int, tol: float
) -> Array:
    """Run all restarts on few rows for a few passes; returns the centres (k, r) of the best."""
    runs = started(factors, first)
    passes = min(race_passes(runs), max_iter)
    weights = factors.arrange(weights)
    advance(factors, weights, runs, factors, max_iter=passes, tol=tol)
    return best_few(runs, 1, factors.dtype)[0].next_centres


def race_passes(runs: list[FeaturedRun]) -> int:
    """Return how many passes decide between restarts.

    The more clusters there are, the more alike are the restarts, and the more a pass costs.
    """
    passes = RACE * max(len(runs), CLOSE) // (CLOSE * runs[0].next_centres.shape[0])
    return max(passes, LEAST_RACE)


def winner(
    lloyd: Callable[..., None], runs: list[FeaturedRun], factors: Factors, max_iter: int
) -> FeaturedRun:
    """Advance all runs for a few passes, and the best of them until ``lloyd`` is done with it."""
    passes = max_iter if len(runs) == 1 else min(race_passes(runs), max_iter)
    lloyd(runs, max_iter=passes)
    best = best_few(runs, 1, factors.dtype)[0]
    if best.doubt is None and Doubt.is_possible(factors) and best.next_centres.shape[0] > 1:
        best.doubt = Doubt(factors)
    if not best.done and passes < max_iter:
        lloyd([best], max_iter=max_iter - passes)
    return best


def one_pass(factors: Factors, weights: Array, centres: Array) -> FeaturedRun:
    """Assign rows to the nearest of the centres (k, r): labels, sums, masses and the objective."""
    weights = factors.arrange(weights)
    run = FeaturedRun(no_labels(weights), next_centres=centres)
    _, inertia = assign(factors, weights, [run], measured=True)
    run.labels = factors.restore(run.labels)
    run.history = [max(inertia, 0.0)]
    return run


def no_labels(weights: Array) -> Array:
    """Return labels -1: no row is in a cluster yet."""
    xp = array_ops.namespace(weights)
    return xp.full_like(weights, -1, dtype=xp.int64)


def assign(
    factors: Factors,
    weights: Array,
    runs: list[FeaturedRun],
    measured: bool = False,
    doubt: Doubt | None = None,
) -> tuple[list[int], float]:
    """Assign each row to the nearest of the ``next_centres`` of each run, in one pass.

    Returns the number of changed rows of each run and, if ``measured``, the first run's inertia.
    With ``doubt``, for a single run, only rows in doubt are checked.
    """
    if doubt is not None:
        counts = doubt.walk(factors, weights, runs[0], measured)
    else:
        labels = [run.labels for run in runs]
        counts, labels = walk(factors, weights, runs, labels, measured=measured)
        for run, run_labels in zip(runs, labels, strict=True):
            run.labels = run_labels
    return [int(counts[i]) for i in range(len(runs))], float(counts[-1])


def distances(
    factors: Factors, weights: Array, run: FeaturedRun, diagonal: Array
) -> tuple[int, Array]:
    """Return the number of changed rows, and squared distances (n,) to the centres, in one pass.

    ``diagonal`` (n,) is that of the matrix, in the order of the parts.
    """
    zeros = array_ops.namespace(weights).zeros_like(weights)
    counts, (run.labels, less) = walk(factors, weights, [run], [run.labels, zeros])
    return int(counts[0]), less + diagonal


def centre_of(sums: Array, masses: Array) -> Array:
    """Return the mean (k, r) of each cluster from sums (k, r) and masses (k,); 0 if it is empty."""
    xp = array_ops.namespace(sums)
    return sums / xp.where(masses > 0, masses, xp.ones_like(masses))[:, None]


def means(factors: Factors, weights: Array, labels: Array, k: int) -> Array:
    """Return the mean (k, r) of the rows with each label; ``weights`` and ``labels`` (n,)."""
    arranged = factors.arrange(weights), factors.arrange(labels)

    def sums(z: Array, w: Array, own: Array) -> tuple[Array, Array]:
        return array_ops.sum_by_label(z, own, w, k), array_ops.mass_by_label(own, w, k)

    parts = factors.sum(lambda columns: sums, *arranged, label="means")
    total = factors.xp.concat([part[0] for part in parts], axis=1)
    return centre_of(total, sum(part[1] for part in parts))


def fill_empty(centres: Array, masses: Array, before: Array, sample: Factors) -> tuple[Array, bool]:
    """Move the centre of each empty cluster to the sampled row farthest from all centres.

    Returns the centres (k, r), and whether any was moved. If all rows coincide with centres, an
    empty cluster gets back its centre from ``before`` (k, r).
    """
    masses = array_ops.to_numpy(masses)
    empty = np.flatnonzero(masses == 0)
    if not len(empty):
        return centres, False
    diagonal, ones = sample.diagonal(), sample.parts.place.constant(1.0)
    xp = array_ops.namespace(diagonal)
    filled = FeaturedRun(
        no_labels(ones), next_centres=array_ops.take_rows(centres, np.flatnonzero(masses > 0))
    )
    _, nearest = distances(sample, ones, filled, sample.arrange(diagonal))
    nearest = sample.restore(nearest)
    noise = 1e3 * array_ops.eps(sample.dtype) * float(xp.max(diagonal))
    centres, refilled = array_ops.copy(centres), False
    for j in empty:
        far = int(xp.argmax(nearest))
        if float(nearest[far]) <= noise:
            centres[int(j), :] = before[int(j), :]
            continue
        number = np.asarray([far])
        centres[int(j), :] = sample.coordinates(number)[0, :]
        to_far = diagonal + diagonal[far] - 2.0 * sample.columns(number)[:, 0]
        nearest = xp.minimum(nearest, to_far)
        refilled = True
    return centres, refilled
