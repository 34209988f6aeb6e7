"""The error of an approximation, without the n×n matrix.

The trace error of an approximation from below is exact and costs n kernel values. The Frobenius
error is exact up to 5,000 rows; beyond, it is estimated from pairs among 2,000 sampled rows, with a
jackknife interval. Rows are drawn in proportion to their own error, which is known for each row:
a few rows may carry all of it, and a uniform sample would miss them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, SupportsFloat

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from gramian.approximations import Approximation
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice
from gramian.backend.threads import one_blas_thread
from gramian.backend.typing import ArrayLike, BlockMap
from gramian.estimators.base import generator
from gramian.estimators.parameters import RandomState
from gramian.kernels import tiles
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import even_spans

__all__ = ["ErrorEstimate", "relative_error"]

EXACT_ROWS = 5000  # up to this many rows all pairs are used by default
SAMPLED_ROWS = 2000
CHANCE = 1.96  # standard errors on either side of an estimate: 95 %


@dataclass(frozen=True)
class ErrorEstimate:
    """A relative error with a 95 % confidence interval.

    It can be used as a number: ``float(error)``, ``error < 0.05``.

    Attributes
    ----------
    value, low, high : float
        The error and its interval; all equal if the error is exact.
    norm : str
    evaluations : int
        Number of kernel values computed.

    See Also
    --------
    relative_error : makes it.

    Examples
    --------
    >>> from gramian import Nystroem, relative_error
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> error = relative_error(Nystroem("linear", 1, landmarks=[[1.0]]).fit(X), X)
    >>> error < 1e-6, error.norm, error.low == error.high
    (True, 'fro', True)
    """

    value: float
    low: float
    high: float
    norm: str
    evaluations: int

    def __float__(self) -> float:
        return self.value

    def __lt__(self, other: SupportsFloat) -> bool:
        return self.value < float(other)

    def __le__(self, other: SupportsFloat) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: SupportsFloat) -> bool:
        return self.value > float(other)

    def __ge__(self, other: SupportsFloat) -> bool:
        return self.value >= float(other)

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.3g}"
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@one_blas_thread()
def relative_error(
    approximation: Approximation,
    X: ArrayLike,
    norm: str = "fro",
    exact: bool | None = None,
    *,
    random_state: RandomState = 0,
) -> ErrorEstimate:
    """Relative error ||K - K̃|| / ||K|| of a fitted approximation on the rows X.

    K is the matrix of the approximation's ``exact_kernel_``: its kernel, or whatever else it
    preserves, such as the inner product ⟨·, Σ³ ·⟩ of KernelJL.

    Parameters
    ----------
    approximation : Approximation
        Fitted, on these rows or others.
    X : array-like
    norm : {"fro", "trace", "spectral"}, default="fro"
        "fro": the Frobenius norm, from all n² pairs if exact, else estimated from the pairs among
        2,000 random rows each for K - K̃ and for K, with an interval. "trace": the mean of
        k(x, x) - k̃(x, x) divided by that of k(x, x); always exact, costs n kernel values, and only
        for approximations from below, such as Nystroem. "spectral": the largest absolute
        eigenvalue of K - K̃ divided by that of K, by Lanczos iteration, which costs about 2·20·n²
        kernel values; if not exact, an interval from bounds on both, which is wide.
    exact : bool, optional
        Whether to use all pairs of rows. By default, up to 5,000 rows.
    random_state : int, Generator or None, default=0
        Selects the random rows.

    Returns
    -------
    ErrorEstimate

    See Also
    --------
    compare : errors and scores of several approximations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import RBF, Nystroem, relative_error
    >>> X = load_iris().data
    >>> approximation = Nystroem(RBF(0.1), 20, random_state=0).fit(X)
    >>> float(relative_error(approximation, X)) < 0.02
    True
    >>> error = relative_error(approximation, X, norm="trace")
    >>> error.evaluations
    150
    """
    choice("relative_error", "norm", norm, ("fro", "trace", "spectral"))
    rows = approximation._new_rows(X)
    factors = approximation.factor_rows(rows)
    gram = Gram(approximation.exact_kernel_, rows)
    if norm == "trace":
        return _trace(approximation, gram, factors)
    n = gram.shape[0]
    sampled = not (n <= EXACT_ROWS if exact is None else exact) and n > SAMPLED_ROWS
    if not sampled:
        return _spectral(gram, factors) if norm == "spectral" else _frobenius(gram, factors)
    sample = _Sample.draw(gram, factors, generator(random_state), approximation.below)
    if norm == "spectral":
        return _spectral_bounds(gram, factors, sample, approximation.below)
    return sample.relative_error(gram)


def _certain(value: float, norm: str, gram: Gram) -> ErrorEstimate:
    return ErrorEstimate(value, value, value, norm, gram.evaluations)


def _trace(approximation: Approximation, gram: Gram, factors: Factors) -> ErrorEstimate:
    if not approximation.below:
        raise ValueError(
            "norm='trace' needs an approximation with K - K̃ positive semi-definite, such as "
            f"Nystroem; {type(approximation).__name__} does not guarantee that. Use norm='fro'."
        )
    own = factors.diagonal()
    left = gram.trace() - float(array_ops.namespace(own).sum(own))
    return _certain(max(left / gram.trace(), 0.0), "trace", gram)


def _frobenius(gram: Gram, factors: Factors) -> ErrorEstimate:
    """Use all pairs, in blocks of rows and columns."""
    factors = factors.persist()
    diagonal, n = gram.diag(), gram.shape[0]
    room = config.memory_budget() // 4 // (8 * n)
    totals = np.zeros(2)
    for start, stop in even_spans(0, n, max(1, min(tiles.tile_columns(diagonal), room))):
        tile = gram.kernel.against(gram.points.take(range(start, stop)))
        approximate = factors.columns(np.arange(start, stop))

        def squares(x: Array, a: Array, d: Array, i: range, tile: BlockMap = tile,
                    start: int = start, stop: int = stop) -> np.ndarray:  # fmt: skip
            K = tile(x)
            inside = np.arange(max(i.start, start), min(i.stop, stop))
            array_ops.put(K, inside - i.start, inside - start,
                        array_ops.take_rows(d, inside - i.start))  # fmt: skip
            size = _sum_of_squares(K)
            K -= array_ops.astype(a, K.dtype)
            return np.asarray([_sum_of_squares(K), size])

        totals += gram.rows.sum(
            squares,
            approximate,
            diagonal,
            range(n),
            row_bytes=2 * (stop - start) * array_ops.itemsize(gram.dtype),
            serial=gram.kernel.serial,
            label="error",
        )
    gram.evaluations += n**2
    return _certain(float(np.sqrt(totals[0] / totals[1])), "fro", gram)


def _sum_of_squares(K: Array) -> float:
    xp = array_ops.namespace(K)
    return float(xp.sum(array_ops.astype(array_ops.row_norms(K), xp.float64)))


class _Size(NamedTuple):
    """The squared Frobenius norm of a matrix, estimated from the pairs among a sample of rows."""

    squared: float
    without: np.ndarray  # the same without each of the sampled rows, (s,)

    @classmethod
    def of(cls, pairs: np.ndarray, diagonal: float, count: float) -> _Size:
        """Estimate it from squared entries (s, s), with weights whose mean is 1.

        Entries of a row with itself are 0 there: ``diagonal`` is their known sum. The other entries
        are ``count``.
        """
        s, by_row = len(pairs), pairs.sum(axis=1)
        total = by_row.sum()
        squared = count * total / (s * (s - 1)) + diagonal
        without = count * (total - 2 * by_row) / ((s - 1) * (s - 2)) + diagonal
        return cls(max(float(squared), 1e-300), np.maximum(without, 1e-300))


def _spread(*logs: np.ndarray) -> float:
    """Return the standard error of a sum whose terms come from separate samples, by the jackknife.

    Pairs of rows share rows, so one row at a time is left out.
    """
    return float(np.sqrt(sum((len(x) - 1) / len(x) * ((x - x.mean()) ** 2).sum() for x in logs)))


class _Sample(NamedTuple):
    """Estimates of E = K - K̃ and of K from samples of rows."""

    error: _Size
    whole: _Size
    apart: bool  # whether the two are from separate samples
    own: np.ndarray  # the diagonal of E, (n,)
    largest: tuple[float, float]  # largest absolute eigenvalues of E and K among sampled rows

    @classmethod
    def draw(cls, gram: Gram, factors: Factors, rng: np.random.Generator, below: bool) -> _Sample:
        """Draw rows uniformly; for E of an approximation from below, by their own error.

        E is then positive semi-definite, so |E_ij| ≤ sqrt(E_ii E_jj): rows with a large E_ii may
        carry all of the error. A tenth is drawn uniformly.
        """
        n = gram.shape[0]
        diagonal = array_ops.host_float64(gram.diag())
        own = diagonal - array_ops.to_numpy(factors.diagonal())
        chosen = np.sort(rng.choice(n, size=SAMPLED_ROWS, replace=False))
        K = array_ops.host_float64(gram.block(chosen, chosen))
        whole = _Size.of(_off_diagonal(K), (diagonal**2).sum(), n * (n - 1))
        weights = np.clip(own, 0.0, None)
        apart = below and bool(weights.sum() > 0)
        if not apart:
            E = K - array_ops.to_numpy(factors.take(chosen).dense())
            error = _Size.of(_off_diagonal(E), (own**2).sum(), n * (n - 1))
        else:
            chances = 0.9 * weights / weights.sum() + 0.1 / n
            drawn = rng.choice(n, size=SAMPLED_ROWS, p=chances)
            numbers, places = np.unique(drawn, return_inverse=True)
            block = array_ops.host_float64(gram.block(numbers, numbers))
            E = block - array_ops.to_numpy(factors.take(numbers).dense())
            inverse = 1.0 / chances[drawn]
            pairs = _off_diagonal(E)[np.ix_(places, places)] * inverse[:, None] * inverse
            error = _Size.of(pairs, (own**2).sum(), 1.0)
        largest = tuple(float(np.abs(np.linalg.eigvalsh(M)[[0, -1]]).max()) for M in (E, K))
        return cls(error, whole, apart, own, (largest[0], largest[1]))

    def relative_error(self, gram: Gram) -> ErrorEstimate:
        logs = [np.log(size.without) / 2 for size in (self.error, self.whole)]
        spread = _spread(*logs) if self.apart else _spread(logs[0] - logs[1])
        value = np.log(self.error.squared / self.whole.squared) / 2
        low, value, high = (float(np.exp(value + z * spread)) for z in (-CHANCE, 0.0, CHANCE))
        return ErrorEstimate(value, low, high, "fro", gram.evaluations)


def _off_diagonal(M: np.ndarray) -> np.ndarray:
    """Return the squares of the entries, and 0 on the diagonal."""
    squares = M**2
    np.fill_diagonal(squares, 0.0)
    return squares


def _spectral_bounds(gram: Gram, factors: Factors, sample: _Sample, below: bool) -> ErrorEstimate:
    """Bound the largest eigenvalues of E = K - K̃ and of K, without a product with K.

    That of E is at most ||E||_F, and at least that of any of its blocks, |E_ii| included. That of K
    differs from that of K̃ by at most as much, and is at least that of any of its blocks.
    """
    spread = _spread(np.log(sample.error.without) / 2)
    most = float(np.sqrt(sample.error.squared) * np.exp(CHANCE * spread))
    least = min(max(float(np.abs(sample.own).max()), sample.largest[0]), most)
    approximate = _largest(factors.persist().matmul, factors.shape[0])
    low = least / (approximate + least)
    smallest = approximate if below else max(approximate - most, sample.largest[1])
    high = most / smallest
    high = min(high, 1.0) if below else high  # then E is at most K
    return ErrorEstimate(float(np.sqrt(low * high)), low, high, "spectral", gram.evaluations)


def _spectral(gram: Gram, factors: Factors) -> ErrorEstimate:
    gram, evaluated = gram.persist(), gram
    factors = factors.persist()

    def product(v: Array) -> Array:
        return gram.matmul(v)

    def difference(v: Array) -> Array:
        return gram.matmul(v) - factors.matmul(v)

    value = _largest(difference, gram.shape[0], gram) / _largest(product, gram.shape[0], gram)
    evaluated.evaluations += 0 if evaluated is gram else gram.evaluations
    return _certain(value, "spectral", evaluated)


def _largest(matmul: Callable[[Array], Array], n: int, gram: Gram | None = None) -> float:
    """Return the largest absolute eigenvalue of a symmetric matrix, by Lanczos iteration."""

    def product(v: np.ndarray) -> np.ndarray:
        if gram is not None:
            v = array_ops.like(v, gram.diag(), gram.rows.xp.float64)
        return array_ops.to_numpy(matmul(v))

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    return float(abs(eigsh(operator, k=1, which="LM", tol=1e-4, v0=start)[0][0]))
