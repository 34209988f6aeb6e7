"""Classification with a loss: logistic regression and support vector machines."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel
from gramian.learners.labels import (
    MOST_ENCODED,
    class_labels,
    class_of,
    codes,
    two_or_more,
    weighted_by_class,
)
from gramian.learners.losses.base import LossLearner
from gramian.learners.losses.classification import Hinge, Logistic, Multinomial, SquaredHinge
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.problem import LossProblem
from gramian.learners.scoring import Classifier

MOST_HINGES = 4_000_000  # rows times classes, if the classes are many: minutes on two cores


class _Classifier(Classifier, LossLearner):
    """Labels as class numbers, which the losses expect."""

    class_weight: dict | Literal["balanced"] | None

    @all_or_nothing
    def fit(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit to the rows X and class labels y of shape (n,)."""
        self._check_parameters()
        rng = generator(self.random_state)
        labels = class_labels(self, y)
        self.classes_ = two_or_more(self, array_ops.unique(labels))
        self._check_classes(labels.shape[0])
        problem = self._problem(X, rng, sample_weight, codes(y))
        check_consistent_length(problem.rows, labels)
        problem = replace(problem, weights=weighted_by_class(self, problem, labels))
        numbers = _numbers(labels, self.classes_)
        mean = self._shares(numbers, problem)
        numbers = problem.rows.place.align(numbers, problem.rows.xp.float64)[:, None]
        self._keep(self._solved(replace(problem, y=numbers, start=problem.loss.start(mean))))
        return self

    def _check_classes(self, n: int) -> None:
        """Raise an error if n rows of these classes would take hours."""

    def _shares(self, numbers: Array, problem: LossProblem) -> np.ndarray:
        """Return the share of each class in the weight; a class without any has a little."""
        weights = None if problem.weights is None else array_ops.to_numpy(problem.weights)
        count = len(self.classes_)
        mass = np.bincount(array_ops.to_numpy(numbers), weights=weights, minlength=count)
        two_or_more(self, self.classes_[mass > 0])
        mass = np.maximum(mass, 1e-6 * mass.max())
        return mass / mass.sum()

    def decision_function(self, X: RowsLike) -> Array:
        """Return scores (n, n_classes); for two classes (n,), positive for the second class."""
        return self._outputs(X, _flat)

    def predict(self, X: RowsLike) -> Array:
        """Predict the class of each row of X."""
        return class_of(self.decision_function(X), self.classes_)


class KernelLogisticRegression(_Classifier):
    """Logistic regression in feature space, with probabilities for any number of classes.

    It minimises Σ w log loss + ½ alpha ‖f‖², with the softmax of one function per class, or a
    single function for two classes. The penalty ``alpha`` is 1/C of scikit-learn's
    LogisticRegression; the intercept is not penalised. A plain kernel is exact up to about six
    thousand rows. Beyond, it is replaced by its Nyström approximation with √n·log n landmarks.
    There is no ``partial_fit``: each step needs all rows.

    Parameters
    ----------
    alpha : float, "loo" or tuple, default=1.0
        The penalty: a positive number. "loo" chooses it by the approximate leave-one-out error: one
        Newton step from the minimum for each of up to 2000 rows. It tries alphas from large to
        small, each from the minimum of the one before, until the error has risen twice. To choose
        from your own values, pass ``("loo", [0.1, 1.0, 10.0])``.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" gives more weight to rare classes.
    fit_intercept : bool, default=True
        Whether f has an intercept.
    tol : float, default=1e-6
        The accuracy of the objective, relative to its minimum.
    max_iter : int, default=100
        The largest number of steps, of Newton's method or of a quasi-Newton method.
    random_state : int, Generator or None, default=None
        Draws landmarks, the rows of a preconditioner, and the rows that determine kernel parameters
        such as gamma="median".

    Attributes
    ----------
    classes_ : array
        The class labels, sorted.
    dual_coef_ : array of shape (n, n_classes), or (n, 1) for two classes
        The coefficients a of f(x) = Σ k(x, x_i) a_i + b, if K is exact.
    coef_ : array of shape (r, n_classes), or (r, 1) for two classes
        The coefficients of the r features, if K is approximated.
    intercept_ : array of shape (n_classes,) or (1,)
        The intercepts b.
    objective_ : array
        The objective at the minimum that was found, for each function that is fitted by itself.
    accuracy_ : float
        What is left to gain, at most, relative to the objective.
    alpha_ : float
        The penalty in use.
    path_ : AlphaPath or None
        If alpha was chosen: the ``alphas`` tried, and their ``errors``, the mean loss of left-out
        rows.
    n_iter_ : int
        The number of steps.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.
    approximation_ : Approximation or None
        The approximation in use.
    points_ : Rows or None
        The training rows, which predictions need if K is exact.

    See Also
    --------
    KernelSVC : margins in place of probabilities.
    KernelRidgeClassifier : squares: faster, without probabilities.

    References
    ----------
    - J. Zhu and T. Hastie, Kernel logistic regression and the import vector machine, JCGS 14, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(0.1).fit(X, y)
    >>> model.predict_proba(X[:2]).round(2)
    array([[0.99, 0.01, 0.  ],
           [0.99, 0.01, 0.  ]])
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        alpha: float | tuple | Literal["loo"] = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        class_weight: dict | Literal["balanced"] | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _loss(self, n_targets: int) -> Loss:
        return Logistic() if n_targets <= 2 else Multinomial(n_targets)

    def predict_proba(self, X: RowsLike) -> Array:
        """Return the probability of each class, shape (n, n_classes)."""
        return self._outputs(X, self._probabilities)

    def predict_log_proba(self, X: RowsLike) -> Array:
        """Return the logarithm of the probability of each class, shape (n, n_classes)."""
        p = self.predict_proba(X)
        return array_ops.namespace(p).log(p)

    def _probabilities(self, f: Array) -> Array:
        loss = self._loss(len(self.classes_))
        if loss.coupled:
            return loss.inverse_link(f)
        xp = array_ops.namespace(f)
        return xp.concat((loss.inverse_link(-f), loss.inverse_link(f)), axis=1)


class KernelSVC(_Classifier):
    """Support vector classification, one class against the rest.

    It minimises Σ w max(0, 1 - s f) + ½ alpha ‖f‖² for each class, with s = 1 for its rows and -1
    for the others; ``alpha`` is 1/C of scikit-learn's SVC. Steps end when the duality gap
    of the hinge is within ``tol``. For probabilities, use
    :class:`KernelLogisticRegression`. There is no ``partial_fit``: each step needs all rows.

    Parameters
    ----------
    alpha, kernel, class_weight, fit_intercept, max_iter, random_state
        As in :class:`KernelLogisticRegression`.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The hinge, as in SVC, or its square, as in LinearSVC, which takes fewer steps.
    tol : float, default=1e-4
        The accuracy of the objective, relative to its minimum.

    Attributes
    ----------
    classes_, dual_coef_, coef_, intercept_, objective_, accuracy_, alpha_, path_, n_iter_, \
kernel_, approximation_, points_
        As in :class:`KernelLogisticRegression`. ``objective_`` is that of the hinge itself, and
        ``accuracy_`` includes the duality gap.

    See Also
    --------
    KernelLogisticRegression : probabilities.
    KernelSVR : the same margin for regression.

    References
    ----------
    - C. Cortes and V. Vapnik, Support-vector networks, Machine Learning 20, 1995.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelSVC(0.1).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        alpha: float | tuple | Literal["loo"] = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        loss: str = "hinge",
        class_weight: dict | Literal["balanced"] | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.loss = loss
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _loss(self, n_targets: int) -> Loss:
        made = {"hinge": Hinge, "squared_hinge": SquaredHinge}
        name = choice(self, "loss", self.loss, tuple(made))
        return made[name](n_targets if n_targets > 2 else 1)

    def _check_classes(self, n: int) -> None:
        count = len(self.classes_)
        if self.loss == "hinge" and count > MOST_ENCODED and n * count > MOST_HINGES:
            raise ValueError(
                f"KernelSVC(loss='hinge') solves a problem of all rows for each class, and {count} "
                f"classes of {n} rows are too many to end soon. Use KernelLogisticRegression or "
                "loss='squared_hinge', which share passes over the rows between the classes."
            )


def _flat(f: Array) -> Array:
    return f[:, 0] if f.shape[1] == 1 else f


def _numbers(labels: Array, classes: np.ndarray) -> Array:
    """Return the class number of each label (n,), lazily if the labels are lazy."""
    find = partial(np.searchsorted, classes)
    if array_ops.is_lazy(labels):
        return labels.map_blocks(find, dtype=np.intp)
    return find(labels)
