"""Landmarks that are cluster centres, or rows far from each other."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive_integer
from gramian.kernels import Precomputed
from gramian.kernels.distance import scaled
from gramian.matrices.gram import Gram
from gramian.rows import Rows, even_spans
from gramian.samplers.base import (
    Landmarks,
    Sampler,
    dense_row_bytes,
    from_rows,
    host_diagonal,
)
from gramian.samplers.kmeans import centred, lloyd, lloyd_bytes
from gramian.samplers.plus_plus import draw

__all__ = ["KMeansCentres", "KMeansPlusPlus"]

CENTRES_PART = 16  # "auto" allows centres this part of the memory budget: there are several copies
COLUMNS = 16  # of the matrix, in memory at once
MOST_DRAWN = 128  # rows drawn at once
DENSE_BYTES = 64 * 1024**2  # samples of sparse rows up to this size are clustered as dense rows


class KMeansCentres(Sampler):
    """Centres of k-means in input space, found on a subsample; no kernel evaluation.

    (Zhang, Tsang and Kwok, 2008.) Sparse rows have the same centres as dense ones, as a dense
    array. If the kernel has scales of columns, distances between rows are those that it sees.

    Parameters
    ----------
    rows_per_centre : int, default=15
        The number of rows in the subsample for each landmark.
    max_iter : int, default=4
        The number of Lloyd's steps; more hardly reduce the error.

    See Also
    --------
    RPCholesky : for rows that are not vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, KMeansCentres
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> landmarks = KMeansCentres().select(Gram(RBF(1.0), X), 2, np.random.default_rng(0))
    >>> sorted(landmarks.points.ravel().tolist())
    [0.5, 10.5]
    """

    names = ("kmeans",)

    def __init__(self, rows_per_centre: int = 15, max_iter: int = 4) -> None:
        self.rows_per_centre = rows_per_centre
        self.max_iter = max_iter

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        if isinstance(gram.kernel, Precomputed) or gram.rows.are_objects:
            got = "objects" if gram.rows.are_objects else "a precomputed matrix"
            raise ValueError(
                f"k-means centres need rows that are vectors; got {got}. Use "
                "landmarks='rpcholesky'."
            )
        rows = gram.rows
        n, size = rows.shape[0], self._sample_size(rows, m)
        example = rows.take(np.sort(rng.choice(n, size=size, replace=False)))
        starts = rng.choice(size, size=min(m, size), replace=False)
        steps = positive_integer(self, "max_iter", self.max_iter)
        scales = gram.kernel.column_scales()
        sample = _to_cluster(example if scales is None else scaled(example, scales))
        middle = centred(sample)
        centres, masses = lloyd(sample, starts, steps)
        filled = np.flatnonzero(array_ops.to_numpy(masses))  # fewer where rows coincide
        centres = array_ops.take_rows(centres, filled) + middle
        centres = centres if scales is None else _unscaled(centres, scales)
        if gram.kernel.serial and array_ops.issparse(example):
            # A kernel function gets two blocks of the same kind: sparse, as the rows are.
            return Landmarks(type(example)(centres))
        return Landmarks(array_ops.like(centres, rows.example(), rows.dtype))

    @staticmethod
    def are_affordable(rows: Rows, m: int) -> bool:
        """Whether "auto" chooses m centres for these rows: depends on their dense size only."""
        return m * dense_row_bytes(rows) <= config.memory_budget() // CENTRES_PART

    def _sample_size(self, rows: Rows, m: int) -> int:
        """Return the requested number of rows, or what fits an eighth of the memory budget.

        Sparse rows count as dense ones, so that the sample is the same.
        """
        requested = m * positive_integer(self, "rows_per_centre", self.rows_per_centre)
        room = config.memory_budget() // 8 // dense_row_bytes(rows)
        return min(rows.shape[0], requested, max(m, room))

    def select_bytes(self, rows: Rows, m: int) -> int:
        size, width = self._sample_size(rows, m), dense_row_bytes(rows)
        of_row = rows.row_bytes
        if of_row != width and size * width <= DENSE_BYTES:  # sparse rows, clustered as dense ones
            of_row += width
        return size * of_row + lloyd_bytes(size, m, width) + 8 * rows.shape[0]

    def landmark_bytes(self, rows: Rows) -> int:
        return dense_row_bytes(rows)


def _unscaled(centres: Array, scales: np.ndarray) -> Array:
    """Return points whose scaled columns are the centres; 0 where the kernel sees nothing."""
    found = array_ops.host_float64(array_ops.dense(centres))
    if scales.ndim == 2:
        return array_ops.like(found @ np.linalg.pinv(scales), centres)
    seen = scales != 0
    return array_ops.like(np.where(seen, found / np.where(seen, scales, 1.0), 0.0), centres)


def _to_cluster(sample: Array) -> Array:
    """Convert a sample for k-means: dense if small, so that ties break as for dense rows."""
    if not array_ops.issparse(sample):
        return sample
    size = sample.shape[0] * sample.shape[1] * sample.dtype.itemsize
    return sample.toarray() if size <= DENSE_BYTES else array_ops.short_indices(sample)


class KMeansPlusPlus(Sampler):
    """k-means++ in feature space: rows drawn by their squared distance to those drawn before.

    Rows are drawn in blocks with rejection, as if one after the other: n·m kernel evaluations, and
    those among the drawn blocks.

    See Also
    --------
    KMeansCentres : centres of clusters in place of rows.

    References
    ----------
    - D. Arthur and S. Vassilvitskii, k-means++: the advantages of careful seeding, SODA
      2007.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, KMeansPlusPlus
    >>> gram = Gram(RBF(1.0), [[0.0], [0.0], [5.0], [5.0]])
    >>> landmarks = KMeansPlusPlus().select(gram, 2, np.random.default_rng(0))
    >>> sorted(landmarks.points.ravel().tolist())
    [0.0, 5.0]
    """

    names = ("kmeans++",)

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        diagonal, k = host_diagonal(gram), min(m, gram.shape[0])
        seeds = draw(rng, np.ones(len(diagonal)), 1)
        closest = _distances(gram, diagonal, np.full(len(diagonal), np.inf), seeds)
        while len(seeds) < k and closest.any():
            size = min(MOST_DRAWN, max(4, len(seeds) // 4))
            drawn = rng.choice(len(closest), size=size, p=closest / closest.sum())
            fresh = _accepted(gram, diagonal, closest, drawn, rng)[: k - len(seeds)]
            closest = _distances(gram, diagonal, closest, fresh)
            seeds = np.append(seeds, fresh)
        return from_rows(gram, seeds)

    def select_bytes(self, rows: Rows, m: int) -> int:
        return super().select_bytes(rows, m) + 3 * 8 * rows.shape[0] * min(m, COLUMNS)


def _accepted(
    gram: Gram,
    diagonal: np.ndarray,
    closest: np.ndarray,
    drawn: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Accept each drawn row with the share of its distance that those before it have left."""
    within = array_ops.host_float64(gram.block(drawn, drawn))
    own = diagonal[drawn]
    left = closest[drawn].copy()
    thresholds = rng.random(len(drawn)) * left
    accepted = []
    for i in range(len(drawn)):
        if left[i] > thresholds[i]:  # the first always is
            accepted.append(i)
            left = np.minimum(left, np.maximum(own + own[i] - 2.0 * within[i], 0.0))
            left[drawn == drawn[i]] = 0.0
    return drawn[accepted]


def _distances(
    gram: Gram, diagonal: np.ndarray, closest: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return the squared distance of each row to the nearest of ``rows``, at most ``closest``."""
    for start, stop in even_spans(0, len(rows), COLUMNS):
        some = rows[start:stop]
        squared = array_ops.host_float64(gram.columns(some))
        squared = diagonal[:, None] + diagonal[some] - 2.0 * squared
        closest = np.minimum(closest, np.maximum(squared.min(axis=1), 0.0))
    closest[rows] = 0.0
    return closest
