"""Kernel k-means on the exact kernel matrix."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gramian import _arrays, _settings
from gramian._arrays import Array
from gramian._checks import choice, not_negative, positive_integer
from gramian._progress import progress
from gramian.gram import Gram
from gramian.learners.base import (
    KernelLearner,
    all_or_nothing,
    as_weights,
    example,
    generator,
)
from gramian.rows import as_rows, one_blas_thread

__all__ = ["KernelKMeans"]


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, KernelLearner):
    """k-means in the space of a kernel: clusters of any shape that the kernel can tell apart.

    A cluster's centre is the mean of its rows' images; distances to it need only the kernel:
    k(x, x) - 2/|C| Σ k(x, x_s) + 1/|C|² ΣΣ k(x_s, x_t). All restarts advance together, so that they
    share each pass over the kernel matrix. The matrix is kept while it is small; beyond (some six
    thousand rows) it is computed anew in each pass, tile by tile.

    Parameters
    ----------
    n_clusters : int, default=8
    kernel : str, Kernel or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
        Clusters that wind around each other need a kernel that sees near rows only, such as
        ``RBF(("percentile", 10))``.
    init : {"k-means++", "random"} or array, default="k-means++"
        How the first centres are chosen: rows far from each other in the kernel's distance, or any
        rows. An array gives them: points of shape (n_clusters, n_columns), or the numbers of
        n_clusters rows.
    n_init : int, default=3
        Restarts from different first centres; the best is kept. 1 is used where init is an array.
    max_iter : int, default=300
    tol : float, default=1e-6
        Stop when the objective falls by less than this part of itself; 0 waits until no label
        changes.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n,)
        The cluster of each training row.
    inertia_ : float
        The sum of squared distances in the kernel's space to the nearest centre (weighted).
    inertia_history_ : list of float
        The objective after each iteration of the best restart; it never rises.
    n_iter_ : int
    kernel_ : Kernel
        The kernel in use, its parameters worked out.
    points_ : Rows
        The training rows, of which the centres are means.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from gramian import RBF, KernelKMeans
    >>> X, rings = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> labels = KernelKMeans(2, kernel=RBF(gamma=5.0), random_state=0).fit_predict(X)
    >>> bool((labels == rings).all() or (labels != rings).all())
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: Any = "rbf",
        *,
        init: Any = "k-means++",
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Find the clusters of the rows of X."""
        k = positive_integer(self, "n_clusters", self.n_clusters)
        not_negative(self, "tol", self.tol)
        rng = generator(self.random_state)
        gram, weights = self._training_gram(X, rng, sample_weight)
        n = gram.shape[0]
        if k > n:
            raise ValueError(
                f"n_samples={n} should be >= n_clusters={k}: there are fewer rows than clusters."
            )
        if weights is None:
            weights = gram.rows.xp.ones_like(gram.diag(), dtype=gram.rows.xp.float64)
        gram, by_rows = gram.persist(), gram
        if isinstance(self.init, str):
            first = self._drawn_labels(gram, weights, rng)
        else:
            first = [_assign(*self._given_centres(by_rows))]
        # What each restart holds: a matrix of weights, its product with K, and copies of both.
        at_once = max(1, _settings.memory_budget() // 4 // (n * k * 8 * 4))
        runs = [
            run
            for start in range(0, len(first), at_once)
            for run in self._lloyd(gram, weights, first[start : start + at_once])
        ]
        best = min(runs, key=lambda run: run.inertia)
        found = len(np.unique(_arrays.to_numpy(best.labels)))
        if found < k:
            warnings.warn(
                f"Only {found} distinct clusters were found for n_clusters={k}: there may be "
                "duplicates among the rows.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.labels_ = _arrays.astype(best.labels, gram.rows.xp.int32)
        self.inertia_ = best.inertia
        self.inertia_history_ = best.history
        self.n_iter_ = len(best.history)
        self._centres = _centres([best.centres], weights, k)
        self._norms = best.norms
        self._n_features_out = k
        return self

    def predict(self, X: Any) -> Array:
        """The nearest centre of each row of X."""
        gram, distances = self._distances(X, diagonal=False)
        xp = gram.rows.xp
        return _arrays.astype(xp.argmin(distances, axis=1), xp.int32)

    def transform(self, X: Any) -> Array:
        """The distance, in the kernel's space, from each row of X to each centre."""
        gram, squared = self._distances(X)
        return _arrays.astype(_arrays.inplace("sqrt", squared), gram.dtype)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then the distance of each training row to each centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances of the rows of X to their nearest centre."""
        gram, squared = self._distances(X)
        nearest = gram.rows.xp.min(squared, axis=1)
        weights = as_weights(sample_weight, gram.rows)
        return -float(gram.rows.xp.sum(nearest if weights is None else nearest * weights))

    def risk(self, X: Any) -> float:
        """The mean squared distance of the rows of X to their nearest centre: W(C, μ)."""
        gram, squared = self._distances(X)
        return float(gram.rows.xp.mean(gram.rows.xp.min(squared, axis=1)))

    def _distances(self, X: Any, *, diagonal: bool = True) -> tuple[Gram, Array]:
        """Squared distances of new rows to each centre in float64; less k(x, x) if so asked."""
        check_is_fitted(self, "labels_")
        gram = self._cross_gram(X)
        xp = gram.rows.xp
        squared = self._norms - 2.0 * _arrays.astype(gram.matmul(self._centres), xp.float64)
        if diagonal:
            own = _arrays.astype(self.kernel_.diagonal(gram.rows), xp.float64)
            squared = _arrays.clip(squared + own[:, None], low=0.0)
        return gram, squared

    def _drawn_labels(self, gram: Gram, weights: Array, rng: np.random.Generator) -> list[Array]:
        """For each restart, the labels of all rows by their nearest first centre."""
        k, n = int(self.n_clusters), gram.shape[0]
        choice(self, "init", self.init, ("k-means++", "random"))
        host = _arrays.to_numpy(weights)
        labels = []
        for _ in range(positive_integer(self, "n_init", self.n_init)):
            if self.init == "random":
                seeds = _draw_rows(rng, host, k)
            else:
                seeds = _plus_plus(gram, host, k, rng)
            seeds = np.concatenate((seeds, rng.choice(n, size=k - len(seeds))))
            own = _arrays.take_rows(gram.diag(), seeds)
            labels.append(_assign(gram.columns(seeds), own))
        return labels

    def _given_centres(self, gram: Gram) -> tuple[Array, Array]:
        """K(rows, centres) and k(centre, centre) of the first centres that the user gave."""
        k, d = int(self.n_clusters), gram.rows.shape[1]
        given = np.asarray(_arrays.to_numpy(self.init))
        if given.shape == (k,) and given.dtype.kind in "iu":
            return gram.columns(given), _arrays.take_rows(gram.diag(), given)
        if given.shape != (k, d):
            raise ValueError(
                f"init must be 'k-means++', 'random', {k} points of shape ({k}, {d}), or the "
                f"numbers of {k} rows; got an array of shape {given.shape} and dtype {given.dtype}."
            )
        points = as_rows(_arrays.like(given, example(gram.rows), gram.rows.dtype), name="init")
        return Gram(gram.kernel, gram.rows, points).dense(), gram.kernel.diagonal(points)

    def _lloyd(self, gram: Gram, weights: Array, first: list[Array]) -> list[_Run]:
        """Lloyd's iterations of several restarts at once."""
        xp, k = gram.rows.xp, int(self.n_clusters)
        diagonal = _arrays.astype(gram.diag(), xp.float64)
        constant = float(xp.sum(weights * diagonal))
        runs = [_Run(labels) for labels in first]
        going = list(runs)
        max_iter = positive_integer(self, "max_iter", self.max_iter)
        with progress("kernel k-means", max_iter) as step:
            for _ in range(max_iter):
                V = _centres([run.labels for run in going], weights, k)
                KV = _arrays.astype(gram.matmul(V), xp.float64)
                norms = xp.sum(V * KV, axis=0)
                empty = xp.sum(V, axis=0) == 0
                norms = xp.where(empty, xp.full_like(norms, xp.inf), norms)
                for i, run in enumerate(going):
                    own = slice(i * k, (i + 1) * k)
                    run.advance(norms[own] - 2.0 * KV[:, own], norms[own], weights, constant)
                    run.refill(diagonal, weights, k)
                going = [run for run in going if not run.converged(float(self.tol))]
                step()
                if not going:
                    break
        return runs


@dataclass(eq=False)
class _Run:
    """One restart: labels, the labels whose means the centres are, the objective so far."""

    labels: Array
    centres: Array = None
    norms: Array = None
    history: list[float] = field(default_factory=list)
    nearest: Array = None
    refilled: bool = False

    @property
    def inertia(self) -> float:
        return self.history[-1]

    def advance(self, distances: Array, norms: Array, weights: Array, constant: float) -> None:
        """Move each row to its nearest centre; distances are squared, less k(x, x)."""
        xp = _arrays.namespace(distances)
        self.centres, self.norms = self.labels, norms
        self.labels = xp.argmin(distances, axis=1)
        self.nearest = xp.min(distances, axis=1)
        self.history.append(max(float(xp.sum(weights * self.nearest)) + constant, 0.0))

    def refill(self, diagonal: Array, weights: Array, k: int) -> None:
        """Give each empty cluster the row that is farthest from its centre."""
        labels = _arrays.to_numpy(self.labels)
        counted = _arrays.to_numpy(weights) > 0
        sizes = np.bincount(labels[counted], minlength=k)
        empty = np.flatnonzero(sizes == 0)
        self.refilled = False
        if not len(empty):
            return
        squared = _arrays.to_numpy(self.nearest + diagonal)
        # Below this a distance is rounding: the row coincides with its centre.
        noise = 1e3 * _arrays.eps(diagonal.dtype) * float(np.max(_arrays.to_numpy(diagonal)))
        labels = labels.copy()
        for row in np.argsort(-squared):
            if not len(empty) or squared[row] <= noise:
                break
            if counted[row] and sizes[labels[row]] > 1:
                sizes[labels[row]] -= 1
                labels[row], empty = empty[0], empty[1:]
                self.refilled = True
        if self.refilled:
            self.labels = _arrays.like(labels, self.labels)

    def converged(self, tol: float) -> bool:
        if self.refilled:
            return False
        same = _arrays.namespace(self.labels).all(self.labels == self.centres)
        if bool(same):
            return True
        if len(self.history) < 2:
            return False
        before, now = self.history[-2:]
        return tol > 0 and before - now <= tol * before


def _centres(labels: list[Array], weights: Array, k: int) -> Array:
    """For each restart, the n × k matrix whose columns weigh the rows into the clusters' means."""
    xp = _arrays.namespace(weights)
    numbers = _arrays.like(np.arange(k), weights)
    members = [_arrays.astype(each[:, None] == numbers, xp.float64) for each in labels]
    V = xp.concat(members, axis=1) * weights[:, None]
    mass = xp.sum(V, axis=0)
    return V / xp.where(mass > 0, mass, xp.ones_like(mass))


def _assign(columns: Array, own: Array) -> Array:
    """The nearest of some points, from K(rows, points) and k(point, point)."""
    return _arrays.namespace(columns).argmin(own - 2.0 * columns, axis=1)


def _draw_rows(rng: np.random.Generator, weights: np.ndarray, k: int) -> np.ndarray:
    """Different rows with probability in proportion to their weights."""
    size = min(k, int(np.count_nonzero(weights)))
    return rng.choice(len(weights), size=size, replace=False, p=weights / weights.sum())


def _plus_plus(gram: Gram, weights: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Greedy k-means++ in the kernel's space: at most k row numbers.

    Each seed is the best of a few rows drawn in proportion to their squared distance from the seeds
    so far. It ends early where every row coincides with a seed.
    """
    diagonal = _arrays.to_numpy(gram.diag()).astype(np.float64)

    def squared_distances(rows: np.ndarray) -> np.ndarray:
        columns = _arrays.to_numpy(gram.columns(rows)).astype(np.float64)
        return np.maximum(diagonal[:, None] + diagonal[rows] - 2.0 * columns, 0.0)

    seeds = _draw_rows(rng, weights, 1)
    closest = squared_distances(seeds)[:, 0]
    trials = 2 + int(np.log(k))
    while len(seeds) < k and (weights * closest).any():
        chances = weights * closest
        candidates = rng.choice(len(weights), size=trials, p=chances / chances.sum())
        distances = np.minimum(closest[:, None], squared_distances(candidates))
        best = int(np.argmin(weights @ distances))
        seeds, closest = np.append(seeds, candidates[best]), distances[:, best]
    return seeds
