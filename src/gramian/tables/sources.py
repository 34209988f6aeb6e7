"""Open tables: files of rows, archives of arrays, svmlight files, named data sets."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from gramian import datasets
from gramian.backend import array_ops
from gramian.backend.wording import counted
from gramian.rows import Rows, as_rows
from gramian.rows.files import formats
from gramian.rows.files.formats import RowFile
from gramian.rows.files.rows import rows_of

__all__ = ["ArrayTable", "FileTable", "Table", "open_table"]

# The names of formats, and what they are.
FORMATS = {
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "npy": "NumPy",
    "npz": "NPZ",
    "svmlight": "svmlight",
}
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
ENDINGS = {**formats.FORMATS, ".npz": "NPZ"}
ENDINGS |= {ending + packed: "svmlight" for ending in SVMLIGHT for packed in ("", ".gz", ".bz2")}


class Table(ABC):
    """A table of columns.

    Attributes
    ----------
    said : str
        Its name in messages.
    names : list of str
        The names of the columns, or their numbers if they have no names.
    named : bool
        Whether the columns have names.
    texts : list of str
        The columns that are not numeric.
    n_rows : int
    target : array or None
        The target of a data set that has one in addition to its columns.
    """

    said: str
    names: list[str]
    named: bool
    texts: list[str]
    n_rows: int
    target: np.ndarray | None = None

    @abstractmethod
    def rows(self, names: list[str], categories: dict[str, list[str]]) -> Rows:
        """Return these columns as rows, with text columns as indices into their categories."""

    @abstractmethod
    def column(self, name: str) -> np.ndarray:
        """Return a whole column, numeric or not."""

    def entries(self, name: str, most: int) -> list[str]:
        """Return the distinct entries of a text column, sorted."""
        raise ValueError(f"{self.said} has no text columns.")

    def find(self, given: str) -> str:
        """Find a column by name or number."""
        if given in self.names:
            return given
        if given.isdecimal() and int(given) < len(self.names):
            return self.names[int(given)]
        near = get_close_matches(given, self.names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{self.said} has no column {given!r}.{hint} Its columns: {listed(self.names)}."
        )


class FileTable(Table):
    """Files of rows, read block by block."""

    def __init__(self, files: list[RowFile], said: str) -> None:
        self.files = files
        self.said = said
        first = files[0]
        self.names = [name for name in first.names if name not in first.left_out]
        self.named = first.named
        self.texts = [name for name in self.names if name not in first.numeric]
        self.n_rows = sum(file.n_rows for file in files)

    def rows(self, names: list[str], categories: dict[str, list[str]]) -> Rows:
        for file in self.files:
            for name in categories:
                if name in file.names:
                    file.encode(name, categories[name])
        return rows_of(self.files, columns=names)

    def column(self, name: str) -> np.ndarray:
        return np.concatenate([file.column(name) for file in self.files])

    def entries(self, name: str, most: int) -> list[str]:
        found = sorted({text for file in self.files for text in file.texts(name, most)})
        if len(found) > most:
            raise ValueError(f"Column {name!r} of {self.said} has more than {most} entries.")
        return found


class ArrayTable(Table):
    """An array in memory, dense or sparse, with or without a target."""

    texts: list[str] = []  # noqa: RUF012

    def __init__(
        self,
        data: Any,
        said: str,
        target: np.ndarray | None = None,
        names: list[str] | None = None,
    ) -> None:
        if getattr(data, "ndim", 0) != 2 or data.dtype.kind not in "biuf":
            raise ValueError(
                f"{said} must contain a numeric array with two dimensions, (rows, columns); got "
                f"shape {data.shape} and dtype {data.dtype}."
            )
        if target is not None and np.shape(target) != data.shape[:1]:
            raise ValueError(
                f"{said} must have one target per row, {counted(data.shape[0], 'row')}; got "
                f"shape {np.shape(target)}."
            )
        self.data = data
        self.said = said
        self.target = target
        self.named = names is not None
        self.names = [str(i) for i in range(data.shape[1])] if names is None else names
        self.n_rows = data.shape[0]

    def rows(self, names: list[str], categories: dict[str, list[str]]) -> Rows:
        if names == self.names:
            return as_rows(self.data, name=self.said)
        return as_rows(self.data[:, [self.names.index(name) for name in names]], name=self.said)

    def column(self, name: str) -> np.ndarray:
        return np.asarray(array_ops.dense(self.data[:, [self.names.index(name)]])).ravel()


def open_table(
    source: Any,
    *,
    format: str | None = None,
    header: bool | None = None,
    like: list[str] | None = None,
) -> Table:
    """Open a table: a file, a folder of parts, or a named data set.

    Parameters
    ----------
    source : path or str
        A file in a format of :func:`gramian.open_rows`, which is read block by block; an NPZ
        archive with arrays X and y, or with one array; an svmlight file; a folder of parts; or a
        name from :func:`gramian.datasets.names`, with ``:test`` appended for its test set.
    format : str, optional
        "csv", "tsv", "parquet", "arrow", "npy", "npz" or "svmlight". By default detected from the
        extension or the first bytes.
    header : bool, optional
        Whether the first line of a CSV file holds the column names.
    like : list of str, optional
        The columns that this table should have. An svmlight file may lack the last of them.

    Examples
    --------
    >>> from gramian.tables import open_table
    >>> table = open_table("iris")
    >>> table.n_rows, table.names, table.target.shape
    (150, ['0', '1', '2', '3'], (150,))
    """
    path = Path(source).expanduser()
    formats.check_link(path)
    if not path.exists():
        return _named_set(str(source))
    said = repr(str(source))
    if path.is_dir():
        if format is not None:
            raise ValueError(f"{said} is a folder; its files are recognised by their extensions.")
        return FileTable([formats.open_file(one, header) for one in formats.find(path)], said)
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"The file {said} is empty.")
    kind = FORMATS[format] if format else _ending(path) or _by_content(path, said)
    if kind == "NPZ":
        return _npz(path, said)
    if kind == "svmlight":
        return _svmlight(path, said, like)
    return FileTable([formats.open_file(path.absolute(), header, kind)], said)


def _ending(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)


def _by_content(path: Path, said: str) -> str:
    """Detect the format from the first bytes."""
    with open(path, "rb") as file:
        start = file.read(2**16)
    known = {b"\x93NUMPY": "NumPy", b"PAR1": "Parquet", b"ARROW1": "Arrow", b"PK\x03\x04": "NPZ"}
    for magic, kind in known.items():
        if start.startswith(magic):
            return kind
    line = start.partition(b"\n")[0]
    if re.fullmatch(rb"\S+(\s+(qid|\d+):\S+)+\s*(#.*)?", line):
        return "svmlight"
    for separator, kind in ((b"\t", "TSV"), (b",", "CSV")):
        if separator in line and b"\0" not in start:
            return kind
    raise ValueError(
        f"The format of {said} is not clear from its extension or first line; name it: "
        f"{', '.join(FORMATS)}."
    )


def _named_set(source: str) -> Table:
    name, _, part = source.partition(":")
    known = datasets.names()
    if name not in known or part not in ("", "train", "test"):
        folder = Path(source).expanduser().parent
        beside = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        near = get_close_matches(Path(source).name, [*beside, *known], n=1)
        hint = f" Did you mean {str(folder / near[0])!r}?" if near else ""
        raise FileNotFoundError(f"There is no file, folder or data set {source!r}.{hint}")
    data = datasets.load(name)
    if part == "test":
        if data.X_test is None:
            raise ValueError(f"The data set {name!r} has no test set.")
        return ArrayTable(data.X_test, repr(source), data.y_test)
    return ArrayTable(data.X, repr(source), data.y)


def _npz(path: Path, said: str) -> Table:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            for X, y in (("X", "y"), ("X_train", "y_train")):
                if X in archive.files:
                    return ArrayTable(archive[X], said, archive[y] if y in archive.files else None)
            if len(archive.files) == 1:
                return ArrayTable(archive[archive.files[0]], said)
            found = list(archive.files)
    except ValueError:
        raise
    except Exception as error:  # damaged files raise many types
        raise OSError(f"The file {said} could not be read: {error}") from error
    raise ValueError(
        f"{said} must contain the arrays X and y, X_train and y_train, or a single array; got "
        f"{listed(found)}."
    )


def _svmlight(path: Path, said: str, like: list[str] | None) -> Table:
    """Read an svmlight file; columns are named by their numbers, which start at 0 or 1."""
    from sklearn.datasets import load_svmlight_file  # takes long to import

    width = 1 + max(map(int, like)) if like and all(map(str.isdecimal, like)) else None
    try:
        X, y = load_svmlight_file(str(path), n_features=width, zero_based=True)
    except OverflowError as error:
        raise OSError(
            f"The file {said} could not be read as svmlight: it has a column number above "
            f"{2**31 - 1}."
        ) from error
    except (ValueError, OSError, EOFError) as error:
        raise OSError(f"The file {said} could not be read as svmlight: {error}") from error
    first = 1 if like is None and X.shape[1] > 1 and X[:, [0]].nnz == 0 else 0
    names = [str(i) for i in range(first, X.shape[1])]
    return ArrayTable(X[:, first:], said, y, names)


def listed(names: list[str]) -> str:
    """Return names for a message, shortened if there are many."""
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown}, and {len(names) - 10} more" if len(names) > 10 else shown
