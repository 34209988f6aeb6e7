"""Reading and writing chosen rows, columns and entries."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from gramian.backend.array_ops.conversion import like, to_numpy
from gramian.backend.array_ops.libraries import (
    constant_of,
    is_foreign,
    is_lazy,
    issparse,
    namespace,
    writes_in_place,
)
from gramian.backend.typing import Array


def span(x: Array, start: int, stop: int) -> Array:
    """Return rows start to stop of x, as a view if the library has views."""
    return x[start : min(stop, x.shape[0]), ...] if is_foreign(x) else x[start:stop]


def take_rows(x: Array, indices: np.ndarray) -> Array:
    """Return rows of x in the order of ``indices``; those of a lazy array are computed."""
    if not is_foreign(x):
        return x[indices]
    if constant_of(x) is not None:
        return np.full(len(indices), constant_of(x))
    if is_lazy(x):  # dask reads chunk by chunk only if indices are sorted
        different, where = np.unique(indices, return_inverse=True)
        return to_numpy(x[different])[where]
    return namespace(x).take(x, like(indices, x), axis=0)


def take_columns(x: Array, indices: np.ndarray) -> Array:
    """Return columns of x as a dense array; a view if they are consecutive."""
    if issparse(x):
        return x[:, indices].toarray()
    first, last = int(indices[0]), int(indices[-1])
    if last - first == len(indices) - 1 and bool(np.all(np.diff(indices) == 1)):
        return x[:, first : last + 1]
    return namespace(x).take(x, like(indices, x), axis=1)


def look_up(table: np.ndarray, places: Array) -> Array:
    """Return ``table[places]``, in the library of ``places`` if the values are numbers."""
    if is_lazy(places):
        return places.map_blocks(table.__getitem__, dtype=table.dtype)
    found = table[to_numpy(places)]
    return like(found, places) if found.dtype.kind in "iuf" else found


def concat_rows(parts: list[Array]) -> Array:
    """Stack arrays of one kind vertically."""
    if issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return namespace(parts[0]).concat(parts, axis=0)


def where_true(x: Array) -> np.ndarray:
    """Return the places (on the host) of the true entries of x, of shape (n,)."""
    if not is_foreign(x) or is_lazy(x):
        return np.flatnonzero(to_numpy(x))
    return to_numpy(namespace(x).nonzero(x)[0])


def put(x: Array, row: np.ndarray, column: np.ndarray, values: Array) -> None:
    """Assign ``x[row[i], column[i]] = values[i]`` for each i."""
    if writes_in_place(x):
        x[row, column] = values
        return
    for i, (r, c) in enumerate(zip(row, column, strict=True)):
        x[int(r), int(c)] = values[i]


def put_rows(x: Array, rows: np.ndarray, values: Array) -> None:
    """Assign ``x[rows[i], :] = values[i, :]`` for each i."""
    if writes_in_place(x):
        x[rows, :] = values
        return
    for i, row in enumerate(rows):
        x[int(row), :] = values[i, :]
