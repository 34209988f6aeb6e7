"""Symmetric matrices: mirroring one triangle, and solving."""

from __future__ import annotations

import array_api_compat
import numpy as np
import scipy.linalg

from gramian.backend.array_ops.conversion import astype, empty
from gramian.backend.array_ops.libraries import is_foreign, namespace, writes_in_place
from gramian.backend.typing import Array

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
        lower = xp.tril(a[start:stop, start:stop])
        a[start:stop, start:stop] = lower + xp.matrix_transpose(xp.tril(lower, k=-1))
        a[start:stop, stop:] = xp.matrix_transpose(a[stop:, start:stop])
    return a


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


def solve_symmetric(a: Array, b: Array) -> Array:
    """Solve a x = b for symmetric a, by Cholesky if a is positive definite.

    a has shape (n, n), b and x (n,) or (n, t). a is overwritten during the solve and restored.
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
        mirror_lower(set_diagonal(a, diagonal))
        if solution is None:
            return scipy.linalg.solve(a, b, assume_a="sym", check_finite=False)
        return solution
    if array_api_compat.is_torch_array(a):
        import torch

        lower, failed = torch.linalg.cholesky_ex(a)
        return torch.linalg.solve(a, b) if bool(failed) else torch.cholesky_solve(b, lower)
    return namespace(a).linalg.solve(a, b)
