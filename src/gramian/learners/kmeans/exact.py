"""Lloyd's algorithm on the exact kernel matrix.

All restarts advance together and share each pass over the matrix. A centre is the mean of its rows
in feature space, stored as the weights of these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.progress import progress
from gramian.kernels.tiles import tile_columns
from gramian.learners.kmeans.clustering import (
    Clustering,
    Run,
    best_few,
    drawn,
    nearest,
    nearest_in_init,
)
from gramian.learners.strategy import Strategy
from gramian.matrices.gram import Gram

MORE = 4  # times as many starts as restarts, if the matrix is kept
RACE = 4  # passes of all starts, after which only the best go on


class ExactLloyd(Strategy[Clustering]):
    """Passes over the exact matrix, which is stored if it is small."""

    def serves(self, problem: Clustering) -> bool:
        return problem.is_exact

    def memory(self, problem: Clustering) -> Sequence[Amounts]:
        gram = problem.gram
        n, item = gram.shape[0], array_ops.itemsize(gram.dtype)
        columns = problem.k * _at_once(problem)
        tile = min(n, tile_columns(gram.rows.place.reference))
        step = {
            "kernel matrix": gram.kept_bytes,
            "blocks of the matrix": gram.product_bytes,
            "labels": 8 * n * (8 + _starts(problem)),
            "centres as weights of rows": 5 * 8 * n * columns,
            "blocks": gram.rows.walk_bytes(item * (tile + 4 * columns)),
        }
        return [step]

    def solve(self, problem: Clustering) -> Run:
        gram, k, weights = problem.gram.persist(), problem.k, problem.weights
        runs = [ExactRun(labels) for labels in self._first_labels(problem, gram)]
        together = _at_once(problem)

        def advance(max_iter: int) -> None:
            for start in range(0, len(runs), together):
                some = runs[start : start + together]
                on_matrix(gram, weights, some, k=k, tol=problem.tol, max_iter=max_iter)
                if together < len(runs):
                    for run in some:
                        run.members = run.sums = None  # they take the room of the others

        if len(runs) > problem.restarts:  # the others hardly ever overtake the best
            advance(min(RACE, problem.max_iter))
            runs = best_few(runs, problem.restarts, gram.dtype)
        advance(problem.max_iter)
        return best_few(runs, 1, gram.dtype)[0]

    def _first_labels(self, problem: Clustering, gram: Gram) -> list[Array]:
        """Return labels (n,) for each restart: the nearest first centre of each row."""
        k, init = problem.k, problem.init
        if not isinstance(init, str):
            return [nearest_in_init(init, k, problem.gram)]
        weights = array_ops.to_numpy(problem.weights)
        seeds = [drawn(gram, k, init, weights, problem.rng) for _ in range(_starts(problem))]
        norms = [array_ops.take_rows(gram.diag(), each) for each in seeds]
        return [nearest(gram.columns(s), norm) for s, norm in zip(seeds, norms, strict=True)]


def _starts(problem: Clustering) -> int:
    """Return how many first centres are drawn: more, if passes are cheap and share a product."""
    if not isinstance(problem.init, str) or not problem.gram.fits():
        return problem.restarts
    return MORE * problem.restarts


def _at_once(problem: Clustering) -> int:
    """Return how many of them advance together."""
    return max(1, min(_starts(problem), _room(problem)))


def _room(problem: Clustering) -> int:
    # Each needs a matrix of weights, its product with K, and copies of both.
    return config.memory_budget() // 4 // (problem.gram.shape[0] * problem.k * 8 * 4)


@dataclass(eq=False)
class ExactRun(Run):
    """A restart on the exact matrix."""

    members: Array = None  # the weights of each cluster's rows, (n, k)
    sums: Array = None  # K @ members, (n, k)


def on_matrix(
    gram: Gram, weights: Array, runs: list[ExactRun], *, k: int, max_iter: int, tol: float
) -> None:
    """Advance runs until they are done, or have made ``max_iter`` passes in all.

    A new run has only labels (n,); ``weights`` has shape (n,).
    """
    xp = gram.rows.xp
    diagonal = array_ops.astype(gram.diag(), xp.float64)
    trace = float(xp.sum(weights * diagonal))
    for run in runs:
        run.trace = trace
    with progress("kernel k-means", max_iter) as step:
        for _ in range(max_iter):
            going = [run for run in runs if not run.done and len(run.history) < max_iter]
            if not going:
                break
            _add_up(gram, going, [members_of(run.labels, weights, k) for run in going])
            for run in going:
                products = _move(run)
                squared = run.norms - 2.0 * products  # distances less k(x, x)
                closest = xp.min(squared, axis=1)
                labels = xp.argmin(squared, axis=1)
                unchanged = bool(xp.all(labels == run.labels))
                run.labels, refilled = _refill(labels, closest + diagonal, diagonal, weights, k)
                inertia = float(xp.sum(weights * closest)) + trace
                run.record(inertia, unchanged and not refilled, 0.0 if refilled else tol)
            step()
    for run in runs:
        run.masses = array_ops.mass_by_label(run.labels, weights, k)


def members_of(labels: Array, weights: Array, k: int) -> Array:
    """Return the matrix (n, k) whose columns have the weights of each cluster's rows."""
    xp = array_ops.namespace(weights)
    numbers = array_ops.like(np.arange(k), weights)
    return array_ops.astype(labels[:, None] == numbers, xp.float64) * weights[:, None]


def _add_up(gram: Gram, runs: list[ExactRun], members: list[Array]) -> None:
    """Update the runs' ``sums``, K times their ``members``.

    If the matrix is stored and few rows moved, only the columns of these rows are needed.
    """
    xp, k = gram.rows.xp, members[0].shape[1]
    if runs[0].sums is not None and gram.is_kept:
        change = xp.concat(
            [now - run.members for run, now in zip(runs, members, strict=True)], axis=1
        )
        moved = np.flatnonzero(array_ops.to_numpy(xp.any(change != 0, axis=1)))
        if 4 * len(moved) < change.shape[0]:
            gain = gram.matmul_of(moved, array_ops.take_rows(change, moved))
            for i, run in enumerate(runs):
                run.sums = run.sums + gain[:, i * k : (i + 1) * k]
                run.members = members[i]
            return
    sums = array_ops.astype(gram.matmul(xp.concat(members, axis=1)), xp.float64)
    for i, run in enumerate(runs):
        run.sums, run.members = sums[:, i * k : (i + 1) * k], members[i]


def _move(run: ExactRun) -> Array:
    """Move each centre to the mean of its rows; that of an empty cluster is infinitely far away.

    Returns the inner products of all rows with the centres, shape (n, k).
    """
    xp = array_ops.namespace(run.members)
    masses = xp.sum(run.members, axis=0)
    divisors = xp.where(masses > 0, masses, xp.ones_like(masses))
    run.dual, products = run.members / divisors, run.sums / divisors
    norms = xp.sum(run.dual * products, axis=0)
    run.norms = xp.where(masses == 0, xp.full_like(norms, xp.inf), norms)
    return products


def _refill(
    labels: Array, squared: Array, diagonal: Array, weights: Array, k: int
) -> tuple[Array, bool]:
    """Move the row farthest from its centre into each empty cluster, if there is one.

    ``labels``, ``squared`` distances, ``diagonal`` and ``weights`` have shape (n,). This never
    raises the objective. Returns the labels, and whether a row was moved.
    """
    host = array_ops.to_numpy(labels)
    counted = array_ops.to_numpy(weights) > 0
    sizes = np.bincount(host[counted], minlength=k)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return labels, False
    far = array_ops.to_numpy(squared)
    # A smaller distance is rounding error: the row coincides with its centre.
    noise = 1e3 * array_ops.eps(diagonal.dtype) * float(np.max(array_ops.to_numpy(diagonal)))
    host, moved = host.copy(), False
    for row in np.argsort(-far):
        if not len(empty) or far[row] <= noise:
            break
        if counted[row] and sizes[host[row]] > 1:
            sizes[host[row]] -= 1
            host[row], empty = empty[0], empty[1:]
            moved = True
    return array_ops.like(host, labels), moved
