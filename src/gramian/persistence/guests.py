"""The classes of scikit-learn that a model file may contain: those of pipelines made by ``tune``.

Their attributes come from the file, so only those are accepted that such an object has: its
parameters, and what its fit learned. A pipeline with ``memory`` would read pickles from a folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import signature

from sklearn.base import BaseEstimator

PLACES = {
    "Pipeline": "sklearn.pipeline",
    "QuantileTransformer": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
}
VERSION = "_sklearn_version"  # scikit-learn warns if another version wrote the state


def named(name: str) -> type | None:
    """Return the class of this name, if there is one; its module is imported only then."""
    return getattr(import_module(PLACES[name]), name) if name in PLACES else None


def check(cls: type, state: Mapping[str, object]) -> None:
    """Refuse attributes that no such object has; objects of other classes pass."""
    if cls.__name__ not in PLACES or not cls.__module__.startswith(PLACES[cls.__name__]):
        return
    parameters = signature(cls).parameters
    for name in state:
        learned = name.endswith("_") and not name.startswith("_")
        if name not in parameters and not learned and name != VERSION:
            raise ValueError(f"no {cls.__name__} of a model has the attribute {name!r:.50}")
    if cls.__name__ == "Pipeline":
        _check_pipeline(state)


def _check_pipeline(state: Mapping[str, object]) -> None:
    if state.get("memory") is not None:
        raise ValueError("the pipeline of a model must have no memory: it would be a folder")
    steps = state.get("steps")
    if not isinstance(steps, list) or not steps or not all(map(_is_step, steps)):
        raise ValueError("the steps of a pipeline must be pairs of a name and an estimator")


def _is_step(step: object) -> bool:
    if not isinstance(step, tuple) or len(step) != 2:
        return False
    return isinstance(step[0], str) and isinstance(step[1], BaseEstimator)
