"""Preparation: turn the columns of a table into rows of numbers, the same way for every table."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, FeatureRows, Rows
from gramian.tables.sources import Table, listed

__all__ = ["Preparation"]

MOST_ENTRIES = 1000  # distinct entries of a text column


class Preparation:
    """Which columns of a table become rows, and how.

    Columns are matched by name, in any order, or by number if the table has no names. A text column
    becomes one column of 0 and 1 per distinct entry. Scaling shifts and scales each numeric column.

    Parameters
    ----------
    table : Table
    target : str, optional
        A column, by name or number, to leave out as the target.
    exclude : sequence of str
        Other columns to leave out.
    one_hot : bool, default=False
        Whether to encode text columns.
    scale : {"standard", "minmax"}, optional
        Mean 0 and variance 1, or from 0 to 1, on the rows that ``learn_scale`` sees.

    Attributes
    ----------
    names : list of str
        The columns of the table that are used.
    columns : list of str
        The columns of the rows.

    Examples
    --------
    >>> from gramian.tables import Preparation, open_table
    >>> table = open_table("iris")
    >>> preparation = Preparation(table, exclude=["0"], scale="minmax")
    >>> preparation.learn_scale(preparation.raw(table))
    >>> rows = preparation.rows(preparation.raw(table))
    >>> rows.shape, rows.take([0, 1]).round(2)
    ((150, 3), array([[0.62, 0.07, 0.04],
           [0.42, 0.07, 0.04]]))
    """

    def __init__(
        self,
        table: Table,
        *,
        target: str | None = None,
        exclude: Sequence[str] = (),
        one_hot: bool = False,
        scale: str | None = None,
    ) -> None:
        self.scale = (
            scale if scale is None else choice(self, "scale", scale, ("standard", "minmax"))
        )
        self.target = None if target is None else table.find(target)
        self.named = table.named
        self.width = len(table.names)
        left_out = {self.target, *(table.find(name) for name in exclude)}
        self.names = [name for name in table.names if name not in left_out]
        texts = [name for name in self.names if name in table.texts]
        if not self.names or (len(texts) == len(self.names) and not one_hot):
            raise ValueError(f"{table.said} has no numeric column.")
        if texts and not one_hot:
            raise ValueError(
                f"{table.said} has columns that are not numeric: {listed(texts)}. Drop them with "
                "--exclude, or encode them with --one-hot."
            )
        self.categories = {name: table.entries(name, MOST_ENTRIES) for name in texts}
        self.shift: np.ndarray | None = None
        self.factor: np.ndarray | None = None

    @property
    def columns(self) -> list[str]:
        columns: list[str] = []
        for name in self.names:
            entries = self.categories.get(name)
            columns += [name] if entries is None else [f"{name}={entry}" for entry in entries]
        return columns

    def raw(self, table: Table) -> Rows:
        """Return the used columns of a table unchanged, with text as category numbers."""
        rows = table.rows(self._found(table), self.categories)
        if self.scale and array_ops.issparse(getattr(rows, "data", None)):
            config.check_fits(
                rows.shape[0] * rows.shape[1] * array_ops.itemsize(rows.dtype),
                f"{table.said} in dense form, which scaling needs",
                "Do not scale",
            )
            return ArrayRows(array_ops.dense(rows.collect()))
        return rows

    def _found(self, table: Table) -> list[str]:
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

    def learn_scale(self, raw: Rows) -> None:
        """Learn the scaling in one pass over raw rows; do nothing if there is no scaling."""
        if self.scale is None:
            return
        numbers = [i for i, name in enumerate(self.names) if name not in self.categories]
        first = raw.take(range(min(raw.shape[0], 1000)))[:, numbers]
        middle = first.mean(axis=0, dtype=np.float64)  # near the mean, against cancellation
        ends: list[tuple[np.ndarray, np.ndarray]] = []

        def part(x: Array) -> tuple[Array, Array]:
            x = x[:, numbers].astype(np.float64)
            ends.append((x.min(axis=0), x.max(axis=0)))
            x -= middle
            return x.sum(axis=0), (x * x).sum(axis=0)

        sums, squares = raw.sum(part, row_bytes=16 * len(numbers), label="scaling")
        if self.scale == "standard":
            mean = sums / raw.shape[0]
            self.shift = middle + mean
            size = np.sqrt(np.maximum(squares / raw.shape[0] - mean**2, 0.0))
            size[size <= 1e-12 * np.abs(self.shift)] = 0.0  # a constant column, but for rounding
        else:
            lows, highs = zip(*ends, strict=True)
            self.shift = np.min(lows, axis=0)
            size = np.max(highs, axis=0) - self.shift
        self.factor = 1.0 / np.where(size > 0, size, 1.0)

    def rows(self, raw: Rows) -> Rows:
        """Return the prepared rows: in memory if they fit in half the budget, else lazily."""
        rows: Rows = raw
        if self.factor is not None or self.categories:
            work = 16 * len(self.names)
            rows = FeatureRows(raw, self._block, len(self.columns), raw.dtype, work_bytes=work)
        rows = rows.persist()
        rows.names = None  # they were already matched by name, if they have names
        return rows

    def _block(self, x: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty((x.shape[0], len(self.columns)), dtype=x.dtype)
        out[...] = 0.0
        place, sources, places = 0, [], []
        for i, name in enumerate(self.names):
            if name in self.categories:
                out[np.arange(len(x)), place + x[:, i].astype(np.intp)] = 1.0
                place += len(self.categories[name])
            else:
                sources.append(i)
                places.append(place)
                place += 1
        numbers: Any = x[:, sources]
        if self.factor is not None:
            numbers = (numbers.astype(np.float64) - self.shift) * self.factor
        out[:, places] = numbers
        return out
