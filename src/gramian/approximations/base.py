"""Base class of approximations K̃ = Z S Zᵀ."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.base import KernelEstimator, all_or_nothing, generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.kernels import Kernel, KernelWarning, as_kernel
from gramian.matrices.factors import Factors, features
from gramian.matrices.gram import Gram
from gramian.rows import FeatureRows, Rows
from gramian.rows.device import DeviceRows

__all__ = ["Approximation", "ApproximationWarning"]


class ApproximationWarning(UserWarning):
    """The fitted approximation differs from the requested one.

    See Also
    --------
    KernelWarning : what kernels warn of.
    relative_error : how accurate an approximation is.

    Examples
    --------
    >>> import warnings
    >>> from gramian import ApproximationWarning, Nystroem
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     approximation = Nystroem("linear", 3).fit([[1.0], [2.0]])  # more landmarks than rows
    >>> caught[0].category is ApproximationWarning
    True
    """


@contextmanager
def warnings_as_notes(notes: list[str]) -> Iterator[None]:
    """Collect warnings of approximations as notes, and ignore those of their kernels.

    All other warnings are issued when the block ends.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        if issubclass(each.category, ApproximationWarning):
            notes.append(str(each.message))
        elif not issubclass(each.category, KernelWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


@dataclass(frozen=True, eq=False)
class Plan:
    """The sizes and memory of an approximation, from the shape of the rows.

    It is made once per fit, and the fit follows it.
    """

    approximation: Approximation
    rows: Rows  # the rows that it was made for
    factors: Factors  # only their sizes: features cannot be computed
    kept: Amounts = field(default_factory=dict)  # memory that remains in use after the fit
    steps: Sequence[Amounts] = ()  # memory of each step of the fit, including what it keeps


class Approximation(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator, BaseEstimator
):
    """Base class of approximations K̃ = Z S Zᵀ of a kernel matrix.

    Learners accept an approximation wherever they accept a kernel. It is also a transformer:
    ``transform`` returns features whose inner products are K̃.

    A subclass has the parameters ``kernel`` and ``random_state`` and implements ``_fit``, which
    learns the map from the rows and returns the number of features, and ``_features``; or, if K̃ has
    a core S, ``factor_rows``. After the fit, ``evaluations_`` is the number of kernel values it
    computed.

    See Also
    --------
    Nystroem : the approximation to try first.
    gramian.testing.check_approximation : tests an approximation class.

    Examples
    --------
    >>> from gramian import Approximation, KernelKMeans, RandomFourier
    >>> approximation = RandomFourier("rbf", 10, random_state=0)
    >>> isinstance(approximation, Approximation)
    True
    >>> X = [[0.0], [0.1], [5.0], [5.1]]
    >>> approximation.fit_transform(X).shape
    (4, 10)
    >>> KernelKMeans(2, kernel=approximation, random_state=0).fit(X).counts_
    array([2., 2.])
    """

    kernel: Any
    random_state: RandomState
    kernel_: Kernel
    n_components_: int
    evaluations_: int
    # Names under which ``compare`` tries the approximation, with the parameters of each.
    compared: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    below = False  # whether K - K̃ is positive semi-definite, so that its trace is its error
    has_features = True  # whether features alone determine K̃
    unbiased = False  # whether the expectation of K̃ is K, so that distances need no correction

    @abstractmethod
    def _fit(self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: Any) -> int:
        """Learn the features, using the exact matrix as an oracle; returns their number.

        ``plan`` is the result of ``_plan`` for these rows.
        """

    def _features(self, x: Array, out: Array | None = None) -> Array:
        """Return the features of a block of rows, shape (rows, n_components_)."""
        raise NotImplementedError(f"{type(self).__name__} must implement _features or factor_rows.")

    def _features_of(self, rows: Rows) -> Callable[..., Array]:
        """Return ``_features`` for blocks of these rows."""
        return self._features

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        """Whether ``compare`` should try the approximation for this kernel and these rows."""
        return True

    def adapted(self, kernel: Kernel) -> Approximation:
        """Return the approximation with the best parameters for this kernel, for ``compare``."""
        return self

    @property
    def exact_kernel_(self) -> Kernel:
        """The kernel that K̃ approximates: ``kernel_``, unless a subclass defines another."""
        return self.kernel_

    def _work_bytes(self) -> int:
        """Return the memory of ``_features`` per row, in addition to the block and its result."""
        return 0

    def _row_evaluations(self) -> int:
        """Return the number of kernel values that the features of one row need."""
        return 0

    def _product(self, rows: Rows) -> tuple[Rows, Array] | None:
        """Return kernel values C (n, m) with m points and P (m, r), if features are C P; else None.

        P Pᵀ must be the pseudo-inverse of the points' kernel matrix, as in Nyström's method.
        """
        return None

    # The sizes and memory of a fit, from the shape of the rows and the parameters.

    def in_double(self, rows: Rows) -> Approximation | None:
        """Return this approximation with features in float64, for float32 rows that need them.

        It has the same landmarks or frequencies. None if there is no such form.
        """
        return None

    def trained_on(self, rows: Rows) -> Approximation:
        """Return this fitted approximation for a learner that is trained on these rows.

        It is another one only if it keeps training rows: those of the learner take their place.
        """
        return self

    def plan(self, rows: Rows) -> Plan:
        """Return the plan of this approximation, fitted or not, on rows of this shape."""
        if hasattr(self, "n_components_"):
            return Plan(self, rows, self._sizes(rows))
        return self._plan(rows)

    def checked_plan(self, rows: Rows) -> Plan:
        """Return the plan of a fit; raises an error if it exceeds the memory budget."""
        plan = self._plan(rows)
        self._check_memory(self._estimates(rows, plan=plan), rows, self.advice)
        return plan

    def _plan(self, rows: Rows) -> Plan:
        """Plan a fit; by default, with n_components features and negligible memory."""
        count = getattr(self, "n_components", None)
        width = int(count) if isinstance(count, Integral) else 1
        return Plan(self, rows, self._planned(rows, width))

    def _planned(
        self, rows: Rows, width: int, work_bytes: int = 0, product: tuple[Rows, Array] | None = None
    ) -> Factors:
        """Return factors with ``width`` features per row and ``work_bytes`` of memory for each."""
        return Factors(
            FeatureRows(
                rows, self._features, width, rows.dtype, work_bytes=work_bytes, product=product
            )
        )

    def _sizes(self, rows: Rows) -> Factors:
        """Return factors of the fitted approximation, of which only the sizes are used."""
        return self.factor_rows(rows)

    def _ways(
        self, rows: Rows, *, plan: Plan | None = None, **known: Any
    ) -> Mapping[Hashable, Sequence[Amounts]]:
        if plan is None or plan.rows is not rows:  # an estimate may replace rows by planned ones
            plan = self._plan(rows)
        return {"fit": plan.steps}

    def advice(self) -> str:
        """Return what to do if a fit takes too much memory."""
        return "Use fewer n_components"

    def fit(self, X: RowsLike, y: Array | None = None) -> Approximation:
        """Fit the approximation to the rows X."""
        self._fit_to(X, y)
        return self

    @all_or_nothing
    def _fit_to(self, X: RowsLike, y: Array | None) -> Rows:
        """Like ``fit``; returns the rows."""
        rows = self._read(X, reset=True, min_rows=2)
        self.fit_rows(rows, generator(self.random_state), y)
        return rows

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        y: Array | None = None,
        weights: Array | None = None,
        plan: Plan | None = None,
    ) -> Approximation:
        """Like ``fit``, for rows that are already checked, with a plan that fits the budget."""
        rows = self._bare_kernel().check_rows(rows)
        plan = self.checked_plan(rows) if plan is None else plan
        self.kernel_ = kernel = self._fit_kernel(rows, rng, y, weights, plan)
        kernel.check_values(rows)
        self._single = array_ops.itemsize(rows.dtype) == 4
        self._device = rows.device if isinstance(rows, DeviceRows) else None
        self._on_objects = rows.are_objects
        if not rows.are_objects:
            self.n_features_in_ = rows.shape[1]
        gram = Gram(kernel, rows)
        self.n_components_ = self._n_features_out = self._fit(gram, rng, y, plan)
        self.evaluations_ = gram.evaluations
        self.nbytes_ = self.factor_rows(rows).nbytes
        return self

    def _fit_kernel(
        self,
        rows: Rows,
        rng: np.random.Generator,
        y: Array | None,
        weights: Array | None,
        plan: Plan,
    ) -> Kernel:
        """Return the kernel, fitted to these rows."""
        kernel = clone(as_kernel(self.kernel))
        with one_blas_thread():  # BLAS threads would keep the cores busy for a while afterwards
            kernel.fit_rows(rows, np.random.default_rng(rng.integers(2**63)), weights, y)
        return kernel

    def transform(self, X: RowsLike) -> Array:
        """Return the features of the rows X, whose inner products are K̃; shape (n, r)."""
        return self._transformed(self._new_rows(X))

    @one_blas_thread()
    def _transformed(self, rows: Rows) -> Array:
        """Like ``transform``, for rows that are already checked."""
        factors = self.factor_rows(rows)
        n, r = factors.shape[0], factors.rank
        factors.parts.place.check_room(
            n * r * array_ops.itemsize(factors.dtype),
            f"{counted(r, 'feature')} of {counted(n, 'row')}",
            "Use factor(X), which computes them when needed, or pass fewer rows",
        )
        into = rows.place.memory_to_hand_back((n, r), factors.dtype)
        return rows.place.hand_back(self._finite(features(factors, into)))

    def fit_transform(self, X: RowsLike, y: Array | None = None, **params: Any) -> Array:
        """Fit to X, and return the features of its rows."""
        return self._transformed(self._fit_to(X, y))

    def factor(self, X: RowsLike) -> Factors:
        """Return K̃ of the rows X as factors, for learners and error estimates."""
        return self.factor_rows(self._new_rows(X))

    def factor_rows(self, rows: Rows) -> Factors:
        """Like ``factor``, for rows that are already checked."""
        return Factors(
            FeatureRows(
                rows,
                self._features_of(rows),
                self.n_components_,
                self._feature_dtype(rows),
                work_bytes=self._work_bytes(),
                serial=self.kernel_.serial,
                row_evaluations=self._row_evaluations(),
                product=self._product(rows),
            )
        )

    def expressed(self, learned: Any) -> Any:
        """Return what was learned in the form that ``values`` multiplies new rows with."""
        return learned

    def values(self, rows: Rows, learned: Any) -> tuple[Array, Factors | None]:
        """Multiply the features of rows with what was learned, of shape (features, k).

        Returns values of shape (n, k) in float64, and the factors of the rows if they have all of
        K̃.
        """
        factors = self.factor_rows(rows)
        return factors.features_matmul(learned), factors

    def _feature_dtype(self, rows: Rows) -> DType:
        """Return the dtype of the features: that of the training rows."""
        return rows.xp.float32 if self._single else rows.xp.float64

    def __call__(self, X: RowsLike, Y: RowsLike | None = None) -> Array:
        """Return the approximate kernel matrix K̃(X, Y); K̃(X, X) if Y is None."""
        rows = self._new_rows(X)
        left = self.factor_rows(rows)
        right = None if Y is None else self.factor(Y)
        return rows.place.hand_back(array_ops.astype(left.dense(right), left.dtype))

    def diag(self, X: RowsLike) -> Array:
        """Return K̃(x, x) for each row of X; shape (n,)."""
        rows = self._new_rows(X)
        factors = self.factor_rows(rows)
        return rows.place.hand_back(array_ops.astype(factors.diagonal(), factors.dtype))

    def _new_rows(self, X: RowsLike) -> Rows:
        check_is_fitted(self, "n_components_")
        return self._read(X, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def are_vectors(kernel: Kernel, rows: Rows) -> bool:
    """Whether the rows are vectors, not objects or rows of a precomputed matrix."""
    return not (rows.are_objects or kernel.is_matrix)
