"""Kernel k-means that finds the number of clusters: DP-means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive, positive_integer
from gramian.backend.threads import one_blas_thread
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import Approximate, LearnerKernel
from gramian.learners.kmeans.centres import KernelCentres, for_stream
from gramian.learners.kmeans.dp_means import Clusters, DPMeans, OpenClustering, add_batch
from gramian.learners.kmeans.exact_dp_means import ExactDPMeans

__all__ = ["OnlineKernelKMeans"]


class OnlineKernelKMeans(KernelCentres):
    """Kernel DP-means: a row far from every centre opens a new cluster.

    The objective is that of k-means plus threshold² per cluster (Kulis and Jordan, 2012). Each pass
    of ``fit`` lowers it; ``partial_fit`` follows a stream. Both use the features of an
    approximation fitted to the first rows: by default Nyström with √n landmarks, but at least 100.
    With ``Exact`` or ``Local``, which have no features, only ``fit`` is possible.
    Distances are those of K̃, in which rows unlike all landmarks are close to each other. If later
    rows of a stream differ from the first ones, use features that cover them, such as
    ``RandomFourier``, or an approximation that is fitted already.

    Parameters
    ----------
    threshold : float, optional
        The distance in feature space beyond which a row opens a cluster. With an RBF kernel no
        distance exceeds √2. By default it follows from ``expected_clusters``.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    expected_clusters : int, default=8
        A guess, which determines the threshold if none is set (the rule of Kulis and Jordan): start
        from the mean of the first rows, and repeatedly take the row farthest from all taken so far,
        this many times. The threshold is halfway between the distance of the last of them and that
        of the row that would be next.
    max_clusters : int, optional
        The largest number of clusters; far rows then join the nearest.
    max_iter : int, default=100
        The largest number of passes of ``fit`` over the rows.
    random_state : int, Generator or None, default=None
        Draws for the approximation, and the sample of rows that determines the threshold.

    Attributes
    ----------
    n_clusters_ : int
        The number of clusters so far.
    threshold_ : float
        The threshold in use.
    centres_ : array of shape (n_clusters_, r)
        The r features of each centre; not with ``Exact`` or ``Local``.
    centre_coefficients_ : array of shape (m, n_clusters_)
        The centres as combinations of Nystroem's landmarks, or with ``Exact`` and ``Local`` of the
        rows, as in :class:`KernelKMeans`.
    counts_ : array of shape (n_clusters_,)
        The number (or total weight) of the rows averaged in each centre.
    labels_ : array of shape (n,)
        The cluster of each row of the fit, or of the last batch, before the centres moved.
    inertia_ : float
        The sum of squared distances of the same rows to their centres, weighted by sample weights.
    objective_history_ : list of float
        inertia + threshold² n_clusters after each pass of the fit; it never rises, unless some
        sample weights are below 1.
    n_iter_ : int
        The number of passes over the rows of the fit; ``partial_fit`` adds 1.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.
    approximation_ : Approximation
        The approximation in use; None with ``Exact``.

    See Also
    --------
    KernelKMeans : a fixed number of clusters.

    References
    ----------
    - B. Kulis and M. I. Jordan, Revisiting k-means: new algorithms via Bayesian nonparametrics,
      ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, OnlineKernelKMeans
    >>> model = OnlineKernelKMeans(threshold=0.5, kernel=RBF(0.1), random_state=0)
    >>> model.partial_fit([[0.0], [0.2], [5.0], [5.1]]).n_clusters_
    2
    >>> model.partial_fit([[0.1], [2.5], [2.6]]).n_clusters_
    3
    >>> model.counts_
    array([3., 2., 2.])
    """

    strategies = (ExactDPMeans(), DPMeans())

    def __init__(
        self,
        threshold: float | None = None,
        kernel: LearnerKernel = "rbf",
        *,
        expected_clusters: int = 8,
        max_clusters: int | None = None,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.threshold = threshold
        self.kernel = kernel
        self.expected_clusters = expected_clusters
        self.max_clusters = max_clusters
        self.max_iter = max_iter
        self.random_state = random_state

    @all_or_nothing
    @one_blas_thread()
    def fit(
        self, X: RowsLike, y: Array | None = None, sample_weight: Array | None = None
    ) -> OnlineKernelKMeans:
        """Cluster the rows of X, in passes until nothing changes."""
        self._checked()
        begin = self._problem if self._fits_features() is None else self._first_batch
        problem = begin(X, generator(self.random_state), sample_weight, y)
        found = self._choose(problem).solve(problem)
        self.threshold_ = found.threshold
        self.objective_history_ = found.history
        self.n_iter_ = len(found.history)
        self._keep(found, problem)
        return self

    @all_or_nothing
    @one_blas_thread()
    def partial_fit(
        self, X: RowsLike, y: Array | None = None, sample_weight: Array | None = None
    ) -> OnlineKernelKMeans:
        """Add a batch of rows: far rows open clusters, in their order; then the centres move.

        Each centre moves to the mean of all rows assigned to it so far. The first batch is passed
        to ``fit``: it determines the kernel's parameters, the features and, if it is not set, the
        threshold.
        """
        self._check_features("partial_fit")
        if not hasattr(self, "_learned"):
            return self.fit(X, y, sample_weight)
        self._checked()
        batch = replace(self._next_batch(X, sample_weight), threshold=self.threshold_)
        self.n_iter_ += 1
        self._keep(add_batch(batch, self.centres_, self.counts_), batch)
        return self

    def _fits_features(self) -> Approximate | None:
        return for_stream if self._has_features() else None

    def _pose(self, **known: Any) -> OpenClustering:
        self._checked()
        return OpenClustering(
            **known,
            threshold=None if self.threshold is None else float(self.threshold),
            expected_clusters=self.expected_clusters,
            max_clusters=self.max_clusters,
            max_iter=self.max_iter,
        )

    def _checked(self) -> None:
        if self.threshold is not None:
            positive(self, "threshold", self.threshold)
        positive_integer(self, "expected_clusters", self.expected_clusters)
        positive_integer(self, "max_iter", self.max_iter)
        if self.max_clusters is not None:
            positive_integer(self, "max_clusters", self.max_clusters)

    def _keep(self, found: Clusters, problem: OpenClustering) -> None:
        xp = array_ops.namespace(problem.weights)
        self.labels_ = self._settled_labels(found.labels, problem.rows)
        self.inertia_ = max(float(xp.sum(problem.weights * found.squared)), 0.0)
        self.counts_ = found.counts
        self.n_clusters_ = int(found.counts.shape[0])
        self._place(found.dual, found.norms, found.centres)
