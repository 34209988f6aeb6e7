"""BlockFunction: a function of new rows that was learned from rows in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.matrices.block_diagonal import BlockDiagonal
from gramian.matrices.block_rows import by_block
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows

AT_ONCE = 2048  # rows of a block whose kernel values are in memory together


@dataclass(frozen=True, eq=False)
class BlockFunction:
    """f(x) = Σ_i a_i k̃(x_i, x) for K̃ = Z Zᵀ + D.

    For a row x of block b it is k(x, X_b) a_b + z(x)ᵀ (v - v_b), where v_b = Z_bᵀ a_b, and v is the
    sum of all v_b.
    """

    dual: Array  # a, in the order of the blocks, of shape (n, k), float64
    others: Array | None  # v - v_b for each block, of shape (n_blocks, r, k); None without features

    @classmethod
    def of(cls, local: BlockDiagonal, dual: Array) -> BlockFunction:
        """The function of coefficients in the order of the data, of shape (n, k)."""
        xp = array_ops.namespace(local.groups.points)
        arranged = array_ops.like(local.groups.arrange(dual), local.groups.points, xp.float64)

        def share(b: int) -> Array:
            z = local.features(local.groups.rows(b))
            assert z is not None
            a = arranged[local.groups.span(b), :]
            return xp.matrix_transpose(array_ops.astype(z, xp.float64)) @ a

        if not local.width:
            return cls(arranged, None)
        return cls.from_shares(arranged, xp.stack(local.each(share)))

    @classmethod
    def from_shares(cls, dual: Array, shares: Array) -> BlockFunction:
        """The function of a in the order of the blocks, and v_b of each block, (blocks, r, k)."""
        return cls(dual, array_ops.namespace(dual).sum(shares, axis=0) - shares)

    def at(self, local: BlockDiagonal, x: Array, labels: np.ndarray) -> Array:
        """The values for rows with these blocks, of shape (n, k), in float64.

        ``local`` has the training rows.
        """
        xp = array_ops.namespace(self.dual)
        out = array_ops.empty((x.shape[0], self.dual.shape[1]), self.dual, xp.float64)
        order, edges = by_block(labels, len(local))
        for b in map(int, np.flatnonzero(np.diff(edges))):
            for start in range(int(edges[b]), int(edges[b + 1]), AT_ONCE):
                numbers = order[start : min(start + AT_ONCE, int(edges[b + 1]))]
                array_ops.put_rows(
                    out, numbers, self._in_block(local, array_ops.take_rows(x, numbers), b)
                )
        return out

    def _in_block(self, local: BlockDiagonal, x: Array, b: int) -> Array:
        xp = array_ops.namespace(self.dual)
        points = ArrayRows(local.groups.rows(b))
        values = Gram(local.kernel, ArrayRows(x), points).matmul(self.dual[local.groups.span(b), :])
        values = array_ops.astype(values, xp.float64)
        if self.others is None:
            return values
        z = local.features(x)
        assert z is not None
        return values + array_ops.astype(z, xp.float64) @ self.others[b, ...]
