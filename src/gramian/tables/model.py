"""TableModel: a fitted estimator together with the preparation of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.backend import array_ops
from gramian.backend.typing import ArrayLike
from gramian.rows import Rows
from gramian.tables.preparation import Preparation
from gramian.tables.sources import as_table

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
    >>> preparation = Preparation(numbers=["2", "3"])
    >>> X = preparation.fit_transform(table)
    >>> model = TableModel(KernelKMeans(3, random_state=0).fit(X), preparation)
    >>> model.predict("iris").shape
    (150,)
    """

    def __init__(self, estimator: Any, preparation: Preparation) -> None:
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
        return np.asarray(array_ops.to_numpy(self.estimator.predict(self.rows(source))))

    def transform(self, source: ArrayLike) -> np.ndarray:
        """Transform each row of a table."""
        return np.asarray(array_ops.to_numpy(self.estimator.transform(self.rows(source))))
