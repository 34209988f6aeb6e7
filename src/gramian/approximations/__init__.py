"""Approximations of the kernel matrix."""

from gramian.approximations.base import Approximation, ApproximationWarning
from gramian.approximations.blocks import BKA, MEKA
from gramian.approximations.craft import CRAFT
from gramian.approximations.exact import Exact
from gramian.approximations.fourier import RandomFourier
from gramian.approximations.kernel_jl import KernelJL
from gramian.approximations.local import Local
from gramian.approximations.maclaurin import RandomMaclaurin
from gramian.approximations.nystroem import Nystroem
from gramian.approximations.tensor_sketch import TensorSketch

__all__ = [
    "BKA",
    "CRAFT",
    "MEKA",
    "Approximation",
    "ApproximationWarning",
    "Exact",
    "KernelJL",
    "Local",
    "Nystroem",
    "RandomFourier",
    "RandomMaclaurin",
    "TensorSketch",
]
