"""Axes: the position of a value, and which values get a tick."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, floor, log10
from typing import NamedTuple

LEAST_RATIO = 1.3
# So many labels in a decade leave room between the closest of these: from 5 to 7, to 10, 3 to 10.
STEPS = ((6.9, (1, 2, 3, 5, 7)), (3.4, (1, 2, 5)), (2.1, (1, 3)))


class Tick(NamedTuple):
    value: float
    label: str  # empty for a small tick between others


class Scale(NamedTuple):
    """A map from values to positions from ``start`` to ``stop``, with ticks."""

    low: float
    high: float
    start: float
    stop: float
    ticks: list[Tick]
    is_log: bool = True

    def __call__(self, value: float) -> float:
        """Return the position of a value; values beyond the ends are clipped to them."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)


def log_scale(
    values: Iterable[float],
    start: float,
    stop: float,
    label: Callable[[float], str],
    room: float,
) -> Scale:
    """Span the values and a little more, logarithmically; each label needs ``room``."""
    positive = [value for value in values if value > 0]
    low, high = (min(positive), max(positive)) if positive else (0.1, 1.0)
    if high / low < LEAST_RATIO:  # a scale needs some length
        middle = (low * high) ** 0.5
        low, high = middle / LEAST_RATIO**0.5, middle * LEAST_RATIO**0.5
    margin = (high / low) ** 0.06
    low, high = low / margin, high * margin
    places = max(abs(stop - start) / room, 1.0)  # for how many labels there is room
    ticks = _by_decades(low, high, places)
    if high / low < 5 or sum(said for _, said in ticks) < 2:
        ticks = _few(low, high, places)
    return Scale(low, high, start, stop, [Tick(v, label(v) if said else "") for v, said in ticks])


def linear_scale(
    values: Iterable[float],
    start: float,
    stop: float,
    label: Callable[[float], str],
    room: float,
) -> Scale:
    """Span the values and a little more, in equal steps."""
    given = list(values)
    low, high = (min(given), max(given)) if given else (0.0, 1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = low - 0.5 * abs(low) - 0.5, high + 0.5 * abs(high) + 0.5
    margin = 0.06 * (high - low)
    low, high = (0.0 if 0 <= low <= margin else low - margin), high + margin
    places = max(abs(stop - start) / room, 1.0)
    ticks = _few(low, high, places)
    marks = [Tick(v, label(v) if said else "") for v, said in ticks]
    return Scale(low, high, start, stop, marks, is_log=False)


def _few(low: float, high: float, places: float) -> list[tuple[float, bool]]:
    """Return multiples of a round number; on a log axis the larger ones lie closer together."""
    found: list[tuple[float, bool]] = []
    for factor in (2.0, 1.0, 0.5):  # better two that are close than one alone
        step = _round_step(factor * (high - low) / places)
        first, last = ceil(low / step), floor(high / step)
        found = [(number * step, True) for number in range(first, last + 1)]
        if len(found) >= 2:
            break
    return found


def _by_decades(low: float, high: float, places: float) -> list[tuple[float, bool]]:
    """Return whole numbers in each decade; as many are labelled as there is room for."""
    share = places / log10(high / low)  # of the labels, for a decade
    steps = next((own for least, own in STEPS if share >= least), (1,))
    every = max(1, ceil(1 / share))
    found = []
    for power in range(floor(log10(low)), ceil(log10(high)) + 1):
        for step in range(1, 10):
            value = step * 10.0**power
            if low <= value <= high:
                found.append((value, step in steps and power % every == 0))
    return found


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, ... times a power of ten that is at least this."""
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))
