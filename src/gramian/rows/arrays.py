"""Rows of one array, in memory or mapped from a file."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace
from gramian.backend.typing import DType, Indices
from gramian.rows.base import Rows
from gramian.rows.blocks import BlockRows


class ArrayRows(BlockRows):
    """Rows of one array: NumPy, ``np.memmap``, SciPy CSR, torch, or any array API library.

    Parameters
    ----------
    data : array of shape (n, d), or of shape (n,) and dtype object
        It is not copied. Blocks are converted to float32 or float64 when they are read, so the
        whole of an integer array or a file is never converted at once. In a 1-D array of objects,
        each object is a row; blocks contain the objects unchanged.

    See Also
    --------
    as_rows : makes rows from data of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.rows import ArrayRows
    >>> rows = ArrayRows(np.arange(6).reshape(3, 2))
    >>> rows.map(lambda block, out: block.sum(axis=1))
    array([1., 5., 9.])
    >>> rows.sum(lambda block: block.T @ block)
    array([[20., 26.],
           [26., 35.]])
    """

    def __init__(self, data: Array) -> None:
        self.data = data
        self.are_objects = array_ops.is_objects(data)
        self.shape = (int(data.shape[0]), 1 if self.are_objects else int(data.shape[1]))
        self.dtype = array_ops.float_dtype(data)

    @property
    def xp(self) -> Namespace:
        return array_ops.namespace(self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.data.dtype})"

    def block(self, start: int, stop: int) -> Array:
        return array_ops.astype(array_ops.span(self.data, start, stop), self.dtype)

    def take(self, indices: Indices) -> Array:
        if isinstance(indices, range) and indices.step == 1:  # a view is enough
            return self.block(indices.start, indices.stop)
        taken = array_ops.take_rows(self.data, np.asarray(indices))
        return array_ops.astype(taken, self.dtype)

    def collect(self) -> Array:
        return self.block(0, self.shape[0])

    def persist(self) -> ArrayRows:
        ready = self.data.dtype == self.dtype or self.are_objects
        if ready and not array_ops.is_on_disk(self.data):
            return self
        if self.shape[0] * self.row_bytes > config.memory_budget() // 2:
            return self
        return ArrayRows(array_ops.astype(array_ops.copy(self.data), self.dtype))

    def _unconverted(self) -> BlockRows:
        return StoredRows(self.data)

    def example(self) -> Array:
        return array_ops.empty((0,), self.data, self.dtype)

    def choose(self, numbers: np.ndarray) -> Rows:
        return ChosenRows(self, numbers)

    @property
    def row_bytes(self) -> int:
        if array_ops.issparse(self.data):  # a value and a column index for each stored entry
            return 12 * self.data.nnz // max(int(self.data.shape[0]), 1) + 8
        return super().row_bytes


class HalfRows(ArrayRows):
    """Features stored in half precision; blocks have another dtype."""

    def __init__(self, data: Array, dtype: DType) -> None:
        super().__init__(data)
        self.dtype = dtype

    def persist(self) -> ArrayRows:
        return self


class StoredRows(ArrayRows):
    """Rows in their stored dtype and in one block, for GPU programs that do their own tiling."""

    def __init__(self, data: Array) -> None:
        super().__init__(data)
        self.dtype = data.dtype

    def spans(self, row_bytes: int, start: int = 0) -> list[tuple[int, int]]:
        return [(start, self.shape[0])]


class ChosenRows(ArrayRows):
    """Some rows of an array, selected by their numbers and gathered block by block."""

    def __init__(self, rows: ArrayRows, numbers: np.ndarray) -> None:
        super().__init__(rows.data)
        self.dtype = rows.dtype
        self.rows = rows
        self.numbers = numbers
        self.names = rows.names
        self.shape = (len(numbers), rows.shape[1])

    def block(self, start: int, stop: int) -> Array:
        return self.rows.take(self.numbers[start:stop])

    def take(self, indices: Indices) -> Array:
        return self.rows.take(self.numbers[np.asarray(indices)])

    def _unconverted(self) -> BlockRows:
        return self

    def persist(self) -> ArrayRows:
        if self.shape[0] * self.row_bytes > config.memory_budget() // 2:
            return self
        return ArrayRows(self.collect())
