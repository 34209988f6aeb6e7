"""Refine learned scales on more rows than have room for a kernel matrix.

``learning`` fits the exact kernel to at most 2,000 rows. With more rows, its scales are noisy: here
more rounds follow with ridge over landmarks, f = Σ a_j k(·, p_j), a Nyström fit. It walks over the
rows block by block, so it stores the rows and a few matrices of landmarks by landmarks. A part of
the rows judges: a round counts if it lowers the error there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack
from sklearn.base import clone

from gramian.kernels.learning import (
    GAIN,
    GRADIENTS,
    LEVEL,
    STEP,
    gradients,
    mapped,
    root_of,
)
from gramian.kernels.leave_one_out import ALPHA_STEP, TargetSample

ROWS = 20_000  # to learn from, at most
LEAST_ROWS = 5000  # with fewer, an exact fit to some of them is as good
LANDMARKS = 800
JUDGED = 4  # one row in four judges
BLOCK = 1000  # rows in a walk
MATRICES = 6  # of landmarks by landmarks, at once
COPIES = 4  # of the rows
JITTER = 1e-8  # of the diagonal
ROUNDS = 4  # at most
MOST_STEPS = 8  # between neighbouring values of alpha or gamma

Kernel = Any  # a GammaKernel; one with scales is a Kernel
Rule = Callable[[np.ndarray], float | None]  # of scales


def affordable(n: int, d: int, room: int) -> int:
    """Return how many of n rows fit in ``room`` bytes; 0 if they are too few to be worth it."""
    most = (room - 8 * _fixed_numbers(d)) // (8 * _numbers_of_a_row(d))
    count = min(n, ROWS, most)
    return count if count >= LEAST_ROWS else 0


def nbytes(n: int, d: int) -> int:
    """Return the memory that n rows take here; 0 for none."""
    return 8 * (n * _numbers_of_a_row(d) + _fixed_numbers(d)) if n else 0


def _numbers_of_a_row(d: int) -> int:
    return COPIES * d + LANDMARKS // JUDGED  # features of the rows that judge are kept


def _fixed_numbers(d: int) -> int:
    return MATRICES * LANDMARKS**2 + 3 * BLOCK * (LANDMARKS + d)


class Solved(NamedTuple):
    """Ridge over landmarks with one kernel."""

    kernel: Kernel
    alpha: float
    error: float  # on the rows that judge, relative to that of the mean
    coefficients: np.ndarray  # (landmarks, n_targets)
    missed: np.ndarray  # (judging rows, n_targets): y minus f


class Bench:
    """Rows to fit, rows that judge, and landmarks, all from one sample."""

    def __init__(self, sample: TargetSample) -> None:
        n = len(sample.X)
        order = np.random.default_rng(0).permutation(n)
        judged, fitted = order[: n // JUDGED], order[n // JUDGED :]
        self.landmarks = sample.X[np.sort(fitted[: min(LANDMARKS, len(fitted))])]
        self.sample, self.fitted, self.judged = sample, np.sort(fitted), np.sort(judged)
        mean = np.average(sample.Y[fitted], axis=0, weights=sample.weights[fitted])
        self.Y = sample.Y - mean
        squares = np.square(self.Y[self.judged]).sum(axis=1)
        self.total = float(sample.weights[self.judged] @ squares) or 1.0

    def solve(self, kernel: Kernel, alpha: float) -> Solved:
        """Fit with the best alpha near this one."""
        K = kernel(self.landmarks)
        K.flat[:: len(K) + 1] += JITTER * np.mean(np.diagonal(K))
        L = np.linalg.cholesky(K)
        system, right = self._normal(kernel, L)
        values = np.empty((len(self.judged), len(L)))
        for i, (z, _, _) in enumerate(self._walk(kernel, L, self.judged)):
            values[i * BLOCK : (i + 1) * BLOCK] = z
        y, w = self.Y[self.judged], self.sample.weights[self.judged]
        tried: dict[int, tuple[float, np.ndarray]] = {}

        def error(step: int) -> float:
            if step not in tried:
                shifted = system.copy()
                shifted.flat[:: len(shifted) + 1] += alpha * ALPHA_STEP**step
                _, a, failed = lapack.dposv(shifted, right, overwrite_a=1)
                found = float(w @ np.square(y - values @ a).sum(axis=1)) / self.total
                tried[step] = (np.inf if failed else found), a
            return tried[step][0]

        step = _downhill(error)
        least, found = tried[step]
        a = scipy.linalg.solve_triangular(L, found, lower=True, trans="T")
        return Solved(kernel, alpha * ALPHA_STEP**step, least, a, y - values @ found)

    def _normal(self, kernel: Kernel, L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ZᵀWZ and ZᵀWy of the rows to fit, with features Z = k(x, landmarks) L⁻ᵀ."""
        m = len(self.landmarks)
        system, right = np.zeros((m, m)), np.zeros((m, self.Y.shape[1]))
        for z, y, w in self._walk(kernel, L, self.fitted):
            weighted = z * w[:, None]
            system += weighted.T @ z
            right += weighted.T @ y
        return system, right

    def _walk(
        self, kernel: Kernel, L: np.ndarray, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        tile = kernel.against(self.landmarks)
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            K = tile(self.sample.X[some])
            z = scipy.linalg.solve_triangular(L, K.T, lower=True, overwrite_b=True).T
            yield z, self.Y[some], self.sample.weights[some]

    def near(self, kernel: Kernel, alpha: float, rule: Rule) -> Solved:
        """Return the best of gammas near that of the kernel, or the one that the rule gives."""
        gamma = rule(kernel.scales)
        start = kernel.gamma if gamma is None else gamma
        tried: dict[int, Solved] = {}

        def error(step: int) -> float:
            if step and gamma is not None:
                return np.inf
            if step not in tried:
                nearest = min(tried.values(), key=lambda one: one.error, default=None)
                one = clone(kernel).set_params(gamma=float(start * STEP**step))
                tried[step] = self.solve(one, alpha if nearest is None else nearest.alpha)
            return tried[step].error

        return tried[_downhill(error)]

    def squares(self, solved: Solved, metric: bool) -> np.ndarray:
        """Return the mean of (∂f/∂x_c)² by columns, shape (d,), or of ∇f ∇fᵀ, shape (d, d)."""
        scales = solved.kernel.scales
        chosen = self.fitted[np.linspace(0, len(self.fitted) - 1, 2 * GRADIENTS).astype(int)]
        x, points = (mapped(part, scales) for part in (self.sample.X[chosen], self.landmarks))
        d = x.shape[1]
        total = np.zeros((d, d) if metric else d)
        for G in gradients(solved.kernel, x, points, solved.coefficients):
            G = mapped(G, scales)
            total += G.T @ G if metric else np.einsum("ij,ij->j", G, G)
        return total / len(x)


def refine(
    kernel: Kernel,
    alpha: float,
    bench: Bench,
    metric: bool = False,
    rule: Rule = lambda _: None,
    more: Callable[[], bool] = lambda: True,
) -> Solved:
    """Continue the rounds of a kernel with scales while the error of the rows that judge falls.

    ``rule`` gives the gamma for scales; None if it is to be searched. ``more`` says before each
    round whether there is time for it.
    """
    best = bench.near(kernel, alpha, rule)
    if np.ptp(kernel.scales) and more():  # scales from few rows may have done harm
        equal = clone(best.kernel).set_params(scales=np.ones(bench.landmarks.shape[1]))
        best = min(best, bench.near(equal, best.alpha, rule), key=lambda one: one.error)
    for _ in range(ROUNDS):
        if not more():
            break
        scales = root_of(bench.squares(best, metric))
        new = bench.near(clone(best.kernel).set_params(scales=scales), best.alpha, rule)
        if not new.error < (1 - GAIN) * best.error:
            break
        best = new
    return best


def _downhill(error: Callable[[int], float]) -> int:
    """Return the whole number near 0 at which the error stops falling by more than rounding."""
    best = 0
    for direction in (1, -1):
        while abs(best) < MOST_STEPS and error(best + direction) < (1 - LEVEL) * error(best):
            best += direction
        if best:
            break
    return best
