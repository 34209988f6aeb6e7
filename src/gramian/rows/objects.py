"""Data whose rows are no numbers: strings, sets, graphs, lists of any length.

They are held as a 1-D array of Python objects, one for each row, and are handed to a kernel
function as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Number
from typing import Any

import numpy as np

from gramian.backend import array_ops


def is_table(X: Any) -> bool:
    """Whether X is a table of numbers, or could only be meant as one; else its rows are objects.

    A list is a table where its entries are equally long lists of numbers. What has a length is not
    always a row: so have strings and graphs.
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


def _is_list(X: Any) -> bool:
    has_entries = hasattr(X, "__len__") and hasattr(X, "__getitem__")
    return has_entries and not isinstance(X, str | bytes | Mapping) and not array_ops.issparse(X)


def _width(x: Any) -> int | None:
    """How many numbers x holds, 0 where it is one itself; None where it is anything else."""
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


def text_columns(X: Any) -> list[str]:
    """The names of the columns of a frame or object array that hold no numbers."""
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


def as_objects(X: Any, name: str, owner: str | None = None, min_rows: int = 1) -> np.ndarray:
    """The entries of X as a 1-D array of objects; those of a frame or an array are its rows."""
    if not _is_list(X):
        raise ValueError(
            f"Expected a list of objects for {name}, one for each row; got an object of type "
            f"{type(X).__name__}. Put a single object into a list."
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


def numbers_or_objects(given: Any, name: str) -> np.ndarray:
    """A list of row numbers as integers, any other list as objects."""
    objects = as_objects(given, name)
    numbers = all(isinstance(x, Integral) and not isinstance(x, bool) for x in objects)
    return objects.astype(np.intp) if numbers else objects
