"""Landmarks that are centres of clusters, or rows far from each other."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian import _arrays, _settings
from gramian._checks import positive_integer
from gramian.gram import Gram
from gramian.kernels import Precomputed
from gramian.rows import Rows
from gramian.samplers.base import Landmarks, Oracle, Sampler, from_rows, host_diagonal

__all__ = ["KMeansCentres", "KMeansPlusPlus", "plus_plus"]


class KMeansCentres(Sampler):
    """Centres of k-means in the space of the rows, found on a subsample; no kernel evaluation.

    (Zhang, Tsang and Kwok, 2008.) The clustering is scikit-learn's.

    Parameters
    ----------
    rows_per_centre : int, default=15
        The subsample has this many rows for each landmark.
    max_iter : int, default=4
        Lloyd's steps; more hardly lower the error.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, KMeansCentres
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> landmarks = KMeansCentres().select(Gram(RBF(1.0), X), 2, np.random.default_rng(0))
    >>> sorted(landmarks.points.ravel().tolist())
    [0.5, 10.5]
    """

    def __init__(self, rows_per_centre: int = 15, max_iter: int = 4) -> None:
        self.rows_per_centre = rows_per_centre
        self.max_iter = max_iter

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        from sklearn.cluster import KMeans  # takes long to import

        if isinstance(gram.kernel, Precomputed) or gram.rows.are_objects:
            got = "objects" if gram.rows.are_objects else "a precomputed matrix"
            raise ValueError(
                f"k-means centres need rows that are vectors; got {got}. Use "
                "landmarks='rpcholesky'."
            )
        n, size = gram.shape[0], self._sample_size(gram.rows, m)
        example = gram.rows.take(np.sort(rng.choice(n, size=size, replace=False)))
        sample = example if _arrays.issparse(example) else _arrays.to_numpy(example)
        kmeans = KMeans(
            min(m, size),
            init="random",
            n_init=1,
            max_iter=positive_integer(self, "max_iter", self.max_iter),
            random_state=int(rng.integers(2**31)),
            copy_x=False,
        )
        with warnings.catch_warnings():  # of clusters that coincide: they are left out below
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = kmeans.fit_predict(sample)
        centres = kmeans.cluster_centers_[np.unique(labels)]
        return Landmarks(_arrays.like(centres, _arrays.dense(example), gram.rows.dtype))

    def _sample_size(self, rows: Rows, m: int) -> int:
        """As many rows as asked for, if they take no more than a quarter of the memory budget."""
        wanted = m * positive_integer(self, "rows_per_centre", self.rows_per_centre)
        room = _settings.memory_budget() // 4 // rows.row_bytes
        return min(rows.shape[0], wanted, max(m, room))

    def select_bytes(self, rows: Rows, m: int) -> int:
        (n, d), size = rows.shape, self._sample_size(rows, m)
        # Beside the sample its labels and norms; centres, old, new and as sums of each thread.
        centres = (4 + _settings.n_threads()) * m * d * _arrays.itemsize(rows.dtype)
        return size * (rows.row_bytes + 24) + centres + 8 * n


class KMeansPlusPlus(Sampler):
    """k-means++ in the kernel's space: rows drawn by their squared distance from those before.

    n·m kernel evaluations, one column after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, KMeansPlusPlus
    >>> gram = Gram(RBF(1.0), [[0.0], [0.0], [5.0], [5.0]])
    >>> landmarks = KMeansPlusPlus().select(gram, 2, np.random.default_rng(0))
    >>> sorted(landmarks.points.ravel().tolist())
    [0.0, 5.0]
    """

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        return from_rows(gram, plus_plus(gram, min(m, gram.shape[0]), rng, trials=1))


def plus_plus(
    gram: Oracle,
    k: int,
    rng: np.random.Generator,
    *,
    weights: np.ndarray | None = None,
    trials: int | None = None,
) -> np.ndarray:
    """At most k row numbers by k-means++ in the kernel's space.

    ``gram`` is any oracle of a matrix with ``columns`` and ``diag``, exact or approximate.
    Each is the best of a few rows (``trials``; by default 2 + log k) drawn in proportion to their
    weight and squared distance from those so far. It ends early where every row coincides with one.
    """
    diagonal = host_diagonal(gram)
    if weights is None:
        weights = np.ones(len(diagonal))

    def squared_distances(rows: np.ndarray) -> np.ndarray:
        columns = _arrays.to_numpy(gram.columns(rows)).astype(np.float64)
        return np.maximum(diagonal[:, None] + diagonal[rows] - 2.0 * columns, 0.0)

    seeds = draw(rng, weights, 1)
    closest = squared_distances(seeds)[:, 0]
    trials = 2 + int(np.log(k)) if trials is None else trials
    while len(seeds) < k and (weights * closest).any():
        chances = weights * closest
        candidates = rng.choice(len(weights), size=trials, p=chances / chances.sum())
        distances = np.minimum(closest[:, None], squared_distances(candidates))
        best = int(np.argmin(weights @ distances))
        seeds, closest = np.append(seeds, candidates[best]), distances[:, best]
    return seeds


def draw(rng: np.random.Generator, weights: np.ndarray, k: int) -> np.ndarray:
    """Different rows with probability in proportion to their weights."""
    size = min(k, int(np.count_nonzero(weights)))
    return rng.choice(len(weights), size=size, replace=False, p=weights / weights.sum())
