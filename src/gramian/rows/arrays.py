"""Rows walked in this process, block by block: base class, and rows of one array.

Blocks fit the cache and the memory budget, and each thread works on one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace
from gramian.backend.threads import in_order
from gramian.backend.typing import BlockSum, DType, Indices, Sums, T
from gramian.backend.wording import counted
from gramian.rows import walks
from gramian.rows.base import Place, Rows
from gramian.rows.walks import Walk, even_spans, write_span

# The first row of a block, the one after its last, and a function that returns it.
Block: TypeAlias = tuple[int, int, Callable[[], Array]]


class BlockRows(Rows):
    """Base class of rows that are walked in this process, block by block, with threads.

    Subclasses implement ``block``.
    """

    # Copies of a block that each thread may have in memory: as it was read, and shifted to the
    # centre of a kernel's points.
    _held: int = 2

    @abstractmethod
    def block(self, start: int, stop: int) -> Array:
        """Return rows start to stop as an array in memory, in the working dtype."""

    @property
    def place(self) -> Place:  # type: ignore[override]
        return Place(self.shape[0], self.example())

    def _map(self, function: Callable[..., Array], aligned: tuple[Array, ...], walk: Walk) -> Array:
        out = walk.target(self.shape[0], self.example())

        def one(item: Block) -> None:
            start, stop, read = item
            write_span(out, start, stop, aligned, partial(function, read()))

        deque(self._run(one, self.spans(walk.work_bytes), walk), maxlen=0)
        return out

    def _sum(
        self,
        function: BlockSum,
        aligned: tuple[Array, ...],
        state: Sequence[Array] | None,
        walk: Walk,
    ) -> Sums:
        together = (*aligned, *(state or ()))

        def one(item: Block) -> Sums:
            start, stop, read = item
            return function(read(), *[array_ops.span(a, start, stop) for a in together])

        total: list[Array] = []
        single = False
        rows = self._unconverted() if walk.stored else self
        for part in rows._run(one, rows.spans(walk.work_bytes, walk.start), walk):
            single = not isinstance(part, tuple)
            parts = (part,) if single else part
            if total:
                for i, p in enumerate(parts):  # in place, because sums may be large
                    total[i] += p
            else:
                total = [_as_float64(p) for p in parts]
        result = total[0] if single else tuple(total)
        return result if state is None else (result, list(state))

    def spans(self, row_bytes: int, start: int = 0) -> list[tuple[int, int]]:
        """Divide the rows from ``start`` into blocks (first, last + 1) that fit cache and budget.

        Each block needs ``row_bytes`` per row in addition to the rows themselves.
        """
        workers = self._workers()
        if workers * self._needed(row_bytes) > config.memory_budget():
            config.check_fits(
                workers * self._needed(row_bytes),
                f"even one row of this computation in each of {counted(workers, 'thread')}",
                "Set n_threads=1",
            )
        return even_spans(start, self.shape[0], self._most_rows(row_bytes))

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        rows = min(self._most_rows(row_bytes), self.shape[0])
        blocks = min(self._workers() * rows, self.shape[0]) * self._needed(row_bytes)
        return blocks + (self._waiting(result_bytes) + 2) * result_bytes + self._reading_bytes()

    def _unconverted(self) -> BlockRows:
        """Return these rows in their stored dtype, if blocks can have it."""
        return self

    def _needed(self, row_bytes: int) -> int:
        """Return the memory of one row in each thread."""
        return row_bytes + self._held * self.row_bytes

    def _most_rows(self, row_bytes: int) -> int:
        """Return the largest number of rows in a block."""
        target = walks.DEVICE_BYTES if self._foreign else walks.CACHE_BYTES
        # Blocks should take a small part of the budget, and never more than half of it: the rest
        # is for the results.
        target = min(target, config.memory_budget() // 32)
        budget = config.memory_budget() // 2 // self._workers()
        fitting = max(target // max(row_bytes + self.row_bytes, 1), walks.LEAST_ROWS)
        return min(fitting, max(budget // max(self._needed(row_bytes), 1), 1))

    def _reading_bytes(self) -> int:
        """Return the memory that reading needs in addition to the blocks."""
        return 0

    def _waiting(self, result_bytes: int = 0) -> int:
        """Return how many blocks may be in progress or waiting to be added."""
        workers = self._workers()
        most = 1 if workers == 1 else 2 * workers + 1
        if not result_bytes:
            return most
        return min(most, max(config.memory_budget() // 4 // result_bytes - 2, 1))

    @property
    def _foreign(self) -> bool:
        """Whether another library than NumPy computes on blocks, with its own threads."""
        return array_ops.is_foreign(self.example())

    def _workers(self) -> int:
        return 1 if self._foreign else config.n_threads()

    def _run(
        self,
        function: Callable[[Block], T],
        spans: Sequence[tuple[int, int]],
        walk: Walk,
    ) -> Iterator[T]:
        """Yield the results of ``function`` on the items of ``_blocks``, in their order."""
        workers = 1 if walk.serial else self._workers()
        waiting = self._waiting(walk.result_bytes)
        return in_order(function, self._blocks(spans), workers, walk.label, len(spans), waiting)

    def _blocks(self, spans: Sequence[tuple[int, int]]) -> Iterable[Block]:
        """Yield start, stop and a function that returns the block, for each span.

        The function is called in a worker thread; work that must be done in order comes before it.
        """
        for start, stop in spans:
            yield start, stop, partial(self.block, start, stop)


def _as_float64(x: Array) -> Array:
    """Return a copy of x in float64."""
    xp = array_ops.namespace(x)
    return array_ops.copy(x) if x.dtype == xp.float64 else array_ops.astype(x, xp.float64)


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

    def __init__(self, data: Array) -> None:
        self.data = data
        self.are_objects = array_ops.is_objects(data)
        self.shape = (int(data.shape[0]), 1 if self.are_objects else int(data.shape[1]))
        self.dtype = array_ops.float_dtype(data)

    @property
    def xp(self) -> Namespace:
        return array_ops.namespace(self.data)

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

    def example(self) -> Array:
        return array_ops.empty((0,), self.data, self.dtype)

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

    def spans(self, row_bytes: int, start: int = 0) -> list[tuple[int, int]]:
        return [(start, self.shape[0])]


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
