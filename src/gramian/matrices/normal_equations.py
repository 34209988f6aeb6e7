"""Normal equations of features: ZᵀWZ and ZᵀWV, in one pass over the rows."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.matrices.factors import Factors, unprojected


def normal_equations(
    factors: Factors, V: Array | None = None, weights: Array | None = None, *,
    precise: bool = False, ones: bool = False,
) -> tuple[list[np.ndarray], np.ndarray]:  # fmt: skip
    """Return the blocks of Zᵀ W Z, and Zᵀ W V, with W = diag(weights), in float64 on the host.

    With ``precise``, features are computed and multiplied in float64 whatever their dtype. With
    ``ones``, V has a further column of ones.
    """  # V: (n, k), weights: (n,)
    pairs = inner_products(factors, V, weights, precise=precise, ones=ones)
    host = [[np.asarray(array_ops.to_numpy(a), np.float64) for a in pair] for pair in pairs]
    return [pair[0] for pair in host], np.concatenate([pair[1] for pair in host])


def inner(factors: Factors) -> np.ndarray:
    """Return Zᵀ Z, of shape (rank, rank), in float64 on the host."""
    return scipy.linalg.block_diag(*normal_equations(factors)[0])


def inner_products(
    factors: Factors, V: Array | None = None, weights: Array | None = None, *,
    precise: bool = False, ones: bool = False,
) -> list[tuple[Array, Array]]:  # fmt: skip
    """Return the same for each part, in the array library of its rows."""
    xp = factors.xp
    dtype = xp.float64 if precise else factors.dtype
    walked, P = unprojected(factors) if precise else (factors, None)
    targets, weighted = V is not None, weights is not None
    aligned = [factors.arrange(a) for a in (V, weights) if a is not None]

    def part(z: Array, *aligned: Array) -> tuple[Array, Array]:
        z = array_ops.astype(z, dtype)
        z = z if P is None else z @ P
        v = array_ops.astype(aligned[0], dtype) if targets else z[:, :0]
        if ones:
            v = xp.concat((v, xp.ones_like(z[:, :1])), axis=1)
        if weighted:
            root = xp.sqrt(array_ops.astype(aligned[-1], dtype))[:, None]
            z, v = z * root, v * root
        turned = xp.matrix_transpose(z)  # zᵀz takes half the work of a general product
        return turned @ z, turned @ v

    # In addition to itself, a block needs copies in float64.
    spare = 8 * (walked.rank + factors.rank) if precise else 0
    return walked.sum(
        lambda columns: part,
        *aligned,
        row_bytes=spare,
        result_bytes=factors.parts.widest**2 * array_ops.itemsize(dtype),
    )
