"""How many landmarks the default approximation of ridge takes: as the effective dimension asks.

√n·log n landmarks are enough for the best rate of the risk where the effective dimension
d(alpha) = tr K (K + alpha I)⁻¹ is at most about √n. Many classes in small clusters, or images, have
a larger one: then landmarks leave out what distinguishes rows. So the default measures d on a
sample of s rows, with an alpha for s rows, and takes √n·log n · d / (√s·log s) landmarks: not
fewer than √n·log n, and not more than :func:`most_landmarks`, or than the memory budget allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, log, sqrt
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.kernels.leave_one_out import Fit, TargetSample, best_alpha, error_of, fit
from gramian.matrices.gram import Gram

SAMPLED, LEAST_SAMPLED = 1000, 200  # rows that tell the effective dimension
MULTIPLE = 2  # landmarks at most, as a multiple of √n·log n: four to eight times the work
WORK = 10**12  # n·m² of a fit with more than √n·log n landmarks: some 20 s of a core


def least_landmarks(n: int) -> int:
    """Return √n·log n: the landmarks of the default approximation, if they are enough."""
    return max(int(sqrt(n) * log(n)), 1)


def most_landmarks(n: int) -> int:
    """Return the landmarks of the default approximation at most, whatever the rows are."""
    least = least_landmarks(n)
    return max(least, min(MULTIPLE * least, isqrt(WORK // n), n))


class SmallSystem(NamedTuple):
    """Some rows: targets (s, t) and kernel matrix (s, s), times the roots of the rows' weights."""

    targets: TargetSample
    K: np.ndarray
    share: float  # of the weight of all rows

    def dimension(self, alpha: float) -> float:
        """Return the effective dimension, tr K (K + alpha I)⁻¹."""
        return float(np.trace(np.linalg.solve(self.K + alpha * np.eye(len(self.K)), self.K)))


@dataclass(frozen=True)
class LandmarkCount:
    """The rule, for one fit."""

    alphas: np.ndarray | None  # those of the fit, or those it chooses from; None for any
    most: int  # what the plan of the fit allows
    weights: Array | None = None

    @one_blas_thread()
    def __call__(self, gram: Gram, rng: np.random.Generator, y: Array | None) -> int:
        """Return the number of landmarks for these rows and targets."""
        n = gram.shape[0]
        least = least_landmarks(n)
        sample = None if y is None else self._sample(gram, rng, y)
        exact = None if sample is None else self._fit(sample)
        if sample is None or exact is None:
            return min(least, self.most)
        s = len(sample.K)
        usual = sqrt(s) * log(s)
        wanted = min(round(least * max(sample.dimension(exact.alpha) / usual, 1.0)), n)
        return min(wanted, self.most)

    def _sample(self, gram: Gram, rng: np.random.Generator, y: Array) -> SmallSystem | None:
        """Draw rows; None if they are too few."""
        n = gram.shape[0]
        mass = np.ones(n) if self.weights is None else array_ops.host_float64(self.weights)
        usable = np.flatnonzero(mass)
        s = min(SAMPLED, self.most, len(usable))
        if s < LEAST_SAMPLED:
            return None
        own = np.random.default_rng(rng.integers(2**63))
        chosen = own.choice(usable, s, replace=False)
        Y = array_ops.host_float64(y).reshape(n, -1)[chosen]
        K = array_ops.host_float64(gram.block(chosen, chosen))
        root = np.sqrt(mass[chosen] / mass[chosen].mean())[:, None]
        targets = TargetSample(np.empty((s, 0)), root * (Y - Y.mean(axis=0)), np.ones(s))
        return SmallSystem(targets, K * root * root.T, s / float(mass.sum()))

    def _fit(self, sample: SmallSystem) -> Fit | None:
        """Return the fit with the best alpha; None if the matrix is indefinite."""
        if self.alphas is None:
            try:
                return best_alpha(sample.K, sample.targets)
            except ValueError:
                return None
        found = [fit(sample.K, sample.targets, sample.share * alpha) for alpha in self.alphas]
        return min(found, key=error_of)
