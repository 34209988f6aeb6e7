"""Compute kernel matrices and their products tile by tile.

A tile is a block of rows against at most ``tile_columns`` points. It takes one matrix product and
is finished in place while it is in cache. In a symmetric matrix, each tile off the diagonal is used
for both of its positions, a tile on it is one of points with themselves, which takes half of the
operations, and the diagonal is exact, never the result of a difference.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.threads import in_order, one_blas_thread
from gramian.backend.typing import DType
from gramian.kernels.pairings import Tile
from gramian.rows import ArrayRows, Rows, even_spans

if TYPE_CHECKING:
    from gramian.backend.triton_programs import FusedKernel
    from gramian.kernels.base import Kernel

TILE_COLUMNS = 1024
SQUARE = 384  # rows and points of a tile in a symmetric matrix in memory
# Threads share this many numbers of points, and multiplications in a symmetric matrix; fewer take
# less time than waking threads.
LEAST_POINTS, LEAST_PRODUCTS = 2**24, 2**27
SYMMETRIC_TILES = 4  # at least, side by side in a symmetric matrix, so that nearly half is mirrored
NARROW_TILE = 128
DEVICE_COLUMNS = 16_384  # smaller tiles would leave a GPU idle


def tile_columns(reference: Array) -> int:
    """Return the largest number of points in a tile, on the device of the reference."""
    return DEVICE_COLUMNS if array_ops.is_on_gpu(reference) else TILE_COLUMNS


def common_dtype(rows: Rows, columns: Rows) -> DType:
    """Return float32 if both sides are float32, else float64."""
    xp = rows.xp
    return xp.float32 if rows.dtype == xp.float32 == columns.dtype else xp.float64


@one_blas_thread()
def dense(
    kernel: Kernel,
    rows: Rows,
    columns: Rows | None = None,
    out: Array | None = None,
    same_rows: tuple[np.ndarray, Array] | None = None,
) -> Array:
    """Return the kernel matrix of rows (n, d) and columns (m, d), by default the rows themselves.

    The result is written into ``out``, of shape (n, m), if that is passed. If the columns are some
    of the rows, ``same_rows`` contains their numbers and k(x, x), which makes these entries exact.
    """
    symmetric = columns is None
    rows = rows.place.here(rows) if symmetric else rows
    points = kernel.points(rows) if columns is None else columns
    shape = rows.shape[0], points.shape[0]
    dtype = common_dtype(rows, points)
    if out is None:
        rows.place.check_room(
            shape[0] * shape[1] * array_ops.itemsize(dtype),
            f"a kernel matrix of shape {shape}",
            "Use Gram(kernel, X), which works without storing it",
        )
    else:
        _check_target(out, shape, dtype, rows)
    if symmetric and type(rows) is ArrayRows and points is rows and not _is_foreign(rows):
        if out is None:
            out = array_ops.empty(shape, rows.place.reference, dtype)
        _fill_squares(kernel, rows, out)
        return array_ops.set_diagonal(out, kernel.diagonal(rows))
    spans = column_spans(points, SYMMETRIC_TILES if symmetric else 1)
    tiles = [(span, kernel.against(points.take(range(*span)))) for span in spans]

    def fill(x: Array, numbers: range, out: Array) -> Array:
        last = numbers[-1] if symmetric else shape[1]
        for (start, stop), tile in tiles:
            if start <= last:  # entries right of the diagonal are mirrored from below it
                target = out[:, start:stop]
                result = tile(x, target)
                if result is not target:
                    target[...] = result
        if same_rows is not None:
            met = np.flatnonzero((same_rows[0] >= numbers.start) & (same_rows[0] < numbers.stop))
            if len(met):
                exact = array_ops.like(array_ops.take_rows(same_rows[1], met), out, out.dtype)
                array_ops.put(out, same_rows[0][met] - numbers.start, met, exact)
        return out

    out = rows.map(
        fill,
        range(shape[0]),
        width=shape[1],
        dtype=dtype,
        row_bytes=min(shape[1], tile_columns(rows.place.reference)) * array_ops.itemsize(dtype),
        into=out,
        serial=kernel.serial,
        label="kernel matrix",
    )
    return _completed(kernel, rows, out) if symmetric else out


def _is_foreign(rows: Rows) -> bool:
    return array_ops.is_foreign(rows.place.reference)


def _completed(kernel: Kernel, rows: Rows, out: Array) -> Array:
    """Complete a symmetric matrix from its lower triangle, with an exact diagonal."""
    return array_ops.mirror_lower(array_ops.set_diagonal(out, kernel.diagonal(rows)))


def _fill_squares(kernel: Kernel, rows: ArrayRows, out: Array) -> None:
    """Fill the kernel matrix of rows in memory, but for its diagonal, in squares.

    Those below the diagonal are copied above it while they are in cache. The longest rows of
    squares come first, so that threads end together.
    """
    spans = even_spans(0, rows.shape[0], SQUARE)
    points = [rows.take(range(*span)) for span in spans]
    n, d = rows.shape
    most = 1 if kernel.serial else config.n_threads()
    tiles = list(in_order(kernel.against, points, most if n * d >= LEAST_POINTS else 1, "points"))

    def fill(i: int) -> None:
        start, stop = spans[i]
        for (first, last), tile in zip(spans[: i + 1], tiles, strict=False):
            target = out[start:stop, first:last]
            result = tile(points[i], target)
            if result is not target:
                target[...] = result
            if first < start:
                out[first:last, start:stop] = target.T
            else:
                array_ops.mirror_lower(target)

    longest_first = range(len(spans) - 1, -1, -1)
    workers = most if n * n * d >= LEAST_PRODUCTS else 1
    deque(in_order(fill, longest_first, workers, "kernel matrix"), maxlen=0)


def _check_target(out: Array, shape: tuple[int, int], dtype: DType, rows: Rows) -> None:
    expected = array_ops.empty((0,), rows.place.reference, dtype)
    if (
        type(out) is not type(expected)
        or tuple(out.shape) != shape
        or out.dtype != dtype
        or not array_ops.same_device(out, expected)
    ):
        got = f"{getattr(out, 'dtype', type(out).__name__)} of shape {np.shape(out)}"
        raise ValueError(f"out must be an array of {dtype} and shape {shape} like X; got {got}.")


@one_blas_thread()
def product(kernel: Kernel, rows: Rows, columns: Rows, V: Array) -> Array:
    """Return K(rows, columns) @ V in float64 without storing K; V has shape (columns, k)."""
    dtype = common_dtype(rows, columns)
    fused = fused_kernel(kernel, columns, V.shape[1]) if dtype == rows.dtype else None
    if fused is not None:
        return _fused_product(fused, kernel, rows, columns, V)
    return _tiled_product(kernel, rows, columns, V)


def fused_kernel(kernel: Kernel, points: Rows, targets: int = 1) -> FusedKernel | None:
    """Return GPU programs that multiply with kernel values; None if they cannot be used."""
    single = not points.are_objects and points.dtype == points.xp.float32
    if not single or not array_ops.runs_triton(points.place.reference):
        return None
    form = kernel.gpu_form()
    if form is None:
        return None
    from gramian.backend import triton_programs  # imports torch and triton

    if points.shape[1] >= triton_programs.WIDEST or targets > triton_programs.MOST_TARGETS:
        return None
    return triton_programs.FusedKernel(form, points.collect(), getattr(kernel, "tolerance", 0.0))


def _fused_product(
    fused: FusedKernel, kernel: Kernel, rows: Rows, columns: Rows, V: Array
) -> Array:
    single = array_ops.astype(V, columns.dtype)

    def part(x: Array, out: Array) -> Array:
        values = fused.times(x, single)
        if values is None:  # these rows need float64
            return _tiled_product(kernel, ArrayRows(x), columns, V)
        return values

    row_bytes = 2 * columns.shape[1] * 4 + V.shape[1] * 8
    return rows.map(
        part,
        width=V.shape[1],
        dtype=rows.xp.float64,
        row_bytes=row_bytes,
        label="kernel product",
    )


def _tiled_product(kernel: Kernel, rows: Rows, columns: Rows, V: Array) -> Array:
    dtype = common_dtype(rows, columns)
    out: Array = None
    for group in _column_groups(columns):
        tiles = [(span, kernel.against(columns.take(range(*span)))) for span in group]

        def part(x: Array, out: Array, tiles: list[tuple[tuple[int, int], Tile]] = tiles) -> Array:
            out[...] = 0
            for (start, stop), tile in tiles:
                values = tile(x, scratch(x.shape[0], stop - start, V, dtype))
                out += values @ array_ops.astype(V[start:stop, :], dtype)
            return out

        partial = rows.map(
            part,
            width=V.shape[1],
            dtype=rows.xp.float64,
            row_bytes=(min(columns.shape[0], tile_columns(V)) + 2 * V.shape[1])
            * array_ops.itemsize(dtype),
            serial=kernel.serial,
            label="kernel product",
        )
        out = partial if out is None else out + partial
    return out


@one_blas_thread()
def symmetric_product(kernel: Kernel, rows: Rows, diagonal: Array, V: Array) -> Array:
    """Return K(rows, rows) @ V in float64 without storing K; each tile is used twice."""
    if kernel.is_matrix:
        return _stored_product(rows, V)
    xp = rows.xp
    points = kernel.points(rows)
    fused = fused_kernel(kernel, points, V.shape[1])
    if fused is not None:  # computing all values takes less than storing half of them
        return _fused_product(fused, kernel, rows, points, V)
    V = array_ops.astype(V, rows.dtype)
    out = xp.zeros_like(V, dtype=xp.float64)
    for start, stop in column_spans(points):
        tile = kernel.against(points.take(range(start, stop)))
        v_points = V[start:stop, :]

        def both(
            x: Array, numbers: range, v: Array, diagonal: Array, out: Array,
            start: int = start, stop: int = stop, tile: Tile = tile, v_points: Array = v_points,
        ) -> Array:  # fmt: skip
            values = tile(x, scratch(x.shape[0], v_points.shape[0], v_points, rows.dtype))
            inside = min(stop, numbers.stop) - numbers.start  # rows in the square on the diagonal
            if inside > 0:
                where = np.arange(inside)
                array_ops.put(values, where, where + numbers.start - start, diagonal[:inside])
                v = array_ops.copy(v)
                v[:inside, :] = 0  # the square is already complete
            out += values @ v_points
            return xp.matrix_transpose(xp.matrix_transpose(v) @ values)

        out[start:stop, :] += rows.sum(
            both,
            range(rows.shape[0]),
            V,
            diagonal,
            out,
            start=start,
            row_bytes=(stop - start + 4 * V.shape[1]) * array_ops.itemsize(rows.dtype),
            serial=kernel.serial,
            label="kernel product",
        )
    return out


def _stored_product(K: Rows, V: Array) -> Array:
    """Return K @ V in float64 for a stored matrix, which is read once and not copied."""
    V = array_ops.contiguous(array_ops.astype(V, K.dtype))
    spans = even_spans(0, K.shape[1], tile_columns(V))

    def part(x: Array, out: Array) -> Array:
        if array_ops.issparse(x):
            return array_ops.matmul(x, V)
        out[...] = 0
        for start, stop in spans:
            out += array_ops.matmul(x[:, start:stop], V[start:stop, :])
        return out

    width = V.shape[1]
    size = 2 * width * array_ops.itemsize(K.dtype)
    return K.map(part, width=width, dtype=K.xp.float64, row_bytes=size, label="kernel product")


_own = threading.local()


def scratch(rows: int, columns: int, reference: Array, dtype: DType) -> Array:
    """Return memory for one tile, reused by the thread: new pages cost as much as the tile."""
    buffer: Array = getattr(_own, "buffer", None)
    fits = (
        buffer is not None
        and type(buffer) is type(reference)
        and buffer.dtype == dtype
        and buffer.shape[0] >= rows * columns
        and array_ops.same_device(buffer, reference)
    )
    if not fits:
        buffer = _own.buffer = array_ops.empty((rows * columns,), reference, dtype)
    return array_ops.namespace(reference).reshape(buffer[: rows * columns], (rows, columns))


def column_spans(columns: Rows, least: int = 1) -> list[tuple[int, int]]:
    """Divide points into tiles, at least ``least`` of them unless they would be narrow."""
    m, example = columns.shape[0], columns.place.reference
    even = m if array_ops.is_on_gpu(example) else max(-(-m // least), NARROW_TILE)
    return even_spans(0, m, min(tile_columns(example), even))


def _column_groups(columns: Rows) -> list[list[tuple[int, int]]]:
    """Group spans of columns so that the prepared points of one group fit the budget."""
    spans = column_spans(columns)
    prepared = tile_columns(columns.place.reference) * (columns.shape[1] + 2) * 2 * 8
    size = max(1, config.memory_budget() // 4 // prepared)
    return [spans[i : i + size] for i in range(0, len(spans), size)]
