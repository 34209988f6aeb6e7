"""The leave-one-out error of kernel ridge on a few thousand rows, and the search for its alpha.

With A = W^½ K W^½ + alpha I and b = A⁻¹ W^½ y, the fit without row i, with all its weight, misses
W_i^½ y_i by b_i / (A⁻¹)_ii. One Cholesky factor gives all of it, so a search that begins near the
best alpha takes a few factors, where a decomposition would take the time of twenty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from sklearn.utils import assert_all_finite, check_consistent_length

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.rows import Rows

ALPHA_STEP = 10**0.5  # between neighbouring alphas
LEAST, MOST = 1e-8, 1e4  # alphas, relative to the mean of the diagonal of K


class TargetSample(NamedTuple):
    """Rows, their targets and weights, in float64 on the host; no two rows are the same."""

    X: np.ndarray  # (n, d)
    Y: np.ndarray  # (n, n_targets), of mean 0
    weights: np.ndarray  # (n,), of mean 1

    def take(self, numbers: np.ndarray) -> TargetSample:
        return centred(self.X[numbers], self.Y[numbers], self.weights[numbers])


class Fit(NamedTuple):
    """Kernel ridge with one alpha."""

    alpha: float
    error: float  # mean squared leave-one-out error, relative to that of the mean
    coefficients: np.ndarray  # (n, n_targets)
    missed: np.ndarray  # (n, n_targets): y minus the value that a fit without the row gives it


def draw(
    rows: Rows, y: Array, weights: Array | None, rng: np.random.Generator, most: int
) -> TargetSample:
    """Draw at most ``most`` rows with their targets; equal rows become one, with the mean target.

    Leaving out one of several equal rows would tell nothing: the others stay.
    """
    n = rows.shape[0]
    Y = array_ops.host_float64(y)
    check_consistent_length(rows, Y)
    assert_all_finite(Y, input_name="y")
    chosen = np.sort(rng.choice(n, size=min(n, most), replace=False))
    X, Y = array_ops.host_float64(array_ops.dense(rows.take(chosen))), Y[chosen]
    mass = np.ones(len(chosen))
    if weights is not None:
        mass = np.asarray(array_ops.to_numpy(weights), dtype=np.float64)[chosen]
        X, Y, mass = X[mass > 0], Y[mass > 0], mass[mass > 0]
    return grouped(X, Y.reshape(len(Y), -1), mass)


def grouped(X: np.ndarray, Y: np.ndarray, mass: np.ndarray) -> TargetSample:
    """Return a sample with one row for all rows that are the same."""
    distinct, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    if len(distinct) == len(X):
        return centred(X, Y, mass)
    group = group.ravel()
    total = np.bincount(group, weights=mass)
    means = np.stack([np.bincount(group, weights=mass * y) / total for y in Y.T], axis=1)
    order = np.argsort(first)
    return centred(distinct[order], means[order], total[order])


def centred(X: np.ndarray, Y: np.ndarray, mass: np.ndarray) -> TargetSample:
    weights = mass / mass.mean()
    return TargetSample(X, Y - np.average(Y, axis=0, weights=weights), weights)


def fit(K: np.ndarray, sample: TargetSample, alpha: float) -> Fit | None:
    """Fit kernel ridge to the sample with the kernel matrix K; None if K + alpha I is singular."""
    root = np.sqrt(sample.weights)[:, None]
    A = K * root * root.T
    A.flat[:: len(A) + 1] += alpha
    L, failed = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
    if failed:
        return None
    B = lapack.dpotrs(L, root * sample.Y, lower=1)[0]
    inverse = lapack.dtrtri(L, lower=1, overwrite_c=1)[0]
    missed = B / np.einsum("ij,ij->j", inverse, inverse)[:, None]
    total = float((root * sample.Y).ravel() @ (root * sample.Y).ravel())
    error = float(missed.ravel() @ missed.ravel()) / total if total > 0 else 1.0
    return Fit(alpha, error, root * B, missed / root)


def best_alpha(K: np.ndarray, sample: TargetSample, start: float | None = None) -> Fit:
    """Return the fit with the smallest leave-one-out error, going downhill from the start."""
    size = float(np.mean(np.diagonal(K)))
    low, high = LEAST * size, MOST * size
    start = 0.1 * size if start is None else min(max(start, low), high)
    tried: dict[int, Fit | None] = {}

    def error(step: int) -> float:
        alpha = start * ALPHA_STEP**step
        if not low / ALPHA_STEP <= alpha <= high * ALPHA_STEP:
            return np.inf
        if step not in tried:
            tried[step] = fit(K, sample, alpha)
        return error_of(tried[step])

    best = tried[downhill(error)]
    if best is None:
        raise ValueError(
            "The kernel matrix is not positive semi-definite, so its parameters cannot be chosen "
            "by leave-one-out. Use a positive semi-definite kernel, such as RBF."
        )
    return best


def error_of(found: Fit | None) -> float:
    return np.inf if found is None or not np.isfinite(found.error) else found.error


def downhill(error: Callable[[int], float]) -> int:
    """Return the whole number near 0 at which the error stops falling."""
    best = 0
    for direction in (1, -1):
        while error(best + direction) < error(best):
            best += direction
        if best:
            break
    return best
