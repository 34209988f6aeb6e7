"""Python source of estimators, ready to paste and run."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import gramian
from gramian.backend import array_ops


def changed_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, in the constructor's order.

    The number of features is always included.
    """
    signature = inspect.signature(type(estimator).__init__).parameters
    given = estimator.get_params(deep=False)
    return {
        name: given[name]
        for name, parameter in signature.items()
        if name in given and (name == "n_components" or not _same(given[name], parameter.default))
    }


def _same(value: Any, default: Any) -> bool:
    return (
        type(value) is type(default)
        and isinstance(value, int | float | str | tuple | None)
        and (value == default)
    )


class Source:
    """Write values as source; ``imports`` collects imports, ``unknown`` names left to define.

    The source of a user's function is unknown, so the code refers to it by name. ``variables`` are
    values that already have a name.
    """

    def __init__(self) -> None:
        self.imports: set[tuple[str, str]] = set()
        self.lines: set[str] = set()  # import lines as they are
        self.unknown: set[str] = set()
        self.variables: list[tuple[Any, str]] = []

    def of(self, value: Any) -> str:
        for known, name in self.variables:
            if value is known:
                return name
        if isinstance(value, BaseEstimator):
            return self._estimator(value)
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.of(k)}: {self.of(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list | tuple):
            inside = ", ".join(map(self.of, value))
            if isinstance(value, list):
                return f"[{inside}]"
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, np.generic):
            return self.of(value.item())
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, float):
            return repr(float(value))
        if isinstance(value, int | None):
            return repr(value)
        if callable(value):
            name = getattr(value, "__name__", "")
            name = name if name.isidentifier() else "function"
            self.unknown.add(name)
            return name
        self.imports.add(("", "numpy as np"))
        return f"np.array({array_ops.to_numpy(value).tolist()!r})"

    def named(self, name: str, value: Any) -> str:
        """Return an assignment; what is written later refers to the value by this name."""
        line = f"{name} = {self.of(value)}"
        self.variables.append((value, name))
        return line

    def _estimator(self, estimator: BaseEstimator) -> str:
        cls = type(estimator)
        public = getattr(gramian, cls.__name__, None) is cls
        self.imports.add(("gramian" if public else _public_module(cls), cls.__name__))
        signature = inspect.signature(cls.__init__).parameters
        arguments: list[str] = []
        in_order = True
        for name, value in changed_parameters(estimator).items():
            text = self.of(value)
            # Numbers and estimators are positional as long as no earlier parameter is missing.
            in_order = in_order and list(signature)[1 + len(arguments)] == name
            in_order = in_order and not isinstance(value, str)
            in_order = in_order and signature[name].kind is not inspect.Parameter.KEYWORD_ONLY
            arguments.append(text if in_order else f"{name}={text}")
        return f"{cls.__name__}({', '.join(arguments)})"

    def header(self) -> str:
        """Return the import lines."""
        by_module: dict[str, list[str]] = {}
        for module, name in sorted(self.imports, key=lambda item: (item[0], _case(item[1]))):
            by_module.setdefault(module, []).append(name)
        lines = [f"import {name}" for name in by_module.pop("", [])]
        lines += [f"from {module} import {', '.join(names)}" for module, names in by_module.items()]
        modules = sorted({*lines, *self.lines}, key=lambda line: line.split()[1])
        return "\n".join(sorted(modules, key=lambda line: line.startswith("from")))


def _public_module(cls: type) -> str:
    """Return the shortest module that has the class: sklearn.dummy for sklearn.dummy._dummy."""
    parts = cls.__module__.split(".")
    own = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
    having = (m for m in own if getattr(sys.modules.get(m), cls.__name__, None) is cls)
    return next(having, cls.__module__)


def _case(name: str) -> tuple[int, str]:
    """Sort key of imported names: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name
