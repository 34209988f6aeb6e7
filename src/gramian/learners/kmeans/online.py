"""Kernel k-means that finds the number of clusters as rows come: DP-means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.approximations import Approximation
from gramian.approximations.base import Plan
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.progress import progress
from gramian.backend.threads import one_blas_thread
from gramian.estimators.base import all_or_nothing, generator
from gramian.kernels import Kernel
from gramian.learners.kmeans.centres import KernelCentres, of_a_stream, with_weight
from gramian.learners.kmeans.lloyd import Run, assign, centre_of, no_labels
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors
from gramian.rows import Rows

__all__ = ["OnlineKernelKMeans"]

CHUNK = 1024  # far rows that are looked at together


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
        rng = generator(self.random_state)
        factors, rows, weights = self._first_batch(X, rng, sample_weight, y)
        if self.threshold is None:
            self.threshold_ = _farthest_first(factors, weights, self.expected_clusters, rng)
        else:
            self.threshold_ = float(self.threshold)
        arranged = factors.arrange(weights)
        squared = array_ops.namespace(arranged).zeros_like(arranged)
        mean = factors.rmatmul(weights) / float(array_ops.namespace(weights).sum(weights))
        run = Run(no_labels(arranged), means=mean[None, :])
        with progress("DP-means", self.max_iter) as step:
            for _ in range(self.max_iter):
                (changed,), _, squared = assign(factors, arranged, [run], squared=squared)
                opened, squared = self._open(factors, arranged, run, squared)
                dropped = _drop_empty(run)
                run.means = centre_of(run.sums, run.masses)
                inertia = float(array_ops.namespace(squared).sum(arranged * squared))
                run.history.append(inertia + self.threshold_**2 * run.means.shape[0])
                step()
                if not changed and not opened and not dropped:
                    break
        self.objective_history_ = run.history
        self.n_iter_ = len(run.history)
        self._keep(run, factors, rows, weights, squared, run.means, run.masses)
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
        factors, rows, weights = self._next_batch(X, sample_weight)
        xp = rows.xp
        arranged = factors.arrange(weights)
        squared = array_ops.namespace(arranged).zeros_like(arranged)
        run = Run(no_labels(arranged), means=self.centres_)
        squared = assign(factors, arranged, [run], squared=squared).squared
        opened, squared = self._open(factors, arranged, run, squared)
        before = self.counts_[:, None] * self.centres_
        before = xp.concat((before, xp.zeros_like(run.sums[:opened, :])), axis=0)
        counts = xp.concat((self.counts_, xp.zeros_like(run.masses[:opened])), axis=0) + run.masses
        self.n_iter_ += 1
        centres = centre_of(before + run.sums, counts)
        self._keep(run, factors, rows, weights, squared, centres, counts)
        return self

    def _fits_features(self) -> Callable[[Kernel, int], Approximation]:
        return of_a_stream

    def _factored_steps(self, plan: Plan, n_targets: int) -> list[Amounts]:
        self._checked()
        return [self._keeping(plan.factors, self._beside(plan.factors), partly=True)]

    def _beside(self, factors: Factors) -> Amounts:
        n, r, item = factors.shape[0], factors.rank, array_ops.itemsize(factors.dtype)
        # As many clusters as there may be, or else as many as are expected.
        k = self.expected_clusters if self.max_clusters is None else self.max_clusters
        walks = (Z.walk_bytes(2 * k * item, 8 * k * Z.shape[1]) for Z in factors.parts)
        sample = min(n, _sample_size(self.expected_clusters))
        return {
            "labels, weights and distances": 88 * n,
            "sampled and far rows": factors.parts.take_bytes(sample) + 4 * 8 * min(CHUNK, n) * r,
            "centres": 8 * k * r * 8,
            "blocks": max(walks, default=0),
        }

    def _checked(self) -> None:
        if self.threshold is not None:
            positive(self, "threshold", self.threshold)
        positive_integer(self, "expected_clusters", self.expected_clusters)
        positive_integer(self, "max_iter", self.max_iter)
        if self.max_clusters is not None:
            positive_integer(self, "max_clusters", self.max_clusters)

    def _open(
        self, factors: Factors, weights: Array, run: Run, squared: Array
    ) -> tuple[int, Array]:
        """Let rows beyond the threshold open clusters, in the order of the data.

        The run's labels, sums and masses follow. Returns how many opened, and the squared distances
        afterwards. Other rows do not meet the new centres before the next pass.
        """
        host = np.array(array_ops.to_numpy(factors.restore(squared)))
        counted = array_ops.to_numpy(factors.restore(weights))
        far = np.flatnonzero((host > self.threshold_**2) & (counted > 0))
        k = run.sums.shape[0]
        room = len(far) if self.max_clusters is None else min(len(far), self.max_clusters - k)
        if room <= 0:
            return 0, squared
        labels = np.array(array_ops.to_numpy(factors.restore(run.labels)))
        opened = _Opened(factors.core, self.threshold_**2, room)
        gains = np.zeros((k, factors.rank))
        for start in range(0, len(far), CHUNK):
            rows = far[start : start + CHUNK]
            z = np.asarray(array_ops.to_numpy(factors.coordinates(rows)))
            new, host[rows] = opened.take(z, host[rows])
            new = np.where(new < 0, labels[rows], k + new)
            total, w = k + len(opened.centres), counted[rows]
            config.check_fits(
                8 * 8 * total * factors.rank,
                f"{total} clusters and more, which threshold={self.threshold_:.3g} opens",
                "Use a larger threshold, or max_clusters",
            )
            gains = np.concatenate((gains, np.zeros((total - len(gains), factors.rank))))
            gains += array_ops.sum_by_label(z, new, w, total, labels[rows])
            labels[rows] = new
        xp, count = factors.xp, len(opened.centres)
        added = array_ops.like(gains, run.sums)
        run.sums = xp.concat((run.sums + added[:k, :], added[k:, :]), axis=0)
        masses = array_ops.mass_by_label(labels, counted, k + count)
        run.masses = array_ops.like(masses, run.sums)
        run.labels = factors.arrange(factors.parts.place.align(labels))
        return count, factors.arrange(factors.parts.place.align(host))

    def _keep(
        self,
        run: Run,
        factors: Factors,
        rows: Rows,
        weights: Array,
        squared: Array,
        centres: Array,
        counts: Array,
    ) -> None:
        xp = array_ops.namespace(weights)
        self.labels_ = self._settled_labels(factors.restore(run.labels), rows)
        self.inertia_ = max(float(xp.sum(weights * factors.restore(squared))), 0.0)
        self.counts_ = counts
        self.n_clusters_ = int(counts.shape[0])
        self._place_at(centres, factors)


class _Opened:
    """Clusters that far rows open, one after the other."""

    def __init__(self, core: BlockCore | None, limit: float, room: int) -> None:
        self.core = core  # the metric
        self.limit = limit  # the square of the threshold
        self.room = room
        self.centres: list[np.ndarray] = []
        self.norms: list[float] = []

    def take(self, z: np.ndarray, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the opened clusters each of these rows joins, or -1, and its squared distance.

        ``squared`` are the distances from the centres before. A row joins the nearest cluster that
        was open when it came, or opens one if all are too far.
        """
        in_metric = z if self.core is None else self.core.matmul(z.T).T
        own = np.einsum("ij,ij->i", z, in_metric)
        labels, nearest = np.full(len(z), -1), squared.copy()
        if self.centres:
            distances = own[:, None] + self.norms - 2.0 * (in_metric @ np.transpose(self.centres))
            closest = distances.argmin(axis=1)
            distances = distances[np.arange(len(z)), closest]
            closer = distances < nearest
            labels[closer], nearest[closer] = closest[closer], distances[closer]
        at = 0
        while len(self.centres) < self.room:
            far = np.flatnonzero(nearest[at:] > self.limit)
            if not len(far):
                break
            at += int(far[0])
            distances = own[at:] + own[at] - 2.0 * (in_metric[at:] @ z[at])
            distances[0] = 0.0
            closer = at + np.flatnonzero(distances < nearest[at:])
            labels[closer], nearest[closer] = len(self.centres), distances[closer - at]
            self.centres.append(z[at])
            self.norms.append(own[at])
        return labels, nearest


def _drop_empty(run: Run) -> int:
    """Leave out clusters without rows; returns how many."""
    masses = array_ops.to_numpy(run.masses)
    kept = np.flatnonzero(masses > 0)
    if len(kept) == len(masses):
        return 0
    numbers = np.zeros(len(masses), dtype=np.int64)  # rows without weight go where they may
    numbers[kept] = np.arange(len(kept))
    run.labels = array_ops.look_up(numbers, run.labels)
    run.sums = array_ops.take_rows(run.sums, kept)
    run.masses = array_ops.take_rows(run.masses, kept)
    return len(masses) - len(kept)


def _sample_size(clusters: int) -> int:
    """The rows on which a threshold for so many clusters is sought."""
    return 1000 + 200 * clusters


def _farthest_first(
    factors: Factors, weights: Array, rounds: int, rng: np.random.Generator
) -> float:
    """A distance that so many rows exceed, each the farthest from the mean and those before."""
    counted = with_weight(weights)
    most = weights.shape[0] if counted is None else len(counted)
    size = min(most, _sample_size(rounds))
    chosen = np.sort(rng.choice(most if counted is None else counted, size=size, replace=False))
    sample, w = factors.take(chosen), array_ops.take_rows(weights, chosen)
    w = array_ops.like(w, sample.parts.example(), sample.xp.float64)
    xp, own = sample.xp, sample.diagonal()

    def squared(point: Array) -> Array:
        learned = sample.core_matmul(point[:, None])
        return own + xp.sum(point * learned[:, 0]) - 2.0 * sample.features_matmul(learned)[:, 0]

    noise = 1e3 * array_ops.eps(sample.dtype) * float(xp.max(own))
    nearest = squared(sample.rmatmul(w) / float(xp.sum(w)))
    last = after = noise**0.5
    for _ in range(rounds + 1):
        far = int(xp.argmax(nearest))
        last, after = after, max(float(nearest[far]), 0.0) ** 0.5
        if float(nearest[far]) <= noise:  # all rows coincide with those taken
            break
        nearest = xp.minimum(nearest, squared(sample.coordinates(np.asarray([far]))[0, :]))
    # Halfway to the distance of the row that would be next: a row's own would leave it to rounding
    # whether this row opens a cluster.
    return (last + after) / 2
