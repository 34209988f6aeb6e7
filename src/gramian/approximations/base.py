"""Approximation: a kernel that one can afford."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.base import KernelEstimator, all_or_nothing, generator
from gramian.kernels import Kernel, KernelWarning, as_kernel
from gramian.matrices.factors import Factors, features
from gramian.matrices.gram import Gram
from gramian.rows import FeatureRows, Rows
from gramian.rows.device import DeviceRows

__all__ = ["Approximation", "ApproximationWarning"]


class ApproximationWarning(UserWarning):
    """An approximation that is not what was asked for."""


@contextmanager
def warnings_as_notes(notes: list[str]) -> Iterator[None]:
    """Collect what approximations warn of as notes, and pass over what their kernels do.

    Other warnings are given when the block ends.
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
    """An approximation as far as it is known from the shape of the rows.

    It is made once for a fit, which follows it.
    """

    approximation: Approximation
    rows: Rows  # those that it was made for
    factors: Factors  # their sizes alone: features cannot be computed
    kept: Amounts = field(default_factory=dict)  # what a fit leaves in memory
    steps: Sequence[Amounts] = ()  # what a fit takes at each step, what it keeps included


class Approximation(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator, BaseEstimator
):
    """Base of the approximations K̃ = Z S Zᵀ of a kernel matrix.

    An approximation may stand wherever a learner takes a kernel. It is also a transformer:
    ``transform`` gives features whose inner products are K̃.

    A subclass has the parameters ``kernel`` and ``random_state`` and implements ``_fit``, which
    learns the map from the rows and returns the number of features, and ``_features``; or, where
    there is more to K̃ than features, ``factor_rows``. After the fit, ``evaluations_`` is the number
    of kernel values that it took.
    """

    kernel: Any
    random_state: Any
    kernel_: Kernel
    n_components_: int
    evaluations_: int
    # The names under which ``compare`` tries the approximation, and the parameters of each.
    compared: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    below = False  # whether K - K̃ is positive semi-definite, so that its trace is its error
    has_features = True  # whether K̃ is known by features alone, as learners on features need
    unbiased = False  # whether K̃ is K on average, so that its own distances need no correction

    @abstractmethod
    def _fit(self, gram: Gram, rng: np.random.Generator, y: Any, plan: Any) -> int:
        """Learn the features from the exact matrix as an oracle; returns their number.

        ``plan`` is what ``_plan`` gave for these rows.
        """

    def _features(self, x: Array, out: Array | None = None) -> Array:
        """The features of a block of rows, of shape (rows, n_components_)."""
        raise NotImplementedError(f"{type(self).__name__} must implement _features or factor_rows.")

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        """Whether the approximation suits a kernel and rows like these: ``compare`` asks."""
        return True

    def adapted(self, kernel: Kernel) -> Approximation:
        """The approximation with the parameters that suit this kernel best, for ``compare``."""
        return self

    @property
    def exact_kernel_(self) -> Kernel:
        """The kernel that K̃ approximates: ``kernel_``, unless a subclass keeps something else."""
        return self.kernel_

    def _work_bytes(self) -> int:
        """What ``_features`` works on for each row, beside the block and its result."""
        return 0

    def _row_evaluations(self) -> int:
        """The kernel values that the features of one row take."""
        return 0

    def _product(self, rows: Rows) -> tuple[Rows, Array] | None:
        """Kernel values C with some points and a matrix P, where features are their product C P.

        P Pᵀ must be the pseudo-inverse of the points' own kernel values, as in Nyström's method.
        """
        return None

    # What a fit gives and takes, known from the shape of the rows and the parameters alone.

    def plan(self, rows: Rows) -> Plan:
        """What this approximation is, or will be when it is fitted, on rows of this shape."""
        if hasattr(self, "n_components_"):
            return Plan(self, rows, self._sizes(rows))
        return self._plan(rows)

    def checked_plan(self, rows: Rows) -> Plan:
        """The plan of a fit, refused where it takes more than the memory budget."""
        plan = self._plan(rows)
        self._check_memory(self._estimate(rows, plan=plan), rows, self._advice())
        return plan

    def _plan(self, rows: Rows) -> Plan:
        """What a fit will give and take: n_components features, and no memory that counts."""
        count = getattr(self, "n_components", None)
        width = int(count) if isinstance(count, Integral) else 1
        return Plan(self, rows, self._planned(rows, width))

    def _planned(self, rows: Rows, width: int, work_bytes: int = 0, product: Any = None) -> Factors:
        """Factors with so many features of each row, and so much work on it."""
        return Factors(
            FeatureRows(
                rows, self._features, width, rows.dtype, work_bytes=work_bytes, product=product
            )
        )

    def _sizes(self, rows: Rows) -> Factors:
        """Factors of the fitted approximation, of which only the sizes are looked at."""
        return self.factor_rows(rows)

    def _ways(
        self, rows: Rows, *, plan: Plan | None = None, **known: Any
    ) -> Mapping[Any, Sequence[Amounts]]:
        if plan is None or plan.rows is not rows:  # planned rows may stand for those of the fit
            plan = self._plan(rows)
        return {"fit": plan.steps}

    def _advice(self) -> str:
        """What to do where a fit takes too much memory."""
        return "Use fewer n_components"

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Approximation:
        """Learn the approximation from the rows X."""
        rows = self._read(X, reset=True, min_rows=2)
        return self.fit_rows(rows, generator(self.random_state), y)

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        y: Any = None,
        weights: Array | None = None,
        plan: Plan | None = None,
    ) -> Approximation:
        """``fit`` on rows that are checked already, as a ``plan`` says that is affordable."""
        rows = self._bare_kernel().check_rows(rows)
        plan = self.checked_plan(rows) if plan is None else plan
        self.kernel_ = kernel = self._fit_kernel(rows, rng, y, weights, plan)
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
        self, rows: Rows, rng: np.random.Generator, y: Any, weights: Array | None, plan: Plan
    ) -> Kernel:
        """The kernel with its parameters worked out on these rows."""
        kernel = clone(as_kernel(self.kernel))
        with one_blas_thread():  # else BLAS's own threads keep the cores busy for a while after
            kernel.fit_rows(rows, np.random.default_rng(rng.integers(2**63)), weights)
        return kernel

    @one_blas_thread()
    def transform(self, X: Any) -> Array:
        """The features of the rows X: their inner products are K̃."""
        rows = self._new_rows(X)
        factors = self.factor_rows(rows)
        n, r = factors.shape[0], factors.rank
        factors.parts.place.check_room(
            n * r * array_ops.itemsize(factors.dtype),
            f"{counted(r, 'feature')} of {counted(n, 'row')}",
            "Use factor(X), which computes them when they are needed, or pass fewer rows",
        )
        into = rows.place.memory_to_hand_back((n, r), factors.dtype)
        return rows.place.hand_back(features(factors, into))

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Array:
        """Fit, then the features of the training rows."""
        return self.fit(X, y).transform(X)

    def factor(self, X: Any) -> Factors:
        """K̃ of the rows X as factors, which learners and error estimates work on."""
        return self.factor_rows(self._new_rows(X))

    def factor_rows(self, rows: Rows) -> Factors:
        """``factor`` of rows that are checked already."""
        return Factors(
            FeatureRows(
                rows,
                self._features,
                self.n_components_,
                self._feature_dtype(rows),
                work_bytes=self._work_bytes(),
                serial=self.kernel_.serial,
                row_evaluations=self._row_evaluations(),
                product=self._product(rows),
            )
        )

    def _feature_dtype(self, rows: Rows) -> Any:
        """Features are of the dtype of the rows that they were learned from."""
        return rows.xp.float32 if self._single else rows.xp.float64

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """K̃(X, Y), the approximate kernel matrix; K̃(X, X) where Y is not given."""
        rows = self._new_rows(X)
        left = self.factor_rows(rows)
        right = None if Y is None else self.factor(Y)
        return rows.place.hand_back(array_ops.astype(left.dense(right), left.dtype))

    def diag(self, X: Any) -> Array:
        """K̃(x, x) for each row of X."""
        rows = self._new_rows(X)
        factors = self.factor_rows(rows)
        return rows.place.hand_back(array_ops.astype(factors.diagonal(), factors.dtype))

    def _new_rows(self, X: Any) -> Rows:
        check_is_fitted(self, "n_components_")
        return self._read(X, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def are_vectors(kernel: Kernel, rows: Rows) -> bool:
    """Whether the rows are points of a space, not objects or rows of the kernel matrix."""
    return not (rows.are_objects or kernel.is_matrix)
