"""Kernel ridge regression and classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import assert_all_finite, compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.wording import shown
from gramian.estimators.base import all_or_nothing, generator
from gramian.learners.base import as_targets, check_target, missing_target
from gramian.learners.ridge.base import RidgeLearner
from gramian.learners.ridge.systems import System
from gramian.rows import Rows
from gramian.rows.reading import as_labels

__all__ = ["KernelRidge", "KernelRidgeClassifier"]


class KernelRidge(RegressorMixin, MultiOutputMixin, RidgeLearner):
    """Kernel ridge regression: least squares in the space of the kernel, with a penalty.

    While the kernel matrix is small (some six thousand rows) it is factorised. Beyond, a bare
    kernel stands for its Nyström approximation with √n·log n landmarks. ``Exact(kernel)`` asks for
    the exact solution at any size: by conjugate gradients with a pivoted Cholesky preconditioner,
    with a matrix that is never stored.

    Parameters
    ----------
    alpha : float, array of shape (n_targets,), "loo", "gcv" or tuple, default=1.0
        The penalty, positive; one number, or one for each target. "loo" chooses it, for each
        target, by the error of leaving out one row at a time (a row of weight 2 with all its
        weight), "gcv" by generalised cross-validation, both from one decomposition; over a grid
        that falls from the largest eigenvalue of the matrix by ten orders (six for float32), or
        over the numbers given as ``("loo", [0.1, 1.0, 10.0])``.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
    solver : {"auto", "direct", "iterative"}, default="auto"
        How the linear system is solved. Of the exact matrix: factorise it, or iterate without
        storing it; a bare kernel is used exactly where one of the two is asked for. Of an
        approximation: factorise the matrix of its features' inner products, or do without that
        matrix, in passes over the rows (FALKON), which keep kernel values of as many rows as fit
        the memory budget and compute the others anew. "auto" takes what should cost less.
    tol : float, default=1e-6
        The relative residual at which the iteration stops.
    max_iter : int, default=500
    validation_fraction : float, optional
        Iterate, and hold out this part of the rows, drawn at random, to tell when to stop: after
        five iterations without a smaller error on them. The coefficients are those of the least
        error.
    random_state : int, Generator or None, default=None
        Draws the preconditioner's pivots or rows, the rows held out, and the rows on which rules
        such as "median" look.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, n_targets)
        The coefficients a of f(x) = Σ k(x, x_i) a_i, where K is exact.
    coef_ : array of shape (r,) or (r, n_targets)
        The coefficients of the r features, where K is approximated.
    alpha_ : float or array of shape (n_targets,)
        The penalty in use, for each target where y has two dimensions.
    path_ : AlphaPath or None
        Where alpha was chosen: the ``alphas`` that were tried, and the ``errors``, mean squares, of
        shape (n_alphas,) or (n_alphas, n_targets).
    kernel_ : Kernel
        The kernel in use, its parameters worked out.
    approximation_ : Approximation or None
        The approximation in use.
    points_ : Rows or None
        The training rows, which predictions need where K is exact.
    n_iter_ : int
        Iterations taken; 1 where a matrix was factorised.
    residuals_ : array of shape (n_iter_,)
        The largest relative residual after each iteration; empty where a matrix was factorised.
    validation_errors_ : array of shape (n_iter_,) or None
        The mean squared error on the rows held out, after each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel=RBF(gamma=1.0)).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])

    A penalty that suits the noise:

    >>> noisy = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(50)
    >>> model = KernelRidge(alpha=("loo", [1e-6, 1e-3, 1.0]), kernel=RBF(gamma=1.0)).fit(X, noisy)
    >>> model.alpha_
    1.0
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        kernel: Any = "rbf",
        *,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit to rows X and targets y of shape (n,) or (n, n_targets)."""
        self._check_parameters()
        rng = generator(self.random_state)
        check_target(self, y)
        system = self._problem(X, rng, sample_weight, y)
        Y = as_targets(self, y, system.rows)
        system = self._with_targets(system, Y[:, None] if Y.ndim == 1 else Y)
        system = self._holding_out(system)
        self._keep(self._choose(system).solve(system), system)
        self._flatten(Y)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Add a batch of rows to those of earlier calls, which need not be kept.

        The result is that of ``fit`` on all rows, with an approximation that is fitted on the first
        batch, or was fitted before it was passed as ``kernel``. A bare kernel stands for its
        Nyström approximation with √n·log n landmarks for a first batch of n rows. Of the rows, only
        the inner products of their features are kept, and ``alpha="gcv"`` needs no more. After a
        ``fit``, which keeps no such products, the first call begins anew. ``solver`` is for
        ``fit`` alone.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import RBF, KernelRidge, Nystroem
        >>> X = np.random.default_rng(0).uniform(0, 6, (500, 1))
        >>> model = KernelRidge(1e-3, kernel=Nystroem(RBF(1.0), 30, random_state=0))
        >>> for start in range(0, 500, 100):
        ...     batch = X[start : start + 100]
        ...     model = model.partial_fit(batch, np.sin(batch[:, 0]))
        >>> model.predict([[np.pi / 2]]).round(2)
        array([1.])
        """
        rng = generator(self.random_state)
        check_target(self, y)
        first = "_sums" not in vars(self)
        batch = self._batch(X, rng, first=first, sample_weight=sample_weight, y=y)
        Y = as_targets(self, y, batch.rows)
        self._add(self._with_targets(batch, Y[:, None] if Y.ndim == 1 else Y))
        self._flatten(Y)
        return self

    def _flatten(self, Y: Array) -> None:
        """One-dimensional targets have one-dimensional coefficients, and one alpha."""
        if Y.ndim == 1:
            name = "dual_coef_" if self.approximation_ is None else "coef_"
            setattr(self, name, getattr(self, name)[:, 0])
            self._keep_one()

    def predict(self, X: Any) -> Array:
        """f(x) for each row of X."""
        return self._values(X)


def _weights_are_known(model: Any) -> bool:
    if model.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all rows at once; for partial_fit, give the weights of "
            "the classes, as {label: weight}."
        )
    return True


class KernelRidgeClassifier(ClassifierMixin, RidgeLearner):
    """Classification by kernel ridge regression on targets of -1 and 1, one for each class.

    Parameters
    ----------
    alpha, kernel, solver, tol, max_iter, validation_fraction, random_state
        As in :class:`KernelRidge`; alpha may be one number for each class. "loo" and "gcv" choose
        one for all classes, by the error of the targets -1 and 1.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" counts rare classes more.

    Attributes
    ----------
    classes_ : array
        The class labels, sorted.
    dual_coef_ or coef_ : array
        As in :class:`KernelRidge`, with one column for each class, or one for two classes.
    alpha_ : float, or array where one was given for each class
    kernel_, approximation_, points_, path_, n_iter_, residuals_, validation_errors_
        As in :class:`KernelRidge`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelRidgeClassifier(alpha="loo").fit(X, y).score(X, y) > 0.95
    True
    """

    _one_alpha = True

    def __init__(
        self,
        alpha: Any = 1.0,
        kernel: Any = "rbf",
        *,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeClassifier:
        """Fit to rows X and class labels y."""
        self._check_parameters()
        rng = generator(self.random_state)
        system = self._problem(X, rng, sample_weight, _codes(y))
        labels = _class_labels(self, y)
        self.classes_ = _two_or_more(self, array_ops.unique(labels))
        system = self._weighted_by_class(system, labels)
        system = self._with_targets(system, self._targets(labels, system.rows))
        system = self._holding_out(system)
        self._keep(self._choose(system).solve(system), system)
        return self

    @available_if(_weights_are_known)
    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> KernelRidgeClassifier:
        """Add a batch of rows: see :meth:`KernelRidge.partial_fit`.

        The first call needs all ``classes``, since its rows may be of some of them only. There is
        no ``partial_fit`` with ``class_weight="balanced"``, which would need all rows at once.
        """
        rng = generator(self.random_state)
        labels = _class_labels(self, y)
        known = self._all_classes(classes)
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            raise ValueError(
                f"y has labels that are not among the classes {_listed(known)}: {_listed(unknown)}."
            )
        first = "_sums" not in vars(self)
        batch = self._batch(X, rng, first=first, sample_weight=sample_weight, y=_codes(y))
        self.classes_ = known
        batch = self._weighted_by_class(batch, labels)
        self._add(self._with_targets(batch, self._targets(labels, batch.rows)))
        return self

    def _all_classes(self, given: Any) -> np.ndarray:
        """The classes of all batches: given with the first, and with others only if the same."""
        known: Any = getattr(self, "classes_", None)
        if given is None:
            if known is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return known
        classes = _two_or_more(self, np.unique(array_ops.to_numpy(given)))
        if "_sums" in self.__dict__ and not np.array_equal(classes, known):
            raise ValueError(
                f"classes {_listed(classes)} are not those of the first call: {_listed(known)}."
            )
        return classes

    def _targets(self, labels: Array, rows: Rows) -> Array:
        """1 in the column of a row's class, -1 elsewhere; one column for two classes."""
        members = labels[:, None] == self.classes_  # lazy if the labels are
        targets = array_ops.namespace(labels).where(members, 1.0, -1.0)
        targets = targets if len(self.classes_) > 2 else targets[:, 1:]
        return as_targets(self, targets, rows)

    def _weighted_by_class(self, system: System, labels: Array) -> System:
        if self.class_weight is None:
            return system
        given, labels = system.weights, array_ops.to_numpy(labels)
        own = np.ones(len(labels)) if given is None else array_ops.to_numpy(given)
        weights = own * self._weights_by_class(labels, own)
        rows = system.rows
        return replace(system, weights=rows.place.align(weights, rows.xp.float64))

    def _weights_by_class(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The class weight of each row; a row of weight 2 counts as two in "balanced"."""
        if self.class_weight != "balanced":
            return compute_sample_weight(self.class_weight, labels)
        codes = np.unique(labels, return_inverse=True)[1]
        mass = np.bincount(codes, weights=weights)
        return (weights.sum() / (np.count_nonzero(mass) * np.maximum(mass, 1e-300)))[codes]

    def decision_function(self, X: Any) -> Array:
        """Scores: one for each class, or for two classes one that is positive for the second."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        scores = self.decision_function(X)
        xp = array_ops.namespace(scores)
        if scores.ndim == 1:
            return array_ops.look_up(self.classes_, array_ops.astype(scores > 0, xp.int64))
        return array_ops.look_up(self.classes_, xp.argmax(scores, axis=1))


def _two_or_more(owner: Any, classes: np.ndarray) -> np.ndarray:
    if len(classes) < 2:
        raise ValueError(
            f"{type(owner).__name__} needs rows of at least 2 classes; y holds only one class: "
            f"{_listed(classes)}."
        )
    return classes


def _listed(labels: np.ndarray) -> str:
    return ", ".join(map(shown, labels))


def _class_labels(owner: Any, y: Any) -> Array:
    if y is None:
        missing_target(owner)
    labels = as_labels(y)
    if array_ops.is_foreign(labels):
        return labels
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def _codes(y: Any) -> Any:
    """Class labels as one column for each class, for samplers that look at the target."""
    if y is None:
        return None
    labels = np.unique(array_ops.to_numpy(y), return_inverse=True)[1].ravel()
    return (labels[:, None] == np.unique(labels)).astype(np.float64)
