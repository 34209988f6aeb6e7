"""Kernel k-means: on the exact kernel matrix, on the features of an approximation, on streams."""

from __future__ import annotations

import warnings
from math import ceil, sqrt
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.approximations import Approximation, Nystroem
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, not_negative, positive_integer
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.kernels import Kernel
from gramian.learners.base import Approximate, LearnerKernel
from gramian.learners.kmeans.batches import MiniBatches, update
from gramian.learners.kmeans.centres import KernelCentres
from gramian.learners.kmeans.clustering import Clustering, Run
from gramian.learners.kmeans.exact import ExactLloyd
from gramian.learners.kmeans.featured import FeaturedLloyd, with_features
from gramian.learners.kmeans.starts import Sample, first_centres
from gramian.rows import Rows

__all__ = ["KernelKMeans"]


class KernelKMeans(KernelCentres):
    """Kernel k-means: finds clusters of any shape that the kernel can separate.

    A cluster's centre is the mean of its rows in feature space; distances to it need only the
    kernel: k(x, x) - 2/|C| Σ k(x, x_s) + 1/|C|² ΣΣ k(x_s, x_t).

    A small kernel matrix (up to about six thousand rows) is used exactly, and all restarts share
    each pass over it. For more rows, a plain kernel is replaced by its Nyström approximation with
    √n landmarks (Calandriello and Rosasco, 2018), and Lloyd's algorithm runs on its features.
    Restarts run on a sample of 2,000 rows plus 400 per cluster, the best of them until passes gain
    little; passes over all rows continue from it. This is as good as restarts on all rows, which
    differ more among themselves, in a third of the time. If features have many more columns than
    there are clusters, restarts use only the dimensions in which the rows vary most. Where two
    centres share a cluster and another lacks one, swaps move them, as long as this lowers the
    objective. Where the sample is large, first centres come from 50 rows for each cluster, which
    also decide between restarts, and swaps are made on 100 rows for each cluster. If the features
    of all rows exceed the memory budget, passes over the rows whose features are cached come first.
    ``Exact(kernel)`` uses the exact matrix at any size, recomputed in every pass.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
        Clusters that wind around each other need a local kernel, such as
        ``RBF(("percentile", 10))``.
    init : {"k-means++", "random"} or array, default="k-means++"
        How to choose the first centres: rows far from each other in feature space, or random rows.
        An array sets them: points of shape (n_clusters, n_columns), n_clusters objects, or
        n_clusters row numbers.
    n_init : int, default=3
        Restarts from different first centres; the best is kept. On a small sample of the rows, for
        fewer than 20 clusters, or if the exact matrix is in memory, up to four times as many begin,
        and the best of them run until convergence. Only 1 if init is an array.
    max_iter : int, default=300
        The largest number of passes over the rows, or over as many rows in mini-batches.
    tol : float, default=1e-6
        Stop when the objective falls by less than this fraction of itself; 0 stops when no label
        changes. With mini-batches, stop when the smoothed objective has not fallen for ten batches.
    batch_size : int, optional
        Move the centres after each batch of this many random rows (Sculley, 2010), if passes over
        all rows take too long. Features of a batch are computed when it is drawn, features of all
        rows once, for the labels; none are cached. A plain kernel is then approximated for any
        number of rows. By default, full passes.
    half_precision : bool, default=False
        Cache features in half precision, if K is approximated. This halves the memory, and on a GPU
        also the time of a pass; on a CPU passes take longer. Features are rounded to 11 bits, so
        rows about halfway between two centres may change clusters.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n,)
        The cluster of each training row; after ``partial_fit``, of each row of the last batch,
        before the centres moved.
    inertia_ : float
        The sum of squared distances of the same rows to the nearest centre in feature space,
        weighted by sample weights.
    inertia_history_ : list of float
        The objective after each iteration of the best restart; it never rises. With mini-batches,
        the estimate from each batch, then the final value.
    n_iter_ : int
        The number of iterations; ``partial_fit`` adds to it.
    counts_ : array of shape (n_clusters,)
        The number (or total weight) of the rows averaged in each centre.
    centres_ : array of shape (n_clusters, r)
        The r features of each centre, if K is approximated.
    centre_coefficients_ : array of shape (m, n_clusters)
        The centres as combinations of kernel functions: centre j is Σ_i a_ij k(p_i, ·), and its
        inner product with a row is Σ_i a_ij k(p_i, x). The p_i are the m landmarks of Nystroem, or
        the rows ``points_`` if K is exact. Other approximations have only ``centres_``.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.
    approximation_ : Approximation or None
        The approximation in use; ``inertia_`` and ``transform`` then use its distances.
    points_ : Rows or None
        The training rows, if K is exact.

    See Also
    --------
    OnlineKernelKMeans : finds the number of clusters.
    KernelPCA : components in the same feature space.

    References
    ----------
    - D. Calandriello and L. Rosasco, Statistical and computational trade-offs in kernel k-means,
      NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from gramian import RBF, KernelKMeans
    >>> X, rings = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> labels = KernelKMeans(2, kernel=RBF(gamma=5.0), random_state=0).fit_predict(X)
    >>> bool((labels == rings).all() or (labels != rings).all())
    True

    Fit in batches:

    >>> model = KernelKMeans(2, kernel=RBF(gamma=5.0), random_state=0)
    >>> for batch in (X[:100], X[100:]):
    ...     model = model.partial_fit(batch)
    >>> labels = model.predict(X)
    >>> bool((labels == rings).all() or (labels != rings).all())
    True
    """

    strategies = (ExactLloyd(), MiniBatches(), FeaturedLloyd())

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: LearnerKernel = "rbf",
        *,
        init: str | Array = "k-means++",
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-6,
        batch_size: int | None = None,
        half_precision: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.half_precision = half_precision
        self.random_state = random_state

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        return Nystroem(kernel, ceil(sqrt(n)))

    def _fits_features(self) -> Approximate | None:
        return None if self.batch_size is None else self._default_approximation

    def _pose(self, **known: Any) -> Clustering:
        restarts = 1
        if isinstance(self.init, str):
            choice(self, "init", self.init, ("k-means++", "random"))
            restarts = positive_integer(self, "n_init", self.n_init)
        return Clustering(
            **known,
            k=self._checked(),
            init=self.init,
            restarts=restarts,
            max_iter=self.max_iter,
            tol=self.tol,
            batch_size=self.batch_size,
            half=self.half_precision,
            approximation=getattr(self, "approximation_", None),
        )

    @all_or_nothing
    @one_blas_thread()
    def fit(
        self, X: RowsLike, y: Array | None = None, sample_weight: Array | None = None
    ) -> KernelKMeans:
        """Cluster the rows of X."""
        self._checked()
        problem = self._problem(X, generator(self.random_state), sample_weight, y)
        self._check_enough(problem.rows)
        run = self._choose(problem).solve(problem)
        self._keep(run, problem.input_rows)
        return self

    def _keep(self, run: Run, rows: Rows) -> None:
        found = int(np.count_nonzero(array_ops.to_numpy(run.masses)))
        if found < self.n_clusters:
            warnings.warn(
                f"Found only {counted(found, 'distinct cluster')} for "
                f"n_clusters={self.n_clusters}: the rows may contain duplicates.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.labels_ = self._settled_labels(run.labels, rows)
        self.inertia_ = run.inertia
        self.inertia_history_ = run.history
        self.n_iter_ = len(run.history)
        self.counts_ = run.masses
        self._place(run.dual, run.norms, run.centres)

    @all_or_nothing
    @one_blas_thread()
    def partial_fit(
        self, X: RowsLike, y: Array | None = None, sample_weight: Array | None = None
    ) -> KernelKMeans:
        """Update the centres with a batch of rows.

        Each centre moves to the mean of all rows assigned to it so far. The first batch sets the
        kernel's parameters, the landmarks of an approximation (unless it is fitted already), and
        the first centres: those in ``init``, or centres found by Lloyd's algorithm on the batch. It
        needs at least as many rows as clusters, and should have a thousand. A centre without any
        rows so far moves to the farthest row of the batch.

        After a ``fit`` with an approximation, the centres of that fit are updated. After a ``fit``
        with the exact matrix, whose centres depend on all of its rows, ``partial_fit`` starts
        again.
        """
        if hasattr(self, "centres_"):
            batch = with_features(self._next_batch(X, sample_weight))
            centres, counts = self.centres_, self.counts_
        else:
            self._checked()
            rng = generator(self.random_state)
            batch = with_features(self._first_batch(X, rng, sample_weight, y))
            self._check_enough(batch.rows)
            sample = Sample.draw(batch, batch.factors, single=True)
            start = first_centres(batch, sample, batch.factors)
            centres, counts = start.centres[0], batch.rows.xp.zeros_like(start.masses)
            self.n_iter_ = 0
        centres, counts, run = update(centres, counts, batch.factors, batch.weights)
        self.labels_ = self._settled_labels(run.labels, batch.rows)
        self.inertia_ = run.inertia
        self.n_iter_ += 1
        self.counts_ = counts
        self._place_at(centres, batch.factors)
        return self

    def _checked(self) -> int:
        """Check the parameters; returns the number of clusters."""
        not_negative(self, "tol", self.tol)
        positive_integer(self, "max_iter", self.max_iter)
        if self.batch_size is not None:
            positive_integer(self, "batch_size", self.batch_size)
        return positive_integer(self, "n_clusters", self.n_clusters)

    def _check_enough(self, rows: Rows) -> None:
        n, k = rows.shape[0], self.n_clusters
        if k > n:
            raise ValueError(
                f"n_samples={n} should be >= n_clusters={k}: there are fewer rows than clusters."
            )
