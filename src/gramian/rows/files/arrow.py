"""Parquet and Arrow files of rows, read in record batches by pyarrow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from pyarrow import types

from gramian.backend import config
from gramian.backend.typing import DType
from gramian.backend.wording import counted
from gramian.rows.files.facts import Facts
from gramian.rows.files.formats import Numbers, RowFile, within
from gramian.rows.files.survey import survey

BATCH_ROWS = 2**16  # looked at together
PAGE_BYTES = 1024**2  # writers end a page, and a dictionary, at this size


class ArrowFile(RowFile):
    """Base class of files that pyarrow reads in record batches."""

    def _set_columns(self, schema: pyarrow.Schema) -> None:
        self.names = list(schema.names)
        kinds = ((field.name, _number_type(field.type)) for field in schema)
        self.numeric = {name: kind for name, kind in kinds if kind is not None}
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self.left_out = [name for name in index if name in self.names]

    @abstractmethod
    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        """Yield the record batches with these rows, and the number of their first row."""

    @abstractmethod
    def _values(self, name: str) -> pyarrow.ChunkedArray:
        """Return a column as a chunked array."""

    def _read(
        self, numbers: Numbers, names: list[str], dtype: DType, most: int
    ) -> Iterator[np.ndarray]:
        for first, batch in self._batches(numbers, names, most):
            inside = within(numbers, first, first + batch.num_rows)
            if isinstance(inside, np.ndarray):
                batch = batch.take(pyarrow.array(inside))
            elif len(inside):
                batch = batch.slice(inside.start, len(inside))
            if len(inside):
                yield self._matrix(batch, names, dtype)

    def _matrix(self, batch: pyarrow.RecordBatch, names: list[str], dtype: DType) -> np.ndarray:
        """Return columns of a record batch as a matrix; missing values become NaN."""
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
    """A Parquet file, read page by page; row groups without requested rows are skipped."""

    def _look(self) -> None:
        with pyarrow.parquet.ParquetFile(self.path) as file:
            self._set_columns(file.schema_arrow)
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            largest = max(groups, key=lambda group: group.total_byte_size, default=None)
            self._largest = 0 if largest is None else largest.num_rows
            self._pages = {} if largest is None else _page_bytes(largest)
        self._edges = [int(edge) for edge in np.cumsum([0, *(group.num_rows for group in groups)])]
        self.n_rows = self._edges[-1]

    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        # With a buffer, columns are read as needed; without one, a whole row group at a time.
        options = {"buffer_size": _buffer_bytes(len(names)), "pre_buffer": False}
        with pyarrow.parquet.ParquetFile(self.path, **options) as file:
            for group, (first, stop) in enumerate(pairwise(self._edges)):
                inside = within(numbers, first, stop)
                if not len(inside):
                    continue
                last = first + int(inside[-1])
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

    def held_bytes(self, names: Sequence[str]) -> int:
        pages = sum(self._pages.get(name, 0) for name in names)  # of all columns at once
        return pages + len(names) * _buffer_bytes(len(names))

    def fitting(self, names: Sequence[str], room: int) -> str:
        rows = _round_number(self._largest * room // self.held_bytes(names))
        return (
            f"Its largest row group has {counted(self._largest, 'row')}; write it with row groups "
            f"of at most {counted(rows, 'row')} (row_group_size={rows} in pandas and pyarrow)"
        )

    def _values(self, name: str) -> pyarrow.ChunkedArray:
        with pyarrow.parquet.ParquetFile(self.path) as file:
            return file.read([name]).column(name)


def _round_number(rows: int) -> int:
    """Round a count down to one significant digit; at least 1."""
    rows = max(1, rows)
    return rows - rows % 10 ** (len(str(rows)) - 1)


def _buffer_bytes(columns: int) -> int:
    return max(4096, min(2**16, config.memory_budget() // (16 * columns)))


def _page_bytes(group: pyarrow.parquet.RowGroupMetaData) -> dict[str, int]:
    """What a reader holds of each column of a row group: a page, and a dictionary if it has one.

    A page is as long as the column's share of the group, or ``PAGE_BYTES``.
    """
    sizes: dict[str, int] = {}
    for i in range(group.num_columns):
        column = group.column(i)
        name = column.path_in_schema.split(".")[0]
        pages = 2 if column.has_dictionary_page else 1
        sizes[name] = sizes.get(name, 0) + pages * min(column.total_uncompressed_size, PAGE_BYTES)
    return sizes


class IpcFile(ArrowFile):
    """An Arrow IPC file, also called Feather, read in its record batches.

    It is not mapped into memory: a file that shrinks would end the process.
    """

    def _look(self) -> None:
        with self._reader([0]) as reader:  # batches may have to be unpacked to count their rows
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        with self._reader(None) as reader:
            self._set_columns(reader.schema)
            self._widths = {field.name: _width(field.type) for field in reader.schema}
        self._edges = [int(edge) for edge in np.cumsum([0, *sizes])]
        self._largest = max(sizes, default=0)
        self.n_rows = self._edges[-1]

    @contextmanager
    def _reader(self, columns: Sequence[int] | None) -> Iterator[pyarrow.ipc.RecordBatchFileReader]:
        options = pyarrow.ipc.IpcReadOptions(included_fields=columns)
        with pyarrow.OSFile(str(self.path)) as source:
            yield pyarrow.ipc.open_file(source, options=options)

    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        with self._reader([self.names.index(name) for name in names]) as reader:
            for i, (first, stop) in enumerate(pairwise(self._edges)):
                if len(within(numbers, first, stop)):
                    batch = reader.get_batch(i)
                    for start in range(0, stop - first, most):
                        yield first + start, batch.slice(start, most)

    def held_bytes(self, names: Sequence[str]) -> int:
        """The memory of a batch with all its columns, and of these unpacked if it is compressed."""
        unpacked = sum(self._widths[name] for name in names)
        return self._largest * (sum(self._widths.values()) + unpacked)

    def fitting(self, names: Sequence[str], room: int) -> str:
        rows = _round_number(self._largest * room // self.held_bytes(names))
        return (
            f"Its largest record batch has {counted(self._largest, 'row')}; write it with at most "
            f"{counted(rows, 'row')} in a batch (chunksize={rows} of pandas' to_feather)"
        )

    def _values(self, name: str) -> pyarrow.ChunkedArray:
        with self._reader([self.names.index(name)]) as reader:
            batches = map(reader.get_batch, range(reader.num_record_batches))
            return pyarrow.chunked_array([batch.column(name) for batch in batches])


def _width(kind: pyarrow.DataType) -> int:
    """Return about how many bytes a value takes."""
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:  # of texts and other values of no fixed length
        return 16


class MemoryFile(ArrowFile):
    """An Arrow table in memory: of a data frame, or of a spreadsheet that was read as a whole."""

    def __init__(
        self, table: pyarrow.Table, path: Path, named: bool = True, first_line: int = 1
    ) -> None:
        self._table = table
        self._first_line = first_line
        self.named = named
        super().__init__(path)

    def _state(self) -> tuple[int, int]:
        return 0, 0

    def _look(self) -> None:
        self._set_columns(self._table.schema)
        self.n_rows = self._table.num_rows

    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        first = 0
        for batch in self._table.select(names).to_batches(max_chunksize=most):
            yield first, batch
            first += batch.num_rows

    def _values(self, name: str) -> pyarrow.ChunkedArray:
        return self._table.column(name)

    def lines(self, rows: Sequence[int]) -> list[int]:
        return [row + self._first_line for row in rows]


def _number_type(kind: pyarrow.DataType) -> np.dtype | None:
    """Return the NumPy dtype of an arrow type; None if it is not numeric."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    # A column of nulls counts as numeric.
    return np.dtype(np.float64) if types.is_decimal(kind) or types.is_null(kind) else None


def empty_table(names: list[str]) -> pyarrow.Table:
    """A table with these columns and no rows."""
    return pyarrow.schema([(name, pyarrow.float64()) for name in names]).empty_table()
