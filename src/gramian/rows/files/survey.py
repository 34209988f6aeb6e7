"""What the columns of a table hold, found in one pass over record batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow
import pyarrow.compute
from pyarrow import types

from gramian.rows.files import readings
from gramian.rows.files.dialect import SAMPLE_LINES, Dialect, with_signs
from gramian.rows.files.facts import FEW, Facts, NumberFacts

MOSTLY = 0.8  # a column with this share of numbers is numeric, and its other cells are odd


def survey(
    batches: Iterable[tuple[int, pyarrow.RecordBatch]],
    names: Sequence[str],
    dialect: Dialect | None = None,
) -> tuple[int, dict[str, Facts]]:
    """Look at every batch once; return the number of rows and what each column holds.

    Rows at the end that have no value at all do not count.
    """
    lookers = [_Looker(name, dialect) for name in names]
    rows = last = 0
    for first, batch in batches:
        rows = first + batch.num_rows
        for i, looker in enumerate(lookers):
            looker.look(batch.column(i), first)
        last = max(last, _last_full_row(batch, first))
    for looker in lookers:
        looker.cut(rows - last, last)
    return last, {looker.facts.name: looker.finished() for looker in lookers}


def _last_full_row(batch: pyarrow.RecordBatch, first: int) -> int:
    """Return the number after that of the last row that has any value."""
    if any(column.null_count == 0 for column in batch.columns) and batch.num_rows:
        return first + batch.num_rows
    full = np.zeros(batch.num_rows, dtype=bool)
    for column in batch.columns:
        full |= column.is_valid().to_numpy(zero_copy_only=False)
    return first + int(np.flatnonzero(full)[-1]) + 1 if full.any() else 0


class _Looker:
    """Collects the facts of one column."""

    def __init__(self, name: str, dialect: Dialect | None) -> None:
        self.facts = Facts(name)
        self._as_number = readings.NumberText(dialect) if dialect else None
        self._numbers = 0  # cells of text that are numbers
        self._words = 0
        self._as_numbers = NumberFacts(self.facts)

    def look(self, values: pyarrow.Array, first: int) -> None:
        facts = self.facts
        facts.rows = first + len(values)
        if isinstance(values.type, pyarrow.DictionaryType):
            values = values.cast(values.type.value_type)
        if values.null_count:
            facts.count_gaps(values.is_null().to_numpy(zero_copy_only=False), first)
        if values.null_count == len(values):
            return
        if types.is_boolean(values.type):
            facts.kind = "boolean"
            self._count(values)
        elif types.is_temporal(values.type):
            facts.kind, facts.reading = "date", readings.Days()
        elif types.is_string(values.type) or types.is_large_string(values.type):
            facts.kind = "text"
            self._look_at_texts(readings.as_text(values), first)
        elif _is_number(values.type):
            facts.kind = "number"
            numbers = values.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
            self._as_numbers.look(numbers, first)
        else:
            facts.kind = "other"

    def _look_at_texts(self, texts: pyarrow.Array, first: int) -> None:
        facts = self.facts
        self._count(texts)
        if self._as_number is None:  # the first batch shows how numbers are written
            cells = texts.drop_null().slice(0, SAMPLE_LINES).to_pylist()
            self._as_number = readings.NumberText(with_signs(Dialect(), cells))
        is_number = self._as_number.matches(texts).fill_null(True)
        odd = ~is_number.to_numpy(zero_copy_only=False)
        facts.n_odd += int(odd.sum())
        for i in np.flatnonzero(odd)[: FEW - len(facts.odd)]:
            facts.odd.append((first + int(i), texts[int(i)].as_py()))
        if len(texts):
            words = pyarrow.compute.count_substring_regex(texts, r"\S+")
            self._words += pyarrow.compute.sum(words).as_py() or 0
        self._numbers += len(texts) - texts.null_count - int(odd.sum())

    def _count(self, values: pyarrow.Array) -> None:
        if self.facts.many:
            return
        counts = pyarrow.compute.value_counts(readings.as_text(values).drop_null())
        entries = self.facts.entries
        for entry in counts.to_pylist():
            entries[entry["values"]] = entries.get(entry["values"], 0) + entry["counts"]
            if self.facts.many:
                return

    def cut(self, empty: int, last: int) -> None:
        """Leave this many empty rows at the end out of the count."""
        self.facts.rows = last
        self.facts.missing -= empty
        self.facts.gaps = [row for row in self.facts.gaps if row < last]

    def finished(self) -> Facts:
        facts, present = self.facts, self.facts.rows - self.facts.missing
        self._as_numbers.finish()
        if facts.kind != "text" or present == 0:
            return facts
        facts.words = self._words / present
        if self._numbers >= MOSTLY * present and self._numbers:
            assert self._as_number is not None
            facts.kind, facts.reading = "number", self._as_number
            facts.whole = facts.rising = facts.unique = False
            _look_back(facts, self._as_number)
            return facts
        facts.n_odd, facts.odd = 0, []
        format = readings.date_format(list(facts.entries))
        if format is not None and len(facts.entries) > 1:
            facts.kind, facts.reading = "date", readings.Days(format)
        return facts


def _look_back(facts: Facts, reading: readings.Reading) -> None:
    """Find the range of numbers that were read as text."""
    numbers = reading(pyarrow.array(list(facts.entries), pyarrow.string()))
    facts.low, facts.high = float(np.nanmin(numbers)), float(np.nanmax(numbers))


def _is_number(kind: pyarrow.DataType) -> bool:
    return (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )
