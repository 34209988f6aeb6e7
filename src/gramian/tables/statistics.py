"""Statistics: the middle, spread and most frequent values of columns with gaps, in one pass."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gramian.backend.array_ops import Array
from gramian.rows import Rows

SAMPLE = 100_000  # rows that medians come from, if there are more


class Statistics:
    """What imputation and scaling need to know of raw rows.

    Parameters
    ----------
    raw : Rows
        Columns of numbers first, then columns of codes; NaN where there is no value.
    n_numbers : int
    entries : list of int
        The number of codes of each column of codes.
    """

    def __init__(self, raw: Rows, n_numbers: int, entries: list[int]) -> None:
        self.n = raw.shape[0]
        self._numbers = n_numbers
        self._codes = entries
        step = max(self.n // SAMPLE, 1)
        self._sampled = range(0, self.n, step)
        first = raw.take(range(min(self.n, 1000)))[:, :n_numbers].astype(np.float64)
        # Near the mean, against cancellation.
        self._near = np.nan_to_num(first).mean(axis=0)
        self._ends: list[tuple[np.ndarray, np.ndarray]] = []
        self._present, self._sums, self._squares, self._counts = raw.sum(
            self._part, row_bytes=24 * raw.shape[1], label="scaling"
        )
        self._raw = raw  # not before: what is above may be sent to other processes

    def _part(self, x: Array) -> tuple[Array, ...]:
        numbers = x[:, : self._numbers].astype(np.float64)
        full = ~np.isnan(numbers)
        ends = (
            np.where(full, numbers, np.inf).min(axis=0),
            np.where(full, numbers, -np.inf).max(axis=0),
        )
        self._ends.append(ends)
        numbers = np.where(full, numbers - self._near, 0.0)
        return full.sum(axis=0), numbers.sum(axis=0), (numbers**2).sum(axis=0), self._count(x)

    def _count(self, x: Array) -> Array:
        """Count the codes of all columns, one after the other."""
        counts = []
        for i, size in enumerate(self._codes, start=self._numbers):
            codes = x[:, i][x[:, i] >= 0].astype(np.intp)
            counts.append(np.bincount(codes, minlength=size))
        return np.concatenate([np.zeros(0), *counts])

    def fills(self, how: str) -> np.ndarray:
        """Return what fills the gaps of each column: codes get the most frequent one."""
        if how == "mean":
            fills = self._near + self._sums / np.maximum(self._present, 1)
        else:
            middle = np.median if how == "median" else _most_frequent
            sample = self._raw.take(self._sampled)[:, : self._numbers].astype(np.float64)
            present = [column[~np.isnan(column)] for column in sample.T]
            fills = np.array([middle(c) if len(c) else 0.0 for c in present], dtype=np.float64)
        edges = np.cumsum([0, *self._codes])
        counts = [self._counts[a:b] for a, b in pairwise(edges)]
        return np.concatenate([fills, [float(np.argmax(c)) for c in counts]])

    def scale(self, how: str, fills: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the shift and the size of each column of numbers once its gaps are filled."""
        if how == "minmax":
            lows, highs = (np.asarray(ends) for ends in zip(*self._ends, strict=True))
            low = lows.min(axis=0)
            return low, highs.max(axis=0) - low
        sums, squares = self._sums, self._squares
        if fills is not None:
            gaps, filled = self.n - self._present, fills[: self._numbers] - self._near
            sums, squares = sums + gaps * filled, squares + gaps * filled**2
        mean = sums / self.n
        shift = self._near + mean
        size = np.sqrt(np.maximum(squares / self.n - mean**2, 0.0))
        size[size <= 1e-12 * np.abs(shift)] = 0.0  # a constant column, but for rounding
        return shift, size


def _most_frequent(values: np.ndarray) -> float:
    entries, counts = np.unique(values, return_counts=True)
    return float(entries[np.argmax(counts)])
