"""Arithmetic: in place, products, and symmetric matrices."""

from __future__ import annotations

from functools import lru_cache

import array_api_compat
import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse
from scipy.spatial.distance import cdist

from gramian.backend import numba_loops
from gramian.backend.array_ops.libraries import (
    astype,
    dense,
    empty,
    is_foreign,
    is_lazy,
    issparse,
    like,
    namespace,
    same_dtype,
    short_indices,
    writes_in_place,
)
from gramian.backend.typing import Array


def subtract(x: Array, y: Array, out: Array) -> Array:
    """Write x - y into ``out``, in the dtype of ``out``."""
    if not is_foreign(x):
        return np.subtract(x, y, out=out, casting="same_kind")
    if writes_in_place(x):
        return namespace(x).subtract(x, y, out=out)
    out[...] = astype(x, out.dtype) - y
    return out


def inplace(name: str, x: Array, out: Array | None = None) -> Array:
    """Apply the array API's element-wise function ``name`` to x, in place or into ``out``."""
    out = x if out is None else out
    if name == "exp" and out is x and numba_loops.exponentials(x):
        return x
    function = getattr(namespace(x), name)
    if writes_in_place(x):
        return function(x, out=out)
    if is_lazy(x):  # lazy: there is no memory to write into
        return function(x)
    out[...] = function(x)
    return out


def cosines_and_sines(x: Array, work: Array, scale: Array, out: Array) -> None:
    """Write ``scale`` times cos(x), and then sin(x) of the first columns, into the rows of ``out``.

    ``x`` and ``work`` have shape (n, m), ``scale`` (m,), ``out`` (n, m + j) with j <= m. x and work
    are overwritten.
    """
    xp, m = namespace(x), x.shape[1]
    few = out.shape[1] - m
    if is_foreign(x):
        inplace("cos", x, work)  # faster than into parts of longer rows
        inplace("sin", x)
        if writes_in_place(x):
            xp.multiply(work, scale, out=out[:, :m])
            xp.multiply(x[:, :few], scale[:few], out=out[:, m:])
        else:
            out[:, :m], out[:, m:] = work * scale, x[:, :few] * scale[:few]
        return
    if x.dtype != np.float64:
        np.cos(x, out=out[:, :m])
        np.sin(x[:, :few], out=out[:, m:])
        # One number takes a quarter of the time of a row of them.
        alike = (scale == scale[0]).all()
        np.multiply(out, scale[0] if alike else np.append(scale, scale[:few]), out=out)
        return
    # NumPy vectorises tangents of doubles where the processor allows it, but not cosines and
    # sines: tangents are then 10 times faster, and elsewhere one tangent still costs less than
    # both. With t = tan(x / 2), cos x = 2 / (1 + t²) - 1 and sin x = 2t / (1 + t²).
    x *= 0.5
    np.tan(x, out=x)
    np.multiply(x, x, out=work)
    work += 1.0
    np.divide(2.0 * scale, work, out=work)
    np.multiply(work[:, :few], x[:, :few], out=out[:, m:])
    np.subtract(work, scale, out=out[:, :m])


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


# Up to this many multiplications OpenBLAS uses kernels for small matrices, which copy nothing.
SMALL_PRODUCT = 1_000_000
NARROW = 96  # up to this many columns that is faster
FEW = 3  # columns that OpenBLAS multiplies with one by one in half the time


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return a @ b as a dense array, in ``out`` if it is given.

    Shapes: (n, k) @ (k, m) -> (n, m).
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _matmul_in_slabs(a, b, out)
    if issparse(a) or issparse(b):
        product = np.asarray(dense(a @ b))
        if out is None:
            return product
        out[...] = product
        return out
    xp = namespace(a)
    if out is None:
        return xp.matmul(a, b)
    if writes_in_place(a):
        return xp.matmul(a, b, out=out)
    out[...] = xp.matmul(a, b)
    return out


def _matmul_in_slabs(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """a @ b; for a narrow b in slabs of rows, small enough for OpenBLAS's small-matrix kernels.

    OpenBLAS copies both sides of larger products first: with ten columns of b that takes longer
    than the multiplication, with fifty half as long.
    """
    if b.ndim == 2 and 0 < b.shape[1] <= FEW:
        return _matmul_by_columns(a, b, out)
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


def _matmul_by_columns(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    if b.shape[1] == 1:
        return np.matmul(a, b, out=out)
    if out is None:
        out = np.empty((len(a), b.shape[1]), dtype=np.result_type(a, b))
    for j, column in enumerate(np.ascontiguousarray(b.T)):
        out[:, j] = a @ column
    return out


def transposed_matmul(a: Array, b: Array) -> Array:
    """Return aᵀ b for a (n, k) and a narrow b (n, m); shape (k, m).

    Of NumPy arrays by columns or in slabs of rows, for the same reason as in ``matmul``.
    """
    whole = a.shape[1] * b.shape[1]
    slab = SMALL_PRODUCT // max(whole, 1) // 32 * 32
    turned = namespace(a).matrix_transpose(a)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and 0 < b.shape[1] <= FEW:
        return _matmul_by_columns(turned, b, None)
    if not isinstance(a, np.ndarray) or not 0 < slab < len(a):
        return turned @ b
    starts = range(0, len(a), slab)
    parts = (turned[:, start : start + slab] @ b[start : start + slab] for start in starts)
    return sum(parts, start=np.zeros((), dtype=a.dtype))


def row_norms(x: Array) -> Array:
    """Return the squared Euclidean norm of each row; shape (n, d) -> (n,)."""
    if issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    if array_api_compat.is_torch_array(x):  # torch's vecdot stores the squares first
        return namespace(x).linalg.vector_norm(x, axis=1) ** 2
    return namespace(x).vecdot(x, x)


def unit_rows(x: Array) -> Array:
    """Divide each row by its Euclidean norm; rows of zeros stay as they are."""
    xp = namespace(x)
    norms = xp.sqrt(row_norms(x))
    norms = xp.where(norms > 0, norms, xp.ones_like(norms))
    if issparse(x):
        return scipy.sparse.diags_array(1 / norms, dtype=x.dtype) @ x
    return x / norms[:, None]


def cityblock(x: Array, y: Array, out: Array) -> Array:
    """Write the L1 distances between rows of x (n, d) and of y (m, d) into ``out`` (n, m)."""
    if issparse(x) or issparse(y):
        from sklearn.metrics.pairwise import manhattan_distances  # takes long to import

        out[...] = manhattan_distances(*map(short_indices, (x, y)))
    elif not is_foreign(x):  # SciPy releases the interpreter lock
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


def rfft(x: Array, axis: int) -> Array:
    """Fourier transform of real numbers along an axis: the non-negative frequencies."""
    if is_foreign(x):
        return namespace(x).fft.rfft(x, axis=axis)
    return scipy.fft.rfft(x, axis=axis)  # vectorised over transforms, unlike NumPy's


def irfft(x: Array, n: int, axis: int) -> Array:
    """Inverse of ``rfft``: n real numbers along an axis. x may be overwritten."""
    if is_foreign(x):
        return namespace(x).fft.irfft(x, n=n, axis=axis)
    return scipy.fft.irfft(x, n=n, axis=axis, overwrite_x=True)


def scatter_matrix(values: np.ndarray, row: np.ndarray, height: int, reference: Array) -> Array:
    """Return the (height, m) matrix with ``values[j]`` at ``[row[j], j]`` and zeros elsewhere.

    It has the reference's dtype. It is sparse for NumPy, dense for other libraries.
    """
    starts = np.arange(len(values) + 1)  # one entry per column
    matrix = scipy.sparse.csc_array((values, row, starts), shape=(height, len(values))).tocsr()
    if is_foreign(reference):
        return like(matrix, reference, dtype=reference.dtype)
    return matrix.astype(reference.dtype)


PANEL = 128  # columns of a product at once; on an H200, 512 are no faster than all


def set_diagonal(a: Array, diagonal: Array) -> Array:
    """Set the diagonal of a square matrix in place."""
    steps = np.arange(a.shape[0])
    if writes_in_place(a):
        a[steps, steps] = astype(diagonal, a.dtype)
        return a
    xp = namespace(a)
    a[...] = xp.where(xp.eye(a.shape[0]) == 1, astype(diagonal, a.dtype)[:, None], a)
    return a


def mirror_lower(a: Array) -> Array:
    """Copy the lower triangle of a square matrix to the upper one, in place."""
    xp, n, step = namespace(a), a.shape[0], 256
    for start in range(0, n, step):
        stop = min(start + step, n)
        square = a[start:stop, start:stop]
        if is_foreign(a):
            lower = xp.tril(square)
            a[start:stop, start:stop] = lower + xp.matrix_transpose(xp.tril(lower, k=-1))
        else:  # a mask that is made once takes a fifth of the time
            np.copyto(square, square.T.copy(), where=_above_diagonal(stop - start))
        a[start:stop, stop:] = xp.matrix_transpose(a[stop:, start:stop])
    return a


@lru_cache(4)
def _above_diagonal(size: int) -> np.ndarray:
    return np.triu(np.ones((size, size), dtype=bool), k=1)


def self_product(z: Array) -> Array:
    """Return zᵀz of shape (k, k) for z of shape (n, k).

    BLAS leaves out half of the work by itself. torch does not, so of wide matrices only the blocks
    on and below the diagonal are multiplied.
    """
    xp, k = namespace(z), z.shape[1]
    turned = xp.matrix_transpose(z)
    if not array_api_compat.is_torch_array(z) or k <= 2 * PANEL:
        return turned @ z
    out = empty((k, k), z, z.dtype)
    for start in range(0, k, PANEL):
        stop = min(start + PANEL, k)
        out[start:, start:stop] = turned[start:] @ z[:, start:stop]
    return mirror_lower(out)


def solve_symmetric(a: Array, b: Array, *, restore: bool = True) -> Array:
    """Solve a x = b for symmetric a, by Cholesky if a is positive definite.

    a has shape (n, n), b and x (n,) or (n, t). a is overwritten during the solve, and restored
    unless ``restore`` is False.
    """
    if not is_foreign(a):
        diagonal = a.diagonal().copy()
        try:
            # LAPACK works on columns and overwrites one triangle, here the upper one of a. The
            # lower one restores it, so that no copy of the matrix is made.
            factor = scipy.linalg.cho_factor(a.T, lower=True, overwrite_a=True, check_finite=False)
            solution = scipy.linalg.cho_solve(factor, b, check_finite=False)
        except scipy.linalg.LinAlgError:  # an indefinite kernel
            solution = None
        if restore or solution is None:
            mirror_lower(set_diagonal(a, diagonal))
        if solution is None:
            return scipy.linalg.solve(a, b, assume_a="sym", check_finite=False)
        return solution
    if array_api_compat.is_torch_array(a):
        import torch

        lower, failed = torch.linalg.cholesky_ex(a)
        return torch.linalg.solve(a, b) if bool(failed) else torch.cholesky_solve(b, lower)
    return namespace(a).linalg.solve(a, b)
