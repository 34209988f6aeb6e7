"""The dual of a loss with kinks, minimised along two variables at a time.

A row costs hi · max(under - f, 0) - lo · max(f - over, 0), in units of alpha, with lo <= 0 <= hi
and under <= over. Its dual variable a is between lo and hi, and the dual objective is
½ aᵀKa - Σ under · max(a, 0) - Σ over · min(a, 0), where Σ a is given, since an intercept has no
penalty. A step moves two variables in opposite directions: the one whose growth gains most per
length, and the one that gains most with it (Fan, Chen and Lin, JMLR 6, 2005). libsvm does the same.
Here numba compiles the loop; most steps only touch the rows that may still move; and they end as
soon as the duality gap is small enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramian.backend import numba_loops
from gramian.learners.losses.loss import Kinked

LANES = 64  # extremes are found for each 64th row
CHECKED = 64  # steps between two looks at the duality gap
WIDE = 1.0  # times the range of the slopes: rows that are farther from moving wait for a round
MOST_ROWS = 0.6  # of all: if more may move, all do, and no part of the matrix is copied
TINY = 1e-12  # times the largest value of the diagonal: the least curvature


class Dual(NamedTuple):
    """What a row costs, each array (n,)."""

    lo: np.ndarray
    hi: np.ndarray
    under: np.ndarray
    over: np.ndarray

    @classmethod
    def of(cls, loss: Kinked, y: np.ndarray, w: np.ndarray, alpha: float) -> Dual:
        """Return the dual for targets y (n, 1) and weights w (n,); slopes of the loss are ±1."""
        lo, hi = np.zeros(len(y)), np.zeros(len(y))
        under, over = np.full(len(y), np.nan), np.full(len(y), np.nan)
        for piece in loss.pieces(y, np.zeros_like(y)):
            falls = np.broadcast_to(np.asarray(piece.slope) < 0, y.shape)[:, 0]
            bound = w * np.broadcast_to(piece.weight, y.shape)[:, 0] / alpha
            hi[falls], lo[~falls] = bound[falls], -bound[~falls]
            under[falls], over[~falls] = piece.argument[falls, 0], -piece.argument[~falls, 0]
        # A row without one of the two kinks never reaches its side.
        return cls(lo, hi, np.where(hi > 0, under, over), np.where(lo < 0, over, under))


class Pairs:
    """Dual variables ``a`` with a given sum, their f = Ka, and the intercept b."""

    def __init__(self, K: np.ndarray, dual: Dual, total: float) -> None:
        self.K, self.dual, self.total, self.b = K, dual, total, 0.0
        self._diagonal = np.diagonal(K).astype(np.float64)
        self.a, self.f = np.zeros(len(K)), np.zeros(len(K))
        if total > 0:
            self._add(np.arange(len(K)), self._first())

    def _first(self) -> np.ndarray:
        """Return as much as the rows take that are least like the others."""
        order = np.argsort(self.K.sum(axis=0, dtype=self.K.dtype), kind="stable")
        hi, first = self.dual.hi[order], np.empty(len(order))
        first[order] = np.clip(self.total - (np.cumsum(hi) - hi), 0.0, hi)
        return first

    def _add(self, numbers: np.ndarray, change: np.ndarray) -> None:
        moved = change != 0.0
        numbers, change = numbers[moved], change[moved]
        self.a[numbers] += change
        numba_loops.compiled(_add_columns)(self.K, numbers, change, self.f)

    def descend(self, tol: float, least: float, most: int) -> int:
        """Take up to ``most`` steps, until the gap is ``tol`` times the objective, or ``least``.

        Return their number. In each round, only rows that may move soon take part; their gap falls
        to a tenth.
        """
        steps = 0
        while True:
            state = _State.of(self.dual, self.a, self.f, self.total, self.b)
            self.b, enough = state.b, tol * max(abs(state.value), least)
            if state.gap <= enough or steps >= most or state.width <= 0.0:
                return steps
            chosen = np.flatnonzero(state.slack <= WIDE * state.width)
            enough = max(0.3 * enough, 0.1 * state.gap)
            steps += max(self._round(chosen, enough, most - steps), 1)

    def _round(self, chosen: np.ndarray, enough: float, most: int) -> int:
        descend = numba_loops.compiled(_descend)
        if len(chosen) > MOST_ROWS * len(self.a):
            return descend(self.K, self._diagonal, *self.dual, self.a, self.f, enough, most)
        K, a = self.K[np.ix_(chosen, chosen)], self.a[chosen]
        parts = [each[chosen] for each in (self._diagonal, *self.dual)]
        steps = descend(K, *parts, a, self.f[chosen], enough, most)
        self._add(chosen, a - self.a[chosen])
        self.a[chosen] = a  # ends are met exactly
        return steps


class _State(NamedTuple):
    """Where all rows are."""

    b: float
    value: float  # the objective, in units of alpha
    gap: float
    width: float  # of the range of slopes that should be one
    slack: np.ndarray  # (n,): how far a row is from where it could move

    @classmethod
    def of(cls, dual: Dual, a: np.ndarray, f: np.ndarray, total: float, b: float) -> _State:
        lo, hi, under, over = dual
        grows = np.where(a >= hi, np.inf, f - np.where(a >= 0, under, over))
        shrinks = np.where(a <= lo, -np.inf, f - np.where(a > 0, under, over))
        smallest, largest = grows.min(), shrinks.max()
        ends = [each for each in (smallest, largest) if np.isfinite(each)]
        b = -float(np.mean(ends)) if ends else b
        short, beyond = under - f - b, f + b - over
        loss = hi * np.maximum(short, 0.0) - lo * np.maximum(beyond, 0.0)
        value = float(loss.sum() + 0.5 * (a @ f) + total * b)
        gap = float((loss - np.maximum(a, 0.0) * short + np.minimum(a, 0.0) * beyond).sum())
        slack = np.minimum(grows + b, -shrinks - b)
        return cls(b, value, gap, float(largest - smallest), slack)


def _add_columns(K: np.ndarray, numbers: np.ndarray, change: np.ndarray, f: np.ndarray) -> None:
    for i in range(len(numbers)):
        column, d = K[numbers[i]], change[i]
        for k in range(len(f)):
            f[k] += d * column[k]


def _descend(
    K: np.ndarray, diagonal: np.ndarray, lo: np.ndarray, hi: np.ndarray, under: np.ndarray,
    over: np.ndarray, a: np.ndarray, f: np.ndarray, enough: float, most: int,
) -> int:  # fmt: skip
    """Take steps until the gap is ``enough``, and return their number."""
    n, tiny = len(a), TINY * diagonal.max() + 1e-300
    # The objective changes by f - up if a grows, and by f - down if it shrinks.
    up, down = np.empty(n), np.empty(n)
    for k in range(n):
        up[k] = -np.inf if a[k] >= hi[k] else under[k] if a[k] >= 0 else over[k]
        down[k] = np.inf if a[k] <= lo[k] else under[k] if a[k] > 0 else over[k]
    # Extremes are found lane by lane, which compiles to vector instructions.
    low, high = np.empty(LANES), np.empty(LANES)
    i, j, length = 0, 0, 0.0
    for step in range(most + 1):
        low[:], high[:] = np.inf, -np.inf
        for start in range(0, n, LANES):
            stop = min(start + LANES, n)
            F, U, D = f[start:stop], up[start:stop], down[start:stop]
            A, B = K[i, start:stop], K[j, start:stop]
            for k in range(stop - start):
                F[k] += length * (A[k] - B[k])
                low[k] = min(low[k], F[k] - U[k])
                high[k] = max(high[k], F[k] - D[k])
        smallest, largest, i = low[0], high[0], 0
        for k in range(1, LANES):
            if low[k] < smallest:
                smallest, i = low[k], k
            largest = max(largest, high[k])
        if largest <= smallest or step == most:
            return step
        if step % CHECKED == 0:
            b, gap = -0.5 * smallest - 0.5 * largest, 0.0
            for k in range(n):
                short, beyond = under[k] - f[k] - b, f[k] + b - over[k]
                gap += hi[k] * max(short, 0.0) - lo[k] * max(beyond, 0.0)
                gap += min(a[k], 0.0) * beyond - max(a[k], 0.0) * short
            if gap <= enough:
                return step
        while f[i] - up[i] > smallest:
            i += LANES
        own = diagonal[i]
        high[:] = 0.0
        for start in range(0, n, LANES):
            stop = min(start + LANES, n)
            F, D, A, G = f[start:stop], down[start:stop], K[i, start:stop], diagonal[start:stop]
            for k in range(stop - start):
                slope = max(F[k] - D[k] - smallest, 0.0)
                curve = max(own + G[k] - 2.0 * A[k], tiny)
                high[k] = max(high[k], slope * slope / curve)
        j = 0
        for k in range(1, LANES):
            if high[k] > high[j]:
                j = k
        best, gain = j, -1.0
        for k in range(j, n, LANES):
            slope = max(f[k] - down[k] - smallest, 0.0)
            curve = max(own + diagonal[k] - 2.0 * K[i, k], tiny)
            if slope * slope / curve > gain:
                best, gain = k, slope * slope / curve
        j = best
        room_i = (0.0 if a[i] < 0 else hi[i]) - a[i]
        room_j = a[j] - (0.0 if a[j] > 0 else lo[j])
        curve = max(own + diagonal[j] - 2.0 * K[i, j], tiny)
        length = min((f[j] - down[j] - smallest) / curve, room_i, room_j)
        a[i] = a[i] + length if length < room_i else 0.0 if a[i] < 0 else hi[i]
        a[j] = a[j] - length if length < room_j else 0.0 if a[j] > 0 else lo[j]
        for k in (i, j):
            up[k] = -np.inf if a[k] >= hi[k] else under[k] if a[k] >= 0 else over[k]
            down[k] = np.inf if a[k] <= lo[k] else under[k] if a[k] > 0 else over[k]
    return most
