"""Loops that NumPy cannot run fast, compiled by numba if it is installed.

Nothing is compiled on import. A loop is compiled when it is first used on enough data, and then
kept in numba's cache on disk. Each has an equivalent that does not need numba.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gramian.backend import optional
from gramian.backend.array_ops import Array

Loop = Callable[..., Any]

# Smaller tiles do not use numba: small data should not wait for its import.
LEAST_TERMS = 1 << 18
CHUNK = 256  # points at a time: their distances to two rows stay in the innermost cache

_compiling = threading.Lock()


def cityblock(x: Array, points: Array, out: Array) -> Loop | None:
    """Return ``loop(x, columns, scale, out)`` for scaled L1 distances, or None without numba.

    ``columns`` are the points, transposed and contiguous. All arrays have the dtype of ``out``.
    """
    plain = all(isinstance(a, np.ndarray) for a in (x, points, out))
    if not plain or x.shape[0] * points.size < LEAST_TERMS or not is_available():
        return None
    return compiled(_scaled_cityblock)


@cache
def is_available() -> bool:
    return optional.is_importable("numba")


def compiled(loop: Loop) -> Loop:
    """Return the loop, compiled. It runs outside Python's lock, and its numbers are never NaN."""
    with _compiling:
        return _compile(loop)


@cache
def _compile(loop: Loop) -> Loop:
    import numba

    # Sums keep their order. Divisions do not look for zeros, which raise no error here.
    options: Any = {"nogil": True, "fastmath": {"nnan", "nsz"}, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder to keep it in
        return numba.njit(**options)(loop)


def _scaled_cityblock(x: np.ndarray, columns: np.ndarray, scale: float, out: np.ndarray) -> None:
    """Compare two rows with a chunk of points, four features at a time.

    The inner loops run along the points, so they vectorise without changing the order of sums.
    """
    n, d = x.shape
    m = columns.shape[1]
    first, second = np.empty(CHUNK, out.dtype), np.empty(CHUNK, out.dtype)
    for start in range(0, m, CHUNK):
        size = min(CHUNK, m - start)
        for i in range(0, n, 2):
            k = min(i + 1, n - 1)  # with an odd number of rows, the last is paired with itself
            first[:], second[:] = 0, 0
            for c in range(0, d - 3, 4):
                a0, a1, a2, a3 = x[i, c], x[i, c + 1], x[i, c + 2], x[i, c + 3]
                b0, b1, b2, b3 = x[k, c], x[k, c + 1], x[k, c + 2], x[k, c + 3]
                y0 = columns[c, start : start + size]
                y1 = columns[c + 1, start : start + size]
                y2 = columns[c + 2, start : start + size]
                y3 = columns[c + 3, start : start + size]
                for j in range(size):
                    first[j] += (abs(a0 - y0[j]) + abs(a1 - y1[j])) + (
                        abs(a2 - y2[j]) + abs(a3 - y3[j])
                    )
                    second[j] += (abs(b0 - y0[j]) + abs(b1 - y1[j])) + (
                        abs(b2 - y2[j]) + abs(b3 - y3[j])
                    )
            for c in range(d // 4 * 4, d):
                a0, b0 = x[i, c], x[k, c]
                y0 = columns[c, start : start + size]
                for j in range(size):
                    first[j] += abs(a0 - y0[j])
                    second[j] += abs(b0 - y0[j])
            for j in range(size):
                out[i, start + j] = scale * first[j]
                out[k, start + j] = scale * second[j]
