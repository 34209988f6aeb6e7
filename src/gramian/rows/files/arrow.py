"""Parquet and Arrow files of rows, read in record batches by pyarrow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from pyarrow import types

from gramian.backend import config
from gramian.rows.files.facts import Facts
from gramian.rows.files.formats import Numbers, RowFile, within
from gramian.rows.files.survey import survey

BATCH_ROWS = 2**16  # looked at together


class ArrowFile(RowFile):
    """What pyarrow reads, in record batches."""

    def _set_columns(self, schema: Any) -> None:
        self.names = list(schema.names)
        kinds = ((field.name, _number_type(field.type)) for field in schema)
        self.numeric = {name: kind for name, kind in kinds if kind is not None}
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self.left_out = [name for name in index if name in self.names]

    @abstractmethod
    def _batches(self, numbers: Numbers, names: list[str], most: int) -> Iterator[tuple[int, Any]]:
        """Record batches that hold rows with these numbers, with the number of their first row."""

    @abstractmethod
    def _values(self, name: str) -> Any:
        """A column as a chunked array."""

    def _read(
        self, numbers: Numbers, names: list[str], dtype: Any, most: int
    ) -> Iterator[np.ndarray]:
        for first, batch in self._batches(numbers, names, most):
            own = within(numbers, first, first + batch.num_rows)
            if isinstance(own, np.ndarray):
                batch = batch.take(pyarrow.array(own))
            elif len(own):
                batch = batch.slice(own.start, len(own))
            if len(own):
                yield self._matrix(batch, names, dtype)

    def _matrix(self, batch: Any, names: list[str], dtype: Any) -> np.ndarray:
        """Columns of a record batch side by side; NaN where there is no value."""
        out = np.empty((batch.num_rows, len(names)), dtype=dtype)
        for i, name in enumerate(names):
            values = batch.column(name)
            if name in self.readings:
                out[:, i] = self.readings[name](values)
                continue
            if values.null_count or types.is_decimal(values.type):
                values = values.cast(pyarrow.float64())
            out[:, i] = values.to_numpy(zero_copy_only=False)
        return out

    @cached_property
    def facts(self) -> dict[str, Facts]:
        with self._reading():
            batches = self._batches(range(self.n_rows), self.names, BATCH_ROWS)
            return survey(batches, self.names)[1]

    def _column(self, name: str) -> np.ndarray:
        values = self._values(name)
        if types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if name in self.readings:
            return np.concatenate([self.readings[name](chunk) for chunk in values.chunks])
        if types.is_temporal(values.type):
            values = values.cast(pyarrow.string())
        elif values.null_count and types.is_integer(values.type):
            values = values.cast(pyarrow.float64())
        return values.to_numpy()


class ParquetFile(ArrowFile):
    """Read page by page; row groups without rows that are asked for are passed over."""

    def _look(self) -> None:
        with pyarrow.parquet.ParquetFile(self.path) as file:
            self._set_columns(file.schema_arrow)
            groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._edges = [int(edge) for edge in np.cumsum([0, *groups])]
        self.n_rows = self._edges[-1]

    def _batches(self, numbers: Numbers, names: list[str], most: int) -> Iterator[tuple[int, Any]]:
        # With a buffer, a column is read as it is needed; without, a row group's share of it.
        buffer = max(4096, min(2**16, config.memory_budget() // (16 * len(names))))
        with pyarrow.parquet.ParquetFile(self.path, buffer_size=buffer, pre_buffer=False) as file:
            for group, (first, stop) in enumerate(pairwise(self._edges)):
                own = within(numbers, first, stop)
                if not len(own):
                    continue
                last = first + int(own[-1])
                for batch in file.iter_batches(
                    min(most, last + 1 - first),
                    row_groups=[group],
                    columns=names,
                    use_threads=config.n_threads() > 1,
                ):
                    yield first, batch
                    first += batch.num_rows
                    if first > last:
                        break

    def _values(self, name: str) -> Any:
        with pyarrow.parquet.ParquetFile(self.path) as file:
            return file.read([name]).column(name)


class IpcFile(ArrowFile):
    """An Arrow IPC file, also called Feather: record batches, mapped into memory."""

    def _look(self) -> None:
        with pyarrow.memory_map(str(self.path)) as source:
            self._set_columns(pyarrow.ipc.open_file(source).schema)
            # To be counted, compressed batches must be unpacked: one column of them is enough.
            one = pyarrow.ipc.IpcReadOptions(included_fields=[0])
            reader = pyarrow.ipc.open_file(source, options=one)
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        self._edges = [int(edge) for edge in np.cumsum([0, *sizes])]
        self.n_rows = self._edges[-1]

    def _batches(self, numbers: Numbers, names: list[str], most: int) -> Iterator[tuple[int, Any]]:
        with pyarrow.memory_map(str(self.path)) as source:
            reader = pyarrow.ipc.open_file(source)
            for i, (first, stop) in enumerate(pairwise(self._edges)):
                if len(within(numbers, first, stop)):
                    batch = reader.get_batch(i)
                    for start in range(0, stop - first, most):
                        yield first + start, batch.slice(start, most)

    def _values(self, name: str) -> Any:
        with pyarrow.memory_map(str(self.path)) as source:
            reader = pyarrow.ipc.open_file(source)
            batches = map(reader.get_batch, range(reader.num_record_batches))
            return pyarrow.chunked_array([batch.column(name) for batch in batches])


class MemoryFile(ArrowFile):
    """An Arrow table in memory: of a data frame, or of a spreadsheet that was read as a whole."""

    def __init__(self, table: Any, path: Path, named: bool = True, first_line: int = 1) -> None:
        self._table = table
        self._first_line = first_line
        self.named = named
        super().__init__(path)

    def _state(self) -> tuple[int, int]:
        return 0, 0

    def _look(self) -> None:
        self._set_columns(self._table.schema)
        self.n_rows = self._table.num_rows

    def _batches(self, numbers: Numbers, names: list[str], most: int) -> Iterator[tuple[int, Any]]:
        first = 0
        for batch in self._table.select(names).to_batches(max_chunksize=most):
            yield first, batch
            first += batch.num_rows

    def _values(self, name: str) -> Any:
        return self._table.column(name)

    def lines(self, rows: Sequence[int]) -> list[int]:
        return [row + self._first_line for row in rows]


def _number_type(kind: Any) -> np.dtype | None:
    """The number type of an arrow type; None where it is none."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    # A column without any value would take numbers.
    return np.dtype(np.float64) if types.is_decimal(kind) or types.is_null(kind) else None


def empty_table(names: list[str]) -> Any:
    """A table with these columns and no rows."""
    return pyarrow.schema([(name, pyarrow.float64()) for name in names]).empty_table()
