"""Swaps after convergence: a centre moves from where it matters little to where one is missing.

Lloyd's algorithm cannot take one of two centres out of a cluster and give it to two clusters that
share one. A swap can, at less cost than a restart. Removing centre i raises the objective by at
most m_i m_j / (m_i + m_j) ||c_i - c_j||², for any other centre j (Ward, 1963). By the same formula,
dividing a cluster into rows with the means c_i and c_j lowers it. So a swap that costs less than it
gains is sure to lower the objective. (Compare Lattanzi and Sohler, 2019.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.kmeans.lloyd import (
    advance,
    centre_of,
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
PROMISE = 2.0  # times its gain may a swap cost if none is sure: passes increase the gain
DRAWN = 4  # times as many rows as clusters, of which one is the first to divide its cluster
STEPS = 3  # of 2-means that divide a cluster

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
        swapped = _swapped(run, lloyd, _promising(run, factors, weights, rng))
        if swapped is None:
            break
        run, before = swapped, run.inertia
        if run.inertia > (1.0 - WORTH) * before:
            break
    return run


class Swaps(NamedTuple):
    """Centres to remove and clusters to divide, each (s,), and the means of the halves, (s, r)."""

    removed: np.ndarray
    divided: np.ndarray
    one: Array
    other: Array

    def best(self, count: int) -> Swaps:
        """Return the first of them."""
        return Swaps(*(each[:count, ...] for each in self))

    def applied(self, centres: Array) -> Array:
        """Return centres (k, r) that are swapped."""
        centres = array_ops.copy(centres)
        array_ops.put_rows(centres, self.removed, self.one)
        array_ops.put_rows(centres, self.divided, self.other)
        return centres


def _swapped(run: FeaturedRun, lloyd: Lloyd, swaps: Swaps) -> FeaturedRun | None:
    """Try all these swaps, then fewer, down to one; None if none lowers the objective."""
    while count := len(swaps.removed):
        tried = run.branch(swaps.applied(run.next_centres))
        lloyd([tried], max_iter=PASSES)
        if tried.inertia < run.inertia:
            return run.then(tried)
        swaps = swaps.best(count // FEWER if count > FEWER else count - 1)
    return None


def _promising(
    run: FeaturedRun, factors: Factors, weights: Array, rng: np.random.Generator
) -> Swaps:
    """Return swaps that are likely to lower the objective, the best first."""
    now, k = run.branch(run.next_centres), run.next_centres.shape[0]
    nearest = Nearest(factors, factors.restore(weights))
    _, squared = distances(factors, weights, now, factors.arrange(nearest.diagonal))
    nearest.known(array_ops.clip(factors.restore(squared), low=0.0))
    rows = nearest.drawn(rng, DRAWN * k)
    if not len(rows):  # every row is at its centre
        return Swaps(rows, rows, now.centres[:0, :], now.centres[:0, :])
    homes = array_ops.to_numpy(array_ops.take_rows(factors.restore(now.labels), rows))
    homes, first = np.unique(homes, return_index=True)
    means, gains = _halves(now, factors, weights, homes, factors.coordinates(rows[first]))
    removed, divided = _pairs(*_costs(now), gains)
    halves = (array_ops.take_rows(means, divided + below) for below in (0, k))
    return Swaps(removed, divided, *halves)


def _halves(
    run: FeaturedRun, factors: Factors, weights: Array, homes: np.ndarray, rows: Array
) -> tuple[Array, np.ndarray]:
    """Divide the clusters ``homes`` (s,) in two, by a few steps of 2-means.

    Each is first divided at its centre, across the direction of one of the ``rows`` (s, r). Returns
    the means (2k, r), as ``_sides``, and by how much the divisions lower the objective (k,).
    """
    xp, k = array_ops.namespace(run.dual), run.norms.shape[0]
    middles, host = run.centres, np.zeros((k, factors.rank))
    host[homes] = array_ops.to_numpy(rows - array_ops.take_rows(middles, homes))
    ways = xp.matrix_transpose(array_ops.like(host, middles))
    for step in range(STEPS + 1):
        duals = factors.core_matmul(ways)
        if step == STEPS:
            break
        bounds = xp.sum(xp.matrix_transpose(middles) * duals, axis=0)
        means, masses = _sides(factors, weights, run.labels, duals, bounds)
        one, other = means[:k, :], means[k:, :]
        ways, middles = xp.matrix_transpose(other - one), 0.5 * (one + other)
    gains = _ward(masses[:k], masses[k:], xp.sum(ways * duals, axis=0))
    return means, array_ops.to_numpy(gains)


def _ward(one: Array, other: Array, squared: Array) -> Array:
    """Return what two clusters of these masses, at this squared distance, gain over one."""
    shares = one * other / array_ops.clip(one + other, low=1e-300)
    return array_ops.clip(shares * squared, low=0.0)


def _sides(
    factors: Factors, weights: Array, labels: Array, duals: Array, bounds: Array
) -> tuple[Array, Array]:
    """Divide each cluster by a plane, given by ``duals`` (r, k) and ``bounds`` (k,).

    Returns the means (2k, r) of all halves below their planes, then those above, and the masses.
    """
    xp, k = array_ops.namespace(bounds), bounds.shape[0]
    limits = array_ops.astype(bounds, factors.dtype)

    def prepare(columns: slice) -> Callable[..., tuple[Array, Array]]:
        normals = xp.matrix_transpose(duals[columns, :])
        normals = array_ops.contiguous(array_ops.astype(normals, factors.dtype))

        def sums(z: Array, w: Array, own: Array) -> tuple[Array, Array]:
            heights = xp.sum(z * array_ops.take_rows(normals, own), axis=1)
            above = heights > array_ops.take_rows(limits, own)
            sides = own + k * array_ops.astype(above, own.dtype)
            masses = array_ops.mass_by_label(sides, w, 2 * k)
            return array_ops.sum_by_label(z, sides, w, 2 * k), masses

        return sums

    row_bytes = 2 * factors.rank * array_ops.itemsize(factors.dtype)
    by_part = factors.sum(prepare, weights, labels, row_bytes=row_bytes, label="halves")
    masses = sum(part[1] for part in by_part)
    return centre_of(xp.concat([part[0] for part in by_part], axis=1), masses), masses


def _costs(run: FeaturedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much the objective rises at most without each centre, and its nearest centre.

    Both have shape (k,). The means of the clusters count, not the centres that defined them.
    """
    xp, k = array_ops.namespace(run.dual), run.norms.shape[0]
    costs, heirs = np.empty(k), np.empty(k, dtype=np.intp)
    for start, stop in even_spans(0, k, CENTRES):
        some = slice(start, stop)
        products = xp.matmul(run.centres[some, :], run.dual)
        squared = run.norms[some][:, None] + run.norms - 2.0 * products
        host = array_ops.to_numpy(_ward(run.masses[some][:, None], run.masses, squared))
        host[np.arange(stop - start), np.arange(start, stop)] = np.inf
        costs[some], heirs[some] = host.min(axis=1), host.argmin(axis=1)
    return costs, heirs


def _pairs(
    costs: np.ndarray, heirs: np.ndarray, gains: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Match centres to remove (s,) with clusters to divide (s,), the best swap first.

    A cluster that is divided keeps its centre, and so do the ``heirs`` (k,) of removed centres. If
    some swaps are sure to lower the objective, the others are left out.
    """
    order = iter(np.argsort(costs))
    removed: list[int] = []
    divided: list[int] = []
    for cluster in np.argsort(-gains):
        busy = {*divided, cluster, *heirs[removed]}
        centre = next((c for c in order if c not in busy and heirs[c] not in removed), None)
        if centre is None or costs[centre] >= PROMISE * gains[cluster]:
            break
        removed.append(int(centre))
        divided.append(int(cluster))
    sure = int(np.count_nonzero(costs[removed] < gains[divided])) or len(removed)
    return np.asarray(removed[:sure], dtype=int), np.asarray(divided[:sure], dtype=int)
