"""BlockGram: a matrix that is exact inside blocks of rows, as an oracle like the exact one."""

from __future__ import annotations

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.typing import Indices
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import Rows


class BlockGram(Gram):
    """Z Zᵀ + D, for whatever works on products with the exact matrix.

    Parameters
    ----------
    factors : Factors
        With the blocks D.
    rows : Rows
        The rows that they are of.
    """

    def __init__(self, factors: Factors, rows: Rows) -> None:
        assert factors.local is not None
        super().__init__(factors.local.kernel, rows)
        self.factors = factors

    def __repr__(self) -> str:
        return f"BlockGram({self.factors!r})"

    @property
    def kept_bytes(self) -> int:
        return self.factors.nbytes if self.factors.nbytes <= config.memory_budget() // 4 else 0

    @property
    def product_bytes(self) -> int:
        assert self.factors.local is not None
        return self.factors.local.work_bytes

    def columns(self, indices: Indices) -> Array:
        """These columns of K̃, of shape (n, len(indices))."""
        indices = self._checked(indices, axis=1)
        return array_ops.astype(self.factors.columns(indices), self.dtype)

    def block(self, i: Indices, j: Indices) -> Array:
        """K̃[i, j] for lists of row and of column numbers."""
        i, j = self._checked(i, axis=0), self._checked(j, axis=1)
        block = self.factors.take(i).dense(self.factors.take(j))
        return array_ops.astype(block, self.dtype)

    def matmul(self, V: Array) -> Array:
        """K̃ @ V."""
        V = array_ops.like(V, self._example())
        if V.ndim == 1:
            return self.matmul(V[:, None])[:, 0]
        xp = self.rows.xp
        dtype = xp.float32 if V.dtype == xp.float32 == self.dtype else xp.float64
        return array_ops.astype(self.factors.matmul(V), dtype)

    def dense(self) -> Array:
        """The whole matrix; an error if it exceeds the memory budget."""
        config.check_fits(8 * self.shape[0] ** 2, "the kernel matrix", "Use fewer rows")
        return array_ops.astype(self.factors.dense(), self.dtype)

    def persist(self) -> Gram:
        """This matrix with its features and blocks kept, if they are small enough."""
        factors = self.factors.persist(self.kept_bytes)
        return self if factors is self.factors else BlockGram(factors, self.rows)
