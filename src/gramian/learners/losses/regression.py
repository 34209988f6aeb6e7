"""Losses of numbers: robust, for quantiles and expectiles, and for counts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.losses.loss import Kinked, Loss, Piece, Refining

MOST = 500.0  # predictions beyond this are clipped before the exponential


class Huber(Loss):
    """½ σ H((y - f) / σ) + ½ σ, where H(z) is z² up to ``epsilon`` and grows linearly beyond.

    As in scikit-learn's HuberRegressor, the scale σ is found together with the predictions: after
    each round of steps, it moves towards the best one for the residuals.
    """

    degree = 1
    scale: float | None = None  # None before the first round: the loss is |y - f|
    least = 0.0  # the smallest scale, for targets that are met exactly
    before: tuple[float, float] | None = None  # the scale of the round before, and its change

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def value(self, y: Array, f: Array) -> Array:
        xp, scale = array_ops.namespace(f), self.scale
        size = xp.abs(y - f)
        if scale is None:
            return size
        inner = xp.clip(size, None, self.epsilon * scale)
        return 0.5 * (scale + inner * (2.0 * size - inner) / scale)

    def gradient(self, y: Array, f: Array) -> Array:
        xp = array_ops.namespace(f)
        return xp.clip((f - y) / (self.scale or 1.0), -self.epsilon, self.epsilon)

    def curvature(self, y: Array, f: Array) -> Array:
        xp, scale = array_ops.namespace(f), self.scale or 1.0
        return array_ops.astype(xp.abs(y - f) <= self.epsilon * scale, f.dtype) / scale

    def statistics(self, y: Array, f: Array) -> Array:
        # min(|r| / σ, ε)²; the derivative of the loss with respect to σ is ½ - ½ of this.
        return self.gradient(y, f) ** 2

    def begun(self, mean: float) -> Loss:
        return self._scaled(mean if mean > 0 else 1.0, 1e-6 * mean)

    def refined(self, sums: Refining) -> Loss | None:
        assert self.scale is not None
        mean = float(sums.statistics[0]) / sums.weight
        # Moving σ to its best value changes the objective by about this much.
        gain = 0.25 * sums.weight * self.scale * (1.0 - mean) ** 2
        change = 0.5 * np.log(np.clip(mean, 1e-4, 1e4))  # of log σ; 0 at the best one
        step = change
        if self.before is not None and change != self.before[1]:  # a secant step
            scale, other = self.before
            slope = (change - other) / (np.log(self.scale) - np.log(scale))
            step = -change / slope if slope < 0 else change
        scale = max(self.scale * np.exp(np.clip(step, -3.0, 3.0)), self.least)
        if gain <= 0.1 * sums.tol * abs(sums.values[0]) or scale == self.scale:
            return None
        return self._scaled(scale, self.least, (self.scale, change))

    def in_unit(self, unit: float) -> Loss:
        scale = self.scale
        return self if scale is None else self._scaled(scale / unit, self.least / unit)

    def _scaled(
        self, scale: float, least: float, before: tuple[float, float] | None = None
    ) -> Huber:
        scaled = copy(self)
        scaled.scale, scaled.least, scaled.before = float(scale), float(least), before
        return scaled

    def start(self, mean: np.ndarray) -> np.ndarray:
        return mean


class Quantile(Kinked):
    """τ max(0, y - f) + (1 - τ) max(0, f - y) for each level τ, smoothed."""

    degree = 1

    def __init__(self, levels: Sequence[float] | np.ndarray) -> None:
        self.levels = np.asarray(levels, dtype=np.float64)
        self.outputs = len(self.levels)

    def pieces(self, y: Array, f: Array) -> list[Piece]:
        tau = array_ops.like(self.levels, f)
        return [Piece(tau, y - f, -1.0), Piece(1.0 - tau, f - y, 1.0)]

    def start(self, mean: np.ndarray) -> np.ndarray:
        return np.full(self.outputs, mean[0])

    def of(self, outputs: Sequence[int]) -> Loss:
        chosen = Quantile(self.levels[list(outputs)])
        chosen.width = self.width
        return chosen


class EpsilonInsensitive(Kinked):
    """max(0, |y - f| - epsilon), smoothed."""

    degree = 1

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def size(self, spread: float) -> float:
        return max(spread, self.epsilon)

    def in_unit(self, unit: float) -> Loss:
        return EpsilonInsensitive(self.epsilon / unit)

    def pieces(self, y: Array, f: Array) -> list[Piece]:
        e = self.epsilon
        return [Piece(1.0, y - f - e, -1.0), Piece(1.0, f - y - e, 1.0)]

    def start(self, mean: np.ndarray) -> np.ndarray:
        return mean


class Expectile(Loss):
    """½ |τ - [y < f]| (y - f)² for each τ: asymmetric least squares."""

    degree = 2

    def __init__(self, levels: Sequence[float] | np.ndarray) -> None:
        self.levels = np.asarray(levels, dtype=np.float64)
        self.outputs = len(self.levels)

    def value(self, y: Array, f: Array) -> Array:
        return 0.5 * self.curvature(y, f) * (y - f) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return self.curvature(y, f) * (f - y)

    def curvature(self, y: Array, f: Array) -> Array:
        tau, above = array_ops.like(self.levels, f), array_ops.astype(y < f, f.dtype)
        return tau + above * (1.0 - 2.0 * tau)

    def start(self, mean: np.ndarray) -> np.ndarray:
        return np.full(self.outputs, mean[0])

    def of(self, outputs: Sequence[int]) -> Loss:
        return Expectile(self.levels[list(outputs)])


class Poisson(Loss):
    """exp(f) - y f + y log y - y: half the deviance of counts y with mean exp(f)."""

    def value(self, y: Array, f: Array) -> Array:
        xp = array_ops.namespace(f)
        return self.inverse_link(f) - y + y * (xp.log(xp.clip(y, 1e-300, None)) - f)

    def gradient(self, y: Array, f: Array) -> Array:
        return self.inverse_link(f) - y

    def curvature(self, y: Array, f: Array) -> Array:
        return self.inverse_link(f)

    def inverse_link(self, f: Array) -> Array:
        """Return the mean count."""
        xp = array_ops.namespace(f)
        return xp.exp(xp.clip(f, -MOST, MOST))

    def start(self, mean: np.ndarray) -> np.ndarray:
        return np.log(mean)

    def check(self, owner: object, least: float, largest: float) -> None:
        name = type(owner).__name__
        if least < 0:
            raise ValueError(f"{name} needs targets that are at least 0; the smallest is {least}.")
        if largest == 0:
            raise ValueError(f"{name} needs a target that is not 0: every target is 0.")
