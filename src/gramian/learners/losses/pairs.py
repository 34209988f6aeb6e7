"""The dual of a loss with kinks, minimised along two variables at a time.

A row costs hi · max(under - f, 0) - lo · max(f - over, 0), in units of alpha, with lo <= 0 <= hi
and under <= over. Its dual variable a is between lo and hi, and the dual objective is
½ aᵀKa - Σ under · max(a, 0) - Σ over · min(a, 0), where Σ a is given, since an intercept has no
penalty. A step moves two variables in opposite directions: the one whose growth gains most per
length, and the one that gains most with it (Fan, Chen and Lin, JMLR 6, 2005). libsvm does the same.
Here numba compiles the loop; most steps only touch the rows that may still move, or the farthest of
them from their place; and they end as soon as the duality gap is small enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramian.backend import numba_loops
from gramian.learners.losses.columns import ColumnSource
from gramian.learners.losses.loss import Kinked

LANES = 64  # extremes are found for each 64th row
CHECKED = 64  # steps between two looks at the duality gap
SAMPLED = 64  # rows that tell which are unlike the others
LEAST_ROWS = 64  # of a part whose columns are not stored
MOST_ROWS = 0.2  # of all: if more may move, all do, and no part of the matrix is copied
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
        lo, hi, under, over = np.zeros((4, len(y)))
        for piece in loss.pieces(y, np.zeros_like(y)):
            falls = np.broadcast_to(np.asarray(piece.slope) < 0, y.shape)[:, 0]
            bound = w * np.broadcast_to(piece.weight, y.shape)[:, 0] / alpha
            hi[falls], lo[~falls] = bound[falls], -bound[~falls]
            under[falls], over[~falls] = piece.argument[falls, 0], -piece.argument[~falls, 0]
        # A row without one of the two kinks never reaches its side.
        return cls(lo, hi, np.where(hi > 0, under, over), np.where(lo < 0, over, under))


class Pairs:
    """Dual variables ``a`` with a given sum, their f = Ka, and the intercept b."""

    def __init__(self, matrix: ColumnSource, dual: Dual, total: float) -> None:
        self.matrix, self.dual, self.total, self.b = matrix, dual, total, 0.0
        n = len(matrix.diagonal)
        self.a, self.f = np.zeros(n), np.zeros(n)
        self._most = matrix.most
        if total > 0:
            first = self._first()
            self._add(np.arange(n), first)
            if matrix.whole is None:  # in the end, about as many rows have variables as at first
                self._most = min(matrix.most, max(int(np.count_nonzero(first)), LEAST_ROWS))

    def _first(self) -> np.ndarray:
        """Return as much as the rows take that are least like a sample of the others."""
        n = len(self.a)
        some = np.arange(0, n, max(n // SAMPLED, 1))
        order = np.argsort(self.matrix.times(some, np.ones(len(some))), kind="stable")
        hi, first = self.dual.hi[order], np.empty(n)
        first[order] = np.clip(self.total - (np.cumsum(hi) - hi), 0.0, hi)
        return first

    def _add(self, numbers: np.ndarray, change: np.ndarray) -> None:
        moved = change != 0.0
        numbers, change = numbers[moved], change[moved]
        self.a[numbers] += change
        if len(numbers):
            self.f += self.matrix.times(numbers, change)

    def descend(self, tol: float, least: float, most: int) -> int:
        """Take up to ``most`` steps, until the gap is ``tol`` times the objective, or ``least``.

        Return their number. In each round, only rows that may move now take part; their gap falls
        to a tenth, or to less if that takes no step.
        """
        steps, share = 0, 0.1
        while True:
            now = Standing.of(self.dual, self.a, self.f, self.total, self.b)
            self.b, enough = now.b, tol * max(abs(now.value), least)
            if now.gap <= enough or steps >= most or now.width <= 0.0:
                return steps
            chosen = now.movable(self._most)
            theirs = float(now.gaps[chosen].sum())
            target = max(share, 0.3 * enough / now.gap) * theirs if share else 0.0
            taken = self._round(chosen, target, most - steps)
            share = 0.1 if taken else 0.0
            steps += max(taken, 1)

    def _round(self, chosen: np.ndarray, enough: float, most: int) -> int:
        descend, matrix = numba_loops.compiled(_descend), self.matrix
        if matrix.whole is not None and len(chosen) > min(MOST_ROWS * len(self.a), matrix.most):
            return descend(matrix.whole, matrix.diagonal, *self.dual, self.a, self.f, enough, most)
        a, parts = self.a[chosen], [each[chosen] for each in (matrix.diagonal, *self.dual)]
        steps = descend(matrix.part(chosen), *parts, a, self.f[chosen], enough, most)
        self._add(chosen, a - self.a[chosen])
        self.a[chosen] = a  # ends are met exactly
        return steps


class Standing(NamedTuple):
    """Where all rows are."""

    b: float
    value: float  # the objective, in units of alpha
    gap: float  # what is left to gain at most, the sum of ``gaps``
    gaps: np.ndarray  # (n,)
    width: float  # of the range of slopes that should be one
    rises: np.ndarray  # (n,): how far a row is from where its variable may grow
    falls: np.ndarray
    found: np.ndarray  # the rows that may move now

    @classmethod
    def of(cls, dual: Dual, a: np.ndarray, f: np.ndarray, total: float, b: float) -> Standing:
        gaps, rises, falls = np.empty((3, len(a)))
        found = np.empty(len(a), dtype=np.int64)
        stand = numba_loops.compiled(_stand)
        b, value, gap, width, count = stand(*dual, a, f, total, b, gaps, rises, falls, found)
        return cls(b, value, gap, gaps, width, rises, falls, found[:count])

    def movable(self, most: int) -> np.ndarray:
        """Return the rows that may move now, those first that are farthest from their place."""
        found = self.found
        if len(found) <= most:
            return found
        spread = found[np.random.default_rng(0).permutation(len(found))]  # many may be alike
        first = [spread[np.argsort(each[spread])[: most // 2]] for each in (self.rises, self.falls)]
        return np.unique(np.concatenate(first))


def _stand(
    lo: np.ndarray, hi: np.ndarray, under: np.ndarray, over: np.ndarray, a: np.ndarray,
    f: np.ndarray, total: float, b: float, gaps: np.ndarray, rises: np.ndarray,
    falls: np.ndarray, found: np.ndarray,
) -> tuple[float, float, float, float, int]:  # fmt: skip
    """Fill what a standing says of each row; return the intercept and the sums."""
    n, smallest, largest = len(a), np.inf, -np.inf
    for k in range(n):
        if a[k] < hi[k]:
            smallest = min(smallest, f[k] - (under[k] if a[k] >= 0 else over[k]))
        if a[k] > lo[k]:
            largest = max(largest, f[k] - (under[k] if a[k] > 0 else over[k]))
    if smallest < np.inf and largest > -np.inf:
        b = -0.5 * (smallest + largest)
    elif smallest < np.inf:
        b = -smallest
    elif largest > -np.inf:
        b = -largest
    value, gap, count = total * b, 0.0, 0
    for k in range(n):
        short, beyond = under[k] - f[k] - b, f[k] + b - over[k]
        loss = hi[k] * max(short, 0.0) - lo[k] * max(beyond, 0.0)
        value += loss + 0.5 * a[k] * f[k]
        gaps[k] = loss - max(a[k], 0.0) * short + min(a[k], 0.0) * beyond
        gap += gaps[k]
        rises[k], falls[k] = np.inf, np.inf
        if a[k] < hi[k]:
            rises[k] = f[k] - (under[k] if a[k] >= 0 else over[k]) + b
        if a[k] > lo[k]:
            falls[k] = (under[k] if a[k] > 0 else over[k]) - f[k] - b
        if min(rises[k], falls[k]) <= 0.0:
            found[count] = k
            count += 1
    return b, value, gap, largest - smallest, count


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
