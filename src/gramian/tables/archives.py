"""NPZ and svmlight files, read block by block."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from gramian.backend.typing import DType
from gramian.rows.files import streams
from gramian.rows.files.facts import Facts
from gramian.rows.files.formats import NpyFile, Numbers, RowFile, within

if TYPE_CHECKING:
    import scipy.sparse

LINES = 4096  # of an svmlight file, parsed at a time


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an NPZ archive."""
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_array(path: Path, name: str) -> np.ndarray:
    """Return an array of an NPZ archive."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


class NpzFile(NpyFile):
    """One array of an NPZ archive, read in stretches of rows; if compressed, from its start."""

    def __init__(self, path: Path, name: str) -> None:
        self._member = f"{name}.npy"
        super().__init__(path)

    @contextmanager
    def _bytes(self) -> Iterator[IO[bytes]]:
        with zipfile.ZipFile(self.path) as archive, archive.open(self._member) as file:
            yield file

    def _size(self) -> int:
        with zipfile.ZipFile(self.path) as archive:
            return archive.getinfo(self._member).file_size


class SvmlightFile(RowFile):
    """Lines of an svmlight file as dense rows, read from the first one each time."""

    named = True
    jumps = False

    def __init__(self, path: Path, width: int | None = None) -> None:
        self._width = width
        self.target = np.empty(0)
        super().__init__(path)

    def _look(self) -> None:
        width, targets = self._width or 0, []
        first_used = False
        for X, y in self._parsed(self._width):
            width = max(width, X.shape[1])
            targets.append(y)
            first_used = first_used or X[:, [0]].nnz > 0
        self.target = np.concatenate(targets)
        self.n_rows = len(self.target)
        first = 0 if first_used or self._width is not None else 1
        self._total = width
        self.names = [str(i) for i in range(first, width)]
        self.numeric = dict.fromkeys(self.names, np.dtype(np.float64))

    def _parsed(self, width: int | None) -> Iterator[tuple[scipy.sparse.csr_matrix, np.ndarray]]:
        from sklearn.datasets import load_svmlight_file

        with streams.unpacked(self.path) as file:
            while lines := b"".join(islice(file, LINES)):
                yield load_svmlight_file(io.BytesIO(lines), n_features=width, zero_based=True)

    def _read(
        self, numbers: Numbers, names: list[str], dtype: DType, most: int
    ) -> Iterator[np.ndarray]:
        columns = [int(name) for name in names]
        first = 0
        for X, _ in self._parsed(self._total):
            own = within(numbers, first, first + X.shape[0])
            first += X.shape[0]
            if len(own):
                yield X[list(own)][:, columns].toarray()
            if first > numbers[-1]:
                return

    def _column(self, name: str) -> np.ndarray:
        return np.concatenate([X[:, [int(name)]].toarray() for X, _ in self._parsed(self._total)])[
            :, 0
        ]

    @cached_property
    def facts(self) -> dict[str, Facts]:
        return {n: Facts(n, "number", rows=self.n_rows, whole=False) for n in self.names}
