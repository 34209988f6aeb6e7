"""What approximations and learners share as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import validate_data

from gramian import _files
from gramian.kernels import Kernel, as_kernel
from gramian.rows import Rows

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


def generator(random_state: Any) -> np.random.Generator:
    """The one random generator of a fit."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    return np.random.default_rng(random_state)


class KernelParameter:
    """The parameter ``kernel`` of an estimator, and what follows from it for scikit-learn.

    It comes before ``BaseEstimator`` among the bases.
    """

    kernel: Any
    kernel_: Kernel

    def set_params(self, **params: Any) -> Any:
        # ``kernel__gamma`` may be set where the kernel is given by name: it becomes an object.
        if isinstance(self.kernel, str) and any(p.startswith("kernel__") for p in params):
            self.kernel = as_kernel(params.pop("kernel", self.kernel))
        return super().set_params(**params)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        try:
            kernel = self._bare_kernel()
        except (TypeError, ValueError):  # reported by fit
            return tags
        tags.input_tags.sparse = kernel.takes_sparse
        tags.input_tags.pairwise = kernel.is_matrix
        tags.input_tags.positive_only = not kernel.takes_negative
        return tags

    def _bare_kernel(self) -> Kernel:
        kernel = self.kernel
        while hasattr(kernel, "kernel") and not hasattr(kernel, "against"):
            kernel = kernel.kernel  # an approximation's own
        return as_kernel(kernel)

    def _read(self, X: Any, *, reset: bool, min_rows: int = 1) -> Rows:
        """X as rows, checked: of any kind where ``reset``, as in a fit; else as those of the fit.

        Whether they are objects is then known by the kernel given, where that is an approximation
        fitted already, or by this estimator.
        """
        kernel = self._bare_kernel() if reset else self.kernel_
        objects = getattr(self.kernel if reset else self, "_on_objects", None)
        rows = kernel.read(X, owner=type(self).__name__, min_rows=min_rows, objects=objects)
        if reset:
            self._on_objects = rows.are_objects
        if not rows.are_objects or hasattr(X, "columns"):
            validate_data(self, _table(X, rows), reset=reset, skip_check_array=True)
        elif reset:  # objects have no features that could be counted; an earlier fit's may have had
            for name in ("n_features_in_", "feature_names_in_"):
                vars(self).pop(name, None)
        return rows


def _table(X: Any, rows: Rows) -> Any:
    """What scikit-learn takes the number of the columns from, and their names."""
    if rows.names is not None:  # it knows frames and tables only
        return _files.empty_table(rows.names)
    return rows if _files.is_path(X) else X
