"""What a column holds: its kind, its gaps, its range and its distinct entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gramian.rows.files.readings import Reading

MOST_ENTRIES = 1000  # distinct entries that are kept of a column of text
FEW = 5  # places that are kept of gaps and odd cells
UNIQUE_ROWS = 10_000  # rows in which numbers are looked at for repetition


@dataclass
class Facts:
    """What a column holds.

    Attributes
    ----------
    kind : {"number", "boolean", "text", "date", "empty"}
    rows, missing : int
    gaps : list of int
        The numbers of the first rows without a value.
    odd : list of (int, str)
        The first cells of text in a column of numbers, with their rows; ``n_odd`` counts them.
    low, high : float
        The range of numbers.
    whole, rising, unique : bool
        Whether numbers are all whole, each larger than the last, and all different.
    entries : dict of str to int
        The distinct entries of text with their counts, or the first ``MOST_ENTRIES`` of them.
    words : float
        Words in an entry, on average.
    reading : Reading or None
        How to read text as numbers or dates.
    """

    name: str
    kind: str = "empty"
    rows: int = 0
    missing: int = 0
    gaps: list[int] = field(default_factory=list)
    n_odd: int = 0
    odd: list[tuple[int, str]] = field(default_factory=list)
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    rising: bool = True
    unique: bool = True
    entries: dict[str, int] = field(default_factory=dict)
    words: float = 0.0
    reading: Reading | None = None

    @property
    def many(self) -> bool:
        """Whether there are more distinct entries than are kept."""
        return len(self.entries) > MOST_ENTRIES

    @property
    def constant(self) -> bool:
        if self.kind == "number":
            return self.low == self.high and not self.n_odd
        return len(self.entries) == 1 and self.kind in ("text", "boolean")

    def count_gaps(self, missing: np.ndarray, first: int) -> None:
        """Count the rows without a value among those from ``first`` on."""
        self.missing += int(missing.sum())
        places = np.flatnonzero(missing)[: FEW - len(self.gaps)]
        self.gaps += [first + int(i) for i in places]


class NumberFacts:
    """Collects the facts of a column of numbers, block by block; NaN is no value."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._seen: list[np.ndarray] = []
        self._before = -np.inf

    def look(self, values: np.ndarray, first: int) -> None:
        facts = self.facts
        low, high = float(values.min()), float(values.max())
        if np.isnan(low):
            values = values[~np.isnan(values)]
            if not len(values):
                return
            low, high = float(values.min()), float(values.max())
        facts.low, facts.high = min(facts.low, low), max(facts.high, high)
        if not facts.whole:
            return
        facts.whole = bool((values == np.floor(values)).all())
        rising = values[0] > self._before and (values[1:] > values[:-1]).all()
        facts.rising = facts.rising and bool(rising)
        self._before = float(values[-1])
        if first < UNIQUE_ROWS:
            self._seen.append(values[: UNIQUE_ROWS - first])

    def finish(self) -> Facts:
        if self._seen:
            seen = np.concatenate(self._seen)
            self.facts.unique = len(np.unique(seen)) == len(seen)
        return self.facts
