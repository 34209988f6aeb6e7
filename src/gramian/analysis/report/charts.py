"""Charts as SVG, drawn once for wide and once for narrow pages, with text of the same size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from gramian.analysis.report.labels import (
    Box,
    Ground,
    Placed,
    Point,
    place,
    place_note,
    stack,
    width,
)
from gramian.analysis.report.scales import Scale, linear_scale, log_scale
from gramian.analysis.report.text import escape

TEXT = 12.0


class Shape(NamedTuple):
    """The size of a chart and its margins."""

    kind: str
    width: float
    height: float
    right: float = 14.0
    top: float = 34.0
    bottom: float = 46.0


WIDE = Shape("wide", 520, 400)
NARROW = Shape("narrow", 340, 360, right=8.0)
FEW, CROWDED = 6, 36.0  # a narrow chart is higher by so much for each name beyond the first few


@dataclass(frozen=True)
class Mark:
    """One point of a line."""

    x: float
    y: float
    tip: str  # the tooltip, line by line
    low: float | None = None
    high: float | None = None
    filled: bool = True
    ringed: bool = False


@dataclass(frozen=True)
class Line:
    """The marks of one approximation."""

    name: str
    number: int  # of its colour in the style sheet
    path: str  # the shape of a mark
    marks: list[Mark]
    has_band: bool = False  # from low to high of the marks, in place of a whisker at each


@dataclass(frozen=True)
class Reference:
    """A reference value: a dashed line across the chart."""

    value: float
    label: str
    vertical: bool


@dataclass(frozen=True)
class Axis:
    """A logarithmic or linear axis; ``turned`` reverses it."""

    title: str
    label: Callable[[float], str]
    turned: bool = False
    is_log: bool = True

    @property
    def scale(self) -> Callable[..., Scale]:
        return log_scale if self.is_log else linear_scale


@dataclass(frozen=True)
class Chart:
    """A chart of lines with marks.

    ``stairs`` are the marks of the frontier, from left to right; ``curve`` is a line without marks,
    filled below. If all lines end at the same x, their names are to the right of it.
    """

    description: str
    x: Axis
    y: Axis
    lines: list[Line] = field(default_factory=list)
    stairs: list[Point] = field(default_factory=list)
    names_behind: bool = False
    curve: list[Point] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)

    def svg(self) -> str:
        """Return the chart in both sizes; the page shows the one that fits."""
        more = CROWDED * max(len(self.lines) - FEW, 0)
        narrow = NARROW._replace(height=NARROW.height + more)
        return "".join(_Drawing(self, shape).svg() for shape in (WIDE, narrow))


class _Drawing:
    def __init__(self, chart: Chart, shape: Shape) -> None:
        self.chart, self.shape = chart, shape
        marks = [mark for line in chart.lines for mark in line.marks]
        xs = [mark.x for mark in marks] + [x for x, _ in chart.curve]
        ys = [y for mark in marks for y in (mark.y, mark.low, mark.high) if y is not None]
        ys += [y for _, y in chart.curve]
        for reference in chart.references:
            (xs if reference.vertical else ys).append(reference.value)
        s, right = shape, shape.right
        if chart.names_behind:
            named = [line.name for line in chart.lines] + [r.label for r in chart.references]
            right = 22 + max(width(name, TEXT) for name in named)
        self.y = self._y_scale(ys)
        left = 12 + max(width(tick.label, TEXT) for tick in self.y.ticks)
        self.frame = f = Box(left, s.top, s.width - right, s.height - s.bottom)
        room = 16 + max(width(chart.x.label(x), TEXT) for x in (min(xs), max(xs)))
        self.x = chart.x.scale(xs, f.left, f.right, chart.x.label, room)

    def _y_scale(self, ys: list[float]) -> Scale:
        top, bottom = self.shape.top, self.shape.height - self.shape.bottom
        ends = (top, bottom) if self.chart.y.turned else (bottom, top)
        return self.chart.y.scale(ys, *ends, self.chart.y.label, 26.0)

    def svg(self) -> str:
        s = self.shape
        said = escape(self.chart.description)
        parts = [
            *self._axes(),
            self._curve(),
            self._stairs(),
            *self._references(),
            *map(self._line, self.chart.lines),
            *self._texts(),
        ]
        return (
            f'<svg class="chart {s.kind}" viewBox="0 0 {s.width:g} {s.height:g}" '
            f'role="img" aria-label="{said}">{"".join(parts)}</svg>'
        )

    def _axes(self) -> list[str]:
        f, parts = self.frame, []
        for tick in self.x.ticks:
            x = self.x(tick.value)
            if tick.label:
                parts.append(_path(f"M{x:.1f},{f.top}V{f.bottom}", "grid"))
                inside = min(x, self.shape.width - width(tick.label, TEXT) / 2)
                parts.append(_text(inside, f.bottom + 17, tick.label, "tick", "middle"))
            else:
                parts.append(_path(f"M{x:.1f},{f.bottom}v4", "small-tick"))
        for tick in self.y.ticks:
            y = self.y(tick.value)
            if tick.label:
                parts.append(_path(f"M{f.left},{y:.1f}H{f.right}", "grid"))
                parts.append(_text(f.left - 7, y + 4, tick.label, "tick", "end"))
            else:
                parts.append(_path(f"M{f.left},{y:.1f}h-4", "small-tick"))
        parts.append(_path(f"M{f.left},{f.bottom}H{f.right}", "axis"))
        parts.append(_text(4, 16, f"↑ {self.chart.y.title}", "title", "start"))
        title = f"{self.chart.x.title} →"
        right = max(f.right, min(width(title, TEXT), self.shape.width))
        parts.append(_text(right, f.bottom + 38, title, "title", "end"))
        return parts

    def _curve(self) -> str:
        if not self.chart.curve:
            return ""
        points = [(self.x(x), self.y(y)) for x, y in self.chart.curve]
        line = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        first, last, bottom = points[0][0], points[-1][0], self.frame.bottom
        area = f"M{first:.1f},{bottom}L{line}L{last:.1f},{bottom}z"
        return _path(area, "area") + _path(f"M{line}", "curve")

    def _steps(self) -> list[Point]:
        """The corners of the frontier: no measurement lies below this staircase."""
        points = [(self.x(x), self.y(y)) for x, y in self.chart.stairs]
        if not points:
            return []
        corners = [(points[0][0], self.frame.top), points[0]]
        for (_, before), (x, y) in pairwise(points):
            corners += [(x, before), (x, y)]
        return [*corners, (self.frame.right, points[-1][1])]

    def _stairs(self) -> str:
        corners = self._steps()
        if not corners:
            return ""
        return _path("M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in corners), "stairs")

    def _reference_lines(self) -> list[tuple[Point, Point]]:
        f, ends = self.frame, []
        for reference in self.chart.references:
            if reference.vertical:
                x = self.x(reference.value)
                ends.append(((x, f.top), (x, f.bottom)))
            else:
                y = self.y(reference.value)
                ends.append(((f.left, y), (f.right, y)))
        return ends

    def _references(self) -> list[str]:
        return [
            _path(f"M{x:.1f},{y:.1f}L{right:.1f},{bottom:.1f}", "reference")
            for (x, y), (right, bottom) in self._reference_lines()
        ]

    def _reference_places(self, reference: Reference) -> list[Placed]:
        """Places for the text of a reference, along its line."""
        f, wide = self.frame, width(reference.label, TEXT)
        spots = []
        if reference.vertical:
            x = self.x(reference.value)
            for y in range(int(f.top) + 12, int(f.bottom) - 4, 10):
                for left, anchor in ((x + 6, "start"), (x - 6 - wide, "end")):
                    start = left if anchor == "start" else x - 6
                    spots.append(Placed(start, y, anchor, Box(left, y - 11, left + wide, y + 3)))
            return spots
        last = max(int(f.right - wide), int(f.left) + 6)
        level = self.y(reference.value)
        for far in range(0, int(f.bottom - f.top), 12):
            for left in range(int(f.left) + 6, last + 1, 10):
                for base in (level - 6 - far, level + 15 + far):
                    box = Box(left, base - 11, left + wide, base + 3)
                    end = left + 12.0, box.bottom + 2 if base < level else box.top - 2
                    lead = ((end[0], level), end) if far else None
                    spots.append(Placed(left, base, "start", box, lead))
        return spots

    def _line(self, line: Line) -> str:
        points = self._points(line)
        parts = [self._band(line)]
        if len(points) > 1:
            parts.append(_path("M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points), "join"))
        for mark, (x, y) in zip(line.marks, points, strict=True):
            if not line.has_band and _has_whisker(mark):
                assert mark.low is not None and mark.high is not None
                low, high = self.y(mark.low), self.y(mark.high)
                parts.append(_path(f"M{x:.1f},{low:.1f}V{high:.1f}", "whisker"))
            ring = '<circle class="ring" r="10"/>' if mark.ringed else ""
            kind = "mark" if mark.filled else "mark hollow"
            parts.append(
                f'<g class="{kind}" transform="translate({x:.1f},{y:.1f})">'
                f"<title>{escape(mark.tip)}</title>{ring}"
                f'<circle class="target" r="12"/><path d="{line.path}"/></g>'
            )
        return f'<g class="line c{line.number}" data-method="{line.number}">{"".join(parts)}</g>'

    def _band(self, line: Line) -> str:
        """Shade the range between lows and highs, if every mark has both."""
        ends = [
            (m.x, m.low, m.high) for m in line.marks if m.low is not None and m.high is not None
        ]
        if not line.has_band or len(ends) < 2:
            return ""
        there = [f"{self.x(x):.1f},{self.y(high):.1f}" for x, _, high in ends]
        back = [f"{self.x(x):.1f},{self.y(low):.1f}" for x, low, _ in reversed(ends)]
        return _path(f"M{'L'.join([*there, *back])}z", "band")

    def _points(self, line: Line) -> list[Point]:
        return [(self.x(mark.x), self.y(mark.y)) for mark in line.marks]

    def _whiskers(self) -> list[tuple[Point, Point]]:
        return [
            ((self.x(mark.x), self.y(mark.low)), (self.x(mark.x), self.y(mark.high)))
            for line in self.chart.lines
            for mark in line.marks
            if mark.low is not None and mark.high is not None and not line.has_band
        ]

    def _texts(self) -> list[str]:
        """Write the names of lines and references, where nothing crosses them."""
        if self.chart.names_behind:
            return self._names_behind()
        lines = [(line.name, self._points(line)) for line in self.chart.lines]
        ground = Ground(self.frame)
        ground.draw(lines)
        for line in self.chart.lines:
            for mark, (x, y) in zip(line.marks, self._points(line), strict=True):
                ground.boxes += [Box(x, y, x, y).grown(13)] if mark.ringed else []
        curve = [(self.x(x), self.y(y)) for x, y in self.chart.curve]
        ground.segments += [*self._reference_lines(), *self._whiskers()]
        ground.segments += [*pairwise(self._steps()), *pairwise(curve)]
        parts = [
            f'<g class="line c{line.number}" data-method="{line.number}">{_lead(spot)}'
            f"{_text(spot.x, spot.y, line.name, 'name', spot.anchor)}</g>"
            for line, spot in zip(self.chart.lines, place(lines, ground, TEXT), strict=True)
        ]
        for reference in self.chart.references:
            spot = place_note(self._reference_places(reference), ground)
            if ground.clashes([spot.box])[0] > 0:
                continue  # no room at all: the caption says what the line is
            ground.take(spot)
            text = _text(spot.x, spot.y, reference.label, "note", spot.anchor)
            parts.append(f'<g class="level">{_lead(spot)}{text}</g>')
        return parts

    def _names_behind(self) -> list[str]:
        """Write all names to the right of the frame, each with a lead to the end of its line."""
        f, lines = self.frame, self.chart.lines
        levels = [reference for reference in self.chart.references if not reference.vertical]
        starts = [self._points(line)[-1] for line in lines]
        starts += [(f.right, self.y(level.value)) for level in levels]
        names = [(line.name, f"line c{line.number}", line.number) for line in lines]
        names += [(level.label, "level", -1) for level in levels]
        heights = stack([y for _, y in starts], f.top, f.bottom)
        parts = []
        for (name, kind, number), (x, end), y in zip(names, starts, heights, strict=True):
            x = x + 8 if number >= 0 else x
            lead = _path(f"M{x:.1f},{end:.1f}L{f.right + 10:.1f},{y:.1f}h3", "lead")
            text = _text(f.right + 16, y + 4, name, "name" if number >= 0 else "note", "start")
            method = f' data-method="{number}"' if number >= 0 else ""
            parts.append(f'<g class="{kind}"{method}>{lead}{text}</g>')
        return parts


def _lead(spot: Placed) -> str:
    if spot.lead is None:
        return ""
    (x, y), (right, bottom) = spot.lead
    return _path(f"M{x:.1f},{y:.1f}L{right:.1f},{bottom:.1f}", "lead")


def _has_whisker(mark: Mark) -> bool:
    return mark.low is not None and mark.high is not None and mark.high > mark.low > 0


def _path(d: str, kind: str) -> str:
    return f'<path class="{kind}" d="{d}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
