"""Kernel ridge regression and classification."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any, NoReturn

import numpy as np
import scipy.linalg
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from gramian import _arrays, _linalg, _settings
from gramian._arrays import Array
from gramian._checks import choice, is_real, not_negative, positive_integer
from gramian._estimators import all_or_nothing, generator
from gramian._threads import one_blas_thread
from gramian.approximations import Approximation, Nystroem
from gramian.core import BlockCore
from gramian.factors import Factors
from gramian.gram import Gram
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner, Training, as_targets, missing_target
from gramian.samplers.pivoted import pivoted_cholesky

__all__ = ["KernelRidge", "KernelRidgeClassifier"]


LARGE_CORE = 4000  # beyond this many columns of Z, a system with links is solved by iteration


class _RidgeSolver(KernelLearner):
    """The linear system (K + alpha I) a = y, and f(x) = Σ k(x, x_i) a_i."""

    def __init__(
        self,
        alpha: Any = 1.0,
        kernel: Any = "rbf",
        *,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        return Nystroem(kernel, int(n**0.5 * np.log(n)))

    def _solve(self, training: Training, Y: Array, rng: np.random.Generator) -> Array:
        """The coefficients for the columns of Y, in float64."""
        alphas = self._alphas(Y.shape[1])
        solver = choice(self, "solver", self.solver, ("auto", "direct", "iterative"))
        gram, weights = training.matrix, training.weights
        if isinstance(gram, Factors):
            return self._solve_factors(gram, Y, alphas, weights)
        root = None if weights is None else gram.rows.xp.sqrt(weights)[:, None]
        # Rows are weighted through W^½ (K + ...) W^½, which stays symmetric.
        B = Y if root is None else Y * root
        if solver == "direct" or (solver == "auto" and gram.fits()):
            # OpenBLAS's threaded Cholesky crashes on larger matrices than this (its issue 2562).
            with one_blas_thread() if gram.shape[0] > 10_000 else nullcontext():
                dual, iterations = _direct(gram, B, alphas, root), 1
        else:
            dual, iterations = self._iterative(gram, B, alphas, root, rng)
        self.n_iter_ = iterations
        return dual if root is None else dual * root

    def _solve_factors(
        self, factors: Factors, Y: Array, alphas: np.ndarray, weights: Array | None
    ) -> Array:
        blocks, right = factors.normal_equations(Y, weights)
        if factors.core is None or factors.rank <= LARGE_CORE:
            self.n_iter_ = 1
            return _arrays.like(_small_system(blocks, right, factors.core, alphas), Y)
        tol, max_iter = self._stopping(factors.dtype)
        theta, self.n_iter_, left = _large_system(
            blocks, right, factors.core, alphas, tol, max_iter
        )
        self._warn_if_above(left, tol)
        return _arrays.like(theta, Y)

    def _stopping(self, dtype: Any) -> tuple[float, int]:
        """Tolerance, no finer than the data's own precision can carry, and most iterations."""
        tol = max(not_negative(self, "tol", self.tol), 50 * _arrays.eps(dtype))
        return tol, positive_integer(self, "max_iter", self.max_iter)

    def _warn_if_above(self, left: float, tol: float) -> None:
        if left > tol:
            warnings.warn(
                f"Kernel ridge stopped after {self.max_iter} iterations at a relative residual of "
                f"{left:.1e}; asked for was {tol:.1e}. Raise max_iter, tol or alpha.",
                ConvergenceWarning,
                stacklevel=5,
            )

    @one_blas_thread()
    def _iterative(
        self,
        gram: Gram,
        B: Array,
        alphas: np.ndarray,
        root: Array | None,
        rng: np.random.Generator,
    ) -> tuple[Array, int]:
        """Conjugate gradients on ``gram.matmul``, with a pivoted Cholesky preconditioner."""
        xp, n = gram.rows.xp, gram.shape[0]
        room = _settings.memory_budget() // 4 // (8 * n)
        rank = max(min(int(10 * n**0.5), 2000, room), 1)
        F = pivoted_cholesky(gram, rank, rng, tol=1e-10, dtype=xp.float64).factor
        Q, eigenvalues = _linalg.orthonormal_columns(F if root is None else F * root)
        shift = _arrays.like(alphas, B)
        # (Q Λ Qᵀ + αI)⁻¹ = I/α + Q ((Λ + α)⁻¹ - 1/α) Qᵀ
        middle = 1.0 / (eigenvalues[:, None] + shift) - 1.0 / shift

        def apply(V: Array) -> Array:
            image = gram.matmul(V if root is None else V * root)
            return (image if root is None else image * root) + shift * V

        def precondition(V: Array) -> Array:
            return V / shift + Q @ (middle * (xp.matrix_transpose(Q) @ V))

        tol, max_iter = self._stopping(gram.dtype)
        try:
            dual, iterations, left = _linalg.conjugate_gradients(
                apply, B, precondition, tol=tol, max_iter=max_iter
            )
        except _linalg.NotPositiveDefiniteError as error:
            raise ValueError(
                f"K + alpha I is not positive definite: {gram.kernel!r} is indefinite on these "
                "rows. Use a larger alpha, a positive semi-definite kernel such as RBF, or "
                "solver='direct'."
            ) from error
        self._warn_if_above(left, tol)
        return dual, iterations

    def _alphas(self, n_targets: int) -> np.ndarray:
        alphas = np.atleast_1d(np.asarray(self.alpha))
        if is_real(self.alpha):
            alphas = np.full(n_targets, self.alpha)
        good = alphas.ndim == 1 and alphas.dtype.kind in "iuf"
        if not good or not np.isfinite(alphas).all() or (alphas <= 0).any():
            raise ValueError(
                f"alpha of {type(self).__name__} must be positive, a number or one for each "
                f"target; got {self.alpha!r}."
            )
        if len(alphas) != n_targets:
            raise ValueError(
                f"alpha has {len(alphas)} numbers, but y has {n_targets} target(s): give one for "
                "each, or a single number."
            )
        return alphas.astype(np.float64)

    def _values(self, X: Any) -> Array:
        """K(X, training rows) @ dual_coef_, or the features of X @ coef_."""
        check_is_fitted(self, "n_iter_")
        new = self._new_rows(X, self.dual_coef_ if self.approximation_ is None else self.coef_)
        return _arrays.astype(new.product, new.dtype)

    def _keep(self, coefficients: Array) -> None:
        """As ``dual_coef_`` where K is exact, as ``coef_`` where it is approximated."""
        for name in ("coef_", "dual_coef_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        setattr(self, "dual_coef_" if self.approximation_ is None else "coef_", coefficients)


class KernelRidge(RegressorMixin, MultiOutputMixin, _RidgeSolver):
    """Kernel ridge regression: least squares in the space of the kernel, with a penalty.

    While the kernel matrix is small (some six thousand rows) it is factorised. Beyond, a bare
    kernel stands for its Nyström approximation with √n·log n landmarks. ``Exact(kernel)`` asks for
    the exact solution at any size: by conjugate gradients with a pivoted Cholesky preconditioner,
    with a matrix that is never stored.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        The penalty, positive; one number, or one for each target.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
    solver : {"auto", "direct", "iterative"}, default="auto"
        For the exact matrix, which the latter two ask for: factorise it, or iterate without storing
        it.
    tol : float, default=1e-6
        The relative residual at which the iteration stops.
    max_iter : int, default=500
    random_state : int, Generator or None, default=None
        Draws the preconditioner's pivots and the rows on which rules such as "median" look.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, n_targets)
        The coefficients a of f(x) = Σ k(x, x_i) a_i, where K is exact.
    coef_ : array of shape (r,) or (r, n_targets)
        The coefficients of the r features, where K is approximated.
    kernel_ : Kernel
        The kernel in use, its parameters worked out.
    approximation_ : Approximation or None
        The approximation in use.
    points_ : Rows or None
        The training rows, which predictions need where K is exact.
    n_iter_ : int
        Iterations taken; 1 where the matrix was factorised.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel=RBF(gamma=1.0)).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit to rows X and targets y of shape (n,) or (n, n_targets)."""
        rng = generator(self.random_state)
        if y is None:
            missing_target(self)
        training = self._training(X, rng, sample_weight, y)
        Y = as_targets(self, y, training.rows)
        flat = Y.ndim == 1
        coefficients = self._solve(training, Y[:, None] if flat else Y, rng)
        self._keep(coefficients[:, 0] if flat else coefficients)
        return self

    def predict(self, X: Any) -> Array:
        """f(x) for each row of X."""
        return self._values(X)


class KernelRidgeClassifier(ClassifierMixin, _RidgeSolver):
    """Classification by kernel ridge regression on targets of -1 and 1, one for each class.

    Parameters
    ----------
    alpha, kernel, solver, tol, max_iter, random_state
        As in :class:`KernelRidge`; alpha may be one number for each class.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" counts rare classes more.

    Attributes
    ----------
    classes_ : array
        The class labels, sorted.
    dual_coef_ or coef_ : array
        As in :class:`KernelRidge`, with one column for each class, or one for two classes.
    kernel_, approximation_, points_, n_iter_
        As in :class:`KernelRidge`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelRidgeClassifier(alpha=0.1).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        kernel: Any = "rbf",
        *,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            alpha, kernel, solver=solver, tol=tol, max_iter=max_iter, random_state=random_state
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeClassifier:
        """Fit to rows X and class labels y."""
        rng = generator(self.random_state)
        training = self._training(X, rng, sample_weight, _codes(y))
        labels = _class_labels(self, y)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "KernelRidgeClassifier needs rows of at least 2 classes; y holds only one class: "
                f"{classes[0]!r}."
            )
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        Y = as_targets(self, targets if len(classes) > 2 else targets[:, 1:], training.rows)
        if self.class_weight is not None:
            given = training.weights
            own = np.ones(len(labels)) if given is None else _arrays.to_numpy(given)
            weights = _arrays.like(own * self._weights_by_class(labels, own), Y)
            training = training._replace(weights=weights)
        self._keep(self._solve(training, Y, rng))
        self.classes_ = classes
        return self

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
        host = _arrays.to_numpy(scores)
        chosen = (host > 0).astype(int) if host.ndim == 1 else host.argmax(axis=1)
        labels = self.classes_[chosen]
        # Other array libraries know numbers only.
        return _arrays.like(labels, scores) if labels.dtype.kind in "iuf" else labels


def _class_labels(owner: Any, y: Any) -> np.ndarray:
    if y is None:
        missing_target(owner)
    labels = column_or_1d(_arrays.to_numpy(y), warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def _small_system(
    blocks: list[np.ndarray], right: np.ndarray, core: BlockCore | None, alphas: np.ndarray
) -> np.ndarray:
    """θ with f(x) = z(x)ᵀθ, from one decomposition for every alpha.

    With eigenvalues λ of K̃ and P of :func:`_linalg.spectrum`, θ = P diag(± 1/(λ + alpha)) PᵀZᵀWY,
    with the sign of λ. ``blocks`` are those of ZᵀWZ, ``right`` is ZᵀWY.
    """
    inner = scipy.linalg.block_diag(*blocks)
    values, P = _linalg.spectrum(inner, None if core is None else core.dense())
    shifted = values[:, None] + alphas
    if (shifted <= 0).any():
        _indefinite(f"an eigenvalue of {values[-1]:.2g}")
    return P @ (np.where(values < 0, -1.0, 1.0)[:, None] * (P.T @ right) / shifted)


def _large_system(
    blocks: list[np.ndarray],
    right: np.ndarray,
    core: BlockCore,
    alphas: np.ndarray,
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, int, float]:
    """The same θ by conjugate gradients, for a core too large to be decomposed.

    With Z = Q R in blocks, θ = S Rᵀ u where (R S Rᵀ + alpha I) u = QᵀY. The preconditioner is this
    matrix without the links. Returns θ, the iterations taken and the relative residual.
    """
    roots, inverses = zip(*map(_linalg.root_and_inverse, blocks), strict=True)

    def turned(matrices: Any, V: np.ndarray) -> np.ndarray:
        return _linalg.times_blocks(matrices, V)

    own = [np.linalg.eigh(root @ core.block(s) @ root.T) for s, root in enumerate(roots)]
    values = np.concatenate([np.maximum(each, 0.0) for each, _ in own])[:, None] + alphas
    vectors = [each for _, each in own]

    def apply(U: np.ndarray) -> np.ndarray:
        return turned(roots, core.matmul(turned([r.T for r in roots], U))) + alphas * U

    def precondition(U: np.ndarray) -> np.ndarray:
        return turned(vectors, turned([v.T for v in vectors], U) / values)

    try:
        u, iterations, left = _linalg.conjugate_gradients(
            apply, turned([i.T for i in inverses], right), precondition, tol=tol, max_iter=max_iter
        )
    except _linalg.NotPositiveDefiniteError:
        _indefinite("negative eigenvalues")
    return core.matmul(turned([r.T for r in roots], u)), iterations, left


def _indefinite(what: str) -> NoReturn:
    raise ValueError(
        f"K̃ + alpha I is not positive definite: the approximation has {what}. Use psd='clip', or "
        "a larger alpha."
    )


def _codes(y: Any) -> Any:
    """Class labels as one column for each class, for samplers that look at the target."""
    if y is None:
        return None
    labels = np.unique(_arrays.to_numpy(y), return_inverse=True)[1].ravel()
    return (labels[:, None] == np.unique(labels)).astype(np.float64)


def _direct(gram: Gram, B: Array, alphas: np.ndarray, root: Array | None) -> Array:
    """Factorise K + alpha I once for each different alpha."""
    xp = gram.rows.xp
    K = _arrays.astype(gram.dense(), xp.float64)
    if root is not None:
        K *= root
        K *= xp.matrix_transpose(root)
    diagonal = _arrays.copy(xp.linalg.diagonal(K))
    out = xp.zeros_like(B)
    for alpha in np.unique(alphas):
        where = np.flatnonzero(alphas == alpha)
        A = _arrays.set_diagonal(K, diagonal + float(alpha))
        part = _arrays.solve_symmetric(A, _arrays.take_columns(B, where))
        for i, column in enumerate(where):
            out[:, int(column)] = part[:, i]
    return out
