"""What the maps for kernels of inner products share: the series k(x, y) = Σ a_p (xᵀy)^p.

Each degree is approximated by random features of its own. How many it gets follows from its share
of the trace of K, so that a series without end needs no cut: a degree that is due less than one
feature gets one with that probability, and weighs the more where it does.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

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
LONGEST, ENDLESS = 64, 8  # a series with terms up to the first is expected to matter to the second
TAIL = 1e-8  # the part of k(x, x) that terms left out may have, for the longest row


@dataclass(frozen=True)
class Term:
    """``weight * (xᵀy)^degree``, to be approximated by ``count`` features."""

    degree: int
    weight: float
    count: int


@dataclass(frozen=True)
class Series:
    """The coefficients a_p of a kernel, and the shares of their terms in the trace of K."""

    coefficients: np.ndarray
    shares: np.ndarray

    def beyond(self, degree: int) -> Series:
        """The series without the terms up to this degree."""
        later = np.arange(len(self.coefficients)) > degree
        return Series(self.coefficients * later, self.shares * later)

    def __bool__(self) -> bool:
        return bool(self.shares.any())

    def terms(self, n: int, rng: np.random.Generator) -> list[Term]:
        """n features for the terms by their shares: an unbiased draw of the kernel.

        Counts are the steps of one random ladder, so that each is within one of what is due.
        """
        total = np.cumsum(self.shares)
        due = n * (total / total[-1])  # ends with n itself, without rounding
        counts = np.diff(np.floor(due + rng.random()), prepend=0.0).astype(int)
        chances = np.minimum(n * self.shares / total[-1], 1.0)
        return [
            Term(int(p), float(self.coefficients[p] / chances[p]), int(counts[p]))
            for p in np.flatnonzero(counts)
        ]


def series(owner: Any, gram: Gram) -> Series:
    """The series of a Gram matrix's kernel, as long as its rows need it."""
    kernel, rows = gram.kernel, gram.rows
    if kernel.maclaurin(1) is None:
        raise _no_series(owner, kernel, "")
    norms = array_ops.to_numpy(rows.map(lambda x, out: array_ops.row_norms(x), label="norms"))
    norms = norms.astype(np.float64)
    longest = float(norms.max()) or 1.0
    # The kernel depends on the inner product alone: any row of this length has the value.
    row = np.zeros((1, rows.shape[1]))
    row[0, 0] = sqrt(longest)
    with np.errstate(over="ignore"):
        whole = float(kernel.diag(row)[0])
        coefficients, parts = _long_enough(owner, kernel, longest, whole)
    if not norms.any():  # nothing to measure: as if all rows were that long
        return Series(coefficients, parts)
    norms /= longest
    shares, power = np.empty(len(parts)), np.ones(len(norms))
    for p in range(len(parts)):
        shares[p] = parts[p] * power.mean()
        power *= norms
    return Series(coefficients, shares)


def _long_enough(
    owner: Any, kernel: Kernel, u: float, value: float
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients a_p whose terms a_p u^p add up to the kernel's value, and these terms."""
    count = 16
    while count <= MOST_TERMS:
        coefficients = np.asarray(kernel.maclaurin(count), dtype=np.float64)
        if (coefficients < 0).any():
            degree = int(np.argmax(coefficients < 0))
            raise _no_series(owner, kernel, f", whose coefficient of degree {degree} is negative")
        with np.errstate(divide="ignore"):  # by logarithms: u^p alone may exceed all numbers
            terms = np.exp(np.log(coefficients) + np.arange(count) * np.log(u))
        if abs(1.0 - float(terms.sum()) / value) <= TAIL:
            return coefficients, terms
        count *= 2
    raise ValueError(
        f"The first {MOST_TERMS} terms of the Maclaurin series of {kernel!r} do not add up to its "
        f"value for the longest row, {value:.3g} at a squared norm of {u:.3g}. Scale the rows "
        "(StandardScaler, normalize), or take a smaller gamma."
    )


def _no_series(owner: Any, kernel: Kernel, reason: str) -> ValueError:
    advice = "RandomFourier or Nystroem" if kernel.psd else "an exact learner: kernel=Exact(...)"
    return ValueError(
        f"{type(owner).__name__} needs a kernel of inner products with non-negative Maclaurin "
        f"coefficients; got {kernel!r}{reason}. Use {advice}."
    )


class Features(Protocol):
    """Random features of a block of rows."""

    width: int
    work_bytes: int  # what ``fill`` works on for each row, beside the block and its result

    def fill(self, x: Array, out: Array) -> None: ...


class DotProductMap(Approximation):
    """Base of the maps for kernels Σ a_p (xᵀy)^p: a constant is kept exactly, the rest is drawn.

    A subclass implements ``_draw``, which gives n random features of a series.
    """

    n_components: Any
    keep_linear: Any = False
    unbiased = True

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        coefficients = kernel.maclaurin(8)
        return coefficients is not None and bool(np.all(coefficients >= 0))

    @abstractmethod
    def _draw(self, series: Series, n: int, rng: np.random.Generator, like: Array) -> Features:
        """n random features; ``like`` is a row of the library, dtype and width of the data."""

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Any, plan: Plan) -> int:
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
        # A single feature bears the constant beside what is drawn: the signs of that keep the two
        # apart in expectation.
        own = self._constant and (n > 1 or not drawn)
        exact = (d if self._slope else 0) + (1 if own else 0)
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
        norms = {"norms of rows": 3 * 8 * rows.shape[0], "blocks": rows.place.walk_bytes(rows, 8)}
        return Plan(self, rows, self._planned(rows, n, work), kept, [norms, kept])

    def _degree(self) -> int:
        """The highest degree of the series, or where that has no end one that few terms exceed."""
        kernel = clone(self._bare_kernel())
        if not kernel.is_matrix:
            kernel.fit(np.ones((2, 1)))  # to any gamma: only the degree matters
        coefficients = kernel.maclaurin(LONGEST + 1)
        if coefficients is None or not np.any(coefficients):  # no such kernel, as the fit will say
            return 1
        degree = int(np.flatnonzero(coefficients)[-1])
        return ENDLESS if degree == LONGEST else max(degree, 1)

    @abstractmethod
    def _map_bytes(self, n: int, d: int, item: int) -> tuple[int, int]:
        """What n random features take: the map, and for each row the work on it."""

    def _work_bytes(self) -> int:
        return self._random.work_bytes if self._random is not None else 0
