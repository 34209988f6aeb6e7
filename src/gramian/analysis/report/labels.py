"""Place the names of lines next to them, where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import hypot
from typing import NamedTuple

NARROW, WIDE = "iljtfr.,:;'|!()[] ", "mwMWÖ@%"
HEIGHT = 14.0
STEP = 8.0  # between the places that are tried away from a line

Point = tuple[float, float]


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
    lead: tuple[Point, Point] | None = None  # from the line to the text


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
    return 1.08 * em * size


class Ground:
    """What is drawn already: boxes, marks and lines that a text must keep clear of."""

    def __init__(self, frame: Box) -> None:
        self.frame = frame
        self.boxes: list[Box] = []  # rings and such
        self.texts: list[Box] = []
        self.marks: list[tuple[Box, str]] = []  # with the name of their line
        self.segments: list[tuple[Point, Point]] = []

    def draw(self, lines: Sequence[tuple[str, Sequence[Point]]]) -> None:
        """Add named lines with marks at their points."""
        for name, line in lines:
            self.marks += [(Box(x, y, x, y).grown(7), name) for x, y in line]
            self.segments += pairwise(line)

    def clash(self, box: Box) -> float:
        """How much a text in this box would hide, cross or leave; 0 if it is free."""
        cost = 1000.0 * box.outside(self.frame)
        cost += sum(5.0 * box.overlap(other) for other in [*self.boxes, *self.texts])
        cost += sum(2.0 * box.overlap(mark) for mark, _ in self.marks)
        around = box.grown(2)
        return cost + sum(100.0 for a, b in self.segments if _crosses(a, b, around))

    def stray(self, box: Box, name: str) -> float:
        """How much a name seems to belong to another line."""
        wide = box.grown(8)
        return sum(0.1 * wide.overlap(mark) for mark, owner in self.marks if owner != name)

    def take(self, spot: Placed) -> None:
        self.texts.append(spot.box.grown(4))  # adjacent names must not read as one
        if spot.lead is not None:
            self.segments.append(spot.lead)

    def hides(self, a: Point, b: Point) -> bool:
        """Whether a segment crosses a text."""
        return any(_crosses(a, b, box) for box in self.texts)


def place(
    lines: Sequence[tuple[str, Sequence[Point]]], ground: Ground, size: float
) -> list[Placed]:
    """Find a place for the name of each line, near one of its points and away from the rest.

    A name that finds no free place beside its line gets the nearest one in the frame, and a lead
    to its line.
    """
    found = []
    for name, line in lines:
        wide = width(name, size)
        clash, spot = _beside(name, line, wide, ground)
        if clash > 0:
            other, away = _away(line, wide, ground)
            spot = away if other < clash else spot
        ground.take(spot)
        found.append(spot)
    return found


def place_note(spots: Sequence[Placed], ground: Ground) -> Placed:
    """Choose the first free one of these places, or the one that hides least."""

    def hidden(spot: Placed) -> bool:
        return spot.lead is not None and ground.hides(*spot.lead)

    best = min(spots, key=lambda spot: ground.clash(spot.box) + 30.0 * hidden(spot))
    return best._replace(lead=None) if hidden(best) else best


def _beside(name: str, line: Sequence[Point], wide: float, ground: Ground) -> tuple[float, Placed]:
    """Return the best place around the points of a line, and what it clashes with."""
    best: tuple[float, float, Placed] | None = None
    for rank, point in enumerate(reversed(line)):  # the last point is where a line ends
        for cost, spot in _spots(point, wide):
            clash = ground.clash(spot.box)
            cost += clash + 2.0 * rank + ground.stray(spot.box, name)
            if best is None or cost < best[0]:
                best = cost, clash, spot
    assert best is not None
    return best[1:]


def _away(line: Sequence[Point], wide: float, ground: Ground) -> tuple[float, Placed]:
    """Return the free place in the frame that is nearest to a line, with a lead to it.

    If none is free, it is the place that hides least.
    """
    frame = ground.frame
    spots = []
    for row in range(int((frame.bottom - frame.top - HEIGHT) / STEP) + 1):
        for column in range(max(int((frame.right - frame.left - wide) / STEP), 0) + 1):
            left, top = frame.left + STEP * column, frame.top + STEP * row
            box = Box(left, top, left + wide, top + HEIGHT)
            spots += [(_distance(point, box), box, point) for point in line]
    best: tuple[float, Placed] | None = None
    for _, box, near in sorted(spots):
        end = _nearest(near, box.grown(2))
        # Without room for a lead, the colour alone says which line it is.
        lead = None if ground.hides(near, end) else (near, end)
        clash = ground.clash(box) + (30.0 if lead is None else 0.0)
        if best is None or clash < best[0]:
            best = clash, Placed(box.left, box.bottom - 3, "start", box, lead)
        if clash == 0:
            break
    assert best is not None
    return best


def _nearest(point: Point, box: Box) -> Point:
    x, y = point
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)


def _distance(point: Point, box: Box) -> float:
    return hypot(*(a - b for a, b in zip(point, _nearest(point, box), strict=True)))


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
