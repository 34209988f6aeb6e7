"""DeviceRows: rows in host memory or files, processed on a GPU block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from gramian.backend import array_ops, config, optional
from gramian.backend.array_ops import Array
from gramian.backend.typing import Aligned, DType, Indices
from gramian.rows import ArrayRows, BlockRows, Place, Rows, Walk
from gramian.rows.arrays import Block

if TYPE_CHECKING:
    import torch

__all__ = ["DeviceRows"]

# NumPy dtypes that torch has too.
TRAVELLING = [np.dtype(name) for name in ("?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8")]


class DeviceRows(BlockRows):
    """Rows whose blocks are moved to a torch device when they are walked.

    Estimators convert their input to such rows if :func:`gramian.set_config` sets a device. While
    one block is processed, the next is read and copied to the device from page-locked memory, in
    its stored dtype. Arrays with one entry per row, such as labels, are on the device during a fit
    and are returned as NumPy arrays.

    Parameters
    ----------
    rows : Rows
        Rows of NumPy arrays, SciPy matrices or files.
    device : str
        A torch device, such as "cuda" or "cuda:1".
    """

    _held = 4  # two in the stored dtype (page-locked, and on the device), two in the working dtype

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

    def block(self, start: int, stop: int) -> Array:
        return self._moving(self._stored(start, stop))()

    def take(self, indices: Indices) -> Array:
        return self._moving(self.rows.take(indices))()

    def choose(self, numbers: np.ndarray) -> Rows:
        return DeviceRows(self.rows.choose(numbers), self.device)

    def collect(self) -> Array:
        return self.map(lambda x, out: x, width=self.shape[1])

    def persist(self) -> DeviceRows:
        """Return these rows on the device, in their stored dtype, if half of the budget allows."""
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
        """The memory of the rows on the device; 0 if each walk moves them there."""
        there = isinstance(self.rows, ArrayRows) and array_ops.is_foreign(self.rows.data)
        return self.rows.data.nbytes if there else 0  # type: ignore[attr-defined]

    @property
    def place(self) -> Place:  # type: ignore[override]
        return DevicePlace(self.shape[0], array_ops.empty((0,), self._reference, self.dtype))

    def _map(self, function: Callable[..., Array], aligned: Aligned, walk: Walk) -> Array:
        if walk.into is None or array_ops.is_foreign(walk.into):
            return super()._map(function, aligned, walk)
        results = _Returning(walk.into)

        def part(x: Array, *aligned: Array) -> Array:
            *parts, numbers = aligned
            out = array_ops.empty((x.shape[0], *walk.ending), x, walk.dtype)
            results.put(function(x, *parts, out=out), numbers)
            return out[:0]

        self._sum(part, (*aligned, range(self.shape[0])), None, replace(walk, into=None))
        results.finish()
        return walk.into

    def _blocks(self, spans: Sequence[tuple[int, int]]) -> Iterable[Block]:
        """Read each block and copy it to the device while the previous one is processed."""
        if array_ops.is_foreign(self.rows.place.reference):  # already on the device
            return super()._blocks(spans)
        if type(self.rows) is ArrayRows or not isinstance(self.rows, BlockRows):
            return self._ahead(
                (start, stop, partial(self._stored, start, stop)) for start, stop in spans
            )
        return self._ahead(iter(self.rows._blocks(spans)))

    def _stored(self, start: int, stop: int) -> Array:
        """Return a block in its stored dtype, which is the fastest to move."""
        if type(self.rows) is ArrayRows:
            return array_ops.span(self.rows.data, start, stop)
        return self.rows.take(range(start, stop))

    def _ahead(self, items: Iterator[Block]) -> Iterator[Block]:
        def load() -> Block | None:
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
        """Start to copy a block; the function returned waits for it, and returns it."""
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
            there.record_stream(current)  # keeps its memory until that stream is done
            return array_ops.astype(there, self.dtype)

        return arrived


class DevicePlace(Place):
    """Rows of this process that are processed on a device; results become NumPy arrays."""

    def hand_back(self, values: Array) -> Array:
        return array_ops.to_numpy(values)

    def memory_to_hand_back(self, shape: tuple[int, ...], dtype: DType) -> Array | None:
        return np.empty(shape, dtype=array_ops.host_dtype(dtype))


class _Returning:
    """Copies results of blocks back to a host array while the next block is computed."""

    def __init__(self, into: np.ndarray) -> None:
        self._into = into
        self._last: tuple[Array, torch.cuda.Event | None, range] | None = None

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
def _side_stream(device: str) -> torch.cuda.Stream:
    """Return the stream that copies blocks while others are processed."""
    import torch

    return torch.cuda.Stream(device)
