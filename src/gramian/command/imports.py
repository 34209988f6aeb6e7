"""Import scikit-learn and pyarrow without what the command does not use.

scikit-learn imports scipy.stats as it starts, and pandas if that is installed; pyarrow imports
pandas with the first value it converts. These take longer than all the rest of a command on a small
table. The command has no data frames.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


@contextmanager
def quick() -> Iterator[None]:
    """Import scikit-learn without scipy.stats, and go on as if pandas were not installed."""
    finder = _Without("pandas")
    sys.meta_path.insert(0, finder)
    try:
        _import_sklearn()
        yield
    finally:
        sys.meta_path.remove(finder)


class _Without:
    """An import finder that knows one module not to exist."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r} in this command", name=name)


class _Later(ModuleType):
    """Stands for a module; imports it when asked for anything that it contains."""

    def __getattr__(self, name: str) -> object:
        self.drop()
        return getattr(import_module(self.__name__), name)

    def drop(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def _import_sklearn() -> None:
    stats = _Later("scipy.stats")
    sys.modules.setdefault(stats.__name__, stats)
    try:
        import sklearn.base  # noqa: F401
    finally:
        stats.drop()
