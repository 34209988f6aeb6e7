"""Kernel k-means: on the exact kernel matrix, on the features of an approximation, on streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.approximations import Approximation, Nystroem
from gramian.backend import array_ops
from gramian.backend.checks import choice, not_negative, positive_integer
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.base import all_or_nothing, generator
from gramian.kernels import Kernel
from gramian.learners.kmeans.batches import MiniBatches, update
from gramian.learners.kmeans.centres import KernelCentres
from gramian.learners.kmeans.clustering import Clustering, Run
from gramian.learners.kmeans.exact import ExactLloyd
from gramian.learners.kmeans.featured import FeaturedLloyd, Sample, first_centres, with_features
from gramian.rows import Rows

__all__ = ["KernelKMeans"]


class KernelKMeans(KernelCentres):
    """k-means in the space of a kernel: clusters of any shape that the kernel can tell apart.

    A cluster's centre is the mean of its rows' images; distances to it need only the kernel:
    k(x, x) - 2/|C| Σ k(x, x_s) + 1/|C|² ΣΣ k(x_s, x_t).

    The exact matrix is used while it is small (some six thousand rows); all restarts then share
    each pass over it. Beyond, a bare kernel stands for its Nyström approximation with √n landmarks
    (Calandriello and Rosasco, 2018), and Lloyd's steps are those of the features. Restarts run to
    their end on a sample of 2,000 rows and 400 for each cluster, and passes over all rows go on
    from the best of them: as good as restarts on all rows, which differ by more among themselves,
    in a third of the time. Where features of all rows do not fit the memory budget, passes over the
    rows whose features are kept come before those over all. ``Exact(kernel)`` asks for the exact
    matrix at any size; it is then computed anew in each pass.

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
        Restarts from different first centres; the best is kept. Up to four times as many are made
        where they run on a small part of the rows. 1 is used where init is an array.
    max_iter : int, default=300
        Passes over the rows, or over as many rows in mini-batches.
    tol : float, default=1e-6
        Stop when the objective falls by less than this part of itself; 0 waits until no label
        changes. With mini-batches, stop when the smoothed objective did so for ten of them.
    batch_size : int, optional
        Move the centres after each batch of so many random rows (Sculley, 2010), where passes over
        all rows take too long: features of a batch are computed when it is drawn, and of all rows
        once, for the labels, and never kept. A bare kernel then stands for its approximation
        whatever the number of rows. By default, full passes.
    half_precision : bool, default=False
        Keep the features of the rows in half precision, where K is approximated: half the memory,
        on a GPU also half the time of a pass; on a CPU passes take longer. Features are rounded to
        11 bits, so that rows almost between two centres may change sides.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n,)
        The cluster of each training row; after ``partial_fit``, of each row of the last batch,
        before the centres moved.
    inertia_ : float
        The sum of squared distances in the kernel's space to the nearest centre (weighted), of the
        same rows.
    inertia_history_ : list of float
        The objective after each iteration of the best restart; it never rises. With mini-batches,
        what each of them says of it, and at last its value.
    n_iter_ : int
        Its length; ``partial_fit`` counts on.
    counts_ : array of shape (n_clusters,)
        The number (or weight) of the rows that each centre is the mean of.
    centres_ : array of shape (n_clusters, r)
        The centres by their r features, where K is approximated.
    centre_coefficients_ : array of shape (m, n_clusters)
        The centres by kernel values: centre j is Σ_i a_ij k(p_i, ·), and its product with a row
        Σ_i a_ij k(p_i, x). The p_i are the m landmarks of Nystroem, or the rows ``points_`` where K
        is exact. Other approximations have ``centres_`` alone.
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

    Rows that come in batches:

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
        kernel: Any = "rbf",
        *,
        init: Any = "k-means++",
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-6,
        batch_size: int | None = None,
        half_precision: bool = False,
        random_state: Any = None,
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

    def _fits_features(self) -> Callable[[Kernel, int], Approximation] | None:
        return None if self.batch_size is None else self._default_approximation

    def _pose(self, **known: Any) -> Clustering:
        return Clustering(
            **known,
            k=self._checked(),
            init=self.init,
            restarts=self._restarts() if isinstance(self.init, str) else 1,
            max_iter=self.max_iter,
            tol=self.tol,
            batch_size=self.batch_size,
            half=self.half_precision,
            approximation=getattr(self, "approximation_", None),
        )

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Find the clusters of the rows of X."""
        self._checked()
        problem = self._problem(X, generator(self.random_state), sample_weight, y)
        self._check_enough(problem.rows)
        run = self._choose(problem).solve(problem)
        self._keep(run, problem.given)
        return self

    def _keep(self, run: Run, rows: Rows) -> None:
        found = int(np.count_nonzero(array_ops.to_numpy(run.masses)))
        if found < self.n_clusters:
            warnings.warn(
                f"Only {counted(found, 'distinct cluster')} could be found for "
                f"n_clusters={self.n_clusters}: there may be duplicates among the rows.",
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
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Move the centres by a batch of rows: each to the mean of all rows that came to it.

        The first batch gives the kernel's parameters and the landmarks of an approximation (unless
        that is given fitted), and the first centres: from ``init``, by Lloyd's steps on the batch
        where that is no array. It should have at least as many rows as there are clusters, better a
        thousand. A centre to which no row came yet moves to the farthest row of the batch.

        After a ``fit`` on an approximation its centres move on; after one on the exact matrix,
        whose centres are known by all its rows, ``partial_fit`` begins anew.
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
        """The number of clusters, the other parameters checked too."""
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

    def _restarts(self) -> int:
        choice(self, "init", self.init, ("k-means++", "random"))
        return positive_integer(self, "n_init", self.n_init)
