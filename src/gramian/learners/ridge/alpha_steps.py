"""Which alphas of a grid are tried: from the best of fewer rows along the slope, or downhill."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian.learners.ridge.systems import AlphaPath

FLAT, CLEAR = 0.999, 0.997  # of an error: hardly smaller, and clearly so
LEVEL, WORSE = 1.01, 1.05  # times the smallest error of fewer rows: may be the best of all, or not
STRIDE = 2  # steps of the grid between the first alphas
MOST = 5  # alphas that several targets choose from
# Of an error, what a step of the grid changes: too little to go on, and by how much that grows with
# each step as a rule. The farthest that one goes at once.
GENTLE, BEND, FAR = 0.002, 0.02, 4


def numbers_of(known: AlphaPath, grid: np.ndarray) -> np.ndarray:
    """Return the numbers of alphas on the grid."""
    return np.array([int(np.abs(np.log(grid / alpha)).argmin()) for alpha in known.alphas])


def start_of(numbers: np.ndarray, errors: np.ndarray) -> int:
    """Return where the error is smallest, or not far into the alphas where it is hardly larger.

    ``numbers`` of alphas on the grid and their ``errors`` are those of fewer rows.
    """
    level = numbers[errors <= LEVEL * errors.min()]
    if level.min() == 0:  # no alpha is too large, as for a target of noise
        return int(level.max())
    return int(min(numbers[errors.argmin()], level.min() + 2 * STRIDE))


def bend_of(numbers: np.ndarray, errors: np.ndarray) -> float:
    """Return by what part of the error its slope grows with each step, where a search starts.

    It is 0 if errors on both sides are not known.
    """
    start, order = start_of(numbers, errors), np.argsort(numbers)
    i = int(np.searchsorted(numbers[order], start))
    if not 0 < i < len(order) - 1 or numbers[order[i]] != start:
        return 0.0
    x, e = numbers[order[i - 1 : i + 2]], errors[order[i - 1 : i + 2]]
    slopes = np.diff(e) / np.diff(x)
    bend = 2 * (slopes[1] - slopes[0]) / (x[2] - x[0])
    return float(bend / e[1]) if np.isfinite(bend) else 0.0


def follow(error: Callable[[int], tuple[float, float]], start: int, count: int) -> int:
    """Return a number below ``count`` near which the error is smallest, along its slope.

    ``error(i)`` returns the error and what a step changes. From one number the slope tells the
    next, up to ``FAR`` away; from two with the smallest error between them, where it vanishes.
    Where the error is infinite, numbers are too large.
    """
    known: dict[int, float] = {}
    slopes: dict[int, float] = {}  # as part of the error
    low, high, i, far = -1, count, start, 0
    while i not in known:
        known[i], slope = error(i)
        if not np.isfinite(known[i]):
            high, i = i, max(i - FAR, low + 1, 0)
            continue
        slopes[i] = slope / max(known[i], np.finfo(float).tiny)
        if abs(slopes[i]) <= GENTLE:
            break
        low, high = (i, high) if slopes[i] < 0 else (low, i)
        if low in slopes and high in slopes:
            down, up = -slopes[low], slopes[high]
            i = low + round((high - low) * down / (down + up))
        else:
            far = min(max(round(abs(slopes[i]) / BEND), 2 * far, 1), FAR)
            i = min(max(i + far if slopes[i] < 0 else i - far, low + 1, 0), high - 1)
            i = i if low < i < high else max(low, 0)
    return min(sorted(known), key=lambda i: known[i])


def try_near(
    known: AlphaPath, grid: np.ndarray, errors_at: Callable[[int], np.ndarray], *, shared: bool
) -> None:
    """Compute ``errors_at`` numbers of the grid, (n_targets,), near the best of fewer rows.

    ``known`` are errors of fewer rows, shape (n_alphas, n_targets).
    """
    numbers = numbers_of(known, grid)
    if known.errors.shape[1] > 1 and not shared:
        best = np.array([start_of(numbers, errors) for errors in known.errors.T])
        for i in _spread(best, len(grid)):
            errors_at(i)
        return
    errors = known.errors.mean(axis=1)
    start = start_of(numbers, errors)
    # More rows hardly ever need a larger alpha.
    worse = frozenset(numbers[(errors > WORSE * errors.min()) & (numbers < start)].tolist())
    descend(lambda i: float(errors_at(i).mean()), start, len(grid), worse)


def _spread(best: np.ndarray, count: int) -> list[int]:
    """Return a few numbers below ``count`` that reach from the smallest to the largest best."""
    first, last = max(best.min() - STRIDE, 0), min(best.max() + STRIDE, count - 1)
    size = min(max(-(-(last - first) // STRIDE) + 1, 1), MOST)
    return sorted(set(np.linspace(first, last, size).round().astype(int).tolist()))


def descend(
    error: Callable[[int], float], start: int, count: int, worse: frozenset[int] = frozenset()
) -> int:
    """Return a number below ``count`` near which the error is smallest, from the start downhill.

    Numbers a stride apart are tried, and farther ones while the error falls, until it is hardly
    smaller on both sides of the best, or a parabola through the last three is lowest beside it.
    Another is tried if a parabola promises an error that is clearly smaller. Where the error is
    infinite, numbers are too large. Those that are ``worse``, as one knows before, are not tried
    beside the start.
    """
    known: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in known:
            known[i] = error(i)
        return known[i]

    best = start
    while not np.isfinite(at(best)) and best > 0:
        best = max(best - 2 * STRIDE, 0)
    moved = True
    while moved:
        moved = False
        for step in (STRIDE, -STRIDE):
            while (
                0 <= best + step < count
                and not (best == start and best + step in worse)
                and not _ends(known, best, step)
                and at(best + step) < FLAT * at(best)
            ):
                best, step, moved = best + step, step * (2 if moved else 1), True
    if not STRIDE <= best < count - STRIDE:
        return min((i for i in range(best - 1, best + 2) if 0 <= i < count), key=at)
    if best - STRIDE in known and best + STRIDE in known:
        left, middle, right = (known[best + side] for side in (-STRIDE, 0, STRIDE))
        curvature, slope = left - 2 * middle + right, left - right
        if 0 < curvature < np.inf and slope**2 > 8 * curvature * (1 - CLEAR) * middle:
            aside = round(STRIDE / 2 * slope / curvature)
            best = min(best, best + min(max(aside, -1), 1), key=at)
    return best


def _ends(known: dict[int, float], best: int, step: int) -> bool:
    """Whether a parabola through the best and two before it is lowest at most 1 beyond the best."""
    if best - step not in known or best - 2 * step not in known:
        return False
    last, middle, first = (known[best - i * step] for i in range(3))
    curvature = last - 2 * middle + first
    return curvature > 0 and abs(step) * ((first - last) / (2 * curvature) - 1) <= 1
