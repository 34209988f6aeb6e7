"""gramian: kernel methods without the n-by-n matrix."""

from gramian._settings import MemoryBudgetError, config_context, get_config, set_config
from gramian.gram import Gram
from gramian.kernels import (
    RBF,
    AdditiveChi2,
    Cauchy,
    Chi2,
    Cosine,
    Exponential,
    ExponentialDot,
    FunctionKernel,
    Kernel,
    KernelWarning,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Product,
    RationalQuadratic,
    Scaled,
    Sigmoid,
    Sum,
    as_kernel,
    kernel_names,
)
from gramian.learners import KernelKMeans, KernelPCA, KernelRidge, KernelRidgeClassifier
from gramian.rows import ArrayRows, Rows, as_rows

__version__ = "0.1.0.dev0"

__all__ = [
    "RBF",
    "AdditiveChi2",
    "ArrayRows",
    "Cauchy",
    "Chi2",
    "Cosine",
    "Exponential",
    "ExponentialDot",
    "FunctionKernel",
    "Gram",
    "Kernel",
    "KernelKMeans",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeClassifier",
    "KernelWarning",
    "Laplacian",
    "Linear",
    "Matern",
    "MemoryBudgetError",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Rows",
    "Scaled",
    "Sigmoid",
    "Sum",
    "as_kernel",
    "as_rows",
    "config_context",
    "get_config",
    "kernel_names",
    "set_config",
]
