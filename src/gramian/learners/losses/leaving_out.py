"""A path over alpha, with the approximate leave-one-out error of each.

Without row i, the minimum moves by about one Newton step: f_i changes by h_i g_i / (1 - h_i c_i),
with the gradient g_i and the curvature c_i of the row's loss, and its leverage h_i = z_iᵀ H⁻¹ z_i,
where H are the second derivatives of the objective (Rad and Maleki, 2020). It is exact for squares.
For several classes, H is taken as if each class were fitted by itself, with a curvature that stands
for all classes.

A loss with kinks has no curvature but at them. Without row i, though, f_j changes by δ_ji, and the
gradient of row j jumps if that takes it across a kink: its slope is about 1 / |δ_ji| within such a
distance. The smoothed loss has this slope within about 2 h on both sides, hence a width h of half
the typical change. The changes follow from H, which follows from the width: some rounds find both.
Pairs (i, j) count as much as the curvature of j moves f_i, by δ_ji² c_j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from gramian.backend import array_ops
from gramian.learners.losses.loss import Kinked, Loss
from gramian.learners.losses.problem import LossProblem, LossSolution
from gramian.learners.ridge.systems import AlphaPath

MOST_ROWS = 2000  # that are left out
MOST_SCORES = 4_000_000  # of these rows for all outputs
MOST_KINDS = 32  # more outputs share their leverage
ROUNDS = 3  # that find the width of a loss with kinks
STEPS = 13  # alphas in the default grid
LARGEST, SMALLEST = 1e-1, 1e-7  # of them, relative to the trace of the matrix
PATIENCE = 2  # alphas in a row whose error is larger, before the default grid ends

Leverages = Callable[[Loss, bool], Iterator[np.ndarray]]


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
    problem: LossProblem, loss: Loss, numbers: np.ndarray, f: np.ndarray, leverages: Leverages,
    *, counted: float = 1.0,
) -> float:  # fmt: skip
    """Return the mean loss of rows that are left out, from their scores f (rows, outputs).

    ``leverages(loss, whole)`` are theirs with the curvature of a loss: for each output, or once for
    all, (rows,), or H⁻¹ between all pairs if ``whole``. ``counted`` is how often H counts a row.
    """
    y = _some(problem.y, numbers)
    w = np.ones((len(numbers), 1))
    if problem.weights is not None:
        w = _some(problem.weights[:, None], numbers)
    true = loss.unsmoothed()
    g = w * loss.gradient(y, f)
    curved = loss.for_leverages((w * true.value(y, f)).sum(axis=0) / w.sum())

    def steps(h: np.ndarray, c: np.ndarray) -> np.ndarray:
        return g / np.maximum(1.0 - counted * h * c, 1e-10)

    for _ in range(ROUNDS):
        if not isinstance(curved, Kinked):
            break
        c, changes = w * curved.curvature(y, f), np.zeros(f.shape[1])
        for k, H in _by_output(leverages(curved, True), f.shape[1]):
            changes[k] = _typical_change(H * steps(np.diag(H)[:, None], c[:, [k]])[:, k], c[:, k])
        assert curved.width is not None
        widths = np.broadcast_to(curved.width, changes.shape)
        # The geometric mean of two rounds, since a small width makes large changes.
        curved = curved.with_width(np.where(changes > 0, np.sqrt(0.5 * widths * changes), widths))
    h = np.column_stack(list(leverages(curved, False)))
    moved = f + h * steps(h, w * curved.curvature(y, f))
    with np.errstate(over="ignore"):
        return float((w * true.value(y, moved)).sum() / w.sum())


def _by_output(matrices: Iterator[np.ndarray], outputs: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the matrix of each output; a single one is that of all."""
    count = 0
    for count, matrix in enumerate(matrices, start=1):
        yield count - 1, matrix
    for k in range(count, outputs):
        yield k, matrix


def _typical_change(changes: np.ndarray, c: np.ndarray) -> float:
    """Return the typical change of other rows, from the changes (rows, rows left out)."""
    sizes = np.abs(changes)
    np.fill_diagonal(sizes, 0.0)
    shares = sizes**2
    shares *= c[:, None]
    total = float(shares.sum())
    return float(np.vdot(shares, sizes)) / total if total > 0 else 0.0


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


def pairs_bytes(problem: LossProblem) -> int:
    """Return the memory for H⁻¹ between all pairs of rows that are left out."""
    return 4 * 8 * sample_size(problem) ** 2 if problem.loss.kinked else 0


def default_alphas(trace: float) -> np.ndarray:
    """Return the default grid for a matrix with this trace, weights included."""
    return max(trace, np.finfo(float).tiny) * np.geomspace(LARGEST, SMALLEST, STEPS)


def _some(values: array_ops.Array, numbers: np.ndarray) -> np.ndarray:
    return array_ops.host_float64(array_ops.take_rows(values, numbers))
