"""gramian: kernel methods without the n-by-n matrix."""

import typing

from gramian import approximations, kernels, learners, samplers
from gramian.analysis.accuracy import ErrorEstimate, relative_error
from gramian.approximations import *
from gramian.backend.config import MemoryBudgetError, config_context, get_config, set_config
from gramian.backend.memory import MemoryEstimate
from gramian.kernels import *
from gramian.learners import *
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.persistence.models import ModelFileError, load, save
from gramian.rows import ArrayRows, FeatureRows, Rows, as_rows
from gramian.rows.files.rows import FileRows, open_rows
from gramian.samplers import *

if typing.TYPE_CHECKING:
    from gramian.analysis.comparison import Comparison, compare

__version__ = "0.1.0.dev0"

__all__ = [
    "ArrayRows",
    "BlockCore",
    "Comparison",
    "ErrorEstimate",
    "Factors",
    "FeatureRows",
    "FileRows",
    "Gram",
    "MemoryBudgetError",
    "MemoryEstimate",
    "ModelFileError",
    "Rows",
    "as_rows",
    "compare",
    "config_context",
    "get_config",
    "load",
    "open_rows",
    "relative_error",
    "save",
    "set_config",
]
# What these packages export is public: a kernel, sampler, approximation or learner is named there.
__all__ += approximations.__all__
__all__ += kernels.__all__
__all__ += learners.__all__
__all__ += samplers.__all__


def __getattr__(name: str) -> typing.Any:
    if name in ("Comparison", "compare"):  # with the charts of the report: imported when asked for
        from gramian.analysis import comparison

        return getattr(comparison, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
