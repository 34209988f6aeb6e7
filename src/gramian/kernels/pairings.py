"""Pairings of two rows: squared distance, L1 distance, chi-squared distance, inner product.

A pairing takes points of shape (m, d) and a scale, and returns a function that fills one tile with
``scale * pairing(x_i, point_j)`` for a block of rows x. A kernel applies its profile to the tile in
place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian.backend import array_ops, numba_loops
from gramian.backend.array_ops import Array
from gramian.rows import even_spans

FILLED = 1 << 18  # entries of sparse rows to make dense at a time

Tile = Callable[..., Array]  # tile(x, out=None) -> out
Pairing = Callable[[Array, float, float], Tile]


def gpu_pairing(pairing: Pairing) -> str | None:
    """Return the pairing's name in GPU programs; None if they lack it."""
    names: dict[Pairing, str] = {
        squared_euclidean: "squared",
        cityblock: "cityblock",
        inner: "inner",
    }
    return names.get(pairing)


def tile_memory(x: Array, points: Array, out: Array | None) -> Array:
    """Return ``out``, or new memory for a tile if it is None."""
    if out is not None:
        return out
    xp = array_ops.namespace(x)
    single = x.dtype == xp.float32 and points.dtype == xp.float32
    dtype = xp.float32 if single else xp.float64
    return array_ops.empty((x.shape[0], points.shape[0]), x, dtype)


def squared_euclidean(points: Array, scale: float, tolerance: float) -> Tile:
    """scale * ||x - y||², by one matrix product of [x, ||x||², 1] with [-2y, 1, ||y||²].

    Both sides are first shifted by the centre of the points, which reduces cancellation. If the
    norms show that the error could exceed the tolerance, a float32 tile is computed in float64, and
    a float64 tile by differences, column by column.
    """
    if array_ops.issparse(points):
        return _sparse_squared_euclidean(points, scale, tolerance)
    xp = array_ops.namespace(points)
    m, d = points.shape
    # Shift both sides by exactly the same vector, rounded to the dtype of the points.
    centre = array_ops.astype(xp.sum(points, axis=0, dtype=xp.float64) / m, points.dtype)
    moved_points = points - centre
    norms = array_ops.row_norms(moved_points)
    largest = float(xp.max(norms))
    # On a GPU, products are far faster if rows start at multiples of 32 bytes.
    spare = -(d + 2) % 8 if array_ops.is_foreign(points) else 0
    rights: dict[int, Array] = {}  # by the size of a number
    bounds = {"high": 0.0} if scale < 0 else {"low": 0.0}

    def right(dtype: object) -> Array:
        """Return the right side of the product; points with themselves never need it."""
        size = array_ops.itemsize(dtype)
        if size not in rights:
            made = array_ops.empty((d + 2 + spare, m), points, dtype)
            moved, squares = moved_points, norms
            if dtype != points.dtype:
                moved = array_ops.astype(points, dtype) - array_ops.astype(centre, dtype)
                squares = array_ops.row_norms(moved)
            made[:d, :] = xp.matrix_transpose(moved) * (-2 * scale)
            made[d, :] = scale
            made[d + 1, :] = scale * squares
            made[d + 2 :, :] = 0
            rights[size] = made
        return rights[size]

    def sparse_tile(x: Array, out: Array) -> Array:
        # Shifting x would make it dense, so the products are corrected instead.
        x = array_ops.astype(x, xp.float64)
        size = abs(scale) * (float(np.max(array_ops.row_norms(x), initial=0.0)) + largest)
        if _cancels(size, tolerance):
            return _sparse_differences(x, points, scale, out)
        squared = array_ops.matmul(x, right(xp.float64)[:d, :])
        products = x @ array_ops.astype(centre, xp.float64)
        squared += scale * (array_ops.row_norms(x) - 2 * products)[:, None]
        squared += scale * array_ops.row_norms(array_ops.astype(points, xp.float64))
        out[...] = squared
        return out

    def left(x: Array, dtype: object) -> Array:
        rows = x.shape[0]
        moved = array_ops.empty((rows, d + 2 + spare), x, dtype)
        array_ops.subtract(x, array_ops.astype(centre, dtype), out=moved[:, :d])
        moved[:, d] = array_ops.row_norms(moved[:, :d])
        moved[:, d + 1] = 1
        if spare:
            moved[:, d + 2 :] = 0
        return moved

    def tile(x: Array, out: Array | None = None) -> Array:
        out = tile_memory(x, points, out)
        if array_ops.issparse(x):
            return array_ops.clip(sparse_tile(x, out), **bounds)
        own = x is points and not array_ops.is_foreign(x)
        moved: Array = None if own else left(x, out.dtype)
        size = abs(scale) * (largest + (largest if own else float(xp.max(moved[:, d]))))
        if _cancels(size, tolerance):
            return _squared_differences(x, points, scale, out)
        fine = out.dtype == xp.float64 or array_ops.eps(out.dtype) * size <= tolerance
        if own and fine:
            _own_squared_euclidean(array_ops.astype(moved_points, out.dtype), scale, out)
        elif fine:
            array_ops.matmul(moved, right(out.dtype), out)
        else:
            out[...] = array_ops.astype(left(x, xp.float64) @ right(xp.float64), out.dtype)
        return array_ops.clip(out, **bounds)

    return tile


def _own_squared_euclidean(x: np.ndarray, scale: float, out: np.ndarray) -> None:
    """The same of rows with themselves: BLAS needs half of the operations for such a product.

    The norms are its diagonal, so that equal rows have a distance of 0.
    """
    np.matmul(x, x.T, out=out)
    norms = scale * np.diagonal(out)
    out *= -2.0 * scale
    out += norms[:, None]
    out += norms


def _cancels(size: float, tolerance: float) -> bool:
    """Whether float64 products of such norms lose more than the tolerance; 0 stands for any."""
    return tolerance > 0 and not np.finfo(np.float64).eps * size <= tolerance


def _squared_differences(x: Array, points: Array, scale: float, out: Array) -> Array:
    """scale * ||x - y||² without cancellation: rows may share huge numbers, or overflow to inf."""
    xp = array_ops.namespace(points)
    total = array_ops.like(np.zeros(out.shape), out, xp.float64)
    with np.errstate(over="ignore"):
        for j in range(points.shape[1]):
            u, v = (array_ops.astype(side[:, j], xp.float64) for side in (x, points))
            difference = u[:, None] - v[None, :]
            difference *= difference
            total += difference
        total *= scale
    out[...] = array_ops.astype(total, out.dtype)
    return out


def _sparse_squared_euclidean(points: Array, scale: float, tolerance: float) -> Tile:
    """The same for sparse points, in float64 and without a shift, which would make them dense."""

    def tile(x: Array, out: Array | None = None) -> Array:
        out = tile_memory(x, points, out)
        y, x = points.astype("float64"), x.astype("float64")
        norms = array_ops.row_norms(x), array_ops.row_norms(y)
        size = abs(scale) * sum(float(np.max(each, initial=0.0)) for each in norms)
        if _cancels(size, tolerance):
            return _sparse_differences(x, array_ops.dense(y), scale, out)
        squared = array_ops.matmul(x, -2 * y.T)
        squared += norms[0][:, None]
        squared += norms[1]
        out[...] = scale * array_ops.clip(squared, low=0.0)
        return out

    return tile


def _sparse_differences(x: Array, points: Array, scale: float, out: Array) -> Array:
    """The same for sparse rows, a few of which are made dense at a time."""
    for start, stop in even_spans(0, x.shape[0], max(1, FILLED // x.shape[1])):
        _squared_differences(array_ops.dense(x[start:stop]), points, scale, out[start:stop])
    return out


def cityblock(points: Array, scale: float, tolerance: float) -> Tile:
    """scale * ||x - y||₁."""

    columns: Array | None = None

    def tile(x: Array, out: Array | None = None) -> Array:
        nonlocal columns
        out = tile_memory(x, points, out)
        if array_ops.issparse(x) and not array_ops.issparse(points):
            # Make a few rows dense at a time: most entries of the differences are not 0 anyway.
            for start, stop in even_spans(0, x.shape[0], max(1, FILLED // x.shape[1])):
                tile(x[start:stop].toarray(), out[start:stop])
            return out
        loop = numba_loops.cityblock(x, points, out)
        if loop is None:
            array_ops.cityblock(x, points, out)
            out *= scale
            return out
        if columns is None:
            columns = array_ops.contiguous(_as_dtype_of(points, out).T)
        loop(_as_dtype_of(x, out), columns, out.dtype.type(scale), out)
        return out

    return tile


def chi_squared(points: Array, scale: float, tolerance: float) -> Tile:
    """scale * Σ (x - y)² / (x + y) over the columns; 0/0 counts as 0. Rows must not be negative."""
    _check_not_negative(points)

    def tile(x: Array, out: Array | None = None) -> Array:
        _check_not_negative(x)
        out = tile_memory(x, points, out)
        out[...] = 0
        tiny = 1e-37  # avoids 0/0, and is too small to change any other quotient
        for j in range(x.shape[1]):
            u, v = x[:, j, None], points[None, :, j]
            term = u - v
            term *= term
            term /= array_ops.clip(u + v, low=tiny)
            out += term
        out *= scale
        return out

    return tile


def _check_not_negative(x: Array) -> None:
    if float(array_ops.namespace(x).min(x)) < 0:
        raise ValueError(
            "The chi-squared kernels need rows without negative numbers (counts or histograms); "
            "got negative ones. Shift or scale the columns, e.g. with MinMaxScaler, or use another "
            "kernel."
        )


def mismatches(points: Array, scale: float, tolerance: float, weights: Array | None = None) -> Tile:
    """scale * Σ weights of the columns in which x and y differ, by default 1 each."""
    weights = np.ones(points.shape[1]) if weights is None else weights

    def tile(x: Array, out: Array | None = None) -> Array:
        out = tile_memory(x, points, out)
        out[...] = 0
        for j in np.flatnonzero(weights):
            differ = x[:, int(j), None] != points[None, :, int(j)]
            out += array_ops.astype(differ, out.dtype) * float(scale * weights[j])
        return out

    return tile


def inner(points: Array, scale: float, tolerance: float) -> Tile:
    """scale * xᵀy."""
    right = (
        (points * scale).T
        if array_ops.issparse(points)
        else array_ops.contiguous(array_ops.namespace(points).matrix_transpose(points * scale))
    )

    def tile(x: Array, out: Array | None = None) -> Array:
        out = tile_memory(x, points, out)
        return array_ops.matmul(_as_dtype_of(x, out), _as_dtype_of(right, out), out)

    return tile


def _as_dtype_of(x: Array, out: Array) -> Array:
    return array_ops.astype(x, out.dtype)


def cosine(points: Array, scale: float, tolerance: float) -> Tile:
    """scale * xᵀy / (||x|| ||y||); a row of zeros has cosine 0 with every row."""
    tile = inner(array_ops.unit_rows(points), scale, tolerance)
    return lambda x, out=None: tile(array_ops.unit_rows(x), out)
