"""Base class of rows.

A learner supplies a function of one block of rows; ``map`` collects its results row by row, and
``sum`` adds them in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, Namespace
from gramian.backend.typing import Aligned, BlockSum, DType, Indices, State, Sums
from gramian.rows.places import Place
from gramian.rows.walks import Walk


class Rows(ABC):
    """Base class of the rows of a data set, wherever they are stored.

    Subclasses implement ``_map`` and ``_sum``, which get the options of ``map`` and ``sum`` as a
    :class:`~gramian.rows.walks.Walk`.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and number of columns.
    dtype : dtype
        The dtype of blocks: float32 for float32, half precision and bytes, else float64.
    xp : module
        The array API namespace of the blocks.
    place : Place
        Where the rows are: this process, a device or a cluster. It creates arrays that are walked
        with the rows, and converts results to the caller's array type.
    names : list of str or None
        The names of the columns, if known.
    are_objects : bool
        Whether each row is a Python object, such as a string, for a kernel function.

    See Also
    --------
    as_rows : makes rows from data.
    gramian.testing.check_rows : tests a kind of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Rows, as_rows
    >>> rows = as_rows(np.ones((4, 2), dtype=np.float32))
    >>> isinstance(rows, Rows), rows.shape
    (True, (4, 2))
    >>> rows.sum(lambda block: block.sum(axis=0))
    array([4., 4.])
    """

    shape: tuple[int, int]
    dtype: DType
    xp: Namespace
    place: Place
    names: list[str] | None = None
    are_objects: bool = False

    @property
    def row_bytes(self) -> int:
        """The average memory of one row, in bytes."""
        return self.shape[1] * array_ops.itemsize(self.dtype)

    def map(self, function: Callable[..., Array], *aligned: Array, **walk: Any) -> Array:
        """Return one result per row, of shape (n,) or (n, width).

        ``function(block, *aligned_blocks, out=out)`` gets a block of rows, the same rows of each
        aligned array, and memory for its result, of shape (rows, width), or (rows,) if width is
        None. It may write to ``out`` or return another array. The options are those of
        :class:`~gramian.rows.walks.Walk`: width, dtype, row_bytes, into, serial and label.
        """
        return self._map(function, aligned, Walk(**walk).for_map(self.dtype))

    def sum(
        self, function: BlockSum, *aligned: Array, state: Sequence[Array] | None = None, **walk: Any
    ) -> Sums:
        """Return the sum of ``function(block, *aligned_blocks)`` over all blocks.

        The function returns an array or a tuple of arrays; they are added in float64. The arrays in
        ``state`` are also aligned; their blocks come last, and the function may write to them. With
        a state, the result is a pair: the sum, and the arrays afterwards. These are the same
        arrays, or new ones if the rows are in other processes. The options are those of
        :class:`~gramian.rows.walks.Walk`: start, row_bytes, result_bytes, serial, label and stored.
        """
        return self._sum(function, aligned, state, Walk(**walk))

    @abstractmethod
    def _map(self, function: Callable[..., Array], aligned: Aligned, walk: Walk) -> Array:
        """Implement ``map``; the defaults of the walk are filled in."""

    @abstractmethod
    def _sum(self, function: BlockSum, aligned: Aligned, state: State, walk: Walk) -> Sums:
        """Implement ``sum``."""

    @abstractmethod
    def take(self, indices: Indices) -> Array:
        """Return the rows with these numbers, as one array in memory."""

    @abstractmethod
    def choose(self, numbers: np.ndarray) -> Rows:
        """Return the rows with these numbers without copying them; each walk gathers them."""

    @abstractmethod
    def persist(self) -> Rows:
        """Return these rows stored in memory in their working dtype, if that fits the budget."""

    @abstractmethod
    def collect(self) -> Array:
        """Return all rows as one array in memory."""

    @abstractmethod
    def example(self) -> Array:
        """Return an empty array with the library, device and dtype of results."""

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        """Return the memory that a walk with these sizes needs, excluding the result of ``map``."""
        return 0

    def _values(self) -> Array:
        """Return all rows as one aligned array of shape (n, d), which is lazy on a cluster."""
        return self.collect()

    def _maker(self) -> Callable[[Rows], Rows]:
        """Return a function that derives rows like these from other rows of the underlying data.

        It holds no reference to any rows, so it can be sent to other processes.
        """
        return _same


def _same(rows: Rows) -> Rows:
    return rows
