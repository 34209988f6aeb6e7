"""TableModel: a fitted estimator together with the preparation of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.backend import array_ops
from gramian.rows import Rows
from gramian.tables.preparation import Preparation
from gramian.tables.sources import Table, open_table

__all__ = ["TableModel"]


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
    >>> preparation = Preparation(table)
    >>> rows = preparation.rows(preparation.raw(table))
    >>> model = TableModel(KernelKMeans(3, random_state=0).fit(rows), preparation)
    >>> model.predict("iris").shape
    (150,)
    """

    def __init__(self, estimator: Any, preparation: Preparation) -> None:
        self.estimator = estimator
        self.preparation = preparation

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.estimator!r})"

    def rows(self, source: Any) -> Rows:
        """Return the rows of a table, prepared as for the fit."""
        if not isinstance(source, Table):
            source = open_table(source, like=self.preparation.names)
        return self.preparation.rows(self.preparation.raw(source))

    def predict(self, source: Any) -> np.ndarray:
        """Predict each row of a table."""
        return np.asarray(array_ops.to_numpy(self.estimator.predict(self.rows(source))))

    def transform(self, source: Any) -> np.ndarray:
        """Transform each row of a table."""
        return np.asarray(array_ops.to_numpy(self.estimator.transform(self.rows(source))))
