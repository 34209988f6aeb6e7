"""Landmarks that are cluster centres, or rows far from each other."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive_integer
from gramian.kernels import Precomputed
from gramian.kernels.distance import scaled
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows, even_spans
from gramian.samplers.base import Landmarks, Sampler, dense_row_bytes, from_rows, host_diagonal
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
        return Landmarks(array_ops.like(centres, rows.place.reference, rows.dtype))

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
        # In ``lloyd``, per row: its label before and now, product and norm, and distances that are
        # sorted; centres in float64, twice, with sums, and in the dtype of the rows.
        clustering = size * 8 * 8 + 8 * m * width
        return size * of_row + clustering + 8 * rows.shape[0]

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


def centred(sample: Array) -> Array:
    """Move a dense sample to its mean, in place: near 0, products lose little to rounding.

    Return what was subtracted, of shape (d,); 0 for a sparse sample, which stays where it is.
    """
    if array_ops.issparse(sample):
        return np.zeros(sample.shape[1], sample.dtype)
    xp = array_ops.namespace(sample)
    middle = xp.sum(sample, axis=0, dtype=xp.float64) / sample.shape[0]
    middle = array_ops.astype(middle, sample.dtype)
    sample -= middle
    return middle


def lloyd(sample: Array, starts: np.ndarray, steps: int, tol: float = 0.0) -> tuple[Array, Array]:
    """Return the centres after some of Lloyd's steps, and the number of rows of each.

    The first centres are the rows with the numbers ``starts``. An empty cluster takes one of the
    rows that are farthest from their centres. There are at most ``steps``; a step that lowers the
    objective by less than ``tol`` of it is the last.

    scikit-learn's ``KMeans`` is not used: it hangs in a forked child of a process that has used it,
    and when it runs in several Python threads at once, it can leave BLAS limited to one thread.

    Shapes: sample (n, d), a dense array of any library or a SciPy CSR array; starts (k,); results
    (k, d) and (k,), where the sample is.
    """
    rows, norms, xp = ArrayRows(sample), array_ops.row_norms(sample), array_ops.namespace(sample)
    centres, total = _dense(sample, starts), float(xp.sum(norms, dtype=xp.float64))
    before, objective = None, np.inf
    for _ in range(steps):
        labels, products = _assign(rows, centres)
        lower = total - 2 * float(xp.sum(products))
        if before is not None and bool(xp.all(labels == before)):
            break
        ones = xp.ones_like(labels, dtype=xp.float64)
        masses = array_ops.mass_by_label(labels, ones, len(starts))
        sums = _sums(sample, labels, ones, len(starts))
        filled = masses > 0
        means = sums / xp.where(filled, masses, xp.ones_like(masses))[:, None]
        centres = xp.where(filled[:, None], means, centres)
        empty = np.flatnonzero(array_ops.to_numpy(~filled))
        if len(empty):
            farthest = xp.argsort(2 * products - norms, stable=True)[: len(empty)]
            array_ops.put_rows(centres, empty, _dense(sample, array_ops.to_numpy(farthest)))
        if lower > (1 - tol) * objective:
            break
        before, objective = labels, lower
    return centres, masses


def _assign(rows: ArrayRows, centres: Array) -> tuple[Array, Array]:
    """Return the closest centre of each row, and x·c - ‖c‖²/2 with it."""
    xp, halves = rows.xp, array_ops.astype(array_ops.row_norms(centres) / 2, rows.dtype)
    right = array_ops.contiguous(array_ops.astype(xp.matrix_transpose(centres), rows.dtype))

    def closest(x: Array, out: Array) -> Array:
        products = array_ops.matmul(x, right)
        products -= halves
        out[:, 0] = array_ops.astype(xp.argmax(products, axis=1), xp.float64)
        out[:, 1] = array_ops.astype(xp.max(products, axis=1), xp.float64)
        return out

    row_bytes = centres.shape[0] * array_ops.itemsize(rows.dtype)
    found = rows.map(closest, width=2, dtype=xp.float64, row_bytes=row_bytes, label="k-means")
    return array_ops.astype(found[:, 0], xp.int64), found[:, 1]


def _sums(sample: Array, labels: Array, ones: Array, k: int) -> Array:
    """Return the sum of the rows with each label, in float64; shape (k, d)."""
    if not array_ops.issparse(sample):
        return array_ops.sum_by_label(sample, labels, ones, k)
    members = scipy.sparse.csc_array((ones, labels, np.arange(len(labels) + 1)), (k, len(labels)))
    return (members @ sample).toarray()


def _dense(sample: Array, numbers: np.ndarray) -> Array:
    taken = array_ops.dense(array_ops.take_rows(sample, numbers))
    return array_ops.astype(taken, array_ops.namespace(taken).float64)
