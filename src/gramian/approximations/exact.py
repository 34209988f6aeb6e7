"""Exact: no approximation, however many rows there are."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from gramian.estimators.base import KernelParameter
from gramian.estimators.parameters import KernelLike

__all__ = ["Exact"]


class Exact(KernelParameter, BaseEstimator):
    """A kernel that a learner uses exactly, even if it would approximate a plain kernel.

    A matrix that is too large for the memory budget is not stored; its entries are recomputed in
    every pass.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"

    See Also
    --------
    Nystroem : the approximation that replaces a plain kernel when there are many rows.
    Gram : the exact matrix as an oracle.

    Examples
    --------
    >>> from gramian import RBF, Exact, KernelRidge
    >>> KernelRidge(kernel=Exact(RBF(gamma=0.1)))
    KernelRidge(kernel=Exact(kernel=RBF(gamma=0.1)))
    """

    has_features = False

    def __init__(self, kernel: KernelLike = "rbf") -> None:
        self.kernel = kernel
