"""Products, norms, distances and Fourier transforms of rows."""

from __future__ import annotations

import array_api_compat
import numpy as np
import scipy.fft
import scipy.sparse
from scipy.spatial.distance import cdist

from gramian.backend.array_ops.conversion import dense, like, same_dtype, short_indices
from gramian.backend.array_ops.libraries import is_foreign, issparse, namespace, writes_in_place
from gramian.backend.typing import Array

# Up to this many multiplications OpenBLAS uses kernels for small matrices, which copy nothing.
SMALL_PRODUCT = 1_000_000
NARROW = 96  # up to this many columns that is faster


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return a @ b as a dense array, in ``out`` if it is given.

    Shapes: (n, k) @ (k, m) -> (n, m).
    """
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
    """a @ b; for a narrow b in slabs of rows, small enough for OpenBLAS's small-matrix kernels.

    OpenBLAS copies both sides of larger products first: with ten columns of b that takes longer
    than the multiplication, with fifty half as long.
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
