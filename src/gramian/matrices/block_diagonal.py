"""BlockDiagonal: what features leave out of a kernel matrix, inside blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, DType
from gramian.backend.threads import in_order
from gramian.kernels import Kernel
from gramian.matrices.block_rows import Batch, Grouped
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Place

TASKS = 4  # of each worker of a cluster
BATCH_BYTES = 2**30  # at most this much of D is decomposed together
TOGETHER = 3000  # larger blocks keep a GPU busy by themselves, and are then decomposed faster
UNEVEN = 1.2  # a block of a batch has at most so many times the rows of any other
Features = Callable[[Array], Array]  # the features of an array of rows: (n, d) -> (n, r)


class BlockDiagonal:
    """D = blockdiag(K_bb - Z_b Z_bᵀ), the error of features inside blocks of rows.

    Z S Zᵀ + D is then exact inside blocks, and low rank between them. Without features D is K
    inside blocks and 0 between them. Where K - Z Zᵀ is positive semi-definite, D is as well.

    Parameters
    ----------
    kernel : Kernel
    groups : Grouped
        The rows, block after block.
    features : callable, optional
        The features of an array of rows.
    width : int, default=0
        The number of features.
    kept : sequence of arrays, optional
        The blocks of D, if they are kept. They are computed whenever they are needed otherwise.
    place : Place, optional
        Where rows of the data are: workers may compute blocks. By default, this process.
    """

    def __init__(
        self,
        kernel: Kernel,
        groups: Grouped,
        features: Features | None = None,
        width: int = 0,
        kept: Sequence[Array] | None = None,
        place: Place | None = None,
    ) -> None:
        self.kernel = kernel
        self.groups = groups
        self.width = width
        self._features = features
        self._kept = kept
        self.place = place

    def only(self, start: int, stop: int) -> BlockDiagonal:
        """Return some of the blocks, for one process."""
        groups = self.groups.only(start, stop)
        return BlockDiagonal(self.kernel, groups, self._features, self.width)

    def shares(self) -> list[tuple[int, int]]:
        """Return spans of blocks that workers compute, a few for each; none in one process."""
        workers = 0 if self.place is None else self.place.workers
        if not workers:
            return []
        count = min(TASKS * workers, len(self))
        edges = np.linspace(0, len(self), count + 1).astype(int)
        return [(int(a), int(b)) for a, b in pairwise(edges)]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def dtype(self) -> DType:
        return self.groups.points.dtype

    @property
    def nbytes(self) -> int:
        """The memory of all blocks of D."""
        return int((self.groups.sizes.astype(float) ** 2).sum()) * array_ops.itemsize(self.dtype)

    @property
    def largest(self) -> int:
        """The number of rows of the largest block."""
        return int(self.groups.sizes.max(initial=0))

    @property
    def at_once(self) -> int:
        """The number of blocks that are computed side by side."""
        serial = self.kernel.serial or array_ops.is_foreign(self.groups.points)
        return 1 if serial else max(min(config.n_threads(), len(self)), 1)

    @property
    def work_bytes(self) -> int:
        """The memory that the computation of blocks takes."""
        squares = 2 if self.width else 1  # K_bb and Z_b Z_bᵀ
        item = array_ops.itemsize(self.dtype)
        each = item * (squares * self.largest + 2 * self.width) + 2 * self.groups.row_bytes
        return max(self.at_once * self.largest * each, self._batch_bytes if self._stacks else 0)

    @property
    def _stacks(self) -> bool:
        """Whether blocks are computed in batches: a device is idle with one at a time."""
        return array_ops.is_on_gpu(self.groups.points) and not self.kernel.serial

    @property
    def _batch_bytes(self) -> int:
        return min(BATCH_BYTES, config.memory_budget() // 8)

    def batches(self) -> list[Batch]:
        """Return blocks that have rows in batches: each alone, or some of similar size together."""
        order = np.flatnonzero(self.groups.sizes)
        if self._stacks:
            order = order[np.argsort(-self.groups.sizes[order], kind="stable")]
        members: list[list[int]] = []
        for b in map(int, order):
            if members and self._stacks and self._belongs(b, members[-1]):
                members[-1].append(b)
            else:
                members.append([b])
        return list(map(self.batch, members))

    def batch(self, blocks: Sequence[int]) -> Batch:
        """Return the batch of these blocks."""
        return Batch(tuple(blocks), tuple(map(self.groups.span, blocks)))

    def _belongs(self, b: int, members: list[int]) -> bool:
        """Whether a block joins a batch, whose first block is the largest."""
        height, size = (int(self.groups.sizes[i]) for i in (members[0], b))
        item = array_ops.itemsize(self.dtype)
        fits = (len(members) + 1) * height**2 * item <= self._batch_bytes
        return fits and height <= min(UNEVEN * size, TOGETHER)

    def stacked(self, batch: Batch) -> tuple[Array, Array | None]:
        """D_b of a batch, of shape (blocks, height, height), and Z_b, (blocks, height, r)."""
        rows = [self.groups.rows(b) for b in batch.blocks]
        features = [self.features(x) for x in rows]
        D = batch.padded(map(self.left_out, rows, features), batch.height)
        if self._features is None:
            return D, None
        return D, batch.padded(features, self.width)

    def features(self, x: Array) -> Array | None:
        """The features of an array of rows, of shape (n, r); None where there are none."""
        if self._features is None:
            return None
        return self._features(x) if x.shape[0] else array_ops.empty((0, self.width), x, x.dtype)

    def block(self, b: int) -> Array:
        """D_b, of shape (n_b, n_b)."""
        if self._kept is not None:
            return self._kept[b]
        x = self.groups.rows(b)
        return self.left_out(x, self.features(x))

    def left_out(self, x: Array, z: Array | None) -> Array:
        """K - Z Zᵀ of rows with these features."""
        if not x.shape[0]:
            return array_ops.empty((0, 0), x, x.dtype)
        K = Gram(self.kernel, ArrayRows(x)).dense()
        if z is not None:
            K -= z @ array_ops.namespace(z).matrix_transpose(z)
        return K

    def between(self, b: int, y: Array) -> Array:
        """K - Z Zᵀ of the rows of a block with other rows of the same block."""
        x = self.groups.rows(b)
        K = Gram(self.kernel, ArrayRows(x), ArrayRows(y)).dense()
        if self._features is not None:
            K -= self._features(x) @ array_ops.namespace(K).matrix_transpose(self._features(y))
        return K

    def walk(
        self,
        function: Callable[[Any], Any],
        label: str = "blocks",
        over: Iterable[Any] | None = None,
    ) -> Iterator[Any]:
        """Yield what a function gives for each block, or each of ``over``, in their order.

        They run side by side, each in one thread, and few results wait to be used.
        """
        workers = self.at_once
        share = max(config.memory_budget() // workers, 1)
        things = range(len(self)) if over is None else list(over)

        def alone(b: Any) -> Any:
            if workers == 1:
                return function(b)
            with config.config_context(n_threads=1, memory_budget=share, progress=False):
                return function(b)

        return in_order(alone, things, workers, label, waiting=workers + 1)

    def each(self, function: Callable[[int], Any], label: str = "blocks") -> list[Any]:
        """Return what a function gives for each block."""
        return list(self.walk(function, label))

    def persist(self, room: int) -> BlockDiagonal:
        """Return this matrix with its blocks kept, if they fit into so many bytes.

        Workers of a cluster have the rows of their blocks, and compute them for each product.
        """
        if self._kept is not None or self.nbytes > room or self.shares():
            return self
        blocks = self.each(self.block)
        return BlockDiagonal(self.kernel, self.groups, self._features, self.width, blocks)

    def take(self, numbers: np.ndarray) -> BlockDiagonal:
        """Return D of the rows with these numbers."""
        numbers = np.asarray(numbers)
        labels = self.groups.labels
        where = np.empty(len(labels), dtype=np.int64)
        where[self.groups.order] = np.arange(len(labels))
        rows = ArrayRows(array_ops.take_rows(self.groups.points, where[numbers]))
        groups = Grouped.of(rows, labels[numbers], len(self))
        return BlockDiagonal(self.kernel, groups, self._features, self.width)

    def matmul(self, V: Array) -> Array:
        """Return D @ V, in float64."""  # V: (n, k)
        arranged, edges = self.groups.arrange(V), self.groups.edges
        parts = [
            partial(BlockDiagonal._times, self.only(a, b), arranged[edges[a] : edges[b], ...])
            for a, b in self.shares()
        ]
        if not parts:
            return self.groups.restore(self._times(arranged))
        assert self.place is not None
        return self.groups.restore(array_ops.concat_rows(self.place.call(parts) or []))

    def _times(self, V: Array) -> Array:
        """D @ V for V (n, k) in the order of the blocks."""
        xp = array_ops.namespace(V)
        out = array_ops.empty(V.shape, V, xp.float64)

        def product(b: int) -> None:
            span = self.groups.span(b)
            if span.stop > span.start:
                v = array_ops.astype(V[span, ...], self.dtype)
                out[span, ...] = array_ops.astype(self.block(b) @ v, xp.float64)

        self.each(product)
        return out

    def columns(self, numbers: np.ndarray) -> Array:
        """Return some columns of D, in float64; shape (n, len(numbers))."""
        return self.dense(self.take(numbers))

    def dense(self, other: BlockDiagonal | None = None) -> Array:
        """Return D itself, or between these rows and ``other`` ones, in float64; for few rows."""
        other = self if other is None else other
        mine, theirs = self.groups, other.groups
        xp = array_ops.namespace(mine.points)
        shape = int(mine.edges[-1]), int(theirs.edges[-1])
        out = array_ops.like(np.zeros(shape), mine.points, xp.float64)
        for b in range(len(self)):
            rows, columns = mine.span(b), theirs.span(b)
            if rows.stop > rows.start and columns.stop > columns.start:
                block = self.block(b) if other is self else self.between(b, theirs.rows(b))
                out[rows, columns] = array_ops.astype(block, xp.float64)
        turned = xp.matrix_transpose(mine.restore(out))
        return xp.matrix_transpose(theirs.restore(turned))
