"""What pairs of dual variables need of a kernel matrix: a part of it, and products with columns."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from gramian.backend import array_ops, config, numba_loops
from gramian.backend.threads import in_order
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
        numba_loops.compiled(_copy_part)(self.K, numbers, out)
        return out

    def times(self, numbers: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = np.zeros(len(self.K))
        numba_loops.compiled(_add_rows)(self.K, numbers, v, out)
        return out


def _copy_part(K: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(numbers)):
        row, target = K[numbers[i]], out[i]
        for k in range(len(numbers)):
            target[k] = row[numbers[k]]


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
    """Values of a kernel, computed whenever they are needed."""

    def __init__(self, gram: Gram, most: int) -> None:
        super().__init__(array_ops.to_numpy(gram.diag()), most)
        self.gram = gram

    def part(self, numbers: np.ndarray) -> np.ndarray:
        rows = ArrayRows(self.gram.rows.take(numbers))
        return np.ascontiguousarray(array_ops.to_numpy(Gram(self.gram.kernel, rows).dense()))

    def times(self, numbers: np.ndarray, v: np.ndarray) -> np.ndarray:
        out, gram = np.zeros(len(self.diagonal)), self.gram
        for some in self._parts(len(numbers)):
            columns = Gram(gram.kernel, gram.rows, gram.points.take(numbers[some]))
            out += array_ops.host_float64(columns.matmul(v[some]))
        return out


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

    def fill(first: int) -> None:
        last = min(first + BLOCK, n)
        some, below = Z[first:last], K[last:, first:last]
        # BLAS needs half of the operations for a product of rows with themselves.
        np.matmul(some, some.T, out=K[first:last, first:last])
        np.matmul(Z[last:], some.T, out=below)
        K[first:last, last:] = below.T

    list(in_order(fill, range(0, n, BLOCK), config.n_threads(), "kernel matrix"))
    return K
