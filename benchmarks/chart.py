"""A picture of panels: in each, lines through the points of some series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from gramian.analysis.report.colours import Look, looks
from gramian.analysis.report.scales import Scale, linear_scale, log_scale
from gramian.analysis.report.text import escape

ACROSS, WIDE, HIGH = 4, 240.0, 190.0
LEFT, TOP, RIGHT, BOTTOM = 46.0, 28.0, 10.0, 28.0
KEY = 34.0
INK, SOFT, RULE = "#16181d", "#444c56", "#d7dce2"


class Point(NamedTuple):
    x: float
    y: float
    tip: str  # shown when the pointer is on it


Panel: TypeAlias = Mapping[str, Sequence[Point]]  # points of each series


def chart(panels: Mapping[str, Panel], *, title: str, said: str, even: float | None = None) -> str:
    """Return an SVG; x is logarithmic.

    ``said`` explains the axes below. If y are ratios, y is logarithmic too, and a line is drawn at
    the ratio that is ``even``.
    """
    series = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    look = looks(series)
    down = -(-len(panels) // ACROSS)
    width, height = ACROSS * WIDE, KEY + down * HIGH + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="system-ui, sans-serif" '
        f'font-size="11" fill="{INK}" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>',
        *_key(series, look),
    ]
    for i, (name, panel) in enumerate(panels.items()):
        x, y = WIDE * (i % ACROSS), KEY + HIGH * (i // ACROSS)
        parts.append(f'<g transform="translate({x:g},{y:g})">')
        parts += _panel(name, panel, look, even)
        parts.append("</g>")
    parts.append(f'<text x="{LEFT:g}" y="{height - 8:g}" fill="{SOFT}">{escape(said)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _key(series: list[str], look: dict[str, Look]) -> list[str]:
    step = (ACROSS * WIDE - LEFT) / len(series)
    return [
        f'<g transform="translate({LEFT + i * step:.1f},20)" fill="{look[name].light}">'
        f'<path d="{look[name].shape}"/><text x="9" y="4" fill="{INK}">{escape(name)}</text></g>'
        for i, name in enumerate(series)
    ]


def _panel(name: str, panel: Panel, look: dict[str, Look], even: float | None) -> list[str]:
    points = [point for own in panel.values() for point in own]
    x = log_scale((point.x for point in points), LEFT, WIDE - RIGHT, _short, 34.0)
    scale, more = (linear_scale, []) if even is None else (log_scale, [even])
    y = scale([*(point.y for point in points), *more], HIGH - BOTTOM, TOP, _short, 26.0)
    parts = [f'<text x="{LEFT:g}" y="{TOP - 9:g}" font-weight="bold">{escape(name)}</text>']
    parts += _grid(x, y)
    if even is not None:
        parts.append(f'<path d="M{LEFT:g},{y(even):.1f}H{WIDE - RIGHT:g}" stroke="{INK}"/>')
    for series, own in panel.items():
        own = sorted(own)
        path = " ".join(f"{x(point.x):.1f},{y(point.y):.1f}" for point in own)
        colour, shape = look[series].light, look[series].shape
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" opacity=".5"/>')
        parts += [
            f'<path transform="translate({x(point.x):.1f},{y(point.y):.1f})" d="{shape}" '
            f'fill="{colour}"><title>{escape(point.tip)}</title></path>'
            for point in own
        ]
    return parts


def _grid(x: Scale, y: Scale) -> list[str]:
    top, bottom, right = TOP, HIGH - BOTTOM, WIDE - RIGHT
    parts = [
        f'<path d="M{LEFT:g},{top:g}V{bottom:g}H{right:g}" fill="none" stroke="{SOFT}" '
        'stroke-width=".7"/>'
    ]
    for tick in y.ticks:
        at = y(tick.value)
        parts.append(f'<path d="M{LEFT:g},{at:.1f}H{right:g}" stroke="{RULE}" stroke-width=".6"/>')
        parts.append(
            f'<text x="{LEFT - 5:g}" y="{at + 4:.1f}" text-anchor="end" fill="{SOFT}">'
            f"{tick.label}</text>"
        )
    for tick in x.ticks:
        at = x(tick.value)
        parts.append(f'<path d="M{at:.1f},{bottom:g}v3" stroke="{SOFT}" stroke-width=".7"/>')
        if tick.label:
            parts.append(
                f'<text x="{at:.1f}" y="{bottom + 15:g}" text-anchor="middle" fill="{SOFT}">'
                f"{tick.label}</text>"
            )
    return parts


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:.4g}"
