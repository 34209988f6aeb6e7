"""Kernels that the user supplies: a Python function, or the matrix itself."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.typing import ArrayLike, BlockSum
from gramian.backend.wording import counted
from gramian.kernels.base import Kernel
from gramian.kernels.pairings import Tile, tile_memory
from gramian.rows import ArrayRows, Rows, even_spans

__all__ = ["FunctionKernel", "Precomputed"]


class FunctionKernel(Kernel):
    """A Python function as a kernel.

    You can also pass the function itself as ``kernel=``; use this class only to set ``pairwise``.
    The function is called on one block of rows at a time, never from two threads at once.

    Rows need not be numbers. The entries of a list of strings, sets, graphs or lists of different
    lengths are objects, which are passed to the function unchanged. So are the entries of a 1-D
    array of dtype object and of a pandas Series that does not hold numbers, and the rows of an
    array with more than two dimensions and of a data frame with text columns. Lists of numbers
    with equal lengths are a table, as in scikit-learn; if your lists could have equal lengths by
    chance, put them into a 1-D array of dtype object. New rows are read like those of the fit.

    Parameters
    ----------
    function : callable
        ``function(X, Y)`` takes two blocks of rows and returns a matrix of shape (len(X), len(Y)).
        Blocks of objects are lists.
    pairwise : bool, default=False
        If True, ``function(x, y)`` takes two single rows or objects and returns one number. This
        is slow.

    See Also
    --------
    Precomputed : a matrix in place of a function.
    Kernel : the base class, for a kernel with its own GPU program.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import FunctionKernel
    >>> FunctionKernel(lambda X, Y: (X @ Y.T) ** 2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])
    >>> FunctionKernel(np.dot, pairwise=True)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    >>> def shared_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> FunctionKernel(shared_letters, pairwise=True)(["kernel", "colonel"], ["near", "far"])
    array([[3., 1.],
           [2., 0.]])
    """

    serial = True
    takes_objects = True

    def __init__(self, function: BlockSum, pairwise: bool = False) -> None:
        self.function = function
        self.pairwise = pairwise

    def against(self, points: Array) -> Tile:
        def tile(x: Array, out: Array | None = None) -> Array:
            out = tile_memory(x, points, out)
            out[...] = array_ops.like(self._values(x, points), out, dtype=out.dtype)
            return out

        return tile

    def _diagonal(self, x: Array) -> Array:
        # Small squares on the diagonal, so that few other values are computed.
        size = 1 if self.pairwise else 16
        squares = [array_ops.span(x, i, i + size) for i in range(0, x.shape[0], size)]
        values = [np.diagonal(array_ops.to_numpy(self._values(s, s))) for s in squares]
        return array_ops.like(np.concatenate(values), x, dtype=array_ops.float_dtype(x))

    def _values(self, x: Array, y: Array) -> ArrayLike:
        expected = (int(x.shape[0]), int(y.shape[0]))
        if self.pairwise:
            x, y = array_ops.to_numpy(x), array_ops.to_numpy(y)
            return np.asarray([[float(self.function(a, b)) for b in y] for a in x])
        if array_ops.is_objects(x):
            x, y = list(x), list(y)
        else:
            x, y = array_ops.same_dtype(x, y)
        values = self.function(x, y)
        shape = tuple(np.shape(values))
        if shape != expected:
            name = getattr(self.function, "__name__", repr(self.function))
            raise ValueError(
                f"The kernel function {name} must return one value for each pair of rows, shape "
                f"{expected}; got shape {shape}. A function of two single rows goes in as "
                "FunctionKernel(function, pairwise=True)."
            )
        return values


class Precomputed(Kernel):
    """A precomputed kernel matrix in place of rows.

    Fit a learner with this kernel on the square matrix K(X, X), and predict from K(X_new, X), which
    has one column for each training row.

    See Also
    --------
    FunctionKernel : a function in place of a matrix.

    Examples
    --------
    >>> from gramian import KernelRidge, Linear
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0]
    >>> model = KernelRidge(1e-9, kernel="precomputed").fit(Linear()(X), y)
    >>> model.predict(Linear()([[3.0]], X)).round(3)
    array([6.])
    """

    names = ("precomputed",)
    is_matrix = True

    def __call__(self, X: ArrayLike, Y: ArrayLike = None, *, out: Array | None = None) -> Array:
        if Y is not None:
            raise TypeError(
                "A precomputed kernel is the matrix itself and cannot be called on two sets of "
                "rows; learners take K(X_new, X_train) in place of new rows."
            )
        return super().__call__(X, out=out)

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        weights: Array | None = None,
        y: Array | None = None,
    ) -> Precomputed:
        n, columns = rows.shape
        if n != columns:
            raise ValueError(
                f"A precomputed kernel matrix must be square, one row and one column for each "
                f"training row; got shape {rows.shape}."
            )
        largest, difference = _asymmetry(rows)
        if difference > 100 * n * array_ops.eps(rows.dtype) * largest:
            raise ValueError(
                "A precomputed kernel matrix must be symmetric; got one where K and its transpose "
                f"differ by up to {difference:.2g} (largest entry: {largest:.2g}). Use "
                "(K + K.T) / 2 if the difference is noise."
            )
        return self

    def fit_bytes(self, rows: Rows) -> int:
        as_it_is = isinstance(rows, ArrayRows) and rows.data.dtype == rows.dtype
        return 0 if as_it_is else rows.shape[0] * rows.shape[1] * array_ops.itemsize(rows.dtype)

    def points(self, rows: Rows) -> Rows:
        # A training row is represented by its number, which selects a column of the matrix.
        numbers = np.arange(rows.shape[0])[:, None]
        return ArrayRows(array_ops.like(numbers, array_ops.dense(rows.take([0])), dtype=rows.dtype))

    def against(self, points: Array) -> Tile:
        numbers = array_ops.to_numpy(points)[:, 0].astype(np.intp)

        def tile(x: Array, out: Array | None = None) -> Array:
            if int(numbers.max()) >= x.shape[1]:
                raise ValueError(
                    "With a precomputed kernel, pass the matrix K(X_new, X_train): it needs one "
                    f"column for each training row; got {counted(x.shape[1], 'column')}."
                )
            out = tile_memory(x, points, out)
            out[...] = array_ops.take_columns(x, numbers)
            return out

        return tile

    def diagonal(self, rows: Rows) -> Array:
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(
                "A precomputed matrix K(X_new, X_train) does not hold k(x, x) of the new rows, "
                "which distances need. Use predict, which does not need it, or a kernel of rows."
            )
        numbers = np.arange(rows.shape[0])

        def part(x: Array, numbers: np.ndarray, out: Array) -> Array:
            if array_ops.issparse(x):
                return np.asarray(x[np.arange(len(numbers)), numbers]).ravel()
            columns = array_ops.like(numbers, x)[:, None]
            return array_ops.namespace(x).take_along_axis(x, columns, axis=1)[:, 0]

        return rows.map(part, numbers, label="diagonal")


def _asymmetry(rows: Rows) -> tuple[float, float]:
    """Return the largest entry of a square matrix, and the largest entry of |K - Kᵀ|."""
    K = rows.collect()
    if array_ops.issparse(K):
        return float(abs(K).max()), float(abs(K - K.T).max())
    xp = array_ops.namespace(K)
    parts = []
    for start, stop in even_spans(0, K.shape[0], 1024):
        part = K[start:stop, :]
        difference = part - xp.matrix_transpose(K[:, start:stop])
        parts.append((float(xp.max(xp.abs(part))), float(xp.max(xp.abs(difference)))))
    largest, differences = zip(*parts, strict=True)
    return max(largest), max(differences)
