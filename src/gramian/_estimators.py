"""What approximations and learners share as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from gramian.kernels import as_kernel

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

    def set_params(self, **params: Any) -> Any:
        # ``kernel__gamma`` may be set where the kernel is given by name: it becomes an object.
        if isinstance(self.kernel, str) and any(p.startswith("kernel__") for p in params):
            self.kernel = as_kernel(params.pop("kernel", self.kernel))
        return super().set_params(**params)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        kernel = self.kernel
        while hasattr(kernel, "kernel") and not hasattr(kernel, "against"):
            kernel = kernel.kernel  # an approximation's own
        try:
            kernel = as_kernel(kernel)
        except (TypeError, ValueError):  # reported by fit
            return tags
        tags.input_tags.sparse = kernel.takes_sparse
        tags.input_tags.pairwise = kernel.is_matrix
        tags.input_tags.positive_only = not kernel.takes_negative
        return tags
