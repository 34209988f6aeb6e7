"""Losses: how far a prediction f is from its target y, row by row.

A loss is one class with a few lines. Its methods get a block of targets y, shape (rows, 1), and of
predictions f, shape (rows, outputs), in float64 and in any array library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array

NARROWER = 0.2  # each width of a smoothed loss, relative to the one before
MOST = 500.0  # exponents beyond this are clipped


class Loss(ABC):
    """A convex loss, with a gradient and a curvature that may vanish.

    Attributes
    ----------
    outputs : int
        The number of columns of f.
    coupled : bool
        Whether the outputs of a row depend on each other. A coupled loss has a single value per
        row, and defines ``curve``.
    kinked : bool
        Whether the loss is smoothed, and becomes narrower during a fit.
    eased : bool
        Whether a small penalty is approached through larger ones, since the curvature of a row
        jumps to 0 where its loss ends.
    degree : int or None
        The power of u that multiplies the loss if y and f are multiplied by u, and the lengths that
        ``in_unit`` divides too; None if there is no such power.
    """

    outputs: int = 1
    coupled: ClassVar[bool] = False
    kinked: ClassVar[bool] = False
    eased: ClassVar[bool] = False
    degree: ClassVar[int | None] = None

    @abstractmethod
    def value(self, y: Array, f: Array) -> Array:
        """Return the loss, shape (rows, outputs), or (rows, 1) if it is coupled."""

    @abstractmethod
    def gradient(self, y: Array, f: Array) -> Array:
        """Return the derivatives with respect to f, shape (rows, outputs)."""

    @abstractmethod
    def curvature(self, y: Array, f: Array) -> Array:
        """Return the second derivatives, none negative, shape (rows, outputs)."""

    def value_and_gradient(self, y: Array, f: Array) -> tuple[Array, Array]:
        """Return both; a loss may compute what they share only once."""
        return self.value(y, f), self.gradient(y, f)

    def curve(self, y: Array, f: Array, u: Array) -> Array:
        """Return the matrix of second derivatives of each row times u, shape (rows, outputs)."""
        return self.curvature(y, f) * u

    def effective(self, V: np.ndarray) -> np.ndarray:
        """Return changes V (coefficients, outputs) without what changes no loss."""
        return V

    def root(self, y: Array, f: Array) -> Root:
        """Return a root A of that matrix, W = A Aᵀ, as two functions."""
        scale = array_ops.namespace(f).sqrt(self.curvature(y, f))
        return Root(scale, None)

    def inverse_link(self, f: Array) -> Array:
        """Convert predictions f to the scale of the targets."""
        return f

    def start(self, mean: np.ndarray) -> np.ndarray:
        """Return first intercepts (outputs,) from the mean target, or the share of each class."""
        return np.zeros(self.outputs)

    def begun(self, mean: float) -> Loss:
        """Return the loss for the first round, from the mean loss at the first intercepts."""
        return self

    def for_leverages(self, mean: np.ndarray) -> Loss:
        """Return the loss whose curvature gives leverages, output by output.

        ``mean`` is the mean loss of each output, without smoothing.
        """
        return self

    def check(self, owner: object, least: float, largest: float) -> None:  # noqa: B027
        """Raise an error if targets from ``least`` to ``largest`` are not allowed."""

    def size(self, spread: float) -> float:
        """Return the size of errors that count, for targets with this spread."""
        return spread

    def in_unit(self, unit: float) -> Loss:
        """Return the loss of targets and predictions that are measured in another unit."""
        return self

    def statistics(self, y: Array, f: Array) -> Array:
        """Return numbers per row, shape (rows, outputs), whose sums ``refined`` gets."""
        xp = array_ops.namespace(f)
        return xp.zeros_like(f)

    def refined(self, sums: Refining) -> Loss | None:
        """Return the loss for the next round of steps; None if this one is final."""
        return None

    def unsmoothed(self) -> Loss:
        """Return the true loss, if this one is smoothed."""
        return self

    def of(self, outputs: Sequence[int]) -> Loss:
        """Return the loss of some of the outputs; only losses that are not coupled have it."""
        chosen = copy(self)
        chosen.outputs = len(outputs)
        return chosen


class Refining(NamedTuple):
    """What is known after a round of steps."""

    statistics: np.ndarray  # (outputs,): weighted sums over the rows
    values: np.ndarray  # (outputs,): the objective, with the penalty
    weight: float  # the sum of the weights
    tol: float


class Root(NamedTuple):
    """A with W = A Aᵀ for each row: diag(scale), or diag(scale) (I - q qᵀ) with unit q."""

    scale: Array  # (rows, outputs)
    q: Array | None

    def times(self, u: Array) -> Array:
        return self.scale * self._projected(u)

    def transposed_times(self, u: Array) -> Array:
        return self._projected(self.scale * u)

    def _projected(self, u: Array) -> Array:
        if self.q is None:
            return u
        xp = array_ops.namespace(u)
        return u - self.q * xp.sum(self.q * u, axis=1, keepdims=True)


class Piece(NamedTuple):
    """The term weight · max(argument, 0) of a loss; the argument has this slope in f."""

    weight: float | Array
    argument: Array
    slope: float | Array


class Kinked(Loss):
    """A sum of terms weight · max(x, 0), each smoothed to h log(1 + exp(x / h)).

    The minimum of the smoothed loss exceeds that of the true one by at most
    Σ w (max(x, 0) - x · slope of the smoothed term), the duality gap: at most 0.28 h for each row
    near a kink. The width h falls until the gap is within the tolerance. A subclass defines
    ``pieces``.
    """

    kinked = True
    # One, or one for each output; None before the first round: the mean loss gives it.
    width: float | np.ndarray | None = None

    @abstractmethod
    def pieces(self, y: Array, f: Array) -> list[Piece]:
        """Return the terms of the loss."""

    def value(self, y: Array, f: Array) -> Array:
        return self._total(y, f, lambda p: self._smoothed(p.argument))

    def gradient(self, y: Array, f: Array) -> Array:
        return self._total(y, f, lambda p: p.slope * self._slope(p.argument))

    def curvature(self, y: Array, f: Array) -> Array:
        h = 1.0 if self.width is None else self._width_beside(f)

        def second(p: Piece) -> Array:
            slope = self._slope(p.argument)
            return p.slope**2 * slope * (1.0 - slope) / h

        return self._total(y, f, second)

    def statistics(self, y: Array, f: Array) -> Array:
        return self._total(
            y, f, lambda p: _positive(p.argument) - p.argument * self._slope(p.argument)
        )

    def refined(self, sums: Refining) -> Loss | None:
        if (sums.statistics <= sums.tol * np.abs(sums.values)).all() or self.width is None:
            return None
        return self.with_width(NARROWER * self.width)

    def begun(self, mean: float) -> Loss:
        return self.with_width(2.0 * mean if mean > 0 else 1.0)

    def for_leverages(self, mean: np.ndarray) -> Loss:
        # A wide one, to begin with: without a row, others reach their kinks. Each output has its
        # own, so that it does not matter which outputs are solved together.
        return self.with_width(np.where(mean > 0, 2.0 * mean, 1.0))

    def unsmoothed(self) -> Loss:
        return self.with_width(None)

    def with_width(self, width: float | np.ndarray | None) -> Kinked:
        """Return this loss smoothed over another width."""
        narrower = copy(self)
        narrower.width = width
        return narrower

    def _total(self, y: Array, f: Array, function: Any) -> Array:
        total = None
        for p in self.pieces(y, f):
            term = p.weight * function(p)
            total = term if total is None else total + term
        return total

    def _smoothed(self, x: Array) -> Array:
        if self.width is None:
            return _positive(x)
        xp, h = array_ops.namespace(x), self._width_beside(x)
        return _positive(x) + h * xp.log1p(xp.exp(-xp.abs(x) / h))

    def _slope(self, x: Array) -> Array:
        if self.width is None:
            return array_ops.astype(x > 0, x.dtype)
        xp = array_ops.namespace(x)
        return 1.0 / (1.0 + xp.exp(-xp.clip(x / self._width_beside(x), -MOST, MOST)))

    def _width_beside(self, x: Array) -> Array:
        return array_ops.like(np.asarray(self.width), x)


def _positive(x: Array) -> Array:
    xp = array_ops.namespace(x)
    return xp.maximum(x, xp.zeros_like(x))
