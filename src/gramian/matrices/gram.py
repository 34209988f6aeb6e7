"""Gram: the exact kernel matrix as an oracle, stored only on request."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.typing import ArrayLike, Indices
from gramian.backend.wording import counted
from gramian.kernels import Kernel, Precomputed, as_kernel, tiles
from gramian.kernels.base import KernelLike
from gramian.rows import ArrayRows, Rows

__all__ = ["Gram"]

# K is stored only up to this size; beyond it, entries are recomputed in every pass.
KEPT_BYTES = 256 * 1024**2


class Gram:
    """The kernel matrix K of rows, accessed by its diagonal, columns, blocks and products.

    Parameters
    ----------
    kernel : Kernel, str or callable
        With numbers as parameters, or fitted.
    rows : array-like of shape (n, d), or Rows
    columns : array-like of shape (m, d), or Rows, optional
        The rows that belong to the columns of K. By default ``rows``, so that K is symmetric. For a
        precomputed kernel, the result of ``kernel.points`` for the training rows.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
        float32 if rows and columns are float32, else float64.
    evaluations : int
        Number of kernel values requested so far.

    See Also
    --------
    Factors : the approximate matrix.

    Examples
    --------
    >>> from gramian import Gram, RBF
    >>> gram = Gram(RBF(1.0), [[0.0], [1.0], [2.0]])
    >>> gram.columns([0]).round(2)
    array([[1.  ],
           [0.37],
           [0.02]])
    >>> gram.trace(), gram.evaluations
    (3.0, 6)
    """

    def __init__(self, kernel: KernelLike, rows: ArrayLike, columns: ArrayLike = None) -> None:
        self.kernel: Kernel = as_kernel(kernel)
        self.rows: Rows = self.kernel.read(rows)
        self.symmetric = columns is None
        self.points = (
            self.kernel.points(self.rows)
            if columns is None
            else self.kernel.read(columns, name="columns", objects=self.rows.are_objects)
        )
        d_rows, d_columns = self.rows.shape[1], self.points.shape[1]
        if not self.kernel.is_matrix and d_rows != d_columns:
            raise ValueError(
                "Rows and columns of a kernel matrix need the same number of features; got "
                f"{d_rows} and {d_columns}."
            )
        self.shape = (self.rows.shape[0], self.points.shape[0])
        self.dtype = tiles.common_dtype(self.rows, self.points)
        self.evaluations = 0

    def __repr__(self) -> str:
        return f"Gram({self.kernel!r}, shape={self.shape})"

    @property
    def nbytes(self) -> int:
        """The memory that the whole matrix would take."""
        return self.shape[0] * self.shape[1] * array_ops.itemsize(self.dtype)

    def diag(self) -> Array:
        """Return the diagonal of K: k(x, x) for each row, shape (n,)."""
        if not self.symmetric:
            raise ValueError(f"diag needs a Gram without separate columns; this one is {self!r}.")
        return self._diagonal

    @cached_property
    def _diagonal(self) -> Array:
        self.evaluations += self.shape[0]
        return array_ops.settled(self.kernel.diagonal(self.rows))

    @cached_property
    def _gathered(self) -> Gram | None:
        """Return this matrix with its rows in this process; None if they are already here."""
        here = self.rows.place.here(self.rows) if self.symmetric else self.rows
        return None if here is self.rows else Gram(self.kernel, here)

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        diagonal = self.diag()
        xp = array_ops.namespace(diagonal)
        return float(xp.sum(array_ops.astype(diagonal, xp.float64)))

    def columns(self, indices: Indices) -> Array:
        """Return the columns of K with these indices, shape (n, len(indices))."""
        indices = self._checked(indices, axis=1)
        self.evaluations += self.shape[0] * len(indices)
        points = ArrayRows(self.points.take(indices))
        same_rows = None
        if self.symmetric:
            same_rows = indices, array_ops.take_rows(self.diag(), indices)
        return tiles.dense(self.kernel, self.rows, points, same_rows=same_rows)

    def block(self, i: ArrayLike, j: ArrayLike) -> Array:
        """Return K[i, j] for lists of row and column indices, shape (len(i), len(j))."""
        i, j = self._checked(i, axis=0), self._checked(j, axis=1)
        self.evaluations += len(i) * len(j)
        points = self.points.take(j)
        same = self.points is self.rows and np.array_equal(i, j)
        rows = points if same else self.rows.take(i)
        block = tiles.dense(self.kernel, ArrayRows(rows), ArrayRows(points))
        if self.symmetric:
            row, column = np.nonzero(i[:, None] == j[None, :])
            if len(row):
                exact = array_ops.take_rows(self.diag(), i[row])
                array_ops.put(block, row, column, array_ops.like(exact, block, block.dtype))
        return block

    def matmul(self, V: Array) -> Array:
        """Return K @ V for V of shape (m,) or (m, k), tile by tile, without storing K."""
        V = array_ops.like(V, self._example())
        if V.shape[0] != self.shape[1]:
            raise ValueError(
                f"K has {counted(self.shape[1], 'column')}, so V needs as many rows; got shape "
                f"{tuple(V.shape)}."
            )
        if V.ndim == 1:
            return self.matmul(V[:, None])[:, 0]
        if self._gathered is not None:
            return self._gathered.matmul(V)
        xp = self.rows.xp
        dtype = xp.float32 if V.dtype == xp.float32 == self.dtype else xp.float64
        self.evaluations += self.shape[0] * self.shape[1]
        if self.symmetric:
            out = tiles.symmetric_product(self.kernel, self.rows, self.diag(), V)
        else:
            out = tiles.product(self.kernel, self.rows, self.points, V)
        return array_ops.astype(out, dtype)

    @property
    def is_kept(self) -> bool:
        """Whether the whole matrix is in memory."""
        return isinstance(self.kernel, Precomputed) and type(self.rows) is ArrayRows

    def matmul_of(self, numbers: np.ndarray, V: Array) -> Array:
        """Return K[:, numbers] @ V in float64, for a symmetric matrix in memory."""
        assert self.symmetric and self.is_kept
        xp = self.rows.xp
        columns = xp.matrix_transpose(array_ops.dense(self.rows.take(numbers)))
        return array_ops.astype(columns @ array_ops.astype(V, self.dtype), xp.float64)

    def dense(self) -> Array:
        """Return the whole matrix; raise an error if it exceeds the memory budget."""
        if self._gathered is not None:
            return self._gathered.dense()
        self.evaluations += self.shape[0] * self.shape[1]
        return tiles.dense(self.kernel, self.rows, None if self.symmetric else self.points)

    def fits(self) -> bool:
        """Whether the whole matrix, in float64, is small enough to store."""
        size = 8 * self.shape[0] * self.shape[1]
        return size <= min(KEPT_BYTES, config.memory_budget() // 4)

    @property
    def kept_bytes(self) -> int:
        """The memory that ``persist`` takes."""
        return self.nbytes if self.fits() else 0

    @property
    def product_bytes(self) -> int:
        """The memory that ``matmul`` takes, besides blocks of rows and of kernel values."""
        return 0

    def persist(self) -> Gram:
        """Return this matrix, stored if it is small enough, which makes products cheap."""
        return self.stored() if self.fits() and self.symmetric else self

    def stored(self) -> Gram:
        """Return this symmetric matrix, stored whatever its size."""
        if isinstance(self.kernel, Precomputed):
            return self
        return Gram(Precomputed(), ArrayRows(self.dense()))

    def _example(self) -> Array:
        """Return an empty array with the library, device and dtype of K."""
        return self.points.place.reference

    def _checked(self, indices: Indices, axis: int) -> np.ndarray:
        indices = np.atleast_1d(np.asarray(array_ops.to_numpy(indices)))
        if indices.dtype.kind not in "iu" or indices.ndim != 1:
            raise TypeError(f"Expected a list of row numbers; got {indices!r}.")
        size = self.shape[axis]
        if len(indices) and (indices.min() < 0 or indices.max() >= size):
            raise IndexError(
                f"Row numbers must be from 0 to {size - 1}; got {indices.min()} to {indices.max()}."
            )
        return indices
