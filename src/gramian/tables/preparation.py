"""Preparation: turn the columns of a table into rows of numbers, the same way for every table."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice
from gramian.backend.typing import ArrayLike, BlockSum, DType
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, FeatureRows, Rows
from gramian.rows.files.facts import MOST_ENTRIES
from gramian.tables import dates as date_parts
from gramian.tables.base import Table, listed
from gramian.tables.statistics import Statistics

if TYPE_CHECKING:
    from gramian.rows.files.readings import Reading

__all__ = ["Preparation"]

SCALES = ("standard", "minmax", "none")
IMPUTES = ("median", "mean", "most-frequent")
UNKNOWN = -1.0  # the code of an entry that was not in the fit
# What a fit learns.
LEARNED = {
    *("uses_", "named", "width", "entries_", "formats_"),
    *("shift_", "factor_", "fills_", "learned_"),
}


class OutdatedError(ValueError):
    """Raised for the state of an older version of gramian, which this one cannot use."""


class Preparation(TransformerMixin, BaseEstimator):
    """Turn columns of a table into numbers: fill gaps, encode text and dates, scale.

    Columns are matched by name, in any order, or by number if the table has no names. A column of
    text becomes one column of 0 and 1 per distinct entry. A date becomes the day and its place in
    the year, the week and the day, as sine and cosine. Numbers and days are scaled.

    Parameters
    ----------
    numbers, categories, dates : list of str, optional
        The columns to use as numbers, as categories and as dates. With all three left out, ``fit``
        recognises them as :func:`plan` does.
    target : str, optional
        A column that is the target, and no feature.
    impute : {"median", "mean", "most-frequent"}, optional
        How to fill gaps in numbers; categories get the most frequent one. By default gaps are
        errors.
    drop_missing : bool, default=False
        Whether rows with gaps are to be left out before the preparation: see
        :meth:`Table.complete`.
    scale : {"standard", "minmax", "none"}, default="standard"
        Scale numbers to mean 0 and variance 1, or to the range from 0 to 1.
    unknown : {"ignore", "error"}, default="ignore"
        What to do with entries that were not in the fit: give them 0 in every column, or raise an
        error.
    dtype : {"float64", "float32"}, default="float64"
        The precision of the result. Rows that are stored in single precision keep it.

    Attributes
    ----------
    names : list of str
        The columns of the table that are used.
    columns : list of str
        The columns of the result.

    Examples
    --------
    >>> from gramian.tables import Preparation, open_table
    >>> table = open_table("iris")
    >>> X = Preparation(numbers=["1", "2", "3"], scale="minmax").fit_transform(table)
    >>> X.shape, X[:2].round(2)
    ((150, 3), array([[0.62, 0.07, 0.04],
           [0.42, 0.07, 0.04]]))
    """

    def __init__(
        self,
        numbers: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        dates: Sequence[str] | None = None,
        *,
        target: str | None = None,
        impute: str | None = None,
        drop_missing: bool = False,
        scale: str = "standard",
        unknown: str = "ignore",
        dtype: str = "float64",
    ) -> None:
        self.numbers = numbers
        self.categories = categories
        self.dates = dates
        self.target = target
        self.impute = impute
        self.drop_missing = drop_missing
        self.scale = scale
        self.unknown = unknown
        self.dtype = dtype

    def __setstate__(self, state: dict[str, object]) -> None:
        known = LEARNED & state.keys()
        if not {*self._get_param_names()} <= state.keys() or known not in (set(), LEARNED):
            raise OutdatedError(
                "was written by an older version of gramian, which prepared tables in another way. "
                "Fit the model again with this version, and save it."
            )
        super().__setstate__(state)

    # As a transformer of whole tables

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Preparation:
        """Learn entries, fills and scale from a table, a path or a data frame."""
        table = self._table(X)
        self.look(table)
        self.learn(self.raw(table))
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the prepared rows of a table, a path or a data frame."""
        check_is_fitted(self, "entries_")
        table = self._table(X)
        return np.asarray(array_ops.dense(self.rows(self.raw(table)).collect()))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the columns of the result."""
        check_is_fitted(self, "entries_")
        return np.asarray(self.columns, dtype=object)

    def _table(self, X: ArrayLike) -> Table:
        from gramian.tables.sources import as_table

        return as_table(X)

    # Block by block, for files larger than memory

    def look(self, table: Table) -> None:
        """Learn from a table which columns there are, and the entries of text."""
        choice(self, "scale", self.scale, SCALES)
        choice(self, "unknown", self.unknown, ("ignore", "error"))
        choice(self, "dtype", self.dtype, ("float64", "float32"))
        if self.impute is not None:
            choice(self, "impute", self.impute, IMPUTES)
        chosen = [self.numbers, self.categories, self.dates]
        if all(names is None for names in chosen):
            from gramian.tables.planning import plan

            found = plan(table, target=self.target, impute=self.impute).preparation
            chosen = [found.numbers, found.categories, found.dates]
        self.uses_ = [[table.find(name) for name in names or ()] for names in chosen]
        self.named = table.named
        self.width = len(table.names)
        _, categories, dates = self.uses_
        self.entries_ = _entries_of(table, categories)
        self.formats_ = {name: _format(table, name) for name in dates}
        self.shift_: np.ndarray | None = None
        self.factor_: np.ndarray | None = None
        self.fills_: np.ndarray | None = None
        self.learned_ = False
        if not self.names:
            raise ValueError(f"{table.said} has no column to use.")

    @property
    def names(self) -> list[str]:
        numbers, categories, dates = self.uses_
        return [*numbers, *dates, *categories]

    @property
    def columns(self) -> list[str]:
        numbers, categories, dates = self.uses_
        columns = list(numbers)
        columns += [f"{name}{part}" for name in dates for part in date_parts.PARTS]
        columns += [f"{name}={entry}" for name in categories for entry in self.entries_[name]]
        return columns

    def raw(self, table: Table) -> Rows:
        """Return the used columns of a table: text as codes, dates as days, NaN for gaps."""
        found = self._found(table)
        self._check_gaps(table, found)
        rows = table.rows(found, self._readings(found))
        if self.scale != "none" and array_ops.issparse(getattr(rows, "data", None)):
            config.check_fits(
                rows.shape[0] * rows.shape[1] * array_ops.itemsize(rows.dtype),
                f"{table.said} in dense form, which scaling needs",
                "Do not scale",
            )
            return ArrayRows(array_ops.dense(rows.collect()))
        return rows

    def _readings(self, found: list[str]) -> dict[str, Reading]:
        if not (self.entries_ or self.formats_):
            return {}
        from gramian.rows.files.readings import Codes, Days

        here = dict(zip(self.names, found, strict=True))
        readings: dict[str, Reading] = {
            here[name]: Codes(tuple(entries)) for name, entries in self.entries_.items()
        }
        return readings | {here[name]: Days(format) for name, format in self.formats_.items()}

    def _check_gaps(self, table: Table, found: list[str]) -> None:
        if self.impute is None:
            from gramian.tables.gaps import FILL, REFIT, check_complete

            some = [name for name in found if name not in table.completed]
            check_complete(table, some, REFIT if self.learned_ else FILL)

    def _found(self, table: Table) -> list[str]:
        """Return the columns of a table that correspond to those of the fit."""
        if self.named and table.named:
            missing = [name for name in self.names if name not in table.names]
            if not missing:
                return self.names
            near = get_close_matches(missing[0], table.names, n=1)
            hint = f" Did you rename {missing[0]!r} to {near[0]!r}?" if near else ""
            raise ValueError(
                f"{table.said} lacks columns that the model was fitted on: {listed(missing)}.{hint}"
            )
        if not self.named and len(table.names) == self.width:
            return [table.names[int(name)] for name in self.names]
        if len(table.names) == len(self.names):
            return table.names
        whole = f", or {self.width} including unused ones" if not self.named else ""
        raise ValueError(
            f"{table.said} has {counted(len(table.names), 'column')}; the model was fitted on "
            f"{len(self.names)}{whole}."
        )

    def learn(self, raw: Rows) -> None:
        """Learn fills and scale in one pass over raw rows."""
        self.learned_ = True
        if self.scale == "none" and self.impute is None:
            return
        numbers, _, dates = self.uses_
        found = Statistics(raw, len(numbers) + len(dates), [*map(len, self.entries_.values())])
        if self.impute is not None:
            self.fills_ = found.fills(self.impute)
        if self.scale != "none":
            self.shift_, size = found.scale(self.scale, self.fills_)
            self.factor_ = 1.0 / np.where(size > 0, size, 1.0)

    def unknown_entries(self, raw: Rows) -> dict[str, int]:
        """Count the rows whose entries were not in the fit, for each column of text."""
        if not self.entries_:
            return {}
        first = raw.shape[1] - len(self.entries_)
        counts = raw.sum(_count_unknown(first), label="checking text")
        return {n: int(c) for n, c in zip(self.entries_, counts, strict=True) if c}

    def rows(self, raw: Rows) -> Rows:
        """Return the prepared rows: in memory if they fit in half the budget, else lazily."""
        rows: Rows = raw
        changed = self.factor_ is not None or self.fills_ is not None or self.dtype == "float32"
        if changed or self.entries_ or self.formats_:
            if self.unknown == "error":
                self._refuse_unknown(raw)
            columns = len(self.columns)
            work = 24 * len(self.names)
            rows = FeatureRows(raw, self._block, columns, self._dtype(raw), work_bytes=work)
        rows = rows.persist()
        rows.names = None  # they were already matched by name, if they have names
        return rows

    def _dtype(self, raw: Rows | Array) -> DType:
        return np.dtype(self.dtype) if raw.dtype == np.float64 else raw.dtype

    def _refuse_unknown(self, raw: Rows) -> None:
        for name, count in self.unknown_entries(raw).items():
            known = self.entries_[name]
            raise ValueError(
                f"Column {name!r} has {counted(count, 'row')} with a value that is none of the "
                f"{len(known)} known from the fit: {listed(known, 5)}."
            )

    def _block(self, x: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty((x.shape[0], len(self.columns)), dtype=self._dtype(x))
        numbers, _, dates = self.uses_
        values = x.astype(np.float64)
        if self.fills_ is not None:
            values = np.where(np.isnan(values), self.fills_, values)
        plain, width = len(numbers), len(date_parts.PARTS)
        scaled = values[:, : plain + len(dates)]
        if self.factor_ is not None:
            scaled = (scaled - self.shift_) * self.factor_
        out[:, :plain] = scaled[:, :plain]
        place = plain
        for i in range(plain, plain + len(dates)):
            out[:, place : place + width] = date_parts.parts(values[:, i])
            out[:, place] = scaled[:, i]
            place += width
        out[:, place:] = 0.0
        for i, entries in enumerate(self.entries_.values(), start=plain + len(dates)):
            known = np.flatnonzero(values[:, i] != UNKNOWN)
            out[known, place + values[known, i].astype(np.intp)] = 1.0
            place += len(entries)
        return out

    def steps(self) -> list[str]:
        """Say in a sentence each what is done to the columns."""
        numbers, categories, dates = self.uses_
        said = []
        if self.drop_missing:
            said.append("rows with missing values left out")
        if self.impute:
            how = self.impute.replace("-", " ") + (" value" if "-" in self.impute else "")
            said.append(f"missing numbers filled with the {how} of their column")
        if categories:
            said.append(f"{counted(len(categories), 'category column')} one-hot encoded")
            said[-1] += f": {', '.join(categories)}"
        if dates:
            said.append(f"dates as day, year, week and time of day: {', '.join(dates)}")
        if self.scale != "none" and (numbers or dates):
            how = "mean 0 and variance 1" if self.scale == "standard" else "the range 0 to 1"
            said.append(f"{counted(len(numbers) + len(dates), 'numeric column')} scaled to {how}")
        return said


def _count_unknown(first: int) -> BlockSum:
    def count(x: Array) -> Array:
        return (x[:, first:] == UNKNOWN).sum(axis=0)

    return count


def _entries_of(table: Table, names: list[str]) -> dict[str, list[str]]:
    """Return the sorted entries of text columns; of a view, only those in its rows."""
    entries = {name: _entries(table, name) for name in names}
    if table.numbers is None or not names:
        return entries
    from gramian.rows.files.readings import Codes

    codes = table.rows(names, {name: Codes(tuple(entries[name])) for name in names})
    most = max(map(len, entries.values()))
    seen = codes.sum(_count_codes(most), row_bytes=16 * len(names), label="checking text")
    return {
        name: [entry for entry, n in zip(entries[name], counts, strict=False) if n]
        for name, counts in zip(names, np.asarray(seen), strict=True)
    }


def _count_codes(most: int) -> BlockSum:
    """Return a function that counts the codes of each column, up to ``most``."""

    def count(x: Array) -> Array:
        return np.stack([np.bincount(c[c >= 0].astype(np.intp), minlength=most) for c in x.T])

    return count


def _entries(table: Table, name: str) -> list[str]:
    facts = table.facts[name]
    if facts.many:
        raise ValueError(
            f"Column {name!r} of {table.said} has more than {MOST_ENTRIES} different values; too "
            "many to encode."
        )
    if facts.kind not in ("text", "boolean", "date"):
        return sorted(str(entry) for entry in facts.entries)
    return sorted(facts.entries)


def _format(table: Table, name: str) -> str:
    from gramian.rows.files.readings import Days

    reading = table.facts[name].reading
    if not isinstance(reading, Days):
        raise ValueError(f"Column {name!r} of {table.said} has no dates.")
    return reading.format
