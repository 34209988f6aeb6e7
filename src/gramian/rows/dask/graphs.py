"""Build and compute dask graphs: tasks, arrays of their results, and matrices of whole rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gramian.backend import array_ops, optional
from gramian.backend.typing import Array, ArrayLike, DType
from gramian.backend.wording import counted
from gramian.rows.dask import chunks

with optional.needed("dask", "Working on dask collections"):
    import dask
    import dask.array as da
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

Key: TypeAlias = str | tuple[str | int, ...]  # of a task
Piece: TypeAlias = Delayed | chunks.Constant
# A function and its arguments, to be a chunk of an array.
Task: TypeAlias = tuple[Callable[..., object], *tuple[object, ...]]

if TYPE_CHECKING:
    from distributed import Client

FAN_IN = 8  # sums that one task adds


def made(function: Callable[..., object], *arguments: object, key: Key | None = None) -> Delayed:
    """Return a task that calls a function."""
    named = {} if key is None else {"dask_key_name": key}
    return delayed(function, pure=False, traverse=False)(*arguments, **named)


class Short(da.Array):
    """A dask array whose chunks tasks rebuild locally instead of receiving.

    Otherwise dask would create a task for each chunk, on any worker, and send the result. Arrays
    computed from it are ordinary dask arrays.
    """

    pieces: Sequence[Piece]
    slot: int | None = None  # index of this array among the results of each task
    constant: float | None = None  # the value of all entries

    @classmethod
    def of(cls, array: da.Array, pieces: Sequence[Piece], **known: float) -> Short:
        self = cls(array.dask, array.name, array.chunks, meta=array._meta)
        self.pieces = pieces
        vars(self).update(known)
        return self


def one_of(results: Array, slot: int, like: da.Array) -> Short:
    """Return one of the arrays that tasks returned together with their sums."""
    array = results.map_blocks(
        itemgetter(slot),
        new_axis=list(range(1, like.ndim)) or None,
        chunks=like.chunks,
        meta=np.empty((0,) * like.ndim, like.dtype),
    )
    return Short.of(array, chunks_of(results), slot=slot)


def chunks_of(array: da.Array) -> list[Delayed]:
    return array.to_delayed(optimize_graph=False).ravel().tolist()


def tree(totals: list[Delayed], places: list[str]) -> Delayed:
    """Add totals by tasks with a few terms each: first within each place, then across places."""
    by_place: dict[str, list[Delayed]] = {}
    for total, place in zip(totals, places, strict=True):
        by_place.setdefault(place, []).append(total)
    return _added_up(list(map(_added_up, by_place.values())))


def _added_up(totals: list[Delayed]) -> Delayed:
    while len(totals) > 1:
        groups = [totals[i : i + FAN_IN] for i in range(0, len(totals), FAN_IN)]
        totals = [made(chunks.added, group) for group in groups]
    return totals[0]


def joined(
    tasks: Sequence[Task], lengths: Sequence[int], ending: tuple[int, ...], dtype: DType,
    places: Sequence[str] = (),
) -> da.Array:  # fmt: skip
    """Make tasks the chunks of one array, in one layer of its graph.

    If all ``places`` are known, tasks run on these workers as long as they exist. Otherwise workers
    with copies of a chunk would alternate, and the state that tasks write would move between them.
    """
    name, zeros = f"{tasks[0][0].__name__}-{uuid.uuid4().hex}", (0,) * len(ending)
    calls: dict[Key, object] = {}
    layers: dict[str, Mapping] = {}
    needs: dict[str, set] = {name: set()}
    for i, task in enumerate(tasks):
        key: Key = (name, i, *zeros)
        graph = made(*task, key=key).dask
        for layer, content in graph.layers.items():
            if layer == key:
                calls |= dict(content)
                needs[name] |= graph.dependencies[layer]
            else:
                layers[layer], needs[layer] = content, graph.dependencies[layer]
    chunks = (tuple(lengths), *((size,) for size in ending))
    meta = np.empty((0,) * (1 + len(ending)), dtype)
    layer = MaterializedLayer(calls)
    if places and all(places):
        at = {"workers": lambda key: [places[key[1]]], "allow_other_workers": True}
        layer = MaterializedLayer(calls, annotations=at)
    return da.Array(HighLevelGraph({name: layer, **layers}, needs), name, chunks, meta=meta)


def current_client() -> Client | None:
    """Return the client that dask uses now; None if dask computes in this process."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scatter") else None


# Graphs are computed without optimisation: optimising parts of them in different computations would
# change tasks that share a name.


def computed(lazy: Any) -> Any:
    with clear_errors():
        return dask.compute(lazy, optimize_graph=False)[0]


def persisted(*lazy: Any) -> tuple[Any, ...]:
    with clear_errors():
        return dask.persist(*lazy, optimize_graph=False)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Raise a clear error if the cluster is gone."""
    client = current_client()
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
            raise  # an error in a task, such as an unreadable file
        address = getattr(client.scheduler, "address", "")
        raise ConnectionError(
            f"The dask scheduler {address} is gone, or cancelled the tasks of this computation. "
            "Connect to a running one with distributed.Client(address), and fit again."
        ) from error


def names_of(data: ArrayLike) -> list[str] | None:
    columns = list(getattr(data, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def as_matrix(data: ArrayLike, name: str) -> da.Array:
    """Convert a collection to a dask array with known, non-empty chunks of whole rows."""
    is_frame = hasattr(type(data), "to_dask_array")
    if not isinstance(data, da.Array) and not is_frame:
        raise TypeError(
            f"Expected a dask array or dataframe for {name}; got {type(data).__name__}. Convert "
            "it, for example with dask.array.from_delayed."
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
    return _without_empty(with_known_chunks(_optimised(data)))


def _optimised(data: da.Array) -> da.Array:
    """Optimise the graph once, for all passes.

    An array with chunks on the workers is returned unchanged: dask would drop these from the graph,
    and release them as soon as the user does.
    """
    client = current_client()
    if client is not None and client.futures_of(data):
        return data
    return dask.optimize(data)[0]


def _frame(data: ArrayLike, name: str) -> da.Array:
    text = [str(column) for column, dtype in data.dtypes.items() if dtype.kind not in "biuf"]
    if text:
        raise ValueError(
            f"{name} must be numeric; these columns are not: {', '.join(map(repr, text))}. "
            "Encode them (dask-ml's or scikit-learn's OneHotEncoder) or drop them."
        )
    single = all(str(dtype).lower() in array_ops.IN_SINGLE for dtype in data.dtypes)
    dtype = np.dtype(np.float32 if single else np.float64)
    with clear_errors():
        lengths = data.map_partitions(len, meta=(None, "i8")).compute()
    pieces = [(chunks.numbers_of, part, dtype) for part in data.to_delayed()]
    filled = [(p, int(n)) for p, n in zip(pieces, lengths, strict=True) if n]
    if not filled:
        return da.empty((0, len(data.columns)), dtype=dtype)
    tasks, sizes = zip(*filled, strict=True)
    return joined(list(tasks), sizes, (len(data.columns),), dtype)


def with_known_chunks(data: da.Array) -> da.Array:
    """Return the array with known chunk sizes; unknown sizes take one computation."""
    if not np.isnan(data.shape[0]):
        return data
    pieces = data.to_delayed(optimize_graph=False).reshape(data.numblocks[0], -1)[:, 0]
    lengths = computed([made(len, piece) for piece in pieces])
    return da.Array(data.dask, data.name, (tuple(lengths), *data.chunks[1:]), meta=data._meta)


def _without_empty(data: da.Array) -> da.Array:
    lengths = tuple(filter(None, data.chunks[0])) or (0,)
    return data if len(lengths) == len(data.chunks[0]) else data.rechunk((lengths, data.chunks[1]))


def check_length(values: ArrayLike, n: int) -> None:
    """Raise an error unless values have one entry for each of n rows."""
    if values.ndim == 0 or values.shape[0] != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: there are {n} rows, but "
            f"other values have shape {tuple(values.shape)}."
        )
