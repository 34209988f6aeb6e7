"""Targets in a unit of about their own spread.

If ℓ(u y, u f) = u^p ℓ(y, f), the minimum for targets y and penalty alpha is u times the one for
targets y / u and penalty alpha · u^(2 - p). So the size of targets decides neither how steps
converge nor which alphas a grid has. A unit is a power of two: dividing by it rounds nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramian.learners.losses.loss import Loss
from gramian.learners.losses.problem import LossProblem, LossSolution
from gramian.learners.ridge.systems import AlphaPath

SAME = 1e-9  # a spread below this, relative to the mean, is rounding: targets are constant
MOST = 500  # the largest exponent of a unit: its square does not overflow


def unit_of(loss: Loss, spread: float, mean: float) -> float:
    """Return the unit for targets with this mean absolute deviation, ``spread``, and mean."""
    size = loss.size(spread if spread > SAME * abs(mean) else 0.0)
    if loss.degree is None or size == 0:
        return 1.0
    return float(2.0 ** np.clip(np.floor(np.log2(size)), -MOST, MOST))


def in_unit(problem: LossProblem, unit: float) -> LossProblem:
    """Return the same problem, with targets measured in this unit."""
    if unit == 1:
        return problem
    assert problem.y is not None and problem.start is not None
    factor = _penalty_factor(problem.loss, unit)
    return replace(
        problem,
        y=problem.y / unit,
        start=problem.start / unit,
        loss=problem.loss.in_unit(unit),
        alpha=problem.alpha * factor,
        alphas=None if problem.alphas is None else problem.alphas * factor,
    )


def out_of_unit(solution: LossSolution, unit: float) -> LossSolution:
    """Return the solution of ``in_unit`` for targets as they were."""
    if unit == 1:
        return solution
    loss = solution.loss
    assert loss.degree is not None
    size, factor = unit**loss.degree, _penalty_factor(loss, unit)
    alpha, path = solution.alpha, solution.path
    return solution._replace(
        coefficients=solution.coefficients * unit,
        intercepts=solution.intercepts * unit,
        values=solution.values * size,
        loss=loss.in_unit(1.0 / unit),
        error=solution.error * size,
        alpha=None if alpha is None else alpha / factor,
        path=None if path is None else AlphaPath(path.alphas / factor, path.errors * size),
    )


def _penalty_factor(loss: Loss, unit: float) -> float:
    assert loss.degree is not None
    return unit ** (2 - loss.degree)
