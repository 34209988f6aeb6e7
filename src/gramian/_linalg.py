"""The linear algebra that learners share. Cut-offs are relative to the largest eigenvalue.

Matrices that grow with n are reached only through products with them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian import _arrays
from gramian._arrays import Array
from gramian._progress import progress

Operator = Callable[[Array], Array]


class NotPositiveDefiniteError(ValueError):
    """A matrix that should be positive definite is not."""


def cutoff(eigenvalues: np.ndarray, size: int, dtype: object = np.float64) -> float:
    """Below this, an eigenvalue of a matrix of this size cannot be told from 0."""
    largest = float(np.max(np.abs(eigenvalues), initial=0.0))
    return size * _arrays.eps(dtype) * largest


def conjugate_gradients(
    apply: Operator, B: Array, precondition: Operator, *, tol: float, max_iter: int
) -> tuple[Array, int, float]:
    """Solve A X = B for a positive definite A; all columns of B advance together.

    Stops when each column's residual is at most ``tol`` times that column. Returns the solution,
    the iterations taken and the largest relative residual.
    """
    xp = _arrays.namespace(B)

    def dots(U: Array, W: Array) -> Array:
        return xp.sum(U * W, axis=0)

    def ratio(a: Array, b: Array) -> Array:
        # a column that is solved has nothing left to divide
        return a / xp.where(b != 0, b, xp.ones_like(b))

    size = xp.sqrt(dots(B, B))
    X = xp.zeros_like(B)
    residual, direction = B, precondition(B)
    rz = dots(residual, direction)
    left = float(xp.max(ratio(size, size)))
    iterations = 0
    with progress("conjugate gradients", max_iter) as step:
        while left > tol and iterations < max_iter:
            image = apply(direction)
            curvature = dots(direction, image)
            if bool(xp.any((curvature <= 0) & (rz > 0))):
                raise NotPositiveDefiniteError("a direction of negative curvature was met")
            length = ratio(rz, curvature)
            X = X + length * direction
            residual = residual - length * image
            iterations += 1
            left = float(xp.max(ratio(xp.sqrt(dots(residual, residual)), size)))
            preconditioned = precondition(residual)
            rz, before = dots(residual, preconditioned), rz
            direction = preconditioned + ratio(rz, before) * direction
            step()
    return X, iterations, left


def orthonormal_columns(F: Array) -> tuple[Array, Array]:
    """Q and λ with F Fᵀ = Q diag(λ) Qᵀ and orthonormal Q, which is written over F."""
    xp = _arrays.namespace(F)
    gram = _arrays.to_numpy(xp.matrix_transpose(F) @ F)
    eigenvalues, vectors = np.linalg.eigh(gram)
    kept = eigenvalues > cutoff(eigenvalues, F.shape[1])
    rotation = _arrays.like(vectors[:, kept] / np.sqrt(eigenvalues[kept]), F)
    for start in range(0, F.shape[0], 4096):  # by blocks, so that F is not doubled
        block = F[start : min(start + 4096, F.shape[0]), :]
        F[start : start + block.shape[0], : rotation.shape[1]] = block @ rotation
    return F[:, : rotation.shape[1]], _arrays.like(eigenvalues[kept], F)


def top_eigenpairs(
    apply: Operator, start: Array, k: int, *, tol: float, max_passes: int
) -> tuple[np.ndarray, Array, bool, int]:
    """The k largest eigenvalues of a symmetric operator and their vectors, by block Krylov.

    Each pass applies the operator to one block of vectors; Rayleigh-Ritz over all blocks so far
    gives the pairs. Stops when each residual ||A v - λ v|| is at most ``tol`` times the largest
    eigenvalue. ``start`` is a block of at least k random vectors. The last two values tell whether
    the tolerance was met, and in how many passes.
    """
    xp = _arrays.namespace(start)
    block = xp.linalg.qr(start)[0]
    basis, images = block, apply(block)
    met = False
    with progress("eigenvectors", max_passes) as step:
        for passes in range(1, max_passes + 1):
            small = _arrays.to_numpy(xp.matrix_transpose(basis) @ images)
            values, rotation = np.linalg.eigh((small + small.T) / 2)
            values, rotation = values[::-1][:k], rotation[:, ::-1][:, :k].copy()
            vectors = basis @ _arrays.like(rotation, basis)
            errors = images @ _arrays.like(rotation, basis) - vectors * _arrays.like(values, basis)
            met = float(xp.max(xp.sqrt(xp.sum(errors**2, axis=0)))) <= tol * abs(values[0])
            step()
            full = basis.shape[1] + block.shape[1] > basis.shape[0]
            if met or full or passes == max_passes:
                return values, vectors, met or full, passes
            # The next block of the Krylov space, made orthogonal to all before it, twice.
            block = images[:, -block.shape[1] :]
            for _ in range(2):
                block = block - basis @ (xp.matrix_transpose(basis) @ block)
                block = xp.linalg.qr(block)[0]
            basis = xp.concat((basis, block), axis=1)
            images = xp.concat((images, apply(block)), axis=1)
    raise AssertionError("max_passes must be at least 1")


def psd_root(S: np.ndarray) -> np.ndarray:
    """B with B Bᵀ = S for a positive semi-definite matrix, with as many columns as S has rank."""
    values, vectors = np.linalg.eigh(S)
    noise = cutoff(values, len(S))
    if values[0] < -1e3 * noise:
        raise NotPositiveDefiniteError(
            f"the matrix has an eigenvalue of {values[0]:.2g}, the largest being {values[-1]:.2g}"
        )
    kept = values > noise
    return vectors[:, kept] * np.sqrt(values[kept])


def spectrum(inner: np.ndarray, core: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues λ of Z S Zᵀ, falling, and P with Z P = V |λ|^½ for its eigenvectors V.

    From ZᵀZ = RᵀR and S alone: those of Z S Zᵀ that are not 0 are those of R S Rᵀ. Without a core
    P is orthogonal. Where S is indefinite, some eigenvalues are negative.
    """
    values, vectors = np.linalg.eigh(inner)
    values = np.maximum(values, 0.0)
    if core is None:
        return values[::-1], vectors[:, ::-1]
    root = vectors * np.sqrt(values)  # Rᵀ
    values, turned = np.linalg.eigh(root.T @ core @ root)
    values, turned = values[::-1], turned[:, ::-1]
    sizes = np.abs(values)
    kept = sizes > cutoff(values, len(values))
    scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, sizes, 1.0)), 0.0)
    return np.where(kept, values, 0.0), core @ (root @ (turned * scale))
