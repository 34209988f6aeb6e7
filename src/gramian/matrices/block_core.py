"""BlockCore: the small symmetric matrix S of K̃ = Z S Zᵀ, in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gramian.backend.typing import DType

__all__ = ["BlockCore"]


class _Strip(NamedTuple):
    """The rows of one block, from the diagonal on."""

    diagonal: np.ndarray  # the block on the diagonal
    columns: slice | np.ndarray  # columns of the linked blocks to its right
    values: np.ndarray


class BlockCore:
    """A symmetric matrix in blocks; only nonzero blocks on and above the diagonal are stored.

    Parameters
    ----------
    matrix : array of shape (r, r)
        Symmetric; entries of dropped links are ignored.
    sizes : sequence of int, optional
        The number of rows of each block, r in total. By default, there is one block.
    links : bool array of shape (blocks, blocks), optional
        Which blocks off the diagonal to store. By default, all of them.
    dtype : dtype, default=float64
        The dtype of the stored blocks; products are computed in float64.

    See Also
    --------
    Factors : Z, this core and a block-diagonal term.
    MEKA : the approximation that makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import BlockCore
    >>> core = BlockCore(np.array([[2.0, 0.5], [0.5, 1.0]]), [1, 1])
    >>> core.matmul(np.eye(2))
    array([[2. , 0.5],
           [0.5, 1. ]])
    >>> BlockCore(core.dense(), [1, 1], links=np.eye(2, dtype=bool)).dense()
    array([[2., 0.],
           [0., 1.]])
    """

    def __init__(
        self,
        matrix: np.ndarray,
        sizes: Sequence[int] | None = None,
        links: np.ndarray | None = None,
        dtype: DType = np.float64,
    ) -> None:
        matrix = np.asarray(matrix)
        self.sizes = [len(matrix)] if sizes is None else [int(size) for size in sizes]
        self.edges = np.concatenate(([0], np.cumsum(self.sizes))).tolist()
        self.n_links = 0  # stored pairs of different blocks
        self._strips = []
        for s, (start, stop) in enumerate(pairwise(self.edges)):
            linked = np.arange(s + 1, len(self.sizes))
            columns: slice | np.ndarray = slice(stop, None)
            if links is not None and not links[s, s + 1 :].all():
                linked = linked[links[s, s + 1 :]]
                spans = [np.arange(self.edges[t], self.edges[t + 1]) for t in linked]
                columns = np.concatenate((np.empty(0, np.intp), *spans))
            rows = matrix[start:stop]
            parts = rows[:, start:stop], rows[:, columns]
            diagonal, values = (np.ascontiguousarray(part, dtype) for part in parts)
            self._strips.append(_Strip(diagonal, columns, values))
            self.n_links += len(linked)

    @property
    def shape(self) -> tuple[int, int]:
        return self.edges[-1], self.edges[-1]

    @property
    def nbytes(self) -> int:
        return sum(strip.diagonal.nbytes + strip.values.nbytes for strip in self._strips)

    def block(self, s: int) -> np.ndarray:
        """Return block s on the diagonal, in float64."""
        return self._strips[s].diagonal.astype(np.float64)

    def matmul(self, W: np.ndarray) -> np.ndarray:
        """Return S @ W in float64, for W of shape (r, k)."""
        out = np.zeros(W.shape)
        for (start, stop), (diagonal, columns, values) in zip(
            pairwise(self.edges), self._strips, strict=True
        ):
            right = values.astype(np.float64, copy=False)
            out[start:stop] += diagonal @ W[start:stop] + right @ W[columns]
            out[columns] += right.T @ W[start:stop]
        return out

    def dense(self) -> np.ndarray:
        """Return the whole matrix, in float64."""
        out = np.zeros(self.shape)
        for (start, stop), (diagonal, columns, values) in zip(
            pairwise(self.edges), self._strips, strict=True
        ):
            out[start:stop, start:stop] = diagonal
            out[start:stop, columns] = values
            out[columns, start:stop] = values.T
        return out
