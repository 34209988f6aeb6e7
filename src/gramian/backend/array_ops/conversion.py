"""Conversion between array libraries, dtypes and devices."""

from __future__ import annotations

from collections.abc import Callable

import array_api_compat
import numpy as np
import scipy.sparse

from gramian.backend.array_ops.libraries import (
    IN_SINGLE,
    is_foreign,
    is_lazy,
    is_objects,
    issparse,
    namespace,
)
from gramian.backend.typing import Array, ArrayLike, DType


def to_numpy(x: Array) -> np.ndarray:
    """Return x as a NumPy array on the host; sparse matrices become dense."""
    x = dense(x)
    if array_api_compat.is_torch_array(x):
        return x.detach().cpu().numpy()
    if not is_foreign(x) or is_lazy(x):
        return np.asarray(x)
    host = np.from_dlpack(x)
    return host if host.flags.writeable else host.copy()  # read-only before NumPy 2.2


def host_float64(x: Array) -> np.ndarray:
    """Return x as a float64 NumPy array on the host."""
    return np.asarray(to_numpy(x), dtype=np.float64)


def dense(x: Array) -> Array:
    """Return x, or the dense form of a sparse matrix."""
    return x.toarray() if issparse(x) else x


def like(x: ArrayLike, reference: Array, dtype: DType | None = None) -> Array:
    """Convert x to the library and device of ``reference``; objects stay as they are."""
    if is_objects(x):
        return x
    if not is_foreign(reference):
        return np.asarray(to_numpy(x), dtype=dtype)
    xp = namespace(reference)
    if not is_foreign(x) or is_lazy(x):
        # torch would share memory with NumPy and warn of read-only arrays
        x = np.array(to_numpy(x)) if array_api_compat.is_torch_array(reference) else to_numpy(x)
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(reference))


def beside(x: Array, other: Array) -> Array:
    """Convert a small array so that it can be combined with ``other``, which may be lazy."""
    return to_numpy(x) if is_lazy(other) else like(x, other)


def unique(x: Array) -> np.ndarray:
    """Return the different entries of x, sorted, on the host."""
    return np.unique(to_numpy(namespace(x).unique_values(x)) if is_lazy(x) else x)


def on_host(function: Callable[[np.ndarray], np.ndarray], x: Array) -> Array:
    """Apply a NumPy function that other libraries lack, and convert its result back."""
    return like(function(to_numpy(x)), x, dtype=x.dtype)


def short_indices(x: Array) -> scipy.sparse.csr_matrix:
    """Return x with 32-bit indices, which scikit-learn's loops over sparse rows require."""
    x = scipy.sparse.csr_matrix(x)
    indices, starts = (a.astype(np.int32, copy=False) for a in (x.indices, x.indptr))
    return scipy.sparse.csr_matrix((x.data, indices, starts), shape=x.shape)


def float_dtype(x: Array) -> DType:
    """Return the dtype in which computations with x are done.

    float32 for float32, bytes and half precision, which float32 represents exactly; float64 for
    everything else.
    """
    xp = namespace(x)
    return xp.float32 if str(x.dtype).rpartition(".")[2] in IN_SINGLE else xp.float64


def host_dtype(x: object) -> np.dtype | None:
    """Return NumPy's dtype for a dtype of any library or a NumPy scalar type; else None."""
    if isinstance(x, type):
        return np.dtype(x) if issubclass(x, np.generic) else None
    if isinstance(x, np.dtype):
        return x
    return np.dtype(str(x).rpartition(".")[2]) if type(x).__name__.lower() == "dtype" else None


def dtype_in(dtype: DType, reference: Array) -> DType:
    """Return float32 or float64 of any library as the dtype of the reference's library."""
    xp = namespace(reference)
    return xp.float32 if itemsize(dtype) == 4 else xp.float64


def eps(dtype: DType) -> float:
    """Return the machine epsilon of float32 or float64."""
    return float(np.finfo(np.float32 if "float32" in str(dtype) else np.float64).eps)


def itemsize(dtype: DType) -> int:
    """Return the bytes of a number: 4 for float32, else 8."""
    return 4 if "float32" in str(dtype) else 8


def astype(x: Array, dtype: DType) -> Array:
    """Convert x to a dtype; x itself if it has that dtype already or holds objects."""
    if x.dtype == dtype or is_objects(x):
        return x
    if not is_foreign(x):
        return x.astype(dtype, copy=False)
    if is_lazy(x):  # its chunks are NumPy arrays
        return x.astype(host_dtype(dtype))
    return namespace(x).astype(x, dtype)


def same_dtype(x: Array, y: Array) -> tuple[Array, Array]:
    """Convert both to float64 if their dtypes differ."""
    if x.dtype == y.dtype:
        return x, y
    double = namespace(x).float64
    return astype(x, double), astype(y, double)


def copy(x: Array) -> Array:
    """Return a copy of x in memory."""
    return x.copy() if not is_foreign(x) else namespace(x).asarray(x, copy=True)


def contiguous(x: Array) -> Array:
    """Return x with its last axis contiguous in memory, which makes products faster."""
    if array_api_compat.is_torch_array(x):
        return x.contiguous()
    return x if is_foreign(x) else np.ascontiguousarray(x)


def empty(shape: tuple[int, ...], reference: Array, dtype: DType) -> Array:
    """Allocate an array in the library and on the device of ``reference``."""
    if not is_foreign(reference):
        return np.empty(shape, dtype=dtype)
    device = array_api_compat.device(reference)
    return namespace(reference).empty(shape, dtype=dtype, device=device)


def finite(x: Array, message: Callable[[], str]) -> Array:
    """Return x, or raise an error if an entry is not finite; for a lazy array, when it is computed.

    The error says ``message()``, which may be sent to other processes.
    """
    if is_lazy(x):
        return x.map_blocks(finite, message, dtype=x.dtype)
    if not all_finite(x):
        raise ValueError(message())
    return x


def all_finite(x: Array) -> bool:
    """Whether x contains neither NaN nor infinity."""
    if issparse(x):
        x = x.data
    xp = namespace(x)
    # A finite sum proves it without any memory; look at the entries only if the sum is not.
    return bool(xp.isfinite(xp.sum(x))) or bool(xp.all(xp.isfinite(x)))
