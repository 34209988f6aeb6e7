"""Kernel k-means that finds the number of clusters as rows come: DP-means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gramian.approximations import Approximation
from gramian.backend import array_ops
from gramian.backend.checks import positive, positive_integer
from gramian.backend.threads import one_blas_thread
from gramian.estimators.base import all_or_nothing, generator
from gramian.kernels import Kernel
from gramian.learners.kmeans.centres import KernelCentres, of_a_stream
from gramian.learners.kmeans.dp_means import Clusters, DPMeans, OpenClustering, add_batch

__all__ = ["OnlineKernelKMeans"]


class OnlineKernelKMeans(KernelCentres):
    """DP-means in the space of a kernel: a row far from every centre opens a cluster.

    (Kulis and Jordan, 2012.) The objective is that of k-means and threshold² for each cluster:
    each pass of ``fit`` lowers it, and ``partial_fit`` follows a stream. Both work on the features
    of an approximation, learned from the first rows: by default Nyström with 100 landmarks, or √n
    where that is more. Its distances are those of K̃, in which rows unlike all landmarks lie close
    to each other; a stream that goes where its first rows were not needs features that know of
    that place, such as ``RandomFourier``, or an approximation that is given fitted.

    Parameters
    ----------
    threshold : float, optional
        The distance, in the kernel's space, beyond which a row opens a cluster. With an RBF kernel
        no distance exceeds √2. By default it follows from ``expected_clusters``.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
    expected_clusters : int, default=8
        A guess, which decides the threshold where none is given (Kulis and Jordan's rule): take the
        mean of the first rows, then so many times the row farthest from all taken. The threshold
        lies halfway between the distances of the last of them and of the one that would be next.
    max_clusters : int, optional
        When there are so many, far rows go to the nearest.
    max_iter : int, default=100
        Passes of ``fit`` over the rows.
    random_state : int, Generator or None, default=None
        For the approximation, and for the rows on which a threshold is sought where there are many.

    Attributes
    ----------
    n_clusters_ : int
        The number of clusters so far.
    threshold_ : float
        The threshold in use.
    centres_ : array of shape (n_clusters_, r)
        The centres by their r features.
    centre_coefficients_ : array of shape (m, n_clusters_)
        The centres by kernel values with the landmarks of Nystroem, as in :class:`KernelKMeans`.
    counts_ : array of shape (n_clusters_,)
        The number (or weight) of the rows that each centre is the mean of.
    labels_ : array of shape (n,)
        The cluster of each row of the fit, or of the last batch, before the centres moved.
    inertia_ : float
        The sum of squared distances of the same rows to their centres (weighted).
    objective_history_ : list of float
        inertia + threshold² n_clusters after each pass of the fit; it never rises, unless rows
        weigh less than 1.
    n_iter_ : int
        Passes over the rows of the fit; ``partial_fit`` counts on.
    kernel_ : Kernel
    approximation_ : Approximation

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

    strategies = (DPMeans(),)

    def __init__(
        self,
        threshold: float | None = None,
        kernel: Any = "rbf",
        *,
        expected_clusters: int = 8,
        max_clusters: int | None = None,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.kernel = kernel
        self.expected_clusters = expected_clusters
        self.max_clusters = max_clusters
        self.max_iter = max_iter
        self.random_state = random_state

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineKernelKMeans:
        """Find the clusters of the rows of X, in passes until nothing changes."""
        self._checked()
        problem = self._first_batch(X, generator(self.random_state), sample_weight, y)
        found = self._choose(problem).solve(problem)
        self.threshold_ = found.threshold
        self.objective_history_ = found.run.history
        self.n_iter_ = len(found.run.history)
        self._keep(found, problem)
        return self

    @all_or_nothing
    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineKernelKMeans:
        """Take in a batch of rows: far ones open clusters, in their order; then centres move.

        Each to the mean of all rows that came to it. The first batch is fitted: what is learned of
        the kernel, and the threshold where none is given, are learned from it.
        """
        if not hasattr(self, "_learned"):
            return self.fit(X, y, sample_weight)
        self._checked()
        batch = replace(self._next_batch(X, sample_weight), threshold=self.threshold_)
        self.n_iter_ += 1
        self._keep(add_batch(batch, self.centres_, self.counts_), batch)
        return self

    def _fits_features(self) -> Callable[[Kernel, int], Approximation]:
        return of_a_stream

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
        xp, factors = array_ops.namespace(problem.weights), found.factors
        self.labels_ = self._settled_labels(factors.restore(found.run.labels), problem.rows)
        squared = factors.restore(found.squared)
        self.inertia_ = max(float(xp.sum(problem.weights * squared)), 0.0)
        self.counts_ = found.counts
        self.n_clusters_ = int(found.counts.shape[0])
        self._place_at(found.centres, factors)
