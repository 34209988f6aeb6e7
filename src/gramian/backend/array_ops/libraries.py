"""Which array library an array belongs to, and what that library can do."""

from __future__ import annotations

import mmap
from functools import cache

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse

from gramian.backend import optional
from gramian.backend.typing import Array, Namespace

IN_SINGLE = ("float32", "float16", "uint8", "int8")  # dtypes computed with in float32

# Whether Triton's programs also serve tensors on the host, through its interpreter (for tests).
TRITON_ON_HOST = False


def issparse(x: object) -> bool:
    """Whether x is a sparse matrix or array of SciPy."""
    return bool(scipy.sparse.issparse(x))


def is_foreign(x: object) -> bool:
    """Whether x is an array of a library other than NumPy (torch, array-api-strict, ...)."""
    on_host = isinstance(x, np.ndarray | np.generic)
    return not on_host and array_api_compat.is_array_api_obj(x)


def is_lazy(x: object) -> bool:
    """Whether x is a lazy array in chunks, possibly on other machines.

    Only arrays with one entry or one line per row of distributed rows are lazy. Functions of their
    namespace return lazy arrays too. ``to_numpy`` and ``take_rows`` compute.
    """
    return hasattr(x, "persist") and is_foreign(x)


def is_objects(x: object) -> bool:
    """Whether x is a 1-D array of Python objects, one per row."""
    return isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 1


def is_on_disk(x: Array) -> bool:
    """Whether x is a view of a file, such as an ``np.memmap``."""
    while isinstance(x, np.ndarray):
        if isinstance(x, np.memmap):
            return True
        x = x.base
    return isinstance(x, mmap.mmap)


def is_on_gpu(x: Array) -> bool:
    """Whether x is a torch tensor on a CUDA device."""
    return array_api_compat.is_torch_array(x) and x.is_cuda


def constant_of(x: Array) -> float | None:
    """The value that every entry of a lazy array is known to have, or None."""
    return getattr(x, "constant", None)


def settled(x: Array) -> Array:
    """x; a lazy array is computed once, and its chunks stay on their workers."""
    return x.persist() if is_lazy(x) else x


def namespace(x: Array) -> Namespace:
    """Return the array API namespace of x; NumPy's for SciPy matrices, lists and numbers."""
    return array_api_compat.array_namespace(x) if is_foreign(x) else numpy_namespace


def kind(x: Array, what: str) -> bool:
    """Whether x's dtype is of an array API kind such as "integral" or "complex floating"."""
    xp = namespace(x)
    return x.dtype != object and bool(xp.isdtype(x.dtype, what))


def same_device(x: Array, y: Array) -> bool:
    """Whether two arrays of one library are on the same device."""
    return not is_foreign(x) or array_api_compat.device(x) == array_api_compat.device(y)


def writes_in_place(x: Array) -> bool:
    """Whether functions of x's library take ``out=``."""
    return not is_foreign(x) or array_api_compat.is_torch_array(x)


def runs_own_threads(x: Array) -> bool:
    """Whether the library uses all cores (or a GPU) for element-wise work by itself."""
    return is_foreign(x)


def runs_triton(x: Array) -> bool:
    """Whether Triton can compile programs for x."""
    if not array_api_compat.is_torch_array(x):
        return False
    return (x.is_cuda or TRITON_ON_HOST) and _has_triton()


@cache
def _has_triton() -> bool:
    return optional.is_importable("triton")
