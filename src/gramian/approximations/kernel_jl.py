"""Kernel-JL: a random projection in the space of a kernel."""

from __future__ import annotations

import warnings
from math import ceil, sqrt
from numbers import Integral

import numpy as np

from gramian.approximations.base import ApproximationWarning, Plan
from gramian.approximations.projected import (
    FeatureKernel,
    ProjectedApproximation,
    ProjectedKernel,
    gram_of,
    projected_bytes,
)
from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.backend.checks import positive_integer
from gramian.estimators.parameters import KernelLike, RandomState
from gramian.kernels import Kernel, tiles
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers import Uniform

__all__ = ["KernelJL"]

LEAST_SAMPLES, ROWS_PER_SAMPLE = 200, 100  # the default subsample of Kpotufe and Sriperumbudur


class KernelJL(ProjectedApproximation):
    """A Gaussian sketch of the kernel matrix of a subsample (Kpotufe and Sriperumbudur, 2020).

    Let K be the kernel matrix of s random rows, and G a Gaussian matrix of shape (r, s). A row's
    features are G K k(x) / (s √(s r)), where k(x) are its kernel values with the s rows: a random
    projection as in the lemma of Johnson and Lindenstrauss, in feature space. No matrix is
    decomposed or inverted. The fit is one matrix product, which makes these the cheapest features.

    Their inner products do not approximate the kernel but k(x)ᵀ K² k(y) / s³, which tends to
    ⟨k(x, ·), Σ³ k(y, ·)⟩ with the kernel's covariance operator Σ. Directions with a large variance
    count more, the others very little, as in kernel PCA: data that are well separated along the
    leading components stay so. ``exact_kernel_`` is that kernel, and :func:`relative_error`
    measures the error against it.

    Its values are of the order of λ³, with λ the largest eigenvalue of K / s: a ridge penalty that
    suits the kernel itself is far too large here.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    n_components : int, default=100
        The number r of features. The error falls like 1 / √r.
    n_samples : int, optional
        The number s of rows in the subsample. By default 1 % of all rows, but at least 200. The
        error relative to the covariance of all rows falls like 1 / √s.
    centred : bool, default=True
        Whether to centre the kernel on the subsample, as kernel PCA does.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    sample_ : Landmarks
        The subsample: ``points`` and ``indices``.
    n_components_ : int
        The number of features.
    nbytes_ : int
        The memory of the training rows' features.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.

    See Also
    --------
    KernelPCA : the leading directions instead of random ones.
    Nystroem : preserves the kernel itself.

    References
    ----------
    - S. Kpotufe and B. K. Sriperumbudur, Gaussian sketching yields a J-L lemma in RKHS, AISTATS
      2020.

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
        kernel: KernelLike = "rbf",
        n_components: int = 100,
        *,
        n_samples: int | None = None,
        centred: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_samples = n_samples
        self.centred = centred
        self.random_state = random_state

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: Plan) -> int:
        if not isinstance(self.centred, bool | np.bool_):
            raise ValueError(f"centred of KernelJL must be True or False; got {self.centred!r}.")
        r = positive_integer(self, "n_components", self.n_components)
        s = self._count(gram.shape[0])
        self._warn_of_count(gram.shape[0])
        self.sample_ = Uniform().select(gram, s, rng)
        self._gram = gram_of(gram, self.sample_)
        xp, example = self._gram.rows.xp, self._gram.rows.place.reference
        R = xp.matrix_transpose(array_ops.like(rng.standard_normal((r, s)), example))
        R = R / (s * sqrt(s * r))
        if self.centred:
            R = R - xp.mean(R, axis=0)
        ones = array_ops.like(np.full((s, 1), 1 / s), example)
        product = self._gram.matmul(xp.concat((R, ones), axis=1))
        self._projected = self._project(product[:, :-1], product[:, -1], gram.dtype)
        return r

    def _count(self, n: int) -> int:
        if self.n_samples is None:
            return min(n, max(LEAST_SAMPLES, ceil(n / ROWS_PER_SAMPLE)))
        whole = isinstance(self.n_samples, Integral) and not isinstance(self.n_samples, bool)
        if not whole or self.n_samples < 2:
            raise ValueError(
                "n_samples of KernelJL must be an integer of at least 2, or None for 1 % of the "
                f"rows; got {self.n_samples!r}."
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
        tile = min(s, tiles.tile_columns(rows.place.reference))  # columns of the subsample's matrix
        kept = {
            **projected_bytes(rows, s, r),
            "subsample": 2 * s * rows.row_bytes * 8 // item,
        }
        step = {**kept, "product": 3 * 8 * s * (r + 1), "blocks": min(16 * s * tile, 2**23)}
        return Plan(self, rows, self._planned(rows, r, tile * item), kept, [step])

    def _project(self, KR: Array, means: Array, dtype: DType) -> ProjectedKernel:
        """Return the map x ↦ k(x)ᵀ K R, with k and K centred on the subsample if ``centred``.

        ``KR`` has shape (s, r); ``means`` (s,) is K1/s. With H = I - 11ᵀ/s, the centred K is HKH
        and the centred k(x) is H (k(x) - K1/s). So the projection is P = HKHR, from KHR which is
        passed as ``KR``, and the offset is b = -(K1/s)ᵀ P.
        """
        P, offset = KR, None
        if self.centred:
            P = KR - array_ops.namespace(KR).mean(KR, axis=0)
            offset = -(means @ P)
        return ProjectedKernel(self.kernel_, self.sample_.points, P, offset, dtype=dtype)

    @property
    def exact_kernel_(self) -> Kernel:
        """The kernel k(x)ᵀ K² k(y) / s³ of the subsample, in float64.

        It has s features per row instead of r, and takes s² numbers and s² operations per row.
        """
        K, s = self._gram.dense(), len(self.sample_)
        xp = self._gram.rows.xp
        means = xp.mean(K, axis=1)
        KR = (K - means[:, None] if self.centred else K) / s**1.5
        return FeatureKernel(self._project(KR, means, xp.float64))
