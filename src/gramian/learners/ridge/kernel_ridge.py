"""Kernel ridge regression."""

from __future__ import annotations

from typing import Literal

from sklearn.base import MultiOutputMixin

from gramian.backend.array_ops import Array
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.learners.base import LearnerKernel, as_targets, check_target
from gramian.learners.ridge.base import RidgeLearner
from gramian.learners.scoring import Regressor


class KernelRidge(Regressor, MultiOutputMixin, RidgeLearner):
    """Kernel ridge regression: least squares in feature space, with an L2 penalty.

    It minimises Σ w (y - f - b)² + alpha ‖f‖², with f(x) = Σ k(x, x_i) a_i and an intercept b that
    is not penalised: far from the data, predictions of a kernel such as RBF tend to b.

    A small kernel matrix (up to about six thousand rows) is factorised. For more rows, a plain
    kernel is replaced by its Nyström approximation with √n·log n landmarks, or up to twice as many
    if the effective dimension of a sample requires them. ``Exact(kernel)`` gives the exact solution
    at any size: by conjugate gradients with a pivoted Cholesky preconditioner, without storing the
    matrix, or by a Cholesky factor if n / 1000 iterations are not enough and the memory budget
    allows it. On a GPU, up to 30,000 rows are factorised at once, and conjugate gradients keep the
    matrix if the budget allows it.

    Parameters
    ----------
    alpha : float, array of shape (n_targets,), "loo", "gcv" or tuple, default="loo"
        The penalty: a positive number, or one per target. "loo" chooses it for each target by the
        leave-one-out error (a row of weight 2 is left out with all its weight), "gcv" by
        generalised cross-validation. The grid falls from a hundred times the largest eigenvalue of
        the matrix, where f vanishes, by twelve orders of magnitude (eight for float32).

        With an approximation, one decomposition serves all of the grid. On the exact matrix of 300
        rows or more, the same search on a third of the rows shows where to look, and Cholesky
        factors for a few alphas settle it (at most five for several targets together), with errors
        of half of the rows, drawn at random. Where a fit iterates, or its matrix is too large to
        store, a random sample of at most 2,000 rows chooses alpha, with K or its approximation on
        these rows; ``solver="direct"`` asks for all rows. ``partial_fit``, whose earlier rows are
        gone, uses "gcv" in place of "loo".

        To choose from your own values, pass ``("loo", [0.1, 1.0, 10.0])``; all are tried.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    fit_intercept : bool, default=True
        Whether there is an intercept, as in scikit-learn's Ridge. scikit-learn's KernelRidge has
        none.
    solver : {"auto", "direct", "iterative"}, default="auto"
        How to solve the linear system. With the exact matrix: factorise it, or iterate, storing
        it only if it is small or on a GPU; both use a plain kernel exactly. With an approximation:
        factorise the matrix of the features' inner products, or iterate in passes over the rows
        without that matrix (FALKON), which caches the kernel values of as many rows as fit the
        memory budget and recomputes the others. "auto" uses what should cost less.
    tol : float, default=1e-6
        The relative residual at which the iteration stops.
    max_iter : int, default=500
        The largest number of iterations.
    validation_fraction : float, optional
        Iterate, and hold out this fraction of the rows, drawn at random, to stop early: after five
        iterations without a smaller error on them. The coefficients are those with the smallest
        error. Stopping early is a regulariser: conjugate gradients fit large, smooth components
        first and noise last. So a small alpha (1e-6, say) with early stopping can replace the
        choice of alpha, at the cost of one fit and of the rows held out.
    random_state : int, Generator or None, default=None
        Draws the preconditioner's pivots or rows, the held-out rows, and the rows that determine
        kernel parameters such as gamma="median".

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, n_targets)
        The coefficients a of f(x) = Σ k(x, x_i) a_i, if K is exact.
    coef_ : array of shape (r,) or (r, n_targets)
        The coefficients of the r features, if K is approximated.
    intercept_ : float or array of shape (n_targets,)
        The intercept b; 0 if ``fit_intercept=False``.
    alpha_ : float or array of shape (n_targets,)
        The penalty in use; one per target if y is two-dimensional.
    path_ : AlphaPath or None
        If alpha was chosen: the ``alphas`` tried, and their mean squared ``errors`` (of the sample,
        if that chose), shape (n_alphas,) or (n_alphas, n_targets).
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

    By default, the leave-one-out error chooses the penalty:

    >>> noisy = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(50)
    >>> model = KernelRidge(kernel=RBF(gamma=1.0)).fit(X, noisy)
    >>> 0.1 < model.alpha_ < 10
    True
    """

    def __init__(
        self,
        alpha: float | Array | tuple | Literal["loo", "gcv"] = "loo",
        kernel: LearnerKernel = "rbf",
        *,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.fit_intercept = fit_intercept
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
        Nyström approximation, as in ``fit``, with landmarks for the n rows of the first batch. Only
        the inner products of the rows' features are stored. "gcv" needs no more, so it takes the
        place of ``alpha="loo"``, and chooses alpha again in each call. ``fit`` stores no such
        products, so the first call after it starts again. ``solver`` applies only to ``fit``.

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
            self.intercept_ = float(self.intercept_[0])
            self._keep_one()

    def predict(self, X: RowsLike) -> Array:
        """Predict the targets of the rows of X."""
        return self._values(X)
