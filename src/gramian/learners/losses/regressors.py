"""Regression with a loss: support vectors, outliers and counts."""

from __future__ import annotations

from typing import Any, Literal, Self

from gramian.backend.array_ops import Array
from gramian.backend.checks import is_real, not_negative
from gramian.backend.wording import shown
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel
from gramian.learners.losses.base import NumberLearner
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.regression import EpsilonInsensitive, Huber, Poisson
from gramian.learners.scoring import Regressor, host_arrays


class KernelRegressor(Regressor, NumberLearner):
    """Base class of regressions: what is fitted has no axis of its own for a single output."""

    @all_or_nothing
    def fit(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit to the rows X and targets y of shape (n,)."""
        self._fit(X, y, sample_weight, generator(self.random_state))
        name = self._coefficients
        if self._flat():
            setattr(self, name, getattr(self, name)[:, 0])
            self.intercept_ = float(self.intercept_[0])
            self.objective_ = float(self.objective_[0])
        return self

    def _flat(self) -> bool:
        """Whether there is a single prediction per row, without an axis of its own."""
        return True

    def predict(self, X: RowsLike) -> Array:
        """Predict the target of each row of X."""
        return self._outputs(X, self._loss(1).inverse_link)


class KernelSVR(KernelRegressor):
    """Support vector regression: errors up to ``epsilon`` do not count, larger ones linearly.

    It minimises Σ w max(0, |y - f| - epsilon) + ½ alpha ‖f‖²; ``alpha`` is 1/C of scikit-learn's
    SVR. Steps end when the duality gap is within ``tol``.

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
    alpha_, path_, n_iter_, kernel_, approximation_, points_
        As in :class:`KernelLogisticRegression`.

    See Also
    --------
    KernelRidge : squares.
    KernelHuberRegressor : small errors count too.

    References
    ----------
    - A. J. Smola and B. Schölkopf, A tutorial on support vector regression, Statistics and
      Computing 14, 2004.

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
        alpha: float | tuple | Literal["loo"] = 1.0,
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


class KernelHuberRegressor(KernelRegressor):
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
    dual_coef_, coef_, intercept_, objective_, accuracy_, alpha_, path_, n_iter_, kernel_, \
approximation_, points_
        As in :class:`KernelSVR`.

    See Also
    --------
    KernelRidge : squares alone.
    KernelQuantileRegressor : the median, for still more outliers.

    References
    ----------
    - P. J. Huber and E. M. Ronchetti, Robust statistics, 2009 (concomitant scale).

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
        alpha: float | tuple | Literal["loo"] = 1.0,
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

    def _keep(self, solution: Any) -> None:
        super()._keep(solution)
        self.scale_ = float(solution.loss.scale)


class KernelPoissonRegressor(KernelRegressor):
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
    dual_coef_, coef_, intercept_, objective_, accuracy_, alpha_, path_, n_iter_, kernel_, \
approximation_, points_
        As in :class:`KernelSVR`.

    See Also
    --------
    KernelRidge : squares.

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
        alpha: float | tuple | Literal["loo"] = 1.0,
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

    def score(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> float:
        """Return the share of the deviance that is explained, D², as PoissonRegressor does."""
        from sklearn.metrics import d2_tweedie_score  # takes long to import

        y, predicted, weights = host_arrays(y, self.predict(X), sample_weight)
        return float(d2_tweedie_score(y, predicted, sample_weight=weights, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
