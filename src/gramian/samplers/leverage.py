"""Landmarks by ridge leverage scores: how much a row adds that the other rows do not say.

A ridge below what rounding resolves, relative to the trace of K, is taken as that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from gramian.backend import array_ops, checks
from gramian.backend.array_ops import Array
from gramian.kernels import Kernel
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows
from gramian.samplers.base import Landmarks, Sampler, from_rows, host_diagonal

__all__ = ["BLESS", "SQUEAK", "LeverageScores", "RecursiveLeverage", "exact_leverage_scores"]

Pair = tuple[np.ndarray, np.ndarray]


def exact_leverage_scores(K: Any, ridge: float) -> np.ndarray:
    """The ridge leverage scores [K (K + ridge I)⁻¹]_ii of a stored PSD matrix, in O(n³).

    Their sum is the effective dimension of K at this ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.samplers.leverage import exact_leverage_scores
    >>> exact_leverage_scores(np.diag([3.0, 1.0]), ridge=1.0)
    array([0.75, 0.5 ])
    """
    K = _host(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square matrix; got shape {K.shape}.")
    return _exact(*_spectrum(K), checks.positive("exact_leverage_scores", "ridge", ridge))


class _LeverageSampler(Sampler):
    """Scores some of the rows, then draws m distinct ones of them by their scores."""

    def __init__(self, ridge: float | None = None) -> None:
        self.ridge = ridge

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        """At most m landmarks for the rows of ``gram``; all its rows where m is as many."""
        m = self._checked(gram, m)
        if m >= gram.shape[0]:
            return from_rows(gram, np.arange(gram.shape[0]))
        rows, scores = self._scored(gram, m, rng)
        return from_rows(gram, rows[_draw(scores, m, rng)[0]])

    def _checked(self, gram: Gram, m: int) -> int:
        gram.diag()  # an error unless K is of the rows with themselves
        self._check_numbers()
        return checks.positive_integer(self, "m", m)

    def _check_numbers(self) -> None:
        if self.ridge is not None:
            checks.positive(self, "ridge", self.ridge)

    def select_bytes(self, rows: Rows, m: int) -> int:
        # The decomposition of a matrix of m rows, and blocks of kernel values with these.
        return super().select_bytes(rows, m) + 8 * 8 * m * max(m, 256)

    @abstractmethod
    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        """Distinct rows, at least m, and what the chance of each is to be in proportion to."""

    def _ridge(self, values: np.ndarray, m: int, dtype: Any) -> float:
        """The ridge asked for, or the one that suits m landmarks and a matrix of this spectrum."""
        floor = _resolution(values, dtype)
        return _suitable(values, m, floor) if self.ridge is None else max(self.ridge, floor)


class LeverageScores(_LeverageSampler):
    """Independent draws in proportion to the exact ridge leverage scores.

    The scores are those of Alaoui and Mahoney, "Fast randomized kernel ridge regression with
    statistical guarantees" (2015): τ_i = [K (K + ridge I)⁻¹]_ii. All n² kernel values are evaluated
    and the matrix is decomposed, in O(n³) flops: this is the yardstick for the other samplers here,
    for a matrix that can be stored. Rows are drawn with replacement, so that the landmarks carry
    probabilities; a row may be drawn more than once. Rows that other processes hold are refused.

    Parameters
    ----------
    ridge : float, optional
        A positive number. By default such that the effective dimension Σ τ_i is m / (2 log m).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian.samplers.leverage import LeverageScores
    >>> gram = Gram(RBF(1.0), np.r_[np.zeros((98, 1)), [[9.0]], [[-9.0]]])
    >>> landmarks = LeverageScores(ridge=0.1).select(gram, 20, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {98, 99})
    [98, 99]
    """

    spreads: ClassVar[bool] = False

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        """m landmarks for the rows of ``gram``, with their probabilities."""
        rows, scores = self._scored(gram, self._checked(gram, m), rng)
        if not scores.any():
            scores = np.ones_like(scores)
        probabilities = scores / scores.sum()
        indices = rng.choice(rows, size=m, p=probabilities)
        return from_rows(gram, indices, probabilities[indices])

    def most_evaluations(self, n: int, m: int) -> int:
        return n * (n + 1)

    def select_bytes(self, rows: Rows, m: int) -> int:
        return Sampler.select_bytes(self, rows, m) + 5 * 8 * rows.shape[0] ** 2

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        if not gram.fits():
            raise ValueError(
                f"LeverageScores stores and decomposes the whole matrix, and one of shape "
                f"{gram.shape} is too large for that; use RecursiveLeverage."
            )
        values, vectors = _spectrum(_host(gram.dense()))
        return np.arange(len(values)), _exact(values, vectors, self._ridge(values, m, gram.dtype))


class RecursiveLeverage(_LeverageSampler):
    """Ridge leverage scores by recursive halving; m distinct rows are drawn by them.

    Musco and Musco, "Recursive sampling for the Nyström method" (2017). Of a random half of the
    rows m are drawn, by the same method, to estimate the scores of all. About 2 n m kernel
    evaluations (each level also m² among its draws) and O(n m²) flops, with O(n m) memory.

    Parameters
    ----------
    ridge : float, optional
        A positive number. By default, on each level, such that the effective dimension is about
        m / (2 log m). With a ridge so small that m rows cannot cover the effective dimension the
        scores are too large, more so for ordinary rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian.samplers.leverage import RecursiveLeverage
    >>> gram = Gram(RBF(1.0), np.r_[np.zeros((98, 1)), [[9.0]], [[-9.0]]])
    >>> landmarks = RecursiveLeverage().select(gram, 10, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {98, 99})
    [98, 99]
    """

    def most_evaluations(self, n: int, m: int) -> int:
        return n + sum(m * (size + m) for size in _doublings(m, n)[1:])

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        order = rng.permutation(gram.shape[0])
        smallest, *sizes = _doublings(m, len(order))
        rows, scores = order[:smallest], np.ones(smallest)
        for size in sizes:
            picked, chances = _draw(scores, m, rng)
            dictionary = _Dictionary(gram, rows[picked], 1 / chances)
            rows = order[:size]
            scores = dictionary.scores(rows, self._ridge(dictionary.values, m, gram.dtype))
        return rows, scores


class BLESS(_LeverageSampler):
    """Ridge leverage scores on growing uniform subsets; m distinct rows are drawn by them.

    Rudi, Calandriello, Carratino and Rosasco, "On fast leverage score sampling and optimal
    learning" (2018). A falling ridge is followed by growing dictionaries, each drawn from a uniform
    subset that is as large as the ridge demands: no score exceeds k(x, x) / ridge, so while the
    ridge is large few rows need be looked at. Here the dictionary doubles in each step, and the
    ridge follows from it. About 2 n m kernel evaluations at most, far fewer where the last subset
    is not yet all rows, and O(n m²) flops, with O(n m) memory.

    Parameters
    ----------
    ridge : float, optional
        A positive number, where the path of ridges ends. By default it ends where the effective
        dimension is about m / (2 log m).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian.samplers.leverage import BLESS
    >>> gram = Gram(RBF(1.0), np.r_[np.zeros((98, 1)), [[9.0]], [[-9.0]]])
    >>> landmarks = BLESS(ridge=0.1).select(gram, 10, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {98, 99})
    [98, 99]
    """

    def most_evaluations(self, n: int, m: int) -> int:
        return n + sum(size * (n + size) for size in _doublings(16, m))

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        n, largest = gram.shape[0], host_diagonal(gram).max()
        rows, scores = np.arange(n), np.ones(n)
        for size in _doublings(16, m):
            picked, chances = _draw(scores, size, rng)
            dictionary = _Dictionary(gram, rows[picked], n / len(rows) / chances)
            ridge = self._ridge(dictionary.values, size, gram.dtype)
            if size < m and self.ridge is not None:  # on the way down to it
                ridge = _suitable(dictionary.values, size, floor=ridge)
            # No row's chance, which is about size / dimension times its score, exceeds this.
            rate = min(1.0, size / _dimension(size) * largest / ridge)
            rows = rng.choice(n, max(m, int(np.ceil(rate * n))), replace=False)
            scores = dictionary.scores(rows, ridge)
        return rows, scores


class SQUEAK(_LeverageSampler):
    """One pass over the rows, in their order, with a dictionary of m rows that is kept up to date.

    Calandriello, Lazaric and Valko, "Distributed adaptive sampling for kernel matrix approximation"
    (2017). Each block of rows joins the dictionary, the leverage scores of both are estimated from
    both, and m rows survive: each row's chance to be there is in the end in proportion to its
    score. The kernel is evaluated only among dictionary and block: n (m + block_size) values, and
    O(n (m + block_size)³ / block_size) flops, which is O(n m²) for blocks of about m rows, with
    O((m + block_size)²) memory beside the diagonal.

    Where other processes hold the rows, each passes over its own, and the dictionaries are merged:
    which landmarks come out then depends on how the rows are cut.

    Parameters
    ----------
    ridge : float, optional
        A positive number. By default, for each block, such that the effective dimension of the rows
        so far is about m / (2 log m).
    block_size : int, optional
        How many rows join at a time; by default m.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian.samplers.leverage import SQUEAK
    >>> gram = Gram(RBF(1.0), np.r_[[[9.0]], [[-9.0]], np.zeros((98, 1))])
    >>> landmarks = SQUEAK(block_size=20).select(gram, 10, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {0, 1})
    [0, 1]
    """

    def __init__(self, ridge: float | None = None, block_size: int | None = None) -> None:
        super().__init__(ridge)
        self.block_size = block_size

    def _check_numbers(self) -> None:
        super()._check_numbers()
        if self.block_size is not None:
            checks.positive_integer(self, "block_size", self.block_size)

    def most_evaluations(self, n: int, m: int) -> int:
        return n * (1 + m + (self.block_size or m))

    def select_bytes(self, rows: Rows, m: int) -> int:
        return super().select_bytes(rows, m + (self.block_size or m))

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        found = None if gram.kernel.is_matrix else self._merged(gram, m, rng)
        rows, passing = found or self._passed(gram, m, rng)
        return rows, passing.scores

    def _passed(self, gram: Gram, m: int, rng: np.random.Generator) -> tuple[np.ndarray, _Passing]:
        """Row numbers and the dictionary when the last block has joined."""
        n, step = gram.shape[0], self.block_size or m
        rows, passing = np.arange(0), _Passing()
        for start in range(0, n, step):
            rows = rows[passing.survivors(m, rng)]
            block = np.arange(start, min(start + step, n))
            rows = np.append(rows, block)
            passing.join(_host(gram.block(block, rows)), self, m, gram.dtype)
        return rows, passing

    def _merged(
        self, gram: Gram, m: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, _Passing] | None:
        """The same, where each process passes over its own rows: their dictionaries are merged.

        None if one process has all rows.
        """

        def prepare() -> Callable[[Rows, int], _Part]:
            return partial(_of_part, self, gram.kernel, m, int(rng.integers(2**63)))

        parts = gram.rows.place.by_parts(gram.rows, prepare, serial=gram.kernel.serial)
        if parts is None:
            return None
        numbers, points, passing = np.arange(0), None, _Passing()
        for part in parts:
            kept = passing.survivors(m, rng)
            before = part.points[:0] if points is None else array_ops.take_rows(points, kept)
            points = array_ops.concat_rows([before, part.points])
            numbers = np.append(numbers[kept], part.numbers)
            both, every = Gram(gram.kernel, ArrayRows(points)), np.arange(len(numbers))
            fresh = _host(both.block(every[len(kept) :], every))
            passing.join(fresh, self, m, gram.dtype, part.weights)
            gram.evaluations += part.evaluations + both.evaluations
        return numbers, passing

    def stream(
        self, batches: Iterable[Any], kernel: Any, m: int, rng: np.random.Generator
    ) -> Landmarks:
        """At most m landmarks for rows that come in batches, each seen once and then forgotten.

        They are those that ``select`` finds where all rows are at hand and the blocks are the same,
        but have no row numbers: ``Nystroem(kernel, landmarks=landmarks.points)`` takes the points.
        Batches are cut into blocks of ``block_size`` rows, by default m.

        Parameters
        ----------
        batches : iterable of arrays of shape (rows, n_columns), or of lists of objects
            All of one kind.
        kernel : str, Kernel or callable
            Its parameters are numbers, or were fitted.
        m : int
        rng : Generator

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import RBF, SQUEAK
        >>> batches = [[[9.0], [-9.0]], np.zeros((49, 1)), np.zeros((49, 1))]
        >>> landmarks = SQUEAK().stream(batches, RBF(1.0), 10, np.random.default_rng(0))
        >>> sorted(set(landmarks.points.ravel().tolist()))
        [-9.0, 0.0, 9.0]
        """
        self._check_numbers()
        step = self.block_size or checks.positive_integer(self, "m", m)
        points, passing = None, _Passing()
        for batch in batches:
            rows = (gram := Gram(kernel, batch)).rows
            if gram.kernel.is_matrix:
                raise ValueError(
                    "SQUEAK.stream needs rows that can meet those of later batches; a precomputed "
                    "matrix holds the values of its own rows alone."
                )
            for start in range(0, gram.shape[0], step):
                kept = passing.survivors(m, rng)
                fresh = rows.take(range(start, min(start + step, gram.shape[0])))
                before = (
                    array_ops.span(fresh, 0, 0)
                    if points is None
                    else array_ops.take_rows(points, kept)
                )
                points = array_ops.concat_rows([before, fresh])
                numbers = np.arange(points.shape[0])
                both = Gram(gram.kernel, ArrayRows(points))
                passing.join(_host(both.block(numbers[len(kept) :], numbers)), self, m, gram.dtype)
        if points is None:
            raise ValueError("SQUEAK.stream needs at least one batch; got none.")
        return Landmarks(array_ops.take_rows(points, passing.survivors(m, rng)))


class _Passing:
    """The dictionary of SQUEAK while rows pass by: its matrix, weights and leverage scores."""

    def __init__(self) -> None:
        self.K, self.weights, self.scores = np.empty((0, 0)), np.ones(0), np.ones(0)

    def survivors(self, m: int, rng: np.random.Generator) -> np.ndarray:
        """Keep m by their scores; returns their places in the dictionary so far."""
        kept, chances = _draw(self.scores, m, rng)
        self.K, self.weights = self.K[np.ix_(kept, kept)], self.weights[kept] / chances
        return kept

    def join(
        self,
        fresh: np.ndarray,
        sampler: SQUEAK,
        m: int,
        dtype: Any,
        weights: np.ndarray | None = None,
    ) -> None:
        """Take in rows, by their kernel values with the dictionary and with themselves.

        They weigh 1, or what they weighed in the dictionary that they come from.
        """
        self.K = np.vstack([np.hstack([self.K, fresh[:, : len(self.K)].T]), fresh])
        weights = np.ones(len(fresh)) if weights is None else weights
        self.weights = np.append(self.weights, weights)
        # The exact scores of the weighted matrix are the estimated ones over the chance that
        # each row had so far: just what its chance to survive is to be in proportion to.
        root = np.sqrt(self.weights)
        values, vectors = _spectrum(root[:, None] * self.K * root)
        self.scores = _exact(values, vectors, sampler._ridge(values, m, dtype))


class _Part(NamedTuple):
    """The dictionary of some of the rows."""

    numbers: np.ndarray
    points: Array
    weights: np.ndarray
    evaluations: int


def _of_part(sampler: SQUEAK, kernel: Kernel, m: int, seed: int, rows: Rows, first: int) -> _Part:
    """Of the rows that one process holds, where they are; ``first`` is the number of the first."""
    gram, rng = Gram(kernel, rows), np.random.default_rng([seed, first])
    numbers, passing = sampler._passed(gram, m, rng)
    numbers = numbers[passing.survivors(m, rng)]
    return _Part(first + numbers, rows.take(numbers), passing.weights, gram.evaluations)


class _Dictionary:
    """Weighted rows S: the spectrum of W^½ K_SS W^½ stands for that of K."""

    def __init__(self, gram: Gram, rows: np.ndarray, weights: np.ndarray) -> None:
        self.gram, self.rows, self.root = gram, rows, np.sqrt(weights)
        core = _host(gram.block(rows, rows))
        self.values, self.vectors = _spectrum(self.root[:, None] * core * self.root)

    def scores(self, rows: np.ndarray, ridge: float) -> np.ndarray:
        """(k_ii - k_iS W^½ (W^½ K_SS W^½ + ridge I)⁻¹ W^½ k_Si) / ridge for these rows."""
        solve = self.root[:, None] * self.vectors / np.sqrt(self.values + ridge)
        gram, order = self.gram, np.argsort(rows)
        tile = gram.kernel.against(gram.points.take(self.rows))

        def explained(x: Array, out: Array) -> Array:
            return array_ops.like(array_ops.row_norms(_host(tile(x)) @ solve), out)

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


def _host(K: Any) -> np.ndarray:
    return np.asarray(array_ops.to_numpy(K), dtype=np.float64)


def _spectrum(K: np.ndarray) -> Pair:
    """Eigenvalues, without the rounding below 0, and eigenvectors."""
    values, vectors = eigh(K, driver="evd", check_finite=False)
    return np.maximum(values, 0.0), vectors


def _exact(values: np.ndarray, vectors: np.ndarray, ridge: float) -> np.ndarray:
    """The leverage scores of the matrix of this spectrum."""
    return vectors**2 @ (values / (values + ridge))


def _dimension(m: int) -> float:
    """The effective dimension that m draws by leverage can cover: d of O(d log d)."""
    return m / (2 * np.log(m + np.exp(1.0)))


def _resolution(values: np.ndarray, dtype: Any) -> float:
    """The ridge below which rounding, of the entries or of the decomposition, hides everything."""
    return (10 * array_ops.eps(dtype) + 1e-12) * float(values.sum()) or 1.0


def _suitable(values: np.ndarray, m: int, floor: float) -> float:
    """The ridge, at least ``floor``, at which Σ λ / (λ + ridge) is what m draws can cover."""

    def excess(log_ridge: float) -> float:
        return float(np.sum(values / (values + np.exp(log_ridge)))) - _dimension(m)

    low = np.log(floor)
    if excess(low) <= 0:
        return floor
    return float(np.exp(brentq(excess, low, np.log(values.sum() / _dimension(m)))))


def _doublings(least: int, size: int) -> list[int]:
    """Sizes that double up to ``size``; the first is at most ``least``."""
    sizes = [size]
    while sizes[-1] > least:
        sizes.append(-(-sizes[-1] // 2))
    return sizes[::-1]


def _draw(scores: np.ndarray, size: int, rng: np.random.Generator) -> Pair:
    """``size`` distinct positions, or all of positive score if they are fewer, and their chances.

    The chance of i is min(1, c scores_i), with c such that ``size`` are expected; systematic
    sampling in a random order then gives just as many.
    """
    scores = np.where(scores > 1e-300, scores, 0.0)  # a sum of less could not be divided by
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
