"""Data whose rows are not numbers: strings, sets, graphs, lists of any length.

They are stored as a 1-D array of Python objects, one per row, and passed to a kernel function
unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Number

import numpy as np

from gramian.backend import array_ops
from gramian.backend.typing import ArrayLike


def is_table(X: ArrayLike) -> bool:
    """Whether X is, or can only be meant as, a table of numbers; otherwise its rows are objects.

    A list is a table if its entries are lists of numbers with equal lengths. Having a length does
    not make an entry a row: strings and graphs have one too.
    """
    if array_ops.issparse(X) or array_ops.is_foreign(X):
        return True
    if hasattr(X, "columns") or getattr(X, "ndim", None) == 2:
        return not text_columns(X)
    if hasattr(X, "__array__"):
        values = np.asarray(X)
        return values.ndim < 2 and _is_numeric(values)
    widths = {_width(X[i]) for i in range(len(X))} if _is_list(X) else set()
    return len(widths) == 1 and None not in widths


def _is_list(X: ArrayLike) -> bool:
    has_entries = hasattr(X, "__len__") and hasattr(X, "__getitem__")
    return has_entries and not isinstance(X, str | bytes | Mapping) and not array_ops.issparse(X)


def _width(x: object) -> int | None:
    """Return the length of a list of numbers, 0 for a number, None for anything else."""
    if isinstance(x, Number | np.bool_):
        return 0
    if isinstance(x, list | tuple):
        return len(x) if all(isinstance(value, Number | np.bool_) for value in x) else None
    if hasattr(x, "__array__") or array_ops.is_foreign(x):
        values = array_ops.to_numpy(x)
        return len(values) if values.ndim == 1 and _is_numeric(values) else None
    return None


def _is_numeric(values: np.ndarray) -> bool:
    return values.dtype.kind in "biufc"


def text_columns(X: ArrayLike) -> list[str]:
    """Return the names of the columns of a data frame or object array that are not numeric."""
    if hasattr(X, "columns"):
        columns = [(repr(str(c)), X[c]) for c in X.columns]
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS":
        columns = [(str(i), X[:, i]) for i in range(X.shape[1])]
    else:
        return []
    bad = []
    for label, column in columns:
        try:
            np.asarray(column).astype(float)
        except (TypeError, ValueError):
            bad.append(label)
    return bad


def as_objects(X: ArrayLike, name: str, owner: str | None = None, min_rows: int = 1) -> np.ndarray:
    """Return the entries of X, or the rows of a data frame or array, as a 1-D array of objects."""
    if not _is_list(X):
        raise ValueError(
            f"Expected a list of objects for {name}, one for each row; got an object of type "
            f"{type(X).__name__}. Put a single object in a list."
        )
    entries = np.asarray(X) if hasattr(X, "__array__") else X
    if len(entries) < min_rows:
        by = f" by {owner}" if owner else ""
        raise ValueError(
            f"Found {name} with {len(entries)} sample(s) while a minimum of {min_rows} is "
            f"required{by}."
        )
    n = len(entries)
    return np.fromiter((entries[i] for i in range(n)), dtype=object, count=n)


def numbers_or_objects(values: ArrayLike, name: str) -> np.ndarray:
    """Return a list of row numbers as integers, any other list as objects."""
    objects = as_objects(values, name)
    numbers = all(isinstance(x, Integral) and not isinstance(x, bool) for x in objects)
    return objects.astype(np.intp) if numbers else objects
