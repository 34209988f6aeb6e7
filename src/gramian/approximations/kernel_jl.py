"""Kernel-JL: a random projection in the space of a kernel."""

from __future__ import annotations

import warnings
from math import ceil, sqrt
from numbers import Integral
from typing import Any

import numpy as np

from gramian.approximations.base import Approximation, ApproximationWarning, Plan
from gramian.approximations.projected import (
    FeatureKernel,
    ProjectedKernel,
    gram_of,
    projected_bytes,
)
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive_integer
from gramian.kernels import Kernel, tiles
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers import Uniform

__all__ = ["KernelJL"]

LEAST_SAMPLES, ROWS_PER_SAMPLE = 200, 100  # the default subsample of Kpotufe and Sriperumbudur


class KernelJL(Approximation):
    """A Gaussian sketch of the kernel matrix of a subsample (Kpotufe and Sriperumbudur, 2020).

    With s rows drawn at random, their kernel matrix K and a Gaussian matrix G of r by s, a row's
    features are G K k(x) / (s √(s r)), where k(x) are its kernel values with the s rows: a random
    projection as that of Johnson and Lindenstrauss, in the space of the kernel. No matrix is
    decomposed or inverted: the fit is one product, which makes these the cheapest features.

    Their inner products do not approximate the kernel, but k(x)ᵀ K² k(y) / s³, which tends to
    ⟨k(x, ·), Σ³ k(y, ·)⟩ with the kernel's covariance operator Σ: directions in which the data
    spreads count more, others next to nothing, as in kernel PCA. What is well separated along the
    leading components stays so. ``exact_kernel_`` is that kernel, and :func:`relative_error`
    measures against it.

    Its values are about λ³ in size, with λ the largest eigenvalue of K / s: a ridge penalty that
    suits the kernel itself is far too large here.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
    n_components : int, default=100
        The number r of features. The error falls like 1 / √r.
    n_samples : int, optional
        The number s of rows in the subsample. By default a hundredth of all, but at least 200. The
        error against the covariance of all rows falls like 1 / √s.
    centred : bool, default=True
        Whether to centre the kernel on the subsample, as kernel PCA does.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    sample_ : Landmarks
        The subsample: ``points``, and ``indices``.
    n_components_ : int
        The number of features.
    nbytes_ : int
        What the features of the training rows take.
    kernel_ : Kernel
        The kernel in use, its parameters worked out.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gramian import RBF, KernelJL
    >>> X, rings = make_circles(1000, factor=0.3, noise=0.05, random_state=0)
    >>> Z = KernelJL(RBF(5.0), 10, random_state=0).fit_transform(X)
    >>> LogisticRegression(C=1e6).fit(Z, rings).score(Z, rings)
    1.0
    """

    unbiased = True

    def __init__(
        self,
        kernel: Any = "rbf",
        n_components: int = 100,
        *,
        n_samples: int | None = None,
        centred: bool = True,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_samples = n_samples
        self.centred = centred
        self.random_state = random_state

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Any, plan: Plan) -> int:
        if not isinstance(self.centred, bool | np.bool_):
            raise ValueError(f"centred of KernelJL must be True or False; got {self.centred!r}.")
        r = positive_integer(self, "n_components", self.n_components)
        s = self._count(gram.shape[0])
        self._warn_of_count(gram.shape[0])
        self.sample_ = Uniform().select(gram, s, rng)
        self._gram = gram_of(gram, self.sample_)
        R = rng.standard_normal((r, s)).T / (s * sqrt(s * r))
        if self.centred:
            R = R - R.mean(axis=0)
        product = self._gram.matmul(np.column_stack((R, np.full(s, 1 / s))))
        self._projected = self._project(product[:, :-1], product[:, -1], gram.dtype)
        return r

    def _count(self, n: int) -> int:
        if self.n_samples is None:
            return min(n, max(LEAST_SAMPLES, ceil(n / ROWS_PER_SAMPLE)))
        whole = isinstance(self.n_samples, Integral) and not isinstance(self.n_samples, bool)
        if not whole or self.n_samples < 2:
            raise ValueError(
                "n_samples of KernelJL must be an integer from 2 up, or None for a hundredth of "
                f"the rows; got {self.n_samples!r}."
            )
        return min(int(self.n_samples), n)

    def _warn_of_count(self, n: int) -> None:
        if self.n_samples is not None and self.n_samples > n:
            warnings.warn(
                f"n_samples={self.n_samples} exceeds the number of rows; all {n} are used.",
                ApproximationWarning,
                stacklevel=6,
            )

    def _plan(self, rows: Rows) -> Plan:
        s, item = self._count(rows.shape[0]), array_ops.itemsize(rows.dtype)
        r = positive_integer(self, "n_components", self.n_components)
        tile = min(s, tiles.tile_columns(rows.example()))  # columns of the subsample's matrix
        kept = {
            **projected_bytes(rows, s, r),
            "subsample": 2 * s * rows.row_bytes * 8 // item,
        }
        step = {**kept, "product": 3 * 8 * s * (r + 1), "blocks": min(16 * s * tile, 2**23)}
        return Plan(self, rows, self._planned(rows, r, tile * item), kept, [step])

    def _project(self, KR: Array, means: Array, dtype: Any) -> ProjectedKernel:
        """x ↦ k(x)ᵀ K R, with k and K centred on the subsample where asked for; means are K1/s.

        With H = I - 11ᵀ/s the centred K is HKH, and the centred k(x) is H (k(x) - K1/s). So x
        meets P = HKHR alone, of which KHR is given here, and b = -(K1/s)ᵀ P does the rest.
        """
        P, offset = KR, None
        if self.centred:
            P = KR - array_ops.namespace(KR).mean(KR, axis=0)
            offset = -(means @ P)
        return ProjectedKernel(self.kernel_, self.sample_.points, P, offset, dtype=dtype)

    def _features(self, x: Array, out: Array | None = None) -> Array:
        return self._projected.features(x, out)

    def _work_bytes(self) -> int:
        return self._projected.work_bytes

    def _row_evaluations(self) -> int:
        return self._projected.points_used

    @property
    def exact_kernel_(self) -> Kernel:
        """k(x)ᵀ K² k(y) / s³ of the subsample, in float64: s features for each row in place of r.

        It takes s² numbers, and s² operations for each row.
        """
        K, s = self._gram.dense(), len(self.sample_)
        xp = self._gram.rows.xp
        means = xp.mean(K, axis=1)
        KR = (K - means[:, None] if self.centred else K) / s**1.5
        return FeatureKernel(self._project(KR, means, xp.float64))
