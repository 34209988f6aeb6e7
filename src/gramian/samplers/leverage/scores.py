"""Ridge leverage scores from a spectrum, estimates of them, and draws by them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from gramian.backend import array_ops, blas
from gramian.backend.array_ops import Array, DType
from gramian.backend.threads import few_blas_threads
from gramian.matrices.gram import Gram
from gramian.samplers.base import gathered, settled_diagonal

Pair = tuple[np.ndarray, np.ndarray]
ROUNDING = 450  # scores from a factor below this times the machine epsilon are rounding errors


class Dictionary:
    """Weighted rows S: the spectrum of W^½ K_SS W^½ stands in for that of K."""

    def __init__(self, gram: Gram, rows: np.ndarray, weights: np.ndarray) -> None:
        self.gram, self.rows, self.root = gram, rows, np.sqrt(weights)
        core = array_ops.host_float64(gram.block(rows, rows))
        self.values, self.vectors = spectrum(self.root[:, None] * core * self.root)

    def scores(self, rows: np.ndarray, ridge: float) -> Array:
        """Return (k_ii - k_iS W^½ (W^½ K_SS W^½ + ridge I)⁻¹ W^½ k_Si) / ridge for these rows.

        Row numbers are in ascending order. The scores are where the rows are.
        """
        gram, dtype, double = self.gram, self.gram.dtype, self.gram.rows.xp.float64
        solve = self.root[:, None] * self.vectors / np.sqrt(self.values + ridge)
        solve = array_ops.like(solve, gram.rows.place.reference, dtype)
        tile = gram.kernel.against(gram.points.take(self.rows))
        everything = len(rows) == gram.shape[0]

        def explained(x: Array, out: Array) -> Array:
            norms = array_ops.row_norms(array_ops.astype(tile(x), dtype) @ solve)
            return array_ops.astype(norms, double)

        gram.evaluations += len(rows) * len(self.rows)
        known = (gram.rows if everything else gram.rows.choose(rows)).map(
            explained,
            dtype=double,
            row_bytes=2 * 8 * len(self.rows),
            serial=gram.kernel.serial,
            label="leverage scores",
        )
        left = settled_diagonal(gram)
        left = left if everything else array_ops.take_rows(left, rows)
        left -= gathered(known)
        return array_ops.clip(left, 0.0, ridge) / ridge


def spectrum(K: np.ndarray) -> Pair:
    """Return eigenvalues (n,), those below 0 set to 0, and eigenvectors (n, n) of K (n, n)."""
    with few_blas_threads(len(K)):
        values, vectors = eigh(K, driver="evd", check_finite=False)
    return np.maximum(values, 0.0), vectors


def scores_from_spectrum(values: np.ndarray, vectors: np.ndarray, ridge: float) -> np.ndarray:
    """Return the ridge leverage scores (n,) of the matrix with this spectrum."""
    return vectors**2 @ (values / (values + ridge))


def scores_from_factor(
    K: np.ndarray, ridge: float, work: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the ridge leverage scores (n,) of K (n, n), I - ridge (K + ridge I)⁻¹.

    They are in float64, computed in the precision of K, in the memory of ``work`` (n, n) if that
    is passed. None if rounding makes K + ridge I indefinite.
    """
    work = np.empty_like(K) if work is None else work
    work[...] = K
    np.fill_diagonal(work, K.diagonal() + ridge)
    with few_blas_threads(len(K)):
        if not blas.invert_factor(work):
            return None
    scores = 1 - ridge * np.einsum("ij,ij->j", work, work).astype(np.float64)
    return np.where(scores > ROUNDING * array_ops.eps(K.dtype), scores, 0.0)


def covered_dimension(m: int) -> float:
    """Return the effective dimension d that m draws by leverage can cover: m is O(d log d)."""
    return m / (2 * np.log(m + np.exp(1.0)))


def resolution(values: np.ndarray, dtype: DType) -> float:
    """Return the ridge below which rounding of the entries or the decomposition dominates."""
    return (10 * array_ops.eps(dtype) + 1e-12) * float(values.sum()) or 1.0


def suitable_ridge(values: np.ndarray, m: int, floor: float) -> float:
    """Return the ridge, at least ``floor``, at which m draws cover Σ λ / (λ + ridge)."""

    def excess(log_ridge: float) -> float:
        return float(np.sum(values / (values + np.exp(log_ridge)))) - covered_dimension(m)

    low = np.log(floor)
    if excess(low) <= 0:
        return floor
    return float(np.exp(brentq(excess, low, np.log(values.sum() / covered_dimension(m)))))


def doublings(least: int, size: int) -> list[int]:
    """Return sizes that double up to ``size``; the first is at most ``least``."""
    sizes = [size]
    while sizes[-1] > least:
        sizes.append(-(-sizes[-1] // 2))
    return sizes[::-1]


def draw(scores: Array, size: int, rng: np.random.Generator) -> Pair:
    """Draw ``size`` distinct positions; all with a positive score if there are fewer.

    Returns the positions and the probability with which each was drawn: min(1, c scores_i), where
    c makes the expected number ``size``. Systematic sampling in a random order then draws exactly
    that many. The work is done where the scores are; the result is on the host.
    """
    xp = array_ops.namespace(scores)
    scores = xp.where(scores > 1e-300, scores, xp.zeros_like(scores))  # too small to divide by
    if not bool(xp.any(scores > 0)):
        scores = xp.ones_like(scores)
    if int(xp.count_nonzero(scores)) <= size:
        positive = np.flatnonzero(array_ops.to_numpy(scores))
        return positive, np.ones(len(positive))
    order = rng.permutation(scores.shape[0])
    chances = array_ops.take_rows(_chances(scores, size), order)
    edges = xp.cumulative_sum(chances)
    ticks = np.minimum((rng.uniform() + np.arange(size)) / size, np.nextafter(1.0, 0.0))
    ticks = array_ops.like(ticks, edges)
    picked = np.unique(array_ops.to_numpy(xp.searchsorted(edges / edges[-1], ticks, side="right")))
    return order[picked], array_ops.to_numpy(array_ops.take_rows(chances, picked))


def _chances(scores: Array, size: int) -> Array:
    """Return min(1, c scores_i), with the c at which they add up to ``size``."""
    xp = array_ops.namespace(scores)
    certain, count = xp.zeros_like(scores, dtype=xp.bool), 0
    while True:  # rows that are certain leave fewer draws, and a larger c, to the others
        rest = float(xp.sum(xp.where(certain, xp.zeros_like(scores), scores)))
        chances = scores * ((size - count) / rest)
        more = certain | (chances >= 1.0)
        before, count = count, int(xp.count_nonzero(more))
        if count == before:
            return xp.where(certain, xp.ones_like(scores), chances)
        certain = more
