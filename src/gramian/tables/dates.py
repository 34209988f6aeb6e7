"""Dates as numbers: the day, and where it is in the year, the week and the day."""

from __future__ import annotations

import numpy as np

PARTS = ("", ": year sin", ": year cos", ": week sin", ": week cos", ": day sin", ": day cos")


def parts(days: np.ndarray) -> np.ndarray:
    """Return the parts of dates, given as days since 1970: the day itself and three cycles.

    Shape (n,) becomes (n, 7).
    """
    whole = np.floor(days)
    date = whole.astype("datetime64[D]")
    start = date.astype("datetime64[Y]")
    since = (date - start.astype("datetime64[D]")).astype(np.float64)
    end = (start + np.timedelta64(1, "Y")).astype("datetime64[D]")
    length = (end - start.astype("datetime64[D]")).astype(np.float64)
    phases = (since / length, (whole + 3) % 7 / 7, days - whole)
    out = np.empty((len(days), len(PARTS)))
    out[:, 0] = days
    for i, phase in enumerate(phases):
        out[:, 1 + 2 * i] = np.sin(2 * np.pi * phase)
        out[:, 2 + 2 * i] = np.cos(2 * np.pi * phase)
    return out
