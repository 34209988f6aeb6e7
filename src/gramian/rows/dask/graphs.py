"""Graphs of dask: tasks, arrays of their results, and how they are computed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import numpy as np

from gramian.backend import optional
from gramian.rows.dask import chunks

with optional.needed("dask", "Working on dask collections"):
    import dask
    import dask.array as da
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

FAN_IN = 8  # sums that are added by one task


class Task:
    """A call that is to be made by dask, as it is, or as the chunk of an array."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.name = function.__name__
        self._function = delayed(function, pure=False, traverse=False)
        self._arguments = arguments

    def made(self, key: Any = None) -> Delayed:
        named = {} if key is None else {"dask_key_name": key}
        return self._function(*self._arguments, **named)


class Short(da.Array):
    """An array that tasks get in short: as what they can take it out of, or make it of, themselves.

    Else dask would make a task for each of its chunks, anywhere, and send what that gives. Whatever
    is computed of it is an array of dask's like any other.
    """

    pieces: list[Any]
    slot: int | None = None  # which of the results that each piece is
    constant: float | None = None  # what all entries are

    @classmethod
    def of(cls, array: Any, pieces: list[Any], **known: Any) -> Short:
        self = cls(array.dask, array.name, array.chunks, meta=array._meta)
        self.pieces = pieces
        vars(self).update(known)
        return self


def constant(value: float, lengths: Sequence[int]) -> Short:
    """The same number for each row."""
    array = da.full(sum(lengths), value, chunks=(tuple(lengths),), dtype=np.float64)
    pieces = [chunks.Constant(value, length) for length in lengths]
    return Short.of(array, pieces, constant=value)


def one_of(results: Any, slot: int, like: Any) -> Short:
    """One of the arrays that tasks gave beside their sums."""
    array = results.map_blocks(
        itemgetter(slot),
        new_axis=list(range(1, like.ndim)) or None,
        chunks=like.chunks,
        meta=np.empty((0,) * like.ndim, like.dtype),
    )
    return Short.of(array, chunks_of(results), slot=slot)


def chunks_of(array: Any) -> list[Delayed]:
    return array.to_delayed(optimize_graph=False).ravel().tolist()


def tree(totals: list[Any], places: list[str]) -> Any:
    """Their sum, by tasks that add a few each: first those of each place, then one of each."""
    by_place: dict[str, list[Any]] = {}
    for total, place in zip(totals, places, strict=True):
        by_place.setdefault(place, []).append(total)
    return _added_up([_added_up(own) for own in by_place.values()])


def _added_up(totals: list[Any]) -> Any:
    while len(totals) > 1:
        groups = [totals[i : i + FAN_IN] for i in range(0, len(totals), FAN_IN)]
        totals = [Task(chunks.added, group).made() for group in groups]
    return totals[0]


def joined(
    tasks: list[Task], lengths: Sequence[int], ending: tuple[int, ...], dtype: Any,
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


def current_client() -> Any:
    """The client whose cluster dask uses now; None where it computes in this process."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scatter") else None


# Graphs are as they should be already: to optimise parts of them in different computations would
# give the same tasks different contents.


def computed(lazy: Any) -> Any:
    with clear_errors():
        return dask.compute(lazy, optimize_graph=False)[0]


def persisted(*lazy: Any) -> tuple[Any, ...]:
    with clear_errors():
        return dask.persist(*lazy, optimize_graph=False)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Errors of a cluster that is gone say so."""
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
            raise  # an error of a task, such as a file that cannot be read
        address = getattr(client.scheduler, "address", "")
        raise ConnectionError(
            f"The dask scheduler {address} is gone, or gave up the tasks of this computation. "
            "Connect to a running one with distributed.Client(address), and fit again."
        ) from error
