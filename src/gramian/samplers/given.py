"""Landmarks that the user specifies, by row numbers or as points."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.kernels import Precomputed
from gramian.matrices.gram import Gram
from gramian.rows import Rows, as_rows
from gramian.samplers.base import Landmarks, Sampler, dense_row_bytes, from_rows

__all__ = ["GivenIndices", "GivenPoints"]


class GivenIndices(Sampler):
    """The rows with these numbers.

    Parameters
    ----------
    indices : array of int of shape (m,)

    See Also
    --------
    GivenPoints : points in place of row numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, GivenIndices
    >>> gram = Gram(RBF(1.0), [[0.0], [5.0], [7.0]])
    >>> GivenIndices([2, 0]).select(gram, 2, np.random.default_rng(0)).points
    array([[7.],
           [0.]])
    """

    fixed = True

    def __init__(self, indices: Array) -> None:
        self.indices = indices

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        indices = np.asarray(array_ops.to_numpy(self.indices))
        n = gram.shape[0]
        if indices.dtype.kind not in "iu" or indices.ndim != 1 or not len(indices):
            raise ValueError(
                f"landmarks given as row numbers must be integers; got {self.indices!r}."
            )
        if indices.min() < 0 or indices.max() >= n:
            raise ValueError(
                f"landmarks given as row numbers must be from 0 to {n - 1}; got "
                f"{indices.min()} to {indices.max()}."
            )
        return from_rows(gram, indices)

    def most_landmarks(self, m: int) -> int:
        return len(self.indices)


class GivenPoints(Sampler):
    """These points, which need not be rows of the data.

    Parameters
    ----------
    points : array of shape (m, d), or list of m objects

    See Also
    --------
    GivenIndices : row numbers in place of points.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, GivenPoints
    >>> gram = Gram(RBF(1.0), [[0.0], [5.0], [7.0]])
    >>> len(GivenPoints([[1.0], [6.0]]).select(gram, 2, np.random.default_rng(0)))
    2
    """

    fixed = True

    def __init__(self, points: Array) -> None:
        self.points = points

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        points = as_rows(self.points, name="landmarks", objects=gram.rows.are_objects)
        width = gram.rows.shape[1]
        if isinstance(gram.kernel, Precomputed):
            raise ValueError(
                "With a precomputed matrix, landmarks are given as row numbers, not as points."
            )
        if points.shape[1] != width:
            raise ValueError(
                f"landmarks need as many columns as the rows, {width}; got {points.shape[1]}."
            )
        collected = points.collect()
        if array_ops.issparse(collected):
            return Landmarks(collected.astype(np.dtype(gram.rows.dtype)))
        example = array_ops.dense(gram.rows.take([0]))
        return Landmarks(array_ops.like(collected, example, gram.rows.dtype))

    def landmark_bytes(self, rows: Rows) -> int:
        return rows.row_bytes if array_ops.issparse(self.points) else dense_row_bytes(rows)

    def most_landmarks(self, m: int) -> int:
        shape = getattr(self.points, "shape", None)
        return len(self.points) if shape is None else int(shape[0])
