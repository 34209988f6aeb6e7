"""Write an estimator as Python code that makes it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import signature

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

WIDTH = 88


def code(model: Pipeline) -> str:
    """Return code that makes the pipeline, without its fit, and fits it to ``X`` and ``y``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian import RBF, KernelRidge
    >>> print(code(make_pipeline(StandardScaler(), KernelRidge(0.1, RBF(2.0)))))
    from gramian import KernelRidge, RBF
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    <BLANKLINE>
    model = make_pipeline(
        StandardScaler(),
        KernelRidge(alpha=0.1, kernel=RBF(gamma=2.0)),
    )
    model.fit(X, y)
    """
    steps = [step for _, step in model.steps]
    names: dict[str, set[str]] = {"sklearn.pipeline": {"make_pipeline"}}
    for each in _estimators(steps):
        names.setdefault(_module(each), set()).add(type(each).__name__)
    imports = [f"from {where} import {', '.join(sorted(names[where]))}" for where in sorted(names)]
    inside = "".join(f"    {source(step, 4)},\n" for step in steps)
    return "\n".join([*imports, "", f"model = make_pipeline(\n{inside})", "model.fit(X, y)"])


def source(value: object, indent: int = 0) -> str:
    """Return the code of a value: an estimator, an array, or what ``repr`` writes."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
    if not isinstance(value, BaseEstimator):
        return repr(value)
    given = _given(value)
    line = f"{type(value).__name__}({', '.join(f'{k}={source(v)}' for k, v in given.items())})"
    if indent + len(line) < WIDTH or not given:
        return line
    pad = " " * (indent + 4)
    parts = "".join(f"{pad}{name}={source(v, indent + 4)},\n" for name, v in given.items())
    return f"{type(value).__name__}(\n{parts}{' ' * indent})"


def _given(estimator: BaseEstimator) -> dict[str, object]:
    """Return the parameters that differ from their defaults."""
    usual = signature(type(estimator)).parameters
    found = {}
    for name, value in estimator.get_params(deep=False).items():
        default = usual[name].default
        if isinstance(value, np.ndarray | BaseEstimator) or value != default:
            found[name] = value
    return found


def _estimators(values: Iterable[object]) -> Iterator[BaseEstimator]:
    for value in values:
        if isinstance(value, BaseEstimator):
            yield value
            yield from _estimators(value.get_params(deep=False).values())


def _module(estimator: BaseEstimator) -> str:
    """Return the public module of a class: gramian, or the package of scikit-learn."""
    parts = type(estimator).__module__.split(".")
    return parts[0] if parts[0] == "gramian" else ".".join(parts[:2])
