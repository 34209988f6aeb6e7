"""Rows: where the data is, and how it is walked block by block inside the memory budget.

Blocks, threads, the memory budget and the conversion of dtypes live here and nowhere else. A
learner says what is to be done to one block of rows; ``map`` collects the results row by row, and
``sum`` adds them up in float64. Results do not depend on the number of threads: blocks are cut by
size alone and added in their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import sklearn
from sklearn.utils import check_array

from gramian import _arrays, _files, _objects, _settings
from gramian._arrays import Array, Namespace
from gramian._threads import in_order
from gramian._wording import counted

__all__ = ["ArrayRows", "FeatureRows", "Rows", "as_rows"]

# What one thread works on at a time should stay in its cache; a GPU wants far larger pieces.
CACHE_BYTES = 4 * 1024**2
DEVICE_BYTES = 1024 * 1024**2
LEAST_ROWS = 256  # fewer would make matrix products slow


class Rows(ABC):
    """The rows of a data set, wherever they are.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and of columns.
    dtype : dtype
        What blocks are computed in: float32 for float32, half precision and bytes, else float64.
    xp : module
        The array API namespace of the blocks.
    spread : bool
        Whether other processes hold the rows. Arrays with an entry for each row then live there
        too: they are lazy, and what they are of is the namespace of the array, not ``xp``.
    names : list of str or None
        What the columns are called, where the rows know it.
    """

    shape: tuple[int, int]
    dtype: Any
    xp: Namespace
    spread: bool = False
    names: list[str] | None = None

    @property
    def are_objects(self) -> bool:
        """Whether each row is a Python object, such as a string, that only a function can read."""
        return False

    @property
    def evaluations(self) -> int:
        """The kernel values that one walk over the rows computes: none where they are kept."""
        return 0

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory, on average."""
        return self.shape[1] * _arrays.itemsize(self.dtype)

    @abstractmethod
    def take(self, indices: Any) -> Array:
        """The rows with these numbers, as one array in memory."""

    @abstractmethod
    def map(
        self,
        function: Callable[..., Array],
        *aligned: Array,
        width: int | None = None,
        dtype: Any = None,
        row_bytes: int | None = None,
        into: Array | None = None,
        serial: bool = False,
        label: str = "rows",
    ) -> Array:
        """One result per row.

        ``function(block, *aligned_blocks, out=out)`` gets a block of rows, the same rows of each
        aligned array, and the memory for its result of shape (rows, width), or (rows,) where width
        is None. It may write there, or return an array of its own. ``row_bytes`` is what it works
        on for each row beside the block itself, by default its result: blocks are cut so that
        this stays in cache and in the memory budget. The results are written ``into`` an array
        that is given, or a new one.
        """

    @abstractmethod
    def sum(
        self,
        function: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        start: int = 0,
        row_bytes: int = 0,
        result_bytes: int = 0,
        serial: bool = False,
        label: str = "rows",
    ) -> Any:
        """The sum over all blocks from row ``start`` on, of ``function(block, *aligned_blocks)``.

        The function returns an array or a tuple of arrays; they are added in float64. Where these
        are large, ``result_bytes`` says so: fewer of them then wait to be added. Arrays of the
        ``state`` are aligned too, and come after the others; into their blocks the function may
        write. The result is then the sum and the arrays as they are afterwards: the same, or, where
        the rows are spread, others.
        """

    @abstractmethod
    def persist(self) -> Rows:
        """These rows held in memory in their working dtype, if that fits the memory budget."""

    @abstractmethod
    def collect(self) -> Array:
        """All rows as one array in memory."""

    @abstractmethod
    def example(self) -> Array:
        """An array without entries, of the library, device and dtype of results."""

    @abstractmethod
    def choose(self, numbers: np.ndarray) -> Rows:
        """The rows with these numbers, still where they are; gathered when they are walked."""

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        """What ``map`` and ``sum`` take at once with these sizes, beside the result of ``map``."""
        return 0

    def stored(self) -> Rows:
        """These rows as they are kept, where they are, for programs that read any dtype."""
        return self

    # What differs where rows are computed with, or held, elsewhere than who gave them has them.

    def answer(self, values: Array) -> Array:
        """Values with an entry, or line, for each row, as who gave the rows gets them."""
        return values

    def settled(self, values: Array) -> Array:
        """What a fit keeps of each row: computed, where the rows are, as ``answer`` gives it."""
        return self.answer(_arrays.settled(self.align(values) if self.spread else values))

    def answer_memory(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        """Memory for such values that ``map`` can write ``into``, where it is not the rows' own."""
        return None

    def align(self, values: Any, dtype: Any = None) -> Array:
        """Values with an entry, or line, for each row as an array that is walked with the rows."""
        return _arrays.like(values, self.example(), dtype)

    def constant(self, value: float) -> Array:
        """The same number for each row, in float64, as an array that is walked with the rows."""
        return self.align(np.full(self.shape[0], value), self.xp.float64)

    def split(self, labels: Array, count: int) -> list[Rows]:
        """For each of ``count`` labels its rows, in their order."""
        order = np.argsort(labels, kind="stable")
        edges = np.cumsum(np.bincount(labels, minlength=count))[:-1]
        return [self.choose(numbers) for numbers in np.split(order, edges)]

    def by_parts(self, operation: Callable[[Rows, int], Any], *, serial: bool = False) -> list[Any]:
        """What ``operation(part, number)`` gives for the rows that one process holds, part by part.

        ``number`` is that of the part's first row.
        """
        return [operation(self, 0)]

    def values(self) -> Array:
        """All rows as one array that is walked with them; a lazy one where they are spread."""
        return self.collect()

    def keep(self, values: Array) -> Rows:
        """What ``map`` gave for these rows, held where they are, as rows."""
        return ArrayRows(values)

    def room(self) -> int:
        """The bytes that may be used now for what is kept of the rows."""
        return _settings.memory_budget()

    def check_room(self, size: int, what: str, advice: str) -> None:
        """Refuse to make a result of ``map`` that has no room; a lazy one needs none."""
        _settings.check_fits(size, what, advice)

    def here(self) -> Rows:
        """These rows in this process: for matrices that are made in one piece."""
        return self


class BlockRows(Rows):
    """Rows that are walked here, in blocks cut by their size, one after the other or in threads.

    A subclass reads a block.
    """

    # How many times a block may be in memory at once, for each thread: as it was read, and moved
    # to where a kernel loses less to rounding.
    _held: int = 2

    @abstractmethod
    def block(self, start: int, stop: int) -> Array:
        """Rows start to stop, as an array in memory in the working dtype."""

    def map(
        self,
        function: Callable[..., Array],
        *aligned: Array,
        width: int | None = None,
        dtype: Any = None,
        row_bytes: int | None = None,
        into: Array | None = None,
        serial: bool = False,
        label: str = "rows",
    ) -> Array:
        dtype = self.dtype if dtype is None else dtype
        n = self.shape[0]
        out = into
        if out is None:
            out = _arrays.empty((n,) if width is None else (n, width), self.example(), dtype)
        if row_bytes is None:
            row_bytes = (1 if width is None else width) * _arrays.itemsize(dtype)

        def one(block: Array, start: int, stop: int) -> None:
            target = _arrays.span(out, start, stop)
            parts = (_arrays.span(a, start, stop) for a in aligned)
            result = function(block, *parts, out=target)
            if result is not target:
                target[...] = result

        deque(self._run(one, self.spans(row_bytes), label, serial), maxlen=0)
        return out

    def sum(
        self,
        function: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        start: int = 0,
        row_bytes: int = 0,
        result_bytes: int = 0,
        serial: bool = False,
        label: str = "rows",
    ) -> Any:
        together = (*aligned, *(state or ()))

        def one(block: Array, start: int, stop: int) -> Any:
            parts = (_arrays.span(a, start, stop) for a in together)
            return function(block, *parts)

        total: list[Array] = []
        single = False
        waiting = self._waiting(result_bytes)
        for part in self._run(one, self.spans(row_bytes, start), label, serial, waiting):
            single = not isinstance(part, tuple)
            parts = (part,) if single else part
            if total:
                for i, p in enumerate(parts):  # over its own memory: sums may be large
                    total[i] += p
            else:
                total = [_as_float64(p) for p in parts]
        result = total[0] if single else tuple(total)
        return result if state is None else (result, list(state))

    def spans(self, row_bytes: int, start: int = 0) -> list[tuple[int, int]]:
        """Cut the rows from start on into blocks (first, last + 1) that fit cache and budget.

        Each block needs ``row_bytes`` a row beside the rows themselves.
        """
        workers = self._workers()
        _settings.check_fits(
            workers * self._needed(row_bytes),
            f"even one row of this computation in each of {counted(workers, 'thread')}",
            "Set n_threads=1",
        )
        return even_spans(start, self.shape[0], self._most_rows(row_bytes))

    def _needed(self, row_bytes: int) -> int:
        """What a row takes in each thread."""
        return row_bytes + self._held * self.row_bytes

    def _most_rows(self, row_bytes: int) -> int:
        """The rows of a block, at most."""
        target = DEVICE_BYTES if _arrays.runs_own_threads(self.example()) else CACHE_BYTES
        # Blocks should be a small part of the budget, and are never more than half of it: the rest
        # is for what they are made for.
        target = min(target, _settings.memory_budget() // 32)
        budget = _settings.memory_budget() // 2 // self._workers()
        fitting = max(target // (row_bytes + self.row_bytes), LEAST_ROWS)
        return min(fitting, max(budget // self._needed(row_bytes), 1))

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        rows = min(self._most_rows(row_bytes), self.shape[0])
        blocks = min(self._workers() * rows, self.shape[0]) * self._needed(row_bytes)
        return blocks + (self._waiting(result_bytes) + 2) * result_bytes + self._reading_bytes()

    def _reading_bytes(self) -> int:
        """What reading takes beside the blocks."""
        return 0

    def _waiting(self, result_bytes: int = 0) -> int:
        """How many blocks are in work, or their results wait, at once."""
        workers = self._workers()
        most = 1 if workers == 1 else 2 * workers + 1
        if not result_bytes:
            return most
        return min(most, max(_settings.memory_budget() // 4 // result_bytes - 2, 1))

    def _workers(self) -> int:
        return 1 if _arrays.runs_own_threads(self.example()) else _settings.n_threads()

    def _run(
        self,
        function: Callable[[Array, int, int], Any],
        spans: Sequence[tuple[int, int]],
        label: str,
        serial: bool = False,
        waiting: int | None = None,
    ) -> Iterator[Any]:
        """Results of ``function(block, start, stop)``, in the order of the spans."""

        def one(item: tuple[int, int, Callable[[], Array]]) -> Any:
            start, stop, read = item
            return function(read(), start, stop)

        workers = 1 if serial else self._workers()
        return in_order(one, self._blocks(spans), workers, label, len(spans), waiting)

    def _blocks(
        self, spans: Sequence[tuple[int, int]]
    ) -> Iterable[tuple[int, int, Callable[[], Array]]]:
        """For each span, its ends and a function that gives the block.

        The function is called in a worker; what must be done in order belongs before it.
        """
        return ((start, stop, partial(self.block, start, stop)) for start, stop in spans)


class ArrayRows(BlockRows):
    """Rows of one array: NumPy, ``np.memmap``, SciPy CSR, torch, or of the array API standard.

    Parameters
    ----------
    data : array of shape (n, d), or of shape (n,) and dtype object
        It is kept as it is; blocks are converted to float32 or float64 when they are read, so an
        integer array or a file on disk never becomes a float copy in memory. A 1-D array of objects
        makes rows of one object each, which blocks hold as they are.

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
        self.shape = (int(data.shape[0]), 1 if self.are_objects else int(data.shape[1]))
        self.dtype = _arrays.float_dtype(data)

    @property
    def are_objects(self) -> bool:
        return _arrays.is_objects(self.data)

    @property
    def xp(self) -> Namespace:
        return _arrays.namespace(self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.data.dtype})"

    def block(self, start: int, stop: int) -> Array:
        return _arrays.astype(_arrays.span(self.data, start, stop), self.dtype)

    def take(self, indices: Any) -> Array:
        if isinstance(indices, range) and indices.step == 1:  # needs no copy
            return self.block(indices.start, indices.stop)
        taken = _arrays.take_rows(self.data, np.asarray(indices))
        return _arrays.astype(taken, self.dtype)

    def collect(self) -> Array:
        return self.block(0, self.shape[0])

    def persist(self) -> ArrayRows:
        ready = self.data.dtype == self.dtype or self.are_objects
        if ready and not _arrays.is_on_disk(self.data):
            return self
        if self.shape[0] * self.row_bytes > _settings.memory_budget() // 2:
            return self
        return ArrayRows(_arrays.astype(_arrays.copy(self.data), self.dtype))

    def stored(self) -> Rows:
        return StoredRows(self.data)

    def example(self) -> Array:
        return _arrays.empty((0,), self.data, self.dtype)

    def choose(self, numbers: np.ndarray) -> Rows:
        return ChosenRows(self, numbers)

    @property
    def row_bytes(self) -> int:
        if _arrays.issparse(self.data):  # a value and its column number for each stored entry
            return 12 * self.data.nnz // max(int(self.data.shape[0]), 1) + 8
        return super().row_bytes


class HalfRows(ArrayRows):
    """Features that are kept in half precision, and computed with in another dtype."""

    def __init__(self, data: Array, dtype: Any) -> None:
        super().__init__(data)
        self.dtype = dtype

    def persist(self) -> ArrayRows:
        return self


class StoredRows(ArrayRows):
    """Rows of an array as it is, in one block: for programs that work on them in registers."""

    def __init__(self, data: Array) -> None:
        super().__init__(data)
        self.dtype = data.dtype

    def spans(self, row_bytes: int, start: int = 0) -> list[tuple[int, int]]:
        return [(start, self.shape[0])]


class ChosenRows(ArrayRows):
    """Some rows of an array, by their numbers: gathered block by block."""

    def __init__(self, rows: ArrayRows, numbers: np.ndarray) -> None:
        super().__init__(rows.data)
        self.dtype = rows.dtype
        self.rows = rows
        self.numbers = numbers
        self.names = rows.names
        self.shape = (len(numbers), rows.shape[1])

    def block(self, start: int, stop: int) -> Array:
        return self.rows.take(self.numbers[start:stop])

    def take(self, indices: Any) -> Array:
        return self.rows.take(self.numbers[np.asarray(indices)])

    def stored(self) -> Rows:
        return self

    def persist(self) -> ArrayRows:
        if self.shape[0] * self.row_bytes > _settings.memory_budget() // 2:
            return self
        return ArrayRows(self.collect())


class FeatureRows(Rows):
    """Features of other rows, computed block by block whenever they are walked.

    Parameters
    ----------
    rows : Rows
    features : callable
        ``features(block, out=None)`` gives the features of a block, of shape (rows, width).
    width : int
    dtype : dtype
    work_bytes : int
        What ``features`` works on for each row beside the block and its result.
    serial : bool
        Whether ``features`` must not be called from two threads at once.
    row_evaluations : int
        Kernel values that the features of one row take.
    product : tuple of Rows and array, optional
        Where the features are the product C P of other rows, such as kernel values, with a matrix:
        these two. Who needs Z W for few columns W then has C (P W) for far less work.
    fused : object, optional
        What multiplies with the features of a block without making them, where there is such a
        thing: ``fused.times(block, V)`` and ``fused.transposed_times(block, U)``, both of which
        give None where it cannot.
    """

    def __init__(
        self,
        rows: Rows,
        features: Callable[..., Array],
        width: int,
        dtype: Any,
        *,
        work_bytes: int = 0,
        serial: bool = False,
        row_evaluations: int = 0,
        product: tuple[Rows, Array] | None = None,
        fused: Any = None,
    ) -> None:
        self.rows = rows
        self.features = features
        self.fused = fused
        self.product = product
        self.shape = (rows.shape[0], width)
        self.dtype = dtype
        self.xp = rows.xp
        self.spread = rows.spread
        self.work_bytes = work_bytes
        self.serial = serial
        self.row_evaluations = row_evaluations
        self._row_bytes = work_bytes + width * _arrays.itemsize(dtype)

    @property
    def evaluations(self) -> int:
        return self.shape[0] * self.row_evaluations

    def take(self, indices: Any) -> Array:
        if len(indices) == 0:  # kernels have no largest distance to look at
            return _arrays.empty((0, self.shape[1]), self.example(), self.dtype)
        taken = self.rows.take(indices)
        if len(indices) <= LEAST_ROWS:
            return self.features(taken)
        return self.on(ArrayRows(taken)).collect()  # in blocks, and in threads

    def map(
        self,
        function: Callable[..., Array],
        *aligned: Array,
        width: int | None = None,
        dtype: Any = None,
        row_bytes: int | None = None,
        into: Array | None = None,
        serial: bool = False,
        label: str = "rows",
    ) -> Array:
        dtype = self.dtype if dtype is None else dtype
        if row_bytes is None:
            row_bytes = (1 if width is None else width) * _arrays.itemsize(dtype)
        features = self.features  # alone: the function may be sent to where the rows are
        return self.rows.map(
            lambda x, *parts, out: function(features(x), *parts, out=out),
            *aligned,
            width=width,
            dtype=dtype,
            row_bytes=row_bytes + self._row_bytes,
            into=into,
            serial=serial or self.serial,
            label=label,
        )

    def sum(
        self,
        function: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        start: int = 0,
        row_bytes: int = 0,
        result_bytes: int = 0,
        serial: bool = False,
        label: str = "rows",
    ) -> Any:
        features = self.features
        return self.rows.sum(
            lambda x, *parts: function(features(x), *parts),
            *aligned,
            state=state,
            start=start,
            row_bytes=row_bytes + self._row_bytes,
            result_bytes=result_bytes,
            serial=serial or self.serial,
            label=label,
        )

    def collect(self) -> Array:
        values = self.values()
        return _arrays.like(values, self.example()) if self.spread else values

    def values(self) -> Array:
        return self.rows.map(
            self.features,
            width=self.shape[1],
            dtype=self.dtype,
            row_bytes=self._row_bytes,
            serial=self.serial,
            label="features",
        )

    def example(self) -> Array:
        return _arrays.empty((0,), self.rows.example(), self.dtype)

    def choose(self, numbers: np.ndarray) -> Rows:
        product = self.product and (self.product[0].choose(numbers), self.product[1])
        return self.on(self.rows.choose(numbers), product)

    def on(self, rows: Rows, product: tuple[Rows, Array] | None = None) -> FeatureRows:
        """The same features of other rows."""
        return FeatureRows(
            rows,
            self.features,
            self.shape[1],
            self.dtype,
            work_bytes=self.work_bytes,
            serial=self.serial,
            row_evaluations=self.row_evaluations,
            product=product,
            fused=self.fused,
        )

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        return self.rows.walk_bytes(row_bytes + self._row_bytes, result_bytes)

    def persist(self) -> Rows:
        size = self.shape[0] * self.shape[1] * _arrays.itemsize(self.dtype)
        return self if size > self.room() // 2 else self.rows.keep(self.values())

    def align(self, values: Any, dtype: Any = None) -> Array:
        return self.rows.align(values, dtype)

    def constant(self, value: float) -> Array:
        return self.rows.constant(value)

    def by_parts(self, operation: Callable[[Rows, int], Any], *, serial: bool = False) -> list[Any]:
        made = partial(
            FeatureRows,
            features=self.features,
            width=self.shape[1],
            dtype=self.dtype,
            work_bytes=self.work_bytes,
            serial=self.serial,
            row_evaluations=self.row_evaluations,
        )
        return self.rows.by_parts(
            lambda part, number: operation(made(part), number), serial=serial or self.serial
        )

    def keep(self, values: Array) -> Rows:
        return self.rows.keep(values)

    def room(self) -> int:
        return self.rows.room()

    def check_room(self, size: int, what: str, advice: str) -> None:
        self.rows.check_room(size, what, advice)

    def here(self) -> Rows:
        return self.on(self.rows.here()) if self.spread else self

    def persist_some(self, count: int, *, half: bool = False) -> tuple[Rows, np.ndarray]:
        """These rows with ``count`` of them held in memory, and the order that they are then in.

        Those in memory, with ``half`` in half precision, come first. They are spread over all rows
        in stretches, so that they are a fair sample of rows in any order, and both kinds are still
        read from front to back.
        """
        inside = spread(self.shape[0], count)
        order = np.concatenate((np.flatnonzero(inside), np.flatnonzero(~inside)))
        first, rest = (self.choose(numbers) for numbers in np.split(order, [count]))
        return JoinedRows([held(first, half=half), rest]), order


def held(rows: Rows, *, half: bool = False) -> Rows:
    """Rows kept where they are, in their working dtype or in half precision."""
    if half:
        if not hasattr(rows.xp, "float16"):
            raise ValueError(
                f"half_precision=True needs NumPy's arrays or torch's tensors; {rows.xp.__name__} "
                "has no half precision."
            )
        values = rows.map(for_half, width=rows.shape[1], dtype=rows.xp.float16, label="features")
        return rows.keep(values) if rows.spread else HalfRows(values, rows.dtype)
    return rows.persist() if isinstance(rows, ArrayRows) else rows.keep(rows.values())


def for_half(z: Array, out: Array | None = None) -> Array:
    """A block z, that half precision can hold."""
    xp, largest = _arrays.namespace(z), 65504.0
    if z.shape[0] and float(xp.max(xp.abs(z))) > largest:
        raise ValueError(
            f"Half precision holds numbers up to {largest:g}, and features here are larger. Use "
            "half_precision=False, or a kernel scaled down, such as 0.001 * kernel."
        )
    return z


class JoinedRows(Rows):
    """Rows of several kinds, one after the other: of the same columns, dtype and library."""

    def __init__(self, members: Sequence[Rows]) -> None:
        self.members = list(members)
        first = self.members[0]
        self.edges = np.cumsum([0, *(rows.shape[0] for rows in members)]).tolist()
        self.shape = (self.edges[-1], first.shape[1])
        self.dtype = first.dtype
        self.xp = first.xp

    @property
    def serial(self) -> bool:
        return any(getattr(rows, "serial", False) for rows in self.members)

    def take(self, indices: Any) -> Array:
        indices = np.asarray(indices)
        order = np.argsort(indices, kind="stable")
        edges = np.searchsorted(indices[order], self.edges)
        out = _arrays.empty((len(indices), self.shape[1]), self.example(), self.dtype)
        for rows, start, (first, last) in zip(
            self.members, self.edges, pairwise(edges), strict=False
        ):
            mine = order[first:last]
            _arrays.put_rows(out, mine, rows.take(indices[mine] - start))
        return out

    def map(
        self, function: Callable[..., Array], *aligned: Array, width: int | None = None,
        dtype: Any = None, **options: Any,
    ) -> Array:  # fmt: skip
        dtype = self.dtype if dtype is None else dtype
        n = self.shape[0]
        out = _arrays.empty((n,) if width is None else (n, width), self.example(), dtype)
        for rows, (start, stop) in zip(self.members, pairwise(self.edges), strict=True):
            own = (_arrays.span(a, start, stop) for a in aligned)
            values = rows.map(function, *own, width=width, dtype=dtype, **options)
            out[start:stop, ...] = values
        return out

    def sum(
        self,
        function: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        start: int = 0,
        **options: Any,
    ) -> Any:
        together = (*aligned, *(state or ()))
        totals = []
        for rows, (first, stop) in zip(self.members, pairwise(self.edges), strict=True):
            if max(start, first) < stop:
                own = (_arrays.span(a, first, stop) for a in together)
                totals.append(rows.sum(function, *own, start=max(start - first, 0), **options))
        several = isinstance(totals[0], tuple)
        total = tuple(map(sum, zip(*totals, strict=True))) if several else sum(totals)
        return total if state is None else (total, list(state))

    def collect(self) -> Array:
        return _arrays.concat_rows([rows.collect() for rows in self.members])

    def example(self) -> Array:
        return self.members[0].example()

    def choose(self, numbers: np.ndarray) -> Rows:
        if np.any(numbers[1:] < numbers[:-1]):  # members mix: each block gathers its own rows

            def gathered(x: Array, out: Array | None = None) -> Array:
                return self.take(_arrays.to_numpy(x)[:, 0].astype(np.intp))

            by_number = ArrayRows(_arrays.like(numbers[:, None], self.example(), self.xp.float64))
            return FeatureRows(by_number, gathered, self.shape[1], self.dtype, serial=self.serial)
        edges = np.searchsorted(numbers, self.edges)
        chosen = [
            rows.choose(numbers[first:last] - start)
            for rows, start, (first, last) in zip(
                self.members, self.edges, pairwise(edges), strict=False
            )
            if first < last
        ]
        if not chosen:
            return self.members[0].choose(numbers)
        return chosen[0] if len(chosen) == 1 else JoinedRows(chosen)

    def persist(self) -> Rows:
        return self

    def stored(self) -> Rows:
        return JoinedRows([rows.stored() for rows in self.members])

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        return max(rows.walk_bytes(row_bytes, result_bytes) for rows in self.members)


def spread(n: int, count: int, stretch: int = 256) -> np.ndarray:
    """Which of n rows are chosen: ``count`` of them, in stretches at equal distances."""
    whole = n // stretch
    chosen = min(count // stretch, whole)
    edges = np.arange(whole + 1) * chosen // max(whole, 1)
    inside = np.zeros(n, dtype=bool)
    inside[: whole * stretch] = np.repeat(np.diff(edges) > 0, stretch)
    inside[np.flatnonzero(~inside)[: count - chosen * stretch]] = True
    return inside


def even_spans(start: int, stop: int, most: int) -> list[tuple[int, int]]:
    """Spans of nearly equal length, at most ``most`` each; several come in multiples of four.

    Multiples of four keep two or four threads equally busy, without letting the cut depend on the
    number of threads.
    """
    n = stop - start
    count = -(-n // most)
    if count > 1:
        count = min(-(-count // 4) * 4, n)
    edges = [start + n * i // max(count, 1) for i in range(count + 1)]
    return list(pairwise(edges))


def _as_float64(x: Array) -> Array:
    """x in float64, in memory of its own."""
    xp = _arrays.namespace(x)
    return _arrays.copy(x) if x.dtype == xp.float64 else _arrays.astype(x, xp.float64)


def as_rows(
    X: Any,
    *,
    name: str = "X",
    owner: str | None = None,
    min_rows: int = 1,
    objects: bool | None = False,
) -> Rows:
    """X as :class:`Rows`, checked once: two dimensions, real numbers, all finite.

    Accepts NumPy arrays and what converts to them (lists, pandas and polars frames), ``np.memmap``,
    SciPy sparse matrices, torch tensors and other arrays of the array API standard, dask arrays
    and dataframes, which stay where they are. Rows pass through unchanged. A path, or the name of a
    file in a format that :func:`gramian.open_rows` knows, stands for the rows of that file: it is
    read into memory at once where that takes less than half of the memory budget, else block by
    block whenever it is walked.

    With ``objects=True`` each entry of X is an object, such as a string, that only a kernel
    function can read; nothing is asked of it. With None that is so where X is no table of numbers:
    a list of strings, of sets, of lists of different lengths; a 1-D array of dtype object, whatever
    it holds; an array of more than two dimensions; a frame with columns of text, of which each row
    is an object, a 1-D array.

    Examples
    --------
    >>> from gramian import as_rows
    >>> as_rows([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    >>> as_rows(["kernel", "colonel"], objects=None)
    ArrayRows(shape=(2, 1), dtype=object)
    """
    if isinstance(X, Rows):
        return X
    if _is_of_dask(X):
        return _rows_of_dask(X, name, owner, min_rows)
    if _files.is_path(X) and not objects:
        return _rows_of_file(X, name, owner, min_rows)
    if objects is None:
        objects = not _objects.is_table(X)
    if objects:
        return ArrayRows(_objects.as_objects(X, name, owner, min_rows))
    data = _checked_foreign(X, name, owner, min_rows) if _arrays.is_foreign(X) else None
    if data is None:
        data = _checked_host(X, name, owner, min_rows)
    rows = ArrayRows(data)
    if _arrays.kind(data, "real floating") and not sklearn.get_config()["assume_finite"]:
        _check_finite(rows, name)
    return rows


def _rows_of_file(path: Any, name: str, owner: str | None, min_rows: int) -> Rows:
    from gramian.file_rows import open_rows

    rows = open_rows(path)
    _check_least(rows.shape, name, owner, min_rows)
    return rows.persist()


def _is_of_dask(X: Any) -> bool:
    """Whether X is a collection of dask's, which need not be installed."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def _rows_of_dask(X: Any, name: str, owner: str | None, min_rows: int) -> Rows:
    from gramian.dask_rows import DaskRows

    rows = DaskRows(X, name=name)
    _check_least(rows.shape, name, owner, min_rows)
    return rows


def _check_least(shape: tuple[int, ...], name: str, owner: str | None, min_rows: int) -> None:
    by = f" by {owner}" if owner else ""
    for size, least, what in zip(shape, (min_rows, 1), ("sample", "feature"), strict=True):
        if size < least:
            raise ValueError(
                f"Found array with {size} {what}(s) (shape={tuple(shape)}) while a minimum of "
                f"{least} is required{by}."
            )


def _checked_host(X: Any, name: str, owner: str | None, min_rows: int) -> Array:
    try:
        data = check_array(
            X,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite=False,  # checked by blocks afterwards
            ensure_min_samples=min_rows,
            estimator=owner,
            input_name=name,
        )
        # Frames of several dtypes may still come as objects.
        return data.astype(np.float64) if data.dtype == object else data
    except ValueError as error:
        columns = _objects.text_columns(X)
        if not columns:
            if not _objects.is_table(X):
                error.add_note(
                    "Objects such as strings or lists of different lengths need a kernel that is a "
                    "function of two of them: FunctionKernel(function, pairwise=True)."
                )
            raise
        raise ValueError(
            f"{name} must hold numbers only; these columns do not: {', '.join(columns)}. "
            "Encode them (scikit-learn's OneHotEncoder or OrdinalEncoder) or drop them."
        ) from error


def _checked_foreign(X: Array, name: str, owner: str | None, min_rows: int) -> Array:
    if X.ndim != 2:
        raise ValueError(
            f"Expected a 2D array for {name}; got shape {tuple(X.shape)}. Reshape it to "
            "(n_rows, n_columns)."
        )
    if _arrays.kind(X, "complex floating"):
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}.")
    _check_least(X.shape, name, owner, min_rows)
    # Gradients do not pass through a fit: work on the values alone.
    return X.detach() if hasattr(X, "detach") else X


def _check_finite(rows: ArrayRows, name: str) -> None:
    def check(span: tuple[int, int]) -> tuple[int, int] | None:
        block = _arrays.span(rows.data, *span)
        with np.errstate(over="ignore", invalid="ignore"):
            if _arrays.all_finite(block):
                return None
        row, column = np.argwhere(~np.isfinite(_arrays.to_numpy(block)))[0]
        return span[0] + int(row), int(column)

    found = in_order(check, rows.spans(0), rows._workers(), f"checking {name}")
    places = [place for place in found if place is not None]
    if places:
        row, column = places[0]
        raise ValueError(
            f"Input {name} contains NaN or infinity: the first is in row {row}, column {column}. "
            "Drop such rows or fill them in (scikit-learn's SimpleImputer)."
        )
