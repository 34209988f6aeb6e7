"""Lloyd's algorithm on features: a centre is the mean of its rows of Z; S defines distances.

||z - c||² = zᵀSz - 2 zᵀSc + cᵀSc. Several restarts advance together and share each pass. A single
one checks only the rows whose cluster may have changed.

Swaps follow after convergence: a centre moves from where it matters little to where one is missing.
Lloyd's algorithm cannot take one of two centres out of a cluster and give it to two clusters that
share one. A swap can, at less cost than a restart. Removing centre i raises the objective by at
most m_i m_j / (m_i + m_j) ||c_i - c_j||², for any other centre j (Ward, 1963). A new centre at some
row lowers it by what the rows gain that are nearer to this row than to their centres. (Compare
Lattanzi and Sohler, 2019.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.learners.kmeans.clustering import best_few
from gramian.learners.kmeans.passes import Doubt, FeaturedRun, walk
from gramian.matrices.factors import Factors
from gramian.rows import even_spans
from gramian.samplers.base import Oracle
from gramian.samplers.plus_plus import Nearest

RACE = 10  # passes of all restarts, after which only the best goes on


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

    A single run is cheaper: it checks only the rows in doubt. After a few passes, another restart
    hardly ever becomes the best.
    """
    lloyd = partial(on_factors, factors, weights, sample=sample, tol=tol)
    passes = max_iter if len(first) == 1 else min(RACE, max_iter)
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


ROUNDS = 10  # of swaps at most
WORTH = 1e-3  # by which a round lowers the objective if it is worth another
PATIENCE = 1  # rounds without success, each with other candidates
CENTRES = 1024  # whose distances to all centres are in memory at once
PROMISE = 4.0  # candidates gain more once they move to the mean of their rows; swaps are tried

PASSES = 4  # in which a trial of swaps must lower the objective
FEWER = 4  # if it does not, this part of the swaps is tried

Lloyd = Callable[..., list[FeaturedRun]]


def improved(
    run: FeaturedRun, factors: Factors, weights: Array, lloyd: Lloyd, rng: np.random.Generator,
    matrix: Oracle | None = None,
) -> FeaturedRun:  # fmt: skip
    """Return a run with a lower objective, or this one if no swap is found that lowers it.

    ``lloyd`` runs from a list of centres (k, r) on the same rows, with these ``weights`` (n,), by
    default until convergence. A run that had to stop before is returned as it is. ``matrix`` gives
    K̃ of these rows, if not the factors do.
    """
    if not run.done:
        return run
    failures, best = 0, run
    for _ in range(ROUNDS):
        before = best.inertia
        best = _swapped(best, lloyd, *_promising(best, factors, weights, rng, matrix)) or best
        failures = 0 if best.inertia < (1.0 - WORTH) * before else failures + 1
        if failures > PATIENCE:
            break
    return best if best is run or best.done else best.then(lloyd([best.next_centres])[0])


def _swapped(
    run: FeaturedRun, lloyd: Lloyd, removed: np.ndarray, added: Array
) -> FeaturedRun | None:
    """Try all these swaps, then fewer, down to one; None if none lowers the objective."""
    while len(removed):
        centres = array_ops.copy(run.next_centres)
        array_ops.put_rows(centres, removed, added)
        tried = lloyd([centres], max_iter=PASSES)[0]
        if tried.inertia < run.inertia:
            return run.then(tried)
        fewer = len(removed) // FEWER if len(removed) > FEWER else len(removed) - 1
        removed, added = removed[:fewer], added[:fewer, :]
    return None


def _promising(
    run: FeaturedRun, factors: Factors, weights: Array, rng: np.random.Generator,
    matrix: Oracle | None,
) -> tuple[np.ndarray, Array]:  # fmt: skip
    """Return centres to remove (s,) and what replaces them (s, r), the best swap first."""
    arranged = factors.arrange(weights)
    now = FeaturedRun(no_labels(arranged), next_centres=run.next_centres)
    nearest, k = Nearest(matrix or factors, weights), run.next_centres.shape[0]
    _, squared = distances(factors, arranged, now, factors.arrange(nearest.diagonal))
    nearest.known(array_ops.clip(factors.restore(squared), low=0.0))
    candidates = np.unique(nearest.drawn(rng, 8 + k // 4))
    if not len(candidates):
        return candidates, run.next_centres[:0, :]
    homes = array_ops.take_rows(factors.restore(now.labels), candidates)
    gains = nearest.gains(candidates)
    removed, chosen = _pairs(*_costs(now), array_ops.to_numpy(homes), gains)
    return removed, factors.coordinates(candidates[chosen])


def _costs(run: FeaturedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much the objective rises at most without each centre, and its nearest centre.

    Both have shape (k,). The means of the clusters count, not the centres that defined them.
    """
    xp, k = array_ops.namespace(run.dual), run.norms.shape[0]
    costs, heirs = np.empty(k), np.empty(k, dtype=np.intp)
    for start, stop in even_spans(0, k, CENTRES):
        some = slice(start, stop)
        own = run.masses[some][:, None]
        shares = own * run.masses / array_ops.clip(own + run.masses, low=1e-300)
        products = xp.matmul(run.centres[some, :], run.dual)
        merged = run.norms[some][:, None] + run.norms - 2.0 * products
        host = array_ops.to_numpy(array_ops.clip(shares * merged, low=0.0))
        host[np.arange(stop - start), np.arange(start, stop)] = np.inf
        costs[some], heirs[some] = host.min(axis=1), host.argmin(axis=1)
    return costs, heirs


def _pairs(
    costs: np.ndarray, heirs: np.ndarray, homes: np.ndarray, gains: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Match centres to remove (s,) with the numbers of candidates (s,), the best swap first.

    Each candidate comes from another cluster, ``homes`` (candidates,), which keeps its centre. The
    ``heirs`` (k,) of removed centres keep theirs too.
    """
    best = np.argsort(-gains)
    best = best[np.sort(np.unique(homes[best], return_index=True)[1])]
    order = iter(np.argsort(costs))
    removed: list[int] = []
    chosen: list[int] = []
    for candidate in best:
        busy = {*homes[chosen], homes[candidate], *heirs[removed]}
        centre = next((c for c in order if c not in busy and heirs[c] not in removed), None)
        if centre is None or costs[centre] >= PROMISE * gains[candidate]:
            break
        removed.append(int(centre))
        chosen.append(int(candidate))
    return np.asarray(removed, dtype=int), np.asarray(chosen, dtype=int)
