"""Equal rows, which are left out together: a row that stays would predict its copies.

A group of equal rows with weights w is one row with weight Σ w and the mean of their targets. So a
fit without the group misses the mean by (mean - f) / (1 - Σ h), with h the leverages of the group,
and each row by y - mean more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.ridge.factored import Sums
from gramian.learners.ridge.systems import System


class Repeats(NamedTuple):
    """Groups of equal rows, and what they change in the errors of a path."""

    distinct: int  # groups with weight
    means: Array  # (n, n_targets): the mean target of a row's group
    shares: Array  # (n, 1): the weight of a row's group, divided by its own
    within: np.ndarray  # (n_targets,): Σ w (y - mean)²

    @classmethod
    def of(cls, system: System, labels: np.ndarray | None = None) -> Repeats | None:
        """Return the groups; None if all rows differ, or are objects.

        Rows with different ``labels`` (n,) differ in the matrix, even if they are equal.
        """
        rows, n = system.rows, system.rows.shape[0]
        if rows.are_objects:
            return None
        found, groups = np.unique(_marks(system), return_inverse=True)
        if labels is not None:
            pairs = groups * (int(labels.max()) + 1) + labels
            found, groups = np.unique(pairs, return_inverse=True)
        if len(found) == n:
            return None
        Y = array_ops.host_float64(system.Y)
        w = np.ones(n) if system.weights is None else array_ops.host_float64(system.weights)
        totals = np.bincount(groups, w)
        weighed = np.where(totals > 0, totals, 1.0)
        sums = np.stack([np.bincount(groups, w * y) for y in Y.T], axis=1)
        means = (sums / weighed[:, None])[groups]
        shares = np.where(w > 0, totals[groups] / np.where(w > 0, w, 1.0), 1.0)
        align, double = rows.place.align, rows.xp.float64
        within = w @ (Y - means) ** 2
        distinct = int(np.count_nonzero(totals))
        return cls(distinct, align(means, double), align(shares[:, None], double), within)

    def between(self, sums: Sums) -> Sums:
        """Return sums over the groups in place of the rows; those of features are the same."""
        return sums._replace(rows=self.distinct, squares=sums.squares - self.within)


def repeats_bytes(system: System) -> int:
    """Return the memory of ``Repeats.of`` and its result."""
    return 8 * system.rows.shape[0] * (5 * system.n_targets + 8)


def _marks(system: System) -> np.ndarray:
    """Return a number for each row: equal for equal rows, and different for different ones.

    It is their product with a random vector. That of a row must not depend on where in a block the
    row is, as it may in a product of matrices.
    """
    rows = system.rows
    vector = np.random.default_rng(0).standard_normal(rows.shape[1])

    def marks(x: Array, out: Array) -> Array:
        if array_ops.issparse(x):
            return x @ vector
        xp = array_ops.namespace(x)
        return xp.sum(array_ops.astype(x, xp.float64) * array_ops.like(vector, x), axis=1)

    found = rows.map(
        marks, dtype=rows.xp.float64, row_bytes=2 * 8 * rows.shape[1], label="equal rows"
    )
    return np.asarray(array_ops.to_numpy(found))
