"""Warn if one column decides all distances."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from gramian.kernels import KernelWarning
from gramian.rows import ArrayRows, Rows

SAMPLE = 1000
SHARE = 0.999  # of the variance of all columns


def warn_if_one_column_dominates(rows: Rows, names: Sequence[str] | None) -> None:
    """Look at a sample of rows in memory, and name a column that has nearly all the variance."""
    data = getattr(rows, "data", None)
    if type(rows) is not ArrayRows or not isinstance(data, np.ndarray) or rows.shape[1] < 2:
        return
    step = max(rows.shape[0] // SAMPLE, 1)
    sample = np.asarray(data[::step][:SAMPLE], dtype=rows.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = sample - sample.mean(axis=0)
        variances = np.einsum("ij,ij->j", centred, centred, dtype=np.float64)
        share = variances.max() / variances.sum() if variances.sum() > 0 else 0.0
    if not SHARE < share < 1.0:
        return
    column = int(variances.argmax())
    named = column if names is None else repr(str(names[column]))
    warnings.warn(
        f"Column {named} has more than {SHARE:.1%} of the variance of all columns, so it alone "
        "decides the distances between rows. Scale the columns (scikit-learn's StandardScaler).",
        KernelWarning,
        stacklevel=2,
    )
