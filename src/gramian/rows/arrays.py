"""Rows walked in this process, block by block: base class, and rows of one array.

Blocks fit the cache and the memory budget, and each thread works on one. Results do not depend on
the number of threads: only sizes determine the blocks, and sums are added in their order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace
from gramian.backend.threads import in_order, one_blas_thread
from gramian.backend.typing import Aligned, BlockSum, DType, Indices, State, Sums, T
from gramian.backend.wording import counted
from gramian.rows.base import Place, Rows, Walk

# The block of a thread should fit its cache; a GPU needs far larger blocks.
CACHE_BYTES = 4 * 1024**2
DEVICE_BYTES = 1024 * 1024**2
LEAST_ROWS = 256  # fewer would make matrix products slow
LEAST_FOR_LARGE = 1024  # rows, if adding a result would take as long as computing it
# Rows of one block are shared by threads, in blocks of at least so many rows, if there are so many
# multiplications in matrix products; fewer take less time than waking threads.
SHARED, LEAST_SHARE, LEAST_PRODUCTS = 4, 128, 2**26
# A thread takes a few blocks with small results, or none, at a time: handing one over takes a fifth
# of the time of reading it.
MOST_TOGETHER, SHARES = 8, 8  # blocks at most, and times that each thread takes some, at least
TOGETHER_BYTES = 256 * 1024  # of results of blocks that a thread takes at a time
NO_RESULT = 1  # bytes of a result that is None

# The first row of a block, the one after its last, and a function that returns it.
Block: TypeAlias = tuple[int, int, Callable[[], Array]]


class Blocking(NamedTuple):
    """The sizes of a walk: how many blocks of how many rows are in memory at once."""

    threads: int  # each works on one block
    rows: int  # at most, in a block
    row_bytes: int  # memory of a row of a block
    waiting: int  # stretches that may be in progress, or whose results wait to be added
    together: int  # blocks in a stretch, which a thread takes at once


class BlockRows(Rows):
    """Base class of rows that are walked in this process, block by block, with threads.

    Subclasses implement ``block``.
    """

    # Copies of a block that each thread may have in memory: as it was read, and shifted to the
    # centre of a kernel's points.
    _held: int = 2
    _together: int = 1  # blocks that a thread may take at once

    @property
    def _is_in_memory(self) -> bool:
        """Whether blocks may be read in any order at no cost."""
        return False

    @abstractmethod
    def block(self, start: int, stop: int) -> Array:
        """Return rows start to stop as an array in memory, in the working dtype."""

    def _map(self, function: Callable[..., Array], aligned: Aligned, walk: Walk) -> Array:
        out = walk.into
        if out is None:
            shape = (self.shape[0], *walk.ending)
            out = array_ops.empty(shape, self.place.reference, walk.dtype)

        def one(x: Array, *parts: Array) -> None:
            target = parts[-1]
            result = function(x, *parts[:-1], out=target)
            if result is not target:
                target[...] = result

        walk = replace(walk, result_bytes=NO_RESULT)
        deque(self._run(one, (*aligned, out), walk, apart=self._is_in_memory), maxlen=0)
        return out

    def _sum(self, function: BlockSum, aligned: Aligned, state: State, walk: Walk) -> Sums:
        total: list[Array] = []
        single = False
        rows = self._unconverted() if walk.stored else self
        for part in rows._run(function, (*aligned, *(state or ())), walk):
            single = not isinstance(part, tuple)
            for i, one in enumerate((part,) if single else part):
                if i < len(total):
                    total[i] += one  # in place, because sums may be large
                else:
                    xp = array_ops.namespace(one)
                    total.append(xp.astype(one, xp.float64))  # a copy
        result = total[0] if single else tuple(total)
        return result if state is None else (result, list(state))

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        size, n = self._blocking(row_bytes, result_bytes), self.shape[0]
        blocks = min(size.threads * min(size.rows, n), n) * size.row_bytes
        return blocks + (size.waiting * size.together + 2) * result_bytes

    def _run(
        self, function: Callable[..., T], aligned: Aligned, walk: Walk, *, apart: bool = False
    ) -> Iterator[T]:
        """Yield ``function(block, *aligned_blocks)`` for each block of rows, in their order.

        If ``apart``, blocks at the same time are far from each other, and so is their order.
        """
        size = self._blocking(walk.row_bytes or 0, walk.result_bytes)
        if size.threads * size.row_bytes > config.memory_budget():
            config.check_fits(
                size.threads * size.row_bytes,
                f"even one row of this computation in each of {counted(size.threads, 'thread')}",
                "Set n_threads=1",
            )
        spans = even_spans(walk.start, self.shape[0], self._shared(size.rows, walk))

        def some(items: Sequence[Block]) -> list[T]:
            with one_blas_thread() if len(spans) == 1 else nullcontext():  # it is a small one
                return [
                    function(read(), *[array_ops.span(a, start, stop) for a in aligned])
                    for start, stop, read in items
                ]

        threads = 1 if walk.serial else size.threads
        stretches = [spans[i:j] for i, j in even_spans(0, len(spans), size.together)]
        if apart:
            stretches = far_apart(stretches, threads)
        blocks = self._blocks(list(chain.from_iterable(stretches)))
        taken = _divided(blocks, map(len, stretches))
        found = in_order(some, taken, threads, walk.label, len(stretches), size.waiting)
        return chain.from_iterable(found)

    def _blocking(self, row_bytes: int, result_bytes: int = 0) -> Blocking:
        """Return the sizes of a walk: blocks fit the cache and the memory budget.

        It needs ``row_bytes`` per row in addition to the rows, and ``result_bytes`` per result.
        """
        on_device, budget = array_ops.is_foreign(self.place.reference), config.memory_budget()
        threads = 1 if on_device else config.n_threads()
        needed = row_bytes + self._held * self.row_bytes
        # Blocks should take a small part of the budget, and never more than half of it: the rest
        # is for the results.
        target = min(DEVICE_BYTES if on_device else CACHE_BYTES, budget // 32)
        least = LEAST_ROWS if result_bytes <= CACHE_BYTES else LEAST_FOR_LARGE
        rows = max(target // max(row_bytes + self.row_bytes, 1), least)
        rows = min(rows, max(budget // 2 // threads // max(needed, 1), 1))
        waiting = 1 if threads == 1 else 2 * threads + 1
        together = 1
        if result_bytes:
            results = max(budget // 4 // result_bytes - 2, 1)
            waiting = min(waiting, results)
            together = min(self._together, self.shape[0] // max(rows * threads * SHARES, 1))
            together = min(together, results // waiting, TOGETHER_BYTES // result_bytes)
            together = max(together, 1)
        return Blocking(threads, rows, needed, waiting, together)

    def _shared(self, most: int, walk: Walk) -> int:
        """Return at most how many rows a block has, so that threads share what takes long."""
        share = -(-(self.shape[0] - walk.start) // SHARED)
        few = array_ops.is_foreign(self.place.reference) or share < LEAST_SHARE
        return most if few or SHARED * share * walk.products < LEAST_PRODUCTS else min(most, share)

    def _unconverted(self) -> BlockRows:
        """Return these rows in their stored dtype, if blocks can have it."""
        return self

    def _blocks(self, spans: Sequence[tuple[int, int]]) -> Iterable[Block]:
        """Yield start, stop and a function that returns the block, for each span.

        The function is called in a worker thread; work that must be done in order comes before it.
        """
        for start, stop in spans:
            yield start, stop, partial(self.block, start, stop)


def _divided(blocks: Iterable[Block], counts: Iterable[int]) -> Iterator[list[Block]]:
    """Yield lists of so many blocks each."""
    remaining = iter(blocks)
    for count in counts:
        yield list(islice(remaining, count))
    deque(remaining, maxlen=0)  # a source may check at its end that it has not changed


class ArrayRows(BlockRows):
    """Rows of one array: NumPy, ``np.memmap``, SciPy CSR, torch, or any array API library.

    Parameters
    ----------
    data : array of shape (n, d), or of shape (n,) and dtype object
        It is not copied. Blocks are converted to float32 or float64 when they are read, so the
        whole of an integer array or a file is never converted at once. In a 1-D array of objects,
        each object is a row; blocks contain the objects unchanged.

    See Also
    --------
    as_rows : makes rows from data of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.rows import ArrayRows
    >>> rows = ArrayRows(np.arange(6).reshape(3, 2))
    >>> rows.map(lambda block, out: block.sum(axis=1))
    array([1., 5., 9.])
    >>> rows.sum(lambda block: block.T @ block)
    array([[20., 26.],
           [26., 35.]])
    """

    _together = MOST_TOGETHER

    def __init__(self, data: Array) -> None:
        self.data = data
        self.are_objects = array_ops.is_objects(data)
        self.shape = (int(data.shape[0]), 1 if self.are_objects else int(data.shape[1]))
        self.dtype = array_ops.float_dtype(data)

    @property
    def xp(self) -> Namespace:
        return array_ops.namespace(self.data)

    @property
    def _is_in_memory(self) -> bool:
        return not array_ops.is_on_disk(self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.data.dtype})"

    def block(self, start: int, stop: int) -> Array:
        return array_ops.astype(array_ops.span(self.data, start, stop), self.dtype)

    def take(self, indices: Indices) -> Array:
        if isinstance(indices, range) and indices.step == 1:  # a view is enough
            return self.block(indices.start, indices.stop)
        taken = array_ops.take_rows(self.data, np.asarray(indices))
        return array_ops.astype(taken, self.dtype)

    def collect(self) -> Array:
        return self.block(0, self.shape[0])

    def persist(self) -> ArrayRows:
        ready = self.data.dtype == self.dtype or self.are_objects
        if ready and not array_ops.is_on_disk(self.data):
            return self
        if self.shape[0] * self.row_bytes > config.memory_budget() // 2:
            return self
        return ArrayRows(array_ops.astype(array_ops.copy(self.data), self.dtype))

    def _unconverted(self) -> BlockRows:
        return StoredRows(self.data)

    @cached_property
    def place(self) -> Place:  # type: ignore[override]
        return Place(self.shape[0], array_ops.empty((0,), self.data, self.dtype))

    def choose(self, numbers: np.ndarray) -> Rows:
        return ChosenRows(self, numbers)

    @property
    def row_bytes(self) -> int:
        if array_ops.issparse(self.data):  # a value and a column index for each stored entry
            return 12 * self.data.nnz // max(int(self.data.shape[0]), 1) + 8
        return self.shape[1] * array_ops.itemsize(self.dtype)


class HalfRows(ArrayRows):
    """Features stored in half precision; blocks have another dtype."""

    def __init__(self, data: Array, dtype: DType) -> None:
        super().__init__(data)
        self.dtype = dtype

    def persist(self) -> ArrayRows:
        return self


class StoredRows(ArrayRows):
    """Rows in their stored dtype and in one block, for GPU programs that do their own tiling."""

    def __init__(self, data: Array) -> None:
        super().__init__(data)
        self.dtype = data.dtype

    def _blocking(self, row_bytes: int, result_bytes: int = 0) -> Blocking:
        return super()._blocking(row_bytes, result_bytes)._replace(rows=max(self.shape[0], 1))


class ChosenRows(ArrayRows):
    """Some rows of an array, selected by their numbers and gathered block by block."""

    def __init__(self, rows: ArrayRows, numbers: np.ndarray) -> None:
        super().__init__(rows.data)
        self.dtype = rows.dtype
        self.rows = rows
        self.numbers = numbers
        self.names = rows.names
        self.shape = (len(numbers), rows.shape[1])

    def block(self, start: int, stop: int) -> Array:
        return self.rows.take(self.numbers[start:stop])

    def take(self, indices: Indices) -> Array:
        return self.rows.take(self.numbers[np.asarray(indices)])

    def _unconverted(self) -> BlockRows:
        return self

    def persist(self) -> ArrayRows:
        if self.shape[0] * self.row_bytes > config.memory_budget() // 2:
            return self
        return ArrayRows(self.collect())


def by_label(labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row numbers in the order of their labels (n,), and where each label ends (count,).

    Rows of one label stay in their order. SciPy's change of a matrix from columns to rows counts
    the labels, which takes far less than sorting them.
    """
    n = len(labels)
    kind: DType = np.int32 if n < np.iinfo(np.int32).max else np.int64
    marked = np.ones(n, dtype=np.int8), labels.astype(kind), np.arange(n + 1, dtype=kind)
    marks = scipy.sparse.csc_array(marked, shape=(count, n)).tocsr()
    return marks.indices, marks.indptr[1:]


def even_spans(start: int, stop: int, most: int) -> list[tuple[int, int]]:
    """Divide a range into spans of nearly equal length, at most ``most`` each.

    If there are several, their number is a multiple of four. This keeps two or four threads equally
    busy, and yet the spans do not depend on the number of threads.
    """
    n = stop - start
    if n <= most:
        return [(start, stop)] if n > 0 else []
    count = min(-(-n // most // 4) * 4, n)
    return list(pairwise([start + n * i // count for i in range(count + 1)]))


def far_apart(spans: Sequence[T], threads: int) -> list[T]:
    """Reorder spans so that threads that take them in turn each work on a region of their own.

    Results of neighbouring blocks share pages of memory. If these are new, and two threads write to
    them first, each clears the whole page.
    """
    share = -(-len(spans) // threads)
    return [spans[i] for start in range(share) for i in range(start, len(spans), share)]
