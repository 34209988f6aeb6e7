"""Kernel k-means on the exact kernel matrix."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gramian import _arrays, _settings
from gramian._arrays import Array
from gramian._checks import choice, not_negative, positive_integer
from gramian._estimators import all_or_nothing, generator
from gramian._objects import numbers_or_objects
from gramian._threads import one_blas_thread
from gramian.approximations import Approximation, Nystroem
from gramian.factors import Factors
from gramian.gram import Gram
from gramian.kernels import Kernel
from gramian.learners._lloyd import Run, on_factors, on_matrix
from gramian.learners.base import KernelLearner, NewRows, as_weights
from gramian.rows import ArrayRows, Rows, as_rows
from gramian.samplers.centroids import draw, plus_plus

__all__ = ["KernelKMeans"]


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, KernelLearner):
    """k-means in the space of a kernel: clusters of any shape that the kernel can tell apart.

    A cluster's centre is the mean of its rows' images; distances to it need only the kernel:
    k(x, x) - 2/|C| Σ k(x, x_s) + 1/|C|² ΣΣ k(x_s, x_t). All restarts advance together, so that they
    share each pass over the kernel matrix, or over the features of an approximation of it.

    The exact matrix is used while it is small (some six thousand rows). Beyond, a bare kernel
    stands for its Nyström approximation with √n landmarks (Calandriello and Rosasco, 2018).
    ``Exact(kernel)`` asks for the exact matrix at any size; it is then computed anew in each pass.

    Parameters
    ----------
    n_clusters : int, default=8
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
        Clusters that wind around each other need a kernel that sees near rows only, such as
        ``RBF(("percentile", 10))``.
    init : {"k-means++", "random"} or array, default="k-means++"
        How the first centres are chosen: rows far from each other in the kernel's distance, or any
        rows. An array gives them: points of shape (n_clusters, n_columns), n_clusters objects, or
        the numbers of n_clusters rows.
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
    approximation_ : Approximation or None
        The approximation in use; ``inertia_`` and ``transform`` are then in its terms.
    points_ : Rows or None
        The training rows, of which the centres are means, where K is exact.

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

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        return Nystroem(kernel, "sqrt")

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Find the clusters of the rows of X."""
        k = positive_integer(self, "n_clusters", self.n_clusters)
        not_negative(self, "tol", self.tol)
        positive_integer(self, "max_iter", self.max_iter)
        rng = generator(self.random_state)
        matrix, rows, weights = self._training(X, rng, sample_weight, y)
        n = rows.shape[0]
        if k > n:
            raise ValueError(
                f"n_samples={n} should be >= n_clusters={k}: there are fewer rows than clusters."
            )
        if weights is None:
            weights = _arrays.like(np.ones(n), rows.example(), rows.xp.float64)
        if isinstance(matrix, Factors):
            runs = self._fit_factors(matrix.persist(), rows, weights, rng)
        else:
            runs = self._fit_exact(matrix, weights, rng)
        best = min(runs, key=lambda run: run.inertia)
        found = len(np.unique(_arrays.to_numpy(best.labels)))
        if found < k:
            warnings.warn(
                f"Only {found} distinct clusters were found for n_clusters={k}: there may be "
                "duplicates among the rows.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.labels_ = _arrays.astype(best.labels, rows.xp.int32)
        self.inertia_ = best.inertia
        self.inertia_history_ = best.history
        self.n_iter_ = len(best.history)
        self._learned, self._norms = best.learned, best.norms
        self._n_features_out = k
        return self

    def _fit_exact(self, gram: Gram, weights: Array, rng: np.random.Generator) -> list[Run]:
        gram, by_rows = gram.persist(), gram
        k, n = int(self.n_clusters), gram.shape[0]
        if isinstance(self.init, str):
            host = _arrays.to_numpy(weights)
            seeds = [self._seeds(gram, host, rng) for _ in range(self._restarts())]
            own = [_arrays.take_rows(gram.diag(), each) for each in seeds]
            first = [_nearest(gram.columns(s), o) for s, o in zip(seeds, own, strict=True)]
        else:
            first = [_nearest(*self._given_centres(by_rows))]
        # What each restart holds: a matrix of weights, its product with K, and copies of both.
        at_once = max(1, _settings.memory_budget() // 4 // (n * k * 8 * 4))
        return [
            run
            for start in range(0, len(first), at_once)
            for run in on_matrix(
                gram,
                weights,
                first[start : start + at_once],
                k,
                max_iter=self.max_iter,
                tol=self.tol,
            )
        ]

    def _fit_factors(
        self, factors: Factors, rows: Rows, weights: Array, rng: np.random.Generator
    ) -> list[Run]:
        k = int(self.n_clusters)
        # Seeds are sought among some of the rows that count: many for each cluster of any size.
        host = _arrays.to_numpy(weights)
        counted = np.flatnonzero(host)
        size = min(len(counted), 1000 + 200 * k)
        chosen = np.sort(rng.choice(counted, size=size, replace=False))
        sample = factors.take(chosen)
        if isinstance(self.init, str):
            seeds = [self._seeds(sample, host[chosen], rng) for _ in range(self._restarts())]
            first = [sample.coordinates(each) for each in seeds]
        else:
            first = [self._given_features(rows)]
        return on_factors(factors, weights, first, k, sample, max_iter=self.max_iter, tol=self.tol)

    def _restarts(self) -> int:
        choice(self, "init", self.init, ("k-means++", "random"))
        return positive_integer(self, "n_init", self.n_init)

    def _seeds(
        self, gram: Gram | Factors, weights: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The numbers of the rows that are the first centres."""
        k = int(self.n_clusters)
        if self.init == "random":
            seeds = draw(rng, weights, k)
        else:
            seeds = plus_plus(gram, k, rng, weights=weights)
        return np.concatenate((seeds, rng.choice(len(weights), size=k - len(seeds))))

    def predict(self, X: Any) -> Array:
        """The nearest centre of each row of X."""
        new, squared = self._distances_less_diagonal(X)
        xp = new.rows.xp
        return _arrays.astype(xp.argmin(squared, axis=1), xp.int32)

    def transform(self, X: Any) -> Array:
        """The distance, in the kernel's space, from each row of X to each centre."""
        new, squared = self._squared_distances(X)
        return _arrays.astype(_arrays.inplace("sqrt", squared), new.dtype)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then the distance of each training row to each centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances of the rows of X to their nearest centre."""
        new, squared = self._squared_distances(X)
        nearest = new.rows.xp.min(squared, axis=1)
        weights = as_weights(sample_weight, new.rows)
        return -float(new.rows.xp.sum(nearest if weights is None else nearest * weights))

    def risk(self, X: Any) -> float:
        """The mean squared distance of the rows of X to their nearest centre: W(C, μ).

        Distances are those of the kernel itself: with an approximation, what it leaves out of
        k(x, x) counts too. One that is unbiased, such as KernelJL, leaves nothing out: its own
        distances are taken, since they are closer than a difference of large estimates.
        """
        new, squared = self._squared_distances(X, exactly=True)
        return float(new.rows.xp.mean(new.rows.xp.min(squared, axis=1)))

    def _distances_less_diagonal(self, X: Any) -> tuple[NewRows, Array]:
        """Squared distances of new rows to each centre, less k(x, x)."""
        check_is_fitted(self, "labels_")
        new = self._new_rows(X, self._learned)
        return new, self._norms - 2.0 * new.product

    def _squared_distances(self, X: Any, exactly: bool = False) -> tuple[NewRows, Array]:
        new, squared = self._distances_less_diagonal(X)
        if new.factors is None or (exactly and not self._is_unbiased()):
            own = _arrays.astype(self.kernel_.diagonal(new.rows), new.rows.xp.float64)
        else:
            own = new.factors.diagonal()
        return new, _arrays.clip(squared + own[:, None], low=0.0)

    def _is_unbiased(self) -> bool:
        return self.approximation_ is not None and self.approximation_.unbiased

    def _given_centres(self, gram: Gram) -> tuple[Array, Array]:
        """K(rows, centres) and k(centre, centre) of the first centres that the user gave."""
        given = self._checked_init(gram.rows)
        if isinstance(given, Rows):
            return Gram(gram.kernel, gram.rows, given).dense(), gram.kernel.diagonal(given)
        return gram.columns(given), _arrays.take_rows(gram.diag(), given)

    def _given_features(self, rows: Rows) -> Array:
        """Features of the first centres that the user gave."""
        assert self.approximation_ is not None
        given = self._checked_init(rows)
        points = given if isinstance(given, Rows) else ArrayRows(rows.take(given))
        return self.approximation_.factor_rows(points).coordinates(np.arange(points.shape[0]))

    def _checked_init(self, rows: Rows) -> np.ndarray | Rows:
        """The numbers of the rows that are the first centres, or other points."""
        k, d = int(self.n_clusters), rows.shape[1]
        given = self.init if not rows.are_objects else numbers_or_objects(self.init, "init")
        given = np.asarray(_arrays.to_numpy(given))
        numbers = given.shape == (k,) and given.dtype.kind in "iu"
        if not numbers and given.shape != ((k,) if rows.are_objects else (k, d)):
            points = "objects" if rows.are_objects else f"points of shape ({k}, {d})"
            raise ValueError(
                f"init must be 'k-means++', 'random', {k} {points}, or the numbers of {k} rows; "
                f"got an array of shape {given.shape} and dtype {given.dtype}."
            )
        if not numbers:
            given = _arrays.like(given, rows.example(), rows.dtype)
            return as_rows(given, name="init", objects=rows.are_objects)
        if given.min() < 0 or given.max() >= rows.shape[0]:
            raise ValueError(
                f"init given as row numbers must be from 0 to {rows.shape[0] - 1}; got "
                f"{given.min()} to {given.max()}."
            )
        return given


def _nearest(columns: Array, own: Array) -> Array:
    """The nearest of some points, from K(rows, points) and k(point, point)."""
    return _arrays.namespace(columns).argmin(own - 2.0 * columns, axis=1)
