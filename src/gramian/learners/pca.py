"""Kernel principal component analysis on the exact kernel matrix."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian import _arrays, _linalg, _settings
from gramian._arrays import Array
from gramian._checks import choice, not_negative, positive_integer
from gramian._estimators import all_or_nothing, generator
from gramian._threads import one_blas_thread
from gramian.approximations import Approximation, Nystroem
from gramian.factors import Factors
from gramian.gram import Gram
from gramian.kernels import RBF, Kernel
from gramian.learners.base import KernelLearner
from gramian.learners.ridge import KernelRidge
from gramian.rows import Rows

__all__ = ["KernelPCA"]

# Eigenvalues, eigenvectors, what new rows are multiplied with, what is then taken off, the trace.
_Components = tuple[np.ndarray, Array, Array, Array, float]


def _has_pre_images(pca: KernelPCA) -> bool:
    if not pca.fit_inverse_transform:
        raise AttributeError(
            "inverse_transform needs pre-images that are learned by fit: set "
            "fit_inverse_transform=True."
        )
    return True


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelLearner):
    """Principal components in the space of a kernel.

    The kernel matrix is centred. It is used exactly while it is small (some six thousand rows).
    Beyond, a bare kernel stands for its Nyström approximation with √n·log n landmarks, or ten for
    each component if those are more. ``Exact(kernel)`` asks for the exact matrix at any size; it is
    then not stored, and the leading components come from a block Krylov method.

    Parameters
    ----------
    n_components : int or None, default=2
        None: all components with an eigenvalue above 0, which needs the whole matrix.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
    solver : {"auto", "direct", "iterative"}, default="auto"
        For the exact matrix, which the latter two ask for: decompose it, or iterate.
    tol : float, default=1e-9
        The iteration stops when each residual is at most this part of the largest eigenvalue.
    max_iter : int, default=50
        Passes over the kernel matrix at most.
    fit_inverse_transform : bool, default=False
        Learn pre-images: a kernel ridge regression from the components back to the rows.
    alpha : float, default=1e-3
        The penalty of that regression.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Of the centred kernel matrix, falling.
    eigenvectors_ : array of shape (n, n_components)
        The entry largest in size of each is positive.
    explained_variance_ratio_ : array of shape (n_components,)
        The part of the trace of the centred matrix that each component holds.
    kernel_ : Kernel
        The kernel in use, its parameters worked out.
    approximation_ : Approximation or None
        The approximation in use.
    points_ : Rows or None
        The training rows, which ``transform`` needs where K is exact.
    n_iter_ : int
        Passes over the kernel matrix; 1 where it was decomposed whole.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import RBF, KernelPCA
    >>> X = load_iris().data
    >>> pca = KernelPCA(2, kernel=RBF(gamma=0.1)).fit(X)
    >>> pca.transform(X).shape
    (150, 2)
    >>> pca.explained_variance_ratio_.round(2)
    array([0.68, 0.18])
    """

    def __init__(
        self,
        n_components: int | None = 2,
        kernel: Any = "rbf",
        *,
        solver: str = "auto",
        tol: float = 1e-9,
        max_iter: int = 50,
        fit_inverse_transform: bool = False,
        alpha: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_inverse_transform = fit_inverse_transform
        self.alpha = alpha
        self.random_state = random_state

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        k = int(self.n_components or 0)
        return Nystroem(kernel, min(n, max(int(n**0.5 * np.log(n)), 10 * k)))

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Find the principal components of the rows of X."""
        rng = generator(self.random_state)
        matrix, rows, _ = self._training(X, rng, y=y)
        xp = rows.xp
        k = matrix.rank if isinstance(matrix, Factors) else matrix.shape[0]
        if self.n_components is not None:
            k = min(positive_integer(self, "n_components", self.n_components), k)
        if isinstance(matrix, Factors):
            values, vectors, projection, offset, trace = _fit_factors(matrix.persist(), k)
            self.n_iter_ = 1
        else:
            values, vectors, projection, offset, trace = self._fit_exact(matrix, k, rng)
        if self.n_components is None:
            k = int(np.count_nonzero(values))
            values, vectors = values[:k], vectors[:, :k]
            projection, offset = projection[:, :k], offset[:k]
        signs = _signs(vectors)
        self.eigenvalues_ = _arrays.like(values, vectors, xp.float64)
        self.eigenvectors_ = vectors * signs
        self.explained_variance_ratio_ = self.eigenvalues_ / (trace if trace > 0 else 1.0)
        self._projection, self._offset = projection * signs, offset * signs
        self._n_features_out = k
        self._score_dtype = matrix.dtype if isinstance(matrix, Factors) else rows.dtype
        self._pre_images = self._learn_inverse(rows) if self.fit_inverse_transform else None
        return self

    def _fit_exact(self, gram: Gram, k: int, rng: np.random.Generator) -> _Components:
        xp, n = gram.rows.xp, gram.shape[0]
        gram = gram.persist()
        ones = _arrays.like(np.ones((n, 1)), gram.diag(), xp.float64)
        means = gram.matmul(ones)[:, 0] / n
        if self._directly(gram, k):
            values, vectors = _decompose(gram, means, k)
            self.n_iter_ = 1
        else:
            values, vectors = self._iterate(gram, k, rng)
        values = np.where(values > _linalg.cutoff(values, n, gram.dtype), values, 0.0)
        # A new row's score is k(x, ·) A less the same of the mean row: A's columns sum to 0.
        projection = vectors * _arrays.like(_inverse_roots(values), vectors)
        trace = gram.trace() - float(xp.sum(means))
        return values, vectors, projection, means @ projection, trace

    def transform(self, X: Any) -> Array:
        """The components of the rows of X."""
        check_is_fitted(self, "eigenvalues_")
        new = self._new_rows(X, self._projection)
        return _arrays.astype(new.product - self._offset, new.dtype)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, then the components of the training rows."""
        self.fit(X)
        return _arrays.astype(self._training_scores(), self._score_dtype)

    _pre_images: Any

    @available_if(_has_pre_images)
    def inverse_transform(self, X: Any) -> Array:
        """Rows whose components are near those given: approximate pre-images."""
        check_is_fitted(self, "eigenvalues_")
        return self._pre_images.predict(X)

    def _training_scores(self) -> Array:
        xp = _arrays.namespace(self.eigenvectors_)
        return self.eigenvectors_ * xp.sqrt(self.eigenvalues_)

    def _directly(self, gram: Gram, k: int) -> bool:
        solver = choice(self, "solver", self.solver, ("auto", "direct", "iterative"))
        if self.n_components is None and solver == "iterative":
            raise ValueError(
                "n_components=None, all components, needs the whole matrix: give a number of "
                "components, or solver='direct'."
            )
        few = self.n_components is not None and k <= gram.shape[0] // 20
        return solver == "direct" or (solver == "auto" and not few)

    @one_blas_thread()
    def _iterate(self, gram: Gram, k: int, rng: np.random.Generator) -> tuple[np.ndarray, Array]:
        xp, n = gram.rows.xp, gram.shape[0]

        def centred(V: Array) -> Array:
            V = V - xp.mean(V, axis=0)
            image = _arrays.astype(gram.matmul(V), xp.float64)
            return image - xp.mean(image, axis=0)

        width = min(n, k + max(8, k // 4))
        start = _arrays.like(rng.standard_normal((n, width)), gram.diag(), xp.float64)
        # The basis and its image are kept: two matrices of n by (width times passes).
        room = _settings.memory_budget() // 2 // (2 * 8 * n * width)
        passes = max(2, min(positive_integer(self, "max_iter", self.max_iter), room))
        tol = max(not_negative(self, "tol", self.tol), 50 * _arrays.eps(gram.dtype))
        values, vectors, met, self.n_iter_ = _linalg.top_eigenpairs(
            centred, start - xp.mean(start, axis=0), k, tol=tol, max_passes=passes
        )
        if not met:
            warnings.warn(
                f"Kernel PCA stopped after {passes} passes before its components were accurate to "
                f"tol={tol:.1e}. Raise max_iter, tol or the memory budget.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return values, vectors

    def _learn_inverse(self, rows: Rows) -> KernelRidge:
        if self.kernel_.is_matrix or rows.are_objects:
            got = "objects" if rows.are_objects else "a precomputed matrix"
            raise ValueError(f"fit_inverse_transform=True needs rows to go back to; got {got}.")
        size = rows.shape[0] * rows.shape[1] * _arrays.itemsize(rows.dtype)
        _settings.check_fits(size, "pre-images in dense form", "Set fit_inverse_transform=False")
        ridge = KernelRidge(self.alpha, kernel=RBF("median"), random_state=0)
        return ridge.fit(self._training_scores(), _arrays.dense(rows.collect()))


def _decompose(gram: Gram, means: Array, k: int) -> tuple[np.ndarray, Array]:
    """The k largest eigenpairs of the centred matrix, from the whole of it."""
    xp, n = gram.rows.xp, gram.shape[0]
    K = _arrays.astype(gram.dense(), xp.float64)
    K = K - means[:, None]
    K -= means
    K += float(xp.mean(means))
    if not _arrays.is_foreign(K):  # LAPACK can stop at the k that are wanted
        values, vectors = scipy.linalg.eigh(
            K, subset_by_index=[n - k, n - 1], overwrite_a=True, check_finite=False
        )
        return values[::-1], vectors[:, ::-1]
    values, vectors = xp.linalg.eigh(K)
    return _arrays.to_numpy(values)[::-1][:k], xp.flip(vectors, axis=1)[:, :k]


def _fit_factors(factors: Factors, k: int) -> _Components:
    """From the centred ZᵀZ and the core: the eigenvalues of the centred K̃ that are not 0."""
    n, xp = factors.shape[0], factors.xp
    ones = _arrays.like(np.ones((n, 1)), factors.parts[0].example(), xp.float64)
    blocks, sums = factors.normal_equations(ones)
    mean = sums[:, 0] / n
    inner = scipy.linalg.block_diag(*blocks) - n * np.outer(mean, mean)
    core = None if factors.core is None else factors.core.dense()
    values, P = _linalg.spectrum(inner, core)
    trace = float(values.sum())
    values, P = values[:k], P[:, :k]
    values = np.where(values > _linalg.cutoff(values, len(inner)), values, 0.0)
    projection = _arrays.like(np.ascontiguousarray(P), ones, xp.float64)
    offset = _arrays.like(mean, ones, xp.float64) @ projection
    scores = factors.features_matmul(projection) - offset
    vectors = scores * _arrays.like(_inverse_roots(values), scores)
    return values, vectors, projection, offset, trace


def _inverse_roots(values: np.ndarray) -> np.ndarray:
    """1 / sqrt(values), and 0 where a value is 0."""
    return np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)


def _signs(vectors: Array) -> Array:
    """For each column, the sign of its entry largest in size."""
    xp = _arrays.namespace(vectors)
    largest = xp.argmax(xp.abs(vectors), axis=0)
    signs = xp.sign(xp.take_along_axis(vectors, largest[None, :], axis=0)[0, :])
    return xp.where(signs == 0, xp.ones_like(signs), signs)
