"""A small penalty, approached through larger ones.

The Newton step of a squared hinge counts the rows that miss their margin. If the penalty is small,
a step that ends near the minimum of these rows pushes many others across, so that steps are short.
The minima of larger penalties differ little from one to the next, and each is a few steps away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, log
from typing import TypeVar

from gramian.learners.losses.newton import Minimum, Space, minimise
from gramian.learners.losses.problem import LossProblem

LARGE = 1e-5  # a penalty, relative to the trace of the matrix: such a one needs no larger ones
FACTOR = 10.0  # from one penalty to the next
ROUGH = 0.1  # the accuracy of all minima but the last

AnySpace = TypeVar("AnySpace", bound=Space)


def minimised(
    problem: LossProblem, space: Callable[[LossProblem], AnySpace]
) -> tuple[Minimum, AnySpace]:
    """Return the minimum of a problem, and its space; ``space`` makes that of a penalty."""
    steps, left = 0, problem.max_iter
    if problem.loss.eased and problem.warm is None:
        for count in range(larger_penalties(problem.alpha, problem.trace()), 0, -1):
            eased = replace(problem, alpha=problem.alpha * FACTOR**count)
            rough = minimise(space(eased), tol=max(ROUGH, problem.tol), max_iter=max(left, 1))
            problem = replace(problem, warm=rough.point)
            steps, left = steps + rough.iterations, left - rough.iterations
    last = space(problem)
    found = minimise(last, tol=problem.tol, max_iter=max(left, 1))
    return found._replace(iterations=found.iterations + steps), last


def larger_penalties(alpha: float, trace: float) -> int:
    """Return how many larger penalties come first."""
    return max(ceil(log(max(LARGE * trace / alpha, 1.0), FACTOR)), 0)
