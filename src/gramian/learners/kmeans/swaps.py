"""Swaps after convergence: a centre moves from where it matters little to where one is missing.

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
from gramian.learners.kmeans.lloyd import (
    advance,
    distances,
    finished,
    started,
    winner,
)
from gramian.learners.kmeans.passes import FeaturedRun
from gramian.matrices.factors import Factors
from gramian.rows import even_spans
from gramian.samplers.plus_plus import Nearest

ROUNDS = 10  # of swaps at most
WORTH = 5e-4  # by which a round lowers the objective if it is worth another
COARSE = 1e-4  # the tolerance of passes before swaps and between them
CENTRES = 1024  # whose distances to all centres are in memory at once
PROMISE = 4.0  # candidates gain more once they move to the mean of their rows; swaps are tried

PASSES = 4  # in which a trial of swaps must lower the objective
FEWER = 4  # if it does not, this part of the swaps is tried

Lloyd = Callable[..., None]


def swapped_run(
    factors: Factors, weights: Array, first: list[Array], rng: np.random.Generator, *,
    sample: Factors, max_iter: int, tol: float,
) -> FeaturedRun:  # fmt: skip
    """Return the best run from these centres, improved by swaps, until convergence.

    Passes are coarse until no swap is worth another: it would undo what fine ones gain. A run that
    may not go on is not swapped.
    """
    weights = factors.arrange(weights)
    coarse = partial(advance, factors, weights, sample=sample, tol=max(tol, COARSE))
    best = winner(coarse, started(factors, first), factors, max_iter)
    left = max_iter - len(best.history)
    if not best.done or left == 0:
        return finished(factors, best)
    best = improved(best, factors, weights, coarse, rng)
    if not best.done or tol < COARSE:
        best.done = False
        advance(factors, weights, [best], sample, max_iter=left, tol=tol)
    return finished(factors, best)


def improved(
    run: FeaturedRun, factors: Factors, weights: Array, lloyd: Lloyd, rng: np.random.Generator
) -> FeaturedRun:
    """Return a run with a lower objective, or this one if no swap is found that lowers it.

    ``lloyd`` advances a list of runs on the same rows, with these ``weights`` (n,).
    """
    for _ in range(ROUNDS):
        swapped = _swapped(run, lloyd, *_promising(run, factors, weights, rng))
        if swapped is None:
            break
        run, before = swapped, run.inertia
        if run.inertia > (1.0 - WORTH) * before:
            break
    return run


def _swapped(
    run: FeaturedRun, lloyd: Lloyd, removed: np.ndarray, added: Array
) -> FeaturedRun | None:
    """Try all these swaps, then fewer, down to one; None if none lowers the objective."""
    while len(removed):
        centres = array_ops.copy(run.next_centres)
        array_ops.put_rows(centres, removed, added)
        tried = run.branch(centres)
        lloyd([tried], max_iter=PASSES)
        if tried.inertia < run.inertia:
            return run.then(tried)
        fewer = len(removed) // FEWER if len(removed) > FEWER else len(removed) - 1
        removed, added = removed[:fewer], added[:fewer, :]
    return None


def _promising(
    run: FeaturedRun, factors: Factors, weights: Array, rng: np.random.Generator
) -> tuple[np.ndarray, Array]:
    """Return centres to remove (s,) and what replaces them (s, r), the best swap first."""
    now = run.branch(run.next_centres)
    nearest, k = Nearest(factors, factors.restore(weights)), run.next_centres.shape[0]
    _, squared = distances(factors, weights, now, factors.arrange(nearest.diagonal))
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
