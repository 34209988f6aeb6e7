"""Apply a transformer of scikit-learn to rows of any kind, block by block."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive_integer
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.rows import FeatureRows, Rows, as_rows
from gramian.rows.files import formats
from gramian.rows.reading import is_collection, is_path

__all__ = ["BlockTransformer"]

LEAST = 1000  # rows to learn from, even if they exceed the memory budget
COPIES = 4  # of a block, that a transformer makes


class BlockTransformer(TransformerMixin, BaseEstimator):
    """A transformer of scikit-learn for rows of any kind: it learns from a sample of them.

    :func:`tune` puts it around the transform of columns if its rows are in files or on dask.

    Parameters
    ----------
    transformer : estimator
        A transformer that handles each row on its own once it is fitted and keeps the number of
        columns, such as scikit-learn's ``StandardScaler`` or ``QuantileTransformer``.
    max_rows : int, default=100_000
        It is fitted to a random sample of this many rows, or to all if there are fewer. A sample
        takes at most an eighth of the memory budget.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    transformer_ : estimator
        The fitted transformer.

    See Also
    --------
    tune : makes pipelines with it.
    FeatureRows : what it returns for files.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian import BlockTransformer, KernelRidge
    >>> X = np.random.default_rng(0).normal(5.0, 2.0, (100, 3))
    >>> model = make_pipeline(BlockTransformer(StandardScaler()), KernelRidge())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", X)
    ...     model.fit(f"{folder}/rows.npy", X[:, 0]).predict(f"{folder}/rows.npy").shape
    (100,)
    """

    transformer_: Any

    def __init__(
        self, transformer: Any, *, max_rows: int = 100_000, random_state: RandomState = None
    ) -> None:
        self.transformer = transformer
        self.max_rows = max_rows
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: RowsLike, y: Any = None) -> BlockTransformer:
        """Fit the transformer to a sample of the rows X; ``y`` is ignored."""
        rows = self._read(X, reset=True)
        n, d = rows.shape
        most = positive_integer("BlockTransformer", "max_rows", self.max_rows)
        count = min(n, most, max(config.memory_budget() // (64 * d), LEAST))
        chosen: Any = range(n)
        if count < n:
            chosen = np.sort(generator(self.random_state).choice(n, count, replace=False))
        self.transformer_ = clone(self.transformer).fit(host(rows, chosen))
        return self

    def transform(self, X: RowsLike) -> Array | Rows:
        """Return the transformed rows: an array for an array.

        For a file, a dask collection or :class:`Rows` they are :class:`FeatureRows`, which learners
        accept: each walk over them reads and transforms the rows again, block by block.
        """
        check_is_fitted(self, "transformer_")
        rows = transformed(self.transformer_, self._read(X, reset=False))
        return rows if stays(X) else rows.collect()

    def _read(self, X: RowsLike, *, reset: bool) -> Rows:
        if is_path(X):  # in memory, it would be there besides what a learner holds
            from gramian.rows.files.opening import open_rows

            rows: Rows = open_rows(X)
        else:
            rows = as_rows(X, owner=type(self).__name__)
        if rows.names is not None:
            table = formats.empty_table(rows.names)
        else:
            table = rows if stays(X) else X
        validate_data(self, table, reset=reset, skip_check_array=True)
        return rows


def stays(X: object) -> bool:
    """Whether rows are not taken into memory as a whole: of files, on dask, or already rows."""
    on_disk = isinstance(X, np.ndarray) and array_ops.is_on_disk(X)
    return on_disk or isinstance(X, Rows) or is_path(X) or is_collection(X)


def host(rows: Rows, numbers: Any) -> np.ndarray:
    """Return the rows with these numbers as an array that scikit-learn takes."""
    return array_ops.host_float64(array_ops.dense(rows.take(numbers)))


def transformed(transformer: Any, rows: Rows) -> FeatureRows:
    """Return rows that a fitted transformer transforms in every walk."""
    d = rows.shape[1]
    return FeatureRows(rows, partial(_block, transformer), d, rows.dtype, work_bytes=8 * COPIES * d)


def _block(transformer: Any, x: Array, out: Array | None = None) -> Array:
    if not x.shape[0]:
        return x
    return array_ops.like(transformer.transform(array_ops.host_float64(x)), x, x.dtype)
