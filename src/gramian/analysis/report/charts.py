"""Charts as SVG, drawn once for wide and once for narrow pages, with text of the same size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gramian.analysis.report.labels import Box, Placed, Point, place, stack, width
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
    filled below. If all lines end at the same x, their names stand to the right of it.
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
        return "".join(_Drawing(self, shape).svg() for shape in (WIDE, NARROW))


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
            right = 22 + max(width(line.name, TEXT) for line in chart.lines)
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
            *self._names(),
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

    def _stairs(self) -> str:
        """Draw the frontier: no measurement lies below this staircase."""
        if not self.chart.stairs:
            return ""
        points = [(self.x(x), self.y(y)) for x, y in self.chart.stairs]
        steps = f"M{points[0][0]:.1f},{self.frame.top}V{points[0][1]:.1f}"
        steps += "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
        return _path(f"{steps}H{self.frame.right}", "stairs")

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
        parts = []
        ends = self._reference_lines()
        for reference, ((x, y), (right, bottom)) in zip(self.chart.references, ends, strict=True):
            parts.append(_path(f"M{x:.1f},{y:.1f}L{right:.1f},{bottom:.1f}", "reference"))
            spot = self._reference_place(reference)
            parts.append(_text(spot.x, spot.y, reference.label, "note", spot.anchor))
        return parts

    def _reference_place(self, reference: Reference) -> Placed:
        f, wide = self.frame, width(reference.label, TEXT)
        if not reference.vertical:
            y = self.y(reference.value) - 6
            return Placed(f.left + 6, y, "start", Box(f.left + 6, y - 11, f.left + 6 + wide, y + 3))
        x, y = self.x(reference.value), f.top + 12
        if x + 6 + wide > f.right:
            return Placed(x - 6, y, "end", Box(x - 6 - wide, y - 11, x - 6, y + 3))
        return Placed(x + 6, y, "start", Box(x + 6, y - 11, x + 6 + wide, y + 3))

    def _line(self, line: Line) -> str:
        points = [(self.x(mark.x), self.y(mark.y)) for mark in line.marks]
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

    def _names(self) -> list[str]:
        if self.chart.names_behind:
            return self._names_behind()
        lines = [
            (line.name, [(self.x(mark.x), self.y(mark.y)) for mark in line.marks])
            for line in self.chart.lines
        ]
        taken = [self._reference_place(reference).box for reference in self.chart.references]
        rings = [mark for line in self.chart.lines for mark in line.marks if mark.ringed]
        taken += [Box(x, y, x, y).grown(13) for x, y in ((self.x(m.x), self.y(m.y)) for m in rings)]
        spots = place(lines, self.frame, TEXT, taken, self._reference_lines())
        return [
            f'<g class="line c{line.number}" data-method="{line.number}">'
            f"{_text(spot.x, spot.y, line.name, 'name', spot.anchor)}</g>"
            for line, spot in zip(self.chart.lines, spots, strict=True)
        ]

    def _names_behind(self) -> list[str]:
        f, lines = self.frame, self.chart.lines
        ends = [self.y(line.marks[-1].y) for line in lines]
        parts = []
        for line, end, y in zip(lines, ends, stack(ends, f.top, f.bottom), strict=True):
            x = self.x(line.marks[-1].x) + 8
            lead = _path(f"M{x:.1f},{end:.1f}L{f.right + 10:.1f},{y:.1f}h3", "lead")
            name = _text(f.right + 16, y + 4, line.name, "name", "start")
            group = f'<g class="line c{line.number}" data-method="{line.number}">'
            parts.append(f"{group}{lead}{name}</g>")
        return parts


def _has_whisker(mark: Mark) -> bool:
    return mark.low is not None and mark.high is not None and mark.high > mark.low > 0


def _path(d: str, kind: str) -> str:
    return f'<path class="{kind}" d="{d}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
