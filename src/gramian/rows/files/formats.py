"""Files of rows: find them, recognise their format, and read them piece by piece."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gramian.backend import optional
from gramian.backend.typing import DType, PathLike
from gramian.backend.wording import counted

# Row numbers in ascending order, consecutive or not.
Numbers = range | np.ndarray

FORMATS = {
    ".npy": "NumPy",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".tsv": "TSV",
    ".tsv.gz": "TSV",
}


class RowFile(ABC):
    """One file of rows, opened only while it is read.

    Attributes
    ----------
    names : list of str
        The names of all columns, or their numbers if the file has no names.
    named : bool
        Whether the file has names.
    jumps : bool
        Whether rows in the middle can be read without reading those before.
    numeric : dict of str to dtype
        The dtype of each numeric column.
    left_out : list of str
        Columns that are not data, such as the index that pandas stores.
    categories : dict of str to list of str
        Text columns that are read as numbers: the index of each entry in these lists.
    n_rows : int
    """

    names: list[str]
    named: bool = True
    jumps: bool = True
    numeric: dict[str, np.dtype]
    left_out: Sequence[str] = ()
    n_rows: int

    def __init__(self, path: Path) -> None:
        self.path = path
        self.categories: dict[str, list[str]] = {}
        self._opened: tuple[int, int] | None = None
        with self._reading():
            self._opened = self._state()
            self._look()

    @abstractmethod
    def _look(self) -> None:
        """Read the names and types of the columns, and the number of rows."""

    @abstractmethod
    def _read(
        self, numbers: Numbers, names: list[str], dtype: DType, most: int
    ) -> Iterator[np.ndarray]: ...

    @abstractmethod
    def _column(self, name: str) -> np.ndarray: ...

    def read(
        self, numbers: Numbers, names: list[str], dtype: DType, most: int
    ) -> Iterator[np.ndarray]:
        """Yield these columns of the rows with these ascending numbers, about ``most`` at a time.

        Pieces are NumPy arrays of shape (rows, columns) in which missing values are NaN. They may
        still have to be converted to ``dtype``.
        """
        count = 0
        with self._reading():
            for piece in self._read(numbers, names, dtype, most):
                count += len(piece)
                yield piece
            if count < len(numbers):
                requested = counted(len(numbers), "requested row")
                raise OSError(f"it ends after {count} of {requested}")

    def column(self, name: str) -> np.ndarray:
        """Return a whole column, in the type it has in the file."""
        with self._reading():
            return self._column(name)

    def texts(self, name: str, most: int) -> list[str]:
        """Return the distinct entries of a text column, sorted; at most ``most`` are allowed."""
        with self._reading():
            return sorted(self._texts(name, most))

    def _texts(self, name: str, most: int) -> set[str]:
        raise ValueError("it has no columns of text")

    def encode(self, name: str, categories: list[str]) -> None:
        """Read a text column as numbers from now on: the index of each entry in this list."""
        self.categories[name] = categories
        self.numeric[name] = np.dtype(np.float32)  # exact for these, and does not force float64

    def _state(self) -> tuple[int, int]:
        state = self.path.stat()
        return state.st_size, state.st_mtime_ns

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Make errors name the file; refuse a file that has changed since it was opened."""
        try:
            if self._opened is not None and self._state() != self._opened:
                raise OSError("it has changed since it was opened; open it again")
            yield
        except MemoryError:
            raise
        except FileNotFoundError as error:
            raise FileNotFoundError(f"There is no file {str(self.path)!r}.") from error
        except Exception as error:  # pyarrow has errors of many types
            said = str(error).rstrip(".")
            raise OSError(f"The file {str(self.path)!r} could not be read: {said}.") from error


class NpyFile(RowFile):
    """An NPY file with a two-dimensional array, read in stretches of rows.

    It is not memory-mapped: mapped pages count as memory of the process, and truncating a mapped
    file would crash the process.
    """

    named = False

    def _look(self) -> None:
        with self.path.open("rb") as file:
            header = _NPY_HEADERS.get(np.lib.format.read_magic(file))
            if header is None:
                raise ValueError("only arrays of records have this version of the format")
            shape, self._by_columns, dtype = header(file)
            self._offset = file.tell()
        if len(shape) != 2 or dtype.kind not in "biuf":
            raise ValueError(
                "expected an array of numbers with two dimensions, (rows, columns); it has shape "
                f"{shape} and dtype {dtype}"
            )
        self._dtype, self._shape = dtype, shape
        needed, size = self._offset + shape[0] * shape[1] * dtype.itemsize, self._state()[0]
        if size < needed:
            raise ValueError(f"its array takes {needed} bytes, but it has only {size}")
        self.n_rows = int(shape[0])
        self.names = [str(i) for i in range(shape[1])]
        self.numeric = dict.fromkeys(self.names, dtype)

    def _read(
        self, numbers: Numbers, names: list[str], dtype: DType, most: int
    ) -> Iterator[np.ndarray]:
        columns = range(self._shape[1]) if names == self.names else [int(name) for name in names]
        stretch = self._some_columns if self._by_columns else self._some_rows
        with self.path.open("rb", buffering=0) as file:
            for start in range(0, len(numbers), most):
                some = numbers[start : start + most]
                yield from (stretch(file, part, columns) for part in self._stretches(some))

    def _stretches(self, numbers: Numbers) -> Iterator[Numbers]:
        """Split the numbers into stretches that are read at once, including the rows between."""
        if isinstance(numbers, range) or self._by_columns or len(numbers) < 2:
            yield numbers
            return
        between = np.diff(numbers) * (self._shape[1] * self._dtype.itemsize)
        edges = [0, *(np.flatnonzero(between > _SKIP_BYTES) + 1), len(numbers)]
        yield from (numbers[start:stop] for start, stop in pairwise(edges))

    def _some_rows(self, file: FileIO, numbers: Numbers, columns: Sequence[int]) -> np.ndarray:
        first, width = int(numbers[0]), self._shape[1]
        rows = np.empty((int(numbers[-1]) + 1 - first, width), self._dtype)
        _fill(file, self._offset + first * width * self._dtype.itemsize, rows)
        rows = rows if isinstance(numbers, range) else rows[numbers - first]
        return rows if len(columns) == width else rows[:, columns]

    def _some_columns(self, file: FileIO, numbers: Numbers, columns: Sequence[int]) -> np.ndarray:
        first, height = int(numbers[0]), self._shape[0]
        column = np.empty(int(numbers[-1]) + 1 - first, self._dtype)
        out = np.empty((len(numbers), len(columns)), self._dtype)
        for i, j in enumerate(columns):
            _fill(file, self._offset + (j * height + first) * self._dtype.itemsize, column)
            out[:, i] = column if isinstance(numbers, range) else column[numbers - first]
        return out

    def _column(self, name: str) -> np.ndarray:
        pieces = self._read(range(self.n_rows), [name], self._dtype, _COLUMN_ROWS)
        return np.concatenate([np.empty((0, 1), self._dtype), *pieces])[:, 0]


_NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_SKIP_BYTES = 16 * 1024  # a gap between two rows is read too if it is at most this
_COLUMN_ROWS = 65536  # read at a time for a single column


def _fill(file: FileIO, offset: int, out: np.ndarray) -> None:
    """Read bytes of a file, starting at an offset, into an array."""
    file.seek(offset)
    memory: Any = memoryview(out.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    done = 0
    while done < len(memory):
        count = file.readinto(memory[done:])
        if not count:
            raise OSError(f"it ends {len(memory) - done} bytes too early")
        done += count


def within(numbers: Numbers, start: int, stop: int) -> Numbers:
    """Return the ascending numbers from start to stop - 1, relative to start."""
    if isinstance(numbers, range):
        return range(max(numbers.start, start) - start, min(numbers.stop, stop) - start)
    first, last = np.searchsorted(numbers, (start, stop))
    return numbers[first:last] - start


def suffix(path: PathLike) -> str | None:
    """Return the ending that identifies a file's format; None if it is unknown."""
    name = os.fspath(path).lower()
    return next((ending for ending in FORMATS if name.endswith(ending)), None)


def is_path(X: object) -> bool:
    """Whether X is a path, or a string that can only be the name of a file of rows."""
    return suffix(X) is not None if isinstance(X, str) else isinstance(X, os.PathLike)


def find(path: PathLike | Sequence[PathLike]) -> list[Path]:
    """Return the files of a path, a list of paths, or a folder of parts."""
    if not isinstance(path, str | os.PathLike):
        files = [file for one in path for file in find(one)]
        if not files:
            raise ValueError("Expected a path or a list of paths; got an empty list.")
        return files
    path = Path(path).expanduser().absolute()
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    if path.is_dir():
        return _parts(path)
    if suffix(path) is None:
        raise ValueError(
            f"The ending of {str(path)!r} is not one of the known formats: {', '.join(FORMATS)}."
        )
    return [path]


def _parts(folder: Path) -> list[Path]:
    # Programs that write parts add files such as _SUCCESS, _metadata and .part.crc.
    inside = sorted(
        one for one in folder.iterdir() if one.name[0] not in "._" and suffix(one) and one.is_file()
    )
    formats = {FORMATS[suffix(one) or ""] for one in inside}
    if len(formats) != 1:
        what = f"files of several formats ({', '.join(sorted(formats))})" if formats else "no files"
        raise ValueError(
            f"The folder {str(folder)!r} has {what} that end in {', '.join(FORMATS)}; expected "
            "parts of one format."
        )
    return inside


def open_file(path: Path, header: bool | None = None, kind: str | None = None) -> RowFile:
    """Open a file; ``header`` says whether the first line of a CSV file names the columns.

    ``kind`` is one of the values of ``FORMATS``; by default, the ending determines it.
    """
    kind = kind or FORMATS[suffix(path) or ""]
    if kind == "NumPy":
        return NpyFile(path)
    with optional.needed("pyarrow", f"Reading {kind} files"):
        from gramian.rows.files import arrow
    if kind == "Parquet":
        return arrow.ParquetFile(path)
    if kind == "Arrow":
        return arrow.IpcFile(path)
    return arrow.CsvFile(path, "\t" if kind == "TSV" else ",", header)


def empty_table(names: list[str]) -> Any:
    """Return a table with these columns and no rows, for code that reads names from tables."""
    with optional.needed("pyarrow", "Selecting columns by name"):
        from gramian.rows.files import arrow

    return arrow.empty_table(names)
