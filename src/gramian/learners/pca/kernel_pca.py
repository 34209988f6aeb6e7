"""Kernel principal component analysis: exact, on the features of an approximation, on streams."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Nystroem
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, positive, positive_integer
from gramian.backend.wording import counted
from gramian.estimators.base import all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner, LearnerKernel
from gramian.learners.pca.components import Analysis, ComponentsProblem
from gramian.learners.pca.exact import Decomposed, Krylov
from gramian.learners.pca.featured import FromMoments, components_of, scores_of, trace_of_kernel
from gramian.learners.pca.moments import Moments
from gramian.learners.pca.pre_images import Inverse, OneRow, PreImages
from gramian.matrices.factors import Factors
from gramian.rows import ArrayRows, FeatureRows

__all__ = ["KernelPCA"]


def _has_pre_images(pca: KernelPCA) -> bool:
    if not pca.fit_inverse_transform:
        raise AttributeError(
            "inverse_transform needs pre-images, which fit learns only with "
            "fit_inverse_transform=True."
        )
    return True


def _takes_batches(pca: KernelPCA) -> bool:
    if pca.fit_inverse_transform:
        raise AttributeError(
            "fit_inverse_transform=True needs all rows at once: set it to False for partial_fit, "
            "and learn pre-images from some rows, with KernelRidge().fit(pca.transform(X), X)."
        )
    if pca.solver != "auto":
        raise AttributeError(
            f"solver={pca.solver!r} is for the exact matrix, which partial_fit does not use: leave "
            "it 'auto'."
        )
    return True


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelLearner):
    """Kernel principal component analysis.

    The kernel matrix is centred, unless ``centred=False``. A small one (up to about six thousand
    rows) is used exactly. For more rows, a plain kernel is replaced by its Nyström approximation
    with √n landmarks, but at least ten per component plus a hundred: enough for the leading
    components, whatever the number of rows. ``Exact(kernel)`` uses the exact matrix at any size,
    without storing it; the leading components then come from a block Krylov method.

    Parameters
    ----------
    n_components : int or None, default=2
        The number of components. None: all with a positive eigenvalue, which needs the whole
        matrix.
    kernel : str, Kernel, Approximation or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` sets its parameters.
    centred : bool, default=True
        Whether to subtract the mean of the rows in feature space. Without it, components are the
        leading eigenvectors of the kernel matrix itself, as in spectral methods; the first is then
        often the mean.
    solver : {"auto", "direct", "iterative"}, default="auto"
        How to find components of the exact matrix: decompose it ("direct"), or iterate. Both use a
        plain kernel exactly.
    tol : float, default=1e-9
        The iteration stops when each residual is at most this fraction of the largest eigenvalue.
    max_iter : int, default=50
        The largest number of passes over the kernel matrix.
    fit_inverse_transform : bool, default=False
        Learn pre-images: a kernel ridge regression from the components back to the rows. It is
        exact for up to about six thousand rows. For more, it uses √n·log n landmarks, at most a
        thousand, and takes one more pass over the rows, which may be in files.
    alpha : float, default=1e-3
        The penalty of that regression.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        The largest eigenvalues of the (centred) kernel matrix, in descending order.
    eigenvectors_ : array of shape (n, n_components)
        Their eigenvectors. In each, the entry with the largest absolute value is positive; with an
        approximation, the largest among the first thousand rows. Not available after
        ``partial_fit``, nor with an approximation if they take more than a quarter of the memory
        budget.
    explained_variance_ : array of shape (n_components,)
        The variance of the rows' scores: eigenvalues_ / (n - 1), as in scikit-learn's ``PCA``. If
        ``centred=False``, their mean square: eigenvalues_ / n.
    explained_variance_ratio_ : array of shape (n_components,)
        The fraction of the trace of the (centred) kernel matrix that each component explains; 0 if
        the rows do not vary. With an approximation, the trace is that of the exact kernel, so that
        the part which the approximation leaves out counts as not explained: the sum of k(x, x),
        minus the part of the mean, estimated from K̃. If K̃ is unbiased, such as RandomFourier's, or
        the matrix is precomputed, it is the trace of K̃.
    n_samples_seen_ : int
        The number n of rows so far.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.
    approximation_ : Approximation or None
        The approximation in use.
    points_ : Rows or None
        The training rows, which ``transform`` needs if K is exact.
    n_iter_ : int
        The number of passes over the kernel matrix; 1 if it was decomposed.

    See Also
    --------
    Nystroem : features without the rotation to components.
    KernelJL : cheaper features that weight directions alike.

    References
    ----------
    - B. Schölkopf, A. Smola and K.-R. Müller, Nonlinear component analysis as a kernel eigenvalue
      problem, Neural Computation 10, 1998.

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

    Fit in batches:

    >>> pca = KernelPCA(2, kernel=RBF(gamma=0.1), random_state=0)
    >>> for batch in (X[::3], X[1::3], X[2::3]):
    ...     pca = pca.partial_fit(batch)
    >>> pca.explained_variance_ratio_.round(2), pca.n_samples_seen_
    (array([0.68, 0.18]), 150)
    """

    _pre_images: Inverse | None
    _eigenvectors: Array | None

    strategies = (Decomposed(), Krylov(), FromMoments())

    def __init__(
        self,
        n_components: int | None = 2,
        kernel: LearnerKernel = "rbf",
        *,
        centred: bool = True,
        solver: str = "auto",
        tol: float = 1e-9,
        max_iter: int = 50,
        fit_inverse_transform: bool = False,
        alpha: float = 1e-3,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.centred = centred
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
    def fit(self, X: RowsLike, y: Array | None = None) -> KernelPCA:
        """Find the principal components of the rows of X."""
        self._checked()
        problem = self._problem(X, generator(self.random_state), y=y)
        analysis = self._choose(problem).solve(problem)
        self._keep(analysis, problem)
        self._pre_images = self._learn_inverse(problem) if self.fit_inverse_transform else None
        if self._eigenvectors is not None:
            self._eigenvectors = problem.input_rows.place.hand_back_kept(self._eigenvectors)
        return self

    @available_if(_takes_batches)
    @all_or_nothing
    def partial_fit(self, X: RowsLike, y: Array | None = None) -> KernelPCA:
        """Add a batch of one or more rows to those of earlier calls.

        The components are those of ``fit`` on all rows, with an approximation that is fitted to the
        first batch, or was fitted before it was passed as ``kernel``. A plain kernel is replaced by
        its Nyström approximation with landmarks from the first batch, which should have more than
        ten rows per component. Only the mean and the covariance of the rows' features are stored,
        and the features of the first thousand rows, which determine the signs of the components.

        After a ``fit`` with an approximation, the rows are added to those of the fit. After a
        ``fit`` with the exact matrix, ``partial_fit`` starts again.
        """
        self._checked()
        first = "_moments" not in vars(self)
        batch = self._batch(X, generator(self.random_state), first=first, y=y)
        before = None if first else self._moments
        moments = Moments.over(batch.factors, trace_of_kernel(batch), before)
        moments = moments if before is None else before.plus(moments)
        found = components_of(moments, batch.factors, batch)
        self._keep(Analysis(found, None, batch.factors.dtype, moments), batch)
        self._pre_images = None
        return self

    def _checked(self) -> None:
        """Check the parameters before any long computation."""
        if self.n_components is not None:
            positive_integer(self, "n_components", self.n_components)
        if self.fit_inverse_transform:
            positive(self, "alpha", self.alpha)

    def _pose(self, **known: Any) -> ComponentsProblem:
        if not isinstance(known["matrix"], Factors):
            self._check_solver()
        if self.n_components is not None:
            positive_integer(self, "n_components", self.n_components)
        return ComponentsProblem(
            **known,
            n_components=self.n_components,
            centred=bool(self.centred),
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            inverse=self.fit_inverse_transform,
            approximation=getattr(self, "approximation_", None),
        )

    def _check_solver(self) -> None:
        solver = choice(self, "solver", self.solver, ("auto", "direct", "iterative"))
        if self.n_components is None and solver == "iterative":
            raise ValueError(
                "n_components=None, all components, needs the whole matrix: set a number of "
                "components, or solver='direct'."
            )

    def _keep(self, analysis: Analysis, problem: ComponentsProblem) -> None:
        if not analysis.met:
            warnings.warn(
                f"Kernel PCA stopped after {counted(analysis.passes, 'pass')} before its "
                f"components were accurate to tol={analysis.tol:.1e}. Increase max_iter, tol or "
                "the memory budget.",
                ConvergenceWarning,
                stacklevel=4,
            )
        found, moments = analysis.found, analysis.moments
        n = problem.rows.shape[0] if moments is None else moments.n
        self.eigenvalues_ = array_ops.like(found.values, found.projection)
        self.explained_variance_ = self.eigenvalues_ / max(n - int(problem.centred), 1)
        self.explained_variance_ratio_ = self.eigenvalues_ / (
            found.total if found.total > 0 else 1.0
        )
        self.n_samples_seen_ = n
        self.n_iter_ = analysis.passes
        self._projection, self._offset = self._finite(found.projection), found.offset
        self._n_features_out = len(found.values)
        self._eigenvectors = analysis.vectors
        self._score_dtype = analysis.dtype
        self._single = array_ops.itemsize(problem.rows.dtype) == 4
        self.__dict__.pop("_moments", None)
        if moments is not None:
            self._moments = moments

    @property
    def eigenvectors_(self) -> Array:
        check_is_fitted(self, "eigenvalues_")
        if self._eigenvectors is None:
            raise AttributeError(
                f"KernelPCA stores no eigenvectors of {counted(self.n_samples_seen_, 'row')}: "
                "partial_fit stores none, nor does fit with an approximation if they take more "
                "than a quarter of the memory budget. transform returns the scores of any rows: "
                "eigenvector entries times the square roots of eigenvalues_."
            )
        return self._eigenvectors

    def transform(self, X: RowsLike) -> Array:
        """Project the rows of X on the components; returns scores of shape (n, n_components)."""
        check_is_fitted(self, "eigenvalues_")
        new = self._new_rows(X, self._projection)
        scores = new.product
        scores -= array_ops.beside(self._offset, scores)
        return new.rows.place.hand_back(array_ops.astype(scores, new.dtype))

    def fit_transform(self, X: RowsLike, y: Array | None = None) -> Array:
        """Fit to X, and return the scores of its rows."""
        self.fit(X, y)
        if self._eigenvectors is None:
            return self.transform(X)
        roots = array_ops.beside(self._roots(), self._eigenvectors)
        scores = self._eigenvectors * roots
        return array_ops.astype(scores, array_ops.dtype_in(self._score_dtype, scores))

    @available_if(_has_pre_images)
    def inverse_transform(self, X: RowsLike) -> Array:
        """Return approximate pre-images: rows with scores close to X."""
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

    def _learn_inverse(self, problem: ComponentsProblem) -> Inverse:
        rows = problem.rows
        if self.kernel_.is_matrix or rows.are_objects:
            got = "objects" if rows.are_objects else "a precomputed matrix"
            raise ValueError(f"fit_inverse_transform=True needs rows that are vectors; got {got}.")
        roots, k, dtype = self._roots(), self._n_features_out, rows.xp.float64
        later = None
        if self._eigenvectors is None:
            later = rows.place.later(scores_of, self._projection, self._offset, problem.matrix)
        if later is not None:
            scores = FeatureRows(later, lambda s, out=None: s, k, dtype)
        elif self._eigenvectors is None:
            assert self.approximation_ is not None
            work = 2 * 8 * self.approximation_.n_components_
            serial = self.kernel_.serial
            scores = FeatureRows(rows, self._scores, k, dtype, work_bytes=work, serial=serial)
        else:
            vectors = rows.place.keep(self._eigenvectors)
            scores = FeatureRows(vectors, lambda v, out=None: v * roots, k, dtype)
        if not array_ops.to_numpy(self.eigenvalues_).any():
            return OneRow.learn(rows)
        return PreImages.learn(rows, scores, self.alpha)

    def _scores(self, x: Array, out: Array | None = None) -> Array:
        """Compute the scores (rows, n_components) of a block of rows; called in worker threads."""
        assert self.approximation_ is not None
        share = config.memory_budget() // config.n_threads()
        with config.config_context(n_threads=1, memory_budget=share, progress=False):
            factors = self.approximation_.factor_rows(ArrayRows(x))
            return factors.features_matmul(self._projection) - self._offset
