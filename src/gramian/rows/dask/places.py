"""Cluster: rows on a dask cluster, or in dask's threads, with one task per chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.backend import array_ops, config, optional
from gramian.backend.array_ops import Array
from gramian.backend.typing import ArrayLike, BlockSum, DType, Indices, State, Sums, T
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, Place, Rows, Walk, even_spans
from gramian.rows.dask import chunks
from gramian.rows.dask.graphs import (
    Short,
    Task,
    check_length,
    chunks_of,
    computed,
    joined,
    made,
    one_of,
    persisted,
    tree,
    with_known_chunks,
)
from gramian.rows.dask.workers import Sender, count_workers, free_bytes, holders

with optional.needed("dask", "Working on dask collections"):
    import dask.array as da
    from dask.delayed import Delayed

if TYPE_CHECKING:
    from gramian.rows.dask.rows import DaskRows
    from gramian.rows.parts import Map, Parts

CHUNK_BYTES = 128 * 1024**2  # largest chunk of a result of map; chunks of narrow rows are split
ROWS_HERE = 10_000  # at most, that a fit gathers in this process


class Cluster(Place):
    """Rows in the chunks of a dask array; each chunk is in one process.

    Arrays with one entry per row are dask arrays with chunks of the same lengths.

    Parameters
    ----------
    data : dask array of shape (n, d)
    device : str or None
        Device that workers use.
    checked : bool
        Whether all numbers are known to be finite.
    sender : Sender
        Sends functions to the workers, and remembers what they have.
    name : str
        The name of the data in error messages.
    """

    def __init__(
        self, data: da.Array, device: str | None, checked: bool, sender: Sender, name: str
    ) -> None:
        self.data = data
        self.lengths: tuple[int, ...] = data.chunks[0]  # the rows of each chunk
        self.device = device
        self.checked = checked
        self.name = name
        self._sender = sender
        self._known_workers: list[str] | None = None
        super().__init__(int(data.shape[0]), self._reference())

    def _reference(self) -> Array:
        """Return an empty array in this process, with the library that workers use."""
        example = np.empty(0, array_ops.float_dtype(np.empty(0, self.data.dtype)))
        if self.device is None:
            return example
        with optional.needed("torch", f"device={self.device!r}"):
            import torch

        return array_ops.like(
            example, torch.empty(0)
        )  # on the CPU, whatever device the workers use

    def derived(self, data: da.Array, *, checked: bool = True) -> DaskRows:
        """Return other rows on the same workers."""
        from gramian.rows.dask.rows import DaskRows

        return DaskRows._at(Cluster(data, self.device, checked, self._sender, self.name))

    @cached_property
    def pieces(self) -> list[tuple[Delayed, range]]:
        """Each chunk, and the numbers of its rows."""
        spans = pairwise(accumulate((0, *self.lengths)))
        return list(zip(chunks_of(self.data), (range(*span) for span in spans), strict=True))

    @property
    def reading(self) -> chunks.Reading:
        """How tasks read their chunks."""
        return chunks.Reading(self.device, self.checked, config.asked_budget(), self.name)

    # Walks.

    def map_chunks(
        self, operation: Callable[..., Array], aligned: Sequence[Array], walk: Walk
    ) -> Array:
        """Return one result per row, from ``operation(rows, *aligned)`` on each chunk."""
        host = array_ops.host_dtype(walk.dtype)
        assert host is not None
        place = self._finer((1 if walk.width is None else walk.width) * host.itemsize)
        call, arrays = place._sender.send(operation)
        slots, together = place._parts(aligned)
        options = call, arrays, place.reading, walk.serial, slots
        tasks = [
            (chunks.map_chunk, *options, numbers, chunk, *parts)
            for (chunk, numbers), parts in zip(place.pieces, together, strict=True)
        ]
        return joined(tasks, place.lengths, walk.ending, host)

    def sum_chunks(
        self,
        operation: BlockSum,
        aligned: Sequence[Array],
        state: State,
        walk: Walk,
    ) -> Sums:
        """Return the sum of ``operation(rows, *aligned, *state)`` over all chunks.

        The operation may return lists and tuples of arrays, which are added one by one.
        """
        if walk.start:
            assert state is None, "what is written into belongs to all rows"
            place = self.derived(self.data[walk.start :], checked=self.checked).place
            aligned = tuple(array[walk.start :] for array in aligned)
            return place.sum_chunks(operation, aligned, None, replace(walk, start=0))
        state = None if state is None else list(map(self.align, state))
        (call, arrays), count = self._sender.send(operation), len(state or ())
        slots, together = self._parts((*aligned, *(state or ())))
        options = call, arrays, self.reading, walk.serial, slots
        tasks = [
            (chunks.sum_chunk, *options, numbers, count, chunk, *parts)
            for (chunk, numbers), parts in zip(self.pieces, together, strict=True)
        ]
        workers = self._workers()
        results = joined(tasks, self.lengths, (), object, workers)
        if state is None:
            return chunks.nested(self.local, computed(tree(chunks_of(results), workers)))
        # Sums are sent, but the state stays with its task until it is needed.
        totals = [made(getitem, result, 0) for result in chunks_of(results)]
        total, held = persisted(tree(totals, workers), results)
        result = chunks.nested(self.local, computed(total))
        return result, [one_of(held, 1 + i, array) for i, array in enumerate(state)]

    def local(self, x: Array) -> Array:
        """Return a result as an array of this process."""
        return x if self.device is None else array_ops.like(x, self.reference)

    # Arrays with one entry per row.

    def align(self, values: ArrayLike, dtype: DType = None) -> Array:
        if hasattr(type(values), "to_dask_array"):  # a series or frame
            values = values.to_dask_array()
        lazy = array_ops.is_lazy(values)
        values = with_known_chunks(values) if lazy else np.asarray(array_ops.to_numpy(values))
        check_length(values, self.n)
        pieces = (self.lengths, *zip(values.shape[1:], strict=True))  # other axes are not divided
        if not lazy:
            values = da.from_array(values, chunks=pieces)
        elif values.chunks != pieces:
            values = values.rechunk(pieces)
        host = None if dtype is None else array_ops.host_dtype(dtype)
        return values if host is None or values.dtype == host else values.astype(host)

    def constant(self, value: float) -> Array:
        array = da.full(self.n, value, chunks=(self.lengths,), dtype=np.float64)
        pieces = [chunks.Constant(value, length) for length in self.lengths]
        return Short.of(array, pieces, constant=value)

    def column(self, values: ArrayLike, dtype: DType = None) -> Array:
        one = np.ndim(values) == 0
        return super().column(values, dtype) if one else self.align(values, dtype)

    def targets(self, y: ArrayLike, owner: object) -> Array:
        y = array_ops.settled(self.align(y))  # it is used in every pass
        if y.dtype.kind not in "biuf" or not array_ops.all_finite(y):
            raise ValueError(f"y must contain finite numbers; it has dtype {y.dtype}, or NaN.")
        return y

    def empty_columns(self, most: int, dtype: DType) -> Array:
        return super().empty_columns(0, dtype)  # it grows, because lazy arrays cannot be written to

    def with_columns(self, array: Array, used: int, new: Array) -> Array:
        both = [array, new] if used else [new]
        return array_ops.settled(array_ops.namespace(new).concat(both, axis=1))

    # Memory.

    def room(self) -> int:
        return free_bytes()

    def check_room(self, size: int, what: str, advice: str) -> None:
        """Do nothing: a lazy result needs no memory in this process."""

    def share(self, room: int | None, partly: bool) -> tuple[int, bool]:
        return self.room() // 2, False  # memory of the workers, for all rows or none

    def planned(self, rows: Rows) -> Rows:
        from gramian.rows.files.rows import planned_rows

        # Arrays that grow with the number of rows are on the workers.
        n, dtype = min(rows.shape[0], ROWS_HERE), array_ops.host_dtype(rows.dtype)
        return planned_rows(n, rows.shape[1], dtype, False)

    # Moving rows.

    def here(self, rows: Rows) -> Rows:
        width = self.data.shape[1]
        config.check_fits(
            self.n * width * array_ops.itemsize(self.reference.dtype),
            f"all {counted(self.n, 'row')} in this process, which an exact kernel matrix needs",
            "Use an approximation, such as kernel=Nystroem(kernel, 1000)",
        )
        gathered = rows._maker()(ArrayRows(self.take(range(self.n))))
        gathered.names = rows.names
        return gathered

    def check_whole(self, what: str) -> None:
        raise ValueError(
            f"{what} needs whole columns of the kernel matrix in one process, but these rows are "
            "on a cluster. Use landmarks='rpcholesky', or gather the rows if there are few "
            "(X.compute())."
        )

    def to_device(self, rows: Rows, device: str, *, must: str = "") -> Rows:
        if must:
            raise ValueError(
                f"This {must} was fitted on {device}, where dask rows cannot be moved. Pass NumPy "
                "arrays, chunk by chunk, or tensors."
            )
        return rows

    def keep(self, values: Array) -> Rows:
        (held,) = persisted(values)
        return self.derived(held)

    def keep_half(self, values: Array, dtype: DType) -> Rows:
        return self.keep(values)

    def samples(self, parts: Parts, count: int) -> Parts:
        return parts.take(np.arange(min(self.n, count)))

    def arrays(self, parts: Sequence[Rows]) -> list[Array] | None:
        return None

    def later(self, compute: Callable[..., Array], *arguments: object) -> Rows | None:
        from gramian.rows.dask.rows import DaskRows

        return DaskRows(compute(*arguments))

    def now(self, compute: Callable[..., Array], *aligned: Array) -> Array | None:
        return None

    def early(self, gather: Callable[[], T]) -> T | None:
        return gather()

    def take(self, indices: Indices) -> Array:
        """Return the rows with these numbers, as one array in this process."""
        numbers = np.asarray(indices, dtype=np.intp)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self.n:
            got = f"{numbers.min()} to {numbers.max()}"
            raise IndexError(f"Row numbers must be from 0 to {self.n - 1}; got {got}.")
        different, where = np.unique(numbers, return_inverse=True)
        tasks = [
            made(chunks.take_chunk, self.reading, own, chunk, inside)
            for chunk, own, inside in self.within(different)
        ]
        if not tasks:
            shape = (0, int(self.data.shape[1]))
            return array_ops.empty(shape, self.reference, self.reference.dtype)
        taken = array_ops.concat_rows(list(computed(tasks)))
        return self.local(taken if np.array_equal(numbers, different) else taken[where])

    def within(self, numbers: np.ndarray) -> Iterator[tuple[Delayed, range, np.ndarray]]:
        """Yield each chunk with some of these ascending row numbers, its own, and which it has."""
        for chunk, own in self.pieces:
            start, stop = np.searchsorted(numbers, (own.start, own.stop))
            if start < stop:
                yield chunk, own, numbers[start:stop] - own.start

    # Groups of rows.

    def split(self, rows: Rows, labels: Array, count: int) -> list[Rows]:
        parts = chunks_of(self.align(labels))
        counts = computed([made(chunks.counts, part, count) for part in parts])
        members: list[Rows] = []
        for label in range(count):
            pieces, lengths = [], []
            for (chunk, numbers), part, found in zip(self.pieces, parts, counts, strict=True):
                if found[label]:
                    pieces.append((chunks.members, self.reading, numbers, chunk, part, label))
                    lengths.append(int(found[label]))
            members.append(self.of_pieces(pieces, lengths) if pieces else ArrayRows(self.take([])))
        return [rows._maker()(group) for group in members]

    def of_pieces(self, pieces: Sequence[Task], lengths: list[int]) -> DaskRows:
        """Return rows whose chunks are these tasks."""
        dtype = array_ops.host_dtype(self.reference.dtype)
        return self.derived(joined(pieces, lengths, (int(self.data.shape[1]),), dtype))

    def by_parts(
        self, rows: Rows, prepare: Callable[[], Callable[[Rows, int], T]], *, serial: bool = False
    ) -> list[T] | None:
        operation, make = prepare(), rows._maker()

        def of_part(part: Rows, first: int) -> T:
            return operation(make(part), first)

        (call, arrays), reading = self._sender.send(of_part), self.reading
        tasks = [
            made(chunks.part_chunk, call, arrays, reading, serial, numbers, chunk)
            for chunk, numbers in self.pieces
        ]
        return computed(tasks)

    @property
    def workers(self) -> int:
        return count_workers()

    def call(self, functions: Sequence[Callable[[], T]]) -> list[T] | None:
        tasks = []
        for function in functions:
            call, arrays = self._sender.send(function, everywhere=False)
            tasks.append(made(chunks.called, call, arrays, self.reading))
        return computed(tasks)

    def in_parts(
        self, rows: Rows, labels: Array, maps: Sequence[Map], dtype: DType, serial: bool
    ) -> Parts:
        from gramian.rows.dask.parts import ClusterParts

        return ClusterParts(rows, labels, maps, dtype=dtype, serial=serial)

    def hand_back_kept(self, values: Array) -> Array:
        return array_ops.settled(self.align(values))

    # Private.

    def _parts(self, aligned: Sequence[Any]) -> tuple[list[int | None], Iterator[tuple[Any, ...]]]:
        """Return the slot of each aligned array among a task's results, and its parts by chunk."""
        columns: list[Any] = []
        slots: list[int | None] = []
        for array in aligned:
            if isinstance(array, range):
                edges = [0, *accumulate(self.lengths)]
                columns.append([array[a:b] for a, b in pairwise(edges)])
                slots.append(None)
                continue
            array = self.align(array)
            short = isinstance(array, Short)
            columns.append(array.pieces if short else chunks_of(array))
            slots.append(array.slot if short else None)
        none: list[tuple[Any, ...]] = [()] * len(self.lengths)
        return slots, zip(*columns, strict=True) if columns else iter(none)

    def _finer(self, row_bytes: int) -> Cluster:
        """Return these rows in smaller chunks if results of ``row_bytes`` per row need them."""
        most = max(CHUNK_BYTES // max(row_bytes, 1), 1)
        if max(self.lengths, default=0) <= most:
            return self
        lengths = [b - a for n in self.lengths for a, b in even_spans(0, n, most)]
        data = self.data.rechunk((tuple(lengths), self.data.chunks[1]))
        return self.derived(data, checked=self.checked).place

    def _workers(self) -> list[str]:
        """Return the worker that has each chunk, "" if unknown; it adds its own sums first."""
        if self._known_workers is not None:
            return self._known_workers
        workers = holders(self.data, [chunk.key for chunk, _ in self.pieces])
        if all(workers):
            self._known_workers = workers
        return workers
