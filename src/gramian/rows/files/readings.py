"""Ways to read a column that is not plainly numeric as numbers; NaN where there is no value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow
import pyarrow.compute
from pyarrow import types

from gramian.rows.files.dialect import Dialect, minus_pattern, number_pattern, units_pattern

UNKNOWN = -1.0  # the code of an entry that is none of the known ones
DAY = 86_400_000_000  # microseconds
ISO = "ISO"
# Dates in the order they are tried; of those that fit every entry, the first is used.
FORMATS = (
    ISO, "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S", "%Y%m%d %H:%M:%S", "%d %b %Y", "%b %d, %Y",
)  # fmt: skip


class Reading(ABC):
    """Turns a column of a record batch into floats."""

    wide = True  # whether the values need float64

    @abstractmethod
    def __call__(self, values: pyarrow.Array) -> np.ndarray: ...


@dataclass(frozen=True)
class Codes(Reading):
    """The number of each entry among the known ones; -1 for others."""

    entries: tuple[str, ...]
    wide = False

    def __call__(self, values: pyarrow.Array) -> np.ndarray:
        known = pyarrow.array(self.entries, pyarrow.string())
        codes = pyarrow.compute.index_in(as_text(values), known, skip_nulls=True)
        out = codes.fill_null(int(UNKNOWN)).to_numpy(zero_copy_only=False).astype(np.float64)
        if values.null_count:
            out[values.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return out


@dataclass(frozen=True)
class NumberText(Reading):
    """Numbers with units, groups of digits and signs of any kind; NaN for other text."""

    dialect: Dialect

    def __call__(self, values: pyarrow.Array) -> np.ndarray:
        texts = as_text(values)
        numbers = pyarrow.compute.if_else(self.matches(texts), texts, None)
        clean = pyarrow.compute.replace_substring_regex(numbers, units_pattern() + r"|\s", "")
        clean = pyarrow.compute.replace_substring_regex(clean, minus_pattern(), r"-\1\2\3")
        if self.dialect.thousands:
            clean = pyarrow.compute.replace_substring(clean, self.dialect.thousands, "")
        if self.dialect.decimal != ".":
            clean = pyarrow.compute.replace_substring(clean, self.dialect.decimal, ".")
        clean = pyarrow.compute.replace_substring_regex(clean, r"^\+", "")
        return clean.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)

    def matches(self, texts: pyarrow.Array) -> pyarrow.Array:
        return pyarrow.compute.match_substring_regex(texts, number_pattern(self.dialect))


@dataclass(frozen=True)
class Days(Reading):
    """Dates as days since 1970, with the time of day as a fraction."""

    format: str = ISO

    def __call__(self, values: pyarrow.Array) -> np.ndarray:
        moments = self.moments(values).cast(pyarrow.int64())
        return moments.to_numpy(zero_copy_only=False).astype(np.float64) / DAY

    def moments(self, values: pyarrow.Array) -> pyarrow.Array:
        kind = pyarrow.timestamp("us")
        if types.is_timestamp(values.type) and values.type.tz:
            return values.cast(pyarrow.timestamp("us", values.type.tz)).cast(kind)
        if types.is_temporal(values.type):
            return values.cast(kind)
        texts = pyarrow.compute.utf8_trim_whitespace(as_text(values))
        if self.format == ISO:
            return pyarrow.compute.replace_substring_regex(texts, "Z$", "").cast(kind)
        return pyarrow.compute.strptime(texts, self.format, "us")


def date_format(entries: list[str]) -> str | None:
    """Return the format in which every entry is a date, or None."""
    if not entries or not all(any(c.isdigit() for c in entry) for entry in entries):
        return None
    texts = pyarrow.array(entries, pyarrow.string())
    return next((format for format in FORMATS if is_date(texts, format)), None)


def is_date(texts: pyarrow.Array, format: str) -> bool:
    try:
        Days(format).moments(texts)
    except pyarrow.ArrowInvalid:
        return False
    return True


def as_text(values: pyarrow.Array) -> pyarrow.Array:
    """Return a column as strings."""
    return values.cast(pyarrow.string())
