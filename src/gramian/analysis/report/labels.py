"""Place the names of lines next to them, where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

NARROW, WIDE = "iljtfr.,:;'|!()[] ", "mwMWÖ@%"
HEIGHT = 14.0
STEP = 8.0  # between the places that are tried away from a line
BATCH = 64  # so many of them are tried at once
_OUTWARD = np.array([-1.0, -1.0, 1.0, 1.0])  # how the sides of a box move as it grows

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

    def clashes(self, boxes: Sequence[Box]) -> np.ndarray:
        """How much a text in each box would hide, cross or leave; 0 where it is free."""
        at = np.array(boxes)  # shape: (n, 4)
        area = (at[:, 2] - at[:, 0]) * (at[:, 3] - at[:, 1])
        cost = 1000.0 * (area - _overlaps(at, [self.frame]))
        cost += 5.0 * _overlaps(at, [*self.boxes, *self.texts])
        cost += 2.0 * _overlaps(at, [mark for mark, _ in self.marks])
        around = at + 2.0 * _OUTWARD
        return cost + 100.0 * _crossings(around, self.segments).sum(axis=1)

    def strays(self, boxes: Sequence[Box], name: str) -> np.ndarray:
        """How much a name in each box seems to belong to another line."""
        wide = np.array(boxes) + 8.0 * _OUTWARD
        return 0.1 * _overlaps(wide, [mark for mark, owner in self.marks if owner != name])

    def take(self, spot: Placed) -> None:
        self.texts.append(spot.box.grown(4))  # adjacent names must not read as one
        if spot.lead is not None:
            self.segments.append(spot.lead)

    def hides(self, segments: Sequence[tuple[Point, Point]]) -> np.ndarray:
        """Whether each segment crosses a text."""
        met = _crossings(np.array(self.texts).reshape(-1, 4), segments)
        return np.asarray(met.any(axis=0))


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

    leads = [spot.lead or ((spot.x, spot.y), (spot.x, spot.y)) for spot in spots]
    hidden = ground.hides(leads) & np.array([spot.lead is not None for spot in spots])
    clashes = ground.clashes([spot.box for spot in spots])
    best = int(np.argmin(clashes + 30.0 * hidden))
    return spots[best]._replace(lead=None) if hidden[best] else spots[best]


def _beside(name: str, line: Sequence[Point], wide: float, ground: Ground) -> tuple[float, Placed]:
    """Return the best place around the points of a line, and what it clashes with."""
    costs, spots = zip(
        *(
            (cost + 2.0 * rank, spot)
            for rank, point in enumerate(reversed(line))  # the last point is where a line ends
            for cost, spot in _spots(point, wide)
        ),
        strict=True,
    )
    boxes = [spot.box for spot in spots]
    clashes = ground.clashes(boxes)
    best = int(np.argmin(clashes + costs + ground.strays(boxes, name)))
    return float(clashes[best]), spots[best]


def _away(line: Sequence[Point], wide: float, ground: Ground) -> tuple[float, Placed]:
    """Return the free place in the frame that is nearest to a line, with a lead to it.

    If none is free, it is the place that hides least.
    """
    boxes = _grid(ground.frame, wide)
    at, points = np.array(boxes)[:, None], np.array(line)
    gaps = np.maximum(np.maximum(at[..., :2] - points, points - at[..., 2:]), 0.0)
    distances = np.hypot(gaps[..., 0], gaps[..., 1])  # shape: (boxes, points)
    nearest = np.argsort(distances.min(axis=1), kind="stable")
    best: tuple[float, Placed] | None = None
    for start in range(0, len(boxes), BATCH):  # one of the first is most often free
        some = nearest[start : start + BATCH]
        clashes = ground.clashes([boxes[number] for number in some])
        for number, clash in zip(some, clashes.tolist(), strict=True):
            if best is not None and clash >= best[0]:
                continue
            box = boxes[number]
            lead = _lead(box, [line[i] for i in np.argsort(distances[number])], ground)
            clash += 30.0 if lead is None else 0.0
            if best is None or clash < best[0]:
                best = clash, Placed(box.left, box.bottom - 3, "start", box, lead)
            if clash == 0:
                return best
    assert best is not None
    return best


def _lead(box: Box, points: Sequence[Point], ground: Ground) -> tuple[Point, Point] | None:
    """Return a lead from the first of the points whose lead hides no text.

    Without room for one, the colour alone says which line it is.
    """
    around = box.grown(2)
    leads = [(point, _nearest(point, around)) for point in points]
    hidden = ground.hides(leads)
    return None if hidden.all() else leads[int(np.argmin(hidden))]


def _grid(frame: Box, wide: float) -> list[Box]:
    """Return places for a text all over the frame."""
    columns = max(int((frame.right - frame.left - wide) / STEP), 0) + 1
    rows = int((frame.bottom - frame.top - HEIGHT) / STEP) + 1
    return [
        Box(left, top, left + wide, top + HEIGHT)
        for left in (frame.left + STEP * column for column in range(columns))
        for top in (frame.top + STEP * row for row in range(rows))
    ]


def _nearest(point: Point, box: Box) -> Point:
    x, y = point
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)


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


def _overlaps(boxes: np.ndarray, others: Sequence[Box]) -> np.ndarray:
    """Return how much of each box the others cover. Shapes: (n, 4) and m boxes; the result (n,)."""
    left, top, right, bottom = np.array(others).reshape(-1, 4).T
    across = np.minimum(boxes[:, 2:3], right) - np.maximum(boxes[:, 0:1], left)
    down = np.minimum(boxes[:, 3:4], bottom) - np.maximum(boxes[:, 1:2], top)
    return np.sum(np.maximum(across, 0.0) * np.maximum(down, 0.0), axis=1)


def _crossings(boxes: np.ndarray, segments: Sequence[tuple[Point, Point]]) -> np.ndarray:
    """Return which boxes meet which segments (Liang-Barsky clipping).

    Shapes: (n, 4), and m segments; the result (n, m).
    """
    starts, ends = np.array(segments).reshape(-1, 2, 2).transpose(1, 0, 2)  # shapes: (m, 2)
    steps, still = ends - starts, ends == starts
    first = boxes[:, None, :2] - starts  # shape: (n, m, coordinate)
    last = boxes[:, None, 2:] - starts
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(still, np.where(first > 0, np.inf, -np.inf), first / steps)
        last = np.where(still, np.where(last < 0, -np.inf, np.inf), last / steps)
    low = np.minimum(first, last).max(axis=2)
    high = np.maximum(first, last).min(axis=2)
    return np.asarray(np.maximum(low, 0.0) <= np.minimum(high, 1.0))
