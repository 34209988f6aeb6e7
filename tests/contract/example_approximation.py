"""An approximation from outside the package, as CONTRIBUTING says to write one."""

import numpy as np

from gramian import Approximation
from gramian.backend import array_ops


class FewRows(Approximation):
    """The plainest Nyström method: features k(x, points) K(points, points)^(-1/2)."""

    compared = {"Few rows": {}}
    below = True

    def __init__(self, kernel="rbf", n_components=20, *, random_state=None):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def _fit(self, gram, rng, y, plan):
        n = gram.shape[0]
        chosen = np.sort(rng.choice(n, size=min(self.n_components, n), replace=False))
        self.points_ = gram.points.take(chosen)
        values, vectors = np.linalg.eigh(array_ops.to_numpy(gram.block(chosen, chosen)))
        kept = values > 1e-6 * values[-1]
        root = vectors[:, kept] / np.sqrt(values[kept])
        self.root_ = array_ops.like(root, self.points_, gram.dtype)
        return int(kept.sum())

    def _features(self, x, out=None):
        values = self.kernel_.against(self.points_)(x)
        return array_ops.matmul(array_ops.astype(values, self.root_.dtype), self.root_, out)
