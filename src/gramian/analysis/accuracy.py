"""The error of an approximation, without the n×n matrix.

The trace error of an approximation from below is exact and costs n kernel values. The Frobenius
error is exact up to 5,000 rows; beyond, it is estimated from pairs among 2,000 sampled rows, with a
jackknife interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from gramian.approximations import Approximation
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice
from gramian.backend.threads import one_blas_thread
from gramian.estimators.base import generator
from gramian.kernels import tiles
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import even_spans

__all__ = ["ErrorEstimate", "relative_error"]

EXACT_ROWS = 5000  # up to this many rows all pairs are used by default
SAMPLED_ROWS = 2000


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

    def __lt__(self, other: Any) -> bool:
        return self.value < float(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > float(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= float(other)

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.3g}"
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@one_blas_thread()
def relative_error(
    approximation: Approximation,
    X: Any,
    norm: str = "fro",
    exact: bool | None = None,
    *,
    random_state: Any = 0,
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
        2,000 random rows, with an interval. "trace": the mean of k(x, x) - k̃(x, x) divided by that
        of k(x, x); always exact, costs n kernel values, and only for approximations from below,
        such as Nystroem. "spectral": the largest absolute eigenvalue of K - K̃ divided by that of
        K, by Lanczos iteration, which costs about 2·20·n² kernel values; if not exact, for the
        matrix of 2,000 random rows.
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
    chosen = None
    if not (n <= EXACT_ROWS if exact is None else exact) and n > SAMPLED_ROWS:
        chosen = np.sort(generator(random_state).choice(n, size=SAMPLED_ROWS, replace=False))
    if norm == "spectral":
        return _spectral(gram, factors, chosen)
    if chosen is None:
        return _frobenius(gram, factors)
    return _sampled_frobenius(gram, factors, chosen)


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

        def squares(x: Array, a: Array, d: Array, i: range, tile: Any = tile,
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


def _sampled_frobenius(gram: Gram, factors: Factors, chosen: np.ndarray) -> ErrorEstimate:
    """Use all pairs among some rows, with a jackknife interval.

    The diagonal is known exactly. Off the diagonal, the mean over pairs of sampled rows is an
    unbiased estimate of the mean over all pairs. Pairs share rows, so the standard error comes from
    leaving out one row at a time.
    """
    n, s = gram.shape[0], len(chosen)
    K, difference = _sampled(gram, factors, chosen)
    whole = np.asarray(array_ops.to_numpy(gram.diag()), dtype=np.float64)
    left = whole - array_ops.to_numpy(factors.diagonal())
    on = np.array([(left**2).sum(), (whole**2).sum()])
    # For each row, the sums over its pairs, of the error and of the matrix.
    by_row = np.stack([(M**2).sum(axis=1) - M.diagonal() ** 2 for M in (difference, K)])
    total = by_row.sum(axis=1)

    def error(sums: np.ndarray, rows: int) -> np.ndarray:
        pairs = sums * (n * (n - 1) / (rows * (rows - 1)))
        squared = (pairs[0] + on[0]) / (pairs[1] + on[1])
        return np.log(np.maximum(squared, 1e-300)) / 2

    value = float(error(total, s))
    without = error(total[:, None] - 2 * by_row, s - 1)
    spread = np.sqrt((s - 1) / s * ((without - without.mean()) ** 2).sum() * (1 - s / n))
    low, high = np.exp(value - 1.96 * spread), np.exp(value + 1.96 * spread)
    return ErrorEstimate(float(np.exp(value)), float(low), float(high), "fro", gram.evaluations)


def _sampled(gram: Gram, factors: Factors, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return K and K - K̃ among some rows, in float64 on the host."""
    K = np.asarray(array_ops.to_numpy(gram.block(chosen, chosen)), dtype=np.float64)
    return K, K - array_ops.to_numpy(factors.take(chosen).dense())


def _spectral(gram: Gram, factors: Factors, chosen: np.ndarray | None) -> ErrorEstimate:
    if chosen is not None:
        K, difference = _sampled(gram, factors, chosen)
        values = [abs(np.linalg.eigvalsh(M)[[0, -1]]).max() for M in (difference, K)]
        return _certain(values[0] / values[1], "spectral", gram)
    gram, evaluated = gram.persist(), gram
    factors = factors.persist()

    def largest(difference: bool) -> float:
        def product(v: np.ndarray) -> np.ndarray:
            v = array_ops.like(v, gram.diag(), gram.rows.xp.float64)
            image = gram.matmul(v)
            return array_ops.to_numpy(image - factors.matmul(v) if difference else image)

        n = gram.shape[0]
        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        return float(abs(eigsh(operator, k=1, which="LM", tol=1e-4, v0=start)[0][0]))

    value = largest(True) / largest(False)
    evaluated.evaluations += 0 if evaluated is gram else gram.evaluations
    return _certain(value, "spectral", evaluated)
