"""Files of rows: find them, recognise their format, and read them piece by piece."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.backend import optional
from gramian.backend.typing import DType, PathLike
from gramian.backend.wording import counted
from gramian.rows.files.facts import Facts
from gramian.rows.files.streams import PACKED

if TYPE_CHECKING:
    import pyarrow

    from gramian.rows.files.readings import Reading

# Row numbers in ascending order, consecutive or not.
Numbers = range | np.ndarray

FORMATS = {
    ".npy": "NumPy",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    **{f".csv{packed}": "CSV" for packed in ("", *PACKED)},
    **{f".tsv{packed}": "TSV" for packed in ("", *PACKED)},
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
        Columns that are no data, such as the index that pandas stores.
    readings : dict of str to Reading
        How to read columns that are not plainly numeric as numbers.
    facts : dict of str to Facts
        What each column holds, from one pass over the file.
    n_rows : int
    """

    names: list[str]
    named: bool = True
    jumps: bool = True
    numeric: dict[str, np.dtype]
    left_out: Sequence[str] = ()
    n_rows: int
    facts: Any  # what each column holds; some formats look only when they are asked

    def __init__(self, path: Path) -> None:
        self.path = path
        self.readings: dict[str, Reading] = {}
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
            self._check_unchanged()

    def column(self, name: str, *, gaps: bool = False) -> np.ndarray:
        """Return a whole column, in the type it has in the file.

        Missing values are an error, unless there may be ``gaps``: then they are NaN or None.
        """
        with self._reading():
            values = self._column(name)
            missing = np.flatnonzero(gaps_in(values))
            if len(missing) and not gaps:
                raise ValueError(f"column {name!r} has no value in row {missing[0]}")
            return values

    def read_as(self, readings: Mapping[str, Reading]) -> RowFile:
        """Return the same file, with these columns read as numbers."""
        other = copy(self)
        other.readings = {**self.readings, **readings}
        kinds = {n: np.dtype(np.float64 if r.wide else np.float32) for n, r in readings.items()}
        other.numeric = {**self.numeric, **kinds}
        return other

    def lines(self, rows: Sequence[int]) -> list[int]:
        """Return where these rows are, as a person would count: from 1."""
        return [row + 1 for row in rows]

    def _state(self) -> tuple[int, int]:
        state = self.path.stat()
        return state.st_size, state.st_mtime_ns

    def check_unchanged(self) -> None:
        """Raise an error if the file has changed since it was opened."""
        with self._reading():
            pass

    def _check_unchanged(self) -> None:
        if self._opened is not None and self._state() != self._opened:
            raise OSError("it has changed since it was opened; open it again")

    def held_bytes(self, names: Sequence[str]) -> int:
        """Return what reading these columns takes besides the pieces, whatever their size."""
        return 0

    def fitting(self, names: Sequence[str], room: int) -> str:
        """Say how the file should be written so that ``held_bytes`` is at most ``room``."""
        return "Write it in smaller parts"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Make errors name the file; refuse a file that has changed since it was opened."""
        try:
            self._check_unchanged()
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

    @contextmanager
    def _bytes(self) -> Iterator[Any]:
        """Open the array's bytes."""
        with self.path.open("rb", buffering=0) as file:
            yield file

    def _size(self) -> int:
        return self._state()[0]

    def _look(self) -> None:
        with self._bytes() as file:
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
        needed, size = self._offset + shape[0] * shape[1] * dtype.itemsize, self._size()
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
        with self._bytes() as file:
            for start in range(0, len(numbers), most):
                some = numbers[start : start + most]
                for part in self._stretches(some):
                    yield stretch(file, part, columns)

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

    @cached_property
    def facts(self) -> dict[str, Facts]:
        found = [Facts(name, "number", whole=False) for name in self.names]
        first = 0
        for piece in self.read(range(self.n_rows), self.names, self._dtype, _COLUMN_ROWS):
            if piece.dtype.kind == "f" and np.isnan(piece).any():
                for column, one in zip(piece.T, found, strict=True):
                    one.count_gaps(np.isnan(column), first)
            first += len(piece)
        return {one.name: one for one in found}

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


def gaps_in(values: np.ndarray) -> np.ndarray:
    """Return which values are missing: NaN among numbers, None among others."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


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


def check_link(path: Path) -> None:
    """Raise an error that says so if a path is a link that leads nowhere."""
    if path.is_symlink() and not path.exists():
        target = os.readlink(path)
        raise FileNotFoundError(f"{str(path)!r} is a link to {target!r}, which leads to no file.")


def find(path: PathLike | Sequence[PathLike]) -> list[Path]:
    """Return the files of a path, a list of paths, or a folder of parts."""
    if not isinstance(path, str | os.PathLike):
        files = [file for one in path for file in find(one)]
        if not files:
            raise ValueError("Expected a path or a list of paths; got an empty list.")
        return files
    path = Path(path).expanduser().absolute()
    check_link(path)
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


def open_file(path: Path, kind: str | None = None, **text: Any) -> RowFile:
    """Open a file; ``text`` has the options of :class:`~gramian.rows.files.text.CsvFile`.

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
    from gramian.rows.files.text import CsvFile

    return CsvFile(path, **text)


def empty_table(names: list[str]) -> pyarrow.Table:
    """Return a table with these columns and no rows, for code that reads names from tables."""
    with optional.needed("pyarrow", "Selecting columns by name"):
        from gramian.rows.files import arrow

    return arrow.empty_table(names)
