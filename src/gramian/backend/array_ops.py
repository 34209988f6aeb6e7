"""The only file that knows which array library it has.

Everything above it works on NumPy arrays, SciPy CSR matrices, torch tensors and any other library
of the array API standard, through the namespace ``xp`` and the few functions here that the standard
lacks: writing into given memory, moving to and from NumPy, a Cholesky solve.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import cache
from typing import Any

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse
from scipy.spatial.distance import cdist

from gramian.backend import optional

Array = Any  # an array of any supported library
Namespace = Any

IN_SINGLE = ("float32", "float16", "uint8", "int8")  # dtypes that are computed with in float32

# Multiplications up to which OpenBLAS uses its kernels for small matrices, which pack nothing.
SMALL_PRODUCT = 1_000_000
NARROW = 96  # columns up to which that pays


def issparse(x: Any) -> bool:
    return bool(scipy.sparse.issparse(x))


def is_foreign(x: Any) -> bool:
    """Whether x is an array of a library other than NumPy (torch, array-api-strict, ...)."""
    on_host = isinstance(x, np.ndarray | np.generic)
    return not on_host and array_api_compat.is_array_api_obj(x)


def is_lazy(x: Any) -> bool:
    """Whether x is an array in pieces, possibly on other machines, that is not computed yet.

    Only arrays with one entry, or line, for each of the rows on a cluster are. Their functions give
    lazy arrays too; numbers made of them, and what ``to_numpy`` and ``take_rows`` give, are not.
    """
    return hasattr(x, "persist") and is_foreign(x)


def constant_of(x: Array) -> float | None:
    """The number that all entries of a lazy array are known to be, if there is one."""
    return getattr(x, "constant", None)


def settled(x: Array) -> Array:
    """x, computed where it lives if it is lazy, so that it is not computed again."""
    return x.persist() if is_lazy(x) else x


def beside(x: Array, other: Array) -> Array:
    """A small array of this process as it may be combined with another, which may be lazy."""
    return to_numpy(x) if is_lazy(other) else like(x, other)


def unique(x: Array) -> np.ndarray:
    """The different entries of x, sorted, on the host."""
    return np.unique(to_numpy(namespace(x).unique_values(x)) if is_lazy(x) else x)


def namespace(x: Array) -> Namespace:
    """The array API namespace of x; NumPy's for SciPy matrices, lists and numbers."""
    return array_api_compat.array_namespace(x) if is_foreign(x) else numpy_namespace


def to_numpy(x: Array) -> np.ndarray:
    """x as a NumPy array on the host; sparse matrices become dense."""
    x = dense(x)
    if array_api_compat.is_torch_array(x):
        return x.detach().cpu().numpy()
    if not is_foreign(x) or is_lazy(x):
        return np.asarray(x)
    host = np.from_dlpack(x)
    return host if host.flags.writeable else host.copy()  # as NumPy before 2.2 gives it


def dense(x: Array) -> Array:
    """x itself, or the dense form of a sparse matrix."""
    return x.toarray() if issparse(x) else x


def is_objects(x: Any) -> bool:
    """Whether x holds Python objects, one for each row, that no array library can compute with."""
    return isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 1


def like(x: Any, reference: Array, dtype: Any = None) -> Array:
    """x as an array of the reference's library, on its device; objects stay as they are."""
    if is_objects(x):
        return x
    if not is_foreign(reference):
        return np.asarray(to_numpy(x), dtype=dtype)
    xp = namespace(reference)
    if not is_foreign(x) or is_lazy(x):
        # torch would share memory with NumPy and warn of read-only arrays
        x = np.array(to_numpy(x)) if array_api_compat.is_torch_array(reference) else to_numpy(x)
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(reference))


def kind(x: Array, what: str) -> bool:
    """Whether x's dtype is of an array API kind such as "integral" or "complex floating"."""
    xp = namespace(x)
    return x.dtype != object and bool(xp.isdtype(x.dtype, what))


def float_dtype(x: Array) -> Any:
    """The dtype in which x is computed with.

    float32 for float32 itself, and for bytes and half precision, which lose nothing by it; float64
    for everything else.
    """
    xp = namespace(x)
    return xp.float32 if str(x.dtype).rpartition(".")[2] in IN_SINGLE else xp.float64


def host_dtype(x: Any) -> np.dtype | None:
    """NumPy's dtype for a dtype of any library, or a scalar type of NumPy; None for all else."""
    if isinstance(x, type):
        return np.dtype(x) if issubclass(x, np.generic) else None
    if isinstance(x, np.dtype):
        return x
    return np.dtype(str(x).rpartition(".")[2]) if type(x).__name__.lower() == "dtype" else None


def dtype_in(dtype: Any, reference: Array) -> Any:
    """float32 or float64 of any library as that of the reference's."""
    xp = namespace(reference)
    return xp.float32 if itemsize(dtype) == 4 else xp.float64


def eps(dtype: Any) -> float:
    """The spacing of floating-point numbers at 1."""
    return float(np.finfo(np.float32 if "float32" in str(dtype) else np.float64).eps)


def itemsize(dtype: Any) -> int:
    return 4 if "float32" in str(dtype) else 8


def astype(x: Array, dtype: Any) -> Array:
    """x in another dtype; x itself where it has that dtype already, or holds objects."""
    if x.dtype == dtype or is_objects(x):
        return x
    if not is_foreign(x):
        return x.astype(dtype, copy=False)
    if is_lazy(x):  # of NumPy's arrays, whatever they are computed in
        return x.astype(host_dtype(dtype))
    return namespace(x).astype(x, dtype)


def same_dtype(x: Array, y: Array) -> tuple[Array, Array]:
    """Both in float64 where their dtypes differ, for functions that want them to be the same."""
    if x.dtype == y.dtype:
        return x, y
    double = namespace(x).float64
    return astype(x, double), astype(y, double)


def copy(x: Array) -> Array:
    """A copy of x in memory."""
    return x.copy() if not is_foreign(x) else namespace(x).asarray(x, copy=True)


def is_on_disk(x: Array) -> bool:
    """Whether x is a view of a file, such as an ``np.memmap``."""
    while isinstance(x, np.ndarray):
        if isinstance(x, np.memmap):
            return True
        x = x.base
    return isinstance(x, mmap.mmap)


def contiguous(x: Array) -> Array:
    """x with its last axis contiguous in memory, for the speed of products with it."""
    if array_api_compat.is_torch_array(x):
        return x.contiguous()
    return x if is_foreign(x) else np.ascontiguousarray(x)


def writes_in_place(x: Array) -> bool:
    """Whether functions of x's library take ``out=``."""
    return not is_foreign(x) or array_api_compat.is_torch_array(x)


def runs_own_threads(x: Array) -> bool:
    """Whether the library spreads element-wise work over cores (or a GPU) itself."""
    return is_foreign(x)


# Whether Triton's programs may also serve tensors on the host: by its interpreter, in tests.
TRITON_ON_HOST = False


def runs_triton(x: Array) -> bool:
    """Whether x is a tensor for which Triton makes programs."""
    if not array_api_compat.is_torch_array(x):
        return False
    return (x.is_cuda or TRITON_ON_HOST) and _has_triton()


@cache
def _has_triton() -> bool:
    return optional.is_importable("triton")


def is_on_gpu(x: Array) -> bool:
    return array_api_compat.is_torch_array(x) and x.is_cuda


def same_device(x: Array, y: Array) -> bool:
    return not is_foreign(x) or array_api_compat.device(x) == array_api_compat.device(y)


def empty(shape: tuple[int, ...], reference: Array, dtype: Any) -> Array:
    if not is_foreign(reference):
        return np.empty(shape, dtype=dtype)
    device = array_api_compat.device(reference)
    return namespace(reference).empty(shape, dtype=dtype, device=device)


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """a @ b as a dense array, written into ``out`` where it is given."""
    if issparse(a) or issparse(b):
        product = np.asarray(dense(a @ b))
        if out is None:
            return product
        out[...] = product
        return out
    if not is_foreign(a):
        return _matmul_in_slabs(a, b, out)
    xp = namespace(a)
    if out is None:
        return xp.matmul(a, b)
    if writes_in_place(a):
        return xp.matmul(a, b, out=out)
    out[...] = xp.matmul(a, b)
    return out


def _matmul_in_slabs(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """a @ b, for a narrow b by slabs of rows for whose products OpenBLAS has kernels of their own.

    It copies both sides of a larger product first: with ten columns of b that takes longer than to
    multiply, with fifty half as long.
    """
    slab = min(SMALL_PRODUCT // max(b.size, 1), 256) // 32 * 32
    if b.shape[-1] > NARROW or not 0 < slab < len(a):
        return np.matmul(a, b, out=out)
    if out is None:
        out = np.empty((len(a), b.shape[1]), dtype=np.result_type(a, b))
    count = len(a) // slab
    whole = count * slab
    np.matmul(
        a[:whole].reshape(count, slab, a.shape[1]),
        b,
        out=out[:whole].reshape(count, slab, b.shape[1]),
    )
    np.matmul(a[whole:], b, out=out[whole:])
    return out


def subtract(x: Array, y: Array, out: Array) -> Array:
    """x - y, written into ``out`` in its dtype."""
    if not is_foreign(x):
        return np.subtract(x, y, out=out, casting="same_kind")
    if writes_in_place(x):
        return namespace(x).subtract(x, y, out=out)
    out[...] = astype(x, out.dtype) - y
    return out


def elementwise(name: str, x: Array, out: Array) -> Array:
    """The element-wise function ``name`` of the array API applied to x, written into ``out``."""
    function = getattr(namespace(x), name)
    if writes_in_place(x):
        return function(x, out=out)
    if is_lazy(x):  # has no memory yet
        return function(x)
    out[...] = function(x)
    return out


def inplace(name: str, x: Array) -> Array:
    """The element-wise function ``name`` of the array API applied to x, over x's own memory."""
    return elementwise(name, x, x)


def cosines_and_sines(x: Array, cosines: Array, sines: Array) -> None:
    """Cosines of x, and sines of its first columns, written into the two; x is overwritten."""
    first = sines.shape[1]
    if is_foreign(x) or x.dtype != np.float64:
        elementwise("cos", x, cosines)
        elementwise("sin", x[:, :first], sines)
        return
    # NumPy computes cosines and sines of doubles one by one, tangents several at a time where the
    # processor can, 10 times as fast; elsewhere one tangent still costs less than the two. With
    # t = tan(x / 2), cos x = 2 / (1 + t²) - 1 and sin x = 2t / (1 + t²).
    x *= 0.5
    np.tan(x, out=x)
    np.multiply(x, x, out=cosines)
    cosines += 1.0
    np.divide(2.0, cosines, out=cosines)
    np.multiply(cosines[:, :first], x[:, :first], out=sines)
    cosines -= 1.0


def power(x: Array, exponent: int) -> Array:
    """x ** exponent for a positive integer, by products over x's own memory: faster than pow."""
    if exponent == 1:
        return x
    if exponent % 2:
        x *= power(x * x, exponent // 2)
        return x
    x *= x
    return power(x, exponent // 2)


def clip(x: Array, low: float | None = None, high: float | None = None) -> Array:
    """x held between low and high, over x's own memory."""
    if is_foreign(x):
        if writes_in_place(x):
            return namespace(x).clip(x, low, high, out=x)
        if is_lazy(x):
            return namespace(x).clip(x, low, high)
        x[...] = namespace(x).clip(x, low, high)
        return x
    # Mostly nothing is out of bounds, and to look costs a quarter of what clipping does.
    if low is not None and not x.min(initial=np.inf) >= low:
        np.maximum(x, x.dtype.type(low), out=x)
    if high is not None and not x.max(initial=-np.inf) <= high:
        np.minimum(x, x.dtype.type(high), out=x)
    return x


def row_norms(x: Array) -> Array:
    """The squared Euclidean norm of each row."""
    if issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    if array_api_compat.is_torch_array(x):  # whose vecdot stores the squares first
        return namespace(x).linalg.vector_norm(x, axis=1) ** 2
    return namespace(x).vecdot(x, x)


def span(x: Any, start: int, stop: int) -> Any:
    """Rows start to stop of x, as a view where the library has views."""
    return x[start : min(stop, x.shape[0]), ...] if is_foreign(x) else x[start:stop]


def take_rows(x: Array, indices: np.ndarray) -> Array:
    if not is_foreign(x):
        return x[indices]
    if constant_of(x) is not None:
        return np.full(len(indices), constant_of(x))
    if is_lazy(x):  # piece by piece only where the numbers are in order
        different, where = np.unique(indices, return_inverse=True)
        return to_numpy(x[different])[where]
    return namespace(x).take(x, like(indices, x), axis=0)


def take_columns(x: Array, indices: np.ndarray) -> Array:
    """Columns of x as a dense array; a view where they are consecutive."""
    if issparse(x):
        return x[:, indices].toarray()
    first, last = int(indices[0]), int(indices[-1])
    if last - first == len(indices) - 1 and bool(np.all(np.diff(indices) == 1)):
        return x[:, first : last + 1]
    return namespace(x).take(x, like(indices, x), axis=1)


def look_up(table: np.ndarray, places: Array) -> Array:
    """table[places], of the library of the places where that knows such values."""
    if is_lazy(places):
        return places.map_blocks(table.__getitem__, dtype=table.dtype)
    found = table[to_numpy(places)]
    return like(found, places) if found.dtype.kind in "iuf" else found


def concat_rows(parts: list[Array]) -> Array:
    """Arrays of one kind, one below the other."""
    if issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return namespace(parts[0]).concat(parts, axis=0)


def sum_by_label(
    x: Array, labels: Array, weights: Array, k: int, before: Array | None = None
) -> Array:
    """For each of k labels the weighted sum of its rows of x, in float64.

    Where labels ``before`` are given, less the sum of the rows that had it then.
    """
    if is_foreign(x):
        xp = namespace(x)
        members = _members(labels, like(np.arange(k), labels), before)
        members = astype(members, xp.float64) * weights[:, None]
        if array_api_compat.is_torch_array(x):
            return _torch_product(members, x)
        return xp.matrix_transpose(members) @ astype(x, xp.float64)
    total, numbers = np.zeros((k, x.shape[1])), np.arange(k, dtype=labels.dtype)
    for start in range(0, len(x), 512):  # their float64 copy stays in cache
        part = slice(start, start + 512)
        own, old = labels[part], None if before is None else before[part]
        if k <= 16 or k * len(own) <= 2000:  # else most of it would be 0
            members = _members(own, numbers, old).astype(np.float64)
            members *= weights[part, None]
            total += members.T @ x[part].astype(np.float64, copy=False)
            continue
        steps = np.arange(len(own) + 1)
        for sign, each in ((1.0, own), (-1.0, old)):
            if each is not None:
                entries = (sign * weights[part], each, steps)
                total += scipy.sparse.csc_array(entries, shape=(k, len(own))) @ x[part]
    return total


def _members(labels: Array, numbers: Array, before: Array | None) -> Array:
    """1 where a row has a label, less 1 where it had it before."""
    members = labels[:, None] == numbers
    if before is None:
        return members
    xp = namespace(labels)
    return astype(members, xp.int8) - astype(before[:, None] == numbers, xp.int8)


def _torch_product(members: Array, x: Array) -> Array:
    """membersᵀ x by slabs of rows: as one product, of few columns, most of a GPU would idle."""
    import torch

    x, slab, k = x.double(), 1024, members.shape[1]
    whole = x.shape[0] // slab * slab
    parts = torch.bmm(
        members[:whole].reshape(-1, slab, k).transpose(1, 2),
        x[:whole].reshape(-1, slab, x.shape[1]),
    )
    return parts.sum(0) + members[whole:].T @ x[whole:]


def counts(labels: Array, k: int) -> np.ndarray:
    """How many entries each of k labels has, on the host."""
    if not is_lazy(labels):
        return np.bincount(to_numpy(labels), minlength=k)
    by_piece = labels.map_blocks(
        lambda piece: np.bincount(piece, minlength=k)[None, :],
        new_axis=1,
        chunks=((1,) * labels.numblocks[0], (k,)),
        dtype=np.intp,
    )
    return to_numpy(by_piece.sum(axis=0))


def mass_by_label(labels: Array, weights: Array, k: int) -> Array:
    """For each of k labels the sum of its weights."""
    if not is_foreign(labels):
        return np.bincount(labels, weights=weights, minlength=k)
    return sum_by_label(weights[:, None], labels, namespace(weights).ones_like(weights), k)[:, 0]


def put(x: Array, row: np.ndarray, column: np.ndarray, values: Array) -> None:
    """x[row_i, column_i] = values_i."""
    if writes_in_place(x):
        x[row, column] = values
        return
    for i, (r, c) in enumerate(zip(row, column, strict=True)):
        x[int(r), int(c)] = values[i]


def put_rows(x: Array, rows: np.ndarray, values: Array) -> None:
    """x[row_i, :] = values_i."""
    if writes_in_place(x):
        x[rows, :] = values
        return
    for i, row in enumerate(rows):
        x[int(row), :] = values[i, :]


def cityblock(x: Array, y: Array, out: Array) -> Array:
    """L1 distances of the rows of x and y, written into ``out``."""
    if issparse(x) or issparse(y):
        from sklearn.metrics.pairwise import manhattan_distances  # takes long to import

        out[...] = manhattan_distances(*map(short_indices, (x, y)))
    elif not is_foreign(x):  # SciPy's loop lets other threads run
        out[...] = cdist(x, y, "cityblock")
    elif array_api_compat.is_torch_array(x):
        import torch

        x, y = same_dtype(x, y)
        out[...] = torch.cdist(x, y, p=1.0)
    else:
        out[...] = 0
        for column in range(x.shape[1]):
            out += namespace(x).abs(x[:, column, None] - y[None, :, column])
    return out


def short_indices(x: Array) -> scipy.sparse.csr_matrix:
    """x as scikit-learn's loops over sparse rows take it: with 32-bit indices."""
    x = scipy.sparse.csr_matrix(x)
    indices, starts = (a.astype(np.int32, copy=False) for a in (x.indices, x.indptr))
    return scipy.sparse.csr_matrix((x.data, indices, starts), shape=x.shape)


def unit_rows(x: Array) -> Array:
    """x with each row divided by its Euclidean norm; rows of zeros stay."""
    xp = namespace(x)
    norms = xp.sqrt(row_norms(x))
    norms = xp.where(norms > 0, norms, xp.ones_like(norms))
    if issparse(x):
        return scipy.sparse.diags_array(1 / norms, dtype=x.dtype) @ x
    return x / norms[:, None]


def on_host(function: Callable[[np.ndarray], np.ndarray], x: Array) -> Array:
    """A NumPy function of x, for what other libraries lack."""
    return like(function(to_numpy(x)), x, dtype=x.dtype)


def all_finite(x: Array) -> bool:
    if issparse(x):
        x = x.data
    xp = namespace(x)
    # The sum is finite in nearly every good block and takes no memory; look closer only if not.
    return bool(xp.isfinite(xp.sum(x))) or bool(xp.all(xp.isfinite(x)))


def rfft(x: Array, axis: int) -> Array:
    """The Fourier transform of real numbers along an axis: the frequencies from 0 up."""
    if is_foreign(x):
        return namespace(x).fft.rfft(x, axis=axis)
    return scipy.fft.rfft(x, axis=axis)  # several transforms at once, unlike NumPy's


def irfft(x: Array, n: int, axis: int) -> Array:
    """The n real numbers along an axis whose Fourier transform is x, which may be overwritten."""
    if is_foreign(x):
        return namespace(x).fft.irfft(x, n=n, axis=axis)
    return scipy.fft.irfft(x, n=n, axis=axis, overwrite_x=True)


def scatter_matrix(values: np.ndarray, row: np.ndarray, height: int, reference: Array) -> Array:
    """A matrix with values_j in row_j of column j, and zeros elsewhere, to multiply rows with.

    It has the reference's dtype, and is sparse where that is NumPy's, dense elsewhere.
    """
    starts = np.arange(len(values) + 1)  # one entry in each column
    matrix = scipy.sparse.csc_array((values, row, starts), shape=(height, len(values))).tocsr()
    if is_foreign(reference):
        return like(matrix, reference, dtype=reference.dtype)
    return matrix.astype(reference.dtype)


def set_diagonal(a: Array, diagonal: Array) -> Array:
    """a with this diagonal, over a's own memory."""
    steps = np.arange(a.shape[0])
    if writes_in_place(a):
        a[steps, steps] = astype(diagonal, a.dtype)
        return a
    xp = namespace(a)
    a[...] = xp.where(xp.eye(a.shape[0]) == 1, astype(diagonal, a.dtype)[:, None], a)
    return a


def mirror_lower(a: Array) -> Array:
    """Copy what is below the diagonal of a to above it."""
    xp, n, step = namespace(a), a.shape[0], 256
    for start in range(0, n, step):
        stop = min(start + step, n)
        lower = xp.tril(a[start:stop, start:stop])
        a[start:stop, start:stop] = lower + xp.matrix_transpose(xp.tril(lower, k=-1))
        a[start:stop, stop:] = xp.matrix_transpose(a[stop:, start:stop])
    return a


def solve_symmetric(a: Array, b: Array) -> Array:
    """The solution of a x = b for a symmetric matrix, by Cholesky where it is positive definite.

    a may be worked on in place, but is left as it was.
    """
    if not is_foreign(a):
        diagonal = a.diagonal().copy()
        try:
            # LAPACK works on columns and overwrites one triangle, here the upper one of a: with
            # the lower one the matrix is restored, and no copy of it is ever made.
            factor = scipy.linalg.cho_factor(a.T, lower=True, overwrite_a=True, check_finite=False)
            solution = scipy.linalg.cho_solve(factor, b, check_finite=False)
        except scipy.linalg.LinAlgError:  # an indefinite kernel
            solution = None
        mirror_lower(set_diagonal(a, diagonal))
        if solution is None:
            return scipy.linalg.solve(a, b, assume_a="sym", check_finite=False)
        return solution
    if array_api_compat.is_torch_array(a):
        import torch

        lower, failed = torch.linalg.cholesky_ex(a)
        return torch.linalg.solve(a, b) if bool(failed) else torch.cholesky_solve(b, lower)
    return namespace(a).linalg.solve(a, b)
