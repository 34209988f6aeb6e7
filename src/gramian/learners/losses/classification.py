"""Losses of classes. Targets are class numbers 0, 1, ...; two classes have a single output."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.losses.loss import Kinked, Loss, Piece, Root

MOST = 500.0  # predictions beyond this are clipped before the exponential


def _are(y: Array, classes: np.ndarray, f: Array) -> Array:
    """Return 1 where the class of a row is that of an output, else 0, (rows, outputs)."""
    xp, numbers = array_ops.namespace(f), array_ops.like(classes, f)
    # Outputs come first in memory, as scores may have them.
    return xp.matrix_transpose(
        array_ops.astype(xp.matrix_transpose(y) == numbers[:, None], f.dtype)
    )


class Logistic(Loss):
    """log(1 + exp(-s f)) for two classes, with s = 1 for class 1 and -1 for class 0."""

    def value(self, y: Array, f: Array) -> Array:
        xp = array_ops.namespace(f)
        return xp.log1p(xp.exp(-xp.abs(f))) + xp.clip(f, 0.0, None) - y * f

    def gradient(self, y: Array, f: Array) -> Array:
        return self.inverse_link(f) - y

    def value_and_gradient(self, y: Array, f: Array) -> tuple[Array, Array]:
        xp = array_ops.namespace(f)
        power = xp.exp(-xp.abs(f))  # of the less probable class, relative to the other
        value = xp.log1p(power) + xp.clip(f, 0.0, None) - y * f
        larger = 1.0 / (1.0 + power)
        return value, xp.where(f > 0, larger, power * larger) - y

    def curvature(self, y: Array, f: Array) -> Array:
        p = self.inverse_link(f)
        return p * self.inverse_link(-f)

    def inverse_link(self, f: Array) -> Array:
        """Return the probability of class 1."""
        xp = array_ops.namespace(f)
        return 1.0 / (1.0 + xp.exp(-xp.clip(f, -MOST, MOST)))

    def start(self, mean: np.ndarray) -> np.ndarray:
        return np.log(mean[1:] / mean[:1])


class Multinomial(Loss):
    """-log of the softmax probability of the class; one output per class."""

    coupled = True
    _share = 1.0  # of the curvature, relative to the second derivatives

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs

    def value(self, y: Array, f: Array) -> Array:
        xp = array_ops.namespace(f)
        largest = xp.max(f, axis=1, keepdims=True)
        total = xp.log(xp.sum(xp.exp(f - largest), axis=1, keepdims=True)) + largest
        return total - xp.sum(self._members(y, f) * f, axis=1, keepdims=True)

    def gradient(self, y: Array, f: Array) -> Array:
        return self.inverse_link(f) - self._members(y, f)

    def value_and_gradient(self, y: Array, f: Array) -> tuple[Array, Array]:
        xp, members = array_ops.namespace(f), self._members(y, f)
        largest = xp.max(f, axis=1, keepdims=True)
        powers = xp.exp(f - largest)
        total = xp.sum(powers, axis=1, keepdims=True)
        value = xp.log(total) + largest - xp.sum(members * f, axis=1, keepdims=True)
        powers /= total
        powers -= members
        return value, powers

    def curvature(self, y: Array, f: Array) -> Array:
        p = self.inverse_link(f)
        return self._share * p * (1.0 - p)

    def for_leverages(self, mean: np.ndarray) -> Loss:
        # The scores of a row only move by vectors with the sum 0. There the curvature is that of a
        # class alone times this, for two classes or if all classes are equally probable.
        separate = copy(self)
        separate._share = self.outputs / (self.outputs - 1)
        return separate

    def curve(self, y: Array, f: Array, u: Array) -> Array:
        p = self.inverse_link(f)
        image = p * u
        p *= array_ops.namespace(f).sum(image, axis=1, keepdims=True)
        image -= p
        return image

    def effective(self, V: np.ndarray) -> np.ndarray:
        # Scores that all change alike change no probability, and the penalty keeps their mean at 0.
        return V - V.mean(axis=1, keepdims=True)

    def root(self, y: Array, f: Array) -> Root:
        # diag(p) - p pᵀ = A Aᵀ with A = diag(q) (I - q qᵀ) and q = √p, since qᵀq = 1.
        q = array_ops.namespace(f).sqrt(self.inverse_link(f))
        return Root(q, q)

    def inverse_link(self, f: Array) -> Array:
        """Return the probability of each class."""
        xp = array_ops.namespace(f)
        powers = xp.exp(f - xp.max(f, axis=1, keepdims=True))
        powers /= xp.sum(powers, axis=1, keepdims=True)
        return powers

    def start(self, mean: np.ndarray) -> np.ndarray:
        logs = np.log(mean)
        return logs - logs.mean()

    def _members(self, y: Array, f: Array) -> Array:
        return _are(y, np.arange(self.outputs, dtype=np.float64), f)


class _OneAgainstTheRest(Loss):
    """Classes as signs s: 1 for the class of an output and -1 for the others."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs
        self.classes = np.arange(outputs) if outputs > 1 else np.ones(1)

    def of(self, outputs: Sequence[int]) -> Loss:
        chosen = copy(self)
        chosen.outputs, chosen.classes = len(outputs), self.classes[list(outputs)]
        return chosen

    def signs(self, y: Array, f: Array) -> Array:
        """Return s for each row and output."""
        return 2.0 * _are(y, self.classes.astype(np.float64), f) - 1.0


class SquaredHinge(_OneAgainstTheRest):
    """max(0, 1 - s f)² for each class against the rest."""

    eased = True

    def value(self, y: Array, f: Array) -> Array:
        return self._missing(y, f) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return -2.0 * self.signs(y, f) * self._missing(y, f)

    def value_and_gradient(self, y: Array, f: Array) -> tuple[Array, Array]:
        signs = self.signs(y, f)
        missing = array_ops.namespace(f).clip(1.0 - signs * f, 0.0, None)
        return missing**2, -2.0 * signs * missing

    def curvature(self, y: Array, f: Array) -> Array:
        return 2.0 * array_ops.astype(self._missing(y, f) > 0, f.dtype)

    def _missing(self, y: Array, f: Array) -> Array:
        return array_ops.namespace(f).clip(1.0 - self.signs(y, f) * f, 0.0, None)


class Hinge(_OneAgainstTheRest, Kinked):
    """max(0, 1 - s f) for each class against the rest, smoothed."""

    def pieces(self, y: Array, f: Array) -> list[Piece]:
        signs = self.signs(y, f)
        return [Piece(1.0, 1.0 - signs * f, -signs)]


class Novelty(Kinked):
    """max(0, -f), smoothed: a row counts if its score is below the threshold. It has no target."""

    def pieces(self, y: Array, f: Array) -> list[Piece]:
        return [Piece(1.0, -f, -1.0)]

    def start(self, mean: np.ndarray) -> np.ndarray:
        return -np.ones(1)
