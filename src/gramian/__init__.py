"""gramian: kernel methods without the n-by-n matrix."""

import typing

from gramian.analysis.accuracy import ErrorEstimate, relative_error
from gramian.approximations import (
    BKA,
    CRAFT,
    MEKA,
    Approximation,
    ApproximationWarning,
    Exact,
    KernelJL,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TensorSketch,
)
from gramian.backend.config import MemoryBudgetError, config_context, get_config, set_config
from gramian.backend.memory import MemoryEstimate
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
from gramian.learners import (
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    OnlineKernelKMeans,
)
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.persistence.models import ModelFileError, load, save
from gramian.rows import ArrayRows, FeatureRows, Rows, as_rows
from gramian.rows.files.rows import FileRows, open_rows
from gramian.samplers import (
    BLESS,
    CSI,
    KDPP,
    SQUEAK,
    ColumnNorm,
    Diagonal,
    GivenIndices,
    GivenPoints,
    Greedy,
    KMeansCentres,
    KMeansPlusPlus,
    Landmarks,
    LeverageScores,
    Probabilities,
    RecursiveLeverage,
    RPCholesky,
    Sampler,
    Uniform,
    as_sampler,
    sampler_names,
)

if typing.TYPE_CHECKING:
    from gramian.analysis.comparison import Comparison, compare

__version__ = "0.1.0.dev0"

__all__ = [
    "BKA",
    "BLESS",
    "CRAFT",
    "CSI",
    "KDPP",
    "MEKA",
    "RBF",
    "SQUEAK",
    "AdditiveChi2",
    "Approximation",
    "ApproximationWarning",
    "ArrayRows",
    "BlockCore",
    "Cauchy",
    "Chi2",
    "ColumnNorm",
    "Comparison",
    "Cosine",
    "Diagonal",
    "ErrorEstimate",
    "Exact",
    "Exponential",
    "ExponentialDot",
    "Factors",
    "FeatureRows",
    "FileRows",
    "FunctionKernel",
    "GivenIndices",
    "GivenPoints",
    "Gram",
    "Greedy",
    "KMeansCentres",
    "KMeansPlusPlus",
    "Kernel",
    "KernelJL",
    "KernelKMeans",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeClassifier",
    "KernelWarning",
    "Landmarks",
    "Laplacian",
    "LeverageScores",
    "Linear",
    "Matern",
    "MemoryBudgetError",
    "MemoryEstimate",
    "ModelFileError",
    "Nystroem",
    "OnlineKernelKMeans",
    "Polynomial",
    "Precomputed",
    "Probabilities",
    "Product",
    "RPCholesky",
    "RandomFourier",
    "RandomMaclaurin",
    "RationalQuadratic",
    "RecursiveLeverage",
    "Rows",
    "Sampler",
    "Scaled",
    "Sigmoid",
    "Sum",
    "TensorSketch",
    "Uniform",
    "as_kernel",
    "as_rows",
    "as_sampler",
    "compare",
    "config_context",
    "get_config",
    "kernel_names",
    "load",
    "open_rows",
    "relative_error",
    "sampler_names",
    "save",
    "set_config",
]


def __getattr__(name: str) -> typing.Any:
    if name in ("Comparison", "compare"):  # with the charts of the report: imported when asked for
        from gramian.analysis import comparison

        return getattr(comparison, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
