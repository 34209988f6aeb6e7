"""Scores of supervised learners, as scikit-learn computes them, for arrays of any library."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.base import ClassifierMixin, RegressorMixin

from gramian.backend import array_ops
from gramian.backend.typing import Array
from gramian.estimators.parameters import RowsLike


def host_arrays(*arrays: Array | None) -> list[Array | None]:
    """Return arrays as NumPy's, which scikit-learn's metrics take."""
    return [None if one is None else array_ops.to_numpy(one) for one in arrays]


class Classifier(ClassifierMixin):
    """A classifier whose accuracy can be asked for with tensors too."""

    predict: Callable[[RowsLike], Array]

    def score(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> float:
        """Return the share of rows of X whose class is predicted correctly."""
        from sklearn.metrics import accuracy_score  # takes long to import

        y, predicted, weights = host_arrays(y, self.predict(X), sample_weight)
        return float(accuracy_score(y, predicted, sample_weight=weights))


class Regressor(RegressorMixin):
    """A regressor whose R² can be asked for with tensors too."""

    predict: Callable[[RowsLike], Array]

    def score(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> float:
        """Return R², the share of the target's variance that is explained."""
        from sklearn.metrics import r2_score  # takes long to import

        y, predicted, weights = host_arrays(y, self.predict(X), sample_weight)
        return float(r2_score(y, predicted, sample_weight=weights))
