"""What one walk over rows needs, and how rows are cut into blocks.

Results do not depend on the number of threads: blocks are cut by size alone, and added up in their
order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from gramian.backend import array_ops
from gramian.backend.array_ops import Array

# What one thread works on at a time should stay in its cache; a GPU wants far larger pieces.
CACHE_BYTES = 4 * 1024**2
DEVICE_BYTES = 1024 * 1024**2
LEAST_ROWS = 256  # fewer would make matrix products slow


@dataclass(frozen=True, slots=True)
class Walk:
    """How rows are walked: the options of :meth:`Rows.map` and :meth:`Rows.sum`.

    Parameters
    ----------
    width : int, optional
        The columns of a result of ``map``; by default it is one number per row.
    dtype : dtype, optional
        The dtype of a result of ``map``; by default that of the rows.
    row_bytes : int, optional
        The memory that the function uses per row, besides the block itself. Blocks are cut so that
        this fits the cache and the memory budget. By default, the size of the result of ``map``.
    result_bytes : int
        The size of one result of ``sum``. Where results are large, fewer wait to be added.
    serial : bool
        Whether the function must not run in two threads at once.
    label : str
        What a progress bar shows.
    start : int
        The row at which ``sum`` begins.
    into : array, optional
        Where ``map`` writes its result, in place of a new array.
    stored : bool
        Whether blocks keep the dtype that the rows are stored in, for functions that read any.
    """

    width: int | None = None
    dtype: Any = None
    row_bytes: int | None = None
    result_bytes: int = 0
    serial: bool = False
    label: str = "rows"
    start: int = 0
    into: Array | None = None
    stored: bool = False

    def for_map(self, dtype: Any) -> Walk:
        """This walk with its defaults filled in, for results in ``dtype`` if none is set."""
        dtype = self.dtype if self.dtype is not None else dtype
        row_bytes = self.row_bytes
        if row_bytes is None:
            row_bytes = (1 if self.width is None else self.width) * array_ops.itemsize(dtype)
        return replace(self, dtype=dtype, row_bytes=row_bytes)

    @property
    def work_bytes(self) -> int:
        """The memory that the function uses per row; 0 if the walk does not say."""
        return self.row_bytes or 0

    @property
    def ending(self) -> tuple[int, ...]:
        """The shape of a result of ``map`` after its first axis."""
        return () if self.width is None else (self.width,)


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
