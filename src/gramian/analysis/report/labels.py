"""Place the names of lines next to them, where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

NARROW, WIDE = "iljtfr.,:;'|!()[] ", "mwMWÖ@%"
HEIGHT = 14.0


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across * down if across > 0 and down > 0 else 0.0

    def grown(self, by: float) -> Box:
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def outside(self, frame: Box) -> float:
        return self.area - self.overlap(frame)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)


class Placed(NamedTuple):
    """The start (or end) of a text and its baseline."""

    x: float
    y: float
    anchor: str
    box: Box


Point = tuple[float, float]


def width(text: str, size: float) -> float:
    """Estimate the width of a text in a rather wide, bold sans-serif font."""
    em = 0.0
    for letter in text:
        if letter in NARROW:
            em += 0.38
        elif letter in WIDE:
            em += 1.0
        else:
            em += 0.74 if letter.isupper() else 0.63
    return em * size


def place(
    lines: Sequence[tuple[str, Sequence[Point]]],
    frame: Box,
    size: float,
    taken: Sequence[Box] = (),
    crossing: Sequence[tuple[Point, Point]] = (),
) -> list[Placed]:
    """Find a place for the name of each line, near one of its points and away from the rest.

    ``taken`` and ``crossing`` are boxes and segments that are already drawn. In turn, each name
    takes the place that overlaps least with other names, points and lines.
    """
    marks = [(Box(x - 7, y - 7, x + 7, y + 7), name) for name, line in lines for x, y in line]
    stretches = [(a, b, name) for name, line in lines for a, b in pairwise(line)]
    stretches += [(a, b, "") for a, b in crossing]
    boxes = list(taken)
    found = []
    for name, line in lines:
        best: tuple[float, Placed] | None = None
        for rank, point in enumerate(reversed(line)):  # the last point is where a line ends
            for cost, spot in _spots(point, width(name, size)):
                cost += 2.0 * rank + 10.0 * spot.box.outside(frame)
                cost += sum(5.0 * spot.box.overlap(other) for other in boxes)
                for mark, owner in marks:
                    cost += spot.box.overlap(mark)
                    if owner != name:  # it must not seem to belong to another line
                        cost += 0.1 * spot.box.grown(8).overlap(mark)
                for a, b, owner in stretches:
                    if _crosses(a, b, spot.box):
                        cost += 12.0 if owner == name else 25.0
                if best is None or cost < best[0]:
                    best = cost, spot
        assert best is not None
        boxes.append(best[1].box.grown(4))  # adjacent names must not read as one
        found.append(best[1])
    return found


def stack(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return heights for names, close to the given ones but without overlaps."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    step = min(HEIGHT + 2, (bottom - top) / max(len(heights), 1))
    placed: list[float] = []
    for i in order:
        placed.append(max(heights[i], placed[-1] + step if placed else top))
    over = placed[-1] - bottom if placed else 0.0
    for k in range(len(placed) - 1, -1, -1):  # if the last is too low, move the others up
        if over <= 0:
            break
        placed[k] -= over
        over = step - (placed[k] - placed[k - 1]) if k else 0.0
    result = [0.0] * len(heights)
    for i, y in zip(order, placed, strict=True):
        result[i] = y
    return result


def _spots(point: Point, wide: float) -> list[tuple[float, Placed]]:
    """Return places around a point, each with its cost."""
    x, y = point
    spots = []
    for cost, dx, dy, anchor in (
        (0.0, 10.0, 4.0, "start"),
        (1.0, 6.0, -9.0, "start"),
        (1.0, 6.0, 18.0, "start"),
        (2.0, 0.0, -10.0, "middle"),
        (2.0, 0.0, 20.0, "middle"),
        (3.0, -6.0, 18.0, "end"),
        (3.0, -6.0, -9.0, "end"),
        (4.0, -10.0, 4.0, "end"),
        (6.0, 0.0, -24.0, "middle"),
        (6.0, 0.0, 34.0, "middle"),
    ):
        start = x + dx - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        box = Box(start, y + dy - HEIGHT + 3, start + wide, y + dy + 3)
        spots.append((cost, Placed(x + dx, y + dy, anchor, box)))
    return spots


def _crosses(a: Point, b: Point, box: Box) -> bool:
    """Whether the segment from a to b meets the box (Liang-Barsky clipping)."""
    low, high = 0.0, 1.0
    dx, dy = b[0] - a[0], b[1] - a[1]
    for step, room in (
        (-dx, a[0] - box.left),
        (dx, box.right - a[0]),
        (-dy, a[1] - box.top),
        (dy, box.bottom - a[1]),
    ):
        if step == 0:
            if room < 0:
                return False
        elif step < 0:
            low = max(low, room / step)
        else:
            high = min(high, room / step)
    return low <= high
