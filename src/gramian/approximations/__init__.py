"""Approximations of the kernel matrix."""

from gramian.approximations.base import Approximation
from gramian.approximations.exact import Exact
from gramian.approximations.nystroem import ApproximationWarning, Nystroem

__all__ = ["Approximation", "ApproximationWarning", "Exact", "Nystroem"]
