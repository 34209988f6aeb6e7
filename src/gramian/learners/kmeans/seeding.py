"""First centres of k-means: rows drawn at random, or those that the user sets with ``init``."""

from __future__ import annotations

import numpy as np

from gramian.approximations import Approximation
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.wording import counted
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows, as_rows
from gramian.rows.objects import numbers_or_objects
from gramian.samplers.base import Oracle
from gramian.samplers.plus_plus import draw, plus_plus


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
        centres = array_ops.like(centres, rows.example(), rows.dtype)
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
