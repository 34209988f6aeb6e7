"""A path over alpha, with the approximate leave-one-out error of each.

Without row i, the minimum moves by about one Newton step: f_i changes by h_i g_i / (1 - h_i c_i),
with the gradient g_i and the curvature c_i of the row's loss, and its leverage h_i = z_iᵀ H⁻¹ z_i,
where H are the second derivatives of the objective (Rad and Maleki, 2020). It is exact for squares.
For several classes, H is taken as if each class were fitted by itself, with a curvature that stands
for all classes. For a loss with kinks it is rougher, but it finds the alphas that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gramian.backend import array_ops
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.problem import LossProblem, LossSolution
from gramian.learners.ridge.systems import AlphaPath

MOST_ROWS = 2000  # that are left out
MOST_SCORES = 4_000_000  # of these rows for all outputs
MOST_KINDS = 32  # more outputs share their leverage
STEPS = 13  # alphas in the default grid
LARGEST, SMALLEST = 1e-1, 1e-7  # of them, relative to the trace of the matrix
PATIENCE = 2  # alphas in a row whose error is larger, before the default grid ends


def sample_size(problem: LossProblem) -> int:
    """Return how many rows are left out."""
    if not problem.leaves_out:
        return 0
    most = max(MOST_SCORES // problem.loss.outputs, 1)
    return min(problem.rows.shape[0], MOST_ROWS, most)


def sampled(problem: LossProblem, among: np.ndarray | None = None) -> np.ndarray:
    """Return the numbers of the rows to leave out, spread evenly over those with a weight."""
    usable = np.arange(problem.rows.shape[0]) if among is None else among
    if problem.weights is not None:
        usable = usable[_some(problem.weights[:, None], usable)[:, 0] > 0]
    size = min(sample_size(problem), len(usable))
    return usable[np.linspace(0, len(usable) - 1, size).astype(int)]


def error(
    problem: LossProblem, loss: Loss, numbers: np.ndarray, f: np.ndarray,
    leverages: Callable[[Loss], np.ndarray], *, counted: float = 1.0,
) -> float:  # fmt: skip
    """Return the mean loss of rows that are left out, from their scores f (rows, outputs).

    ``leverages(loss)`` are their leverages, (rows, outputs) or (rows, 1), with the curvature of a
    loss. ``counted`` is how often H counts each of the rows.
    """
    y = _some(problem.y, numbers)
    w = np.ones((len(numbers), 1))
    if problem.weights is not None:
        w = _some(problem.weights[:, None], numbers)
    true = loss.unsmoothed()
    curved = loss.for_leverages((w * true.value(y, f)).sum(axis=0) / w.sum())
    g, c, h = w * loss.gradient(y, f), w * curved.curvature(y, f), leverages(curved)
    moved = f + h * g / np.maximum(1.0 - counted * h * c, 1e-10)
    with np.errstate(over="ignore"):
        return float((w * true.value(y, moved)).sum() / w.sum())


def best_of_path(
    problem: LossProblem, solve: Callable[[LossProblem], LossSolution]
) -> LossSolution:
    """Return the solution of the problem, or the best one of a path, from large alphas to small."""
    if not problem.leaves_out:
        return solve(problem)
    assert problem.alphas is not None
    errors: list[float] = []
    best = None
    point: np.ndarray | None = None
    for alpha in problem.alphas:
        found = solve(replace(problem, alpha=float(alpha), warm=point))
        errors.append(found.error if np.isfinite(found.error) else np.inf)
        point = found.point
        if best is None or errors[-1] < best.error:
            best = found._replace(alpha=float(alpha))
        if problem.patient and len(errors) - 1 - int(np.argmin(errors)) >= PATIENCE:
            break
    assert best is not None
    return best._replace(path=AlphaPath(problem.alphas[: len(errors)], np.array(errors)))


def default_alphas(trace: float) -> np.ndarray:
    """Return the default grid for a matrix with this trace, weights included."""
    return max(trace, np.finfo(float).tiny) * np.geomspace(LARGEST, SMALLEST, STEPS)


def _some(values: array_ops.Array, numbers: np.ndarray) -> np.ndarray:
    return array_ops.host_float64(array_ops.take_rows(values, numbers))
