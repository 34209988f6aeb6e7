"""GPU versions, in torch, of the functions in ``linalg`` for matrices the size of the landmarks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array

MOST_SHIFTS = 8  # different ones, each with a Cholesky factor
PANEL = 256  # columns of a pivoted factor between two updates of the whole matrix
SHARE = 0.25  # of the largest residual: pivots of a panel are at least that


def pivoted_cholesky(W: Array, tol: float) -> tuple[Array, np.ndarray]:
    """Like :func:`gramian.backend.linalg.pivoted_cholesky`; it pivots only if needed."""
    lower, failed = torch.linalg.cholesky_ex(W)
    if not bool(failed) and float(lower.diagonal().min()) ** 2 > tol:
        return lower, np.arange(len(W))
    return searched_pivots(W, tol)


def searched_pivots(W: Array, tol: float) -> tuple[Array, np.ndarray]:
    """Factorise with large pivots first, a panel of columns at a time.

    The rows with the largest residuals are candidates. LAPACK takes those of them, in its order,
    whose own residual stays a fair share of the largest; the others wait for a later panel.
    """
    n = len(W)
    W, columns = W.clone(), torch.zeros_like(W)
    chosen: list[Array] = []
    left, count = W.diagonal().clone(), 0
    while count < n:
        candidates = torch.topk(left, min(PANEL, n - count)).indices
        largest = float(left[candidates[0]])
        block = array_ops.to_numpy(W[candidates][:, candidates])
        lower, kept = linalg.pivoted_cholesky(block, max(tol, SHARE * largest))
        if not largest > tol or not len(kept):
            break
        pivots = candidates[torch.as_tensor(kept, device=W.device, dtype=torch.int64)]
        corner = torch.as_tensor(lower, device=W.device)
        panel = torch.linalg.solve_triangular(corner, W[pivots], upper=False).T
        columns[:, count : count + len(kept)] = panel
        W -= panel @ panel.T
        chosen.append(pivots)
        count += len(kept)
        left = W.diagonal().clone()
        left[torch.cat(chosen)] = -torch.inf
    if not chosen:
        return columns[:0, :0], np.empty(0, dtype=np.intp)
    order = torch.cat(chosen)
    return columns[order, :count].tril(), array_ops.to_numpy(order).astype(np.intp)


def shifted_solver(A: Array, shifts: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """Like :func:`gramian.backend.linalg.shifted_solver`; None for many shifts or indefinite A."""
    which, factors = _shifted_factors(A, shifts)
    if factors is None:
        return None

    def solve(B: np.ndarray) -> np.ndarray:
        X = np.empty_like(B)
        for i, lower in enumerate(factors):
            own = which == i if len(factors) > 1 else slice(None)
            right = torch.as_tensor(B[:, own], device=A.device)
            X[:, own] = torch.cholesky_solve(right, lower).cpu().numpy()
        return X

    return solve


def shifted_inverse(A: Array, shifts: np.ndarray) -> Callable[[Array], Array] | None:
    """Like :func:`gramian.backend.linalg.shifted_inverse`; None for many shifts or indefinite A.

    Products with inverses take a fraction of the time of triangular solves for a few columns, and
    are accurate enough for a preconditioner.
    """
    which, factors = _shifted_factors(A, shifts)
    if factors is None:
        return None
    columns = [
        torch.as_tensor(np.flatnonzero(which == i)).to(A.device) for i in range(len(factors))
    ]
    inverses = [torch.cholesky_inverse(lower) for lower in factors]

    def apply(B: Array) -> Array:
        if len(inverses) == 1:
            return inverses[0] @ B
        X = torch.empty_like(B)
        for inverse, own in zip(inverses, columns, strict=True):
            X[:, own] = inverse @ B[:, own]
        return X

    return apply


def _shifted_factors(A: Array, shifts: np.ndarray) -> tuple[np.ndarray, list[Array] | None]:
    """Return which factor each column has, and Cholesky factors of A + shift I, if they exist."""
    different, which = np.unique(shifts, return_inverse=True)
    if len(different) > MOST_SHIFTS:
        return which, None
    factors = []
    for shift in different:
        shifted = A.clone()
        shifted.diagonal().add_(float(shift))
        lower, failed = torch.linalg.cholesky_ex(shifted)
        if bool(failed):
            return which, None
        factors.append(lower)
    return which, factors


def inverse_triangle(lower: Array) -> Array:
    identity = torch.eye(len(lower), dtype=lower.dtype, device=lower.device)
    return torch.linalg.solve_triangular(lower, identity, upper=False)


def inverse_inner(P: Array) -> Array:
    """Return (PᵀP)⁻¹ of a matrix with independent columns."""
    triangle = torch.linalg.qr(P, mode="r").R
    inverse = torch.linalg.solve_triangular(
        triangle, torch.eye(len(triangle), dtype=P.dtype, device=P.device), upper=True
    )
    return inverse @ inverse.T
