"""Parquet, Arrow and CSV files of rows. Only this module imports pyarrow."""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types

from gramian.backend import config
from gramian.backend.typing import DType
from gramian.rows.files.formats import Numbers, RowFile, within

Kinds: TypeAlias = dict[str, pyarrow.DataType]

TEXT_BYTES = 1024**2  # parsed at a time
TEXTS_AHEAD = 40  # pyarrow reads ahead, and may hold this many times TEXT_BYTES


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
            if name in self.categories:
                values = _codes(name, values, self.categories[name])
            elif values.null_count or types.is_decimal(values.type):
                values = values.cast(pyarrow.float64())
            out[:, i] = values.to_numpy(zero_copy_only=False)
        return out

    def _texts(self, name: str, most: int) -> set[str]:
        found: set[str] = set()
        for _, batch in self._batches(range(self.n_rows), [name], 2**16):
            found.update(pyarrow.compute.unique(_text(name, batch.column(name))).to_pylist())
            if len(found) > most:
                raise ValueError(f"column {name!r} has more than {most} different entries")
        return found

    def _column(self, name: str) -> np.ndarray:
        values = self._values(name)
        if types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if values.null_count:
            row = next(i for i, value in enumerate(values) if not value.is_valid)
            raise ValueError(f"column {name!r} has no value in row {row}")
        return values.to_numpy()


class ParquetFile(ArrowFile):
    """A Parquet file, read page by page; row groups without requested rows are skipped."""

    def _look(self) -> None:
        with pyarrow.parquet.ParquetFile(self.path) as file:
            self._set_columns(file.schema_arrow)
            groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._edges = [int(edge) for edge in np.cumsum([0, *groups])]
        self.n_rows = self._edges[-1]

    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        # With a buffer, columns are read as needed; without one, a whole row group at a time.
        buffer = max(4096, min(2**16, config.memory_budget() // (16 * len(names))))
        with pyarrow.parquet.ParquetFile(self.path, buffer_size=buffer, pre_buffer=False) as file:
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

    def _values(self, name: str) -> pyarrow.ChunkedArray:
        with pyarrow.parquet.ParquetFile(self.path) as file:
            return file.read([name]).column(name)


class IpcFile(ArrowFile):
    """An Arrow IPC file, also called Feather: record batches, mapped into memory."""

    def _look(self) -> None:
        with pyarrow.memory_map(str(self.path)) as source:
            self._set_columns(pyarrow.ipc.open_file(source).schema)
            # Compressed batches must be unpacked to count their rows; one column is enough.
            one = pyarrow.ipc.IpcReadOptions(included_fields=[0])
            reader = pyarrow.ipc.open_file(source, options=one)
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        self._edges = [int(edge) for edge in np.cumsum([0, *sizes])]
        self.n_rows = self._edges[-1]

    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        with pyarrow.memory_map(str(self.path)) as source:
            reader = pyarrow.ipc.open_file(source)
            for i, (first, stop) in enumerate(pairwise(self._edges)):
                if len(within(numbers, first, stop)):
                    batch = reader.get_batch(i)
                    for start in range(0, stop - first, most):
                        yield first + start, batch.slice(start, most)

    def _values(self, name: str) -> pyarrow.ChunkedArray:
        with pyarrow.memory_map(str(self.path)) as source:
            reader = pyarrow.ipc.open_file(source)
            batches = map(reader.get_batch, range(reader.num_record_batches))
            return pyarrow.chunked_array([batch.column(name) for batch in batches])


class CsvFile(ArrowFile):
    """A text file with a delimiter between entries, always read from the start."""

    jumps = False

    def __init__(self, path: Path, delimiter: str, header: bool | None) -> None:
        self._delimiter = delimiter
        self._header = header
        super().__init__(path)

    def _look(self) -> None:
        first = self._first_line()
        self.named = _is_header(first) if self._header is None else self._header
        self.names = first if self.named else [str(i) for i in range(len(first))]
        with self._stream() as reader:
            self._set_columns(reader.schema)
        if self.names[:1] == [""]:  # row numbers, as pandas and R write them
            self.left_out = [""]
        first_column = {self.names[0]: pyarrow.binary()}  # whatever it holds
        with self._stream(list(first_column), first_column) as reader:
            self.n_rows = sum(batch.num_rows for batch in reader)

    def _first_line(self) -> list[str]:
        with (
            pyarrow.input_stream(str(self.path)) as source,
            io.TextIOWrapper(source, "utf-8-sig", errors="replace", newline="") as lines,
        ):
            first = next(csv.reader(lines, delimiter=self._delimiter), [])
            self._longest = max(map(len, (",".join(first), *islice(lines, 100))))
        return first

    def _options(self, names: Sequence[str], kinds: Kinds | None = None) -> dict[str, Any]:
        size = min(TEXT_BYTES, config.memory_budget() // TEXTS_AHEAD)
        size = max(size, 8 * self._longest, 2**14)  # a line must fit
        return {
            "read_options": pyarrow.csv.ReadOptions(
                block_size=min(size, 2**30),
                column_names=None if self.named else self.names,
                use_threads=config.n_threads() > 1,
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                include_columns=names, column_types=kinds
            ),
        }

    def _stream(
        self, names: Sequence[str] = (), kinds: Kinds | None = None
    ) -> pyarrow.csv.CSVStreamingReader:
        return pyarrow.csv.open_csv(self.path, **self._options(names, kinds))

    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        kinds = {name: self._kind(name) for name in names}
        first, last = 0, int(numbers[-1])
        with self._stream(names, kinds) as reader:
            for batch in reader:
                yield first, batch
                first += batch.num_rows
                if first > last:
                    return

    def _kind(self, name: str) -> pyarrow.DataType:
        if name in self.categories or name not in self.numeric:
            return pyarrow.string()
        # A column that starts with integers may contain fractions later.
        return pyarrow.bool_() if self.numeric[name].kind == "b" else pyarrow.float64()

    def _values(self, name: str) -> pyarrow.ChunkedArray:
        # Read at once, not as a stream, so that the type is inferred from all values.
        return pyarrow.csv.read_csv(self.path, **self._options([name])).column(name)


def _is_header(line: list[str]) -> bool:
    """Whether the first line of a CSV file names the columns; a line of numbers does not.

    The exception is 0, 1, 2, ..., which pandas writes for columns without names.
    """
    if line == [str(i) for i in range(len(line))]:
        return True
    try:
        return not [float(entry) for entry in line]
    except ValueError:
        return True


def _number_type(kind: pyarrow.DataType) -> np.dtype | None:
    """Return the NumPy dtype of an arrow type; None if it is not numeric."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    # A column of nulls counts as numeric.
    return np.dtype(np.float64) if types.is_decimal(kind) or types.is_null(kind) else None


def _text(name: str, values: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Return a column as strings."""
    if values.null_count:
        raise ValueError(f"column {name!r} has missing values")
    return values.cast(pyarrow.string())


def _codes(name: str, values: pyarrow.ChunkedArray, categories: list[str]) -> pyarrow.ChunkedArray:
    """Return the index of each entry in the categories."""
    texts = _text(name, values)
    codes = pyarrow.compute.index_in(texts, pyarrow.array(categories, pyarrow.string()))
    if codes.null_count:
        unknown = next(t.as_py() for t, c in zip(texts, codes, strict=True) if not c.is_valid)
        raise ValueError(
            f"column {name!r} has the entry {unknown!r}, which is not one of the "
            f"{len(categories)} known entries: {', '.join(map(repr, categories[:5]))}"
            f"{', ...' if len(categories) > 5 else ''}"
        )
    return codes


def empty_table(names: list[str]) -> pyarrow.Table:
    """Return a table with these columns and no rows."""
    return pyarrow.schema([(name, pyarrow.float64()) for name in names]).empty_table()
