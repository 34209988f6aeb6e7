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
from numpy.lib.stride_tricks import as_strided

from gramian.backend import optional
from gramian.backend.typing import Array

Loop = Callable[..., Any]

# Smaller tiles do not use numba: small data should not wait for its import.
LEAST_TERMS = 1 << 18
# Cosines and sines are not much slower without it: all together should take longer than the import.
LEAST_FEATURES = 1 << 26
# Products with fewer entries of a matrix take less than the import.
LEAST_ENTRIES = 1 << 25
LEAST_EXPONENTIALS = 1 << 14
TOGETHER = 8  # rows of a matrix that products read at once
CHUNK = 256  # points at a time: their distances to three rows stay in the innermost cache

_compiling = threading.Lock()


def cityblock(x: Array, points: Array, out: Array) -> Loop | None:
    """Return ``loop(x, columns, scale, out)`` for scaled L1 distances, or None without numba.

    ``columns`` are the points, transposed and contiguous. All arrays have the dtype of ``out``.
    """
    plain = all(isinstance(a, np.ndarray) for a in (x, points, out))
    if not plain or x.shape[0] * points.size < LEAST_TERMS or not is_available():
        return None
    return compiled(_scaled_cityblock)


def cosines_and_sines(out: Array, bound: float) -> Loop | None:
    """Return ``loop(x, scale, out)`` for scaled cosines and sines, or None without numba.

    It does what :func:`gramian.backend.array_ops.cosines_and_sines` does, in float32, for numbers
    no larger than ``bound``.
    """
    plain = isinstance(out, np.ndarray) and out.dtype == np.float32 and out.flags.c_contiguous
    if not plain or bound > LARGEST or not is_available():
        return None
    return compiled(_scaled_cosines_and_sines, contract=True)


def exponentials(x: Array) -> bool:
    """Compute exponentials in place; False if NumPy has to.

    The loop is used once another one has been, for which numba was worth its import. It rounds as
    NumPy does, so results are the same before and after.
    """
    plain = isinstance(x, np.ndarray) and x.dtype == np.float32 and x.ndim == 2
    if not plain or x.size < LEAST_EXPONENTIALS or not _compile.cache_info().currsize:
        return False
    stride, rest = divmod(x.strides[0], x.itemsize)
    if rest or stride < x.shape[1] or x.strides[1] != x.itemsize or not is_available():
        return False
    loop = _exponentials()
    if loop is None:
        return False
    # Contiguous memory, which the compiler may vectorise; the ends of its rows are left alone.
    whole = x if stride == x.shape[1] else as_strided(x, (len(x), stride), x.strides)
    loop(whole, x.shape[1])
    return True


def multiply(reference: Array, entries: int) -> bool:
    """Whether ``both_sides`` serves for a matrix with so many entries, like the reference."""
    return isinstance(reference, np.ndarray) and entries >= LEAST_ENTRIES and is_available()


def both_sides(
    c: np.ndarray, U: np.ndarray, shift: np.ndarray, given: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return cᵀ (W F) and 1ᵀ (W F) for F = [given, c U - shift], reading c once.

    Shapes: c (n, m), in any dtype; U (m, t), shift (t,), given (n, g), and weights (n, kinds) of
    several W. Those of the results are (m, kinds (g + t)) and (1, kinds (g + t)). All but c have
    the dtype of U, and so has the first result; the second is in float64. It needs numba.
    """
    loop = compiled(_both_sides, contract=True, reorder=True)
    kinds, columns = weights.shape[1], given.shape[1] + U.shape[1]
    image = np.zeros((kinds * columns, c.shape[1]), U.dtype)
    total = np.zeros(kinds * columns)
    turned = np.ascontiguousarray(U.T)
    whole = len(c) // TOGETHER * TOGETHER
    loop(c[:whole], turned, shift, given[:whole], weights[:whole], image, total)
    if whole < len(c):  # the others have no weight
        rest = [np.zeros((TOGETHER, a.shape[1]), a.dtype) for a in (c, given, weights)]
        for target, source in zip(rest, (c, given, weights), strict=True):
            target[: len(c) - whole] = source[whole:]
        loop(rest[0], turned, shift, *rest[1:], image, total)
    return image.T, total[None, :]


@cache
def _exponentials() -> Loop | None:
    """Return the loop if it rounds as NumPy does on this machine."""
    loop = compiled(_exponential, contract=True, nans=True)
    x = np.linspace([-110], [95], 1 << 15, axis=1).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.exp(x)
    loop(x, x.shape[1])
    return loop if np.array_equal(x, expected) else None


@cache
def is_available() -> bool:
    return optional.is_importable("numba")


def compiled(
    loop: Loop, *, contract: bool = False, reorder: bool = False, nans: bool = False
) -> Loop:
    """Return the loop, compiled. It runs outside Python's lock.

    ``contract`` allows a product and a sum to be rounded once, together, and ``reorder`` sums in
    another order, always the same; otherwise they keep theirs. Without ``nans``, no number may
    be NaN.
    """
    with _compiling:
        return _compile(loop, contract=contract, reorder=reorder, nans=nans)


@cache
def _compile(loop: Loop, *, contract: bool, reorder: bool, nans: bool) -> Loop:
    import numba

    allowed = {"contract": contract, "reassoc": reorder, "nnan": not nans}
    fastmath = {"nsz", *(name for name, allows in allowed.items() if allows)}
    # Divisions do not look for zeros, which raise no error here.
    options: Any = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder to keep it in
        return numba.njit(**options)(loop)


def _scaled_cityblock(x: np.ndarray, columns: np.ndarray, scale: float, out: np.ndarray) -> None:
    """Compare three rows with a chunk of points, four features at a time.

    The inner loops run along the points, so they vectorise without changing the order of sums.
    """
    n, d = x.shape
    m = columns.shape[1]
    sums = np.empty((3, CHUNK), out.dtype)
    first, second, third = sums[0], sums[1], sums[2]
    for start in range(0, m, CHUNK):
        size = min(CHUNK, m - start)
        for i in range(0, n, 3):
            k, h = min(i + 1, n - 1), min(i + 2, n - 1)  # the last row may stand for others
            sums[:] = 0
            for c in range(0, d - 3, 4):
                a0, a1, a2, a3 = x[i, c], x[i, c + 1], x[i, c + 2], x[i, c + 3]
                b0, b1, b2, b3 = x[k, c], x[k, c + 1], x[k, c + 2], x[k, c + 3]
                c0, c1, c2, c3 = x[h, c], x[h, c + 1], x[h, c + 2], x[h, c + 3]
                y0 = columns[c, start : start + size]
                y1 = columns[c + 1, start : start + size]
                y2 = columns[c + 2, start : start + size]
                y3 = columns[c + 3, start : start + size]
                for j in range(size):
                    u0, u1, u2, u3 = y0[j], y1[j], y2[j], y3[j]
                    first[j] += (abs(a0 - u0) + abs(a1 - u1)) + (abs(a2 - u2) + abs(a3 - u3))
                    second[j] += (abs(b0 - u0) + abs(b1 - u1)) + (abs(b2 - u2) + abs(b3 - u3))
                    third[j] += (abs(c0 - u0) + abs(c1 - u1)) + (abs(c2 - u2) + abs(c3 - u3))
            for c in range(d // 4 * 4, d):
                a0, b0, c0 = x[i, c], x[k, c], x[h, c]
                y0 = columns[c, start : start + size]
                for j in range(size):
                    first[j] += abs(a0 - y0[j])
                    second[j] += abs(b0 - y0[j])
                    third[j] += abs(c0 - y0[j])
            for j in range(size):
                out[i, start + j] = scale * first[j]
                out[k, start + j] = scale * second[j]
                out[h, start + j] = scale * third[j]


# For x = kπ + r with |r| <= π/2, cos x = ±cos r and sin x = ±sin r, both with the sign of (-1)^k.
# π is the sum of three numbers. The first two have 11 bits each, so that k times them is exact.
LARGEST = float(1 << 13)
PI = np.float32(3.140625), np.float32(0.0009675025939941406), np.float32(1.5099579897537296e-07)
INVERSE_PI = np.float32(1 / np.pi)
ROUND = np.float32(3 << 22)  # adding and subtracting this rounds to a whole number
HALF, ONE, TWO = np.float32(0.5), np.float32(1.0), np.float32(2.0)
# cos r = 1 - r²/2 + r⁴ p(r²) and sin r = r + r³ q(r²), with an error of at most 5e-9.
P = tuple(map(np.float32, (4.16666558e-02, -1.38885692e-03, 2.47693042e-05, -2.61938145e-07)))
Q = tuple(map(np.float32, (-1.66666571e-01, 8.33301729e-03, -1.98066152e-04, 2.60005468e-06)))


def _scaled_cosines_and_sines(x: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """Compute a row in memory of its own, so that the compiler may vectorise."""
    n, m = x.shape
    cosines, sines = np.empty(m, np.float32), np.empty(m, np.float32)
    for i in range(n):
        row, target = x[i], out[i]
        for j in range(m):
            k = (row[j] * INVERSE_PI + ROUND) - ROUND
            r = ((row[j] - k * PI[0]) - k * PI[1]) - k * PI[2]
            even = (k * HALF + ROUND) - ROUND
            signed = scale[j] * (ONE - TWO * abs(k - TWO * even))
            u = r * r
            cosines[j] = signed * (
                ONE + u * (u * (P[0] + u * (P[1] + u * (P[2] + u * P[3]))) - HALF)
            )
            sines[j] = signed * (r + r * u * (Q[0] + u * (Q[1] + u * (Q[2] + u * Q[3]))))
        for j in range(m):
            target[j] = cosines[j]
        for j in range(target.shape[0] - m):
            target[m + j] = sines[j]


# exp x = 2^k exp r for x = k log 2 + r, and exp r = A(r) / B(r). log 2 is the sum of two numbers; k
# times the first is exact. NumPy computes it with the same numbers.
LOWEST, HIGHEST = np.float32(-104), np.float32(90)  # 0 and infinity in float32
INVERSE_LOG_2 = np.float32(1.44269504088896341)
LOG_2 = np.float32(6.93145752e-1), np.float32(1.42860677e-6)
A = tuple(map(np.float32, (
    9.999999999980870924916e-01, 7.257664613233124478488e-01, 2.473615434895520810817e-01,
    5.114512081637298353406e-02, 6.757896990527504603057e-03, 5.082762527590693718096e-04,
)))  # fmt: skip
B = tuple(map(np.float32, (1.0, -2.742335390411667452936e-01, 2.159509375685829852307e-02)))
BIAS, MANTISSA, BIT = np.int32(127), np.int32(23), np.int32(1)  # of float32


def _exponential(x: np.ndarray, m: int) -> None:
    """Multiply with 2^k in two steps, since it may be beyond the normal numbers."""
    for i in range(len(x)):
        row = x[i]
        for j in range(m):
            v = row[j]
            v = LOWEST if v < LOWEST else v
            v = HIGHEST if v > HIGHEST else v
            k = np.rint(v * INVERSE_LOG_2)
            r = (v - k * LOG_2[0]) - k * LOG_2[1]
            above = A[0] + r * (A[1] + r * (A[2] + r * (A[3] + r * (A[4] + r * A[5]))))
            below = B[0] + r * (B[1] + r * B[2])
            whole = np.int32(k)
            half = whole >> BIT
            first = np.int32((half + BIAS) << MANTISSA).view(np.float32)
            second = np.int32((whole - half + BIAS) << MANTISSA).view(np.float32)
            row[j] = above / below * first * second


def _both_sides(
    c: np.ndarray, U: np.ndarray, shift: np.ndarray, given: np.ndarray, weights: np.ndarray,
    image: np.ndarray, total: np.ndarray,
) -> None:  # fmt: skip
    """Add the products of eight rows at a time, which stay in the innermost cache meanwhile."""
    n, m = c.shape
    columns = given.shape[1]
    f = np.empty((8, columns + len(U)), U.dtype)
    for i in range(0, n, 8):
        r0, r1, r2, r3 = c[i], c[i + 1], c[i + 2], c[i + 3]
        r4, r5, r6, r7 = c[i + 4], c[i + 5], c[i + 6], c[i + 7]
        for j in range(columns):
            for r in range(8):
                f[r, j] = given[i + r, j]
        for j in range(len(U)):
            row = U[j]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = -shift[j]
            for k in range(m):
                u = row[k]
                s0 += r0[k] * u
                s1 += r1[k] * u
                s2 += r2[k] * u
                s3 += r3[k] * u
                s4 += r4[k] * u
                s5 += r5[k] * u
                s6 += r6[k] * u
                s7 += r7[k] * u
            f[0, columns + j], f[1, columns + j] = s0, s1
            f[2, columns + j], f[3, columns + j] = s2, s3
            f[4, columns + j], f[5, columns + j] = s4, s5
            f[6, columns + j], f[7, columns + j] = s6, s7
        for q in range(weights.shape[1]):
            w = weights[i : i + 8, q]
            for j in range(f.shape[1]):
                place = q * f.shape[1] + j
                a0, a1, a2, a3 = w[0] * f[0, j], w[1] * f[1, j], w[2] * f[2, j], w[3] * f[3, j]
                a4, a5, a6, a7 = w[4] * f[4, j], w[5] * f[5, j], w[6] * f[6, j], w[7] * f[7, j]
                total[place] += (a0 + a1 + a2 + a3) + (a4 + a5 + a6 + a7)
                target = image[place]
                for k in range(m):
                    target[k] += (
                        (r0[k] * a0 + r1[k] * a1) + (r2[k] * a2 + r3[k] * a3)
                        + (r4[k] * a4 + r5[k] * a5) + (r6[k] * a6 + r7[k] * a7)
                    )  # fmt: skip
