"""Regression of quantiles and expectiles: one level, or several that do not cross."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.wording import shown
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.regression import Expectile, Quantile
from gramian.learners.losses.regressors import KernelRegressor
from gramian.learners.scoring import host_arrays


class _Levels(KernelRegressor):
    """One prediction per level, a number or several, in ascending order."""

    @abstractmethod
    def _levels(self) -> Any:
        """Return the parameter: a number, or several."""

    def _checked(self, name: str) -> np.ndarray:
        levels = self._levels()
        try:
            values = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        except (TypeError, ValueError):
            values = np.empty(0)
        inside = (values > 0) & (values < 1)
        if values.ndim != 1 or not values.size or not inside.all():
            raise ValueError(
                f"{name} of {type(self).__name__} must be a number between 0 and 1, or a list of "
                f"them; got {shown(levels)}."
            )
        return values

    def _flat(self) -> bool:
        return np.ndim(self._levels()) == 0

    def predict(self, X: RowsLike) -> Array:
        """Predict each level, shape (n,) or (n, levels); larger levels are never below smaller."""
        if self._flat():
            return self._outputs(X)
        order = np.argsort(self._levels(), kind="stable")
        return self._outputs(X, lambda f: _ascending(f, np.argsort(order)))


class KernelQuantileRegressor(_Levels):
    """Quantiles of the target: one, or several at once that do not cross.

    For each quantile τ it minimises Σ w (τ max(0, y - f) + (1 - τ) max(0, f - y)) + ½ alpha ‖f‖².
    The loss is smoothed, less and less, until the duality gap is within ``tol``. Predictions of
    several quantiles are sorted for each row (Chernozhukov, Fernández-Val and Galichon, 2010),
    which never makes them worse.

    Parameters
    ----------
    alpha, kernel, fit_intercept, max_iter, random_state
        As in :class:`KernelLogisticRegression`.
    quantile : float or list of float, default=0.5
        Between 0 and 1. With a list, predictions have one column for each.
    tol : float, default=1e-4
        The accuracy of the objective, relative to its minimum.

    Attributes
    ----------
    dual_coef_, coef_, intercept_, objective_, accuracy_, alpha_, path_, n_iter_, kernel_, \
approximation_, points_
        As in :class:`KernelSVR`, with a column or entry for each quantile of a list.

    See Also
    --------
    KernelExpectileRegressor : smooth, and faster to fit.

    References
    ----------
    - I. Takeuchi et al., Nonparametric quantile estimation, JMLR 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (200, 1))
    >>> y = np.sin(X[:, 0]) + rng.standard_normal(200)
    >>> model = KernelQuantileRegressor(1.0, RBF(gamma=1.0), quantile=[0.1, 0.9]).fit(X, y)
    >>> low, high = model.predict(X).T
    >>> bool(0.75 < ((low < y) & (y < high)).mean() < 0.85)
    True
    """

    def __init__(
        self,
        alpha: float | tuple | Literal["loo"] = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        quantile: float | Sequence[float] = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.quantile = quantile
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _levels(self) -> Any:
        return self.quantile

    def _loss(self, n_targets: int) -> Loss:
        return Quantile(self._checked("quantile"))

    def score(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> float:
        """Return the share of the pinball loss that is explained, D², averaged over quantiles."""
        from sklearn.metrics import d2_pinball_score  # takes long to import

        y, weights = host_arrays(y, sample_weight)
        predicted = array_ops.to_numpy(self.predict(X))
        columns = predicted[:, None] if predicted.ndim == 1 else predicted
        scores = [
            d2_pinball_score(y, column, alpha=tau, sample_weight=weights)
            for tau, column in zip(self._checked("quantile"), columns.T, strict=True)
        ]
        return float(np.mean(scores))


class KernelExpectileRegressor(_Levels):
    """Expectiles of the target: asymmetric least squares, one level or several that do not cross.

    For each level τ it minimises ½ Σ w |τ - [y < f]| (y - f)² + ½ alpha ‖f‖². At 0.5 it is half of
    a ridge regression.

    Parameters
    ----------
    alpha, kernel, fit_intercept, tol, max_iter, random_state
        As in :class:`KernelLogisticRegression`.
    level : float or list of float, default=0.5
        Between 0 and 1. With a list, predictions have one column for each.

    Attributes
    ----------
    dual_coef_, coef_, intercept_, objective_, accuracy_, alpha_, path_, n_iter_, kernel_, \
approximation_, points_
        As in :class:`KernelQuantileRegressor`.

    See Also
    --------
    KernelQuantileRegressor : levels with a share of the targets below.

    References
    ----------
    - W. K. Newey and J. L. Powell, Asymmetric least squares estimation and testing,
      Econometrica 55, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelExpectileRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelExpectileRegressor(1e-3, RBF(gamma=1.0), level=0.9).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])
    """

    def __init__(
        self,
        alpha: float | tuple | Literal["loo"] = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        level: float | Sequence[float] = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.level = level
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _levels(self) -> Any:
        return self.level

    def _loss(self, n_targets: int) -> Loss:
        return Expectile(self._checked("level"))


def _ascending(f: Array, ranks: np.ndarray) -> Array:
    """Sort each row of f (n, levels), and give each level the value of its rank."""
    xp = array_ops.namespace(f)
    if array_ops.is_lazy(f):
        return f.map_blocks(lambda block: np.sort(block, axis=1)[:, ranks], dtype=f.dtype)
    return xp.take(xp.sort(f, axis=1), array_ops.like(ranks, f), axis=1)
