"""The options of a walk over rows, and how rows are divided into blocks.

Results do not depend on the number of threads: only sizes determine the blocks, and sums are added
in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.typing import DType

# The block of a thread should fit its cache; a GPU needs far larger blocks.
CACHE_BYTES = 4 * 1024**2
DEVICE_BYTES = 1024 * 1024**2
LEAST_ROWS = 256  # fewer would make matrix products slow


@dataclass(frozen=True, slots=True)
class Walk:
    """The options of :meth:`Rows.map` and :meth:`Rows.sum`.

    Parameters
    ----------
    width : int, optional
        Number of columns of the result of ``map``; by default it is one number per row.
    dtype : dtype, optional
        The dtype of the result of ``map``; by default that of the rows.
    row_bytes : int, optional
        Memory that the function uses per row, in addition to the block. Block sizes are chosen so
        that this fits the cache and the memory budget. By default, the size of the result of
        ``map``.
    result_bytes : int
        The size of one result of ``sum``. If results are large, fewer may wait to be added.
    serial : bool
        Whether the function must not run in two threads at once.
    label : str
        The text of the progress bar.
    start : int
        The first row of ``sum``.
    into : array, optional
        The array that ``map`` writes its result to, instead of a new one.
    stored : bool
        Whether blocks keep the stored dtype of the rows, for functions that accept any dtype.
    """

    width: int | None = None
    dtype: DType = None
    row_bytes: int | None = None
    result_bytes: int = 0
    serial: bool = False
    label: str = "rows"
    start: int = 0
    into: Array | None = None
    stored: bool = False

    def for_map(self, dtype: DType) -> Walk:
        """Return this walk with its defaults filled in; ``dtype`` is the default for results."""
        dtype = self.dtype if self.dtype is not None else dtype
        row_bytes = self.row_bytes
        if row_bytes is None:
            row_bytes = (1 if self.width is None else self.width) * array_ops.itemsize(dtype)
        return replace(self, dtype=dtype, row_bytes=row_bytes)

    @property
    def ending(self) -> tuple[int, ...]:
        """The shape of the result of ``map`` without its first axis."""
        return () if self.width is None else (self.width,)


def by_label(labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row numbers in the order of their labels (n,), and where each label ends (count,).

    Rows of one label stay in their order. SciPy's change of a matrix from columns to rows counts
    the labels, which takes far less than sorting them.
    """
    n = len(labels)
    kind: DType = np.int32 if n < np.iinfo(np.int32).max else np.int64
    marked = np.ones(n, dtype=np.int8), labels.astype(kind), np.arange(n + 1, dtype=kind)
    marks = scipy.sparse.csc_array(marked, shape=(count, n)).tocsr()
    return marks.indices, marks.indptr[1:]


def even_spans(start: int, stop: int, most: int) -> list[tuple[int, int]]:
    """Divide a range into spans of nearly equal length, at most ``most`` each.

    If there are several, their number is a multiple of four. This keeps two or four threads equally
    busy, and yet the spans do not depend on the number of threads.
    """
    n = stop - start
    if n <= most:
        return [(start, stop)] if n > 0 else []
    count = min(-(-n // most // 4) * 4, n)
    return list(pairwise([start + n * i // count for i in range(count + 1)]))
