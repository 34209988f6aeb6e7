"""Newton's method with a line search, for any loss over any matrix.

A space evaluates the objective at a point and finds Newton directions; it knows the matrix. This
module knows neither. Points are arrays (coefficients + 1, outputs) with the intercepts last.
Outputs that are not coupled are separate problems: each has its own step length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from gramian.backend.progress import progress
from gramian.learners.losses.loss import Loss, Refining

DECREASE = 1e-4  # of what the slope promises; less is not accepted
LENGTHS = 20  # tried in one pass
SHORTEST = (1e-3, 1e-12)  # of them, in a first and a second pass
NOTHING = 1e-6  # of the first objective: a smaller one counts as this much


class Evaluation(NamedTuple):
    """The objective at a point."""

    point: np.ndarray  # (coefficients + 1, outputs)
    values: np.ndarray  # (outputs,), or (1,) if the outputs are coupled
    gradient: np.ndarray  # (coefficients + 1, outputs)
    statistics: np.ndarray  # (outputs,): sums of those of the loss
    more: Any = None  # what the space needs for the direction


class Minimum(NamedTuple):
    """A point, and how it was found."""

    point: np.ndarray
    values: np.ndarray
    loss: Loss  # as it was in the last round, but not smoothed
    smoothed: Loss  # as it was minimised
    iterations: int
    accuracy: float  # of the objective, relative: what is left to gain, at most
    met: bool


class Space(ABC):
    """The points of a problem, for one loss."""

    loss: Loss
    weight: float  # the sum of the weights
    rounding: float  # the relative accuracy of values

    @abstractmethod
    def start(self) -> np.ndarray:
        """Return the first point."""

    @abstractmethod
    def evaluate(self, point: np.ndarray) -> Evaluation:
        """Return the objective at a point."""

    @abstractmethod
    def direction(self, here: Evaluation, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a Newton direction and its slope, minus the derivative along it.

        ``wanted`` says which outputs need one (values,); the others may be 0. The slope has shape
        (values,) and is not negative: twice what is left to gain. If the direction is rough, more
        than the slope is returned, so that this is still so.
        """

    def changes_method(self) -> bool:
        """Change how directions are found, after one that gained nothing; False if impossible."""
        return False

    @abstractmethod
    def along(self, here: Evaluation, direction: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the objective after steps of these lengths, shape (lengths, values)."""


def minimise(space: Space, *, tol: float, max_iter: int) -> Minimum:
    """Return the minimum, up to ``tol`` times the objective."""
    tol = max(tol, space.rounding)
    here = space.evaluate(space.start())
    begun = space.loss.begun(float(np.max(here.values)) / space.weight)
    if begun is not space.loss:
        space.loss = begun
        here = space.evaluate(here.point)
    least = max(NOTHING * np.max(np.abs(here.values)), np.finfo(float).tiny)
    open_ = np.ones(len(here.values), dtype=bool)
    missed = np.full(len(here.values), np.inf)  # what each output had left to gain, relative
    solved = np.zeros(len(here.values), dtype=bool)
    iterations, left, met = 0, np.inf, False
    with progress("Newton steps", max_iter) as step:
        while iterations < max_iter:
            direction, slopes = space.direction(here, open_)
            sizes = np.maximum(np.abs(here.values), least)
            missing = gaps(space.loss, here)
            # A smoothed loss need not be minimised better than it is smoothed.
            enough = 2 * np.maximum(tol * sizes, 0.05 * missing)
            close = slopes <= enough
            there, moved = _search(space, here, direction, np.where(open_, slopes, 0.0))
            iterations += 1
            step()
            if (open_ & ~close & ~moved).any() and space.changes_method():
                moved = np.ones_like(moved)
            # The objective is convex: if even the shortest step gains nothing, longer ones do not.
            slopes = np.where(moved, slopes, SHORTEST[-1] * slopes)
            missed = np.where(open_, (slopes / 2 + missing) / sizes, missed)
            solved = np.where(open_, slopes <= enough, solved)
            open_ = open_ & ~close & moved
            left = float(np.max(missed))
            here = there
            if open_.any():
                continue
            refined = space.loss.refined(Refining(here.statistics, sizes, space.weight, tol))
            if refined is None:
                met = bool(solved.all())
                break
            space.loss = refined
            here = space.evaluate(here.point)
            open_ = np.ones(len(here.values), dtype=bool)
    smoothed = space.loss
    if smoothed.kinked:
        space.loss = smoothed.unsmoothed()
        here = space.evaluate(here.point)
    return Minimum(here.point, here.values, space.loss, smoothed, iterations, left, met)


def gaps(loss: Loss, here: Evaluation) -> np.ndarray:
    """Return what smoothing may have added to the true minimum; 0 for a smooth loss."""
    return here.statistics if loss.kinked else np.zeros_like(here.values)


def _search(
    space: Space, here: Evaluation, direction: np.ndarray, slopes: np.ndarray
) -> tuple[Evaluation, np.ndarray]:
    """Return the evaluation at steps that decrease the objective, and which outputs moved.

    A full step is tried first. For outputs for which it is too long, or if the loss has kinks,
    where it often is, one more pass finds the best of many lengths.
    """
    slack = space.rounding * np.abs(here.values)
    best, searched = np.zeros(len(slopes)), slopes > 0
    if not space.loss.kinked:
        best = searched.astype(np.float64)
        there = space.evaluate(here.point + best * direction)
        good = there.values <= here.values - DECREASE * best * slopes + slack
        if good.all():
            return there, searched
        best, searched = np.where(good, best, 0.0), searched & ~good
    for shortest in SHORTEST:
        lengths = np.geomspace(1.0, shortest, LENGTHS)
        values = space.along(here, searched * direction, lengths)  # (lengths, values)
        enough = here.values - DECREASE * lengths[:, None] * slopes + slack
        values = np.where((values <= enough) & searched, values, np.inf)
        found = np.isfinite(values).any(axis=0)
        best = np.where(found, lengths[values.argmin(axis=0)], best)
        searched = searched & ~found
        if not searched.any():
            break
    there = space.evaluate(here.point + best * direction) if best.any() else here
    return there, best > 0
