"""How much of the variance in feature space clusters explain, by the exact kernel."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from gramian.backend import array_ops
from gramian.backend.typing import ArrayLike
from gramian.kernels import Kernel, as_kernel
from gramian.kernels.base import KernelLike
from gramian.matrices.gram import Gram
from gramian.rows import Rows

__all__ = ["explained_variance"]


def explained_variance(X: ArrayLike, labels: ArrayLike, kernel: KernelLike = "rbf") -> float:
    """Return the share of the variance of the rows X, in feature space, that clusters explain.

    It is 1 if all rows of a cluster are the same to the kernel, and 0 if the clusters tell nothing.
    The exact kernel is used, so the labels of different approximations can be compared. It takes
    one product with the kernel matrix, which is not stored.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import RBF, KernelKMeans
    >>> from gramian.analysis.clusters import explained_variance
    >>> X = load_iris().data
    >>> labels = KernelKMeans(3, kernel=RBF(0.1), random_state=0).fit_predict(X)
    >>> round(explained_variance(X, labels, RBF(0.1)), 2)
    0.79
    """
    own = clone(as_kernel(kernel))
    rows = own.read(X, owner="explained_variance", min_rows=2, objects=None)
    own.fit_rows(rows, np.random.default_rng(0))
    return ClusterScore(own, rows)(np.asarray(array_ops.to_numpy(labels)))


class ClusterScore:
    """The same for several labellings of the same rows."""

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self.gram = Gram(kernel, rows).persist()
        self.trace = self.gram.trace()
        self.variance = self.trace - self._sum_of_squares(np.ones((rows.shape[0], 1)))

    def __call__(self, labels: np.ndarray) -> float:
        members = (labels[:, None] == np.unique(labels)).astype(np.float64)
        left = self.trace - self._sum_of_squares(members)
        return 1.0 - left / self.variance if self.variance > 0 else 0.0

    def _sum_of_squares(self, members: np.ndarray) -> float:
        """Σ_c |C| ‖mean of C‖² in feature space, for the clusters in the columns."""
        V = members / np.sqrt(members.sum(axis=0))
        images = array_ops.to_numpy(self.gram.matmul(V))
        return float(np.sum(V * images))
