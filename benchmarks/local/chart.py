"""A picture of score against time: a panel for each set, a line for each method."""

from __future__ import annotations

from typing import Any

from gramian.analysis.report.colours import Look, looks
from gramian.analysis.report.scales import Scale, linear_scale, log_scale
from gramian.analysis.report.text import escape

ACROSS, WIDE, HIGH = 4, 240.0, 190.0
LEFT, TOP, RIGHT, BOTTOM = 46.0, 28.0, 10.0, 28.0
KEY = 34.0
INK, SOFT, RULE = "#16181d", "#444c56", "#d7dce2"


def chart(by_set: dict[str, list[Any]]) -> str:
    """Return an SVG; results have a method, a score and seconds."""
    methods = list(dict.fromkeys(each.method for own in by_set.values() for each in own))
    look = looks(methods)
    down = -(-len(by_set) // ACROSS)
    width, height = ACROSS * WIDE, KEY + down * HIGH + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="system-ui, sans-serif" '
        f'font-size="11" fill="{INK}" role="img" aria-label="Score against seconds of fit and '
        f'prediction, for {len(by_set)} data sets">',
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>',
        *_key(methods, look),
    ]
    for i, (name, results) in enumerate(by_set.items()):
        x, y = WIDE * (i % ACROSS), KEY + HIGH * (i // ACROSS)
        parts.append(f'<g transform="translate({x:g},{y:g})">')
        parts += _panel(name, results, look)
        parts.append("</g>")
    said = "across: seconds for fit and prediction; up: accuracy, or R² (cadata, cpusmall)"
    parts.append(f'<text x="{LEFT:g}" y="{height - 8:g}" fill="{SOFT}">{said}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _key(methods: list[str], look: dict[str, Look]) -> list[str]:
    step = (ACROSS * WIDE - LEFT) / len(methods)
    return [
        f'<g transform="translate({LEFT + i * step:.1f},20)" fill="{look[name].light}">'
        f'<path d="{look[name].shape}"/><text x="9" y="4" fill="{INK}">{escape(name)}</text></g>'
        for i, name in enumerate(methods)
    ]


def _panel(name: str, results: list[Any], look: dict[str, Look]) -> list[str]:
    x = log_scale((r.seconds for r in results), LEFT, WIDE - RIGHT, _short, 34.0)
    y = linear_scale((r.score for r in results), HIGH - BOTTOM, TOP, _short, 26.0)
    parts = [f'<text x="{LEFT:g}" y="{TOP - 9:g}" font-weight="bold">{escape(name)}</text>']
    parts += _grid(x, y)
    for method in dict.fromkeys(r.method for r in results):
        own = sorted((r for r in results if r.method == method), key=lambda r: r.seconds)
        points = [(x(r.seconds), y(r.score)) for r in own]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        colour = look[method].light
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" opacity=".5"/>')
        for (a, b), result in zip(points, own, strict=True):
            tip = f"{method} {result.size}: {result.score:.4f} in {result.seconds:.2f} s"
            parts.append(
                f'<path transform="translate({a:.1f},{b:.1f})" d="{look[method].shape}" '
                f'fill="{colour}"><title>{escape(tip)}</title></path>'
            )
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
    return f"{value:.4g}"
