"""Kernels of the distance of two rows."""

from __future__ import annotations

from math import lgamma, sqrt
from typing import ClassVar, Literal

import numpy as np
from scipy.special import kv

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive
from gramian.kernels import pairings
from gramian.kernels.distance import DistanceKernel, EuclideanKernel, Scales
from gramian.kernels.gamma import Gamma
from gramian.kernels.spectrum import Law, Mixing

__all__ = [
    "RBF",
    "Cauchy",
    "Chi2",
    "Exponential",
    "Laplacian",
    "Matern",
    "RationalQuadratic",
]


class ExponentialDecay(DistanceKernel):
    """Base class of kernels exp(-gamma * pairing(x, y))."""

    def _scale(self) -> float:
        return -self._gamma

    def _profile(self, u: Array) -> Array:
        return array_ops.inplace("exp", u)


class RBF(ExponentialDecay, EuclideanKernel):
    """Gaussian (RBF) kernel, exp(-gamma ||x - y||²).

    Parameters
    ----------
    gamma : float, str or tuple, optional
        A positive number or a rule: ``"scale"`` (the default: 1 / (n_features * X.var())),
        ``"median"``, ``"mean"`` or ``("percentile", q)`` of the distances between sampled rows.
        ``"loo"``, in learners with a target, is the gamma with the smallest leave-one-out error of
        kernel ridge on at most 2,000 rows.
    bandwidth : float or "loo", optional
        σ, in place of gamma = 1 / (2σ²).
    scales : array of shape (n_features,) or (n_features, n_features), "learn" or "metric", optional
        Numbers that multiply the columns before the distance, or a matrix that multiplies the rows.
        In learners with a target, ``"learn"`` learns how much each column matters, and
        ``"metric"`` a full matrix. The fitted ``kernel_`` then has the attributes ``scales_`` (of
        mean 1) and ``feature_importances_`` (of sum 1). Unless gamma is set, it is learned too.

    See Also
    --------
    Matern : rougher functions.
    Laplacian : the L1 distance.

    Examples
    --------
    >>> from gramian import RBF
    >>> RBF(gamma=0.5)([[0.0], [1.0]]).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    >>> RBF("median").fit([[0.0], [1.0], [3.0]]).gamma_
    0.125

    Learn which of three columns matter:

    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> model = KernelRidge(alpha="loo", kernel=RBF(scales="learn")).fit(X, np.sin(2 * X[:, 0]))
    >>> model.kernel_.feature_importances_.round(2)
    array([1., 0., 0.])
    """

    names = ("rbf",)

    def spectrum(self) -> list[Law]:
        return [Law(variance=2 * self._gamma, columns=self.column_scales())]


class Laplacian(ExponentialDecay):
    """Laplacian kernel, exp(-gamma ||x - y||₁), with the L1 distance.

    Parameters
    ----------
    gamma : float, str or tuple, optional
        A positive number or a rule: ``"scale"`` (the default: 1 / (n_features * X.std())),
        ``"median"``, ``"mean"`` or ``("percentile", q)`` of the L1 distances.
    bandwidth : float or "loo", optional
        σ, in place of gamma = 1 / σ.
    scales : array or "learn", optional
        As in :class:`RBF`.

    See Also
    --------
    Exponential : the L2 distance in place of the L1 distance.

    Examples
    --------
    >>> from gramian import Laplacian
    >>> Laplacian(0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(3)
    array([[0.368]])
    """

    names = ("laplacian",)
    pairing = staticmethod(pairings.cityblock)
    stationary = True
    squared = False

    def _distances(self, sample: Array) -> np.ndarray:
        return pairings.cityblock(sample, 1.0, 0.0)(sample)

    def _from_spread(self, d: int, variance: float) -> float:
        return 1.0 / (d * sqrt(variance)) if variance > 0 else 1.0

    def spectrum(self) -> list[Law]:
        return [Law(cauchy=self._gamma, columns=self.column_scales())]


class Exponential(EuclideanKernel):
    """Exponential kernel, exp(-gamma ||x - y||₂); the Matérn kernel with nu = 1/2.

    The distance is not squared.

    Parameters
    ----------
    gamma : float, str or tuple, optional
        A positive number or a rule: ``"scale"`` (the default: 1 / sqrt(n_features * X.var())),
        ``"median"``, ``"mean"`` or ``("percentile", q)`` of the distances.
    bandwidth : float or "loo", optional
        σ, in place of gamma = 1 / σ.
    scales : array, "learn" or "metric", optional
        As in :class:`RBF`.

    See Also
    --------
    Laplacian : the L1 distance in place of the L2 distance.

    Examples
    --------
    >>> from gramian import Exponential
    >>> Exponential(0.5)([[0.0, 0.0]], [[3.0, 4.0]]).round(3)
    array([[0.082]])
    """

    names = ("exponential",)
    squared = False
    tolerance = EuclideanKernel.tolerance**2  # the root turns an error of e near 0 into sqrt(e)

    def _scale(self) -> float:
        return self._gamma**2

    def _profile(self, u: Array) -> Array:
        u = array_ops.inplace("sqrt", u)
        u *= -1
        return array_ops.inplace("exp", u)

    def _from_spread(self, d: int, variance: float) -> float:
        return 1.0 / sqrt(d * variance) if variance > 0 else 1.0

    def spectrum(self) -> list[Law]:
        return [
            Law(mixings=(Mixing(self._gamma**2, 0.5, inverse=True),), columns=self.column_scales())
        ]


class Matern(EuclideanKernel):
    """Matérn kernel, 2^(1-ν)/Γ(ν) s^ν K_ν(s) with s = sqrt(2ν) ||x - y|| / σ.

    As nu grows, it approaches :class:`RBF` with the same gamma.

    Parameters
    ----------
    gamma : float, str or tuple, optional
        1 / (2σ²); a positive number or a rule, as in :class:`RBF`.
    nu : float or "loo", default=1.5
        Smoothness ν. 0.5, 1.5 and 2.5 have fast closed forms. "loo" chooses one of these by the
        leave-one-out error, in learners with a target.
    bandwidth : float or "loo", optional
        The length scale σ, in place of gamma = 1 / (2σ²).
    scales : array, "learn" or "metric", optional
        As in :class:`RBF`.

    See Also
    --------
    Exponential : the same with nu = 0.5.

    Examples
    --------
    >>> from gramian import Matern
    >>> Matern(bandwidth=1.0, nu=1.5)([[0.0]], [[1.0]]).round(3)
    array([[0.483]])
    """

    names = ("matern",)
    candidates: ClassVar = {"nu": (0.5, 1.5, 2.5)}

    def __init__(
        self,
        gamma: Gamma = None,
        nu: float | Literal["loo"] = 1.5,
        *,
        bandwidth: float | Literal["loo"] | None = None,
        scales: Scales = None,
    ) -> None:
        self.gamma = gamma
        self.nu = nu
        self.bandwidth = bandwidth
        self.scales = scales

    @property
    def _nu(self) -> float:
        return positive(self, "nu", self._chosen("nu"))

    @property
    def tolerance(self) -> float:  # type: ignore[override]
        # Near 0 the profile falls like u^min(ν, 1).
        return EuclideanKernel.tolerance ** (1 / min(self._nu, 1.0))

    def _scale(self) -> float:
        return 4.0 * self._nu * self._gamma

    def _profile(self, u: Array) -> Array:
        s = array_ops.inplace("sqrt", u)
        nu = self._nu
        if nu not in (0.5, 1.5, 2.5):
            return array_ops.on_host(self._general_profile, s)
        factor = 1.0 if nu == 0.5 else 1.0 + s if nu == 1.5 else 1.0 + s + s * s / 3.0
        s *= -1
        s = array_ops.inplace("exp", s)
        s *= factor
        return s

    def _general_profile(self, s: np.ndarray) -> np.ndarray:
        nu = self._nu
        s = np.maximum(s.astype(np.float64), 1e-100)  # K_ν has a pole at 0
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.exp((1 - nu) * np.log(2) - lgamma(nu) + nu * np.log(s)) * kv(nu, s)
        return np.where(s < 1e-10 ** (1 / min(nu, 1)), 1.0, np.nan_to_num(values, nan=1.0))

    def spectrum(self) -> list[Law]:  # a multivariate Student's t with 2ν degrees of freedom
        return [
            Law(
                mixings=(Mixing(2 * self._gamma, self._nu, inverse=True),),
                columns=self.column_scales(),
            )
        ]


class RationalQuadratic(EuclideanKernel):
    """Rational quadratic kernel, (1 + gamma ||x - y||² / alpha)^(-alpha).

    It is a mixture of Gaussian kernels with different widths. As alpha grows, it approaches
    :class:`RBF` with the same gamma.

    Parameters
    ----------
    gamma : float, str or tuple, optional
        A positive number or a rule, as in :class:`RBF`.
    alpha : float, default=1.0
        The smaller alpha is, the more distant rows matter.
    bandwidth : float or "loo", optional
        σ, in place of gamma = 1 / (2σ²).
    scales : array, "learn" or "metric", optional
        As in :class:`RBF`.

    See Also
    --------
    Cauchy : the same with alpha = 1.

    Examples
    --------
    >>> from gramian import RationalQuadratic
    >>> RationalQuadratic(gamma=1.0, alpha=2.0)([[0.0]], [[2.0]]).round(3)
    array([[0.111]])
    """

    names = ("rational_quadratic",)

    def __init__(
        self,
        gamma: Gamma = None,
        alpha: float = 1.0,
        *,
        bandwidth: float | Literal["loo"] | None = None,
        scales: Scales = None,
    ) -> None:
        self.gamma = gamma
        self.alpha = alpha
        self.bandwidth = bandwidth
        self.scales = scales

    def _scale(self) -> float:
        return self._gamma / positive(self, "alpha", self.alpha)

    def _profile(self, u: Array) -> Array:
        u += 1.0
        u **= -float(self.alpha)
        return u

    def spectrum(self) -> list[Law]:
        alpha = positive(self, "alpha", self.alpha)
        return [Law(mixings=(Mixing(2 * self._gamma, alpha),), columns=self.column_scales())]


class Cauchy(EuclideanKernel):
    """Cauchy kernel, 1 / (1 + gamma ||x - y||²).

    Parameters
    ----------
    gamma : float, str or tuple, optional
        A positive number or a rule, as in :class:`RBF`.
    bandwidth : float or "loo", optional
        σ, in place of gamma = 1 / (2σ²).
    scales : array, "learn" or "metric", optional
        As in :class:`RBF`.

    See Also
    --------
    RationalQuadratic : the same with any power.

    Examples
    --------
    >>> from gramian import Cauchy
    >>> Cauchy(gamma=1.0)([[0.0]], [[2.0]])
    array([[0.2]])
    """

    names = ("cauchy",)

    def _scale(self) -> float:
        return self._gamma

    def _profile(self, u: Array) -> Array:
        u += 1.0
        return array_ops.inplace("reciprocal", u)

    def spectrum(self) -> list[Law]:
        return [Law(mixings=(Mixing(2 * self._gamma, 1.0),), columns=self.column_scales())]


class Chi2(ExponentialDecay):
    """Exponential chi-squared kernel, exp(-gamma Σ (x - y)² / (x + y)), for histograms.

    Rows must not contain negative numbers.

    Parameters
    ----------
    gamma : float, str or tuple, optional
        A positive number or a rule: ``"mean"`` (the default), ``"median"`` or
        ``("percentile", q)`` of the chi-squared distances between sampled rows.
    bandwidth : float or "loo", optional
        σ, in place of gamma = 1 / σ.
    scales : array of shape (n_features,), optional
        As in :class:`RBF`; they cannot be learned.

    See Also
    --------
    AdditiveChi2 : without the exponential.

    Examples
    --------
    >>> from gramian import Chi2
    >>> Chi2(1.0)([[0.2, 0.8]], [[0.6, 0.4]]).round(3)
    array([[0.717]])
    """

    names = ("chi2",)
    pairing = staticmethod(pairings.chi_squared)
    takes_sparse = False
    takes_negative = False
    squared = False
    default_rule = "mean"

    def _distances(self, sample: Array) -> np.ndarray:
        return pairings.chi_squared(sample, 1.0, 0.0)(sample)

    def _from_spread(self, d: int, variance: float) -> float:
        raise ValueError(
            "Chi2 has no gamma='scale'; use 'mean', 'median', ('percentile', q) or a number."
        )
