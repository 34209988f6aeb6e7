"""What all learners share: the parameter ``kernel``, the reading of their input, fits that fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian import _arrays
from gramian._arrays import Array
from gramian.gram import Gram
from gramian.kernels import Kernel, Precomputed, as_kernel
from gramian.rows import Rows, as_rows

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(fit: Method) -> Method:
    """A fit that fails or is interrupted leaves the estimator as it was before."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


class KernelLearner(BaseEstimator):
    """Base of the learners. A subclass has the parameter ``kernel``.

    After its fit, ``kernel_`` is the kernel with its parameters worked out, and ``points_`` what
    is kept of the training rows.
    """

    kernel: Any
    kernel_: Kernel
    points_: Rows

    def set_params(self, **params: Any) -> KernelLearner:
        # ``kernel__gamma`` may be set where the kernel is given by name: it becomes an object.
        if isinstance(self.kernel, str) and any(p.startswith("kernel__") for p in params):
            self.kernel = as_kernel(params.pop("kernel", self.kernel))
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = as_kernel(self.kernel)
        except (TypeError, ValueError):  # reported by fit
            return tags
        tags.input_tags.sparse = kernel.takes_sparse
        tags.input_tags.pairwise = isinstance(kernel, Precomputed)
        tags.input_tags.positive_only = not kernel.takes_negative
        return tags

    def _training_gram(
        self, X: Any, rng: np.random.Generator, sample_weight: Any = None
    ) -> tuple[Gram, Array | None]:
        """Check X, work out the kernel on it, and give the exact matrix as an oracle.

        The weights come back checked, as float64 of the rows' array library.
        """
        kernel = clone(as_kernel(self.kernel))
        rows = as_rows(X, owner=type(self).__name__, min_rows=2)
        validate_data(self, X, reset=True, skip_check_array=True)
        rows = kernel.check_rows(rows)
        weights = as_weights(sample_weight, rows)
        # A generator of its own: what the kernel draws does not change what the learner draws.
        kernel.fit_rows(rows, np.random.default_rng(rng.integers(2**63)), weights)
        gram = Gram(kernel, rows)
        self.kernel_, self.points_ = kernel, kernel.points(rows)
        return gram, weights

    def _cross_gram(self, X: Any) -> Gram:
        """The matrix of the kernel between new rows and the training rows."""
        check_is_fitted(self, "points_")
        rows = as_rows(X, owner=type(self).__name__)
        validate_data(self, X, reset=False, skip_check_array=True)
        return Gram(self.kernel_, rows, self.points_)


def as_targets(owner: Any, y: Any, rows: Rows) -> Array:
    """y as floating-point numbers of the rows' array library, one entry or line for each row."""
    if y is None:
        missing_target(owner)
    if not _arrays.is_foreign(y):
        y = check_array(
            y, ensure_2d=False, dtype="numeric", input_name="y", estimator=type(owner).__name__
        )
    check_consistent_length(rows, y)
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions; got shape {tuple(y.shape)}.")
    return _arrays.like(y, example(rows), dtype=rows.xp.float64)


def missing_target(owner: Any) -> NoReturn:
    raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")


def as_weights(sample_weight: Any, rows: Rows) -> Array | None:
    """Sample weights as float64, one for each row; None stays None."""
    if sample_weight is None:
        return None
    weights = np.asarray(_arrays.to_numpy(sample_weight), dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(rows.shape[0], float(weights))
    if weights.shape != (rows.shape[0],):
        raise ValueError(
            f"sample_weight must have one number for each of the {rows.shape[0]} rows; got shape "
            f"{weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and not negative.")
    if not weights.any():
        raise ValueError("sample_weight must not be zero for every row.")
    return _arrays.like(weights, example(rows), dtype=rows.xp.float64)


def example(rows: Rows) -> Array:
    """An array of the library and device of the rows' results."""
    return _arrays.empty((0,), rows.take([0]), rows.dtype)


def generator(random_state: Any) -> np.random.Generator:
    """The one random generator of a fit."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    return np.random.default_rng(random_state)
