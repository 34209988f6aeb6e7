"""BLAS and LAPACK in place, without Python's lock.

SciPy's wrappers hold the lock, so that threads which call them wait for each other. The same
functions have addresses, for Cython; ctypes calls these and releases the lock meanwhile.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg import lapack

NUMBERS: dict[str, Any] = {"f": ctypes.c_float, "d": ctypes.c_double}
# What the arguments of a function point to: characters, integers, or numbers.
POINTERS = {"c": r"char \*", "i": r"int \*", "x": r"\w+_[sd] \*"}
STRIP = 64  # rows in which what is above a diagonal is cleared at once


def multiply_triangle(values: np.ndarray, P: np.ndarray) -> bool:
    """Replace ``values`` (n, m) by values @ P for an upper triangle P (m, m), in half of the time.

    False if BLAS cannot do that with these arrays.
    """
    if not values.size:
        return True
    trmm = _function("cython_blas", values.dtype.char, "trmm", "cccciixxixi")
    rows_lie_apart, rest = divmod(values.strides[0], values.itemsize)
    lies_in_rows = values.strides[1] == values.itemsize and not rest
    if trmm is None or not lies_in_rows or rows_lie_apart < values.shape[1]:
        return False
    if P.dtype != values.dtype or not P.flags.c_contiguous:
        return False
    # For BLAS, rows are columns: Vᵀ becomes Pᵀ Vᵀ.
    m, one = len(P), NUMBERS[values.dtype.char](1.0)
    trmm(b"L", b"L", b"N", b"N", m, len(values), one, P, m, values, rows_lie_apart)
    return True


def invert_factor(M: np.ndarray) -> bool:
    """Replace M (n, n) by L⁻¹, with its Cholesky factor L; False if it is not positive definite.

    M is C-contiguous.
    """
    kind, n = M.dtype.char, len(M)
    factor = _function("cython_lapack", kind, "potrf", "cixii")
    invert = _function("cython_lapack", kind, "trtri", "ccixii")
    if factor is None or invert is None:
        return _invert_factor_by_wrappers(M)
    failed = ctypes.c_int(0)
    factor(b"U", n, M, n, failed)  # for LAPACK, the lower triangle is the upper one
    if not failed.value:
        invert(b"U", b"N", n, M, n, failed)
        _clear_above(M)
    return not failed.value


def _clear_above(M: np.ndarray) -> None:
    """Set what is above the diagonal to 0."""
    for start in range(0, len(M), STRIP):
        stop = start + STRIP
        M[start:stop, stop:] = 0
        M[start:stop, start:stop] = np.tril(M[start:stop, start:stop])


def _invert_factor_by_wrappers(M: np.ndarray) -> bool:
    single = M.dtype == np.float32
    factor = lapack.spotrf if single else lapack.dpotrf
    lower, failed = factor(M.T, lower=1, clean=1)
    if not failed:
        M[...] = (lapack.strtri if single else lapack.dtrtri)(lower, lower=1)[0]
    return not failed


@cache
def _function(module: str, kind: str, name: str, arguments: str) -> Callable[..., None] | None:
    """Return a function of SciPy for arrays of this kind; None if it does not have these arguments.

    It takes numbers, bytes, arrays and what ctypes makes.
    """
    if kind not in NUMBERS:
        return None
    functions = getattr(import_module(f"scipy.linalg.{module}"), "__pyx_capi__", {})
    capsule = functions.get({"f": "s", "d": "d"}[kind] + name)
    expected = ", ".join(POINTERS[argument] for argument in arguments)
    if capsule is None or not re.fullmatch(rf"void \({expected}\)", _signature(capsule).decode()):
        return None
    address = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_char_p)
    types = [ctypes.c_void_p] * len(arguments)
    call = ctypes.CFUNCTYPE(None, *types)(address(capsule, _signature(capsule)))
    return lambda *given: call(*map(_pointer, given))


def _pointer(given: Any) -> Any:
    if isinstance(given, np.ndarray):
        return given.ctypes.data
    if isinstance(given, bytes):
        return given
    return ctypes.byref(ctypes.c_int(given) if isinstance(given, int) else given)


def _signature(capsule: Any) -> bytes:
    return bytes(_python("PyCapsule_GetName", ctypes.c_char_p)(capsule))


def _python(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of Python's C API that takes an object first."""
    return ctypes.PYFUNCTYPE(result, ctypes.py_object, *arguments)((name, ctypes.pythonapi))
