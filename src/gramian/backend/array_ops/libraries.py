"""Array libraries: which one an array belongs to, conversion between them, and indexing."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import cache
from math import isfinite

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse

from gramian.backend import optional
from gramian.backend.typing import Array, ArrayLike, DType, Namespace

# Whether an object is a sparse matrix or array of SciPy.
issparse: Callable[[object], bool] = scipy.sparse.issparse

HOST = (np.ndarray, np.generic)
IN_SINGLE = ("float32", "float16", "uint8", "int8")  # dtypes computed with in float32

# Whether Triton's programs also serve tensors on the host, through its interpreter (for tests).
TRITON_ON_HOST = False


def is_foreign(x: object) -> bool:
    """Whether x is an array of a library other than NumPy (torch, array-api-strict, ...)."""
    return not isinstance(x, HOST) and array_api_compat.is_array_api_obj(x)


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


def runs_triton(x: Array) -> bool:
    """Whether Triton can compile programs for x."""
    if not array_api_compat.is_torch_array(x):
        return False
    return (x.is_cuda or TRITON_ON_HOST) and _has_triton()


@cache
def _has_triton() -> bool:
    return optional.is_importable("triton")


def to_numpy(x: Array) -> np.ndarray:
    """Return x as a NumPy array on the host; sparse matrices become dense."""
    if type(x) is np.ndarray:
        return x
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
    return xp.float32 if _name(x.dtype).rpartition(".")[2] in IN_SINGLE else xp.float64


def _name(dtype: DType) -> str:
    # With its type first: dtypes of different libraries may have one hash, and no comparison.
    return _cached_name(type(dtype).__name__, dtype)


@cache
def _cached_name(kind: str, dtype: DType) -> str:
    return str(dtype)


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
    return float(np.finfo(np.float32 if "float32" in _name(dtype) else np.float64).eps)


def itemsize(dtype: DType) -> int:
    """Return the bytes of a number: 4 for float32, else 8."""
    return 4 if "float32" in _name(dtype) else 8


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
    if not is_foreign(x):
        return np.ascontiguousarray(x)
    return x.contiguous() if array_api_compat.is_torch_array(x) else x


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
    # A finite sum proves it without any memory; look at the entries only if the sum is not.
    if isinstance(x, np.ndarray):  # in half of the time that np.sum takes for few entries
        total = np.add.reduce(x, axis=None)
        return bool(isfinite(total)) or bool(np.isfinite(x).all())
    xp = namespace(x)
    return bool(xp.isfinite(xp.sum(x))) or bool(xp.all(xp.isfinite(x)))


def span(x: Array, start: int, stop: int) -> Array:
    """Return rows start to stop of x, as a view if the library has views."""
    return x[start : min(stop, x.shape[0]), ...] if is_foreign(x) else x[start:stop]


def take_rows(x: Array, indices: np.ndarray) -> Array:
    """Return rows of x in the order of ``indices``; those of a lazy array are computed."""
    if not is_foreign(x):
        whole = type(x) is np.ndarray and x.flags.c_contiguous  # others would be copied first
        if whole and np.asarray(indices).dtype.kind in "iu":
            return x.take(indices, axis=0)  # in half of the time
        return x[indices]
    if constant_of(x) is not None:
        return np.full(len(indices), constant_of(x))
    if is_lazy(x):  # dask reads chunk by chunk only if indices are sorted
        different, where = np.unique(indices, return_inverse=True)
        return to_numpy(x[different])[where]
    return namespace(x).take(x, like(indices, x), axis=0)


def take_columns(x: Array, indices: np.ndarray) -> Array:
    """Return columns of x as a dense array; a view if they are consecutive."""
    if issparse(x):
        return x[:, indices].toarray()
    first, last = int(indices[0]), int(indices[-1])
    if last - first == len(indices) - 1 and bool(np.all(np.diff(indices) == 1)):
        return x[:, first : last + 1]
    return namespace(x).take(x, like(indices, x), axis=1)


def look_up(table: np.ndarray, places: Array) -> Array:
    """Return ``table[places]``, in the library of ``places`` if the values are numbers."""
    if is_lazy(places):
        return places.map_blocks(table.__getitem__, dtype=table.dtype)
    found = table[to_numpy(places)]
    return like(found, places) if found.dtype.kind in "iuf" else found


def concat_rows(parts: list[Array]) -> Array:
    """Stack arrays of one kind vertically."""
    if issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return namespace(parts[0]).concat(parts, axis=0)


def where_true(x: Array) -> np.ndarray:
    """Return the places (on the host) of the true entries of x, of shape (n,)."""
    if not is_foreign(x) or is_lazy(x):
        return np.flatnonzero(to_numpy(x))
    return to_numpy(namespace(x).nonzero(x)[0])


def put(x: Array, row: np.ndarray, column: np.ndarray, values: Array) -> None:
    """Assign ``x[row[i], column[i]] = values[i]`` for each i."""
    if writes_in_place(x):
        x[row, column] = values
        return
    for i, (r, c) in enumerate(zip(row, column, strict=True)):
        x[int(r), int(c)] = values[i]


def put_rows(x: Array, rows: np.ndarray, values: Array) -> None:
    """Assign ``x[rows[i], :] = values[i, :]`` for each i."""
    if writes_in_place(x):
        x[rows, :] = values
        return
    for i, row in enumerate(rows):
        x[int(row), :] = values[i, :]
