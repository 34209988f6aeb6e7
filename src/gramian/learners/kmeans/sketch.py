"""Sketches: features of fewer columns, on which restarts cost less.

Centres of k clusters lie near the dimensions in which the rows vary most: in the others, the means
of many rows hardly differ. A sketch has the coordinates of the rows in these dimensions. What it
leaves out of a row's distance is nearly the same for all centres.
"""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.matrices.factors import Factors
from gramian.rows import ArrayRows

LEAST = 64  # columns
WORTH = 1.5  # times as many columns have the features, at least
EXAMPLES = 8  # rows for each column, from which the dimensions are found


def sketched(factors: Factors, k: int, rng: np.random.Generator) -> Factors:
    """Return a sketch for k clusters, in memory; the factors themselves if it saves little."""
    if not is_sketched(factors, k):
        return factors
    n, size = factors.shape[0], sketch_size(k)
    chosen = np.sort(rng.choice(n, size=min(n, EXAMPLES * size), replace=False))
    basis = _basis(factors.take(chosen), rng.standard_normal((factors.rank, size)))
    values = factors.features_matmul(basis)  # (n, size)
    values = array_ops.to_numpy(values) if array_ops.is_lazy(values) else values
    return Factors(ArrayRows(array_ops.astype(values, factors.dtype)))


def is_sketched(factors: Factors, k: int) -> bool:
    """Whether a sketch has far fewer columns than the features."""
    plain = factors.core is None and factors.local is None
    return plain and factors.rank >= WORTH * sketch_size(k)


def sketch_size(k: int) -> int:
    """Return the number of columns of a sketch for k clusters."""
    return max(LEAST, k + k // 4)


def sketch_bytes(factors: Factors, n: int, k: int) -> int:
    """Return the memory of a sketch of n rows, first in float64, and of finding its columns."""
    if not is_sketched(factors, k):
        return 0
    size, item = sketch_size(k), array_ops.itemsize(factors.dtype)
    examples = min(n, EXAMPLES * size)
    finding = factors.parts.take_bytes(examples) + 8 * size * (examples + 4 * factors.rank)
    return max(finding, n * size * (8 + item))


def _basis(rows: Factors, start: np.ndarray) -> Array:
    """Return orthonormal columns (r, size) in which the rows vary most, by a step of iteration.

    ``start`` (r, size) are random columns.
    """
    first = rows.rmatmul(rows.features_matmul(array_ops.like(start, rows.parts.example())))
    return array_ops.namespace(first).linalg.qr(first)[0]
