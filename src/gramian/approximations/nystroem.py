"""The Nyström approximation, with any landmarks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from math import ceil, isqrt, sqrt
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np

from gramian.approximations.base import ApproximationWarning, Plan, are_vectors
from gramian.approximations.projected import (
    ProjectedApproximation,
    ProjectedKernel,
    gram_of,
    inverse_root,
    inverse_root_of_rank,
    projected_bytes,
)
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, is_real, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import few_blas_threads
from gramian.backend.wording import counted
from gramian.estimators.parameters import KernelLike, RandomState
from gramian.kernels import Kernel, tiles
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.matrices.normal_equations import inner
from gramian.rows import FeatureRows, Rows
from gramian.samplers import Landmarks, Sampler, as_sampler

__all__ = ["Nystroem"]

CORE_COPIES = 6  # copies of the landmarks' matrix during its decomposition


@dataclass(frozen=True, eq=False)
class NystroemPlan(Plan):
    """Also what chooses the landmarks, how many at first, and how many at most.

    ``settle``, if given, reduces the count once the kernel is fitted.
    """

    sampler: Sampler = field(kw_only=True)
    count: int = field(kw_only=True)
    most: int = field(kw_only=True)
    settle: Callable[[Gram, np.random.Generator, Array | None], int] | None = None


class Nystroem(ProjectedApproximation):
    """Nyström approximation K̃ = C W⁺ Cᵀ.

    C are kernel values of all rows with m landmarks, W those of the landmarks with each other.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    n_components : int or "sqrt", default=100
        The number m of landmarks; "sqrt" is the square root of the number of rows, rounded up.
    landmarks : str, Sampler or array, default="auto"
        How landmarks are selected; see :func:`gramian.sampler_names`. "auto" uses k-means centres
        for sparse and dense rows, or pivots if a few rows carry the centres' error
        (:class:`RobustCentres`). It uses randomly pivoted Cholesky for rows that are not vectors,
        or so wide that dense centres take more than a sixteenth of the memory budget. An array has
        the landmarks themselves: points of shape (m, n_columns), m objects, or m row numbers.
    rank : int, optional
        The number of features to keep, if fewer than landmarks.
    truncation : {"embedding", "core"}, default="embedding"
        What ``rank`` truncates: C W⁺ Cᵀ, which takes one more pass over the rows; or W only, as
        Drineas and Mahoney do.
    tol : float, optional
        Add landmarks until the trace error of the training rows is at most this fraction of the
        trace, or the memory budget is used up; ``relative_error(approximation, X_new)`` gives the
        error of new rows. Samplers that cannot add single landmarks, such as "kmeans", start from
        n_components and double it; "auto" then uses "rpcholesky", which can.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    landmarks_ : Landmarks
        The landmarks in use: ``points``, and ``indices`` if they are rows.
    n_components_ : int
        The number of features: at most the number of landmarks.
    nbytes_ : int
        The memory of the training rows' features.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.

    See Also
    --------
    MEKA : less error at equal memory if gamma is large.
    RandomFourier : features that do not depend on the rows.
    relative_error : how accurate the approximation is.

    References
    ----------
    - P. Drineas and M. W. Mahoney, On the Nyström method for approximating a Gram matrix for
      improved kernel-based learning, JMLR 6, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import RBF, Nystroem, relative_error
    >>> X = load_digits().data / 16
    >>> approximation = Nystroem(RBF(0.05), 200, random_state=0).fit(X)
    >>> approximation.transform(X).shape
    (1797, 200)
    >>> float(relative_error(approximation, X)) < 0.01
    True
    """

    compared: ClassVar = {
        "Nyström uniform": {"landmarks": "uniform"},
        "Nyström k-means": {"landmarks": "kmeans"},
        "Nyström RPCholesky": {"landmarks": "rpcholesky"},
    }
    below = True

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        n_components: int | Literal["sqrt"] = 100,
        *,
        landmarks: str | Sampler | Array = "auto",
        rank: int | None = None,
        truncation: str = "embedding",
        tol: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.rank = rank
        self.truncation = truncation
        self.tol = tol
        self.random_state = random_state

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        if isinstance(self.landmarks, str) and self.landmarks == "kmeans":
            return are_vectors(kernel, rows) and not array_ops.issparse(rows.take([0]))
        return True

    def _fit(
        self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: NystroemPlan
    ) -> int:
        choice(self, "truncation", self.truncation, ("embedding", "core"))
        sampler = plan.sampler
        m = plan.count if plan.settle is None else plan.settle(gram, rng, y)
        if self.n_components != "sqrt" and self.n_components > gram.shape[0]:
            warnings.warn(
                f"n_components={self.n_components} exceeds the number of rows; {gram.shape[0]} "
                "landmarks are used.",
                ApproximationWarning,
                stacklevel=5,
            )
        if sampler.needs_target and y is None:
            raise ValueError(
                f"{type(sampler).__name__} selects landmarks by the target: call fit(X, y)."
            )
        target = np.asarray(array_ops.to_numpy(y)) if sampler.needs_target else None
        if self.tol is None:
            self._learn(gram, sampler.select(gram, m, rng, target))
        else:
            self._grow(gram, plan, rng, target)
        if len(self.landmarks_) < m and self.tol is None and not sampler.fixed:
            warnings.warn(
                f"Nystroem uses {counted(len(self.landmarks_), 'landmark')} instead of {m}: the "
                "rows have no more distinct ones.",
                ApproximationWarning,
                stacklevel=5,
            )
        return self._projected.width

    def _count(self, n: int) -> int:
        if self.n_components == "sqrt":
            m = ceil(sqrt(n))
        elif isinstance(self.n_components, Integral):
            m = positive_integer(self, "n_components", self.n_components)
        else:
            raise ValueError(
                "n_components of Nystroem must be a positive integer or 'sqrt'; got "
                f"{self.n_components!r}."
            )
        if self.rank is not None and positive_integer(self, "rank", self.rank) > m:
            raise ValueError(
                f"rank={self.rank} exceeds the {counted(m, 'landmark')} of "
                f"n_components={self.n_components!r}: a rank is at most the number of landmarks."
            )
        return min(m, n)

    def _plan(self, rows: Rows) -> NystroemPlan:
        item = array_ops.itemsize(rows.dtype)
        count = most = self._count(rows.shape[0])
        # With a tolerance, a sampler that can stop at any number wastes no landmarks.
        automatic = isinstance(self.landmarks, str) and self.landmarks == "auto"
        landmarks = "rpcholesky" if automatic and self.tol is not None else self.landmarks
        sampler = as_sampler(landmarks, Gram(self._bare_kernel(), rows), count)
        if self.tol is not None:
            most = self._most(rows, count)
        m = sampler.most_landmarks(most)
        r = min(m, self.rank or m)
        work = min(m, tiles.tile_columns(rows.place.reference)) * item
        point_bytes = sampler.landmark_bytes(rows)
        kept = projected_bytes(rows, m, r, point_bytes)
        steps: list[Amounts] = [
            {
                "choice of landmarks": sampler.select_bytes(rows, m),
                "blocks": rows.walk_bytes(2 * work),
            },
            {"landmarks": kept["landmarks"], "decomposition": CORE_COPIES * 8 * m**2},
        ]
        if self.tol is not None:
            steps.append({**kept, "blocks": rows.walk_bytes(work + item * m)})
        if self.rank is not None and self.truncation == "embedding":
            inner = rows.walk_bytes(work + item * m, item * m**2)
            steps.append(
                {**projected_bytes(rows, m, m, point_bytes), "features": 2 * 8 * m**2 + inner}
            )
        values = FeatureRows(rows, self._features, m, rows.dtype)
        factors = self._planned(rows, r, work, (values, np.broadcast_to(0.0, (m, r))))
        return NystroemPlan(
            self, rows, factors, kept, steps, sampler=sampler, count=count, most=most
        )

    def _learn(self, gram: Gram, landmarks: Landmarks) -> None:
        """Find the matrix P (m, r) with features z(x) = k(x, landmarks) P."""
        W = gram_of(gram, landmarks).dense() if len(landmarks) else None
        if W is None or not bool(array_ops.namespace(W).any(W != 0)):
            raise ValueError(
                f"{type(self).__name__} has nothing to approximate: {gram.kernel!r} is 0 for all "
                "pairs of landmarks, as dot-product kernels are for rows of zeros. Leave out such "
                "rows, or use another kernel."
            )
        W = W if array_ops.is_on_gpu(W) else array_ops.to_numpy(W)
        scale = np.ones(len(W))
        if landmarks.probabilities is not None:
            scale = 1.0 / np.sqrt(len(W) * landmarks.probabilities)
        scale = array_ops.like(scale, W)
        W = scale[:, None] * W * scale
        # Directions of W below the precision of the features are left out.
        dtype = self._feature_dtype(gram.rows)
        cutoff = max(len(W) * np.finfo(float).eps, array_ops.eps(dtype))
        if self.rank is not None and self.truncation == "core":
            P = array_ops.like(inverse_root_of_rank(array_ops.to_numpy(W), self.rank, cutoff), W)
        else:
            with few_blas_threads(len(W)):
                P = inverse_root(W, cutoff, gram)
        self.landmarks_ = landmarks
        prepared = partial(ProjectedKernel, self.kernel_, landmarks.points, dtype=dtype)
        self._projected = prepared(scale[:, None] * P)
        if self.rank is not None and self.truncation == "embedding":
            products = inner(self._factors(gram))
            vectors = np.linalg.eigh(products)[1][:, ::-1][:, : self.rank]
            self._projected = prepared(scale[:, None] * (P @ array_ops.like(vectors.copy(), P)))

    def in_double(self, rows: Rows) -> Nystroem | None:
        if not self._single or self.kernel_.is_matrix or self.rank is not None:
            return None
        double = copy(self)
        double._single = False
        double._learn(Gram(self.kernel_, rows), self.landmarks_)
        double.n_components_ = double._n_features_out = double._projected.width
        return double

    def _factors(self, gram: Gram) -> Factors:
        self.n_components_ = self._projected.width
        return self.factor_rows(gram.rows)

    def _product(self, rows: Rows) -> tuple[Rows, Array]:
        z, dtype = self._projected, self._feature_dtype(rows)
        count = z.points_used
        values = FeatureRows(
            rows,
            z.values,
            count,
            dtype,
            serial=self.kernel_.serial,
            row_evaluations=count,
            fused=z.fused() if rows.dtype == dtype else None,
        )
        return values, z.steps

    def on_landmarks(self, coordinates: Array) -> Array:
        """Express points of the feature space as combinations of the landmarks.

        ``coordinates`` (c, r) has the features of a point in each row. Column j of the result
        (m, c) has the coefficients a of point j, Σ a_i k(landmark_i, ·): its inner product with a
        row x is Σ a_i k(landmark_i, x).
        """
        xp = array_ops.namespace(coordinates)
        P = array_ops.astype(self._projected.projection, xp.float64)
        return P @ xp.matrix_transpose(array_ops.astype(coordinates, xp.float64))

    def _grow(
        self, gram: Gram, plan: NystroemPlan, rng: np.random.Generator, y: np.ndarray | None
    ) -> None:
        """Add landmarks until the trace error is at most ``tol``, or the memory budget ends."""
        if not is_real(self.tol) or not 0 < self.tol < 1:
            raise ValueError(f"tol of Nystroem must be a number between 0 and 1; got {self.tol!r}.")
        sampler, m, most = plan.sampler, plan.count, plan.most
        while True:
            if sampler.grows:
                # The remaining diagonal is the trace error, up to rounding.
                landmarks = sampler.grow(gram, most, rng, 0.98 * self.tol)
            else:
                landmarks = sampler.select(gram, m, rng, y)
            self._learn(gram, landmarks)
            error = self._trace_error(gram)
            if error <= self.tol:
                return
            if sampler.grows or sampler.fixed or m >= most:
                break
            m = min(2 * m, most)
        warnings.warn(
            f"Nystroem reached a trace error of {error:.2g} with "
            f"{counted(len(landmarks), 'landmark')}, the most that the memory budget allows; "
            f"requested tol={self.tol:g}. Increase the budget with "
            "gramian.set_config(memory_budget=...), or tol.",
            ApproximationWarning,
            stacklevel=6,
        )

    def _most(self, rows: Rows, m: int) -> int:
        """Return the number of landmarks that the memory budget allows, at least m."""
        n = rows.shape[0]
        square = isqrt(config.memory_budget() // 2 // (CORE_COPIES * 8))
        return max(m, min(n, rows.place.room() // 2 // (n * 8), square))

    def _trace_error(self, gram: Gram) -> float:
        diagonal = self._factors(gram).diagonal()
        explained = float(array_ops.namespace(diagonal).sum(diagonal))
        return 1.0 - explained / gram.trace()
