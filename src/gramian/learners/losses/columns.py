"""What pairs of dual variables need of a kernel matrix: a part of it, and products with columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

import numpy as np

from gramian.backend import array_ops, config, numba_loops
from gramian.backend.threads import in_order
from gramian.kernels import tiles
from gramian.kernels.pairings import Tile
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows

BLOCK = 512  # rows of a matrix of inner products that a thread computes at a time


class ColumnSource(ABC):
    """A symmetric matrix.

    Attributes
    ----------
    diagonal : array of shape (n,)
    most : int
        The largest number of rows and columns of a part.
    whole : array of shape (n, n) or None
        The matrix, if it is stored.
    """

    whole: np.ndarray | None = None

    def __init__(self, diagonal: np.ndarray, most: int) -> None:
        self.diagonal, self.most = diagonal.astype(np.float64), most

    @abstractmethod
    def part(self, numbers: np.ndarray) -> np.ndarray:
        """Return the matrix of some rows."""

    @abstractmethod
    def times(self, numbers: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the product of some columns with v, in float64."""

    def _parts(self, count: int) -> list[slice]:
        return [slice(start, start + self.most) for start in range(0, count, self.most)]


class Stored(ColumnSource):
    """A matrix in memory."""

    def __init__(self, K: np.ndarray, most: int) -> None:
        super().__init__(np.diagonal(K), most)
        self.whole = self.K = K

    def part(self, numbers: np.ndarray) -> np.ndarray:
        out = np.empty((len(numbers), len(numbers)), self.K.dtype)
        numba_loops.compiled(_copy_part)(self.K, numbers, numbers, out)
        return out

    def times(self, numbers: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = np.zeros(len(self.K))
        numba_loops.compiled(_add_rows)(self.K, numbers, v, out)
        return out


def _copy_part(K: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(rows)):
        row, target = K[rows[i]], out[i]
        for k in range(len(columns)):
            target[k] = row[columns[k]]


def _add_rows(K: np.ndarray, numbers: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(numbers)):
        row, factor = K[numbers[i]], v[i]
        for k in range(len(out)):
            out[k] += factor * row[k]


class InnerProducts(ColumnSource):
    """Inner products of features in memory."""

    def __init__(self, Z: np.ndarray, most: int) -> None:
        super().__init__(np.einsum("ij,ij->i", Z, Z), most)
        self.Z = Z

    def part(self, numbers: np.ndarray) -> np.ndarray:
        return inner_products(self.Z[numbers], self.Z.dtype)

    def times(self, numbers: np.ndarray, v: np.ndarray) -> np.ndarray:
        theta = weighted_sum(self.Z, numbers, v)
        return (self.Z @ theta.astype(self.Z.dtype)).astype(np.float64)


class Computed(ColumnSource):
    """Values of a kernel, computed when they are needed.

    Up to ``kept`` columns are kept, if the rows are in memory.
    """

    def __init__(self, gram: Gram, most: int, kept: int) -> None:
        super().__init__(array_ops.to_numpy(gram.diag()), most)
        n = len(self.diagonal)
        self.gram, self._count = gram, 0
        self._columns = np.empty((kept, n), f"f{array_ops.itemsize(gram.dtype)}")
        self._place = np.full(n, -1)  # of a row's column among those kept
        self._tiles: list[tuple[tuple[int, int], Tile]] = []

    @staticmethod
    def kept_bytes(gram: Gram, kept: int) -> int:
        """Return the memory of columns that are kept, and of what computes them."""
        n, d = gram.rows.shape
        return array_ops.itemsize(gram.dtype) * n * (kept + 2 * (d + 2)) if kept else 0

    @staticmethod
    def keepable(gram: Gram, room: int) -> int:
        """Return how many columns can be kept."""
        n, d = gram.rows.shape
        if type(gram.rows) is not ArrayRows:
            return 0
        return max(min(n, room // (array_ops.itemsize(gram.dtype) * n) - 2 * (d + 2)), 0)

    def part(self, numbers: np.ndarray) -> np.ndarray:
        places = self._places(numbers)
        if places.min(initial=0) < 0:
            rows = ArrayRows(self.gram.rows.take(numbers))
            return np.ascontiguousarray(array_ops.to_numpy(Gram(self.gram.kernel, rows).dense()))
        out = np.empty((len(numbers), len(numbers)), self._columns.dtype)
        numba_loops.compiled(_copy_part)(self._columns, places, numbers, out)
        return out

    def times(self, numbers: np.ndarray, v: np.ndarray) -> np.ndarray:
        out, gram, places = np.zeros(len(self.diagonal)), self.gram, self._places(numbers)
        kept = places >= 0
        numba_loops.compiled(_add_rows)(self._columns, places[kept], v[kept], out)
        numbers, v = numbers[~kept], v[~kept]
        for some in self._parts(len(numbers)):
            columns = Gram(gram.kernel, gram.rows, gram.points.take(numbers[some]))
            out += array_ops.host_float64(columns.matmul(v[some]))
        return out

    def _places(self, numbers: np.ndarray) -> np.ndarray:
        """Return where these columns are kept, -1 for those that are not; compute what fits."""
        new = numbers[self._place[numbers] < 0][: len(self._columns) - self._count]
        if len(new):
            places = np.arange(self._count, self._count + len(new))
            self._count += len(new)
            self._place[new] = places
            self._fill(new, self._columns[places[0] : self._count])
            self._columns[places, new] = self.diagonal[new]
        return self._place[numbers]

    def _fill(self, numbers: np.ndarray, out: np.ndarray) -> None:
        """Write columns of K into the rows of ``out``; what does not depend on them is kept."""
        rows, kernel = self.gram.rows, self.gram.kernel
        if not self._tiles:
            spans = tiles.column_spans(rows)
            self._tiles = [(span, kernel.against(rows.take(range(*span)))) for span in spans]
        x, foreign = rows.take(numbers), array_ops.is_foreign(rows.place.reference)
        self.gram.evaluations += out.size

        def fill(each: tuple[tuple[int, int], Tile]) -> None:
            (start, stop), tile = each
            target = out[:, start:stop]
            result = tile(x) if foreign else tile(x, target)
            if result is not target:
                target[...] = array_ops.to_numpy(result)

        many = out.size * rows.shape[1] >= tiles.LEAST_PRODUCTS and not kernel.serial
        workers = config.n_threads() if many else 1
        deque(in_order(fill, self._tiles, workers, "kernel columns"), maxlen=0)


def weighted_sum(Z: np.ndarray, numbers: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the sum of some rows of Z times v, in float64: large terms may cancel."""
    out = np.zeros(Z.shape[1])
    for start in range(0, len(numbers), BLOCK):
        some = slice(start, start + BLOCK)
        out += v[some] @ Z[numbers[some]].astype(np.float64)
    return out


def inner_products(Z: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return ZZᵀ."""
    n = len(Z)
    K = np.empty((n, n), dtype)
    # Two threads then have equal shares of few blocks.
    step = min(BLOCK, -(-n // 4)) if n > BLOCK else BLOCK

    def fill(first: int) -> None:
        last = min(first + step, n)
        some, below = Z[first:last], K[last:, first:last]
        # BLAS needs half of the operations for a product of rows with themselves.
        np.matmul(some, some.T, out=K[first:last, first:last])
        np.matmul(Z[last:], some.T, out=below)
        K[first:last, last:] = below.T

    list(in_order(fill, range(0, n, step), config.n_threads(), "kernel matrix"))
    return K
