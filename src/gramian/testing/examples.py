"""Example objects and example rows for the laws."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from gramian.backend.array_ops import Array
from gramian.kernels import RBF, Linear


def _squared_products(x: Array, y: Array) -> Array:
    return (x @ y.T + 1.0) ** 2


# Values for parameters without a default, so that any exported class can be instantiated.
_ARGUMENTS: dict[str, object] = {
    "left": RBF(gamma=0.3),
    "right": Linear(),
    "kernel": RBF(gamma=0.3),
    "columns": [0, 2],
    "factor": 2.0,
    "function": _squared_products,
    "indices": [3, 1, 60, 7, 33, 11, 50, 21],
    "points": np.random.default_rng(0).standard_normal((8, 5)),
    "probabilities": np.full(200, 1 / 200),
}


def example(cls: type) -> Any:
    """Return an instance of an exported class, made with its defaults.

    Parameters
    ----------
    cls : type

    See Also
    --------
    check_kernel : a check that such instances pass.

    Examples
    --------
    >>> from gramian import RBF
    >>> from gramian.testing import example
    >>> example(RBF)
    RBF()
    """
    required = [
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is parameter.empty
    ]
    return cls(**{name: _ARGUMENTS[name] for name in required})


def example_rows(n: int = 90, d: int = 5, *, positive: bool = False, seed: int = 0) -> np.ndarray:
    """Return n rows in three clouds away from the origin; shape (n, d)."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.standard_normal((3, d))
    X = centres[np.arange(n) % 3] + 0.5 * rng.standard_normal((n, d))
    return np.abs(X) if positive else X


def example_classes(n: int) -> np.ndarray:
    """Return the cloud of each row of ``example_rows``; shape (n,)."""
    return np.arange(n) % 3


def example_target(X: np.ndarray) -> np.ndarray:
    """Return a real-valued target that depends on the first column and the cloud; shape (n,)."""
    return X[:, 0] + example_classes(len(X))
