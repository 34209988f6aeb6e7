"""Mini-batches: centres as running means of the rows assigned to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.progress import progress
from gramian.learners.kmeans.clustering import Clustering, Run
from gramian.learners.kmeans.featured import other_memory
from gramian.learners.kmeans.lloyd import centre_of, fill_empty, one_pass
from gramian.learners.kmeans.passes import FeaturedRun
from gramian.learners.kmeans.starts import Sample, first_centres
from gramian.learners.strategy import Strategy
from gramian.matrices.factors import Factors

PATIENCE = 10  # batches
SMOOTHING = 0.1  # the share of the latest batch in the smoothed objective


class MiniBatches(Strategy[Clustering]):
    """Updates with batches of random rows, then one pass over all rows; caches no features."""

    def serves(self, problem: Clustering) -> bool:
        return not problem.is_exact and problem.batch_size is not None

    def memory(self, problem: Clustering) -> Sequence[Amounts]:
        assert problem.batch_size is not None
        size = min(problem.batch_size, problem.factors.shape[0])
        batch = problem.factors.parts.take_bytes(size) + 4 * 8 * size
        return [{**other_memory(problem), "batch": batch}]

    def solve(self, problem: Clustering) -> Run:
        assert problem.batch_size is not None
        factors, rows, weights = problem.factors, problem.rows, problem.weights
        approximation = problem.approximation
        assert approximation is not None
        sample = Sample.draw(problem, factors, single=True)
        start = first_centres(problem, sample, factors)
        centres, history = on_batches(
            lambda numbers: approximation.factor_rows(rows.choose(numbers)),
            weights,
            start.centres[0],
            start.masses,
            problem.rng,
            batch_size=problem.batch_size,
            max_iter=problem.max_iter,
            tol=problem.tol,
        )
        run = one_pass(factors, weights, centres)
        run.history = history + run.history
        return run


def update(
    centres: Array, counts: Array, factors: Factors, weights: Array
) -> tuple[Array, Array, FeaturedRun]:
    """Move each centre to the mean of its rows so far and those of the batch nearest to it.

    This is equivalent to the row-by-row steps of Sculley (2010). A centre without any rows so far
    moves to the row of the batch that is farthest from all centres. Returns the centres (k, r), the
    total weight (k,) of the rows averaged in each, and the pass over the batch before they moved.
    ``counts`` (k,) is that weight so far, ``weights`` (n,) are those of the batch.
    """
    run = one_pass(factors, weights, centres)
    total = counts + run.masses
    moved = centre_of(counts[:, None] * centres + run.sums, total)
    return fill_empty(moved, total, centres, factors)[0], total, run


def on_batches(
    part: Callable[[np.ndarray], Factors],
    weights: Array,
    centres: Array,
    counts: Array,
    rng: np.random.Generator,
    *,
    batch_size: int,
    max_iter: int,
    tol: float,
) -> tuple[Array, list[float]]:
    """Update with batches of random rows until the smoothed objective no longer falls.

    ``part(numbers)`` returns the factors of some rows; ``max_iter`` counts batches that together
    have n rows as one pass. ``weights`` (n,) are those of all rows; ``centres`` (k, r) are the
    first ones, means of rows with total weights ``counts`` (k,). Returns the centres (k, r), and
    the objective estimated from each batch.
    """
    xp, n = array_ops.namespace(weights), weights.shape[0]
    total = float(xp.sum(weights))
    history: list[float] = []
    smoothed = best = np.inf
    waited, steps = 0, ceil(max_iter * n / batch_size)
    with progress("mini-batches", steps) as step:
        for _ in range(steps):
            numbers = np.sort(rng.integers(n, size=batch_size))
            w = array_ops.take_rows(weights, numbers)
            mass = float(array_ops.namespace(w).sum(w))
            if mass > 0:
                batch = part(numbers).persist()
                centres, counts, run = update(centres, counts, batch, batch.parts.place.align(w))
                now = run.inertia * total / mass
                smoothed = now if not history else smoothed + SMOOTHING * (now - smoothed)
                history.append(now)
                waited = 0 if smoothed < (1.0 - tol) * best else waited + 1
                best = min(best, smoothed)
            step()
            if waited >= PATIENCE:
                break
    return centres, history
