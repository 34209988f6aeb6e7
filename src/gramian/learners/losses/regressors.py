"""Regression with a loss: support vectors, quantiles, expectiles, outliers and counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, d2_tweedie_score

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import is_real, not_negative
from gramian.backend.wording import shown
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel
from gramian.learners.losses.base import NumberLearner
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.regression import (
    EpsilonInsensitive,
    Expectile,
    Huber,
    Poisson,
    Quantile,
)


class _Regressor(RegressorMixin, NumberLearner):
    def _fit_numbers(self, X: RowsLike, y: Array, sample_weight: Array | None) -> None:
        self._fit(X, y, sample_weight, generator(self.random_state))
        name = "dual_coef_" if self.approximation_ is None else "coef_"
        if self._flat():
            setattr(self, name, getattr(self, name)[:, 0])
            self.intercept_ = float(self.intercept_[0])
            self.objective_ = float(self.objective_[0])

    def _flat(self) -> bool:
        """Whether there is a single prediction per row, without an axis of its own."""
        return True

    def predict(self, X: RowsLike) -> Array:
        """Predict the target of each row of X."""
        return self._outputs(X, self._loss(1).inverse_link)


class KernelSVR(_Regressor):
    """Support vector regression: errors up to ``epsilon`` do not count, larger ones linearly.

    It minimises Σ w max(0, |y - f| - epsilon) + ½ alpha ‖f‖²; ``alpha`` is 1/C of scikit-learn's
    SVR. The loss is smoothed, less and less, until the duality gap is within ``tol``.

    Parameters
    ----------
    alpha, kernel, fit_intercept, max_iter, random_state
        As in :class:`KernelLogisticRegression`.
    epsilon : float, default=0.1
        The largest error that does not count.
    tol : float, default=1e-4
        The accuracy of the objective, relative to its minimum.

    Attributes
    ----------
    dual_coef_ : array of shape (n,)
        The coefficients a of f(x) = Σ k(x, x_i) a_i + b, if K is exact.
    coef_ : array of shape (r,)
        The coefficients of the r features, if K is approximated.
    intercept_, objective_, accuracy_ : float
        The intercept b, the objective, and what is left to gain, relative to it, at most.
    n_iter_, kernel_, approximation_, points_
        As in :class:`KernelLogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelSVR
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelSVR(1e-2, kernel=RBF(gamma=1.0), epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(1)
    array([1.])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _loss(self, n_targets: int) -> Loss:
        return EpsilonInsensitive(not_negative(self, "epsilon", self.epsilon))

    @all_or_nothing
    def fit(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> KernelSVR:
        """Fit to the rows X and targets y of shape (n,)."""
        self._fit_numbers(X, y, sample_weight)
        return self


class KernelHuberRegressor(_Regressor):
    """Regression that outliers hardly change: their errors count linearly.

    As in scikit-learn's HuberRegressor, the scale σ of the errors is fitted too. The objective is
    half of the one there, ½ Σ w (σ + σ H((y - f) / σ)) + ½ alpha ‖f‖², where H(z) is z² up to
    ``epsilon`` and 2 epsilon |z| - epsilon² beyond, so ``alpha`` means the same.

    Parameters
    ----------
    alpha, kernel, fit_intercept, tol, max_iter, random_state
        As in :class:`KernelLogisticRegression`.
    epsilon : float, default=1.35
        Errors above epsilon σ are outliers. The smaller, the more robust; greater than 1.

    Attributes
    ----------
    scale_ : float
        The scale σ of the errors.
    dual_coef_, coef_, intercept_, objective_, accuracy_, n_iter_, kernel_, approximation_, points_
        As in :class:`KernelSVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelHuberRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::10] += 20.0
    >>> model = KernelHuberRegressor(1e-2, kernel=RBF(gamma=1.0)).fit(X, y)
    >>> model.predict([[np.pi / 2]]).round(1)
    array([1.])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        epsilon: float = 1.35,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _loss(self, n_targets: int) -> Loss:
        if not is_real(self.epsilon) or self.epsilon <= 1:
            raise ValueError(
                "epsilon of KernelHuberRegressor must be a number greater than 1; got "
                f"{shown(self.epsilon)}."
            )
        return Huber(float(self.epsilon))

    @all_or_nothing
    def fit(
        self, X: RowsLike, y: Array, sample_weight: Array | None = None
    ) -> KernelHuberRegressor:
        """Fit to the rows X and targets y of shape (n,)."""
        self._fit_numbers(X, y, sample_weight)
        return self

    def _keep(self, solution: Any) -> None:
        super()._keep(solution)
        self.scale_ = float(solution.loss.scale)


class _Levels(_Regressor):
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
    dual_coef_, coef_, intercept_, objective_, accuracy_, n_iter_, kernel_, approximation_, points_
        As in :class:`KernelSVR`, with a column or entry for each quantile of a list.

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
        alpha: float = 1.0,
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

    @all_or_nothing
    def fit(
        self, X: RowsLike, y: Array, sample_weight: Array | None = None
    ) -> KernelQuantileRegressor:
        """Fit to the rows X and targets y of shape (n,)."""
        self._fit_numbers(X, y, sample_weight)
        return self

    def score(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> float:
        """Return the share of the pinball loss that is explained, D², averaged over quantiles."""
        predicted = array_ops.to_numpy(self.predict(X))
        columns = predicted[:, None] if predicted.ndim == 1 else predicted
        scores = [
            d2_pinball_score(array_ops.to_numpy(y), column, alpha=tau, sample_weight=sample_weight)
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
    dual_coef_, coef_, intercept_, objective_, accuracy_, n_iter_, kernel_, approximation_, points_
        As in :class:`KernelQuantileRegressor`.

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
        alpha: float = 1.0,
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

    @all_or_nothing
    def fit(
        self, X: RowsLike, y: Array, sample_weight: Array | None = None
    ) -> KernelExpectileRegressor:
        """Fit to the rows X and targets y of shape (n,)."""
        self._fit_numbers(X, y, sample_weight)
        return self


class KernelPoissonRegressor(_Regressor):
    """Regression of counts, or of other targets that are not negative, with a log link.

    It minimises half the Poisson deviance, Σ w (exp(f) - y f + y log y - y), plus ½ alpha ‖f‖²; its
    predictions are exp(f). scikit-learn's PoissonRegressor has the mean in place of the sum: its
    alpha is ours divided by the number of rows.

    Parameters
    ----------
    alpha, kernel, fit_intercept, tol, max_iter, random_state
        As in :class:`KernelLogisticRegression`.

    Attributes
    ----------
    dual_coef_, coef_, intercept_, objective_, accuracy_, n_iter_, kernel_, approximation_, points_
        As in :class:`KernelSVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelPoissonRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.random.default_rng(0).poisson(np.exp(2 + np.sin(X[:, 0])))
    >>> model = KernelPoissonRegressor(0.1, kernel=RBF(gamma=1.0)).fit(X, y)
    >>> bool(15 < model.predict([[np.pi / 2]])[0] < 25)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _loss(self, n_targets: int) -> Loss:
        return Poisson()

    @all_or_nothing
    def fit(
        self, X: RowsLike, y: Array, sample_weight: Array | None = None
    ) -> KernelPoissonRegressor:
        """Fit to the rows X and targets y of shape (n,), none negative."""
        self._fit_numbers(X, y, sample_weight)
        return self

    def score(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> float:
        """Return the share of the deviance that is explained, D², as PoissonRegressor does."""
        y, predicted = array_ops.to_numpy(y), array_ops.to_numpy(self.predict(X))
        return float(d2_tweedie_score(y, predicted, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _ascending(f: Array, ranks: np.ndarray) -> Array:
    """Sort each row of f (n, levels), and give each level the value of its rank."""
    xp = array_ops.namespace(f)
    if array_ops.is_lazy(f):
        return f.map_blocks(lambda block: np.sort(block, axis=1)[:, ranks], dtype=f.dtype)
    return xp.take(xp.sort(f, axis=1), array_ops.like(ranks, f), axis=1)
