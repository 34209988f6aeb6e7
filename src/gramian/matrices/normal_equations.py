"""Normal equations of features: ZᵀWZ and ZᵀWV, in one pass over the rows.

If Z = C P, ZᵀWZ is also Pᵀ(CᵀWC)P, where P is multiplied once instead of with every row. In float64
that costs no more than Z in float32, and is far more exact, unless P is so large that it enlarges
the rounding of CᵀWC too much.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.matrices.factors import Factors, unprojected

NORM_STEPS = 4


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
    precise: bool = False, ones: bool = False, late: bool = False,
) -> list[tuple[Array, Array]]:  # fmt: skip
    """Return the same for each part, in the array library of its rows.

    With ``late``, kernel values are summed in float64, and multiplied with P afterwards.
    """
    xp = factors.xp
    dtype = xp.float64 if precise or late else factors.dtype
    walked, P = unprojected(factors) if precise or late else (factors, None)
    early = None if late else P
    targets, weighted = V is not None, weights is not None
    aligned = [factors.arrange(a) for a in (V, weights) if a is not None]

    def part(z: Array, *aligned: Array) -> tuple[Array, Array]:
        z = array_ops.astype(z, dtype)
        z = z if early is None else z @ early
        v = array_ops.astype(aligned[0], dtype) if targets else z[:, :0]
        if ones:
            v = xp.concat((v, xp.ones_like(z[:, :1])), axis=1)
        if weighted:
            root = xp.sqrt(array_ops.astype(aligned[-1], dtype))[:, None]
            z, v = z * root, v * root
        # zᵀz takes half the work of a general product.
        return xp.matrix_transpose(z) @ z, array_ops.transposed_matmul(z, v)

    # In addition to itself, a block needs copies in float64.
    spare = 8 * (walked.rank + factors.rank) if precise or late else 0
    widest = walked.rank if late else factors.parts.widest
    pairs = walked.sum(
        lambda columns: part,
        *aligned,
        row_bytes=spare,
        result_bytes=widest**2 * array_ops.itemsize(dtype),
    )
    if not late or P is None:
        return pairs
    turned = xp.matrix_transpose(P)
    return [(turned @ (inner @ P), turned @ right) for inner, right in pairs]


def late_rounding(factors: Factors, numbers: np.ndarray, weight: float) -> float:
    """Return how much rounding may change eigenvalues of ZᵀWZ if P is multiplied late.

    An entry of CᵀWC is a sum of n terms, rounded by about ε k² Σw with kernel values of size k, as
    some rows show. Such errors have no common direction, so together they have the norm of a random
    matrix, 2 √m times as large, which P enlarges by at most ‖P‖². It is infinite without P.
    """
    C, P = unprojected(factors)
    if P is None:
        return float("inf")
    xp = factors.xp
    values = array_ops.astype(C.take(numbers).parts[0].collect(), xp.float64)
    size = float(xp.max(xp.mean(values**2, axis=0)))
    return 2.0 * C.rank**0.5 * array_ops.eps(xp.float64) * weight * size * _squared_norm(P)


def _squared_norm(P: Array) -> float:
    """Return about the largest eigenvalue of PᵀP, by a few steps of the power method."""
    xp = array_ops.namespace(P)
    turned, v = xp.matrix_transpose(P), array_ops.like(np.ones((P.shape[1], 1)), P, P.dtype)
    # Columns of the largest norm are near the direction sought.
    v = v * xp.vecdot(turned, turned)[:, None]
    for _ in range(NORM_STEPS):
        v = turned @ (P @ (v / xp.max(xp.abs(v))))
    return float(xp.linalg.vector_norm(turned @ (P @ v)) / xp.linalg.vector_norm(v))
