"""Pivoted Cholesky factors of a Gram matrix, from few of its columns."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from gramian import _arrays
from gramian._arrays import Array
from gramian._progress import progress
from gramian.gram import Gram
from gramian.samplers.base import host_diagonal

__all__ = ["pivoted_cholesky"]


def pivoted_cholesky(
    gram: Gram, rank: int, rng: np.random.Generator, *, tolerance: float = 1e-10, block: int = 64
) -> Array:
    """F of at most ``rank`` columns with F Fᵀ ≈ K, in float64.

    Randomly pivoted Cholesky in blocks (Chen, Epperly, Tropp, Webber): pivots are drawn in
    proportion to what is left of the diagonal, a block at a time, so that the work is matrix
    products. It ends early when the trace left is below ``tolerance`` of the whole.
    """
    xp = gram.rows.xp
    n = gram.shape[0]
    left = host_diagonal(gram)
    enough = tolerance * left.sum()
    F = _arrays.empty((n, min(rank, n)), gram.diag(), xp.float64)
    used = 0
    with progress("pivoted Cholesky", -(-F.shape[1] // block)) as step:
        while used < F.shape[1] and left.sum() > enough:
            size = min(block, F.shape[1] - used)
            pivots = np.unique(rng.choice(n, size=size, p=left / left.sum()))
            columns = _arrays.astype(gram.columns(pivots), xp.float64)
            known = F[:, :used]
            columns = columns - known @ xp.matrix_transpose(_arrays.take_rows(known, pivots))
            core = _arrays.to_numpy(_arrays.take_rows(columns, pivots))
            lower, kept = _independent(core)
            if not len(kept):
                break
            # columns L⁻ᵀ, as a product with the small inverse
            inverse = solve_triangular(lower, np.eye(len(kept)), lower=True).T
            new = xp.take(columns, _arrays.like(kept, columns), axis=1) @ _arrays.like(
                inverse, columns
            )
            F[:, used : used + len(kept)] = new
            used += len(kept)
            left -= _arrays.to_numpy(_arrays.row_norms(new))
            left[pivots] = 0.0
            np.maximum(left, 0.0, out=left)
            step()
    return F[:, :used]


def _independent(core: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a PSD matrix that are independent, and the Cholesky factor of their block."""
    limit = len(core) * np.finfo(np.float64).eps * max(core.diagonal().max(), 0.0)
    factor, order, rank, _ = dpstrf(core, tol=limit, lower=1)
    kept = order[:rank] - 1
    return np.tril(factor[:rank, :rank]), kept
