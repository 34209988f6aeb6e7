"""Quasi-Newton steps: what the last steps tell about the second derivatives.

Along a step s, the gradient changes by about H s. The preconditioner, which is about H⁻¹, is
corrected so that it takes these changes back to the steps (L-BFGS; Nocedal, 1980). Such a step is
one evaluation, where a Newton step by conjugate gradients takes several products in addition. If
the preconditioner is good, both gain about as much with each pass over the rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gramian.learners.losses.newton import Evaluation

MOST_PAIRS = 8
LEAST = 1e-10  # of the product of their norms: with less, a step and a change may be rounding
SLOW = 0.9  # of what was left, on average over some steps: if more is left, these steps are slow
RECENT = 4  # steps
MOST_REFUSED = 5  # of them, because full steps were too long
MARGIN = 2.0  # what is left is an estimate
SHORT = 0.1  # of the length that the preconditioner wants
LEAST_TRUST = 0.01  # in slopes of shorter ones; with less, no step would gain enough
TINY = np.finfo(float).tiny


class _Secant(NamedTuple):
    step: np.ndarray  # (coefficients, outputs)
    change: np.ndarray  # of the gradient
    inverse: np.ndarray  # 1 / (stepᵀ change) of each output, or (1,) for all; 0 if unknown
    image: np.ndarray  # the preconditioned change


class Course:
    """The steps to a minimum so far. Outputs are separate problems unless they are coupled.

    Attributes
    ----------
    is_fast : bool
        Whether these steps converge fast enough.
    """

    def __init__(self, *, coupled: bool) -> None:
        self.is_fast = True
        self._coupled = coupled
        self._pairs: deque[_Secant] = deque(maxlen=MOST_PAIRS)
        self._last: Evaluation | None = None
        self._image: np.ndarray | None = None  # the last gradient, preconditioned
        self._aim: np.ndarray | None = None  # where a full step would have led
        self._slopes: deque[np.ndarray] = deque(maxlen=RECENT + 1)
        self._refused: deque[bool] = deque(maxlen=2 * RECENT)

    def inverse_times(
        self, here: Evaluation, precondition: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return about H⁻¹ times the gradient, after the step to this point.

        The preconditioner is linear, and a large one takes long: it is applied to the gradient
        alone, and the images of its changes are differences.
        """
        left, shares = here.gradient, []
        image = precondition(left)
        self._add(here, image)
        for pair in reversed(self._pairs):
            shares.append(pair.inverse * self._dot(pair.step, left))
            left = left - shares[-1] * pair.change
            image = image - shares[-1] * pair.image
        image = self._scale() * image
        for pair in self._pairs:
            share = shares.pop() - pair.inverse * self._dot(pair.change, image)
            image = image + share * pair.step
        return image

    def renewed(self, precondition: Callable[[np.ndarray], np.ndarray]) -> None:
        """Get to know another preconditioner."""
        if self._last is not None:
            self._image = precondition(self._last.gradient)
        pairs = [pair._replace(image=precondition(pair.change)) for pair in self._pairs]
        self._pairs = deque(pairs, maxlen=MOST_PAIRS)

    def _scale(self) -> np.ndarray:
        """Return how much longer a preconditioned step should be, by the last pair."""
        if not self._pairs:
            return np.ones(1)
        last = self._pairs[-1]
        known = last.inverse > 0
        curved = 1.0 / np.where(known, last.inverse, 1.0)
        expected = self._dot(last.change, last.image)
        return np.where(known, curved / np.where(known, expected, 1.0), 1.0)

    def left(self, here: Evaluation, direction: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the slopes (values,), and more where the last steps gained little.

        A part of the gradient that a step multiplies with 1 - μ falls with the slopes, which count
        it as 1 / μ times less than can be gained from it. So do slopes of steps that are far
        shorter than the preconditioner wants: along others, it may be right.
        """
        self._slopes.append(slopes)
        self._aim = here.point + direction
        first, count = self._slopes[0], len(self._slopes) - 1
        if count == 0:  # the preconditioner is all that is known
            return 2.0 * MARGIN * slopes
        ratios = (slopes / np.maximum(first, TINY)) ** (1.0 / count)
        slow = count == RECENT and float(slopes.sum()) > SLOW**count * float(first.sum())
        self.is_fast = not slow and sum(self._refused) <= MOST_REFUSED
        trusted = np.clip(self._scale() / SHORT, LEAST_TRUST, 1.0)
        return slopes * MARGIN / (1.0 - np.sqrt(np.clip(ratios, 0.0, SLOW))) / trusted

    def _add(self, here: Evaluation, image: np.ndarray) -> None:
        last, self._last = self._last, here
        before, self._image = self._image, image
        if last is None or before is None or self._aim is None:
            return
        self._refused.append(not np.array_equal(self._aim, here.point))
        step, change = here.point - last.point, here.gradient - last.gradient
        curved = self._dot(step, change)
        known = curved > LEAST * np.sqrt(self._dot(step, step) * self._dot(change, change))
        if known.any():
            inverse = np.where(known, 1.0 / np.where(known, curved, 1.0), 0.0)
            self._pairs.append(_Secant(step, change, inverse, image - before))

    def _dot(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return aᵀb of each output, or (1,) of all."""
        return np.sum(a * b).reshape(1) if self._coupled else np.sum(a * b, axis=0)
