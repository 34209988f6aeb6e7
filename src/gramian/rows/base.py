"""Rows: what they are, and how they are walked.

A learner says what is to be done to one block of rows; ``map`` collects the results row by row, and
``sum`` adds them up in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace


class Rows(ABC):
    """The rows of a data set, wherever they are.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and of columns.
    dtype : dtype
        What blocks are computed in: float32 for float32, half precision and bytes, else float64.
    xp : module
        The array API namespace of the blocks.
    spread : bool
        Whether other processes hold the rows. Arrays with an entry for each row then live there
        too: they are lazy, and what they are of is the namespace of the array, not ``xp``.
    names : list of str or None
        What the columns are called, where the rows know it.
    """

    shape: tuple[int, int]
    dtype: Any
    xp: Namespace
    spread: bool = False
    names: list[str] | None = None

    @property
    def are_objects(self) -> bool:
        """Whether each row is a Python object, such as a string, that only a function can read."""
        return False

    @property
    def evaluations(self) -> int:
        """The kernel values that one walk over the rows computes: none where they are kept."""
        return 0

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory, on average."""
        return self.shape[1] * array_ops.itemsize(self.dtype)

    @abstractmethod
    def take(self, indices: Any) -> Array:
        """The rows with these numbers, as one array in memory."""

    @abstractmethod
    def map(
        self,
        function: Callable[..., Array],
        *aligned: Array,
        width: int | None = None,
        dtype: Any = None,
        row_bytes: int | None = None,
        into: Array | None = None,
        serial: bool = False,
        label: str = "rows",
    ) -> Array:
        """One result per row.

        ``function(block, *aligned_blocks, out=out)`` gets a block of rows, the same rows of each
        aligned array, and the memory for its result of shape (rows, width), or (rows,) where width
        is None. It may write there, or return an array of its own. ``row_bytes`` is what it works
        on for each row beside the block itself, by default its result: blocks are cut so that
        this stays in cache and in the memory budget. The results are written ``into`` an array
        that is given, or a new one.
        """

    @abstractmethod
    def sum(
        self,
        function: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        start: int = 0,
        row_bytes: int = 0,
        result_bytes: int = 0,
        serial: bool = False,
        label: str = "rows",
    ) -> Any:
        """The sum over all blocks from row ``start`` on, of ``function(block, *aligned_blocks)``.

        The function returns an array or a tuple of arrays; they are added in float64. Where these
        are large, ``result_bytes`` says so: fewer of them then wait to be added. Arrays of the
        ``state`` are aligned too, and come after the others; into their blocks the function may
        write. The result is then the sum and the arrays as they are afterwards: the same, or, where
        the rows are spread, others.
        """

    @abstractmethod
    def persist(self) -> Rows:
        """These rows held in memory in their working dtype, if that fits the memory budget."""

    @abstractmethod
    def collect(self) -> Array:
        """All rows as one array in memory."""

    @abstractmethod
    def example(self) -> Array:
        """An array without entries, of the library, device and dtype of results."""

    @abstractmethod
    def choose(self, numbers: np.ndarray) -> Rows:
        """The rows with these numbers, still where they are; gathered when they are walked."""

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        """What ``map`` and ``sum`` take at once with these sizes, beside the result of ``map``."""
        return 0

    def stored(self) -> Rows:
        """These rows as they are kept, where they are, for programs that read any dtype."""
        return self

    # What differs where rows are computed with, or held, elsewhere than who gave them has them.

    def answer(self, values: Array) -> Array:
        """Values with an entry, or line, for each row, as who gave the rows gets them."""
        return values

    def settled(self, values: Array) -> Array:
        """What a fit keeps of each row: computed, where the rows are, as ``answer`` gives it."""
        return self.answer(array_ops.settled(self.align(values) if self.spread else values))

    def answer_memory(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        """Memory for such values that ``map`` can write ``into``, where it is not the rows' own."""
        return None

    def align(self, values: Any, dtype: Any = None) -> Array:
        """Values with an entry, or line, for each row as an array that is walked with the rows."""
        return array_ops.like(values, self.example(), dtype)

    def constant(self, value: float) -> Array:
        """The same number for each row, in float64, as an array that is walked with the rows."""
        return self.align(np.full(self.shape[0], value), self.xp.float64)

    def split(self, labels: Array, count: int) -> list[Rows]:
        """For each of ``count`` labels its rows, in their order."""
        order = np.argsort(labels, kind="stable")
        edges = np.cumsum(np.bincount(labels, minlength=count))[:-1]
        return [self.choose(numbers) for numbers in np.split(order, edges)]

    def by_parts(self, operation: Callable[[Rows, int], Any], *, serial: bool = False) -> list[Any]:
        """What ``operation(part, number)`` gives for the rows that one process holds, part by part.

        ``number`` is that of the part's first row.
        """
        return [operation(self, 0)]

    def values(self) -> Array:
        """All rows as one array that is walked with them; a lazy one where they are spread."""
        return self.collect()

    def keep(self, values: Array) -> Rows:
        """What ``map`` gave for these rows, held where they are, as rows."""
        from gramian.rows.arrays import ArrayRows

        return ArrayRows(values)

    def room(self) -> int:
        """The bytes that may be used now for what is kept of the rows."""
        return config.memory_budget()

    def check_room(self, size: int, what: str, advice: str) -> None:
        """Refuse to make a result of ``map`` that has no room; a lazy one needs none."""
        config.check_fits(size, what, advice)

    def here(self) -> Rows:
        """These rows in this process: for matrices that are made in one piece."""
        return self
