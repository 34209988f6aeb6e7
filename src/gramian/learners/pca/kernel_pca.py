"""Kernel principal component analysis: exact, on the features of an approximation, on streams."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Nystroem
from gramian.approximations.base import Plan
from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, not_negative, positive, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.base import all_or_nothing, generator
from gramian.kernels import Kernel
from gramian.kernels.tiles import tile_columns
from gramian.learners.base import KernelLearner
from gramian.learners.pca.moments import ROUNDED, SIGN_ROWS, Components, Moments, signs
from gramian.learners.pca.pre_images import OneRow, PreImages, pre_images_memory
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, FeatureRows, Rows

__all__ = ["KernelPCA"]


def _has_pre_images(pca: KernelPCA) -> bool:
    if not pca.fit_inverse_transform:
        raise AttributeError(
            "inverse_transform needs pre-images that are learned by fit: set "
            "fit_inverse_transform=True."
        )
    return True


def _takes_batches(pca: KernelPCA) -> bool:
    if pca.fit_inverse_transform:
        raise AttributeError(
            "fit_inverse_transform=True needs all rows at once: set it to False for partial_fit, "
            "and learn the way back from some rows, as KernelRidge().fit(pca.transform(X), X)."
        )
    if pca.solver != "auto":
        raise AttributeError(
            f"solver={pca.solver!r} is for the exact matrix, which partial_fit does without: leave "
            "it 'auto'."
        )
    return True


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelLearner):
    """Principal components in the space of a kernel.

    The kernel matrix is centred. It is used exactly while it is small (some six thousand rows).
    Beyond, a bare kernel stands for its Nyström approximation with √n landmarks, or ten for each
    component and a hundred more if those are more: enough for the leading components, whatever the
    number of rows. ``Exact(kernel)`` asks for the exact matrix at any size; it is then not stored,
    and the leading components come from a block Krylov method.

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
        Learn pre-images: a kernel ridge regression from the components back to the rows. It is
        exact for some six thousand rows; beyond, it has √n·log n landmarks, at most a thousand, and
        takes one more pass over the rows, which may stay in their files.
    alpha : float, default=1e-3
        The penalty of that regression.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Of the centred kernel matrix, falling.
    eigenvectors_ : array of shape (n, n_components)
        The entry largest in size of each is positive; with an approximation, the largest among
        those of the first thousand rows. There are none after ``partial_fit``, nor with an
        approximation where they would take more than a quarter of the memory budget.
    explained_variance_ : array of shape (n_components,)
        The variance of the rows' scores: eigenvalues_ / (n - 1), as in scikit-learn's ``PCA``.
    explained_variance_ratio_ : array of shape (n_components,)
        The part of the trace of the centred kernel matrix that each component holds; 0 where the
        rows do not vary, as their eigenvalues are, and their scores. With an
        approximation, the trace is that of the kernel itself, so that what the approximation leaves
        out counts as not explained: the sum of k(x, x), less what the mean holds, which K̃ tells.
        Where K̃ is unbiased, such as RandomFourier's, or of a precomputed matrix, it is that of K̃.
    n_samples_seen_ : int
        The number n of rows so far.
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

    Rows that come in batches:

    >>> pca = KernelPCA(2, kernel=RBF(gamma=0.1), random_state=0)
    >>> for batch in (X[::3], X[1::3], X[2::3]):
    ...     pca = pca.partial_fit(batch)
    >>> pca.explained_variance_ratio_.round(2), pca.n_samples_seen_
    (array([0.68, 0.18]), 150)
    """

    _pre_images: Any
    _eigenvectors: Array | None

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
        return Nystroem(kernel, min(n, max(int(np.ceil(n**0.5)), 10 * k + 100)))

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Find the principal components of the rows of X."""
        self._checked()
        rng = generator(self.random_state)
        matrix, rows, _, given = self._training(X, rng, y=y)
        if isinstance(matrix, Factors):
            factors = matrix.persist(self._room(self._beside(matrix)))
            self._moments = Moments.over(factors, self._trace_of_kernel(rows))
            self._learn_from_moments(factors)
            self._eigenvectors = self._vectors_of(factors)
        else:
            self.__dict__.pop("_moments", None)
            self._fit_exact(matrix, rng)
        self._single = array_ops.itemsize(rows.dtype) == 4
        self._pre_images = self._learn_inverse(matrix, rows) if self.fit_inverse_transform else None
        if self._eigenvectors is not None:
            self._eigenvectors = given.place.hand_back_kept(self._eigenvectors)
        return self

    @available_if(_takes_batches)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Add a batch of rows, of one or more, to those of earlier calls, which need not be kept.

        The components are those of ``fit`` on all rows, with an approximation that is fitted on the
        first batch, or was fitted before it was passed as ``kernel``. A bare kernel stands for its
        Nyström approximation with landmarks from the first batch, which should have more rows than
        ten for each component. Of the rows, only the mean and the covariance of their features are
        kept, and the first thousand rows' features, which decide the signs of the components.

        After a ``fit`` on an approximation the rows are added to those of the fit; after one on the
        exact matrix, ``partial_fit`` begins anew.
        """
        self._checked()
        first = "_moments" not in vars(self)
        factors, rows, _, _ = self._batch(X, generator(self.random_state), first=first, y=y)
        assert isinstance(factors, Factors)
        before = None if first else self._moments
        moments = Moments.over(factors, self._trace_of_kernel(rows), before)
        self._moments = moments if before is None else before.plus(moments)
        self._learn_from_moments(factors)
        self._eigenvectors = self._pre_images = None
        return self

    def _checked(self) -> None:
        """Check the parameters before anything that takes long."""
        if self.n_components is not None:
            positive_integer(self, "n_components", self.n_components)
        if self.fit_inverse_transform:
            positive(self, "alpha", self.alpha)

    def _learn_from_moments(self, factors: Factors) -> None:
        """Components of all rows so far; the factors are any of the approximation in use."""
        count = self._count(factors.rank)
        found = self._moments.components(factors.core, count, factors.dtype)
        example, dtype = factors.parts.example(), factors.xp.float64
        moved = (array_ops.like(each, example, dtype) for each in (found.projection, found.offset))
        projection, offset = moved
        self._keep(found._replace(projection=projection, offset=offset), self._moments.n)
        self.n_iter_ = 1
        self._score_dtype = factors.dtype

    def _vectors_of(self, factors: Factors) -> Array | None:
        """Eigenvectors, from a pass over the features; None where they are too large to keep."""
        n, k = factors.shape[0], self._n_features_out
        if not self._keeps_vectors(n, k, factors.parts.place.room()):
            return None
        scores = self._scores_of(factors)
        roots = _inverse_roots(array_ops.to_numpy(self.eigenvalues_))
        scores *= array_ops.beside(roots, scores)
        return array_ops.settled(scores)

    def _scores_of(self, factors: Factors) -> Array:
        """The components of rows, by their features; lazy where the rows are spread."""
        scores = factors.features_matmul(self._projection)
        scores -= array_ops.beside(self._offset, scores)
        return scores

    def _trace_of_kernel(self, rows: Rows) -> float | None:
        """Σ k(x, x), where K̃ is to be held against it."""
        assert self.approximation_ is not None
        if self.approximation_.unbiased or self.kernel_.is_matrix:
            return None
        diagonal = self.kernel_.diagonal(rows)
        xp = array_ops.namespace(diagonal)
        return float(xp.sum(diagonal, dtype=xp.float64))

    def _steps(self, rows: Rows, **about: Any) -> list[Amounts]:
        steps = super()._steps(rows, **about)
        if self.fit_inverse_transform:
            n, k = rows.shape[0], self._count(rows.shape[0])
            keeps = self._keeps_vectors(n, k, rows.place.room())
            kept = {"components": 2 * 8 * n * k if keeps else 0}
            steps.append({**kept, **pre_images_memory(rows, k)})
        return steps

    def _exact_steps(self, gram: Gram, n_targets: int) -> list[Amounts]:
        n, item = gram.shape[0], array_ops.itemsize(gram.dtype)
        k = self._count(n)
        kept = {"kernel matrix": gram.nbytes if gram.fits() else 0, "components": 4 * 8 * n * k}
        if self._directly(gram, k):
            own = {"decomposition": (3 if item == 8 else 2) * 8 * n**2}
        else:
            width = _krylov_width(n, k)
            own = {"Krylov space": 3 * 8 * n * width * self._most_passes(n, width)}
        blocks = gram.rows.walk_bytes(item * (min(n, tile_columns(gram.rows.example())) + 4 * k))
        return [{**kept, **own, "blocks": blocks}]

    def _factored_steps(self, plan: Plan, n_targets: int) -> list[Amounts]:
        return [self._keeping(plan.factors, self._beside(plan.factors))]

    def _beside(self, factors: Factors) -> Amounts:
        """What the fit takes beside features."""
        n, r = factors.shape[0], factors.rank
        k, item = self._count(r), array_ops.itemsize(factors.dtype)
        size = item * factors.parts.widest**2
        keeps = self._keeps_vectors(n, k, factors.parts.place.room())
        return {
            "components": 2 * 8 * n * k if keeps else 0,
            "decomposition": (4 if factors.core is None else 7) * 8 * r**2,
            "first rows": 8 * min(n, SIGN_ROWS) * r,
            "blocks": max((Z.walk_bytes(item * r, size) for Z in factors.parts), default=0),
        }

    @staticmethod
    def _keeps_vectors(n: int, k: int, room: int) -> bool:
        return 8 * n * k <= room // 4

    def _count(self, most: int) -> int:
        """The number of components, of as many as there may be."""
        if self.n_components is None:
            return most
        return min(positive_integer(self, "n_components", self.n_components), most)

    def _most_passes(self, n: int, width: int) -> int:
        """The basis and its image are kept, one of them twice while it grows."""
        room = config.memory_budget() // 2 // (3 * 8 * n * width)
        return max(2, min(positive_integer(self, "max_iter", self.max_iter), room))

    def _fit_exact(self, gram: Gram, rng: np.random.Generator) -> None:
        xp, n = gram.rows.xp, gram.shape[0]
        k = self._count(n)
        gram = gram.persist()
        ones = array_ops.like(np.ones((n, 1)), gram.diag(), xp.float64)
        means = gram.matmul(ones)[:, 0] / n
        if self._directly(gram, k):
            values, vectors = _decompose(gram, means, k)
            self.n_iter_ = 1
        else:
            values, vectors = self._iterate(gram, k, rng)
        # Where rows hardly vary, K is large against what centring leaves of it, and is rounded.
        rounding = ROUNDED * array_ops.eps(gram.dtype) * abs(gram.trace())
        least = max(linalg.cutoff(values, n, gram.dtype), rounding)
        values = np.where(values > least, values, 0.0)
        vectors = vectors * signs(vectors)
        # A new row's score is k(x, ·) A less the same of the mean row: A's columns sum to 0.
        projection = vectors * array_ops.like(_inverse_roots(values), vectors)
        total = gram.trace() - float(xp.sum(means))
        self._keep(Components(values, projection, means @ projection, total), n)
        self._eigenvectors = vectors[:, : self._n_features_out]
        self._score_dtype = gram.rows.dtype

    def _keep(self, found: Components, n: int) -> None:
        if self.n_components is None:
            found = found.leading(int(np.count_nonzero(found.values)))
        self.eigenvalues_ = array_ops.like(found.values, found.projection)
        self.explained_variance_ = self.eigenvalues_ / max(n - 1, 1)
        self.explained_variance_ratio_ = self.eigenvalues_ / (
            found.total if found.total > 0 else 1.0
        )
        self.n_samples_seen_ = n
        self._projection, self._offset = found.projection, found.offset
        self._n_features_out = len(found.values)

    @property
    def eigenvectors_(self) -> Array:
        check_is_fitted(self, "eigenvalues_")
        if self._eigenvectors is None:
            raise AttributeError(
                f"KernelPCA has kept no eigenvectors of {counted(self.n_samples_seen_, 'row')}: "
                "partial_fit keeps none, and fit with an approximation none that take more than a "
                "quarter of the memory budget. transform gives the scores of any rows: the entries "
                "times the square roots of eigenvalues_."
            )
        return self._eigenvectors

    def transform(self, X: Any) -> Array:
        """The components of the rows of X."""
        check_is_fitted(self, "eigenvalues_")
        new = self._new_rows(X, self._projection)
        scores = new.product
        scores -= array_ops.beside(self._offset, scores)
        return new.rows.place.hand_back(array_ops.astype(scores, new.dtype))

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, then the components of the training rows."""
        self.fit(X, y)
        if self._eigenvectors is None:
            return self.transform(X)
        roots = array_ops.beside(self._roots(), self._eigenvectors)
        scores = self._eigenvectors * roots
        return array_ops.astype(scores, array_ops.dtype_in(self._score_dtype, scores))

    @available_if(_has_pre_images)
    def inverse_transform(self, X: Any) -> Array:
        """Rows whose components are near those given: approximate pre-images."""
        check_is_fitted(self, "eigenvalues_")
        if self._pre_images is None:
            raise ValueError(
                "No pre-images were learned: fit_inverse_transform=True was set after the fit. "
                "Call fit again."
            )
        moved = self._device is not None and not array_ops.is_foreign(X)
        rows = self._pre_images.predict(array_ops.like(X, self._projection) if moved else X)
        xp = array_ops.namespace(rows)
        rows = array_ops.astype(rows, xp.float32 if self._single else xp.float64)
        return array_ops.to_numpy(rows) if moved else rows

    def _roots(self) -> Array:
        return array_ops.namespace(self.eigenvalues_).sqrt(self.eigenvalues_)

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
            image = array_ops.astype(gram.matmul(V), xp.float64)
            return image - xp.mean(image, axis=0)

        width = _krylov_width(n, k)
        start = array_ops.like(rng.standard_normal((n, width)), gram.diag(), xp.float64)
        passes = self._most_passes(n, width)
        tol = max(not_negative(self, "tol", self.tol), 50 * array_ops.eps(gram.dtype))
        values, vectors, met, self.n_iter_ = linalg.top_eigenpairs(
            centred, start - xp.mean(start, axis=0), k, tol=tol, max_passes=passes
        )
        if not met:
            warnings.warn(
                f"Kernel PCA stopped after {counted(passes, 'pass')} before its components were "
                f"accurate to tol={tol:.1e}. Raise max_iter, tol or the memory budget.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return values, vectors

    def _learn_inverse(self, matrix: Gram | Factors, rows: Rows) -> Any:
        if self.kernel_.is_matrix or rows.are_objects:
            got = "objects" if rows.are_objects else "a precomputed matrix"
            raise ValueError(f"fit_inverse_transform=True needs rows to go back to; got {got}.")
        roots, k, dtype = self._roots(), self._n_features_out, rows.xp.float64
        later = None
        if self._eigenvectors is None:
            later = rows.place.later(self._scores_of, matrix)
        if later is not None:
            scores = FeatureRows(later, lambda s, out=None: s, k, dtype)
        elif self._eigenvectors is None:
            assert self.approximation_ is not None
            work = 2 * 8 * self.approximation_.n_components_
            serial = self.kernel_.serial
            scores = FeatureRows(rows, self._scores, k, dtype, work_bytes=work, serial=serial)
        else:
            kept = rows.place.keep(self._eigenvectors)
            scores = FeatureRows(kept, lambda v, out=None: v * roots, k, dtype)
        if not array_ops.to_numpy(self.eigenvalues_).any():
            return OneRow.learn(rows)
        return PreImages.learn(rows, scores, self.alpha)

    def _scores(self, x: Array, out: Array | None = None) -> Array:
        """Those of a block of rows, where they are not kept; called in worker threads."""
        assert self.approximation_ is not None
        share = config.memory_budget() // config.n_threads()
        with config.config_context(n_threads=1, memory_budget=share, progress=False):
            factors = self.approximation_.factor_rows(ArrayRows(x))
            return factors.features_matmul(self._projection) - self._offset


def _krylov_width(n: int, k: int) -> int:
    return min(n, k + max(8, k // 4))


def _decompose(gram: Gram, means: Array, k: int) -> tuple[np.ndarray, Array]:
    """The k largest eigenpairs of the centred matrix, from the whole of it."""
    xp, n = gram.rows.xp, gram.shape[0]
    K = array_ops.astype(gram.dense(), xp.float64)
    K = K - means[:, None]
    K -= means
    K += float(xp.mean(means))
    if not array_ops.is_foreign(K):  # LAPACK can stop at the k that are wanted
        values, vectors = scipy.linalg.eigh(
            K, subset_by_index=[n - k, n - 1], overwrite_a=True, check_finite=False
        )
        return values[::-1], vectors[:, ::-1]
    values, vectors = xp.linalg.eigh(K)
    return array_ops.to_numpy(values)[::-1][:k], xp.flip(vectors, axis=1)[:, :k]


def _inverse_roots(values: np.ndarray) -> np.ndarray:
    """1 / sqrt(values), and 0 where a value is 0."""
    return np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)
