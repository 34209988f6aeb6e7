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


def centred(sample: Array) -> np.ndarray:
    """Move a dense sample to its mean, in place: near 0, products lose little to rounding.

    Return what was subtracted, of shape (d,); 0 for a sparse sample, which stays where it is.
    """
    if array_ops.issparse(sample):
        return np.zeros(sample.shape[1], sample.dtype)
    middle = sample.mean(axis=0, dtype=np.float64).astype(sample.dtype)
    sample -= middle
    return middle


def lloyd(sample: Array, starts: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres after some of Lloyd's steps, and the number of rows of each.

    The first centres are the rows with the numbers ``starts``. An empty cluster takes one of the
    rows that are farthest from their centres.

    Shapes: sample (n, d), a NumPy or SciPy CSR array; starts (k,); results (k, d) and (k,).
    """
    rows, norms = ArrayRows(sample), array_ops.row_norms(sample)
    centres, before = _dense(sample, starts), None
    for _ in range(steps):
        labels, products = _assign(rows, centres)
        if before is not None and (labels == before).all():
            break
        masses = np.bincount(labels, minlength=len(centres))
        filled = masses > 0
        centres[filled] = _sums(sample, labels, len(centres))[filled] / masses[filled, None]
        if not filled.all():
            distances = norms - 2 * products
            farthest = np.argsort(-distances, kind="stable")[: np.count_nonzero(~filled)]
            centres[~filled] = _dense(sample, farthest)
        before = labels
    return centres, masses


def lloyd_bytes(n: int, k: int, width: int) -> int:
    """Return the memory of ``lloyd`` besides a sample of n rows and blocks of it.

    ``width`` is the memory of a dense row. Per row: its label before and now, product and norm, and
    distances that are sorted; centres in float64, twice, with sums, and in the dtype of the rows.
    """
    return n * 8 * 8 + 8 * k * width


def _assign(rows: ArrayRows, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the closest centre of each row, and x·c - ‖c‖²/2 with it."""
    right = np.ascontiguousarray(centres.T, dtype=rows.dtype)
    halves = (array_ops.row_norms(centres) / 2).astype(rows.dtype)

    def closest(x: Array, out: np.ndarray) -> np.ndarray:
        products = array_ops.matmul(x, right)
        products -= halves
        best = products.argmax(axis=1)
        out[:, 0] = best
        out[:, 1] = products[np.arange(len(best)), best]
        return out

    found = rows.map(
        closest, width=2, dtype=np.float64, row_bytes=len(centres) * right.itemsize, label="k-means"
    )
    return found[:, 0].astype(np.intp), found[:, 1]


def _sums(sample: Array, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the sum of the rows with each label, in float64; shape (k, d)."""
    ones = np.ones(len(labels))
    if not array_ops.issparse(sample):
        return array_ops.sum_by_label(sample, labels, ones, k)
    members = scipy.sparse.csc_array((ones, labels, np.arange(len(labels) + 1)), (k, len(labels)))
    return (members @ sample).toarray()


def _dense(sample: Array, numbers: np.ndarray) -> np.ndarray:
    taken = sample[numbers]
    return (taken.toarray() if array_ops.issparse(taken) else taken).astype(np.float64)
