"""Rows in the order of their blocks, and batches of blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import array_api_compat
import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.rows import ArrayRows, Rows


@dataclass(frozen=True, eq=False)
class Grouped:
    """Rows in the order of their blocks.

    Where a fit is planned only the sizes are known, and ``points`` has no rows.
    """

    points: Array  # (n, d), block after block
    order: np.ndarray  # the number, in the data, of each of these rows
    edges: np.ndarray  # where blocks begin in them, and where the last one ends
    row_bytes: int  # the memory of a row

    @classmethod
    def of(cls, rows: Rows, labels: np.ndarray, count: int) -> Grouped:
        """Group rows by their labels from 0 to ``count`` - 1."""
        order, edges = by_block(np.asarray(labels), count)
        return cls(_arranged(rows, order), order, edges, rows.row_bytes)

    @classmethod
    def planned(cls, rows: Rows, sizes: np.ndarray) -> Grouped:
        edges = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        points = array_ops.empty((0,), rows.place.reference, rows.dtype)
        return cls(points, np.empty(0, dtype=np.int32), edges, rows.row_bytes)

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def sizes(self) -> np.ndarray:
        """The number of rows of each block."""
        return np.diff(self.edges)

    @property
    def labels(self) -> np.ndarray:
        """The block of each row of the data."""
        labels = np.empty(len(self.order), dtype=np.int32)
        labels[self.order] = np.repeat(np.arange(len(self)), self.sizes)
        return labels

    @property
    def nbytes(self) -> int:
        """The memory of the rows and of their order."""
        entries = self.points.nnz * 2 if array_ops.issparse(self.points) else self.points.size
        return int(entries) * array_ops.itemsize(self.points.dtype) + self.order.nbytes

    def astype(self, dtype: DType) -> Grouped:
        """Return the same rows in another precision."""
        return replace(self, points=array_ops.astype(self.points, dtype))

    def span(self, block: int) -> slice:
        return slice(int(self.edges[block]), int(self.edges[block + 1]))

    def only(self, start: int, stop: int) -> Grouped:
        """Return some of the blocks, of the same rows numbered anew."""
        first, last = int(self.edges[start]), int(self.edges[stop])
        order = np.arange(last - first, dtype=self.order.dtype)
        points = array_ops.span(self.points, first, last)
        return Grouped(points, order, self.edges[start : stop + 1] - first, self.row_bytes)

    def rows(self, block: int) -> Array:
        """The rows of a block, of shape (n_b, d)."""
        return array_ops.span(self.points, int(self.edges[block]), int(self.edges[block + 1]))

    def arrange(self, V: Array) -> Array:
        """Return an array with one entry for each row of the data, in the order of the blocks."""
        return array_ops.take_rows(V, self.order)

    def restore(self, V: Array) -> Array:
        """Undo ``arrange``."""
        inverse = np.empty_like(self.order)
        inverse[self.order] = np.arange(len(self.order), dtype=self.order.dtype)
        return array_ops.take_rows(V, inverse)


@dataclass(frozen=True, eq=False)
class Batch:
    """Blocks that are computed together: arrays of theirs are stacked, shorter ones padded by 0."""

    blocks: tuple[int, ...]  # their numbers
    spans: tuple[slice, ...]  # their rows, in the order of the blocks

    @property
    def sizes(self) -> np.ndarray:
        return np.array([span.stop - span.start for span in self.spans])

    @property
    def height(self) -> int:
        return int(self.sizes.max())

    @property
    def rows(self) -> np.ndarray:
        """Whether a row of a stacked array is of a block, or padding; (blocks, height)."""
        return np.arange(self.height) < self.sizes[:, None]

    def stack(self, V: Array) -> Array:
        """Return the parts of an arranged array (n, k), of shape (blocks, height, k)."""
        return self.padded((V[span, :] for span in self.spans), V.shape[1])

    def padded(self, parts: Iterable[Array], width: int) -> Array:
        """Stack one matrix of each block, of no more than ``width`` columns."""
        out: Array = None
        for i, part in enumerate(parts):
            if len(self.spans) == 1:
                return part[None, ...]
            if out is None:
                xp, shape = array_ops.namespace(part), (len(self.spans), self.height, width)
                out = xp.zeros(shape, dtype=part.dtype, device=array_api_compat.device(part))
            out[i, : part.shape[0], : part.shape[1]] = part
        return out

    def put(self, target: Array, stacked: Array, columns: np.ndarray) -> None:
        """Write a stacked array into columns of an arranged one; a single one fills them all."""
        for i, span in enumerate(self.spans):
            for j, column in enumerate(columns):
                own = stacked[i, : span.stop - span.start, min(j, stacked.shape[2] - 1)]
                target[span, int(column)] = own


def by_block(labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order in which rows with these labels lie in blocks, and the blocks' edges."""
    short = labels.astype(np.int16) if count <= np.iinfo(np.int16).max else labels  # radix sort
    small = len(labels) <= np.iinfo(np.int32).max
    order = np.argsort(short, kind="stable").astype(np.int32 if small else np.int64)
    return order, np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=count))))


def _arranged(rows: Rows, order: np.ndarray) -> Array:
    """All rows as one array in this order; those of files are read once, from first to last."""
    if isinstance(rows, ArrayRows) or array_ops.issparse(rows.place.reference):
        return rows.take(order)
    out = array_ops.empty(rows.shape, rows.place.reference, rows.dtype)
    target = np.empty(len(order), dtype=np.int64)
    target[order] = np.arange(len(order))

    def place(x: Array, where: np.ndarray) -> np.ndarray:
        array_ops.put_rows(out, where, x)
        return np.zeros(1)

    rows.sum(place, target, label="blocks")
    return out
