"""Classification by kernel ridge regression."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from math import ceil
from typing import Any, Literal

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel, as_targets
from gramian.learners.labels import (
    MOST_ENCODED,
    class_labels,
    class_of,
    codes,
    listed,
    two_or_more,
    weighted_by_class,
)
from gramian.learners.ridge.base import RidgeLearner
from gramian.learners.ridge.calibration import Calibration, sampled_rows
from gramian.learners.ridge.systems import System
from gramian.learners.scoring import Classifier
from gramian.rows import ArrayRows, Rows


def _weights_are_known(model: KernelRidgeClassifier) -> bool:
    if model.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all rows at once; for partial_fit, pass the weights of "
            "the classes as {label: weight}."
        )
    return True


def _is_calibrated(model: KernelRidgeClassifier) -> bool:
    if "_calibration" in vars(model) and model._calibration is None:
        raise AttributeError(
            "Probabilities of KernelRidgeClassifier need all rows at once, so they are not "
            "available after partial_fit: use fit."
        )
    return True


class KernelRidgeClassifier(Classifier, RidgeLearner):
    """Classification by kernel ridge regression, with a target of -1 and 1 for each class.

    Probabilities are the softmax of scaled scores. The scale is fitted to the scores that up to
    1000 training rows have if the fit leaves them out, each with all its weight. These follow from
    the factorisation. Iterations on the exact matrix or on links between blocks have none: there,
    the system is solved once more without these rows. For probabilities that are the objective
    itself, use :class:`KernelLogisticRegression`.

    Parameters
    ----------
    alpha, kernel, fit_intercept, solver, tol, max_iter, validation_fraction, random_state
        As in :class:`KernelRidge`; alpha may have one number per class. "loo", the default, and
        "gcv" choose one alpha for all classes, by the error on the targets -1 and 1.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" gives more weight to rare classes.

    Attributes
    ----------
    classes_ : array
        The class labels, sorted.
    dual_coef_ or coef_ : array
        As in :class:`KernelRidge`, with one column per class, or a single one for two classes.
    intercept_ : array of shape (n_classes,) or (1,)
        The intercepts.
    alpha_ : float, or array of shape (n_classes,) if alpha has one number per class
    kernel_, approximation_, points_, path_, n_iter_, residuals_, validation_errors_
        As in :class:`KernelRidge`.

    See Also
    --------
    KernelRidge : the same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelRidgeClassifier().fit(X, y).score(X, y) > 0.95
    True
    """

    _one_alpha = True
    _calibrates = True
    _calibration: Calibration | None

    def __init__(
        self,
        alpha: float | Array | tuple | Literal["loo", "gcv"] = "loo",
        kernel: LearnerKernel = "rbf",
        *,
        class_weight: dict | Literal["balanced"] | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @all_or_nothing
    def fit(
        self, X: RowsLike, y: Array, sample_weight: Array | None = None
    ) -> KernelRidgeClassifier:
        """Fit to the rows X and class labels y of shape (n,)."""
        self._check_parameters()
        rng = generator(self.random_state)
        system = self._problem(X, rng, sample_weight, codes(y))
        labels = class_labels(self, y)
        self.classes_ = two_or_more(self, array_ops.unique(labels))
        system = self._weighted_by_class(system, labels)
        system = self._with_targets(system, self._targets(labels, system.rows))
        self._calibrate(self._holding_out(system))
        return self

    def _advice(self, planned: Any, n_targets: int) -> str:
        if n_targets <= MOST_ENCODED:
            return super()._advice(planned, n_targets)
        return (
            "Targets take a number for each row and class. Use KernelLogisticRegression or "
            "KernelSVC(loss='squared_hinge'), which store none; or partial_fit, with a batch of "
            "rows at a time"
        )

    def _calibrate(self, system: System) -> None:
        """Solve the system, and fit probabilities to the scores of rows that it leaves out."""
        kept = system.weights if system.held_out is None else system.held_out
        numbers = sampled_rows(kept, system.rows.shape[0], system.n_targets)
        system = replace(system, sampled=numbers)
        scores = self._solve(system).left_out
        if scores is None:
            system, scores = self._scores_without(system)
        weights = np.ones(len(scores)) if kept is None else system.of_sample(kept[:, None])[:, 0]
        self._calibration = Calibration.fitted(scores, system.of_sample(system.Y), weights)

    def _scores_without(self, system: System) -> tuple[System, np.ndarray]:
        """Return the scores of rows by a fit without them: those held out, or a fifth at most."""
        model, rows, numbers = self, system.rows, system.sampled
        assert numbers is not None
        if system.held_out is None:
            model, n = copy(self), rows.shape[0]
            numbers = numbers[:: ceil(5 * len(numbers) / n)]
            weights = np.ones(n)
            if system.weights is not None:
                weights = array_ops.host_float64(system.weights)
            weights = np.where(np.isin(np.arange(n), numbers), 0.0, weights)
            training = rows.place.align(weights, rows.xp.float64)
            settled = system.settled(np.full(system.n_targets, self.alpha_))
            model._solve(replace(settled, weights=training, sampled=None))
        scores = model._values(ArrayRows(rows.take(numbers)))
        return replace(system, sampled=numbers), array_ops.host_float64(scores)

    @available_if(_weights_are_known)
    @all_or_nothing
    def partial_fit(
        self,
        X: RowsLike,
        y: Array,
        classes: Array | None = None,
        sample_weight: Array | None = None,
    ) -> KernelRidgeClassifier:
        """Add a batch of rows: see :meth:`KernelRidge.partial_fit`.

        The first call needs all ``classes``, since its rows may not contain all of them.
        ``partial_fit`` is not available with ``class_weight="balanced"``, which needs all rows at
        once.
        """
        rng = generator(self.random_state)
        labels = class_labels(self, y)
        known = self._all_classes(classes)
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            raise ValueError(
                f"y has labels that are not among the classes {listed(known)}: {listed(unknown)}."
            )
        first = "_sums" not in vars(self)
        batch = self._batch(X, rng, first=first, sample_weight=sample_weight, y=codes(y))
        self.classes_ = known
        batch = self._weighted_by_class(batch, labels)
        self._add(self._with_targets(batch, self._targets(labels, batch.rows)))
        self._calibration = None
        return self

    def _all_classes(self, passed: Array | None) -> np.ndarray:
        """Return the classes of all batches: those of the first call, which others may repeat."""
        known: Any = getattr(self, "classes_", None)
        if passed is None:
            if known is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return known
        classes = two_or_more(self, np.unique(array_ops.to_numpy(passed)))
        if "_sums" in self.__dict__ and not np.array_equal(classes, known):
            raise ValueError(
                f"classes {listed(classes)} are not those of the first call: {listed(known)}."
            )
        return classes

    def _targets(self, labels: Array, rows: Rows) -> Array:
        """Return targets (n, n_classes), 1 in the column of a row's class and -1 elsewhere.

        For two classes there is a single column. ``labels`` has shape (n,).
        """
        members = labels[:, None] == self.classes_  # lazy if the labels are
        targets = array_ops.namespace(labels).where(members, 1.0, -1.0)
        targets = targets if len(self.classes_) > 2 else targets[:, 1:]
        return as_targets(self, targets, rows)

    def _weighted_by_class(self, system: System, labels: Array) -> System:
        return replace(system, weights=weighted_by_class(self, system, labels))

    def decision_function(self, X: RowsLike) -> Array:
        """Return scores (n, n_classes); for two classes (n,), positive for the second class."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    @available_if(_is_calibrated)
    def predict_proba(self, X: RowsLike) -> Array:
        """Return the probability of each class, shape (n, n_classes).

        It is not available after ``partial_fit``, whose rows are gone when the next batch changes
        the scores.
        """
        check_is_fitted(self, "n_iter_")
        assert self._calibration is not None
        return self._values(X, self._calibration.probabilities)

    @available_if(_is_calibrated)
    def predict_log_proba(self, X: RowsLike) -> Array:
        """Return the logarithm of the probability of each class, shape (n, n_classes)."""
        p = self.predict_proba(X)
        return array_ops.namespace(p).log(p)

    def predict(self, X: RowsLike) -> Array:
        """Predict the class of each row of X."""
        return class_of(self.decision_function(X), self.classes_)
