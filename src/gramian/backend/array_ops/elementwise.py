"""Element-wise functions that write into existing memory."""

from __future__ import annotations

import numpy as np

from gramian.backend.array_ops.conversion import astype
from gramian.backend.array_ops.libraries import is_foreign, is_lazy, namespace, writes_in_place
from gramian.backend.typing import Array


def subtract(x: Array, y: Array, out: Array) -> Array:
    """Write x - y into ``out``, in the dtype of ``out``."""
    if not is_foreign(x):
        return np.subtract(x, y, out=out, casting="same_kind")
    if writes_in_place(x):
        return namespace(x).subtract(x, y, out=out)
    out[...] = astype(x, out.dtype) - y
    return out


def elementwise(name: str, x: Array, out: Array) -> Array:
    """Apply the array API's element-wise function ``name`` to x and write the result to ``out``."""
    function = getattr(namespace(x), name)
    if writes_in_place(x):
        return function(x, out=out)
    if is_lazy(x):  # lazy: there is no memory to write into
        return function(x)
    out[...] = function(x)
    return out


def inplace(name: str, x: Array) -> Array:
    """Apply the array API's element-wise function ``name`` to x in place."""
    return elementwise(name, x, x)


def cosines_and_sines(x: Array, cosines: Array, sines: Array) -> None:
    """Write cos(x) into ``cosines`` and the sines of the first columns into ``sines``.

    ``x`` and ``cosines`` have shape (n, m), ``sines`` (n, j) with j <= m. x is overwritten.
    """
    first = sines.shape[1]
    if is_foreign(x) or x.dtype != np.float64:
        elementwise("cos", x, cosines)
        elementwise("sin", x[:, :first], sines)
        return
    # NumPy vectorises tangents of doubles where the processor allows it, but not cosines and
    # sines: tangents are then 10 times faster, and elsewhere one tangent still costs less than
    # both. With t = tan(x / 2), cos x = 2 / (1 + t²) - 1 and sin x = 2t / (1 + t²).
    x *= 0.5
    np.tan(x, out=x)
    np.multiply(x, x, out=cosines)
    cosines += 1.0
    np.divide(2.0, cosines, out=cosines)
    np.multiply(cosines[:, :first], x[:, :first], out=sines)
    cosines -= 1.0


def power(x: Array, exponent: int) -> Array:
    """Raise x to a positive integer power in place, by products: faster than pow."""
    if exponent == 1:
        return x
    if exponent % 2:
        x *= power(x * x, exponent // 2)
        return x
    x *= x
    return power(x, exponent // 2)


def clip(x: Array, low: float | None = None, high: float | None = None) -> Array:
    """Clip x to [low, high] in place."""
    if is_foreign(x):
        if writes_in_place(x):
            return namespace(x).clip(x, low, high, out=x)
        if is_lazy(x):
            return namespace(x).clip(x, low, high)
        x[...] = namespace(x).clip(x, low, high)
        return x
    # Usually nothing is out of bounds, and checking costs a quarter of what clipping does.
    if low is not None and not x.min(initial=np.inf) >= low:
        np.maximum(x, x.dtype.type(low), out=x)
    if high is not None and not x.max(initial=-np.inf) <= high:
        np.minimum(x, x.dtype.type(high), out=x)
    return x
