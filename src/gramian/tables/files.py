"""Tables of files, of arrays, and of data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gramian.backend import array_ops, optional
from gramian.backend.typing import ArrayLike
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, Rows, as_rows
from gramian.rows.files.facts import FEW, Facts
from gramian.rows.files.formats import RowFile
from gramian.rows.files.opening import rows_of
from gramian.tables.base import Table

if TYPE_CHECKING:
    from gramian.rows.files.readings import Reading

__all__ = ["ArrayTable", "FileTable", "frame_table"]


class FileTable(Table):
    """Files of rows, read block by block."""

    def __init__(self, files: list[RowFile], said: str, target: np.ndarray | None = None) -> None:
        self.files = files
        self.said = said
        first = files[0]
        self.names = [name for name in first.names if name not in first.left_out]
        self.named = first.named
        self.n_rows = sum(file.n_rows for file in files)
        self._target = target
        dialect = getattr(first, "dialect", None)
        self.notation = dialect.describe() if dialect else ""
        if dialect:
            self.opened_with = {
                "separator": dialect.separator,
                "decimal": dialect.decimal,
                "encoding": dialect.encoding,
            }

    @cached_property
    def facts(self) -> dict[str, Facts]:  # type: ignore[override]
        return {name: _joined(self.files, name) for name in self.names}

    def lines(self, rows: Sequence[int]) -> list[int]:
        found: list[int] = []
        first = 0
        for file in self.files:
            own = [row - first for row in rows if first <= row < first + file.n_rows]
            found += file.lines(own) if own else []
            first += file.n_rows
        return found

    def _rows(self, names: list[str], readings: Mapping[str, Reading]) -> Rows:
        files = [file.read_as({**_numbers(file, names), **readings}) for file in self.files]
        return rows_of(files, columns=names, gaps=True)

    def _column(self, name: str) -> np.ndarray:
        files = [file.read_as(_numbers(file, [name])) for file in self.files]
        return np.concatenate([file.column(name, gaps=True) for file in files])


def _numbers(file: RowFile, names: list[str]) -> dict[str, Reading]:
    """Return how to read those of the columns whose text holds numbers."""
    facts = [file.facts[name] for name in names if name in file.facts]
    return {one.name: one.reading for one in facts if one.kind == "number" and one.reading}


def _joined(files: list[RowFile], name: str) -> Facts:
    """Return what a column of several files holds."""
    whole: Facts | None = None
    first = 0
    for file in files:
        facts = file.facts.get(name)
        if facts is None:
            raise ValueError(
                f"{str(file.path)!r} must have the columns of {str(files[0].path)!r}; it lacks "
                f"{name!r}."
            )
        facts = replace(
            facts,
            gaps=[first + row for row in facts.gaps],
            odd=[(first + row, text) for row, text in facts.odd],
        )
        whole = facts if whole is None else _added(whole, facts)
        first += file.n_rows
    assert whole is not None
    return whole


def _added(one: Facts, other: Facts) -> Facts:
    entries = dict(one.entries)
    for entry, count in other.entries.items():
        entries[entry] = entries.get(entry, 0) + count
    kinds = {one.kind, other.kind} - {"empty"}
    kind = kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"
    return replace(
        one,
        kind=kind,
        rows=one.rows + other.rows,
        missing=one.missing + other.missing,
        gaps=(one.gaps + other.gaps)[:FEW],
        n_odd=one.n_odd + other.n_odd,
        odd=(one.odd + other.odd)[:FEW],
        low=min(one.low, other.low),
        high=max(one.high, other.high),
        whole=one.whole and other.whole,
        rising=False,
        unique=one.unique and other.unique and one.high < other.low,
        entries=entries,
        reading=one.reading or other.reading,
    )


class ArrayTable(Table):
    """An array in memory, dense or sparse, with or without a target."""

    def __init__(
        self,
        data: ArrayLike,
        said: str,
        target: np.ndarray | None = None,
        names: list[str] | None = None,
    ) -> None:
        if getattr(data, "ndim", 0) != 2 or data.dtype.kind not in "biuf":
            raise ValueError(
                f"{said} must contain a numeric array with two dimensions, (rows, columns); got "
                f"shape {data.shape} and dtype {data.dtype}."
            )
        check_target(target, data.shape[0], said)
        self.data = data
        self.sparse = array_ops.issparse(data)
        self.said = said
        self._target = target
        self.named = names is not None
        self.names = [str(i) for i in range(data.shape[1])] if names is None else names
        self.n_rows = data.shape[0]

    @cached_property
    def facts(self) -> dict[str, Facts]:  # type: ignore[override]
        found = {name: Facts(name, "number", rows=self.n_rows, whole=False) for name in self.names}
        if self.data.dtype.kind == "f" and not array_ops.issparse(self.data):
            for i in np.flatnonzero(np.isnan(self.data.sum(axis=0))):
                found[self.names[i]].count_gaps(np.isnan(self.data[:, i]), 0)
        return found

    def _rows(self, names: list[str], readings: Mapping[str, Reading]) -> Rows:
        data = self.data
        if names != self.names:
            data = data[:, [self.names.index(name) for name in names]]
        if any(self.facts[name].missing for name in names):
            if np.isinf(data).any():
                raise ValueError(f"{self.said} contains infinity.")
            return ArrayRows(data)
        return as_rows(data, name=self.said)

    def _column(self, name: str) -> np.ndarray:
        return np.asarray(array_ops.dense(self.data[:, [self.names.index(name)]])).ravel()


def check_target(target: np.ndarray | None, n_rows: int, said: str) -> None:
    if target is not None and np.shape(target) != (n_rows,):
        raise ValueError(
            f"{said} must have one target per row, {counted(n_rows, 'row')}; got "
            f"shape {np.shape(target)}."
        )


def frame_table(frame: ArrayLike, said: str = "the data frame") -> Table:
    """Return a pandas or polars data frame, or an Arrow table, as a table."""
    with optional.needed("pyarrow", "Preparing data frames"):
        import pyarrow

        from gramian.rows.files.arrow import MemoryFile
    if hasattr(frame, "to_arrow"):
        frame = frame.to_arrow()
    elif not isinstance(frame, pyarrow.Table):
        frame = pyarrow.Table.from_pandas(frame, preserve_index=False)
    return FileTable([MemoryFile(frame, Path(said))], said)
