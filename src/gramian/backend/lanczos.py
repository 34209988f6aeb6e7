"""The largest eigenvalues of a matrix that is only used through products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.linalg import Operator, largest_eigenpairs
from gramian.backend.progress import progress


def top_eigenpairs(
    apply: Operator, start: Array, k: int, *, tol: float, max_passes: int
) -> tuple[np.ndarray, Array, bool, int]:
    """Find the k largest eigenvalues of a symmetric operator and their vectors, by block Lanczos.

    Each pass applies the operator to one block of orthonormal vectors; Rayleigh-Ritz over all
    blocks Q so far gives the eigenpairs. What the image of the last block has outside of Q is
    Q' B with the next block Q', so the residual ||A v - λ v|| of v = Q s is the norm of B times the
    last entries of s. Stops when each is at most ``tol`` times the largest eigenvalue, and there
    are k. ``start`` is a block of random vectors. The last two values returned are whether the
    tolerance was met, and the number of passes.
    """
    xp, n = array_ops.namespace(start), start.shape[0]
    blocks = [xp.linalg.qr(start)[0]]
    inner = np.empty((0, 0))  # Qᵀ A Q
    looks: list[tuple[int, float]] = []  # passes, and the error after them over the tolerance
    with progress("eigenvectors", max_passes) as step:
        for passes in range(1, max_passes + 1):
            image = apply(blocks[-1])
            along = _project(blocks, image)
            inner = _bordered(inner, array_ops.to_numpy(xp.concat(along, axis=0)))
            step()
            room = n - len(inner)
            block, rest = _next_block(blocks, image, along)
            last = passes == max_passes or not room
            if last or (len(inner) >= k and passes >= _next_look(looks)):
                values, rotation = largest_eigenpairs(inner, k)
                errors = np.linalg.norm(rest @ rotation[-rest.shape[1] :], axis=0)
                met = bool(errors.max() <= tol * abs(values[0])) or not room
                if met or last:
                    return values, _combined(blocks, rotation), met, passes
                looks.append((passes, float(errors.max()) / max(tol * abs(values[0]), 1e-300)))
            blocks.append(block[:, : min(room, block.shape[1])])
    raise AssertionError("max_passes must be at least 1")


def _next_look(looks: Sequence[tuple[int, float]]) -> int:
    """Return the pass after which to look again: two thirds of the way that errors still have.

    Eigenvectors of Qᵀ A Q after every pass take as long as the passes. Errors fall slowly at first,
    which says little of later, so that the way is at most a third of that so far.
    """
    if len(looks) < 2:
        return 0
    (before, larger), (passes, error) = looks[-2:]
    fall = (np.log(larger) - np.log(error)) / (passes - before)
    far = int(2 / 3 * np.log(error) / fall) if fall > 0 else 1
    return passes + max(min(far, passes // 3), 1)


def _project(blocks: Sequence[Array], image: Array) -> list[Array]:
    """Return Qᵀ image for each block Q."""
    xp = array_ops.namespace(image)
    return [xp.matrix_transpose(Q) @ image for Q in blocks]


def _next_block(
    blocks: Sequence[Array], image: Array, along: Sequence[Array]
) -> tuple[Array, np.ndarray]:
    """Return Q' and B with image = Q ``along`` + Q' B, orthogonalised twice against all blocks."""
    xp = array_ops.namespace(image)
    triangle = np.eye(image.shape[1])
    for again in range(2):
        for Q, part in zip(blocks, _project(blocks, image) if again else along, strict=True):
            image = image - Q @ part
        image, factor = xp.linalg.qr(image)
        triangle = array_ops.to_numpy(factor) @ triangle
    return image, triangle


def _bordered(inner: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix with these last columns, in which ``inner`` is the rest."""
    old, size = len(inner), len(columns)
    out = np.empty((size, size))
    out[:old, :old] = inner
    out[:, old:] = columns
    out[old:] = columns.T
    out[old:, old:] = (columns[old:] + columns[old:].T) / 2
    return out


def _combined(blocks: Sequence[Array], rotation: np.ndarray) -> Array:
    """Return the vectors Q @ rotation."""
    total, start = None, 0
    for Q in blocks:
        part = rotation[start : start + Q.shape[1]]
        product = Q @ array_ops.like(np.ascontiguousarray(part), Q)
        total = product if total is None else total + product
        start += Q.shape[1]
    return total
