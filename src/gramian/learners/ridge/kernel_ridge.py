"""Kernel ridge regression and classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel, as_targets, check_target
from gramian.learners.labels import class_labels, codes, listed, two_or_more, weighted_by_class
from gramian.learners.ridge.base import RidgeLearner
from gramian.learners.ridge.systems import System
from gramian.rows import Rows

__all__ = ["KernelRidge", "KernelRidgeClassifier"]


class KernelRidge(RegressorMixin, MultiOutputMixin, RidgeLearner):
    """Kernel ridge regression: least squares in feature space, with an L2 penalty.

    A small kernel matrix (up to about six thousand rows) is factorised. For more rows, a plain
    kernel is replaced by its Nyström approximation with √n·log n landmarks. ``Exact(kernel)`` gives
    the exact solution at any size, by conjugate gradients with a pivoted Cholesky preconditioner,
    without storing the matrix.

    Parameters
    ----------
    alpha : float, array of shape (n_targets,), "loo", "gcv" or tuple, default=1.0
        The penalty: a positive number, or one per target. "loo" chooses it for each target by the
        leave-one-out error (a row of weight 2 is left out with all its weight), "gcv" by
        generalised cross-validation; both need only one decomposition. The grid falls from the
        largest eigenvalue of the matrix by ten orders of magnitude (six for float32). To choose
        from your own values, pass ``("loo", [0.1, 1.0, 10.0])``.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    solver : {"auto", "direct", "iterative"}, default="auto"
        How to solve the linear system. With the exact matrix: factorise it, or iterate without
        storing it; both use a plain kernel exactly. With an approximation: factorise the matrix of
        the features' inner products, or iterate in passes over the rows without that matrix
        (FALKON), which caches the kernel values of as many rows as fit the memory budget and
        recomputes the others. "auto" uses what should cost less.
    tol : float, default=1e-6
        The relative residual at which the iteration stops.
    max_iter : int, default=500
        The largest number of iterations.
    validation_fraction : float, optional
        Iterate, and hold out this fraction of the rows, drawn at random, to stop early: after five
        iterations without a smaller error on them. The coefficients are those with the smallest
        error.
    random_state : int, Generator or None, default=None
        Draws the preconditioner's pivots or rows, the held-out rows, and the rows that determine
        kernel parameters such as gamma="median".

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, n_targets)
        The coefficients a of f(x) = Σ k(x, x_i) a_i, if K is exact.
    coef_ : array of shape (r,) or (r, n_targets)
        The coefficients of the r features, if K is approximated.
    alpha_ : float or array of shape (n_targets,)
        The penalty in use; one per target if y is two-dimensional.
    path_ : AlphaPath or None
        If alpha was chosen: the ``alphas`` tried, and their mean squared ``errors``, shape
        (n_alphas,) or (n_alphas, n_targets).
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.
    approximation_ : Approximation or None
        The approximation in use.
    points_ : Rows or None
        The training rows, which predictions need if K is exact.
    n_iter_ : int
        The number of iterations; 1 if a matrix was factorised.
    residuals_ : array of shape (n_iter_,)
        The largest relative residual after each iteration; empty if a matrix was factorised.
    validation_errors_ : array of shape (n_iter_,) or None
        The mean squared error on the held-out rows after each iteration.

    See Also
    --------
    KernelRidgeClassifier : the same for classes.
    Nystroem : the approximation used for many rows.

    References
    ----------
    - A. Rudi, L. Carratino and L. Rosasco, FALKON: an optimal large scale kernel method, NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel=RBF(gamma=1.0)).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])

    Choose the penalty by the leave-one-out error:

    >>> noisy = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(50)
    >>> model = KernelRidge(alpha=("loo", [1e-3, 1.0, 1e3]), kernel=RBF(gamma=1.0)).fit(X, noisy)
    >>> model.alpha_
    1.0
    """

    def __init__(
        self,
        alpha: float | Array | tuple | Literal["loo", "gcv"] = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> KernelRidge:
        """Fit to the rows X and targets y of shape (n,) or (n, n_targets)."""
        self._check_parameters()
        rng = generator(self.random_state)
        check_target(self, y)
        system = self._problem(X, rng, sample_weight, y)
        Y = as_targets(self, y, system.rows)
        system = self._with_targets(system, Y[:, None] if Y.ndim == 1 else Y)
        system = self._holding_out(system)
        self._solve(system)
        self._flatten(Y)
        return self

    @all_or_nothing
    def partial_fit(self, X: RowsLike, y: Array, sample_weight: Array | None = None) -> KernelRidge:
        """Add a batch of rows to those of earlier calls.

        The result is that of ``fit`` on all rows, with an approximation that is fitted to the first
        batch, or was fitted before it was passed as ``kernel``. A plain kernel is replaced by its
        Nyström approximation with √n·log n landmarks, for a first batch of n rows. Only the inner
        products of the rows' features are stored; ``alpha="gcv"`` needs no more. ``fit`` stores no
        such products, so the first call after it starts again. ``solver`` applies only to ``fit``.

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
        """Make coefficients one-dimensional, and alpha one number, if the targets (n,) are."""
        if Y.ndim == 1:
            name = "dual_coef_" if hasattr(self, "dual_coef_") else "coef_"
            setattr(self, name, getattr(self, name)[:, 0])
            self._keep_one()

    def predict(self, X: RowsLike) -> Array:
        """Predict the targets of the rows of X."""
        return self._values(X)


def _weights_are_known(model: KernelRidgeClassifier) -> bool:
    if model.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all rows at once; for partial_fit, pass the weights of "
            "the classes as {label: weight}."
        )
    return True


class KernelRidgeClassifier(ClassifierMixin, RidgeLearner):
    """Classification by kernel ridge regression, with a target of -1 and 1 for each class.

    Parameters
    ----------
    alpha, kernel, solver, tol, max_iter, validation_fraction, random_state
        As in :class:`KernelRidge`; alpha may have one number per class. "loo" and "gcv" choose one
        alpha for all classes, by the error on the targets -1 and 1.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" gives more weight to rare classes.

    Attributes
    ----------
    classes_ : array
        The class labels, sorted.
    dual_coef_ or coef_ : array
        As in :class:`KernelRidge`, with one column per class, or a single one for two classes.
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
    >>> KernelRidgeClassifier(alpha="loo").fit(X, y).score(X, y) > 0.95
    True
    """

    _one_alpha = True

    def __init__(
        self,
        alpha: float | Array | tuple | Literal["loo", "gcv"] = 1.0,
        kernel: LearnerKernel = "rbf",
        *,
        class_weight: dict | Literal["balanced"] | None = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        random_state: RandomState = None,
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
        system = self._holding_out(system)
        self._solve(system)
        return self

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

    def predict(self, X: RowsLike) -> Array:
        """Predict the class of each row of X."""
        scores = self.decision_function(X)
        xp = array_ops.namespace(scores)
        if scores.ndim == 1:
            return array_ops.look_up(self.classes_, array_ops.astype(scores > 0, xp.int64))
        return array_ops.look_up(self.classes_, xp.argmax(scores, axis=1))
