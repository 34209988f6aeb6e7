"""The functions that tasks apply to a chunk of rows, in any process."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramian.backend import array_ops, config, optional
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.backend.typing import BlockMap, BlockSum, Sums
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, Rows, Walk

if TYPE_CHECKING:
    import pandas
    from distributed import Scheduler

    from gramian.rows.dask.calls import Call

KEPT_BYTES = 64 * 1024**2  # freed memory that a worker may keep
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h
SPILLING = 0.6  # fraction of a worker's memory beyond which dask writes to disk


class Reading(NamedTuple):
    """How a task reads its chunk."""

    device: str | None
    checked: bool  # whether all numbers are known to be finite
    budget: int | None
    name: str


class Constant:
    """An aligned array that holds one number everywhere; tasks create it."""

    def __init__(self, value: float, length: int) -> None:
        self.value, self.length = value, length


@contextmanager
def _alone(reading: Reading, serial: bool = False) -> Iterator[None]:
    """Limit a task to one thread of gramian and one of BLAS: dask runs tasks in parallel."""
    keep_freed_memory()
    settings: dict[str, Any] = {"n_threads": 1, "progress": False}
    if reading.budget is not None:
        settings["memory_budget"] = reading.budget
    with config.config_context(**settings), one_blas_thread():
        if serial:
            with _one_at_a_time:
                yield
        else:
            yield


_one_at_a_time = threading.RLock()


@cache
def keep_freed_memory() -> None:
    """Let malloc reuse freed memory in workers, which dask disables.

    dask makes workers return freed memory immediately. Memory for blocks of a few megabytes would
    be mapped and zeroed again and again, which takes half the time of a pass. Chunks are larger and
    are still returned immediately.
    """
    if int(os.environ.get("MALLOC_TRIM_THRESHOLD_") or KEPT_BYTES) >= KEPT_BYTES:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES // 4)


def _read(reading: Reading, numbers: range, chunk: Array) -> ArrayRows:
    """Check a chunk and return it as rows."""
    _check_length(chunk.shape[0], numbers, f"The chunk of {reading.name}")
    if not reading.checked and not array_ops.all_finite(chunk):
        row, column = np.argwhere(~np.isfinite(array_ops.to_numpy(chunk)))[0]
        raise ValueError(
            f"Input {reading.name} contains NaN or infinity: one is in row {numbers[row]}, "
            f"column {int(column)}. Drop such rows or fill them in (scikit-learn's SimpleImputer)."
        )
    return ArrayRows(_on_device(reading, chunk))


def _check_length(length: int, numbers: range, what: str) -> None:
    """Refuse a chunk that does not have the rows that its dask array says it has."""
    if length != len(numbers):
        raise ValueError(
            f"{what} with rows {numbers.start} to {numbers.stop - 1} has "
            f"{counted(length, 'row')}, but its dask array says {len(numbers)}. Create the "
            "array with the lengths that its chunks have, or with unknown ones (nan)."
        )


def _parts(
    reading: Reading, slots: list[int | None], numbers: range, aligned: tuple[Array, ...]
) -> list[Array]:
    """Return the aligned arrays of a chunk: created here, or results of an earlier task."""
    parts = []
    for slot, x in zip(slots, aligned, strict=True):
        part = np.full(x.length, x.value) if isinstance(x, Constant) else x
        part = part if slot is None else part[slot]
        _check_length(len(part), numbers, "The chunk of an array that goes with X")
        parts.append(_on_device(reading, part))
    return parts


def _on_device(reading: Reading, x: Array) -> Array:
    if reading.device is None or not isinstance(x, np.ndarray):
        return x
    with optional.needed("torch", f"device={reading.device!r} on a dask worker"):
        import torch

    return array_ops.like(x, torch.empty(0, device=reading.device))


def map_chunk(
    call: Call, arrays: list[np.ndarray], reading: Reading, serial: bool, slots: list[int | None],
    numbers: range, chunk: Array, *aligned: Array,
) -> np.ndarray:  # fmt: skip
    function = call.function(arrays, reading.device)
    with _alone(reading, serial):
        parts = _parts(reading, slots, numbers, aligned)
        return array_ops.to_numpy(function(_read(reading, numbers, chunk), *parts))


def sum_chunk(
    call: Call, arrays: list[np.ndarray], reading: Reading, serial: bool, slots: list[int | None],
    numbers: range, written: int, chunk: Array, *aligned: Array,
) -> Sums:  # fmt: skip
    """Return the sum over the chunk; if a state is ``written``, a list of the sum and the state."""
    function = call.function(arrays, reading.device)
    with _alone(reading, serial):
        parts = _parts(reading, slots, numbers, aligned)
        read = len(parts) - written
        state = list(map(array_ops.copy, parts[read:]))  # other tasks may use the same arrays
        total = function(_read(reading, numbers, chunk), *parts[:read], *state)
        total = nested(array_ops.to_numpy, total)
        return [total, *map(array_ops.to_numpy, state)] if written else total


def part_chunk(
    call: Call,
    arrays: list[np.ndarray],
    reading: Reading,
    serial: bool,
    numbers: range,
    chunk: Array,
) -> Any:
    operation = call.function(arrays, reading.device)
    with _alone(reading, serial):
        return operation(_read(reading, numbers, chunk), numbers.start)


def called(call: Call, arrays: list[np.ndarray], reading: Reading) -> Any:
    with _alone(reading):
        return call.function(arrays, reading.device)()


def take_chunk(reading: Reading, numbers: range, chunk: Array, inside: np.ndarray) -> Array:
    rows = _read(reading._replace(device=None), numbers, chunk)
    return rows.take(inside)


def counts(labels: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(labels, minlength=count)


def members(
    reading: Reading, numbers: range, chunk: Array, labels: np.ndarray, label: int
) -> Array:
    return take_chunk(reading, numbers, chunk, np.flatnonzero(labels == label))


def map_here(function: BlockMap, walk: Walk, rows: Rows, *aligned: Array) -> Array:
    return rows._map(function, aligned, walk)


def sum_here(function: BlockSum, walk: Walk, rows: Rows, *aligned: Array) -> Sums:
    return rows._sum(function, aligned, None, walk)


def same(x: Array, out: Array) -> Array:
    return x


def added(totals: list[Sums]) -> Sums:
    first, *others = totals
    if isinstance(first, list | tuple):
        return type(first)(added(list(each)) for each in zip(*totals, strict=True))
    total = np.array(first, dtype=np.float64)
    for other in others:
        total += other
    return total


def nested(function: Callable[[Array], Array], x: Sums) -> Sums:
    if isinstance(x, list | tuple):
        return type(x)(nested(function, each) for each in x)
    return function(x)


def free_memory(dask_scheduler: Scheduler) -> list[int | None]:
    """Return the memory left on each worker before it spills to disk; None if unlimited."""
    return [
        int(max(SPILLING * worker.memory_limit - worker.metrics.get("memory", 0), 0))
        if worker.memory_limit
        else None
        for worker in dask_scheduler.workers.values()
    ]


def numbers_of(part: pandas.DataFrame, dtype: np.dtype) -> np.ndarray:
    return part.to_numpy(dtype=dtype, na_value=np.nan)


def rows_of_file(rows: Rows, start: int, stop: int) -> np.ndarray:
    return rows.take(range(start, stop))
