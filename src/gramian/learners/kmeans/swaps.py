"""Swaps after convergence: a centre moves from where it matters little to where one is missing.

Lloyd's algorithm cannot take one of two centres out of a cluster and give it to two clusters that
share one. A swap can, at less cost than a restart. Removing centre i raises the objective by at
most m_i m_j / (m_i + m_j) ||c_i - c_j||², for any other centre j (Ward, 1963). A new centre at some
row lowers it by what the rows gain that are nearer to this row than to their centres. (Compare
Lattanzi and Sohler, 2019.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.kmeans.lloyd import distances, no_labels
from gramian.learners.kmeans.passes import FeaturedRun
from gramian.matrices.factors import Factors
from gramian.rows import even_spans
from gramian.samplers.base import Oracle
from gramian.samplers.plus_plus import Nearest

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
