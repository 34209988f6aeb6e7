"""The figures of an experiment as plain values (curves, points, tables), and their HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from gramian.analysis.report.charts import Axis, Chart, Line, Mark, Reference
from gramian.analysis.report.colours import Look
from gramian.analysis.report.shell import figure
from gramian.analysis.report.text import escape, significant

WIDTH, HEIGHT, MARGIN = 360.0, 300.0, 10.0  # of points
TITLE = 24.0  # room for the name of an axis

Cell: TypeAlias = str | int | float  # of a table


class At(NamedTuple):
    """A value of a curve, with its range over repeated runs."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curves:
    """Named curves over two axes."""

    title: str
    x: Axis
    y: Axis
    series: dict[str, list[At]]
    caption: str = ""
    references: list[Reference] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return list(self.series)

    def html(self, numbers: dict[str, int], looks: dict[str, Look], heading: str) -> str:
        lines = [
            Line(
                name,
                numbers[name],
                looks[name].shape,
                [self._mark(name, at) for at in points],
                has_band=True,
            )
            for name, points in self.series.items()
        ]
        of = ", ".join(self.names)
        described = f"{self.title}: {self.y.title} against {self.x.title}, of {of}."
        chart = Chart(described, self.x, self.y, lines, references=self.references)
        return f"<div>{heading}{figure(chart, self.caption)}</div>"

    def _mark(self, name: str, at: At) -> Mark:
        spread = (
            ""
            if at.low is None or at.high is None
            else f"\n{significant(at.low, 3)} to {significant(at.high, 3)} over the runs"
        )
        tip = f"{name}\n{self.x.title}: {self.x.label(at.x)}\n{significant(at.y, 3)}{spread}"
        return Mark(at.x, at.y, tip, at.low, at.high)


@dataclass(frozen=True)
class Points:
    """Points in the plane, by class; the axes have names but no ticks."""

    title: str
    groups: dict[str, Sequence[Sequence[float]]]
    x: str
    y: str
    caption: str = ""
    is_square: bool = True  # one length is the same in both directions

    @property
    def names(self) -> list[str]:
        return list(self.groups)

    def html(self, numbers: dict[str, int], looks: dict[str, Look], heading: str) -> str:
        every = [point for points in self.groups.values() for point in points]
        xs, ys = [p[0] for p in every], [p[1] for p in every]
        across, down = (max(v) - min(v) or 1.0 for v in (xs, ys))
        scale = (WIDTH - 2 * MARGIN) / across, (HEIGHT - 2 * MARGIN) / down
        if self.is_square:
            scale = (min(scale), min(scale))
        middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
        parts = []
        for name, points in self.groups.items():
            shape = looks[name].shape
            marks = "".join(
                f'<path transform="translate({WIDTH / 2 + scale[0] * (x - middle[0]):.1f},'
                f'{TITLE + HEIGHT / 2 - scale[1] * (y - middle[1]):.1f}) scale(.45)" d="{shape}"/>'
                for x, y in points
            )
            number = numbers[name]
            parts.append(f'<g class="points c{number}" data-method="{number}">{marks}</g>')
        said = f"{self.title}: points of {', '.join(self.groups)}, {self.y} against {self.x}."
        bottom = HEIGHT + 2 * TITLE
        svg = (
            f'<svg class="scatter" viewBox="0 0 {WIDTH:g} {bottom:g}" role="img" '
            f'aria-label="{escape(said)}"><rect class="frame" x=".5" y="{TITLE:g}" rx="6" '
            f'width="{WIDTH - 1:g}" height="{HEIGHT:g}"/>{"".join(parts)}'
            f'<text class="title" x="2" y="15">↑ {escape(self.y)}</text>'
            f'<text class="title" x="{WIDTH - 2:g}" y="{bottom - 7:g}" text-anchor="end">'
            f"{escape(self.x)} →</text></svg>"
        )
        key = "".join(
            f'<span class="c{numbers[name]}"><svg class="swatch" viewBox="-7 -7 14 14" '
            f'aria-hidden="true"><path d="{looks[name].shape}"/></svg>{escape(name)}</span>'
            for name in self.groups
        )
        return (
            f"<div>{heading}<figure>{svg}"
            f'<div class="names">{key}</div>'
            f"<figcaption>{escape(self.caption)}</figcaption></figure></div>"
        )


@dataclass(frozen=True)
class Grid:
    """A table; if ``shaded``, numbers are coloured by size."""

    title: str
    header: list[str]
    rows: list[list[Cell]]
    caption: str = ""
    shaded: float | None = None  # the value of the darkest cell
    unshaded: int = 0  # so many columns at the end are of another kind

    @property
    def names(self) -> list[str]:
        return []

    def html(self, numbers: dict[str, int], looks: dict[str, Look], heading: str) -> str:
        heads = "".join(
            f'<th scope="col"{_kind(column)}>{escape(name)}</th>'
            for name, column in zip(self.header, zip(*self.rows, strict=True), strict=True)
        )
        body = "".join(f"<tr>{''.join(self._cells(row))}</tr>" for row in self.rows)
        kind = ' class="across"' if self.shaded is None else ""
        return (
            f"<div{kind}>{heading}"
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}">'
            f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
            f'</div><p class="muted">{escape(self.caption)}</p></div>'
        )

    def _cells(self, row: list[Cell]) -> list[str]:
        last = len(row) - self.unshaded
        return [_cell(value, self.shaded if i < last else None) for i, value in enumerate(row)]


def _cell(value: Cell, darkest: float | None) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    shown = f"{value:,}" if isinstance(value, int) else significant(value, 3)
    if darkest is None:
        return f'<td class="number">{escape(shown)}</td>'
    share = 100 * max(0.0, min(1.0, value / darkest))
    return f'<td class="number shaded" style="--share:{share:.0f}%">{escape(shown)}</td>'


Figure = Curves | Points | Grid


def _kind(column: Sequence[Cell]) -> str:
    return "" if all(isinstance(value, str) for value in column) else ' class="number"'
