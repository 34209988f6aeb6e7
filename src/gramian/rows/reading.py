"""``as_rows``: check whatever a user passes as X, and return it as rows."""

from __future__ import annotations

import os
from collections import deque

import numpy as np
import sklearn
from sklearn.utils import check_array, column_or_1d

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.typing import ArrayLike, PathLike
from gramian.backend.wording import counted
from gramian.rows import objects as object_rows
from gramian.rows.arrays import CACHE_BYTES, ArrayRows
from gramian.rows.base import Rows, Walk
from gramian.rows.files import formats


def as_rows(
    X: ArrayLike,
    *,
    name: str = "X",
    owner: str | None = None,
    min_rows: int = 1,
    objects: bool | None = False,
) -> Rows:
    """Check X and return it as :class:`Rows`: two dimensions, real numbers, all finite.

    Parameters
    ----------
    X : array-like, path, dask collection or Rows
        NumPy arrays and whatever converts to them (lists, pandas and polars data frames),
        ``np.memmap``, SciPy sparse matrices, torch tensors and other arrays of the array API
        standard. dask arrays and dataframes stay on their workers. A path, or the name of a file in
        a format that :func:`gramian.open_rows` supports, means the rows of that file. The file is
        read into memory if it takes less than half of the memory budget, otherwise block by block
        in every pass. Rows are returned unchanged.
    name : str, default="X"
        The name of the data in error messages.
    owner : str, optional
        The name of the estimator in error messages.
    min_rows : int, default=1
        The smallest number of rows allowed.
    objects : bool or None, default=False
        If True, each entry of X is an object, such as a string, for a kernel function; it is not
        checked. None means True unless X is a table of numbers. Objects are the entries of a list
        of strings, of sets or of lists of different lengths, and of any 1-D array of dtype object;
        also the rows of an array with more than two dimensions and of a data frame with text
        columns (each as a 1-D array).

    Returns
    -------
    Rows

    See Also
    --------
    open_rows : chooses columns of a file, and reads its target.

    Examples
    --------
    >>> from gramian import as_rows
    >>> as_rows([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    >>> as_rows(["kernel", "colonel"], objects=None)
    ArrayRows(shape=(2, 1), dtype=object)
    """
    if isinstance(X, Rows):
        return X
    if is_collection(X):
        return _rows_of_dask(X, name, owner, min_rows)
    if is_path(X) and not objects:
        return _rows_of_file(X, owner, min_rows)
    if objects is None:
        objects = not object_rows.is_table(X)
    if objects:
        return ArrayRows(object_rows.as_objects(X, name, owner, min_rows))
    data = _checked_foreign(X, name, owner, min_rows) if array_ops.is_foreign(X) else None
    if data is None:
        data = _checked_host(X, name, owner, min_rows)
    rows = ArrayRows(data)
    if array_ops.kind(data, "real floating") and not sklearn.get_config()["assume_finite"]:
        _check_finite(rows, name)
    return rows


def as_labels(y: ArrayLike) -> Array:
    """Return class labels as a NumPy array of shape (n,); a lazy array is returned unchanged."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufUS":
        return y  # as column_or_1d would, in a fraction of a millisecond
    if not array_ops.is_lazy(y):
        return column_or_1d(array_ops.to_numpy(y), warn=True)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional; got {counted(y.ndim, 'dimension')}.")
    return y


def _rows_of_file(path: PathLike, owner: str | None, min_rows: int) -> Rows:
    from gramian.rows.files.opening import open_rows

    rows = open_rows(path)
    _check_least(rows.shape, owner, min_rows)
    return rows.persist()


def is_path(X: object) -> bool:
    """Whether X is a path, or a string that can only be the name of a file of rows."""
    return formats.suffix(X) is not None if isinstance(X, str) else isinstance(X, os.PathLike)


def is_collection(X: ArrayLike) -> bool:
    """Whether X is a dask array or dataframe; dask need not be installed."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def _rows_of_dask(X: ArrayLike, name: str, owner: str | None, min_rows: int) -> Rows:
    from gramian.rows.dask.rows import DaskRows

    rows = DaskRows(X, name=name)
    _check_least(rows.shape, owner, min_rows)
    return rows


def _check_least(shape: tuple[int, ...], owner: str | None, min_rows: int) -> None:
    by = f" by {owner}" if owner else ""
    for size, least, what in zip(shape, (min_rows, 1), ("sample", "feature"), strict=True):
        if size < least:
            raise ValueError(
                f"Found array with {size} {what}(s) (shape={tuple(shape)}) while a minimum of "
                f"{least} is required{by}."
            )


def _checked_host(X: ArrayLike, name: str, owner: str | None, min_rows: int) -> Array:
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float32, np.float64):
        _check_least(X.shape, owner, min_rows)
        return X  # as check_array would, in a fraction of a millisecond
    try:
        data = check_array(
            X,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite=False,  # checked block by block below
            ensure_min_samples=min_rows,
            estimator=owner,
            input_name=name,
        )
        # Data frames with mixed dtypes may still have dtype object.
        return data.astype(np.float64) if data.dtype == object else data
    except ValueError as error:
        columns = object_rows.text_columns(X)
        if not columns:
            if not object_rows.is_table(X):
                error.add_note(
                    "Objects such as strings or lists of different lengths need a kernel function "
                    "of two objects: FunctionKernel(function, pairwise=True)."
                )
            raise
        raise ValueError(
            f"{name} must be numeric; these columns are not: {', '.join(columns)}. "
            "Encode them (scikit-learn's OneHotEncoder or OrdinalEncoder) or drop them."
        ) from error


def _checked_foreign(X: Array, name: str, owner: str | None, min_rows: int) -> Array:
    if X.ndim != 2:
        raise ValueError(
            f"Expected a 2D array for {name}; got shape {tuple(X.shape)}. Reshape it to "
            "(n_rows, n_columns)."
        )
    if array_ops.kind(X, "complex floating"):
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}.")
    _check_least(X.shape, owner, min_rows)
    # A fit does not propagate gradients, so use only the values.
    return X.detach() if hasattr(X, "detach") else X


def _check_finite(rows: ArrayRows, name: str) -> None:
    def check(block: Array, numbers: range) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if array_ops.all_finite(block):
                return
        row, column = np.argwhere(~np.isfinite(array_ops.to_numpy(block)))[0]
        raise ValueError(
            f"Input {name} contains NaN or infinity: the first is in row {numbers[row]}, column "
            f"{column}. Drop such rows or fill them in (scikit-learn's SimpleImputer)."
        )

    if rows.shape[0] * rows.row_bytes <= CACHE_BYTES:
        check(rows.data, range(rows.shape[0]))
        return
    walk = Walk(label=f"checking {name}")
    deque(rows._run(check, (range(rows.shape[0]),), walk), maxlen=0)
