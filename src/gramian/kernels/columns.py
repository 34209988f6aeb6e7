"""A kernel of some of the columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.kernels.base import Kernel
from gramian.kernels.compose import Composed, kernel_of
from gramian.kernels.pairings import Tile
from gramian.rows import FeatureRows, Rows

__all__ = ["Columns"]


class Columns(Composed):
    """A kernel that sees only some columns of the rows.

    Sums and products of such kernels treat groups of columns differently, such as numbers and
    categories.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int
        The numbers of the columns, counting from 0.

    See Also
    --------
    Categorical : a kernel of categories.

    Examples
    --------
    >>> from gramian import RBF, Categorical, Columns
    >>> kernel = Columns(RBF(1.0), [0]) * Columns(Categorical(1.0), [1, 2])
    >>> kernel([[0.0, 1.0, 1.0]], [[0.0, 1.0, 1.0], [1.0, 1.0, 2.0]]).round(3)
    array([[1.   , 0.135]])
    """

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel = kernel
        self.columns = columns

    def parts(self) -> tuple[Kernel, ...]:
        return (kernel_of(self, "kernel", "Columns(kernel, columns)"),)

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        weights: Array | None = None,
        y: Array | None = None,
    ) -> Columns:
        self.kernel.fit_rows(self._of(rows), rng, weights, y)
        return self

    def fit_bytes(self, rows: Rows) -> int:
        return self.kernel.fit_bytes(self._of(rows))

    def check_rows(self, rows: Rows) -> Rows:
        if rows.are_objects:
            return super().check_rows(rows)
        self._checked(rows.shape[1])
        return rows

    def against(self, points: Array) -> Tile:
        chosen = self._checked(points.shape[1])
        tile = self.kernel.against(array_ops.take_columns(points, chosen))
        return lambda x, out=None: tile(array_ops.take_columns(x, chosen), out)

    def diagonal(self, rows: Rows) -> Array:
        return self.kernel.diagonal(self._of(rows))

    def _of(self, rows: Rows) -> Rows:
        chosen = self._checked(rows.shape[1])
        return FeatureRows(
            rows, lambda x, out=None: array_ops.take_columns(x, chosen), len(chosen), rows.dtype
        )

    def _checked(self, d: int) -> np.ndarray:
        chosen = np.asarray(self.columns)
        whole = chosen.ndim == 1 and len(chosen) > 0 and chosen.dtype.kind in "iu"
        if not whole or (chosen < 0).any() or (chosen >= d).any():
            raise ValueError(
                f"columns of Columns must be numbers of columns from 0 to {d - 1}; got "
                f"{self.columns!r:.80}."
            )
        return chosen
