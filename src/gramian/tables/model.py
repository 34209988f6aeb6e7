"""TableModel: a fitted estimator together with the preparation of its rows."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from gramian.backend import array_ops
from gramian.backend.typing import Array, ArrayLike
from gramian.rows import Rows
from gramian.tables.preparation import Preparation
from gramian.tables.sources import as_table

__all__ = ["TableModel", "applied"]

BLOCK = 10_000  # rows that a pipeline gets at once


class TableModel:
    """A fitted estimator that accepts tables: files, folders, named data sets.

    The command ``gramian`` writes these with ``--model``, and :func:`gramian.load` reads them.

    Parameters
    ----------
    estimator : estimator
        Fitted on prepared rows.
    preparation : Preparation

    Examples
    --------
    >>> from gramian import KernelKMeans
    >>> from gramian.tables import Preparation, TableModel, open_table
    >>> table = open_table("iris")
    >>> preparation = Preparation(numbers=["2", "3"])
    >>> X = preparation.fit_transform(table)
    >>> model = TableModel(KernelKMeans(3, random_state=0).fit(X), preparation)
    >>> model.predict("iris").shape
    (150,)
    """

    def __init__(self, estimator: BaseEstimator, preparation: Preparation) -> None:
        self.estimator = estimator
        self.preparation = preparation

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.estimator!r})"

    def rows(self, source: ArrayLike) -> Rows:
        """Return the rows of a table, prepared as for the fit."""
        table = as_table(source, like=self.preparation.names)
        if self.preparation.drop_missing:
            table = table.complete([name for name in self.preparation.names if name in table.facts])
        return self.preparation.rows(self.preparation.raw(table))

    def predict(self, source: ArrayLike) -> np.ndarray:
        """Predict each row of a table."""
        return np.asarray(array_ops.to_numpy(applied(self.estimator, "predict", self.rows(source))))

    def transform(self, source: ArrayLike) -> np.ndarray:
        """Transform each row of a table."""
        return np.asarray(
            array_ops.to_numpy(applied(self.estimator, "transform", self.rows(source)))
        )


def applied(estimator: BaseEstimator, method: str, rows: Rows) -> Array:
    """Call a method of an estimator with rows; scikit-learn's pipelines get arrays, in blocks."""
    call = getattr(estimator, method)
    if not hasattr(estimator, "named_steps"):
        return call(rows)
    n = rows.shape[0]
    starts = range(0, n, BLOCK)
    blocks = (rows.take(np.arange(start, min(start + BLOCK, n))) for start in starts)
    return np.concatenate([call(array_ops.host_float64(array_ops.dense(b))) for b in blocks])
