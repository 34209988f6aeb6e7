"""The state of workers: free memory, chunks of rows, and functions and arrays sent to them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from gramian.backend import config, optional
from gramian.rows.dask import chunks
from gramian.rows.dask.graphs import Key, clear_errors, current_client, made

with optional.needed("dask", "Working on dask collections"):
    from dask.base import DaskMethodsMixin
    from dask.delayed import Delayed, delayed

    from gramian.rows.dask.calls import Call, Large, packed

if TYPE_CHECKING:
    import dask.array as da
    from distributed import Client, Future


class Sender:
    """Sends functions to the workers; large arrays in them go to each worker once."""

    def __init__(self) -> None:
        self._sent: dict[
            tuple[str, str], Future
        ] = {}  # arrays on the workers, by client and content

    def send(
        self, function: Callable[..., object], *, everywhere: bool = True
    ) -> tuple[Delayed, list[Future]]:
        """Return the function as an argument of tasks, and its large arrays.

        Unless they go ``everywhere``, the arrays are sent to one worker, where its task then runs.
        """
        client = current_client()
        if client is None:
            return delayed(Call(function), name=f"call-{uuid.uuid4().hex}", traverse=False), []
        from gramian.rows.dask.places import Cluster
        from gramian.rows.dask.rows import DaskRows

        data, apart = packed(function, never=(DaskRows, Cluster, DaskMethodsMixin))
        futures = [self._scatter(client, large, everywhere) for large in apart]
        return made(Call, None, data), futures

    def _scatter(self, client: Client, large: Large, everywhere: bool) -> Future:
        key = client.id, large.content
        if key not in self._sent:
            with clear_errors():
                self._sent[key] = client.scatter(large.array, broadcast=everywhere, hash=False)
        return self._sent[key]


def count_workers() -> int:
    """Return the number of workers, or of dask's threads in this process."""
    client = current_client()
    if client is None:
        return config.n_threads()
    with clear_errors():
        return max(len(client.scheduler_info()["workers"]), 1)


def free_bytes() -> int:
    """Return the free memory of all workers together."""
    client = current_client()
    if client is None:
        return config.memory_budget()
    budget = config.asked_budget()  # of each process
    with clear_errors():
        free = client.run_on_scheduler(chunks.free_memory)
    most = [config.memory_budget() if size is None else size for size in free]
    return sum(most if budget is None else (min(budget, size) for size in most))


def holders(data: da.Array, keys: list[Key]) -> list[str]:
    """Return the worker that has each chunk of an array, "" if there is none."""
    client = current_client()
    if client is None:
        return [""] * len(keys)
    with clear_errors():
        futures = {future.key: future for future in client.futures_of(data)}
        if not all(key in futures for key in keys):  # computed in every walk
            return [""] * len(keys)
        found = client.who_has(list(futures.values()))
    return [min(found.get(key) or [""]) for key in keys]
