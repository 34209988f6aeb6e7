"""Rows of named data sets, as the benchmarks take them."""

from __future__ import annotations

import numpy as np

from gramian import datasets

IMAGES = ("mnist", "digits")


def rows(name: str, dtype: str) -> np.ndarray:
    """Columns in [0, 1]: each by its own range, those of images by their common one."""
    X = datasets.load(name).X
    if name in IMAGES:
        return np.asarray(X.reshape(len(X), -1) / X.max(), dtype=dtype)
    return datasets.scaled(X, dtype)
