"""A kernel of categories."""

from __future__ import annotations

import numpy as np

from gramian.backend.array_ops import Array
from gramian.kernels import pairings
from gramian.kernels.stationary import ExponentialDecay

__all__ = ["Categorical"]


class Categorical(ExponentialDecay):
    """Kernel of categories, exp(-gamma Σ weight of each column in which x and y differ).

    Columns have a number for each category, as scikit-learn's ``OrdinalEncoder`` makes them; their
    order means nothing. With :class:`Columns`, a mixed table needs no one-hot encoding.

    Parameters
    ----------
    gamma : float, str or tuple, optional
        A positive number or a rule: ``"mean"`` (the default), ``"median"`` or
        ``("percentile", q)`` of the weights in which sampled rows differ, or ``"loo"`` as in
        :class:`RBF`.
    bandwidth : float or "loo", optional
        σ, in place of gamma = 1 / σ.
    scales : array of shape (n_features,), optional
        The weights of the columns, by default 1 each; they cannot be learned.

    See Also
    --------
    Columns : a kernel of some columns.

    Examples
    --------
    >>> from gramian import Categorical
    >>> Categorical(1.0)([[0.0, 3.0]], [[0.0, 3.0], [0.0, 1.0], [2.0, 1.0]]).round(3)
    array([[1.   , 0.368, 0.135]])
    """

    names = ("categorical",)
    pairing = staticmethod(pairings.mismatches)
    stationary = True
    takes_sparse = False
    squared = False
    default_rule = "mean"

    def against(self, points: Array) -> pairings.Tile:
        pair = pairings.mismatches(points, self._scale(), 0.0, self._weights(points.shape[1]))
        return lambda x, out=None: self._profile(pair(x, out))

    def pairings(self, X: np.ndarray) -> np.ndarray:
        return pairings.mismatches(X, 1.0, 0.0, self._weights(X.shape[1]))(X)

    def _weights(self, d: int) -> np.ndarray | None:
        weights = self.column_scales()
        if weights is not None and (weights.shape != (d,) or (weights < 0).any()):
            raise ValueError(
                f"scales of Categorical must be one number, at least 0, for each of the {d} "
                f"columns; got {self.scales!r:.80}."
            )
        return weights

    def _seen(self, X: Array) -> Array:
        return X

    def _distances(self, sample: Array) -> np.ndarray:
        return self.pairings(sample)

    def _from_spread(self, d: int, variance: float) -> float:
        raise ValueError(
            "Categorical has no gamma='scale'; use 'mean', 'median', ('percentile', q), 'loo' or a "
            "number."
        )
