"""Table: named columns of numbers, text and dates, and views of some of its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from gramian.backend.typing import ArrayLike
from gramian.rows import Rows
from gramian.rows.files.facts import Facts
from gramian.rows.files.formats import gaps_in

if TYPE_CHECKING:
    from gramian.rows.files.readings import Reading

__all__ = ["Table"]


class Table(ABC):
    """A table of columns, or a view of some of its rows.

    Attributes
    ----------
    said : str
        Its name in messages.
    names : list of str
        The names of the columns, or their numbers if they have no names.
    named : bool
        Whether the columns have names.
    n_rows : int
    sparse : bool
        Whether most values are 0 and not stored.
    numbers : array of int or None
        Which rows of the source these are; None means all.
    facts : dict of str to Facts
        What each column of the source holds.
    notation : str
        How a text file is written, in words; "" for other sources.
    opened_with : dict of str to str
        The options of ``open_table`` that read the source in the same way.
    completed : list of str
        The columns whose gaps were left out of this view.
    """

    said: str
    source: str = ""
    names: list[str]
    named: bool
    n_rows: int
    sparse: bool = False
    numbers: np.ndarray | None = None
    facts: dict[str, Facts]
    notation: str = ""
    opened_with: Mapping[str, object] = {}
    completed: Sequence[str] = ()
    _target: np.ndarray | None = None

    @property
    def target(self) -> np.ndarray | None:
        """The target of a data set that has one in addition to its columns."""
        if self._target is None or self.numbers is None:
            return self._target
        return self._target[self.numbers]

    @abstractmethod
    def _rows(self, names: list[str], readings: Mapping[str, Reading]) -> Rows:
        """Return columns of the whole source as rows, NaN where there is no value."""

    @abstractmethod
    def _column(self, name: str) -> np.ndarray:
        """Return a column of the whole source; NaN or None where there is no value."""

    def lines(self, rows: Sequence[int]) -> list[int]:
        """Return where rows of the source are, as a person would count."""
        return [row + 1 for row in rows]

    def rows(self, names: list[str], readings: Mapping[str, Reading] | None = None) -> Rows:
        """Return columns as rows, NaN where there is no value.

        ``readings`` says how to read columns that are not numbers.
        """
        rows = self._rows(names, readings or {})
        return rows if self.numbers is None else rows.choose(self.numbers)

    def column(self, name: str) -> np.ndarray:
        """Return a column, numeric or not; NaN or None where there is no value."""
        values = self._column(name)
        return values if self.numbers is None else values[self.numbers]

    def choose(self, numbers: ArrayLike) -> Table:
        """Return a view of the rows with these numbers."""
        view = copy(self)
        numbers = np.asarray(numbers)
        view.numbers = numbers if self.numbers is None else self.numbers[numbers]
        view.n_rows = len(numbers)
        return view

    def complete(self, names: Sequence[str]) -> Table:
        """Return a view of the rows that have a value in each of these columns."""
        some = [name for name in names if self.facts[name].missing or self.facts[name].n_odd]
        if not some:
            return self
        missing = np.zeros(self.n_rows, dtype=bool)
        for name in some:
            missing |= gaps_in(self.column(name))
        view = self.choose(np.flatnonzero(~missing)) if missing.any() else copy(self)
        view.completed = [*self.completed, *(name for name in some if name not in self.completed)]
        return view

    def find(self, given: str) -> str:
        """Find a column by name or number."""
        if given in self.names:
            return given
        if given.isdecimal() and int(given) < len(self.names):
            return self.names[int(given)]
        near = get_close_matches(given, self.names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{self.said} has no column {given!r}.{hint} Its columns: {listed(self.names)}."
        )


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return names for a message, shortened if there are many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown}, and {len(names) - most} more" if len(names) > most else shown
