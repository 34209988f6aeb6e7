"""Ridge leverage scores from a spectrum, estimates of them, and draws by them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, lapack
from scipy.optimize import brentq

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.matrices.gram import Gram
from gramian.samplers.base import host_diagonal

Pair = tuple[np.ndarray, np.ndarray]
ROUNDING = 1e-13  # scores from a factor below this are rounding errors


class Dictionary:
    """Weighted rows S: the spectrum of W^½ K_SS W^½ stands in for that of K."""

    def __init__(self, gram: Gram, rows: np.ndarray, weights: np.ndarray) -> None:
        self.gram, self.rows, self.root = gram, rows, np.sqrt(weights)
        core = array_ops.host_float64(gram.block(rows, rows))
        self.values, self.vectors = spectrum(self.root[:, None] * core * self.root)

    def scores(self, rows: np.ndarray, ridge: float) -> np.ndarray:
        """Return (k_ii - k_iS W^½ (W^½ K_SS W^½ + ridge I)⁻¹ W^½ k_Si) / ridge for these rows."""
        solve = self.root[:, None] * self.vectors / np.sqrt(self.values + ridge)
        gram, order = self.gram, np.argsort(rows)
        tile = gram.kernel.against(gram.points.take(self.rows))

        def explained(x: Array, out: Array) -> Array:
            return array_ops.like(array_ops.row_norms(array_ops.host_float64(tile(x)) @ solve), out)

        gram.evaluations += len(rows) * len(self.rows)
        known = gram.rows.choose(rows[order]).map(
            explained,
            dtype=gram.rows.xp.float64,
            row_bytes=2 * 8 * len(self.rows),
            serial=gram.kernel.serial,
            label="leverage scores",
        )
        left = host_diagonal(gram)[rows]
        left[order] -= array_ops.to_numpy(known)
        return np.clip(left, 0.0, ridge) / ridge


def spectrum(K: np.ndarray) -> Pair:
    """Return eigenvalues (n,), those below 0 set to 0, and eigenvectors (n, n) of K (n, n)."""
    values, vectors = eigh(K, driver="evd", check_finite=False)
    return np.maximum(values, 0.0), vectors


def scores_from_spectrum(values: np.ndarray, vectors: np.ndarray, ridge: float) -> np.ndarray:
    """Return the ridge leverage scores (n,) of the matrix with this spectrum."""
    return vectors**2 @ (values / (values + ridge))


def scores_from_factor(K: np.ndarray, ridge: float) -> np.ndarray | None:
    """Return the ridge leverage scores (n,) of K (n, n), I - ridge (K + ridge I)⁻¹.

    None if rounding makes K + ridge I indefinite.
    """
    M = np.array(K, order="F")
    np.fill_diagonal(M, K.diagonal() + ridge)
    lower, failed = lapack.dpotrf(M, lower=1, clean=1, overwrite_a=1)
    if failed:
        return None
    inverse, _ = lapack.dtrtri(lower, lower=1, overwrite_c=1)
    scores = 1 - ridge * np.sum(inverse**2, axis=0)
    return np.where(scores > ROUNDING, scores, 0.0)


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


def draw(scores: np.ndarray, size: int, rng: np.random.Generator) -> Pair:
    """Draw ``size`` distinct positions; all with a positive score if there are fewer.

    Returns the positions and the probability with which each was drawn: min(1, c scores_i), where
    c makes the expected number ``size``. Systematic sampling in a random order then draws exactly
    that many.
    """
    scores = np.where(scores > 1e-300, scores, 0.0)  # too small to divide by
    if not scores.any():
        scores = np.ones_like(scores)
    positive = np.flatnonzero(scores)
    if len(positive) <= size:
        return positive, np.ones(len(positive))
    falling = np.sort(scores)[::-1]
    rest = np.cumsum(falling[::-1])[::-1][:size]
    certain = np.argmax((size - np.arange(size)) * falling[:size] <= rest)
    factor = (size - certain) / rest[certain]
    order = rng.permutation(positive)
    chances = np.minimum(factor * scores[order], 1.0)
    edges = np.cumsum(chances)
    ticks = (rng.uniform() + np.arange(size)) / size
    picked = np.unique(np.searchsorted(edges / edges[-1], ticks))
    return order[picked], chances[picked]
