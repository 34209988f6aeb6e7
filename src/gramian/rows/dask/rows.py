"""DaskRows: rows that dask holds, in this process or on a cluster. The only file that imports dask.

A chunk of a dask collection is walked by one task as rows of an array are walked here: in blocks
that fit the cache. What comes back is a sum, added up in a tree, or a lazy array with one entry for
each row. Functions go to the workers once for each pass, large arrays in them once for all passes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import accumulate, pairwise
from operator import getitem, itemgetter
from typing import Any

import numpy as np
import sklearn

from gramian.backend import array_ops, config, optional
from gramian.backend.array_ops import Array
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, Rows, even_spans
from gramian.rows.dask import chunks
from gramian.rows.files.rows import FileRows

with optional.needed("dask", "Working on dask collections"):
    import dask
    import dask.array as da
    from dask.base import DaskMethodsMixin, get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

    from gramian.rows.dask.calls import Call, Large, packed

__all__ = ["DaskRows"]

CHUNK_BYTES = 128 * 1024**2  # of a result of map: chunks of narrow rows may be too long for it
GATHERED_BYTES = 64 * 1024**2  # chosen rows up to here are worked on in this process
PATIENCE = "10s"  # until a scheduler must have answered
FAN_IN = 8  # sums that are added by one task


class DaskRows(Rows):
    """Rows of a dask array or dataframe, walked where they are, a task for each chunk.

    Every learner and approximation takes dask collections as they are; this class is for its
    option. With a :class:`distributed.Client` in use the tasks run on its cluster, else in dask's
    threads. Each uses one thread.

    Parameters
    ----------
    data : dask array of shape (n, d), or dask dataframe with columns of numbers
        Sizes of chunks that are unknown are found by one computation. Rows that are used several
        times are computed as often: persist them where they fit the workers' memory. NaN, infinity
        and missing values are errors when a chunk is computed.
    device : str, optional
        Where workers compute, such as "cuda": each moves its blocks there, as torch tensors.
    name : str, default="X"
        What messages call the data.

    Examples
    --------
    >>> import dask.array as da
    >>> from gramian.rows.dask.rows import DaskRows
    >>> rows = DaskRows(da.arange(6, chunks=6).reshape(3, 2).rechunk((2, 2)))
    >>> rows.map(lambda block, out: block.sum(axis=1)).compute()
    array([1., 5., 9.])
    >>> rows.sum(lambda block: block.T @ block)
    array([[20., 26.],
           [26., 35.]])
    """

    spread = True

    def __init__(self, data: Any, *, device: str | None = None, name: str = "X") -> None:
        array = _matrix(data, name)
        self.names = _names(data)
        checked = array.dtype.kind != "f" or sklearn.get_config()["assume_finite"]
        self._set(array, device, checked, {}, name)

    def _set(self, data: Any, device: str | None, checked: bool, sent: dict, name: str) -> None:
        self.data = data
        self.device = device
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        example = np.empty(0, array_ops.float_dtype(np.empty(0, data.dtype)))
        if device is not None:
            example = array_ops.like(example, self._reference)
        self.xp = array_ops.namespace(example)
        self.dtype = array_ops.float_dtype(example)
        self._checked = checked
        self._known_places: list[str] | None = None
        self._sent = sent  # what the workers have already, by client and content
        self._name = name

    def _derived(self, data: Any, *, checked: bool = True) -> DaskRows:
        """Other rows on the same workers."""
        rows = DaskRows.__new__(DaskRows)
        rows.names = None
        rows._set(data, self.device, checked, self._sent, self._name)
        return rows

    def __repr__(self) -> str:
        chunks = counted(len(self._lengths), "chunk")
        return f"DaskRows(shape={self.shape}, dtype={self.data.dtype}, {chunks})"

    def example(self) -> Array:
        return array_ops.empty((0,), self._reference, self.dtype)

    @cached_property
    def _reference(self) -> Array:
        if self.device is None:
            return np.empty(0)
        with optional.needed("torch", f"device={self.device!r}"):
            import torch

        return torch.empty(0)  # here in this process, whatever the workers have

    @property
    def _lengths(self) -> tuple[int, ...]:
        return self.data.chunks[0]

    @cached_property
    def _pieces(self) -> list[tuple[Delayed, int]]:
        """Each chunk, and the number of its first row."""
        return list(zip(_chunks_of(self.data), accumulate((0, *self._lengths[:-1])), strict=True))

    @property
    def _reading(self) -> chunks.Reading:
        budget = config.asked_budget()
        return chunks.Reading(self.device, self._checked, budget, self._name)

    # Walks.

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
        if into is not None:
            raise ValueError("Results of dask rows are lazy: they cannot be written into an array.")
        dtype = self.dtype if dtype is None else dtype
        options = {"width": width, "dtype": dtype, "row_bytes": row_bytes, "serial": serial}
        return self.map_locally(
            partial(chunks.map_here, function, options),
            *aligned,
            width=width,
            dtype=dtype,
            serial=serial,
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
        options = {"row_bytes": row_bytes, "result_bytes": result_bytes, "serial": serial}
        operation = partial(chunks.sum_here, function, options)
        rows = self
        if start:
            assert state is None, "what is written into belongs to all rows"
            rows = self._derived(self.data[start:], checked=self._checked)
            aligned = tuple(array[start:] for array in aligned)
        return rows.sum_locally(operation, *aligned, state=state, serial=serial)

    def map_locally(
        self,
        operation: Callable[..., Array],
        *aligned: Array,
        width: int | None = None,
        dtype: Any = None,
        serial: bool = False,
    ) -> Array:
        """One result per row, of ``operation(rows, *aligned)`` for the rows of each chunk."""
        host = array_ops.host_dtype(self.dtype if dtype is None else dtype)
        assert host is not None
        rows = self._finer((1 if width is None else width) * host.itemsize)
        (call, arrays), reading = rows._send(operation), rows._reading
        slots, together = rows._parts(aligned)
        pieces = [
            _Task(chunks.map_chunk, call, arrays, reading, serial, slots, first, chunk, *parts)
            for (chunk, first), parts in zip(rows._pieces, together, strict=True)
        ]
        return _joined(pieces, rows._lengths, () if width is None else (width,), host)

    def sum_locally(
        self,
        operation: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        serial: bool = False,
    ) -> Any:
        """The sum of ``operation(rows, *aligned, *state)`` for the rows of each chunk.

        The operation may give lists and tuples of arrays, which are added one by one.
        """
        state = None if state is None else [self.align(array) for array in state]
        (call, arrays), reading, count = self._send(operation), self._reading, len(state or ())
        slots, together = self._parts((*aligned, *(state or ())))
        options = arrays, reading, serial, slots
        tasks = [
            _Task(chunks.sum_chunk, call, *options, first, count, chunk, *parts)
            for (chunk, first), parts in zip(self._pieces, together, strict=True)
        ]
        places = self._places()
        results = _joined(tasks, self._lengths, (), object, places)
        if state is None:
            return chunks.nested(self._local, _computed(_tree(_chunks_of(results), places)))
        # Sums may travel, what was written not: it is taken out when it is needed.
        totals = [_Task(getitem, result, 0).made() for result in _chunks_of(results)]
        total, held = _persisted(_tree(totals, places), results)
        result = chunks.nested(self._local, _computed(total))
        return result, [_one_of(held, 1 + i, array) for i, array in enumerate(state)]

    def by_parts(self, operation: Callable[[Rows, int], Any], *, serial: bool = False) -> list[Any]:
        (call, arrays), reading = self._send(operation), self._reading
        return _computed(
            [
                _Task(chunks.part_chunk, call, arrays, reading, serial, first, chunk).made()
                for chunk, first in self._pieces
            ]
        )

    def take(self, indices: Any) -> Array:
        numbers = np.asarray(indices, dtype=np.intp)
        n = self.shape[0]
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < n:
            raise IndexError(
                f"Row numbers must be from 0 to {n - 1}; got {numbers.min()} to {numbers.max()}."
            )
        different, where = np.unique(numbers, return_inverse=True)
        tasks = [
            _Task(chunks.take_chunk, self._reading, first, chunk, own).made()
            for chunk, first, own in self._within(different)
        ]
        if not tasks:
            return array_ops.empty((0, self.shape[1]), self.example(), self.dtype)
        taken = array_ops.concat_rows(list(_computed(tasks)))
        return self._local(taken if _is_counting(where, len(different)) else taken[where])

    def choose(self, numbers: np.ndarray) -> Rows:
        numbers = np.asarray(numbers)
        size = len(numbers) * self.shape[1] * array_ops.itemsize(self.dtype)
        in_order = bool(np.all(numbers[1:] >= numbers[:-1]))
        if size <= min(GATHERED_BYTES, config.memory_budget() // 4) or not in_order:
            what = counted(len(numbers), "chosen row")
            config.check_fits(size, what, "Choose them in order")
            return ArrayRows(self.take(numbers))
        pieces, lengths = [], []
        for chunk, first, own in self._within(numbers):
            pieces.append(_Task(chunks.take_chunk, self._reading, first, chunk, own))
            lengths.append(len(own))
        return self._derived(self._of_blocks(pieces, lengths))

    def split(self, labels: Array, count: int) -> list[Rows]:
        parts = _chunks_of(self.align(labels))
        counts = _computed([_Task(chunks.counts, own, count).made() for own in parts])
        members: list[Rows] = []
        for label in range(count):
            pieces, lengths = [], []
            for (chunk, first), own, found in zip(self._pieces, parts, counts, strict=True):
                if found[label]:
                    pieces.append(_Task(chunks.members, self._reading, first, chunk, own, label))
                    lengths.append(int(found[label]))
            if pieces:
                members.append(self._derived(self._of_blocks(pieces, lengths)))
            else:
                members.append(ArrayRows(self.take([])))
        return members

    def persist(self) -> Rows:
        size = self.shape[0] * self.shape[1] * array_ops.itemsize(self.dtype)
        if size > self.room() // 2:
            return self
        rows = self.keep(self.values())
        rows.names = self.names
        return rows

    def keep(self, values: Array) -> Rows:
        (held,) = _persisted(values)
        return self._derived(held)

    def values(self) -> Array:
        if self._checked and self.device is None and self.data.dtype == self.dtype:
            return self.data
        return self.map(chunks.same, width=self.shape[1])

    def collect(self) -> Array:
        return self.take(range(self.shape[0]))

    def here(self) -> Rows:
        config.check_fits(
            self.shape[0] * self.shape[1] * array_ops.itemsize(self.dtype),
            f"all {counted(self.shape[0], 'row')} in this process, as an exact kernel matrix needs "
            "them",
            "Use an approximation, such as kernel=Nystroem(kernel, 1000)",
        )
        rows = ArrayRows(self.collect())
        rows.names = self.names
        return rows

    # What belongs to the rows.

    def align(self, values: Any, dtype: Any = None) -> Array:
        if hasattr(type(values), "to_dask_array"):  # a series or frame
            values = values.to_dask_array()
        if not array_ops.is_spread(values):
            values = np.asarray(array_ops.to_numpy(values))
            _check_length(values, self.shape[0])
            values = da.from_array(
                values, chunks=(self._lengths, *((s,) for s in values.shape[1:]))
            )
        values = _with_known_chunks(values)
        _check_length(values, self.shape[0])
        if values.chunks[0] != self._lengths or any(len(c) > 1 for c in values.chunks[1:]):
            values = values.rechunk((self._lengths, *((s,) for s in values.shape[1:])))
        host = None if dtype is None else array_ops.host_dtype(dtype)
        return values if host is None or values.dtype == host else values.astype(host)

    def constant(self, value: float) -> Array:
        return _constant(value, self._lengths)

    def room(self) -> int:
        client = _client()
        if client is None:
            return config.memory_budget()
        own = config.asked_budget()  # that of each process
        with _clear_errors():
            free = client.run_on_scheduler(chunks.free_memory)
        most = [config.memory_budget() if size is None else size for size in free]
        return sum(most if own is None else (min(own, size) for size in most))

    def check_room(self, size: int, what: str, advice: str) -> None:
        """A lazy result needs no room here."""

    # Inside.

    def _parts(self, aligned: Sequence[Any]) -> tuple[list[int | None], Iterator[tuple[Any, ...]]]:
        """For each chunk its parts of the aligned arrays; which of a task's results these are."""
        columns: list[Any] = []
        slots: list[int | None] = []
        for array in aligned:
            if isinstance(array, range):
                edges = [0, *accumulate(self._lengths)]
                columns.append([array[a:b] for a, b in pairwise(edges)])
                slots.append(None)
                continue
            array = self.align(array)
            short = isinstance(array, _Short)
            columns.append(array.pieces if short else _chunks_of(array))
            slots.append(array.slot if short else None)
        none: list[tuple[Any, ...]] = [()] * len(self._lengths)
        return slots, zip(*columns, strict=True) if columns else iter(none)

    def _within(self, numbers: np.ndarray) -> Iterator[tuple[Delayed, int, np.ndarray]]:
        """The chunks that hold some of these ascending numbers, and which of their rows."""
        for (chunk, first), length in zip(self._pieces, self._lengths, strict=True):
            start, stop = np.searchsorted(numbers, (first, first + length))
            if start < stop:
                yield chunk, first, numbers[start:stop] - first

    def _finer(self, row_bytes: int) -> DaskRows:
        """These rows in chunks whose results, of so many bytes a row, are not too large."""
        most = max(CHUNK_BYTES // max(row_bytes, 1), 1)
        if max(self._lengths, default=0) <= most:
            return self
        lengths = [b - a for n in self._lengths for a, b in even_spans(0, n, most)]
        rows = self._derived(
            self.data.rechunk((tuple(lengths), self.data.chunks[1])), checked=self._checked
        )
        rows.names = self.names
        return rows

    def _places(self) -> list[str]:
        """The worker that holds each chunk, as far as one does: what it adds up need not travel."""
        client = _client()
        if client is None or self._known_places is not None:
            return self._known_places or [""] * len(self._lengths)
        keys = [chunk.key for chunk, _ in self._pieces]
        with _clear_errors():
            held = {future.key: future for future in client.futures_of(self.data)}
            if not all(key in held for key in keys):  # computed whenever it is walked
                return [""] * len(keys)
            found = client.who_has(list(held.values()))
        places = [min(found.get(key) or [""]) for key in keys]
        if all(places):
            self._known_places = places
        return places

    def _of_blocks(self, pieces: list[Any], lengths: list[int]) -> Any:
        return _joined(pieces, lengths, (self.shape[1],), array_ops.host_dtype(self.dtype))

    def _local(self, x: Any) -> Any:
        """A result as an array of this process."""
        return x if self.device is None else array_ops.like(x, self._reference)

    def _send(self, function: Callable[..., Any]) -> tuple[Delayed, list[Any]]:
        """The function where tasks find it, and the large arrays in it."""
        client = _client()
        if client is None:
            return delayed(Call(function), name=f"call-{uuid.uuid4().hex}", traverse=False), []
        data, apart = packed(function, never=(DaskRows, DaskMethodsMixin))
        futures = [self._broadcast(client, large) for large in apart]
        return _Task(Call, None, data).made(), futures

    def _broadcast(self, client: Any, large: Large) -> Any:
        key = client.id, large.content
        if key not in self._sent:
            with _clear_errors():
                self._sent[key] = client.scatter(large.array, broadcast=True, hash=False)
        return self._sent[key]


def spread_rows(rows: Rows, *, device: str | None = None) -> DaskRows:
    """Rows of this process, or of files that workers find at the same paths, as dask's.

    Files are read by the workers whenever their rows are walked: a Parquet or NPY file in pieces, a
    CSV file as a whole.
    """
    if isinstance(rows, ArrayRows):
        return DaskRows(da.from_array(rows.data, chunks=("auto", -1)), device=device)
    assert isinstance(rows, FileRows)
    width = rows.shape[1] * array_ops.itemsize(rows.dtype)
    spans = rows.spans_of_files(max(CHUNK_BYTES // 2 // width, 1))
    whole = delayed(rows, name=f"rows-{uuid.uuid4().hex}", traverse=False)
    tasks = [_Task(chunks.rows_of_file, whole, start, stop) for start, stop in spans]
    lengths = [stop - start for start, stop in spans]
    spread = DaskRows(_joined(tasks, lengths, rows.shape[1:], rows.dtype), device=device)
    spread.names, spread._checked = rows.names, True
    return spread


@contextmanager
def connected(address: str) -> Iterator[None]:
    """The cluster at this address, for as long as it is used."""
    with optional.needed("distributed", "Computing on a dask cluster"):
        from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"No dask scheduler answers at {address}: {error}") from error
    with client:
        yield


# Graphs.


class _Task:
    """A call that is to be made by dask, as it is, or as the chunk of an array."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.name = function.__name__
        self._function = delayed(function, pure=False, traverse=False)
        self._arguments = arguments

    def made(self, key: Any = None) -> Delayed:
        named = {} if key is None else {"dask_key_name": key}
        return self._function(*self._arguments, **named)


class _Short(da.Array):
    """An array that tasks get in short: as what they can take it out of, or make it of, themselves.

    Else dask would make a task for each of its chunks, anywhere, and send what that gives. Whatever
    is computed of it is an array of dask's like any other.
    """

    pieces: list[Any]
    slot: int | None = None  # which of the results that each piece is
    constant: float | None = None  # what all entries are

    @classmethod
    def of(cls, array: Any, pieces: list[Any], **known: Any) -> _Short:
        self = cls(array.dask, array.name, array.chunks, meta=array._meta)
        self.pieces = pieces
        vars(self).update(known)
        return self


def _constant(value: float, lengths: Sequence[int]) -> _Short:
    """The same number for each row."""
    array = da.full(sum(lengths), value, chunks=(tuple(lengths),), dtype=np.float64)
    pieces = [chunks.Constant(value, length) for length in lengths]
    return _Short.of(array, pieces, constant=value)


def _one_of(results: Any, slot: int, like: Any) -> _Short:
    """One of the arrays that tasks gave beside their sums."""
    array = results.map_blocks(
        itemgetter(slot),
        new_axis=list(range(1, like.ndim)) or None,
        chunks=like.chunks,
        meta=np.empty((0,) * like.ndim, like.dtype),
    )
    return _Short.of(array, _chunks_of(results), slot=slot)


def _chunks_of(array: Any) -> list[Delayed]:
    return array.to_delayed(optimize_graph=False).ravel().tolist()


def _tree(totals: list[Any], places: list[str]) -> Any:
    """Their sum, by tasks that add a few each: first those of each place, then one of each."""
    by_place: dict[str, list[Any]] = {}
    for total, place in zip(totals, places, strict=True):
        by_place.setdefault(place, []).append(total)
    return _added_up([_added_up(own) for own in by_place.values()])


def _added_up(totals: list[Any]) -> Any:
    while len(totals) > 1:
        groups = [totals[i : i + FAN_IN] for i in range(0, len(totals), FAN_IN)]
        totals = [_Task(chunks.added, group).made() for group in groups]
    return totals[0]


def _joined(
    tasks: list[_Task], lengths: Sequence[int], ending: tuple[int, ...], dtype: Any,
    places: Sequence[str] = (),
) -> Any:  # fmt: skip
    """Tasks as the chunks of one array, in one layer of its graph.

    They run at the ``places``, where all are known, while these exist: a worker that has a copy of
    a chunk would else take turns with another, and what tasks write into travel with them.
    """
    name, zeros = f"{tasks[0].name}-{uuid.uuid4().hex}", (0,) * len(ending)
    own: dict[Any, Any] = {}
    layers: dict[Any, Any] = {}
    needs: dict[Any, set] = {name: set()}
    for i, task in enumerate(tasks):
        graph, key = task.made((name, i, *zeros)).dask, (name, i, *zeros)
        for layer, content in graph.layers.items():
            if layer == key:
                own |= dict(content)
                needs[name] |= graph.dependencies[layer]
            else:
                layers[layer], needs[layer] = content, graph.dependencies[layer]
    chunks = (tuple(lengths), *((size,) for size in ending))
    meta = np.empty((0,) * (1 + len(ending)), dtype)
    layer = MaterializedLayer(own)
    if places and all(places):
        at = {"workers": lambda key: [places[key[1]]], "allow_other_workers": True}
        layer = MaterializedLayer(own, annotations=at)
    return da.Array(HighLevelGraph({name: layer, **layers}, needs), name, chunks, meta=meta)


def _is_counting(where: np.ndarray, n: int) -> bool:
    return len(where) == n and bool(np.all(where == np.arange(n)))


def _client() -> Any:
    """The client whose cluster dask uses now; None where it computes in this process."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scatter") else None


# Graphs are as they should be already: to optimise parts of them in different computations would
# give the same tasks different contents.


def _computed(lazy: Any) -> Any:
    with _clear_errors():
        return dask.compute(lazy, optimize_graph=False)[0]


def _persisted(*lazy: Any) -> tuple[Any, ...]:
    with _clear_errors():
        return dask.persist(*lazy, optimize_graph=False)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Errors of a cluster that is gone say so."""
    client = _client()
    if client is None:
        yield
        return
    from concurrent.futures import CancelledError

    import distributed.client
    from distributed.comm import CommClosedError

    several = getattr(distributed.client, "FuturesCancelledError", CancelledError)
    gone = CancelledError, several, CommClosedError
    try:
        yield
    except (*gone, TimeoutError, OSError) as error:
        if client.status == "running" and not isinstance(error, gone):
            raise  # an error of a task, such as a file that cannot be read
        address = getattr(client.scheduler, "address", "")
        raise ConnectionError(
            f"The dask scheduler {address} is gone, or gave up the tasks of this computation. "
            "Connect to a running one with distributed.Client(address), and fit again."
        ) from error


# Collections.


def _names(data: Any) -> list[str] | None:
    columns = list(getattr(data, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def _matrix(data: Any, name: str) -> Any:
    """A collection as a dask array with known chunks of whole rows, none of them empty."""
    is_frame = hasattr(type(data), "to_dask_array")
    if not isinstance(data, da.Array) and not is_frame:
        raise TypeError(
            f"Expected a dask array or dataframe for {name}; got {type(data).__name__}. Make one "
            "of it, such as with dask.array.from_delayed."
        )
    if data.ndim != 2:
        raise ValueError(
            f"Expected a 2D array for {name}; got {counted(data.ndim, 'dimension')}. Reshape it to "
            "(n_rows, n_columns)."
        )
    if is_frame:
        return _frame(data, name)
    if data.dtype.kind not in "biuf":
        kind = "Complex data not supported" if data.dtype.kind == "c" else "Expected numbers"
        raise ValueError(f"{kind}: {name} has dtype {data.dtype}.")
    if len(data.chunks[1]) > 1:
        data = data.rechunk({1: -1})
    return _without_empty(_with_known_chunks(_optimised(data)))


def _optimised(data: Any) -> Any:
    """With the graph that dask would make of it, once for all passes.

    One that holds chunks on the workers stays as it is: dask would leave these out of the graph,
    and let go of them when the user does.
    """
    client = _client()
    if client is not None and client.futures_of(data):
        return data
    return dask.optimize(data)[0]


def _frame(data: Any, name: str) -> Any:
    text = [str(column) for column, dtype in data.dtypes.items() if dtype.kind not in "biuf"]
    if text:
        raise ValueError(
            f"{name} must hold numbers only; these columns do not: {', '.join(map(repr, text))}. "
            "Encode them (dask-ml's or scikit-learn's OneHotEncoder) or drop them."
        )
    single = all(str(dtype).lower() in array_ops.IN_SINGLE for dtype in data.dtypes)
    dtype = np.dtype(np.float32 if single else np.float64)
    with _clear_errors():
        lengths = data.map_partitions(len, meta=(None, "i8")).compute()
    pieces = [_Task(chunks.numbers_of, part, dtype) for part in data.to_delayed()]
    filled = [(p, int(n)) for p, n in zip(pieces, lengths, strict=True) if n]
    if not filled:
        return da.empty((0, len(data.columns)), dtype=dtype)
    kept, sizes = zip(*filled, strict=True)
    return _joined(list(kept), sizes, (len(data.columns),), dtype)


def _with_known_chunks(data: Any) -> Any:
    """Sizes that dask does not know are found by one computation."""
    if not np.isnan(data.shape[0]):
        return data
    pieces = data.to_delayed(optimize_graph=False).reshape(data.numblocks[0], -1)[:, 0]
    lengths = _computed([_Task(len, piece).made() for piece in pieces])
    return da.Array(data.dask, data.name, (tuple(lengths), *data.chunks[1:]), meta=data._meta)


def _without_empty(data: Any) -> Any:
    lengths = tuple(n for n in data.chunks[0] if n)
    return data if len(lengths) == len(data.chunks[0]) else data.rechunk((lengths, data.chunks[1]))


def _check_length(values: Any, n: int) -> None:
    if values.ndim == 0 or values.shape[0] != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: the rows are {n}, other "
            f"values have shape {tuple(values.shape)}."
        )
