"""k-means centres, unless a few rows carry most of the error that they leave: then pivots."""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows
from gramian.samplers.base import Landmarks, Sampler, dense_row_bytes, host_diagonal
from gramian.samplers.centroids import KMeansCentres
from gramian.samplers.pivoted import pivoted_cholesky, worst_first

__all__ = ["RobustCentres"]

COARSE = 16  # one centre in 16 explains the rows coarsely
INSPECTED, LEAST_INSPECTED = 128, 32  # rows explained worst, and as many random ones
UNEVEN = 1.8  # what m further pivots would remove at their first one's rate, times what is left
POOL, LEAST_POOL = 15, 3000  # rows per pivot, and at least
FAR = 2  # of these, the rows explained worst
ROUNDING = 100.0  # times the machine epsilon and the largest diagonal entry


class RobustCentres(Sampler):
    """k-means centres, or randomly pivoted Cholesky where a few rows carry the centres' error.

    Centres of k-means usually leave less error than rows (:class:`KMeansCentres`). But they
    represent where most rows are: rows that are far from all others, and the tails of smooth
    kernels, are left out, and then carry nearly all of the error. So this sampler looks at the
    residuals E = K - K̃ of some rows: of random ones, and of those explained worst by a few of the
    centres. One more row, drawn in proportion to E_ii, reduces the trace of E by tr E² / tr E on
    average. If that is more than 1.8 / m of tr E, pivots replace the centres: they are drawn
    from the worst 2 m rows and 13 m random ones (together at least 3,000), with weights. It takes
    n (2 + m / 16) kernel values, those among 256 rows and the centres, and for pivots 15 m².

    See Also
    --------
    KMeansCentres : always centres.
    RPCholesky : always pivots.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, RobustCentres
    >>> X = np.r_[np.random.default_rng(0).standard_normal((500, 1)), [[-30.0], [40.0]]]
    >>> landmarks = RobustCentres().select(Gram(RBF(0.1), X), 10, np.random.default_rng(0))
    >>> float(landmarks.points.min()), float(landmarks.points.max())
    (-30.0, 40.0)
    """

    names = ("robust-kmeans",)

    @one_blas_thread()
    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        centres = KMeansCentres().select(gram, m, rng)
        n, (some, size) = gram.shape[0], self._sizes(gram.rows, m)
        if some < LEAST_INSPECTED:
            return centres
        count = min(max(some, FAR * m), n)
        far = worst_first(_coarse_residuals(gram, centres), count)[:count]
        inspected = _Pool.of(gram, far[:some], some, rng)
        if not inspected.is_uneven(gram, centres, m):
            return centres
        far = far[: FAR * m]
        pool = _Pool.of(gram, far, size - len(far), rng)
        inside = Gram(gram.kernel, ArrayRows(pool.points))
        pivots = pivoted_cholesky(inside, m, rng, weights=pool.weights).pivots
        gram.evaluations += inside.evaluations
        # Fewer pivots explain all but rounding: others do no harm, and m were requested.
        more = max(len(centres) - len(pivots), 0)
        others = np.setdiff1d(np.arange(len(pool.weights)), pivots)[:more]
        return Landmarks(array_ops.take_rows(pool.points, np.append(pivots, others)))

    def most_evaluations(self, n: int, m: int) -> int:
        looked_at = (m // COARSE + 4) ** 2 + (2 * INSPECTED + m) ** 2
        return n * (m // COARSE + 6) + looked_at + 2 * max(POOL * m, LEAST_POOL) * (m + 1)

    def select_bytes(self, rows: Rows, m: int) -> int:
        some, seen = self._sizes(rows, m)
        if some < LEAST_INSPECTED:
            return KMeansCentres().select_bytes(rows, m)
        wide = 2 * some + m
        inspects = 4 * 8 * wide**2 + 2 * wide * rows.row_bytes
        factor = (m + max(4, m // 4)) * array_ops.itemsize(rows.dtype)
        pivots = seen * (factor + 3 * rows.row_bytes)
        own = max(inspects, pivots) + m * self.landmark_bytes(rows) + 5 * 8 * rows.shape[0]
        return max(KMeansCentres().select_bytes(rows, m), own)

    def landmark_bytes(self, rows: Rows) -> int:
        return max(dense_row_bytes(rows), rows.row_bytes)

    @staticmethod
    def _sizes(rows: Rows, m: int) -> tuple[int, int]:
        """Return how many rows are looked at, and how many rows pivots are drawn from.

        The first are those explained worst, and as many random ones: their matrices take at most a
        quarter of the memory budget, or there are none. The others take at most an eighth.
        """
        n, room = rows.shape[0], isqrt(config.memory_budget() // 4 // (4 * 8)) - m
        inspected = min(INSPECTED, n // 4, room // 2, room // (FAR + 1))
        of_row = 2 * m * array_ops.itemsize(rows.dtype) + 3 * rows.row_bytes
        pool = min(max(POOL * m, LEAST_POOL), config.memory_budget() // 8 // of_row)
        return inspected, min(n, max(pool, (FAR + 1) * m))


class _Pool(NamedTuple):
    """Rows that stand for all: some for themselves, random ones for the others."""

    points: Array
    weights: np.ndarray  # how many rows each stands for

    @classmethod
    def of(cls, gram: Gram, far: np.ndarray, size: int, rng: np.random.Generator) -> _Pool:
        """Take the ``far`` rows, each for itself, and about ``size`` of the others for the rest."""
        n = gram.shape[0]
        others = np.setdiff1d(rng.choice(n, size=min(size, n), replace=False), far)
        numbers = np.append(far, others)
        weights = np.ones(len(numbers))
        weights[len(far) :] = (n - len(far)) / max(len(others), 1)
        ascending = np.argsort(numbers)
        return cls(gram.points.take(numbers[ascending]), weights[ascending])

    def is_uneven(self, gram: Gram, centres: Landmarks, m: int) -> bool:
        """Whether a further row, drawn by its residual, would remove much of what is left."""
        kernel, double = gram.kernel, gram.rows.xp.float64
        own = Gram(kernel, ArrayRows(array_ops.astype(self.points, double)))
        root = _inverse_root(gram, centres.points)
        Z = array_ops.host_float64(kernel.against(centres.points)(self.points)) @ root
        K = array_ops.host_float64(own.dense())
        gram.evaluations += own.evaluations + K.shape[0] * len(centres)
        E = K - Z @ Z.T
        left = np.maximum(E.diagonal(), 0.0) * self.weights
        if left.sum() <= 100 * array_ops.eps(gram.dtype) * (self.weights * K.diagonal()).sum():
            return False  # rounding
        squares = E**2 * self.weights[:, None] * self.weights
        np.fill_diagonal(squares, E.diagonal() ** 2 * self.weights)
        return bool(m * squares.sum() > UNEVEN * left.sum() ** 2)


def _coarse_residuals(gram: Gram, centres: Landmarks) -> np.ndarray:
    """Return k(x, x) less what a few of the centres explain, for each row; shape (n,).

    The unit is what may be rounded, so that rows that differ by rounding alone are equal.
    """
    few = np.linspace(0, len(centres) - 1, len(centres) // COARSE + 2).astype(np.intp)
    points = array_ops.take_rows(centres.points, np.unique(few))
    root, tile = _inverse_root(gram, points), gram.kernel.against(points)

    def explained(x: Array, out: Array) -> Array:
        return array_ops.like(array_ops.row_norms(array_ops.host_float64(tile(x)) @ root), out)

    gram.evaluations += gram.shape[0] * points.shape[0]
    known = gram.rows.map(
        explained,
        dtype=gram.rows.xp.float64,
        row_bytes=2 * 8 * points.shape[0],
        serial=gram.kernel.serial,
        label="residuals of centres",
    )
    left = host_diagonal(gram)
    step = ROUNDING * array_ops.eps(gram.dtype) * max(float(left.max()), np.finfo(float).tiny)
    left -= array_ops.to_numpy(known)
    return np.round(left / step)


def _inverse_root(gram: Gram, points: Array) -> np.ndarray:
    """Return P with P Pᵀ = W⁺, for the kernel matrix W (p, p) of these points."""
    inner = Gram(gram.kernel, ArrayRows(array_ops.astype(points, gram.rows.xp.float64)))
    W = array_ops.host_float64(inner.dense())
    gram.evaluations += inner.evaluations
    cutoff = max(len(W) * np.finfo(float).eps, array_ops.eps(gram.dtype))
    lower, pivots = linalg.pivoted_cholesky(W, cutoff * max(float(W.diagonal().max()), 0.0))
    P = np.zeros((len(W), len(pivots)))
    P[pivots] = linalg.inverse_triangle(lower).T
    return P
