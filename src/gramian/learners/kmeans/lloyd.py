"""Lloyd's algorithm on features: a centre is the mean of its rows of Z; S defines distances.

||z - c||² = zᵀSz - 2 zᵀSc + cᵀSc. Several restarts advance together and share each pass. A single
one checks only the rows whose cluster may have changed.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.learners.kmeans.clustering import best_few
from gramian.learners.kmeans.passes import Doubt, FeaturedRun, walk
from gramian.matrices.factors import Factors

RACE = 400  # passes of all restarts times clusters, after which only the best goes on
LEAST_RACE = 4  # passes


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
    weights = factors.arrange(weights)  # labels are also in the order of the parts, until the end
    runs = [FeaturedRun(no_labels(weights), next_centres=centres) for centres in first]
    single = len(runs) == 1 and first[0].shape[0] > 1
    doubt = Doubt(factors) if single and Doubt.is_possible(factors) else None
    with progress("kernel k-means", max_iter) as step:
        for number in range(max_iter):
            going = [run for run in runs if not run.done]
            if not going:
                break
            changes, inertia = assign(factors, weights, going, number == 0, doubt)
            if number == 0:  # the first pass computes the trace
                trace = inertia - runs[0].objective()
                for run in runs:
                    run.trace = trace
            for run, changed in zip(going, changes, strict=True):
                centres = centre_of(run.sums, run.masses)
                run.next_centres, refilled = fill_empty(centres, run.masses, run.centres, sample)
                if doubt is not None:
                    doubt.move(run)
                unchanged = changed == 0 and not refilled
                run.record(run.objective(), unchanged, 0.0 if refilled else tol)
            step()
    for run in runs:
        run.labels = factors.restore(run.labels)
    return runs


def best_run(
    factors: Factors, weights: Array, first: list[Array], sample: Factors, *, max_iter: int,
    tol: float,
) -> FeaturedRun:  # fmt: skip
    """Run all restarts for a few passes, and the best of them until convergence.

    A single run is cheaper: it checks only the rows in doubt. The more clusters there are, the more
    alike are the restarts, and the more a pass costs, so that fewer passes decide.
    """
    lloyd = partial(on_factors, factors, weights, sample=sample, tol=tol)
    race = max(RACE // first[0].shape[0], LEAST_RACE)
    passes = max_iter if len(first) == 1 else min(race, max_iter)
    best = best_few(lloyd(first, max_iter=passes), 1, factors.dtype)[0]
    if best.done or passes == max_iter:
        return best
    return best.then(lloyd([best.next_centres], max_iter=max_iter - passes)[0])


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
