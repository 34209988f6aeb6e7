"""Open files as rows: which files, which columns, which dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias, overload

import numpy as np

from gramian.backend import array_ops
from gramian.backend.typing import DType, PathLike
from gramian.backend.wording import counted
from gramian.rows.files import formats
from gramian.rows.files.formats import RowFile
from gramian.rows.files.rows import FileRows, said

__all__ = ["open_rows"]

Columns: TypeAlias = str | int | Sequence[str | int]  # names or numbers of columns


@overload
def open_rows(
    path: PathLike | Sequence[PathLike],
    *,
    columns: Columns | None = ...,
    drop: Columns = ...,
    dtype: DType = ...,
    header: bool | None = ...,
) -> FileRows: ...


@overload
def open_rows(
    path: PathLike | Sequence[PathLike],
    *,
    target: str | int,
    columns: Columns | None = ...,
    drop: Columns = ...,
    dtype: DType = ...,
    header: bool | None = ...,
) -> tuple[FileRows, np.ndarray]: ...


def open_rows(
    path: PathLike | Sequence[PathLike],
    *,
    target: str | int | None = None,
    columns: Columns | None = None,
    drop: Columns = (),
    dtype: DType = None,
    header: bool | None = None,
) -> FileRows | tuple[FileRows, np.ndarray]:
    """Open the rows of files, or of a folder of parts, without reading them into memory.

    Files may be larger than memory: they are read piece by piece in every pass. Every learner,
    approximation and kernel accepts the result. If you need no option, pass the path or file name
    itself: ``KernelKMeans(5).fit(Path("rows.parquet"))``.

    NPY files need no other package; Parquet (.parquet, .pq), Arrow (.arrow, .feather, .ipc), CSV
    and TSV files (also .gz) need ``pip install "gramian[cli]"``. A CSV file is read once to count
    its lines.

    Parameters
    ----------
    path : path, str, or list of these
        A file, whose ending determines the format; a folder, whose files are read in the order of
        their names; or a list of these. Their rows are concatenated. Files must not change while
        they are in use.
    target : str or int, optional
        A column that is not part of the rows; it is read into memory and returned as well.
    columns : list of str or int, optional
        Names or numbers of the columns to use, which must be numeric. By default, all columns
        except the target and an index stored by pandas.
    drop : str, int or list of these, optional
        Columns to leave out.
    dtype : {"float64", "float32"}, optional
        The dtype for computations. By default float32 if float32 represents all columns exactly
        (float32, half precision, bytes), else float64.
    header : bool, optional
        Whether the first line of a CSV or TSV file contains the names of the columns. By default it
        does, unless it contains only numbers other than 0, 1, 2, ... in this order.

    Returns
    -------
    rows : FileRows
    target : array of shape (n,)
        Only with ``target``.

    See Also
    --------
    as_rows : rows of any kind of data.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian import KernelRidge, open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.csv"
    ...     size = path.write_text("x,y,price\\n" + "0.5,1,3\\n1.5,2,8\\n2.5,4,9\\n")
    ...     rows, price = open_rows(path, target="price")
    ...     model = KernelRidge(1e-9, kernel="linear").fit(rows, price)
    >>> rows.names, price, list(model.feature_names_in_)
    (['x', 'y'], array([3, 8, 9]), ['x', 'y'])
    """
    files = [formats.open_file(one, header=header) for one in formats.find(path)]
    targets = [] if target is None else _chosen(files[0], target, "target")
    rows = rows_of(files, targets, columns, drop, dtype)
    if target is None:
        return rows
    return rows, np.concatenate([file.column(targets[0]) for file in files])


def rows_of(
    files: list[RowFile],
    targets: Sequence[str] = (),
    columns: Columns | None = None,
    drop: Columns = (),
    dtype: DType | None = None,
    gaps: bool = False,
) -> FileRows:
    """Return the rows of files that are already open; see :func:`open_rows`."""
    first = files[0]
    dropped = {*_chosen(first, drop, "drop"), *targets}
    if columns is None:
        names = [name for name in first.names if name not in {*first.left_out, *dropped}]
    else:
        names = [name for name in _chosen(first, columns, "columns") if name not in dropped]
    for file in files:
        _check_columns(file, first, names, list(targets))
    rows = FileRows(files, names, _working_dtype(dtype, files, names), gaps=gaps)
    if rows.shape[0] == 0:
        raise ValueError(f"{said(first)} has no rows.")
    return rows


def _chosen(file: RowFile, columns: Columns, option: str) -> list[str]:
    """Return the names of columns that are selected by name or number."""
    names: list[str] = []
    for one in [columns] if isinstance(columns, str | int) else columns:
        if isinstance(one, int | np.integer) and 0 <= one < len(file.names):
            names.append(file.names[one])
        elif one in file.names:
            names.append(one)
        else:
            raise ValueError(
                f"{option} must name columns of {said(file)}, or number them from 0; got {one!r}. "
                f"Its columns: {_listed(file.names)}."
            )
    return names


def _check_columns(file: RowFile, first: RowFile, names: list[str], targets: list[str]) -> None:
    counts = Counter(file.names)
    wanted = [*names, *targets]
    if not names:
        raise ValueError(f"No column of {said(file)} is left to use as a feature.")
    missing = [name for name in wanted if name not in counts]
    if missing or file.named != first.named:
        raise ValueError(
            f"{said(file)} must have the columns of {said(first)}; it lacks "
            f"{_listed(missing or names)}."
        )
    twice = [name for name in dict.fromkeys(wanted) if counts[name] > 1 or wanted.count(name) > 1]
    if twice:
        raise ValueError(
            f"Each column of {said(file)} must exist, and be requested, only once; these are "
            f"duplicates: {_listed(twice)}."
        )
    text = [name for name in names if name not in file.numeric]
    for name in text:
        facts = file.facts[name]
        if facts.odd:
            row, cell = facts.odd[0]
            raise ValueError(
                f"Column {name!r} of {said(file)} has numbers and {counted(facts.n_odd, 'cell')} "
                f"of text: the first is {cell!r} in line {file.lines([row])[0]}."
            )
    if text:
        raise ValueError(
            f"Rows must be numeric; these columns of {said(file)} are not: "
            f"{_listed(text)}. Encode them (scikit-learn's OneHotEncoder or OrdinalEncoder), or "
            "leave them out: open_rows(path, drop=[...])."
        )


def _working_dtype(requested: DType, files: list[RowFile], names: list[str]) -> np.dtype:
    if requested is None:
        dtypes = {str(file.numeric[name]) for file in files for name in names}
        single = dtypes.issubset(array_ops.IN_SINGLE)
        return np.dtype(np.float32 if single else np.float64)
    dtype = np.dtype(requested)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {requested!r}.")
    return dtype


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown}, and {len(names) - 10} more" if len(names) > 10 else shown
