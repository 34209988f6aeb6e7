"""k-means in input space, on a sample of rows in memory.

scikit-learn's ``KMeans`` is not used: it hangs in a forked child of a process that has used it, and
when it runs in several Python threads at once, it can leave BLAS limited to one thread. These walks
use gramian's own threads and blocks.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.rows import ArrayRows


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


def lloyd_bytes(n: int, k: int, width: int) -> int:
    """Return the memory of ``lloyd`` besides a sample of n rows and blocks of it.

    ``width`` is the memory of a dense row. Per row: its label before and now, product and norm, and
    distances that are sorted; centres in float64, twice, with sums, and in the dtype of the rows.
    """
    return n * 8 * 8 + 8 * k * width


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
