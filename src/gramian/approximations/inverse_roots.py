"""Inverse square roots of the landmarks' kernel matrix."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.utils.extmath import randomized_svd

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.matrices.gram import Gram


def inverse_root(W: Array, cutoff: float, gram: Gram) -> Array:
    """Return P with P Pᵀ = W⁺ by pivoted Cholesky; W is (m, m), P (m, rank of W)."""
    xp = array_ops.namespace(W)
    diagonal = xp.linalg.diagonal(W)
    largest = float(xp.max(diagonal))
    lower, pivots = linalg.pivoted_cholesky(W, cutoff * max(largest, 0.0))
    if len(pivots) == 0 or not array_ops.all_finite(lower):
        _not_psd(gram)
    P = xp.zeros_like(W)[:, : len(pivots)]
    array_ops.put_rows(P, pivots, xp.matrix_transpose(linalg.inverse_triangle(lower)))
    others = np.setdiff1d(np.arange(len(W)), pivots)  # nothing is left of the pivots
    if len(others):
        left = array_ops.take_rows(diagonal, others)
        left = left - array_ops.row_norms(array_ops.take_rows(W, others) @ P)
        if float(xp.min(left)) < -1e3 * cutoff * len(W) * float(xp.max(xp.abs(diagonal))):
            _not_psd(gram)
    return P


def inverse_root_of_rank(W: np.ndarray, rank: int, cutoff: float) -> np.ndarray:
    """Return P (m, rank) with P Pᵀ = W_r⁺, from the leading eigenvectors of W (m, m)."""
    m = len(W)
    if m > 1000 and rank < m // 5:  # far fewer than m
        vectors, values, _ = randomized_svd(W, rank, n_iter=4, random_state=0)
    else:
        values, vectors = scipy.linalg.eigh(W, subset_by_index=[max(m - rank, 0), m - 1])
    large = values > cutoff * values.max()
    return vectors[:, large] / np.sqrt(values[large])


def _not_psd(gram: Gram) -> None:
    raise ValueError(
        f"The Nyström approximation needs a positive semi-definite kernel; {gram.kernel!r} is not, "
        "on these rows. Use a kernel such as RBF, Laplacian or Polynomial with coef0 >= 0, or an "
        "exact learner: kernel=Exact(...)."
    )
