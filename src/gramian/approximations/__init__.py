"""Approximations of the kernel matrix."""

from gramian.approximations.base import Approximation, ApproximationWarning
from gramian.approximations.blocks import BKA, MEKA
from gramian.approximations.exact import Exact
from gramian.approximations.fourier import RandomFourier
from gramian.approximations.kernel_jl import KernelJL
from gramian.approximations.nystroem import Nystroem

__all__ = [
    "BKA",
    "MEKA",
    "Approximation",
    "ApproximationWarning",
    "Exact",
    "KernelJL",
    "Nystroem",
    "RandomFourier",
]
