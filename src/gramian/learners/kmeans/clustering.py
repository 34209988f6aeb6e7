"""The problem of k-means, its first centres, and one restart of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from gramian.approximations import Approximation
from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.backend.wording import counted
from gramian.learners.strategy import Problem
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows, as_rows
from gramian.rows.objects import numbers_or_objects
from gramian.samplers.base import Oracle
from gramian.samplers.plus_plus import draw, plus_plus


@dataclass(frozen=True, eq=False, kw_only=True)
class Clustering(Problem):
    """Divide rows into k clusters."""

    k: int
    init: str | Array
    restarts: int
    max_iter: int
    tol: float
    batch_size: int | None
    half: bool  # whether features are cached in half precision
    approximation: Approximation | None = None  # the one in use, fitted


@dataclass(eq=False)
class Run:
    """One restart on n rows with k clusters."""

    labels: Array  # (n,)
    centres: Array = None  # features of the centres that the labels refer to, (k, r)
    # Kernel values or features times ``dual`` are inner products with the centres: it has weights
    # of rows, (n, k), or for factors S centresᵀ, (r, k).
    dual: Array = None
    norms: Array = None  # squared norms of the centres, (k,)
    masses: Array = None  # the total weight of each cluster's rows, (k,)
    trace: float = 0.0  # of the weighted rows: rounding in the objective is relative to it
    history: list[float] = field(default_factory=list)  # the objective after each pass
    done: bool = False

    @property
    def inertia(self) -> float:
        return self.history[-1]

    def record(self, inertia: float, unchanged: bool, tol: float) -> None:
        """Record the objective; the run is done if no label changed or it hardly fell."""
        self.history.append(max(inertia, 0.0))
        if len(self.history) > 1:
            before, now = self.history[-2:]
            unchanged = unchanged or (tol > 0 and before - now <= tol * before)
        self.done = unchanged


R = TypeVar("R", bound=Run)


def best_few(runs: Sequence[R], count: int, dtype: DType) -> list[R]:
    """Return the ``count`` runs with the smallest objectives, in their order.

    If runs differ only by rounding, the first ones are taken, so that the same rows in another form
    lead to the same clusters with the same numbers. ``dtype`` is that of the kernel values or
    features.
    """
    values = np.asarray([run.history[-1] for run in runs])
    last = np.sort(values)[min(count, len(runs)) - 1]
    slack = max(1e-10, 10 * array_ops.eps(dtype)) * runs[0].trace
    better = np.flatnonzero(values < last - slack)
    level = np.flatnonzero(np.abs(values - last) <= slack)
    chosen = np.sort(np.append(better, level[: count - len(better)]))
    return [runs[i] for i in chosen]


def drawn(
    matrix: Oracle, k: int, init: str, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw k row numbers: far from each other ("k-means++") or any ("random").

    ``weights`` has shape (n,).
    """
    if init == "random":
        seeds = draw(rng, weights, k)
    else:
        seeds = plus_plus(matrix, k, rng, weights=weights)
    return np.concatenate((seeds, rng.choice(len(weights), size=k - len(seeds))))


def nearest(columns: Array, norms: Array) -> Array:
    """Return each row's nearest point, from K(rows, points) (n, k) and k(point, point) (k,)."""
    return array_ops.namespace(columns).argmin(norms - 2.0 * columns, axis=1)


def nearest_in_init(init: Array, k: int, gram: Gram) -> Array:
    """Return the nearest of the centres in ``init`` for each row; shape (n,)."""
    centres = _checked(init, k, gram.rows)
    if isinstance(centres, Rows):
        return nearest(Gram(gram.kernel, gram.rows, centres).dense(), gram.kernel.diagonal(centres))
    return nearest(gram.columns(centres), array_ops.take_rows(gram.diag(), centres))


def init_features(init: Array, k: int, rows: Rows, approximation: Approximation) -> Array:
    """Return the features of the centres in ``init``; shape (k, r)."""
    centres = _checked(init, k, rows)
    points = centres if isinstance(centres, Rows) else ArrayRows(rows.take(centres))
    return approximation.factor_rows(points).coordinates(np.arange(k))


def _checked(init: Array, k: int, rows: Rows) -> np.ndarray | Rows:
    """Return the first centres as row numbers (k,), or as other points."""
    d = rows.shape[1]
    centres = init if not rows.are_objects else numbers_or_objects(init, "init")
    centres = np.asarray(array_ops.to_numpy(centres))
    numbers = centres.shape == (k,) and centres.dtype.kind in "iu"
    if not numbers and centres.shape != ((k,) if rows.are_objects else (k, d)):
        points = "objects" if rows.are_objects else f"points of shape ({k}, {d})"
        raise ValueError(
            f"init must be 'k-means++', 'random', {k} {points}, or {counted(k, 'row number')}; got "
            f"an array of shape {centres.shape} and dtype {centres.dtype}."
        )
    if not numbers:
        centres = array_ops.like(centres, rows.place.reference, rows.dtype)
        return as_rows(centres, name="init", objects=rows.are_objects)
    if centres.min() < 0 or centres.max() >= rows.shape[0]:
        raise ValueError(
            f"init as row numbers must be from 0 to {rows.shape[0] - 1}; got "
            f"{centres.min()} to {centres.max()}."
        )
    return centres


def with_weight(weights: Array) -> np.ndarray | None:
    """Return the numbers of the rows with positive weight; None if all have."""
    if array_ops.constant_of(weights):
        return None
    if bool(array_ops.namespace(weights).all(weights > 0)):
        return None
    return np.flatnonzero(array_ops.to_numpy(weights))
