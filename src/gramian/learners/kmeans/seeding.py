"""First centres of k-means: rows that are drawn, or points that the user gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.approximations import Approximation
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.wording import counted
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows, as_rows
from gramian.rows.objects import numbers_or_objects
from gramian.samplers.centroids import draw, plus_plus


def drawn(
    matrix: Gram | Factors, k: int, init: str, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The numbers of k rows, far from each other ("k-means++") or any ("random")."""
    if init == "random":
        seeds = draw(rng, weights, k)
    else:
        seeds = plus_plus(matrix, k, rng, weights=weights)
    return np.concatenate((seeds, rng.choice(len(weights), size=k - len(seeds))))


def nearest(columns: Array, own: Array) -> Array:
    """The nearest of some points, from K(rows, points) and k(point, point)."""
    return array_ops.namespace(columns).argmin(own - 2.0 * columns, axis=1)


def nearest_given(init: Any, k: int, gram: Gram) -> Array:
    """The nearest of the centres that the user gave, for each row."""
    given = _checked(init, k, gram.rows)
    if isinstance(given, Rows):
        return nearest(Gram(gram.kernel, gram.rows, given).dense(), gram.kernel.diagonal(given))
    return nearest(gram.columns(given), array_ops.take_rows(gram.diag(), given))


def given_features(init: Any, k: int, rows: Rows, approximation: Approximation) -> Array:
    """Features of the centres that the user gave."""
    given = _checked(init, k, rows)
    points = given if isinstance(given, Rows) else ArrayRows(rows.take(given))
    return approximation.factor_rows(points).coordinates(np.arange(k))


def _checked(init: Any, k: int, rows: Rows) -> np.ndarray | Rows:
    """The numbers of the rows that are the first centres, or other points."""
    d = rows.shape[1]
    given = init if not rows.are_objects else numbers_or_objects(init, "init")
    given = np.asarray(array_ops.to_numpy(given))
    numbers = given.shape == (k,) and given.dtype.kind in "iu"
    if not numbers and given.shape != ((k,) if rows.are_objects else (k, d)):
        points = "objects" if rows.are_objects else f"points of shape ({k}, {d})"
        raise ValueError(
            f"init must be 'k-means++', 'random', {k} {points}, or the numbers of "
            f"{counted(k, 'row')}; got an array of shape {given.shape} and dtype {given.dtype}."
        )
    if not numbers:
        given = array_ops.like(given, rows.example(), rows.dtype)
        return as_rows(given, name="init", objects=rows.are_objects)
    if given.min() < 0 or given.max() >= rows.shape[0]:
        raise ValueError(
            f"init given as row numbers must be from 0 to {rows.shape[0] - 1}; got "
            f"{given.min()} to {given.max()}."
        )
    return given


def with_weight(weights: Array) -> np.ndarray | None:
    """The numbers of the rows that count; None where all do."""
    if array_ops.constant_of(weights):
        return None
    if bool(array_ops.namespace(weights).all(weights > 0)):
        return None
    return np.flatnonzero(array_ops.to_numpy(weights))
