"""DeviceRows: rows of this machine's memory or files, computed with on a GPU block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from gramian.backend import array_ops, config, optional
from gramian.backend.array_ops import Array
from gramian.rows import ArrayRows, BlockRows, Place, Rows, Walk

__all__ = ["DeviceRows"]

# What torch can take from NumPy as it is.
TRAVELLING = [np.dtype(name) for name in ("?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8")]


class DeviceRows(BlockRows):
    """Rows whose blocks are moved to a device of torch's when they are walked.

    Estimators make them of what they are given where :func:`gramian.set_config` names a device.
    While one block is computed with, the next is read, and copied to the device from page-locked
    memory. Numbers travel as they are stored, bytes as bytes. What has an entry for each row, such
    as labels, is on the device while a fit runs, and comes back as NumPy's arrays.

    Parameters
    ----------
    rows : Rows
        Of NumPy, SciPy or files.
    device : str
        As torch names it, such as "cuda" or "cuda:1".
    """

    _held = 4  # as it is stored: page-locked, and on the device; in the working dtype: twice

    def __init__(self, rows: Rows, device: str) -> None:
        with optional.needed("torch", f"device={device!r}"):
            import torch

        self.rows = rows
        self.device = device
        self.shape = rows.shape
        self.names = rows.names
        self._reference = torch.empty(0, device=device)
        self.xp = array_ops.namespace(self._reference)
        single = array_ops.itemsize(rows.dtype) == 4
        self.dtype = self.xp.float32 if single else self.xp.float64

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rows!r}, device={self.device!r})"

    def example(self) -> Array:
        return array_ops.empty((0,), self._reference, self.dtype)

    def block(self, start: int, stop: int) -> Array:
        return self._moving(self._stored(start, stop))()

    def take(self, indices: Any) -> Array:
        return self._moving(self.rows.take(indices))()

    def choose(self, numbers: np.ndarray) -> Rows:
        return DeviceRows(self.rows.choose(numbers), self.device)

    def collect(self) -> Array:
        return self.map(lambda x, out: x, width=self.shape[1])

    def persist(self) -> DeviceRows:
        """These rows kept on the device, as they are stored, where half of the budget has room."""
        data = self.rows.data if type(self.rows) is ArrayRows else None
        if array_ops.is_foreign(data):
            return self
        size, stored = self.shape[0] * self.row_bytes, copy(self)
        if isinstance(data, np.ndarray) and data.dtype in TRAVELLING:
            size, stored.dtype = data.nbytes, array_ops.like(data[:0], self._reference).dtype
        if size > config.memory_budget() // 2:
            return self
        rows = DeviceRows(ArrayRows(stored.collect()), self.device)
        rows.names = self.names
        return rows

    @property
    def kept_bytes(self) -> int:
        """What is on the device: nothing where each walk moves the rows there."""
        there = isinstance(self.rows, ArrayRows) and array_ops.is_foreign(self.rows.data)
        return self.rows.data.nbytes if there else 0  # type: ignore[attr-defined]

    @property
    def place(self) -> Place:  # type: ignore[override]
        return DevicePlace(self.shape[0], self.example())

    def _map(self, function: Callable[..., Array], aligned: tuple[Array, ...], walk: Walk) -> Array:
        if walk.into is None or array_ops.is_foreign(walk.into):
            return super()._map(function, aligned, walk)
        results = _Returning(walk.into)

        def part(x: Array, *aligned: Any) -> Array:
            *parts, numbers = aligned
            out = array_ops.empty((x.shape[0], *walk.ending), x, walk.dtype)
            results.put(function(x, *parts, out=out), numbers)
            return out[:0]

        self._sum(part, (*aligned, range(self.shape[0])), None, replace(walk, into=None))
        results.finish()
        return walk.into

    def _blocks(
        self, spans: Sequence[tuple[int, int]]
    ) -> Iterable[tuple[int, int, Callable[[], Array]]]:
        """Each block is read and on its way to the device while the one before is computed with."""
        if array_ops.is_foreign(self.rows.example()):  # they are there
            return super()._blocks(spans)
        if type(self.rows) is ArrayRows or not isinstance(self.rows, BlockRows):
            return self._ahead(
                (start, stop, partial(self._stored, start, stop)) for start, stop in spans
            )
        return self._ahead(iter(self.rows._blocks(spans)))

    def _stored(self, start: int, stop: int) -> Array:
        """A block in the dtype that it is stored in, which takes the least time to move."""
        if type(self.rows) is ArrayRows:
            return array_ops.span(self.rows.data, start, stop)
        return self.rows.take(range(start, stop))

    def _ahead(
        self, items: Iterator[tuple[int, int, Callable[[], Array]]]
    ) -> Iterator[tuple[int, int, Callable[[], Array]]]:
        def load() -> tuple[int, int, Callable[[], Array]] | None:
            item = next(items, None)
            if item is None:
                return None
            start, stop, read = item
            return start, stop, self._moving(read())

        with ThreadPoolExecutor(1) as reader:
            waiting = deque([reader.submit(load)])
            try:
                while (ready := waiting.popleft().result()) is not None:
                    waiting.append(reader.submit(load))
                    yield ready
            finally:
                for future in waiting:
                    future.cancel()

    def _moving(self, block: Array) -> Callable[[], Array]:
        """Begin to copy a block; the function gives it, on the device, where it is awaited."""
        import torch

        if array_ops.is_foreign(block):
            return lambda: array_ops.astype(block, self.dtype)
        block = array_ops.dense(block)
        if block.dtype not in TRAVELLING:
            block = block.astype(array_ops.host_dtype(self.dtype))
        source = torch.from_numpy(np.require(block, requirements=["C", "W"]))
        if not self._reference.is_cuda:
            return lambda: array_ops.astype(source, self.dtype)
        stream = _side_stream(self.device)
        with torch.cuda.stream(stream):
            there = source.pin_memory().to(self.device, non_blocking=True)
            copied = stream.record_event()

        def arrived() -> Array:
            current = torch.cuda.current_stream(self._reference.device)
            current.wait_event(copied)
            there.record_stream(current)  # its memory stays its own until that has used it
            return array_ops.astype(there, self.dtype)

        return arrived


class DevicePlace(Place):
    """Rows of this process that are computed with on a device; results come back as NumPy's."""

    def hand_back(self, values: Array) -> Array:
        return array_ops.to_numpy(values)

    def memory_to_hand_back(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        return np.empty(shape, dtype=array_ops.host_dtype(dtype))


class _Returning:
    """Results of blocks on their way back into an array, while the next block is computed."""

    def __init__(self, into: np.ndarray) -> None:
        self._into = into
        self._last: tuple[Any, Any, range] | None = None

    def put(self, result: Array, numbers: range) -> None:
        import torch

        here, copied = result, None
        if result.is_cuda:
            here = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
            here.copy_(result, non_blocking=True)
            copied = torch.cuda.current_stream(result.device).record_event()
        self.finish()
        self._last = here, copied, numbers

    def finish(self) -> None:
        if self._last is None:
            return
        here, copied, numbers = self._last
        if copied is not None:
            copied.synchronize()
        self._into[numbers.start : numbers.stop] = here.numpy()
        self._last = None


@cache
def _side_stream(device: str) -> Any:
    """On which blocks are copied while others are computed with."""
    import torch

    return torch.cuda.Stream(device)
