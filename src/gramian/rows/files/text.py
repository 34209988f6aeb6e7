"""CSV and TSV files, in any country's notation, plain or compressed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow
import pyarrow.csv

from gramian.backend import config
from gramian.rows.files import dialect as dialects
from gramian.rows.files import streams
from gramian.rows.files.arrow import ArrowFile
from gramian.rows.files.formats import Numbers
from gramian.rows.files.survey import Facts, survey

TEXT_BYTES = 1024**2  # what is parsed at a time
TEXTS_AHEAD = 40  # pyarrow holds this many times as much, since it reads ahead


class CsvFile(ArrowFile):
    """Lines of text with a separator between entries, read from the first one each time."""

    jumps = False

    def __init__(
        self,
        path: Path,
        *,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        header: bool | None = None,
    ) -> None:
        self._given = {"separator": separator, "decimal": decimal, "header": header}
        self._encoding = encoding
        super().__init__(path)

    def _look(self) -> None:
        self._quoted = False
        chunks = self._scanned()
        encoding = self._encoding or dialects.encoding_of(chunks)
        for _ in chunks:  # to the end: any quotes count
            pass
        with self._text(encoding) as lines:
            sample = dialects.first_lines(lines)
        if not sample:
            raise ValueError("it has no lines")
        self._longest = max(map(len, sample))
        self.dialect = dialects.recognise(sample, encoding, **self._given)  # type: ignore[arg-type]
        sample = list(self.dialect.unified(sample))
        self.named = self.dialect.named
        self.names = list(self.dialect.names)
        self._kinds = self._first_kinds(sample)
        self.n_rows, self.facts = self._surveyed()
        self._set_numeric()

    def _scanned(self) -> Iterator[bytes]:
        """Yield the bytes of the file, noting whether any entry is in quotes."""
        for chunk in streams.chunks(self.path):
            self._quoted = self._quoted or b'"' in chunk or b"'" in chunk
            yield chunk

    @contextmanager
    def _text(self, encoding: str) -> Iterator[TextIO]:
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        with (
            streams.unpacked(self.path) as file,
            io.TextIOWrapper(file, encoding, errors="replace", newline="") as lines,
        ):
            yield lines

    @contextmanager
    def _entries(self) -> Iterator[Any]:
        """Open a reader of all lines as lists of entries."""
        written = self.dialect
        with self._text(written.encoding) as lines:
            unified = written.unified(lines)
            yield csv.reader(unified, delimiter=written.separator, quotechar=written.quote)

    def _first_kinds(self, sample: list[str]) -> list[pyarrow.DataType]:
        """Return the type of each column in the first lines."""
        written = self.dialect
        rows = list(self._rows_of(iter(sample[written.skip :])))
        kinds: list[pyarrow.DataType] = []
        for i in range(len(self.names)):
            cells = [row[i] for row in rows if i < len(row) and not dialects.is_missing(row[i])]
            if all(dialects.is_plain_number(cell, written.decimal) for cell in cells):
                kinds.append(pyarrow.float64())
            elif all(map(dialects.is_boolean, cells)):
                kinds.append(pyarrow.bool_())
            else:
                kinds.append(pyarrow.string())
        return kinds

    def _rows_of(self, lines: Iterator[str]) -> Iterator[list[str]]:
        written = self.dialect
        reader = csv.reader(lines, delimiter=written.separator, quotechar=written.quote)
        return (row for row in reader if row)

    def _surveyed(self) -> tuple[int, dict[str, Facts]]:
        while True:
            try:
                with self._stream() as reader:
                    return survey(_numbered(reader), self.names, self.dialect)
            except pyarrow.ArrowInvalid as error:
                column = re.search(r"In CSV column #(\d+): .*conversion error", str(error))
                if column is None or self._kinds[int(column[1])] == pyarrow.string():
                    raise ValueError(self._said(error)) from error
                self._kinds[int(column[1])] = pyarrow.string()

    def _said(self, error: Exception) -> str:
        """Return an error of the parser, with the line that it is in."""
        if "Expected" not in str(error):
            return str(error)
        width = len(self.names)
        with self._entries() as reader:
            for row in reader:
                if row and reader.line_num > self.dialect.skip and len(row) != width:
                    return (
                        f"line {reader.line_num}: Expected {width} columns, got {len(row)}: "
                        f"{self.dialect.separator.join(row)[:100]}"
                    )
        return str(error)

    def _set_numeric(self) -> None:
        self.numeric = {}
        for name, facts in self.facts.items():
            if facts.kind in ("number", "empty") and not facts.n_odd:
                self.numeric[name] = np.dtype(np.float64)
            elif facts.kind == "boolean":
                self.numeric[name] = np.dtype(bool)
            if facts.kind == "number" and facts.reading is not None:
                self.readings[name] = facts.reading
        # Writers leave the column of row numbers without a name, and columns that were emptied.
        unnamed = [str(i) for i, name in enumerate(self.names) if name == str(i)]
        empty = [name for name in unnamed if self.facts[name].kind == "empty"]
        self.left_out = [*self.names[:1], *empty] if self.names[:1] == [""] else empty

    def _options(self, names: Sequence[str]) -> dict[str, object]:
        size = min(TEXT_BYTES, config.memory_budget() // TEXTS_AHEAD)
        size = max(size, 8 * self._longest, 2**14)  # a line must fit
        written = self.dialect
        kinds = dict(zip(self.names, self._kinds, strict=True))
        return {
            "read_options": pyarrow.csv.ReadOptions(
                block_size=min(size, 2**30),
                column_names=self.names,
                skip_rows=written.skip,
                use_threads=config.n_threads() > 1,
                encoding=self._stream_encoding(),
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=written.separator,
                quote_char=written.quote,
                newlines_in_values=self._quoted,
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                include_columns=names,
                column_types=kinds,
                null_values=dialects.missing_values(),
                strings_can_be_null=True,
                decimal_point=written.decimal,
            ),
        }

    def _stream_encoding(self) -> str:
        encoding = self.dialect.encoding
        rewritten = self.dialect.separator == dialects.WHITE_SPACE
        return "utf8" if rewritten or encoding.startswith("utf-8") else encoding

    @contextmanager
    def _bytes(self) -> Iterator[Any]:
        """Open the file for pyarrow, which takes one sign for a separator."""
        if self.dialect.separator == dialects.WHITE_SPACE:
            with (
                self._text(self.dialect.encoding) as lines,
                streams.lent(streams.of_lines(self.dialect.unified(lines))) as file,
            ):
                yield file
        elif self._stream_encoding() == "utf8":
            with streams.readable_by_arrow(self.path) as file:
                yield file
        else:  # pyarrow calls Python's decoders
            with streams.unpacked(self.path) as unpacked, streams.lent(unpacked) as file:
                yield file

    @contextmanager
    def _stream(self, names: Sequence[str] = ()) -> Iterator[pyarrow.RecordBatchReader]:
        with (
            self._bytes() as file,
            pyarrow.csv.open_csv(file, **self._options(names)) as reader,
        ):
            yield reader

    def _batches(
        self, numbers: Numbers, names: list[str], most: int
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        last = int(numbers[-1])
        with self._stream(names) as reader:
            for first, batch in _numbered(reader):
                yield first, batch
                if first + batch.num_rows > last:
                    return

    def _values(self, name: str) -> pyarrow.ChunkedArray:
        with self._stream([name]) as reader:
            values = reader.read_all().column(name).slice(0, self.n_rows)
        facts = self.facts[name]
        whole = facts.kind == "number" and facts.whole and not facts.missing
        return values.cast(pyarrow.int64()) if whole and abs(facts.high) < 2**53 else values

    def lines(self, rows: Sequence[int]) -> list[int]:
        """Return the lines of these rows, as an editor counts them."""
        wanted, found = set(rows), {}
        with self._entries() as reader:
            row, before = 0, 0
            for cells in reader:
                if cells and reader.line_num > self.dialect.skip:
                    if row in wanted:
                        found[row] = before + 1
                    row += 1
                    if len(found) == len(wanted):
                        break
                before = reader.line_num
        return [found[row] for row in rows]


def _numbered(
    reader: pyarrow.RecordBatchReader,
) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    first = 0
    for batch in reader:
        yield first, batch
        first += batch.num_rows
