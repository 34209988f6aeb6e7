"""Rows: what they are, and how they are walked.

A learner says what is to be done to one block of rows; ``map`` collects the results row by row, and
``sum`` adds them up in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, Namespace
from gramian.rows.places import Place
from gramian.rows.walks import Walk


class Rows(ABC):
    """The rows of a data set, wherever they are.

    A subclass implements ``_map`` and ``_sum``, which get a :class:`~gramian.rows.walks.Walk` in
    place of the options of ``map`` and ``sum``.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and of columns.
    dtype : dtype
        What blocks are computed in: float32 for float32, half precision and bytes, else float64.
    xp : module
        The array API namespace of the blocks.
    place : Place
        Where the rows are: this process, a device or a cluster. It makes arrays that are walked
        with the rows, and hands results back in the caller's array type.
    names : list of str or None
        The names of the columns, if the rows know them.
    """

    shape: tuple[int, int]
    dtype: Any
    xp: Namespace
    place: Place
    names: list[str] | None = None

    @property
    def are_objects(self) -> bool:
        """Whether each row is a Python object, such as a string, that only a function can read."""
        return False

    @property
    def row_bytes(self) -> int:
        """The memory that one row takes, on average."""
        return self.shape[1] * array_ops.itemsize(self.dtype)

    def map(self, function: Callable[..., Array], *aligned: Array, **walk: Any) -> Array:
        """Return one result per row, of shape (n,), or (n, width).

        ``function(block, *aligned_blocks, out=out)`` gets a block of rows, the same rows of each
        aligned array, and the memory for its result of shape (rows, width), or (rows,) where width
        is None. It may write there, or return an array of its own. The options are those of
        :class:`~gramian.rows.walks.Walk`: width, dtype, row_bytes, into, serial and label.
        """
        return self._map(function, aligned, Walk(**walk).for_map(self.dtype))

    def sum(
        self,
        function: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        **walk: Any,
    ) -> Any:
        """Return the sum of ``function(block, *aligned_blocks)`` over all blocks.

        The function returns an array or a tuple of arrays; they are added in float64. Arrays of the
        ``state`` are aligned too, and come after the others; the function may write into their
        blocks. The result is then a pair: the sum, and the arrays as they are afterwards. These are
        the same arrays, or new ones where the rows are in other processes. The options are those of
        :class:`~gramian.rows.walks.Walk`: start, row_bytes, result_bytes, serial, label and stored.
        """
        return self._sum(function, aligned, state, Walk(**walk))

    @abstractmethod
    def _map(self, function: Callable[..., Array], aligned: tuple[Array, ...], walk: Walk) -> Array:
        """``map``, with the defaults of the walk filled in."""

    @abstractmethod
    def _sum(
        self,
        function: Callable[..., Any],
        aligned: tuple[Array, ...],
        state: Sequence[Array] | None,
        walk: Walk,
    ) -> Any:
        """``sum``."""

    @abstractmethod
    def take(self, indices: Any) -> Array:
        """Return the rows with these numbers, as one array in memory."""

    @abstractmethod
    def choose(self, numbers: np.ndarray) -> Rows:
        """Return the rows with these numbers, left where they are; each walk gathers them."""

    @abstractmethod
    def persist(self) -> Rows:
        """Return these rows held in memory in their working dtype, if that fits the budget."""

    @abstractmethod
    def collect(self) -> Array:
        """Return all rows as one array in memory."""

    @abstractmethod
    def example(self) -> Array:
        """Return an array without entries, of the library, device and dtype of results."""

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        """Return the memory that a walk with these sizes takes, besides the result of ``map``."""
        return 0

    def _values(self) -> Array:
        """All rows as one array that is walked with them; a lazy one on a cluster."""
        return self.collect()

    def _maker(self) -> Callable[[Rows], Rows]:
        """A function that makes rows like these of other rows of the data they are made of.

        It refers to no rows itself, so that it can be sent to other processes.
        """
        return _same


def _same(rows: Rows) -> Rows:
    return rows
