"""gramian: kernel methods without the n-by-n matrix.

Names are imported when they are first used, so that what needs few of them starts quickly.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from gramian.analysis.accuracy import ErrorEstimate, relative_error
    from gramian.analysis.comparison import Comparison, compare
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
    from gramian.rows.files.opening import open_rows
    from gramian.rows.files.rows import FileRows
    from gramian.samplers import *
    from gramian.tuning import BlockTransformer, tune

__version__ = "0.1.0.dev0"

_MODULES = {
    "analysis.accuracy": ("ErrorEstimate", "relative_error"),
    "analysis.comparison": ("Comparison", "compare"),
    "backend.config": ("MemoryBudgetError", "config_context", "get_config", "set_config"),
    "backend.memory": ("MemoryEstimate",),
    "matrices.block_core": ("BlockCore",),
    "matrices.factors": ("Factors",),
    "matrices.gram": ("Gram",),
    "persistence.models": ("ModelFileError", "load", "save"),
    "rows": ("ArrayRows", "FeatureRows", "Rows", "as_rows"),
    "rows.files.opening": ("open_rows",),
    "rows.files.rows": ("FileRows",),
    "tuning": ("BlockTransformer", "tune"),
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}
# What these packages export is public: a kernel, sampler, approximation or learner is named there.
_PACKAGES = ("kernels", "samplers", "approximations", "learners")


def _package(name: str) -> typing.Any:
    return importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> typing.Any:
    if name in _WHERE:
        value = getattr(_package(_WHERE[name]), name)
    elif name in _PACKAGES:
        return _package(name)
    elif name == "__all__":
        return [*_WHERE, *(one for package in _PACKAGES for one in _package(package).__all__)]
    elif name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        owner = next((p for p in _PACKAGES if name in _package(p).__all__), None)
        if owner is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(_package(owner), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
