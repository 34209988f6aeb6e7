"""Lloyd's iterations: on the exact kernel matrix, and on factors of it.

Several restarts advance together, so that they share each pass over the matrix or the features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gramian import _arrays
from gramian._arrays import Array
from gramian._progress import progress
from gramian.factors import Factors
from gramian.gram import Gram


@dataclass(eq=False)
class Run:
    """One restart.

    ``learned`` is what a new row's kernel values (exact) or features are multiplied with to give
    its products with the centres, ``norms`` the centres' squared norms.
    """

    labels: Array
    learned: Array = None
    norms: Array = None
    history: list[float] = field(default_factory=list)
    done: bool = False

    @property
    def inertia(self) -> float:
        return self.history[-1]

    def record(self, inertia: float, unchanged: bool, tol: float) -> None:
        """Note the objective; done when no label changed or it hardly fell."""
        self.history.append(max(inertia, 0.0))
        if len(self.history) > 1:
            before, now = self.history[-2:]
            unchanged = unchanged or (tol > 0 and before - now <= tol * before)
        self.done = unchanged


def on_matrix(
    gram: Gram, weights: Array, first: list[Array], k: int, *, max_iter: int, tol: float
) -> list[Run]:
    """From first labels; a centre is the mean of its rows' images, known by their weights."""
    xp = gram.rows.xp
    diagonal = _arrays.astype(gram.diag(), xp.float64)
    constant = float(xp.sum(weights * diagonal))
    runs = [Run(labels) for labels in first]
    with progress("kernel k-means", max_iter) as step:
        for _ in range(max_iter):
            going = [run for run in runs if not run.done]
            if not going:
                break
            V = _means([run.labels for run in going], weights, k)
            KV = _arrays.astype(gram.matmul(V), xp.float64)
            norms = xp.sum(V * KV, axis=0)
            norms = xp.where(xp.sum(V, axis=0) == 0, xp.full_like(norms, xp.inf), norms)
            for i, run in enumerate(going):
                own = slice(i * k, (i + 1) * k)
                squared = norms[own] - 2.0 * KV[:, own]
                nearest = xp.min(squared, axis=1)
                labels = xp.argmin(squared, axis=1)
                unchanged = bool(xp.all(labels == run.labels))
                run.learned, run.norms = V[:, own], norms[own]
                run.labels, refilled = _refill(labels, nearest + diagonal, diagonal, weights, k)
                inertia = float(xp.sum(weights * nearest)) + constant
                run.record(inertia, unchanged and not refilled, 0.0 if refilled else tol)
            step()
    return runs


def _means(labels: list[Array], weights: Array, k: int) -> Array:
    """For each restart, the n × k matrix whose columns weigh the rows into the clusters' means."""
    xp = _arrays.namespace(weights)
    V = xp.concat([_members(each, k, xp.float64) for each in labels], axis=1) * weights[:, None]
    mass = xp.sum(V, axis=0)
    return V / xp.where(mass > 0, mass, xp.ones_like(mass))


def _members(labels: Array, k: int, dtype: object) -> Array:
    numbers = _arrays.like(np.arange(k), labels)
    return _arrays.astype(labels[:, None] == numbers, dtype)


def _refill(
    labels: Array, squared: Array, diagonal: Array, weights: Array, k: int
) -> tuple[Array, bool]:
    """Give each empty cluster the row that is farthest from its centre, if there is any.

    This never raises the objective. The second value tells whether a row was moved.
    """
    host = _arrays.to_numpy(labels)
    counted = _arrays.to_numpy(weights) > 0
    sizes = np.bincount(host[counted], minlength=k)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return labels, False
    far = _arrays.to_numpy(squared)
    # Below this a distance is rounding: the row coincides with its centre.
    noise = 1e3 * _arrays.eps(diagonal.dtype) * float(np.max(_arrays.to_numpy(diagonal)))
    host, moved = host.copy(), False
    for row in np.argsort(-far):
        if not len(empty) or far[row] <= noise:
            break
        if counted[row] and sizes[host[row]] > 1:
            sizes[host[row]] -= 1
            host[row], empty = empty[0], empty[1:]
            moved = True
    return _arrays.like(host, labels), moved


def on_factors(
    factors: Factors,
    weights: Array,
    first: list[Array],
    k: int,
    sample: Factors,
    *,
    max_iter: int,
    tol: float,
) -> list[Run]:
    """From first centres in the space of the features; one pass over these per iteration.

    Centres are means of rows of Z, and distances those of the metric S: ||z - c||² is
    zᵀSz - 2 zᵀSc + cᵀSc. ``sample`` are some rows, of which an empty cluster takes the farthest.
    """
    xp, n, dtype = factors.xp, factors.shape[0], factors.dtype
    constant = float(xp.sum(weights * factors.diagonal()))
    weights = factors.arrange(weights)  # labels too are in the order of the parts, until the end
    runs = [Run(_arrays.empty((n,), weights, xp.int64)) for _ in first]
    for run in runs:
        run.labels[...] = -1
    centres = dict(zip(map(id, runs), first, strict=True))
    with progress("kernel k-means", max_iter) as step:
        for _ in range(max_iter):
            going = [run for run in runs if not run.done]
            if not going:
                break
            C = xp.matrix_transpose(xp.concat([centres[id(run)] for run in going], axis=0))
            learned = factors.core_matmul(C)
            norms = xp.sum(C * learned, axis=0)
            by_part = factors.sum(
                _assignment(learned, norms, k, dtype),
                weights,
                *(run.labels for run in going),
                row_bytes=3 * k * len(going) * _arrays.itemsize(dtype),
                label="Lloyd",
            )
            parts, masses, changed, objective = zip(*by_part, strict=True)
            masses, changed, objective = sum(masses), sum(changed), sum(objective)
            filled = xp.where(masses > 0, masses, xp.ones_like(masses))
            means = xp.concat(parts, axis=1) / filled[:, None]
            for i, run in enumerate(going):
                own = slice(i * k, (i + 1) * k)
                run.learned, run.norms = learned[:, own], norms[own]
                next_centres, refilled = _refilled_centres(
                    means[own, :], masses[own], centres[id(run)], sample
                )
                centres[id(run)] = next_centres
                unchanged = float(changed[i]) == 0 and not refilled
                run.record(float(objective[i]) + constant, unchanged, 0.0 if refilled else tol)
            step()
    for run in runs:
        run.labels = factors.restore(run.labels)
    return runs


def _assignment(
    learned: Array, norms: Array, k: int, dtype: object
) -> Callable[[slice], Callable[..., tuple[Array, ...]]]:
    """What one pass does to a block: new labels in place; sums, masses, changes, objective.

    ``learned`` holds S c for the k centres c of each restart, side by side.
    """
    xp = _arrays.namespace(learned)
    norms = _arrays.astype(norms, dtype)

    def prepare(columns: slice) -> Callable[..., tuple[Array, ...]]:
        right = _arrays.contiguous(_arrays.astype(-2.0 * learned[columns, :], dtype))

        def assign(z: Array, w: Array, *labels: Array) -> tuple[Array, ...]:
            squared = z @ right + norms
            w = _arrays.astype(w, dtype)
            sums, masses, changed, objective = [], [], [], []
            for i, old in enumerate(labels):
                own = squared[:, i * k : (i + 1) * k]
                new = xp.argmin(own, axis=1)
                changed.append(xp.sum(_arrays.astype(new != old, xp.int64)))
                old[...] = new
                objective.append(xp.sum(w * xp.min(own, axis=1)))
                weighted = xp.matrix_transpose(_members(new, k, dtype) * w[:, None])
                sums.append(weighted @ z)
                masses.append(xp.sum(weighted, axis=1))
            return (
                xp.concat(sums, axis=0),
                xp.concat(masses, axis=0),
                xp.stack(changed),
                xp.stack(objective),
            )

        return assign

    return prepare


def _refilled_centres(
    means: Array, masses: Array, before: Array, sample: Factors
) -> tuple[Array, bool]:
    """The means; where a cluster is empty, the sampled row farthest from all centres."""
    host = _arrays.to_numpy(masses)
    empty = np.flatnonzero(host == 0)
    if not len(empty):
        return means, False
    xp = _arrays.namespace(means)
    kept = [means[int(j), :] for j in np.flatnonzero(host > 0)]
    refilled = False
    diagonal = sample.diagonal()
    noise = 1e3 * _arrays.eps(sample.dtype) * float(xp.max(diagonal))
    for j in empty:
        filled = xp.matrix_transpose(xp.stack(kept))
        learned = sample.core_matmul(filled)
        squared = xp.sum(filled * learned, axis=0) - 2.0 * sample.features_matmul(learned)
        nearest = xp.min(squared, axis=1) + diagonal
        far = int(xp.argmax(nearest))
        if float(nearest[far]) <= noise:  # all rows coincide with centres: leave it where it is
            means[int(j), :] = before[int(j), :]
            continue
        point = sample.coordinates(np.asarray([far]))[0, :]
        means[int(j), :] = point
        kept.append(point)
        refilled = True
    return means, refilled
