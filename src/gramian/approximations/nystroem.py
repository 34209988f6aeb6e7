"""The Nyström approximation, with any landmarks."""

from __future__ import annotations

import warnings
from math import ceil, isqrt, sqrt
from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils.extmath import randomized_svd

from gramian.approximations.base import Approximation, ApproximationWarning
from gramian.approximations.projected import ProjectedKernel, gram_of, projected_bytes
from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, is_real, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import few_blas_threads
from gramian.backend.wording import counted
from gramian.kernels import tiles
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.matrices.normal_equations import inner
from gramian.rows import FeatureRows, Rows
from gramian.samplers import Landmarks, Sampler, as_sampler

__all__ = ["Nystroem"]

CORE_COPIES = 6  # of the landmarks' matrix, while it is decomposed


class Nystroem(Approximation):
    """K̃ = C W⁺ Cᵀ from the columns C of the kernel matrix at some landmarks.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
    n_components : int or "sqrt", default=100
        The number m of landmarks; "sqrt" is the square root of the number of rows, rounded up.
    landmarks : str, Sampler or array, default="auto"
        How they are chosen: see :func:`gramian.sampler_names`. "auto" takes k-means centres, of
        sparse rows as of dense ones; or randomly pivoted Cholesky where rows are no vectors, or so
        wide that dense centres take more than a sixteenth of the memory budget. An array gives the
        landmarks themselves: points of shape (m, n_columns), m objects, or the numbers of m rows.
    rank : int, optional
        Keep this many features, fewer than landmarks.
    truncation : {"embedding", "core"}, default="embedding"
        How a rank is kept: the best of that rank of C W⁺ Cᵀ, which takes one more pass over the
        rows; or of W alone, as Drineas and Mahoney do.
    tol : float, optional
        Take more landmarks, beginning with n_components, until the trace error is at most this part
        of the trace, or the memory budget ends.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    landmarks_ : Landmarks
        The landmarks in use: ``points``, and ``indices`` where they are rows.
    n_components_ : int
        The number of features: at most the number of landmarks.
    nbytes_ : int
        What the features of the training rows take.
    kernel_ : Kernel
        The kernel in use, its parameters worked out.

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

    below = True

    def __init__(
        self,
        kernel: Any = "rbf",
        n_components: Any = 100,
        *,
        landmarks: Any = "auto",
        rank: int | None = None,
        truncation: str = "embedding",
        tol: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.rank = rank
        self.truncation = truncation
        self.tol = tol
        self.random_state = random_state

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Any) -> int:
        choice(self, "truncation", self.truncation, ("embedding", "core"))
        m = self._count(gram.shape[0])
        self._warn_of_count(gram.shape[0])
        sampler = as_sampler(self.landmarks, gram, m)
        if sampler.needs_target and y is None:
            raise ValueError(
                f"{type(sampler).__name__} chooses landmarks by the target: call fit(X, y)."
            )
        target = np.asarray(array_ops.to_numpy(y)) if sampler.needs_target else None
        if self.tol is None:
            self._learn(gram, sampler.select(gram, m, rng, target))
        else:
            self._grow(gram, sampler, m, rng, target)
        if len(self.landmarks_) < m and self.tol is None and not sampler.fixed:
            warnings.warn(
                f"Nystroem uses {counted(len(self.landmarks_), 'landmark')} in place of {m}: the "
                "rows have no more that differ.",
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
                f"rank={self.rank} exceeds the {counted(m, 'landmark')} that n_components asks "
                "for: a rank is at most the number of landmarks."
            )
        return min(m, n)

    def _warn_of_count(self, n: int) -> None:
        if self.n_components != "sqrt" and self.n_components > n:
            warnings.warn(
                f"n_components={self.n_components} exceeds the number of rows; {n} landmarks are "
                "used.",
                ApproximationWarning,
                stacklevel=6,
            )

    def _expected(self, rows: Rows) -> tuple[int, int]:
        m = self._at_most(rows)[0]
        columns = min(m, tiles.tile_columns(rows.example()))
        return min(m, self.rank or m), columns * array_ops.itemsize(rows.dtype)

    def _at_most(self, rows: Rows) -> tuple[int, Sampler]:
        """The number of landmarks, at most, and what chooses them."""
        m = self._count(rows.shape[0])
        m = m if self.tol is None else self._most(rows, m)
        sampler = as_sampler(self.landmarks, Gram(self._bare_kernel(), rows), m)
        return sampler.most_landmarks(m), sampler

    def _planned_factors(self, rows: Rows, dtype: Any, width: int, work_bytes: int) -> Factors:
        fitted = hasattr(self, "_projected")
        m = int(self._projected.steps.shape[0]) if fitted else self._at_most(rows)[0]
        product = FeatureRows(rows, self._features, m, dtype), np.broadcast_to(0.0, (m, width))
        Z = FeatureRows(rows, self._features, width, dtype, work_bytes=work_bytes, product=product)
        return Factors(Z)

    def _fit_steps(self, rows: Rows) -> tuple[Amounts, list[Amounts]]:
        (m, sampler), (r, work) = self._at_most(rows), self._expected(rows)
        own, item = sampler.landmark_bytes(rows), array_ops.itemsize(rows.dtype)
        kept = projected_bytes(rows, m, r, own)
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
            steps.append({**projected_bytes(rows, m, m, own), "features": 2 * 8 * m**2 + inner})
        return kept, steps

    def _learn(self, gram: Gram, landmarks: Landmarks) -> None:
        """The matrix P with z(x) = k(x, landmarks) P."""
        W = gram_of(gram, landmarks).dense() if len(landmarks) else None
        if W is None or not bool(array_ops.namespace(W).any(W != 0)):
            raise ValueError(
                f"{type(self).__name__} has nothing to approximate: {gram.kernel!r} is 0 for all "
                "pairs of landmarks, as kernels of inner products are where rows are 0. Leave such "
                "rows out, or use another kernel."
            )
        W = W if array_ops.is_on_gpu(W) else array_ops.to_numpy(W)
        scale = np.ones(len(W))
        if landmarks.probabilities is not None:
            scale = 1.0 / np.sqrt(len(W) * landmarks.probabilities)
        scale = array_ops.like(scale, W)
        W = scale[:, None] * W * scale
        # Directions of W that the data's own precision cannot tell from 0 are left out.
        cutoff = max(len(W) * np.finfo(float).eps, array_ops.eps(gram.dtype))
        if self.rank is not None and self.truncation == "core":
            P = array_ops.like(_inverse_root_of_rank(array_ops.to_numpy(W), self.rank, cutoff), W)
        else:
            with few_blas_threads(len(W)):
                P = inverse_root(W, cutoff, gram)
        self.landmarks_ = landmarks
        self._prepare(gram, scale[:, None] * P)
        if self.rank is not None and self.truncation == "embedding":
            products = inner(self._factors(gram))
            vectors = np.linalg.eigh(products)[1][:, ::-1][:, : self.rank]
            self._prepare(gram, scale[:, None] * (P @ array_ops.like(vectors.copy(), P)))

    def _prepare(self, gram: Gram, projection: Array) -> None:
        self._projected = ProjectedKernel(
            self.kernel_, self.landmarks_.points, projection, dtype=gram.dtype
        )

    def _factors(self, gram: Gram) -> Any:
        self.n_components_ = self._projected.width
        return self.factor_rows(gram.rows)

    def _features(self, x: Array, out: Array | None = None) -> Array:
        return self._projected.features(x, out)

    def _work_bytes(self) -> int:
        return self._projected.work_bytes

    def _row_evaluations(self) -> int:
        return self._projected.points_used

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
        """Points of the kernel's space, given by their features, as sums over the landmarks.

        Column j of the result holds the coefficients a of Σ a_i k(landmark_i, ·), the point whose
        features are row j of ``coordinates``: its product with a row x is Σ a_i k(landmark_i, x).
        """
        xp = array_ops.namespace(coordinates)
        P, z = (array_ops.astype(a, xp.float64) for a in (self._projected.projection, coordinates))
        return P @ xp.matrix_transpose(z)

    def _grow(self, gram: Gram, sampler: Sampler, m: int, rng: np.random.Generator, y: Any) -> None:
        """Landmarks until the trace error is at most ``tol``, or the memory budget ends."""
        if not is_real(self.tol) or not 0 < self.tol < 1:
            raise ValueError(f"tol of Nystroem must be a number between 0 and 1; got {self.tol!r}.")
        most = self._most(gram.rows, m)
        while True:
            if sampler.grows:
                # What they leave of the diagonal is the error itself, but for rounding.
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
            f"{counted(len(landmarks), 'landmark')}, all that the memory budget allows; asked for "
            f"was tol={self.tol:g}. Raise the budget with gramian.set_config(memory_budget=...), "
            "or tol.",
            ApproximationWarning,
            stacklevel=6,
        )

    def _most(self, rows: Rows, m: int) -> int:
        """The landmarks that the memory budget allows, but at least m."""
        n = rows.shape[0]
        square = isqrt(config.memory_budget() // 2 // (CORE_COPIES * 8))
        return max(m, min(n, rows.place.room() // 2 // (n * 8), square))

    def _trace_error(self, gram: Gram) -> float:
        diagonal = self._factors(gram).diagonal()
        explained = float(array_ops.namespace(diagonal).sum(diagonal))
        return 1.0 - explained / gram.trace()


def inverse_root(W: Array, cutoff: float, gram: Gram) -> Array:
    """P with P Pᵀ = W⁺, by pivoted Cholesky: columns as many as W has rank."""
    xp = array_ops.namespace(W)
    diagonal = xp.linalg.diagonal(W)
    largest = float(xp.max(diagonal))
    lower, kept = linalg.pivoted_cholesky(W, cutoff * max(largest, 0.0))
    if len(kept) == 0 or not array_ops.all_finite(lower):
        _not_psd(gram)
    P = xp.zeros_like(W)[:, : len(kept)]
    array_ops.put_rows(P, kept, xp.matrix_transpose(linalg.inverse_triangle(lower)))
    left = diagonal - array_ops.row_norms(W @ P)
    if float(xp.min(left)) < -1e3 * cutoff * len(W) * float(xp.max(xp.abs(diagonal))):
        _not_psd(gram)
    return P


def _inverse_root_of_rank(W: np.ndarray, rank: int, cutoff: float) -> np.ndarray:
    """P with P Pᵀ = W_r⁺, from the leading eigenvectors of W."""
    m = len(W)
    if m > 1000 and rank < m // 5:  # far fewer than all: a randomized decomposition
        vectors, values, _ = randomized_svd(W, rank, n_iter=4, random_state=0)
    else:
        values, vectors = scipy.linalg.eigh(W, subset_by_index=[max(m - rank, 0), m - 1])
    kept = values > cutoff * values.max()
    return vectors[:, kept] / np.sqrt(values[kept])


def _not_psd(gram: Gram) -> None:
    raise ValueError(
        f"The Nyström approximation needs a positive semi-definite kernel; {gram.kernel!r} is not, "
        "on these rows. Use a kernel such as RBF, Laplacian or Polynomial with coef0 >= 0, or an "
        "exact learner: kernel=Exact(...)."
    )
