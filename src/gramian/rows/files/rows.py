"""FileRows: rows that stay in their files, and are read piece by piece in every walk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.memory import LEAST_BUDGET
from gramian.backend.typing import DType, Indices
from gramian.rows import ArrayRows, BlockRows, Place, Rows, even_spans
from gramian.rows.arrays import Block
from gramian.rows.files import formats
from gramian.rows.files.formats import Numbers, RowFile

__all__ = ["FileRows"]

BATCH_BYTES = 16 * 1024**2  # read at a time; small batches of many columns are slow


class _OnDisk(BlockRows):
    """The memory that rows of files need."""

    # Per thread: about three waiting blocks, the current block, and a copy of it.
    _held = 5

    def fits(self) -> bool:
        """Whether ``persist`` reads the rows into memory."""
        return self.shape[0] * self.row_bytes + self._reader_bytes() <= config.memory_budget() // 2

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        return super().walk_bytes(row_bytes, result_bytes) + self._reading_bytes()

    def _reading_bytes(self) -> int:
        return 2 * _batch_bytes() + self._reader_bytes()  # waiting blocks may belong to two batches

    def _reader_bytes(self) -> int:
        """Return what the reader of a file holds, however few rows it is asked for."""
        return 0


class FileRows(_OnDisk):
    """Rows of one or more files, returned by :func:`gramian.open_rows`.

    Files are read in the calling thread, a few batches ahead, while workers compute. Blocks have
    the same sizes as those of an array, whatever the batches, so results are the same. Every value
    is checked when it is read: NaN, infinity and missing values raise an error.

    Parameters
    ----------
    files : list of RowFile
    names : list of str
        The columns to read.
    dtype : dtype
        float32 or float64.
    numbers : range or array of int, optional
        Which rows of all files these are.
    gaps : bool, default=False
        Whether values may be missing: NaN stands for them.

    See Also
    --------
    open_rows : opens files.

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
        dtype: DType,
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

    @property
    def place(self) -> Place:  # type: ignore[override]
        return Place(self.shape[0], np.empty(0, self.dtype))

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

    def take(self, indices: Indices) -> Array:
        numbers = self._of_files(np.asarray(indices, dtype=np.intp))
        order = np.argsort(numbers, kind="stable")
        out = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        done = 0
        for piece in self._pieces(numbers[order]):
            out[order[done : done + len(piece)]] = piece
            done += len(piece)
        return self._checked(out, numbers)

    def _of_files(self, indices: np.ndarray) -> np.ndarray:
        """Convert numbers of these rows to numbers among all rows of the files."""
        n = self.shape[0]
        if len(indices) and not 0 <= indices.min() <= indices.max() < n:
            raise IndexError(
                f"Row numbers must be from 0 to {n - 1}; got {indices.min()} to {indices.max()}."
            )
        return indices if isinstance(self._numbers, range) else self._numbers[indices]

    def spans_of_files(self, most: int) -> list[tuple[int, int]]:
        """Return spans of at most ``most`` rows that do not cross files; one per CSV file."""
        assert isinstance(self._numbers, range), "of all rows"
        spans: list[tuple[int, int]] = []
        for file, first in zip(self.files, self._edges.tolist(), strict=False):
            size = most if file.jumps else max(file.n_rows, 1)
            spans += even_spans(first, first + file.n_rows, size)
        return spans

    def _blocks(self, spans: Sequence[tuple[int, int]]) -> Iterable[Block]:
        numbers = self._numbers
        if not isinstance(numbers, range) and np.any(numbers[1:] < numbers[:-1]):
            yield from super()._blocks(spans)  # gather each block separately
            return
        if not spans:
            return
        pieces = self._pieces(numbers[spans[0][0] : spans[-1][1]])
        piece = np.empty((0, self.shape[1]))
        for start, stop in spans:
            parts, missing = [], stop - start
            while missing:  # a block may take from several pieces
                piece = piece if len(piece) else next(pieces)
                parts.append(piece[:missing])
                piece = piece[missing:]
                missing -= len(parts[-1])
            yield start, stop, partial(self._joined, parts, start)
        for file in self.files:  # also those that were read long ago
            file.check_unchanged()

    def _joined(self, parts: list[np.ndarray], start: int) -> np.ndarray:
        converted = [part.astype(self.dtype, copy=False) for part in parts]
        block = converted[0] if len(parts) == 1 else np.concatenate(converted)
        return self._checked(block, self._numbers[start : start + len(block)])

    def _pieces(self, numbers: Numbers) -> Iterator[np.ndarray]:
        """Yield the rows of the files with these ascending numbers, in pieces as they are read."""
        self._check_readers()
        most = max(1, _batch_bytes() // self.row_bytes)
        for file, first in zip(self.files, self._edges, strict=False):
            inside = formats.within(numbers, int(first), int(first) + file.n_rows)
            if len(inside):
                yield from file.read(inside, self._names, self.dtype, most)

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        self._check_readers()  # no other choice of a learner could help
        return super().walk_bytes(row_bytes, result_bytes)

    def _reader_bytes(self) -> int:
        return max(file.held_bytes(self._names) for file in self.files)

    def _check_readers(self) -> None:
        room = max(config.memory_budget(), LEAST_BUDGET) // 4
        for file in self.files:
            held = file.held_bytes(self._names)
            if held > room:
                raise config.MemoryBudgetError(
                    f"Reading {said(file)} takes {config.format_bytes(held)}, more than a quarter "
                    f"of the memory budget of {config.format_bytes(config.memory_budget())}. "
                    f"{file.fitting(self._names, room // 2)}, or raise the budget with "
                    "gramian.set_config(memory_budget=...)."
                )

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
    """Rows of a file that have a size but no data, to estimate memory."""


def planned_rows(n: int, d: int, dtype: DType, on_disk: bool) -> ArrayRows:
    """Return rows of this shape that take no memory, to estimate the memory of a fit."""
    data = np.broadcast_to(np.zeros((), dtype), (n, d))
    return Planned(data) if on_disk else ArrayRows(data)


def _batch_bytes() -> int:
    """Return the size of a batch, which is read at once."""
    return min(BATCH_BYTES, config.memory_budget() // 16)


def said(file: RowFile) -> str:
    return repr(str(file.path))
