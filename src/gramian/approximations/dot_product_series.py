"""Base class of maps for dot-product kernels, with the series k(x, y) = Σ a_p (xᵀy)^p.

Each degree has its own random features, in proportion to its share of the trace of K. An infinite
series need not be cut off: a degree whose share is less than one feature gets one with that
probability, and a larger weight if it does.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np
from sklearn.base import clone

from gramian.approximations.base import Approximation, Plan
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive_integer
from gramian.backend.wording import counted
from gramian.kernels import Kernel
from gramian.matrices.gram import Gram
from gramian.rows import Rows

MOST_TERMS = 512
LONGEST, ENDLESS = 64, 8  # a series that reaches degree LONGEST is planned as one of ENDLESS
TAIL = 1e-8  # the fraction of k(x, x) that may be left out, for the longest row


@dataclass(frozen=True)
class Term:
    """``weight * (xᵀy)^degree``, approximated by ``count`` features."""

    degree: int
    weight: float
    count: int


@dataclass(frozen=True)
class Series:
    """The coefficients a_p of a kernel, and the shares of their terms in the trace of K."""

    coefficients: np.ndarray  # (terms,)
    shares: np.ndarray  # (terms,)

    def beyond(self, degree: int) -> Series:
        """Return the series without the terms up to this degree."""
        later = np.arange(len(self.coefficients)) > degree
        return Series(self.coefficients * later, self.shares * later)

    def __bool__(self) -> bool:
        return bool(self.shares.any())

    def terms(self, n: int, rng: np.random.Generator) -> list[Term]:
        """Divide n features among the terms by their shares, so that K̃ is unbiased.

        The counts come from systematic sampling, so each is within one of its share.
        """
        total = np.cumsum(self.shares)
        due = n * (total / total[-1])  # ends with n itself, without rounding
        counts = np.diff(np.floor(due + rng.random()), prepend=0.0).astype(int)
        chances = np.minimum(n * self.shares / total[-1], 1.0)
        return [
            Term(int(p), float(self.coefficients[p] / chances[p]), int(counts[p]))
            for p in np.flatnonzero(counts)
        ]


def series(owner: object, gram: Gram) -> Series:
    """Return the series of a Gram matrix's kernel, with as many terms as its rows need."""
    kernel, rows = gram.kernel, gram.rows
    if kernel.maclaurin(1) is None:
        raise _no_series(owner, kernel, "")
    norms = array_ops.to_numpy(rows.map(lambda x, out: array_ops.row_norms(x), label="norms"))
    norms = norms.astype(np.float64)
    longest = float(norms.max()) or 1.0
    # The kernel depends only on the inner product: any row of this length has the same value.
    row = np.zeros((1, rows.shape[1]))
    row[0, 0] = sqrt(longest)
    with np.errstate(over="ignore"):
        whole = float(kernel.diag(row)[0])
        coefficients, parts = _long_enough(owner, kernel, longest, whole)
    if not norms.any():  # all rows are 0: use shares for rows of length 1
        return Series(coefficients, parts)
    norms /= longest
    shares, power = np.empty(len(parts)), np.ones(len(norms))
    for p in range(len(parts)):
        shares[p] = parts[p] * power.mean()
        power *= norms
    return Series(coefficients, shares)


def _long_enough(
    owner: object, kernel: Kernel, u: float, value: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients a_p whose terms a_p u^p add up to the value, and the terms; (terms,)."""
    count = 16
    while count <= MOST_TERMS:
        coefficients = np.asarray(kernel.maclaurin(count), dtype=np.float64)
        if (coefficients < 0).any():
            degree = int(np.argmax(coefficients < 0))
            raise _no_series(owner, kernel, f", whose coefficient of degree {degree} is negative")
        with np.errstate(divide="ignore"):  # by logarithms, since u^p may overflow
            terms = np.exp(np.log(coefficients) + np.arange(count) * np.log(u))
        if abs(1.0 - float(terms.sum()) / value) <= TAIL:
            return coefficients, terms
        count *= 2
    raise ValueError(
        f"The first {MOST_TERMS} terms of the Maclaurin series of {kernel!r} do not add up to its "
        f"value for the longest row, {value:.3g} at a squared norm of {u:.3g}. Scale the rows "
        "(StandardScaler, normalize), or use a smaller gamma."
    )


def _no_series(owner: object, kernel: Kernel, reason: str) -> ValueError:
    advice = "RandomFourier or Nystroem" if kernel.psd else "an exact learner: kernel=Exact(...)"
    return ValueError(
        f"{type(owner).__name__} needs a dot-product kernel with non-negative Maclaurin "
        f"coefficients; got {kernel!r}{reason}. Use {advice}."
    )


class Features(Protocol):
    """Random features of a block of rows."""

    width: int
    work_bytes: int  # memory of ``fill`` per row, in addition to the block and its result

    def fill(self, x: Array, out: Array) -> None: ...


class DotProductMap(Approximation):
    """Base of maps for kernels Σ a_p (xᵀy)^p: the constant is exact, other terms are random.

    A subclass implements ``_draw``, which returns n random features of a series.
    """

    n_components: int
    keep_linear: bool = False
    unbiased = True

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        coefficients = kernel.maclaurin(8)
        return coefficients is not None and bool(np.all(coefficients >= 0))

    @abstractmethod
    def _draw(self, series: Series, n: int, rng: np.random.Generator, like: Array) -> Features:
        """Draw n random features; ``like`` (1, d) is a dense row of the data."""

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: Plan) -> int:
        n, d = positive_integer(self, "n_components", self.n_components), gram.rows.shape[1]
        if self.keep_linear not in (True, False):
            raise ValueError(
                f"keep_linear of {type(self).__name__} must be True or False; got "
                f"{self.keep_linear!r}."
            )
        whole = series(self, gram)
        self._constant, self._slope = np.sqrt(whole.coefficients[:2]).tolist()
        if not self.keep_linear:
            self._slope = 0.0
        drawn = whole.beyond(1 if self.keep_linear else 0)
        # With a single feature, the constant is added to the random one, whose random signs make
        # the product of the two 0 in expectation.
        separate = self._constant and (n > 1 or not drawn)
        exact = (d if self._slope else 0) + (1 if separate else 0)
        if n < exact + bool(drawn):
            raise ValueError(
                f"keep_linear=True keeps the {counted(d, 'column')} of X as features: n_components "
                f"of {type(self).__name__} must be at least {exact + bool(drawn)}; got {n}."
            )
        like = array_ops.dense(gram.rows.take([0]))
        self._dtype = like.dtype
        self._random = self._draw(drawn, n - exact, rng, like) if drawn else None
        return exact + (self._random.width if self._random else 0)

    def _features(self, x: Array, out: Array | None = None) -> Array:
        if out is None:
            out = array_ops.empty((x.shape[0], self.n_components_), x, self._dtype)
        x = array_ops.astype(x, self._dtype)
        width = 0
        if self._random is not None:
            width = self._random.width
            self._random.fill(x, out[:, :width])
        if self._slope:
            out[:, width : width + x.shape[1]] = array_ops.dense(x) * self._slope
        if self._constant and width < self.n_components_:
            out[:, -1] = self._constant
        elif self._constant:
            out[:, -1] += self._constant
        return out

    def _plan(self, rows: Rows) -> Plan:
        n = positive_integer(self, "n_components", self.n_components)
        size, work = self._map_bytes(n, rows.shape[1], array_ops.itemsize(rows.dtype))
        kept = {"random vectors": size}
        norms = {"norms of rows": 3 * 8 * rows.shape[0], "blocks": rows.walk_bytes(8)}
        return Plan(self, rows, self._planned(rows, n, work), kept, [norms, kept])

    def _degree(self) -> int:
        """Return the highest degree of the series, or a typical one if the series is infinite."""
        kernel = clone(self._bare_kernel())
        if not kernel.is_matrix:
            kernel.fit(np.ones((2, 1)))  # any gamma will do: only the degree matters
        coefficients = kernel.maclaurin(LONGEST + 1)
        if coefficients is None or not np.any(coefficients):  # the fit will raise an error
            return 1
        degree = int(np.flatnonzero(coefficients)[-1])
        return ENDLESS if degree == LONGEST else max(degree, 1)

    @abstractmethod
    def _map_bytes(self, n: int, d: int, item: int) -> tuple[int, int]:
        """Return the memory of n random features: that of the map, and per row."""

    def _work_bytes(self) -> int:
        return self._random.work_bytes if self._random is not None else 0
