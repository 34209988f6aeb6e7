"""Kernel k-means: on the exact kernel matrix, on the features of an approximation, on streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.approximations import Approximation, Nystroem
from gramian.approximations.base import Plan
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, not_negative, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.base import all_or_nothing, generator
from gramian.kernels import Kernel
from gramian.kernels.tiles import tile_columns
from gramian.learners.kmeans.batches import on_batches, update
from gramian.learners.kmeans.centres import KernelCentres, with_weight
from gramian.learners.kmeans.lloyd import Run, best_of, on_factors, on_matrix, one_pass
from gramian.learners.kmeans.seeding import drawn, given_features, nearest, nearest_given
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import Rows

__all__ = ["KernelKMeans"]


def _sample_size(k: int) -> int:
    """The rows on which restarts run: many for each of k clusters of any size."""
    return 2000 + 400 * k


class _Sample(NamedTuple):
    """Some rows: their factors, None where they are all rows, and their weights."""

    factors: Factors | None
    weights: np.ndarray


class _Start(NamedTuple):
    """First centres, one set for each restart that goes on, and rows for empty clusters."""

    centres: list[Array]
    masses: Array  # of the rows that they are the means of
    sample: Factors


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

    def _exact_steps(self, gram: Gram, n_targets: int) -> list[Amounts]:
        n, k = gram.shape[0], self._checked()
        at_once = self._at_once(n)
        kept = {"kernel matrix": gram.nbytes if gram.fits() else 0, "labels": 8 * 8 * n}
        columns = 8 * n * k * at_once
        item = array_ops.itemsize(gram.dtype)
        blocks = gram.rows.walk_bytes(
            item * (min(n, tile_columns(gram.rows.example())) + 4 * k * at_once)
        )
        return [{**kept, "centres as weights of rows": 5 * columns, "blocks": blocks}]

    def _factored_steps(self, plan: Plan, n_targets: int) -> list[Amounts]:
        beside = self._beside(plan.factors)
        if self.batch_size is None:
            return [self._keeping(plan.factors, beside, partly=True, half=self.half_precision)]
        batch = min(self.batch_size, plan.factors.shape[0])
        return [{**beside, "batch": plan.factors.parts.take_bytes(batch) + 4 * 8 * batch}]

    def _beside(self, factors: Factors) -> Amounts:
        """What passes over factors take beside these."""
        n, r, k = factors.shape[0], factors.rank, self._checked()
        size, item = min(n, _sample_size(k)), array_ops.itemsize(factors.dtype)
        starts = 4 * self._restarts() if isinstance(self.init, str) else 1
        walks = (Z.walk_bytes(2 * k * item, 8 * k * Z.shape[1]) for Z in factors.parts)
        return {
            "labels, weights and margins": 56 * n,
            "sampled rows": factors.parts.take_bytes(size) + 8 * size * (3 * starts + 8),
            "centres": 8 * k * r * (3 * starts + 6),
            "blocks": max(walks, default=0),
        }

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Find the clusters of the rows of X."""
        k = self._checked()
        rng = generator(self.random_state)
        training = self._training(X, rng, sample_weight, y, self._fits_features())
        matrix, rows, weights, given = training
        self._check_enough(rows)
        if isinstance(matrix, Factors):
            run = self._fit_factors(matrix, rows, weights, rng)
        else:
            run = best_of(self._fit_exact(matrix, weights, rng))
        found = int(np.count_nonzero(array_ops.to_numpy(run.masses)))
        if found < k:
            warnings.warn(
                f"Only {counted(found, 'distinct cluster')} could be found for n_clusters={k}: "
                "there may be duplicates among the rows.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.labels_ = self._settled_labels(run.labels, given)
        self.inertia_ = run.inertia
        self.inertia_history_ = run.history
        self.n_iter_ = len(run.history)
        self.counts_ = run.masses
        self._place(run.learned, run.norms, run.centres)
        return self

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
            factors, rows, weights = self._next_batch(X, sample_weight)
            centres, counts = self.centres_, self.counts_
        else:
            self._checked()
            rng = generator(self.random_state)
            factors, rows, weights = self._first_batch(X, rng, sample_weight, y)
            self._check_enough(rows)
            sample = self._sample(factors, weights, rng, single=True)
            start = self._start(sample, factors, rows, rng)
            centres, counts = start.centres[0], rows.xp.zeros_like(start.masses)
            self.n_iter_ = 0
        centres, counts, run = update(centres, counts, factors, weights)
        self.labels_ = self._settled_labels(run.labels, rows)
        self.inertia_ = run.inertia
        self.n_iter_ += 1
        self.counts_ = counts
        self._place_at(centres, factors)
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

    def _fit_exact(self, gram: Gram, weights: Array, rng: np.random.Generator) -> list[Run]:
        gram, by_rows = gram.persist(), gram
        k, n = int(self.n_clusters), gram.shape[0]
        if isinstance(self.init, str):
            host = array_ops.to_numpy(weights)
            seeds = [drawn(gram, k, self.init, host, rng) for _ in range(self._restarts())]
            own = [array_ops.take_rows(gram.diag(), each) for each in seeds]
            first = [nearest(gram.columns(s), o) for s, o in zip(seeds, own, strict=True)]
        else:
            first = [nearest_given(self.init, k, by_rows)]
        at_once = self._at_once(n)
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

    def _at_once(self, n: int) -> int:
        """How many restarts advance together on the exact matrix."""
        # What each holds: a matrix of weights, its product with K, and copies of both.
        room = config.memory_budget() // 4 // (n * int(self.n_clusters) * 8 * 4)
        return max(1, min(self._restarts() if isinstance(self.init, str) else 1, room))

    def _fit_factors(
        self, factors: Factors, rows: Rows, weights: Array, rng: np.random.Generator
    ) -> Run:
        stop: Any = {"max_iter": self.max_iter, "tol": self.tol}
        if self.batch_size is None:
            # A lazy sample comes here before the processes that make the features are busy.
            early = self._sample(factors, weights, rng) if array_ops.is_lazy(weights) else None
            room = self._room(self._beside(factors))
            factors = factors.persist(room, partly=True, half=self.half_precision)
            sample = early or self._sample(factors, weights, rng)
            start = self._start(sample, factors, rows, rng)
            centres, kept = start.centres, factors.parts.kept()
            if kept is not None and len(centres) == 1:  # passes over these cost far less
                some, numbers = Factors(kept[0], factors.core), kept[1]
                own = array_ops.take_rows(weights, numbers)
                centres = [best_of(on_factors(some, own, centres, start.sample, **stop)).means]
            return best_of(on_factors(factors, weights, centres, start.sample, **stop))
        sample = self._sample(factors, weights, rng, single=True)
        start = self._start(sample, factors, rows, rng)
        approximation = self.approximation_
        assert approximation is not None
        centres, history = on_batches(
            lambda numbers: approximation.factor_rows(rows.choose(numbers)),
            weights,
            start.centres[0],
            start.masses,
            rng,
            batch_size=self.batch_size,
            **stop,
        )
        run = one_pass(factors, weights, centres)
        run.history = history + run.history
        return run

    def _sample(
        self, factors: Factors, weights: Array, rng: np.random.Generator, single: bool = False
    ) -> _Sample:
        """Some of the rows that count; all rows where these are few, and not ``single``."""
        n, usable = factors.shape[0], with_weight(weights)
        most = n if usable is None else len(usable)
        size = min(most, _sample_size(int(self.n_clusters)))
        chosen = np.sort(rng.choice(most if usable is None else usable, size=size, replace=False))
        own = np.asarray(array_ops.to_numpy(array_ops.take_rows(weights, chosen)))
        whole = size == n and not single
        return _Sample(None if whole else factors.take(chosen), own)

    def _start(
        self, drawn_rows: _Sample, factors: Factors, rows: Rows, rng: np.random.Generator
    ) -> _Start:
        """Where passes over all rows begin: for large data, from one set of centres.

        Those are the best of the restarts, each run to its end on the sample.
        """
        k, n = int(self.n_clusters), rows.shape[0]
        whole, own = drawn_rows.factors is None, drawn_rows.weights
        sample, size = drawn_rows.factors or factors, len(own)
        nothing = array_ops.like(np.zeros(k), factors.parts.example(), rows.xp.float64)
        if not isinstance(self.init, str):
            assert self.approximation_ is not None
            given = given_features(self.init, k, rows, self.approximation_)
            return _Start([given], nothing, sample)
        init, starts = self.init, self._restarts()
        if not whole:  # more, while a pass over the sample stays far below one over all rows
            starts = max(starts, min(4 * starts, n // (4 * size)))
        seeds = [drawn(sample, k, init, own, rng) for _ in range(starts)]
        first = [sample.coordinates(each) for each in seeds]
        if whole:
            return _Start(first, nothing, sample)
        counts = array_ops.like(own, factors.parts.example(), rows.xp.float64)
        runs = on_factors(sample, counts, first, sample, max_iter=self.max_iter, tol=self.tol)
        best = best_of(runs)
        return _Start([best.means], best.masses, sample)

    def _restarts(self) -> int:
        choice(self, "init", self.init, ("k-means++", "random"))
        return positive_integer(self, "n_init", self.n_init)
