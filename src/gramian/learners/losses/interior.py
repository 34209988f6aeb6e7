"""An interior point method for losses with kinks, over features that fit in memory.

A loss is a sum of terms u · max(x, 0) with x = o + slope · f. Its dual has a variable β between 0
and u for each term: θ = -Zᵀg / alpha with the gradient g = Σ slope · β, whose sum is 0. At the
minimum x = q - p, where p and q are the multipliers of β >= 0 and β <= u. A step of Mehrotra's
predictor-corrector method solves p β = μ, q (u - β) = μ for a μ that falls towards 0 (Ferris and
Munson, 2002). It is a weighted ridge system. At first all rows have about the same weight, later
few rows near a kink have most of it, so a mean of all rows and these few precondition it. The
duality gap bounds the error, for the loss itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from gramian.backend import linalg
from gramian.backend.progress import progress
from gramian.learners.losses.loss import Kinked

INSIDE = 0.99  # of the way to the nearest bound
ACCURATE = 1e-2  # relative residual of a system; a tenth of it whenever a step gains little
NARROW = 64  # features, for which systems are factorised
MOST_ACCURATE = 1e-10
LATE = 0.01  # of the first gap: until then, steps may gain little
MOST_PRODUCTS = 200
SHARE = 2  # at most a row for so many features is added to the mean of a preconditioner
EVEN = 8.0  # times their mean: if no weight is larger, the mean alone will do
NOTHING = 1e-6  # of the first objective: a smaller one counts as this much
PATIENCE = 10  # steps that gain nothing
TINY = np.finfo(float).tiny


class Terms(NamedTuple):
    """Terms u · max(o + slope · f, 0), each array (terms, rows, outputs)."""

    bound: np.ndarray  # u
    offset: np.ndarray  # o
    slope: np.ndarray

    def of(self, outputs: np.ndarray) -> Terms:
        return Terms(*(each[:, :, outputs] for each in self))


class Interior(NamedTuple):
    """The points of some outputs: coefficients, dual variables and their multipliers."""

    theta: np.ndarray  # (r, outputs)
    beta: np.ndarray  # (terms, rows, outputs), as are the others
    rest: np.ndarray  # u - β, without cancellation
    p: np.ndarray
    q: np.ndarray

    def of(self, outputs: np.ndarray) -> Interior:
        return Interior(*(each[..., outputs] for each in self))

    def moved(self, step: Interior, length: np.ndarray) -> Interior:
        return Interior(*(a + length * d for a, d in zip(self, step, strict=True)))


class Found(NamedTuple):
    theta: np.ndarray  # (r, outputs)
    values: np.ndarray  # (outputs,): the objective
    gaps: np.ndarray  # (outputs,): what is left to gain, at most
    sizes: np.ndarray  # (outputs,): what gaps are relative to
    iterations: int


def terms_of(loss: Kinked, y: np.ndarray, weights: np.ndarray | None) -> Terms:
    """Return the terms of a loss for targets y (rows, 1), with weights (rows, 1)."""
    zero = np.zeros((len(y), loss.outputs))
    w = 1.0 if weights is None else weights
    pieces = loss.pieces(y, zero)
    full = [[np.broadcast_to(a, zero.shape) for a in (p.weight * w, p.argument, p.slope)]
            for p in pieces]  # fmt: skip
    return Terms(*(np.stack(each) for each in zip(*full, strict=True)))


class InteriorPoint:
    """Minimises Σ u max(o + slope f, 0) + ½ Σ penalty θ² + tilt · θ for each output, with f = Zθ.

    An intercept is a last column of ones with the penalty 0. ``scales`` is the diagonal of ZᵀZ,
    which has no other entries that matter.
    """

    def __init__(
        self, Z: np.ndarray, terms: Terms, penalty: np.ndarray, tilt: np.ndarray, scales: np.ndarray
    ) -> None:
        self.Z, self.terms = Z, terms
        self.penalty, self.tilt, self.scales = penalty[:, None], tilt[:, None], scales
        self._accurate = ACCURATE

    def minimise(self, theta: np.ndarray, *, tol: float, max_iter: int) -> Found:
        """Return the minima of all outputs, up to ``tol`` times their objectives."""
        terms, count = self.terms, theta.shape[1]
        here, open_ = self._inside(theta), np.arange(count)
        found = Found(theta.copy(), np.empty(count), np.full(count, np.inf), np.ones(count), 0)
        first: np.ndarray | None = None  # gaps
        least, last = 0.0, 0  # the smallest objective that counts, and the last step that gained
        with progress("interior points", max_iter) as step:
            for iteration in range(max_iter + 1):
                x, values, gaps = self._state(terms, here)
                better = gaps < found.gaps[open_]
                first = gaps if first is None else first
                if ((gaps > 0.9 * found.gaps[open_]) & (gaps < LATE * first[open_])).any():
                    self._accurate = max(0.1 * self._accurate, MOST_ACCURATE)
                own = open_[better]
                found.theta[:, own] = here.theta[:, better]
                found.values[own], found.gaps[own] = values[better], gaps[better]
                least = least or max(NOTHING * np.max(np.abs(values)), TINY)
                found.sizes[open_] = np.maximum(np.abs(values), least)
                left = found.gaps[open_] > tol * found.sizes[open_]
                found = found._replace(iterations=iteration)
                last = iteration if better[left].any() else last
                if iteration in (max_iter, last + PATIENCE) or not left.any():
                    break
                if not left.all():
                    open_, terms, here = open_[left], terms.of(left), here.of(left)
                    x = x[:, :, left]
                here = self._moved(terms, here, x)
                step()
        return found

    def _inside(self, theta: np.ndarray) -> Interior:
        """Return the point on the central path that has these predictions."""
        x, u = self._arguments(self.terms, theta), self.terms.bound
        mu = _mean(np.abs(x)) * _mean(u)
        # μ / (u - β) - μ / β = x has one root between 0 and u.
        small = 2.0 * mu * u / (2.0 * mu + u * np.abs(x) + np.sqrt((u * x) ** 2 + 4.0 * mu**2))
        beta, rest = np.where(x > 0, u - small, small), np.where(x > 0, small, u - small)
        return Interior(theta, beta, rest, mu / beta, mu / rest)

    def _arguments(self, terms: Terms, theta: np.ndarray) -> np.ndarray:
        return terms.offset + terms.slope * self._push(theta)

    def _push(self, theta: np.ndarray) -> np.ndarray:
        return (self.Z @ theta.astype(self.Z.dtype)).astype(np.float64)

    def _pull(self, g: np.ndarray) -> np.ndarray:
        return (g.T.astype(self.Z.dtype) @ self.Z).T.astype(np.float64)

    def _state(self, terms: Terms, here: Interior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the arguments x, the objectives and the duality gaps."""
        x, theta = self._arguments(terms, here.theta), here.theta
        values = np.sum(terms.bound * np.maximum(x, 0.0), axis=(0, 1))
        values += np.sum((0.5 * self.penalty * theta + self.tilt) * theta, axis=0)
        beta, lacking = self._feasible(terms, here)
        pulled = self._pull(np.sum(terms.slope * beta, axis=0)) + self.tilt
        penalised = self.penalty[:, 0] > 0
        dual = np.sum(beta * terms.offset, axis=(0, 1))
        dual -= np.sum(pulled[penalised] ** 2 / (2.0 * self.penalty[penalised]), axis=0)
        return x, values, values - dual + lacking * (1.0 + np.abs(theta[-1]))

    def _feasible(self, terms: Terms, here: Interior) -> tuple[np.ndarray, np.ndarray]:
        """Return β with the sum of gradients that an intercept requires, and what it still lacks.

        Each β moves by a share of the room that it has.
        """
        if self.penalty[-1, 0] > 0:
            return here.beta, np.zeros(here.beta.shape[2])
        lacking = np.sum(terms.slope * here.beta, axis=(0, 1)) + self.tilt[-1]
        room = here.beta * (here.rest / terms.bound)
        share = lacking / np.maximum(np.sum(terms.slope**2 * room, axis=(0, 1)), TINY)
        beta = here.beta - terms.slope * np.clip(share, -0.5, 0.5) * room
        left = np.sum(terms.slope * beta, axis=(0, 1)) + self.tilt[-1]
        return beta, np.where(np.abs(share) > 0.5, np.abs(left), 0.0)

    def _moved(self, terms: Terms, here: Interior, x: np.ndarray) -> Interior:
        """Return the next point: a predictor step sets μ, and a corrector step aims at it."""
        beta, rest = here.beta, here.rest
        weight = 1.0 / (here.p / beta + here.q / rest)
        solve = self._solver(np.sum(terms.slope**2 * weight, axis=0))

        def step(low: np.ndarray, high: np.ndarray) -> Interior:
            # p β changes by ``low``, q (u - β) by ``high``, to first order.
            off = high / rest - low / beta + here.q - here.p - x
            g = np.sum(terms.slope * (beta - weight * off), axis=0)
            change = solve(-self.penalty * here.theta - self.tilt - self._pull(g))
            d = weight * (terms.slope * self._push(change) - off)
            return Interior(change, d, -d, (low - here.p * d) / beta, (high + here.q * d) / rest)

        low, high = here.p * beta, here.q * rest
        mean = _mean(low) + _mean(high)
        first = step(-low, -high)
        after = here.moved(first, _length(here, first))
        left = _mean(after.p * after.beta) + _mean(after.q * after.rest)
        mu = 0.5 * mean * np.minimum(left / mean, 1.0) ** 3
        second = step(mu - low - first.beta * first.p, mu - high + first.beta * first.q)
        return here.moved(second, np.minimum(INSIDE * _length(here, second), 1.0))

    def _solver(self, c: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return B ↦ (ZᵀCZ + penalty)⁻¹ B for each output, by conjugate gradients if Z is wide."""
        if len(self.scales) <= NARROW:
            return self._directly(c)
        inverses = [self._inverse(each) for each in c.T]
        least = 1e-12 * np.sum(c, axis=0)

        def apply(V: np.ndarray) -> np.ndarray:
            return self._pull(c * self._push(V)) + np.maximum(self.penalty, least) * V

        def precondition(R: np.ndarray) -> np.ndarray:
            return np.column_stack([f(r) for f, r in zip(inverses, R.T, strict=True)])

        def solve(B: np.ndarray) -> np.ndarray:
            try:
                return linalg.conjugate_gradients(
                    apply, B, precondition, tol=self._accurate, max_iter=MOST_PRODUCTS
                )[0]
            except linalg.NotPositiveDefiniteError:  # products in float32 round too much
                return self._directly(c)(B)

        return solve

    def _directly(self, c: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        direct = [self._direct(each) for each in c.T]
        return lambda B: np.column_stack([f(b) for f, b in zip(direct, B.T, strict=True)])

    def _direct(self, c: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return (ZᵀCZ + penalty)⁻¹."""
        Z = self.Z * np.sqrt(c)[:, None]
        H = Z.T @ Z
        H[np.diag_indices_from(H)] += np.maximum(self.penalty[:, 0], 1e-12 * c.sum())
        L = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        return lambda b: scipy.linalg.cho_solve(L, b, check_finite=False)

    def _inverse(self, c: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return about (ZᵀCZ + penalty)⁻¹: the rows with large weights, and a mean for the others.

        Woodbury's identity adds these rows to a diagonal matrix.
        """
        total, most = c.sum(), min(len(self.scales) // SHARE, len(c) - 1)
        top = np.empty(0, dtype=int)
        if most > 0 and c.max() * len(c) > EVEN * total:
            top = np.sort(np.argpartition(c, -most)[-most:])
        mean = (total - c[top].sum()) / len(c)
        top = top[c[top] > mean]
        Z, c = self.Z[top].astype(np.float64), c[top] - mean
        diagonal = self.penalty[:, 0] + mean * self.scales
        diagonal = np.maximum(diagonal, 1e-12 * diagonal.max())
        scaled = Z / np.sqrt(diagonal)
        K = scaled @ scaled.T
        K[np.diag_indices_from(K)] += 1.0 / c
        L = scipy.linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)

        def inverse(b: np.ndarray) -> np.ndarray:
            b = b / diagonal
            inner = scipy.linalg.cho_solve(L, Z @ b, check_finite=False)
            return b - (inner @ Z) / diagonal

        return inverse


def _mean(products: np.ndarray) -> np.ndarray:
    return np.mean(products, axis=(0, 1))


def _length(here: Interior, step: Interior) -> np.ndarray:
    """Return how far each output can go along a step inside its bounds, at most 1 / INSIDE."""
    pairs = zip(here[1:], step[1:], strict=True)
    shrink = np.max([np.max(-d / v, axis=(0, 1)) for v, d in pairs], axis=0)
    return 1.0 / np.maximum(shrink, INSIDE)
