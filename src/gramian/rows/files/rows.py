"""FileRows: rows that stay in their files, and are read piece by piece whenever they are walked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, overload

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, BlockRows, Rows, even_spans
from gramian.rows.files import formats
from gramian.rows.files.formats import Numbers, RowFile

__all__ = ["FileRows", "open_rows"]

BATCH_BYTES = 16 * 1024**2  # what is read at a time: small batches of many columns are slow


class _OnDisk(BlockRows):
    """What rows of files take in memory, whatever else they are."""

    # Blocks that wait, two for each thread and one, the one that is worked on, and a copy of it.
    _held = 5

    def fits(self) -> bool:
        """Whether ``persist`` keeps the rows in memory."""
        return self.shape[0] * self.row_bytes <= config.memory_budget() // 2

    def _reading_bytes(self) -> int:
        return 2 * _batch_bytes()  # blocks that wait may be of two batches


class FileRows(_OnDisk):
    """Rows of files, of one after the other; :func:`gramian.open_rows` makes them.

    Files are read in the calling thread, a few batches ahead, while workers compute. Blocks are cut
    by size as those of an array are, whatever the batches, so that results are the same. Every
    value is checked when it is read: NaN, infinity and missing values are errors.

    Parameters
    ----------
    files : list of RowFile
    names : list of str
        The columns.
    dtype : dtype
        float32 or float64.
    numbers : range or array of int, optional
        Which rows of all files these are.
    gaps : bool, default=False
        Whether values may be missing: NaN stands for them.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from gramian import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.arange(6).reshape(3, 2))
    ...     open_rows(f"{folder}/rows.npy").sum(lambda block: block.T @ block)
    array([[20., 26.],
           [26., 35.]])
    """

    xp = array_ops.namespace(np.empty(0))

    def __init__(
        self,
        files: Sequence[RowFile],
        names: Sequence[str],
        dtype: Any,
        numbers: Numbers | None = None,
        gaps: bool = False,
    ) -> None:
        self.gaps = gaps
        self.files = list(files)
        self.dtype = np.dtype(dtype)
        self._names = list(names)
        self._edges = np.cumsum([0, *(file.n_rows for file in files)])
        self._numbers = range(int(self._edges[-1])) if numbers is None else numbers
        self.shape = (len(self._numbers), len(self._names))
        self.names = self._names if files[0].named else None

    def __repr__(self) -> str:
        files = f"{str(self.files[0].path)!r}"
        if len(self.files) > 1:
            files += f" and {len(self.files) - 1} more"
        return f"{type(self).__name__}({files}, shape={self.shape}, dtype={self.dtype})"

    def example(self) -> Array:
        return np.empty(0, self.dtype)

    def choose(self, numbers: np.ndarray) -> Rows:
        chosen = self._of_files(np.asarray(numbers))
        return FileRows(self.files, self._names, self.dtype, chosen, self.gaps)

    def persist(self) -> Rows:
        if not self.fits():
            return self
        rows = ArrayRows(self.collect())
        rows.names = self.names
        return rows

    def collect(self) -> Array:
        return self.map(lambda x, out: x, width=self.shape[1], label="reading")

    def block(self, start: int, stop: int) -> Array:
        return self.take(range(start, stop))

    def take(self, indices: Any) -> Array:
        numbers = self._of_files(np.asarray(indices, dtype=np.intp))
        order = np.argsort(numbers, kind="stable")
        out = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        done = 0
        for piece in self._pieces(numbers[order]):
            out[order[done : done + len(piece)]] = piece
            done += len(piece)
        return self._checked(out, numbers)

    def _of_files(self, indices: np.ndarray) -> np.ndarray:
        """What the numbers of these rows are among all rows of the files."""
        n = self.shape[0]
        if len(indices) and not 0 <= indices.min() <= indices.max() < n:
            raise IndexError(
                f"Row numbers must be from 0 to {n - 1}; got {indices.min()} to {indices.max()}."
            )
        return indices if isinstance(self._numbers, range) else self._numbers[indices]

    def spans_of_files(self, most: int) -> list[tuple[int, int]]:
        """Spans of at most so many rows, none of two files; one for a file read from its start."""
        assert isinstance(self._numbers, range), "of all rows"
        spans: list[tuple[int, int]] = []
        for file, first in zip(self.files, self._edges.tolist(), strict=False):
            size = most if file.jumps else max(file.n_rows, 1)
            spans += even_spans(first, first + file.n_rows, size)
        return spans

    def _blocks(
        self, spans: Sequence[tuple[int, int]]
    ) -> Iterable[tuple[int, int, Callable[[], Array]]]:
        if not _ascending(self._numbers):  # each block is gathered by itself
            return super()._blocks(spans)
        return self._in_one_pass(spans)

    def _in_one_pass(
        self, spans: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, int, Callable[[], Array]]]:
        if not spans:
            return
        pieces = self._pieces(self._numbers[spans[0][0] : spans[-1][1]])
        piece = np.empty((0, self.shape[1]))
        for start, stop in spans:
            parts, missing = [], stop - start
            while missing:  # a block may take from several pieces
                piece = piece if len(piece) else next(pieces)
                parts.append(piece[:missing])
                piece = piece[missing:]
                missing -= len(parts[-1])
            yield start, stop, partial(self._joined, parts, start)

    def _joined(self, parts: list[np.ndarray], start: int) -> np.ndarray:
        converted = [part.astype(self.dtype, copy=False) for part in parts]
        block = converted[0] if len(parts) == 1 else np.concatenate(converted)
        return self._checked(block, self._numbers[start : start + len(block)])

    def _pieces(self, numbers: Numbers) -> Iterator[np.ndarray]:
        """Rows of the files with these ascending numbers, in pieces as they are read."""
        most = max(1, _batch_bytes() // self.row_bytes)
        for file, first in zip(self.files, self._edges, strict=False):
            own = formats.within(numbers, int(first), int(first) + file.n_rows)
            if len(own):
                yield from file.read(own, self._names, self.dtype, most)

    def _checked(self, block: np.ndarray, numbers: Numbers) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            if array_ops.all_finite(block):
                return block
        wrong = np.isinf(block) if self.gaps else ~np.isfinite(block)
        if not wrong.any():
            return block
        row, column = np.argwhere(wrong)[0]
        number = int(numbers[row])
        file = int(np.searchsorted(self._edges, number, side="right")) - 1
        name = repr(self._names[column]) if self.names else self._names[column]
        raise ValueError(
            f"The file {str(self.files[file].path)!r} contains NaN, infinity or a missing value: "
            f"one is in row {number - self._edges[file]}, column {name}. Drop such rows or fill "
            "them in (scikit-learn's SimpleImputer)."
        )


class Planned(_OnDisk, ArrayRows):
    """Stands for rows of a file where only sizes matter."""


def planned_rows(n: int, d: int, dtype: Any, on_disk: bool) -> ArrayRows:
    """Rows of this shape that take no memory, to find out what a fit on such rows would take."""
    data = np.broadcast_to(np.zeros((), dtype), (n, d))
    return Planned(data) if on_disk else ArrayRows(data)


def _batch_bytes() -> int:
    """What is read at a time."""
    return min(BATCH_BYTES, config.memory_budget() // 16)


def _ascending(numbers: Numbers) -> bool:
    return isinstance(numbers, range) or bool(np.all(numbers[1:] >= numbers[:-1]))


@overload
def open_rows(
    path: Any, *, columns: Any = ..., drop: Any = ..., dtype: Any = ..., header: bool | None = ...
) -> FileRows: ...


@overload
def open_rows(
    path: Any,
    *,
    target: str | int,
    columns: Any = ...,
    drop: Any = ...,
    dtype: Any = ...,
    header: bool | None = ...,
) -> tuple[FileRows, np.ndarray]: ...


def open_rows(
    path: Any,
    *,
    target: str | int | None = None,
    columns: Any = None,
    drop: Any = (),
    dtype: Any = None,
    header: bool | None = None,
) -> FileRows | tuple[FileRows, np.ndarray]:
    """The rows of a file, of several, or of a folder of parts, without reading them into memory.

    Files may be larger than memory: they are read piece by piece whenever the rows are walked.
    Every learner, approximation and kernel takes the result, and a path or file name itself where
    no option is needed: ``KernelKMeans(5).fit(Path("rows.parquet"))``.

    NPY files need nothing else; Parquet (.parquet, .pq), Arrow (.arrow, .feather, .ipc), CSV and
    TSV files (also .gz) need ``pip install "gramian[cli]"``. A CSV file is read once to count its
    lines.

    Parameters
    ----------
    path : path, str, or list of these
        A file, known by its ending; a folder, whose files are taken in the order of their names; or
        several of these. Their rows follow each other. Files must not change while they are in use.
    target : str or int, optional
        A column that is no part of the rows: it is read into memory and returned beside them.
    columns : list of str or int, optional
        The columns of the rows, by their names or numbers. By default all but the target and an
        index that pandas stored. They must hold numbers.
    drop : str, int or list of these, optional
        Columns to leave out.
    dtype : {"float64", "float32"}, optional
        What is computed in. By default float32 where all columns are float32 or of at most that
        precision (bytes, half precision), else float64.
    header : bool, optional
        Whether the first line of a CSV or TSV file holds the names of the columns. By default it
        does, unless it holds numbers only, other than 0, 1, 2, ... in this order.

    Returns
    -------
    FileRows, or FileRows and array of shape (n,) with ``target``

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
    targets: Any = (),
    columns: Any = None,
    drop: Any = (),
    dtype: Any = None,
    gaps: bool = False,
) -> FileRows:
    """The rows of files that are open already; see :func:`open_rows`."""
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
        raise ValueError(f"{_said(first)} has no rows.")
    return rows


def _chosen(file: RowFile, given: Any, option: str) -> list[str]:
    """The names of columns that are given by names or numbers."""
    names: list[str] = []
    for one in [given] if isinstance(given, str | int) else given:
        if isinstance(one, int | np.integer) and 0 <= one < len(file.names):
            names.append(file.names[one])
        elif one in file.names:
            names.append(one)
        else:
            raise ValueError(
                f"{option} must name columns of {_said(file)}, or number them from 0; got {one!r}. "
                f"Its columns: {_listed(file.names)}."
            )
    return names


def _check_columns(file: RowFile, first: RowFile, names: list[str], targets: list[str]) -> None:
    counts = Counter(file.names)
    wanted = [*names, *targets]
    if not names:
        raise ValueError(f"No column of {_said(file)} is left to make rows of.")
    missing = [name for name in wanted if name not in counts]
    if missing or file.named != first.named:
        raise ValueError(
            f"{_said(file)} must have the columns of {_said(first)}; it lacks "
            f"{_listed(missing or names)}."
        )
    twice = [name for name in dict.fromkeys(wanted) if counts[name] > 1 or wanted.count(name) > 1]
    if twice:
        raise ValueError(
            f"Columns of {_said(file)} must be there, and be asked for, only once; these are "
            f"not: {_listed(twice)}."
        )
    text = [name for name in names if name not in file.numeric]
    for name in text:
        facts = file.facts[name]
        if facts.odd:
            row, cell = facts.odd[0]
            raise ValueError(
                f"Column {name!r} of {_said(file)} has numbers and {counted(facts.n_odd, 'cell')} "
                f"of text: the first is {cell!r} in line {file.lines([row])[0]}."
            )
    if text:
        raise ValueError(
            f"Rows must hold numbers only; these columns of {_said(file)} do not: {_listed(text)}. "
            f"Encode them (scikit-learn's OneHotEncoder or OrdinalEncoder), or leave them out: "
            "open_rows(path, drop=[...])."
        )


def _working_dtype(given: Any, files: list[RowFile], names: list[str]) -> np.dtype:
    if given is None:
        dtypes = {str(file.numeric[name]) for file in files for name in names}
        single = dtypes.issubset(array_ops.IN_SINGLE)
        return np.dtype(np.float32 if single else np.float64)
    dtype = np.dtype(given)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {given!r}.")
    return dtype


def _said(file: RowFile) -> str:
    return repr(str(file.path))


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown}, and {len(names) - 10} more" if len(names) > 10 else shown
