"""Greedy k-means++ in feature space: rows that are good first centres of k-means."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.rows import even_spans
from gramian.samplers.base import Oracle

COLUMNS = 16  # of the matrix, in memory at once
POOL = 1024  # rows that stand for all rows
MOST_FROM_POOL = 32  # rows selected from one pool
SAVING = 4  # times as much must a pool save as it costs: it has few rows of each cluster
POOL_TRIALS = 4  # times as many candidates as on all rows: they cost little, and estimates vary


def plus_plus(
    gram: Oracle,
    k: int,
    rng: np.random.Generator,
    *,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Select at most k row numbers by greedy k-means++ in feature space.

    ``gram`` is any matrix with ``columns``, ``block`` and ``diag``, exact or approximate. Each row
    is the best of a few, drawn in proportion to their weight times squared distance to the rows so
    far. Ends early if every row coincides with one of them.

    Trying 2 + log k candidates on all rows costs as many products as candidates. As soon as it
    costs far less, several rows are selected from a pool: rows drawn in that proportion, which
    stand for all rows if each counts inversely to its distance. With many rows selected, few of a
    pool are near each, so that their choice is hardly better than a random one.
    """
    nearest = Nearest(gram, weights)
    n, trials = len(nearest), trials_of(k)
    seeds = draw(rng, np.ones(n) if weights is None else weights, 1)
    nearest.add(seeds)
    while len(seeds) < k:
        count = min(_at_once(len(seeds)), k - len(seeds))
        pooled = _pays(n, count, trials)
        drawn = nearest.drawn(rng, POOL if pooled else trials)
        if not len(drawn):
            break
        if pooled:
            chosen = _from_pool(nearest, drawn, count, POOL_TRIALS * trials, rng)
            nearest.add(chosen)
        else:
            chosen = drawn[[nearest.add_best(drawn)]]
        seeds = np.append(seeds, chosen)
    return seeds


def trials_of(k: int) -> int:
    """Return how many candidates greedy k-means++ tries for each of k rows."""
    return 2 + int(np.log(k))


def plus_plus_bytes(n: int, k: int, times: int = 1) -> int:
    """Return the memory of drawing k of n rows ``times`` times."""
    whole = 2 * 8 * n**2 if Whole.pays(n, k, times) else 0
    pool = 3 * 8 * POOL**2 if _pays(n, _at_once(k), trials_of(k)) else 0
    return 8 * n * (max(2 * COLUMNS, 3 * trials_of(k)) + 6) + pool + whole


def _at_once(seeds: int) -> int:
    """Return how many rows may be selected from one pool, given the number selected so far."""
    return max(1, min(MOST_FROM_POOL, seeds // 8))


def _pays(n: int, count: int, trials: int) -> bool:
    """Whether a pool costs far less than trying candidates for each of ``count`` rows on all n."""
    return n * count * (trials - 1) > SAVING * POOL**2


class Whole:
    """All columns of a symmetric matrix of few rows, in memory, for many draws from it."""

    def __init__(self, gram: Oracle, n: int) -> None:
        self.values = _here(gram.columns(np.arange(n)))

    @staticmethod
    def pays(n: int, k: int, times: int) -> bool:
        """Whether it costs less than the columns for ``times`` draws of k rows each.

        The product of all rows runs at several times the speed of products with a few.
        """
        return n <= min(2 * POOL, 2 * times * k * trials_of(k))

    def columns(self, indices: np.ndarray) -> Array:
        rows = array_ops.take_rows(self.values, indices)
        return array_ops.namespace(rows).matrix_transpose(rows)

    def block(self, i: np.ndarray, j: np.ndarray) -> Array:
        return array_ops.take_columns(array_ops.take_rows(self.values, i), j)

    def diag(self) -> Array:
        return array_ops.namespace(self.values).linalg.diagonal(self.values)


class Nearest:
    """Squared distances of all rows to the nearest of some rows, on the device of the matrix."""

    def __init__(self, gram: Oracle, weights: Array | None = None) -> None:
        self.gram = gram
        diagonal = _here(gram.diag())
        self.xp = array_ops.namespace(diagonal)
        self.diagonal = array_ops.clip(array_ops.copy(diagonal), low=0.0)  # (n,)
        ones = self.xp.ones_like(self.diagonal)
        self.weights = ones if weights is None else array_ops.like(weights, ones, ones.dtype)
        self.squared: Array = None  # (n,)

    def __len__(self) -> int:
        return int(self.diagonal.shape[0])

    def known(self, squared: Array) -> None:
        """Set the distances (n,) to the nearest of any points."""
        self.squared = _here(squared)

    def to(self, rows: np.ndarray) -> Array:
        """Return the squared distances of all rows to some, shape (n, rows)."""
        squared = -2.0 * _here(self.gram.columns(rows))
        squared += self.diagonal[:, None]
        squared += array_ops.take_rows(self.diagonal, rows)
        return array_ops.clip(squared, low=0.0)

    def add(self, rows: np.ndarray) -> None:
        """Take these rows into account."""
        for start, stop in even_spans(0, len(rows), COLUMNS):
            squared = self.xp.min(self.to(rows[start:stop]), axis=1)
            self.squared = (
                squared if self.squared is None else self.xp.minimum(self.squared, squared)
            )

    def add_best(self, candidates: np.ndarray) -> int:
        """Add the candidate that leaves the smallest sum of distances; returns its place."""
        distances = self.xp.minimum(self.squared[:, None], self.to(candidates))
        best = int(self.xp.argmin(self.xp.matmul(self.weights, distances)))
        self.squared = array_ops.copy(distances[:, best])
        return best

    def drawn(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw row numbers in proportion to weight times distance; none if all are 0."""
        mass = self.xp.cumulative_sum(self.weights * self.squared)
        total = float(mass[-1])
        if not total > 0:
            return np.empty(0, dtype=np.intp)
        shares = array_ops.like(rng.random(count) * total, mass)
        places = array_ops.to_numpy(self.xp.searchsorted(mass, shares, side="right"))
        return np.minimum(places, len(self) - 1)


def _here(values: Array) -> Array:
    """Return values in float64, and in this process if workers have them."""
    values = array_ops.to_numpy(values) if array_ops.is_lazy(values) else values
    return array_ops.astype(values, array_ops.namespace(values).float64)


def _from_pool(
    nearest: Nearest, drawn: np.ndarray, count: int, trials: int, rng: np.random.Generator
) -> np.ndarray:
    """Select at most ``count`` rows of a pool, each the best of ``trials`` for the pool."""
    rows, copies = np.unique(drawn, return_counts=True)
    own, closest = (array_ops.take_rows(a, rows) for a in (nearest.diagonal, nearest.squared))
    within = -2.0 * _here(nearest.gram.block(rows, rows))
    within += own[:, None]
    within += own
    within = array_ops.contiguous(array_ops.clip(within, low=0.0))
    squared, closest = array_ops.to_numpy(within), array_ops.to_numpy(closest)
    np.fill_diagonal(squared, 0.0)
    weights = copies / np.maximum(closest, np.finfo(np.float64).tiny)
    chosen: list[int] = []
    for _ in range(count):
        mass = np.cumsum(weights * closest)
        if not mass[-1] > 0:
            break
        candidates = np.searchsorted(mass, rng.random(trials) * mass[-1], side="right")
        candidates = np.minimum(candidates, len(rows) - 1)
        distances = np.minimum(closest, squared[candidates])
        best = int(np.argmin(distances @ weights))
        chosen.append(int(candidates[best]))
        closest = distances[best]
    return rows[chosen]


def draw(rng: np.random.Generator, weights: np.ndarray, k: int) -> np.ndarray:
    """Draw at most k distinct rows with probability in proportion to their weights."""
    size = min(k, int(np.count_nonzero(weights)))
    return rng.choice(len(weights), size=size, replace=False, p=weights / weights.sum())
