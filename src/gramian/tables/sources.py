"""Open tables: files of rows, archives of arrays, svmlight files, spreadsheets, named data sets."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from gramian.backend import config
from gramian.backend.typing import ArrayLike
from gramian.rows.files import formats, streams
from gramian.tables.base import Table, listed
from gramian.tables.files import ArrayTable, FileTable, check_target, frame_table

__all__ = ["as_table", "open_table"]

# The names of formats, and what they are.
FORMATS = {
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "npy": "NumPy",
    "npz": "NPZ",
    "svmlight": "svmlight",
    "excel": "Excel",
}
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
EXCEL = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
ENDINGS = {**formats.FORMATS, ".npz": "NPZ", **dict.fromkeys(EXCEL, "Excel")}
ENDINGS |= {ending + packed: "svmlight" for ending in SVMLIGHT for packed in ("", ".gz", ".bz2")}


def as_table(source: ArrayLike, like: list[str] | None = None) -> Table:
    """Return a table as it is, a data frame as a table, and open anything else."""
    if isinstance(source, Table):
        return source
    if hasattr(source, "columns") or type(source).__module__.startswith("pyarrow"):
        return frame_table(source)
    if isinstance(source, np.ndarray):
        return ArrayTable(source, "the array")
    return open_table(source, like=like)


def open_table(
    source: ArrayLike,
    *,
    format: str | None = None,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    like: list[str] | None = None,
) -> Table:
    """Open a table: a file, a folder of parts, or a named data set.

    Parameters
    ----------
    source : path or str
        A file in a format of :func:`gramian.open_rows`, which is read block by block; an NPZ
        archive with arrays X and y, or with one array; an svmlight file; an Excel file, whose
        first sheet is read; a folder of parts; or a name from :func:`gramian.datasets.names`, with
        ``:test`` appended for its test set.
    format : str, optional
        "csv", "tsv", "parquet", "arrow", "npy", "npz", "svmlight" or "excel". By default detected
        from the extension or the first bytes.
    header : bool, optional
        Whether the first line of a CSV file holds the column names.
    separator, decimal, encoding : str, optional
        How a CSV file is written: the sign between entries, the decimal sign and the encoding. By
        default recognised from the file.
    like : list of str, optional
        The columns that this table should have. An svmlight file may lack the last of them.

    Examples
    --------
    >>> from gramian.tables import open_table
    >>> table = open_table("iris")
    >>> table.n_rows, table.names, table.target.shape
    (150, ['0', '1', '2', '3'], (150,))
    """
    given = {"header": header, "separator": separator, "decimal": decimal, "encoding": encoding}
    path = Path(source).expanduser()
    formats.check_link(path)
    table = _opened(source, path, format, given, like)
    table.source = str(source)
    asked = {"format": format, "header": header}
    table.opened_with = {**table.opened_with, **{k: v for k, v in asked.items() if v is not None}}
    return table


def _opened(
    source: ArrayLike,
    path: Path,
    format: str | None,
    given: dict[str, Any],
    like: list[str] | None,
) -> Table:
    if not path.exists():
        return _named_set(str(source))
    said = repr(str(source))
    if path.is_dir():
        if format is not None:
            raise ValueError(f"{said} is a folder; its files are recognised by their extensions.")
        return FileTable([formats.open_file(one, **given) for one in formats.find(path)], said)
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"The file {said} is empty.")
    kind = FORMATS[format] if format else _ending(path) or _by_content(path, said)
    if kind == "NPZ":
        return _npz(path, said)
    if kind == "svmlight":
        return _svmlight(path, said, like)
    if kind == "Excel":
        from gramian.tables.excel import excel_table

        return excel_table(path, said, given["header"])
    if kind == "TSV" and given["separator"] is None:
        given = {**given, "separator": "\t"}
    return FileTable([formats.open_file(path.absolute(), kind, **given)], said)


def _ending(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)


def _by_content(path: Path, said: str) -> str:
    """Detect the format from the first bytes."""
    with open(path, "rb") as file:
        start = file.read(2**16)
    known = {b"\x93NUMPY": "NumPy", b"PAR1": "Parquet", b"ARROW1": "Arrow"}
    for magic, kind in known.items():
        if start.startswith(magic):
            return kind
    if start.startswith(b"PK\x03\x04"):
        return "Excel" if b"[Content_Types].xml" in start else "NPZ"
    start = next(streams.chunks(path), b"")
    line = start.partition(b"\n")[0]
    if re.fullmatch(rb"\S+(\s+(qid|\d+):\S+)+\s*(#.*)?", line):
        return "svmlight"
    text = b"\0" not in start or start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if text and any(separator in line.strip() for separator in (b"\t", b",", b";", b"|", b" ")):
        return "CSV"
    raise ValueError(
        f"The format of {said} is not clear from its extension or first line; name it: "
        f"{', '.join(FORMATS)}."
    )


def check_name(source: str) -> None:
    """Raise an error if there is no data set of this name."""
    from gramian import datasets  # takes long to import

    name, _, part = source.partition(":")
    known = datasets.names()
    if name not in known or part not in ("", "train", "test"):
        formats.check_link(Path(source).expanduser())
        folder = Path(source).expanduser().parent
        beside = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        near = get_close_matches(Path(source).name, [*beside, *known], n=1)
        hint = f" Did you mean {str(folder / near[0])!r}?" if near else ""
        raise FileNotFoundError(f"There is no file, folder or data set {source!r}.{hint}")


def _named_set(source: str) -> Table:
    from gramian import datasets

    check_name(source)
    name, _, part = source.partition(":")
    data = datasets.load(name)
    if part == "test":
        if data.X_test is None:
            raise ValueError(f"The data set {name!r} has no test set.")
        return ArrayTable(data.X_test, repr(source), data.y_test)
    return ArrayTable(data.X, repr(source), data.y)


def _npz(path: Path, said: str) -> Table:
    """Open an archive of arrays; X is read block by block where it lies."""
    from gramian.tables.archives import NpzFile, array_names, read_array

    try:
        found = array_names(path)
        for X, y in (("X", "y"), ("X_train", "y_train"), (found[0] if len(found) == 1 else "", "")):
            if X in found:
                file = NpzFile(path, X)
                target = read_array(path, y) if y in found else None
                check_target(target, file.n_rows, said)
                return FileTable([file], said, target)
    except (ValueError, OSError):
        raise
    except Exception as error:  # damaged files raise many types
        raise OSError(f"The file {said} could not be read: {error}") from error
    raise ValueError(
        f"{said} must contain the arrays X and y, X_train and y_train, or a single array; got "
        f"{listed(found)}."
    )


def _svmlight(path: Path, said: str, like: list[str] | None) -> Table:
    """Read an svmlight file; columns are named by their numbers, which start at 0 or 1.

    It stays sparse in memory if it fits in half the budget, else it is read block by block.
    """
    width = 1 + max(map(int, like)) if like and all(map(str.isdecimal, like)) else None
    try:
        if _text_size(path) > config.memory_budget() // 2:
            from gramian.tables.archives import SvmlightFile

            file = SvmlightFile(path, width)
            table = FileTable([file], said, file.target)
            table.sparse = True
            return table
        from sklearn.datasets import load_svmlight_file  # takes long to import

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


def _text_size(path: Path) -> int:
    return path.stat().st_size * (4 if streams.compression(path) else 1)
