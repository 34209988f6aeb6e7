"""Exact: no approximation, however many rows there are."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from gramian.estimators.base import KernelParameter

__all__ = ["Exact"]


class Exact(KernelParameter, BaseEstimator):
    """A kernel that a learner is to use exactly, also where it would approximate a bare kernel.

    The matrix is not stored where it is large: its entries are computed anew in each pass.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"

    Examples
    --------
    >>> from gramian import RBF, Exact, KernelRidge
    >>> KernelRidge(kernel=Exact(RBF(gamma=0.1)))
    KernelRidge(kernel=Exact(kernel=RBF(gamma=0.1)))
    """

    def __init__(self, kernel: Any = "rbf") -> None:
        self.kernel = kernel
