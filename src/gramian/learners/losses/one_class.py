"""Novelty detection: a one-class support vector machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.base import OutlierMixin

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import is_real
from gramian.backend.wording import shown
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel
from gramian.learners.losses.base import LossLearner
from gramian.learners.losses.classification import Novelty
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.problem import LossProblem


class KernelOneClass(OutlierMixin, LossLearner):
    """Novelty and outlier detection, as scikit-learn's OneClassSVM, for many rows.

    It finds the f(x) = Σ k(x, x_i) a_i and the threshold ρ that separate most rows from the origin
    of feature space: the minimum of ½ ‖f‖² + Σ w max(0, ρ - f) - nu Σ w ρ. About a fraction ``nu``
    of the rows lies below the threshold.

    Parameters
    ----------
    nu : float, default=0.5
        At most this fraction of the training rows is below the threshold of the fit, and at least
        this fraction determines it; in (0, 1].
    kernel, max_iter, random_state
        As in :class:`KernelLogisticRegression`.
    contamination : float or "auto", default="auto"
        The fraction of the training rows that ``predict`` calls outliers, between 0 and 0.5;
        "auto" takes the threshold ρ of the fit.
    tol : float, default=1e-4
        The accuracy of the objective, relative to its minimum.

    Attributes
    ----------
    offset_ : float
        Rows whose score is below are outliers.
    dual_coef_ : array of shape (n,)
        The coefficients a, if K is exact.
    coef_ : array of shape (r,)
        The coefficients of the r features, if K is approximated.
    accuracy_, n_iter_, kernel_, approximation_, points_
        As in :class:`KernelLogisticRegression`.

    See Also
    --------
    KernelKMeans : clusters in the same feature space.

    References
    ----------
    - B. Schölkopf et al., Estimating the support of a high-dimensional distribution, Neural
      Computation 13, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelOneClass
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> model = KernelOneClass(0.1, kernel=RBF(gamma=0.5)).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    fit_intercept = True
    alpha = 1.0

    def __init__(
        self,
        nu: float = 0.5,
        kernel: LearnerKernel = "rbf",
        *,
        contamination: float | Literal["auto"] = "auto",
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: RandomState = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.contamination = contamination
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _loss(self, n_targets: int) -> Loss:
        return Novelty()

    def _pose(self, **known: Any) -> LossProblem:
        problem = super()._pose(**known)
        # Divided by nu Σ w, f is of the size of the kernel's values, whatever the number of rows.
        size = float(self.nu) * problem.weight
        return replace(problem, alpha=size, tilt=size)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_real(self.nu) or not 0 < self.nu <= 1:
            raise ValueError(
                "nu of KernelOneClass must be a number above 0 and at most 1; got "
                f"{shown(self.nu)}."
            )
        share = self.contamination
        if share != "auto" and (not is_real(share) or not 0 < share <= 0.5):
            raise ValueError(
                "contamination of KernelOneClass must be 'auto', or a number above 0 and at most "
                f"0.5; got {shown(share)}."
            )

    @all_or_nothing
    def fit(self, X: RowsLike, y: Any = None, sample_weight: Array | None = None) -> KernelOneClass:
        """Fit to the rows X; y is ignored."""
        self._check_parameters()
        problem = self._problem(X, generator(self.random_state), sample_weight)
        size, zeros = problem.tilt, problem.rows.place.constant(0.0)[:, None]
        start = problem.loss.start(np.zeros(1))
        solution = self._solved(replace(problem, y=zeros, start=start))
        self._keep(solution._replace(coefficients=size * solution.coefficients))
        name = self._coefficients
        setattr(self, name, getattr(self, name)[:, 0])
        self.offset_ = -size * float(solution.intercepts[0])
        self.intercept_ = np.zeros(1)
        del self.objective_, self.alpha_, self.path_
        if self.contamination != "auto":
            scores = array_ops.host_float64(self.score_samples(problem.input_rows))
            self.offset_ = _weighted_quantile(scores, problem.weights, float(self.contamination))
        return self

    def score_samples(self, X: RowsLike) -> Array:
        """Return f(x) for each row; the smaller, the more unusual."""
        return self._outputs(X)

    def decision_function(self, X: RowsLike) -> Array:
        """Return the scores minus the threshold; outliers are negative."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: RowsLike) -> Array:
        """Return 1 for each usual row, and -1 for each outlier."""
        usual = self.decision_function(X) >= 0
        usual = array_ops.astype(usual, array_ops.namespace(usual).int64)
        return array_ops.look_up(np.array([-1, 1]), usual)


def _weighted_quantile(scores: np.ndarray, weights: Array | None, share: float) -> float:
    """Return the score below which this share of the weight lies."""
    host = np.ones(len(scores)) if weights is None else array_ops.host_float64(weights)
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(host[order])
    below = np.searchsorted(mass, share * mass[-1] * (1 + 1e-12), side="right")  # of that weight
    return float(scores[order][min(below, len(order) - 1)])
