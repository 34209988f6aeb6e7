"""The linear algebra that learners share. Cut-offs are relative to the largest eigenvalue.

Matrices that grow with n are only used through products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import array_api_compat
import numpy as np
import scipy.linalg

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.backend.threads import few_blas_threads

Operator = Callable[[Array], Array]


class NotPositiveDefiniteError(ValueError):
    """Raised for a matrix that should be positive definite but is not."""


def cutoff(eigenvalues: np.ndarray, size: int, dtype: object = np.float64) -> float:
    """Return the value below which an eigenvalue cannot be distinguished from 0."""
    largest = float(np.max(np.abs(eigenvalues), initial=0.0))
    return size * array_ops.eps(dtype) * largest


def conjugate_gradients(
    apply: Operator,
    B: Array,
    precondition: Operator,
    *,
    tol: float,
    max_iter: int,
    watch: Callable[[Array, Array, float], bool] | None = None,
    start: tuple[Array, Array] | None = None,
) -> tuple[Array, int, float]:
    """Solve A X = B for a positive definite A, all columns of B together.

    ``start`` has a first X and its residual B - A X; by default, X is 0.
    Stops when the residual of each column is at most ``tol`` times that column, or when ``watch``
    returns True. ``watch`` is called after each iteration with X, the step length along the last
    direction passed to ``apply``, and the largest relative residual. Returns the solution, the
    number of iterations and the largest relative residual.
    """
    xp = array_ops.namespace(B)

    def dots(U: Array, W: Array) -> Array:
        return xp.sum(U * W, axis=0)

    def ratio(a: Array, b: Array) -> Array:
        # avoid 0/0 in columns that are solved
        return a / xp.where(b != 0, b, xp.ones_like(b))

    size = xp.sqrt(dots(B, B))
    X, residual = (xp.zeros_like(B), B) if start is None else start
    direction = precondition(residual)
    rz = dots(residual, direction)
    left = float(xp.max(ratio(xp.sqrt(dots(residual, residual)), size)))
    iterations = 0
    with progress("conjugate gradients", max_iter) as step:
        while left > tol and iterations < max_iter:
            image = apply(direction)
            curvature = dots(direction, image)
            if bool(xp.any((curvature <= 0) & (rz > 0))):
                raise NotPositiveDefiniteError("found a direction of negative curvature")
            length = ratio(rz, curvature)
            X = X + length * direction
            residual = residual - length * image
            iterations += 1
            left = float(xp.max(ratio(xp.sqrt(dots(residual, residual)), size)))
            if watch is not None and watch(X, length, left):
                break
            preconditioned = precondition(residual)
            rz, before = dots(residual, preconditioned), rz
            direction = preconditioned + ratio(rz, before) * direction
            step()
    return X, iterations, left


def orthonormal_columns(F: Array) -> tuple[Array, Array]:
    """Return Q and λ with F Fᵀ = Q diag(λ) Qᵀ and orthonormal Q, which overwrites F."""
    xp = array_ops.namespace(F)
    gram = array_ops.to_numpy(xp.matrix_transpose(F) @ F)
    eigenvalues, vectors = np.linalg.eigh(gram)
    kept = eigenvalues > cutoff(eigenvalues, F.shape[1])
    rotation = array_ops.like(vectors[:, kept] / np.sqrt(eigenvalues[kept]), F)
    for start in range(0, F.shape[0], 4096):  # in blocks, to avoid a copy of F
        block = F[start : min(start + 4096, F.shape[0]), :]
        F[start : start + block.shape[0], : rotation.shape[1]] = block @ rotation
    return F[:, : rotation.shape[1]], array_ops.like(eigenvalues[kept], F)


def psd_root(S: np.ndarray) -> np.ndarray:
    """Return B with B Bᵀ = S for a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(S)
    if values[0] < -max(1e3 * cutoff(values, len(S)), 1e-6 * values[-1]):
        raise NotPositiveDefiniteError(
            f"its core has an eigenvalue of {values[0]:.2g}, the largest being {values[-1]:.2g}"
        )
    return vectors * np.sqrt(np.maximum(values, 0.0))


def spectrum(
    inner: Array, core: Array | None, count: int | None = None
) -> tuple[np.ndarray, Array]:
    """Return the eigenvalues λ of Z S Zᵀ, descending, and P with Z P = V |λ|^½ (V: eigenvectors).

    It needs only ZᵀZ = RᵀR and S: the non-zero eigenvalues of Z S Zᵀ are those of R S Rᵀ. Without a
    core, P is orthogonal. If S is indefinite, some eigenvalues are negative. ``count`` limits the
    result to the largest. The eigenvalues are on the host, P is where the matrices are.
    """
    if core is None:
        values, vectors = largest_eigenpairs(inner, count)
        return np.maximum(values, 0.0), vectors
    xp = array_ops.namespace(inner)
    values, vectors = xp.linalg.eigh(inner)
    root = vectors * xp.sqrt(array_ops.clip(values, low=0.0))  # Rᵀ
    values, turned = largest_eigenpairs(xp.matrix_transpose(root) @ core @ root, count)
    sizes = np.abs(values)
    kept = sizes > cutoff(values, inner.shape[0])
    scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, sizes, 1.0)), 0.0)
    turned = turned * array_ops.like(scale, turned)
    return np.where(kept, values, 0.0), core @ (root @ turned)


def largest_eigenpairs(A: Array, count: int | None) -> tuple[np.ndarray, Array]:
    """Return the largest eigenvalues of a symmetric matrix, descending, and their vectors."""
    n = A.shape[0]
    if array_ops.is_foreign(A):
        xp = array_ops.namespace(A)
        values, vectors = xp.linalg.eigh(A)
        return array_ops.to_numpy(values)[::-1][:count], xp.flip(vectors, axis=1)[:, :count]
    if count is None or 2 * count > n:  # beyond this, computing all takes hardly longer
        values, vectors = np.linalg.eigh(A)
    else:
        values, vectors = scipy.linalg.eigh(
            A, subset_by_index=[n - count, n - 1], check_finite=False
        )
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def pivoted_cholesky(W: Array, tol: float) -> tuple[Array, np.ndarray]:
    """Return a lower triangle L and row numbers p with W[p, p] = L Lᵀ.

    The residual diagonal of the other rows is at most ``tol``.
    """
    if array_ops.is_on_gpu(W):
        return _on_gpu().pivoted_cholesky(W, tol)
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(W, tol=tol, lower=1)
    return np.tril(factor[:rank, :rank]), order[:rank] - 1


def cholesky_columns(K: np.ndarray, tol: float) -> np.ndarray:
    """Return Z (n, r) with K = Z Zᵀ for a PSD matrix on the host.

    The diagonal of K - Z Zᵀ is at most ``tol``.
    """
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(K, tol=tol, lower=1)
    Z = np.empty((len(K), rank))
    Z[order - 1] = np.tril(factor[:, :rank])
    return Z


def inverse_triangle(lower: Array) -> Array:
    """Return the inverse of a lower triangle."""
    if array_ops.is_on_gpu(lower):
        return _on_gpu().inverse_triangle(lower)
    return scipy.linalg.lapack.dtrtri(lower, lower=1)[0]


def inverse_inner(P: Array) -> Array:
    """Return (PᵀP)⁻¹ of a matrix with independent columns: an upper triangle, or by QR."""
    if array_ops.is_on_gpu(P):
        return _on_gpu().inverse_inner(P)
    triangle, r = array_ops.to_numpy(P), P.shape[1]
    with few_blas_threads(r):
        if len(triangle) > r or np.tril(triangle, -1).any():
            triangle = scipy.linalg.qr(triangle, mode="r", check_finite=False)[0][:r]
        inverse = scipy.linalg.lapack.dtrtri(triangle, lower=0)[0]
        return inverse @ inverse.T


def _on_gpu() -> ModuleType:
    from gramian.backend import torch_linalg  # imports torch

    return torch_linalg


def shifted_solver(
    A: Array, shifts: np.ndarray, *, definite: bool = False
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function B ↦ X with (A + shift_j I) x_j = b_j per column, for a PSD matrix A.

    A single shift serves any number of columns. It uses Cholesky for a few distinct shifts. For
    many shifts, or an A that rounding has made indefinite, it uses one eigendecomposition, which
    costs as much as about thirty Cholesky factorisations; negative eigenvalues count as 0, or raise
    an error if A has to be ``definite``. B and X are NumPy arrays; A may be on a GPU.
    """
    different, which = np.unique(shifts, return_inverse=True)
    if array_ops.is_on_gpu(A) and (solve := _on_gpu().shifted_solver(A, shifts)) is not None:
        return solve
    A = array_ops.to_numpy(A)
    if len(different) <= 8:
        try:
            with few_blas_threads(len(A)):
                factors = [_cholesky(A, shift) for shift in different]
        except scipy.linalg.LinAlgError as error:
            if definite:
                raise NotPositiveDefiniteError(str(error)) from error
        else:

            def by_cholesky(B: np.ndarray) -> np.ndarray:
                X = np.empty_like(B)
                with few_blas_threads(len(A)):
                    if len(factors) == 1:
                        return scipy.linalg.cho_solve(factors[0], B, check_finite=False)
                    for i, factor in enumerate(factors):
                        own = which == i
                        X[:, own] = scipy.linalg.cho_solve(factor, B[:, own], check_finite=False)
                return X

            return by_cholesky
    values, vectors = np.linalg.eigh(A)
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + shifts)
    return lambda B: vectors @ (inverse * (vectors.T @ B))


def shifted_inverse(
    A: Array, shifts: np.ndarray, *, definite: bool = False
) -> Callable[[Array], Array]:
    """Like ``shifted_solver``, for a preconditioner: B and X are where A is.

    If it has to be ``definite``, a matrix that rounding has made indefinite raises an error.
    """
    if array_ops.is_on_gpu(A) and (apply := _on_gpu().shifted_inverse(A, shifts)) is not None:
        return apply
    solve = shifted_solver(A, shifts, definite=definite)
    return lambda B: array_ops.like(solve(array_ops.to_numpy(B)), B)


def _cholesky(A: np.ndarray, shift: float) -> tuple[np.ndarray, bool]:
    shifted = np.array(A, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    return scipy.linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)


def is_psd(S: np.ndarray) -> bool:
    """Whether a symmetric matrix is positive semi-definite, up to rounding."""
    shifted = S + len(S) * np.finfo(float).eps * np.trace(S) * np.eye(len(S))
    return scipy.linalg.lapack.dpotrf(shifted, overwrite_a=True)[1] == 0


def nearest_psd(S: np.ndarray, inner: list[np.ndarray], *, shift: bool = False) -> np.ndarray:
    """Return S' such that Z S' Zᵀ is the nearest positive semi-definite matrix to Z S Zᵀ.

    With Z = Q R, the negative eigenvalues of R S Rᵀ are set to 0, or all eigenvalues are shifted so
    that the smallest is 0. ``ZᵀZ`` is passed as its diagonal blocks.
    """
    roots, inverses = zip(*map(root_and_inverse, inner), strict=True)
    if any((np.diagonal(r @ i) < 0.5).any() for r, i in zip(roots, inverses, strict=True)):
        # Directions in which no row has features: S has no effect there.
        spans = [i @ r for r, i in zip(roots, inverses, strict=True)]
        S = times_blocks(spans, times_blocks(spans, S).T)
    T = times_blocks(roots, times_blocks(roots, S).T)
    if shift:
        least = scipy.linalg.eigh(T, eigvals_only=True, subset_by_index=[0, 0])[0]
        raised = [max(-least, 0.0) * (inverse @ inverse.T) for inverse in inverses]
        return S + scipy.linalg.block_diag(*raised)
    # Compute only the eigenvectors of negative eigenvalues: there are few.
    values, vectors = scipy.linalg.eigh(T, subset_by_value=[-np.inf, 0.0], overwrite_a=True)
    lacking = times_blocks(inverses, vectors * np.sqrt(-values))
    return S + lacking @ lacking.T


def root_and_inverse(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R with RᵀR = G, and its pseudo-inverse."""
    values, vectors = np.linalg.eigh(G)
    kept = values > cutoff(values, len(values))
    root = np.sqrt(np.where(kept, values, 0.0))
    inverse = np.where(kept, 1.0 / np.where(kept, root, 1.0), 0.0)
    return root[:, None] * vectors.T, vectors * inverse


def times_blocks(blocks: Sequence[np.ndarray], M: np.ndarray) -> np.ndarray:
    """Multiply the block-diagonal matrix of these blocks with M."""
    out, start = np.empty_like(M), 0
    for block in blocks:
        out[start : start + len(block)] = block @ M[start : start + len(block)]
        start += len(block)
    return out


def lower_factor(A: Array) -> Array:
    """Return the Cholesky factor L of A = L Lᵀ, which may overwrite A.

    Other libraries than NumPy, here and below, also take stacked matrices (b, n, n).
    """
    if array_ops.is_foreign(A):
        return _foreign_factor(A)
    try:
        # LAPACK works on columns: of a symmetric matrix the transpose is the same.
        return scipy.linalg.cholesky(A.T, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError as error:
        raise NotPositiveDefiniteError(str(error)) from error


def _foreign_factor(A: Array) -> Array:
    xp = array_ops.namespace(A)
    try:
        L = xp.linalg.cholesky(A)
    except Exception as error:  # each library has its own
        raise NotPositiveDefiniteError(str(error)) from error
    if not array_ops.all_finite(L):
        raise NotPositiveDefiniteError("the matrix has no Cholesky factor")
    return L


def solve_lower(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Return L⁻¹ B for a lower triangle L, or L⁻ᵀ B; B has shape (n, k)."""
    if not array_ops.is_foreign(L):
        return scipy.linalg.solve_triangular(
            L, B, trans=1 if transposed else 0, lower=True, check_finite=False
        )
    xp = array_ops.namespace(L)
    if array_api_compat.is_torch_array(L):
        import torch

        left = L.mT if transposed else L
        return torch.linalg.solve_triangular(left, B, upper=transposed)
    return xp.linalg.solve(xp.matrix_transpose(L) if transposed else L, B)


def diagonal_of_inverse(L: Array) -> Array:
    """Return the diagonal of (L Lᵀ)⁻¹ for a lower triangle L, which may be overwritten."""
    xp = array_ops.namespace(L)
    if array_ops.is_foreign(L):
        eye = array_ops.like(np.eye(L.shape[-1]), L, L.dtype)
        inverse = solve_lower(L, xp.broadcast_to(eye, L.shape))
        return xp.sum(inverse**2, axis=-2)
    trtri = scipy.linalg.lapack.strtri if L.dtype == np.float32 else scipy.linalg.lapack.dtrtri
    inverse = trtri(L, lower=1, overwrite_c=1)[0]
    return np.einsum("ij,ij->j", inverse, inverse)
