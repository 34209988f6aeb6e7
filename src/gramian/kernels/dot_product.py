"""Kernels of the inner product of two rows."""

from __future__ import annotations

from math import comb
from typing import ClassVar, Literal

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive_integer, real
from gramian.kernels import pairings
from gramian.kernels.base import Kernel, ProfileKernel
from gramian.kernels.gamma import Gamma, GammaKernel

__all__ = ["AdditiveChi2", "Cosine", "ExponentialDot", "Linear", "Polynomial", "Sigmoid"]


class InnerKernel(GammaKernel):
    """Base class of kernels that are a profile of gamma * xᵀy."""

    pairing = staticmethod(pairings.inner)

    def _scale(self) -> float:
        return self._gamma

    def _diagonal(self, x: Array) -> Array:
        return self._profile(array_ops.row_norms(x) * self._scale())


class Linear(ProfileKernel):
    """Linear kernel, xᵀy.

    See Also
    --------
    Polynomial : powers of the inner product.

    Examples
    --------
    >>> from gramian import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    names = ("linear",)
    pairing = staticmethod(pairings.inner)

    def _profile(self, u: Array) -> Array:
        return u

    def _diagonal(self, x: Array) -> Array:
        return array_ops.row_norms(x)

    def maclaurin(self, count: int) -> np.ndarray:
        return (np.arange(count) == 1).astype(np.float64)


class Polynomial(InnerKernel):
    """Polynomial kernel, (gamma xᵀy + coef0)^degree.

    Parameters
    ----------
    degree : int or "loo", default=3
        "loo" chooses it among 1 to 5 by the leave-one-out error, in learners with a target.
    gamma : float, "scale" or "loo", optional
        A positive number, ``"scale"`` (the default): 1 / (n_features * X.var()), or ``"loo"``: the
        one with the smallest leave-one-out error, in learners with a target.
    coef0 : float, default=1.0
        If negative, the kernel is indefinite.

    See Also
    --------
    TensorSketch : random features for this kernel.
    Linear : degree 1.

    Examples
    --------
    >>> from gramian import Polynomial
    >>> Polynomial(degree=2, gamma=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    names = ("poly", "polynomial")
    candidates: ClassVar = {"degree": (1, 2, 3, 4, 5)}

    def __init__(
        self, degree: int | Literal["loo"] = 3, gamma: Gamma = None, coef0: float = 1.0
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def psd(self) -> bool:
        return self.coef0 >= 0

    @property
    def _degree(self) -> int:
        return positive_integer(self, "degree", self._chosen("degree"))

    def _profile(self, u: Array) -> Array:
        u += real(self, "coef0", self.coef0)
        return array_ops.power(u, self._degree)

    def maclaurin(self, count: int) -> np.ndarray:
        degree, coef0 = self._degree, float(self.coef0)
        terms = np.zeros(count)
        for p in range(min(count, degree + 1)):  # the binomial theorem
            terms[p] = comb(degree, p) * self._scale() ** p * coef0 ** (degree - p)
        return terms


class ExponentialDot(InnerKernel):
    """Exponential dot-product kernel, exp(gamma xᵀy).

    Parameters
    ----------
    gamma : float or "scale", optional
        A positive number or ``"scale"`` (the default): 1 / (n_features * X.var()).

    See Also
    --------
    RBF : the same, divided by its values on the diagonal.
    RandomMaclaurin : random features for this kernel.

    Examples
    --------
    >>> from gramian import ExponentialDot
    >>> ExponentialDot(gamma=0.5)([[1.0, 0.0]], [[2.0, 5.0]]).round(3)
    array([[2.718]])
    """

    names = ("exponential_dot",)

    def __init__(self, gamma: Gamma = None) -> None:
        self.gamma = gamma

    def _profile(self, u: Array) -> Array:
        return array_ops.inplace("exp", u)

    def maclaurin(self, count: int) -> np.ndarray:
        ratios = self._scale() / np.arange(1, count)
        return np.concatenate(([1.0], np.cumprod(ratios)))  # gamma^p / p!


class Sigmoid(InnerKernel):
    """Sigmoid kernel, tanh(gamma xᵀy + coef0).

    It is indefinite: its matrix is not always positive semi-definite.

    Parameters
    ----------
    gamma : float or "scale", optional
        A positive number or ``"scale"`` (the default): 1 / (n_features * X.var()).
    coef0 : float, default=1.0

    See Also
    --------
    ExponentialDot : a positive definite kernel of the inner product.

    Examples
    --------
    >>> from gramian import Sigmoid
    >>> Sigmoid(gamma=1.0, coef0=0.0)([[1.0]], [[0.5]]).round(3)
    array([[0.462]])
    """

    names = ("sigmoid",)

    def __init__(self, gamma: Gamma = None, coef0: float = 1.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def psd(self) -> bool:
        return False

    def _profile(self, u: Array) -> Array:
        u += real(self, "coef0", self.coef0)
        return array_ops.inplace("tanh", u)


class Cosine(ProfileKernel):
    """Cosine similarity, xᵀy / (||x|| ||y||); 0 if a row is all zeros.

    See Also
    --------
    Linear : without dividing by the norms.

    Examples
    --------
    >>> from gramian import Cosine
    >>> Cosine()([[1.0, 0.0]], [[3.0, 4.0]])
    array([[0.6]])
    """

    names = ("cosine",)
    pairing = staticmethod(pairings.cosine)

    def _profile(self, u: Array) -> Array:
        return u

    def _diagonal(self, x: Array) -> Array:
        return array_ops.astype(array_ops.row_norms(x) > 0, x.dtype)


class AdditiveChi2(Kernel):
    """Additive chi-squared kernel, Σ 2xy / (x + y), for histograms: rows without negative numbers.

    This is the positive semi-definite form. scikit-learn's ``additive_chi2_kernel`` is
    -Σ (x - y)² / (x + y), which is twice this kernel minus the sums of both rows.

    See Also
    --------
    Chi2 : its exponential form.

    Examples
    --------
    >>> from gramian import AdditiveChi2
    >>> AdditiveChi2()([[1.0, 0.0]], [[1.0, 4.0]])
    array([[1.]])
    """

    names = ("additive_chi2",)
    takes_sparse = False
    takes_negative = False

    def against(self, points: Array) -> pairings.Tile:
        pair = pairings.chi_squared(points, -0.5, 0.0)
        xp = array_ops.namespace(points)
        half_sums = xp.sum(points, axis=1) / 2

        def tile(x: Array, out: Array | None = None) -> Array:
            out = pair(x, out)
            out += (xp.sum(x, axis=1) / 2)[:, None]
            out += half_sums
            return out

        return tile

    def _diagonal(self, x: Array) -> Array:
        return array_ops.namespace(x).sum(x, axis=1)
