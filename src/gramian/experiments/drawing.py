"""Helpers that build figures."""

from __future__ import annotations

from collections.abc import Callable

from gramian.analysis.report.charts import Axis, Reference
from gramian.analysis.report.figures import At, Curves
from gramian.analysis.report.text import percent, seconds

LEAST = 1e-9  # what is less is drawn here
# What lines and bands are, as Results.curve and Results.mean_curve make them.
RUNS = "Lines are medians over the runs, bands the middle 80 % of them."
MEANS = "Lines are means over the runs, bands 95 % confidence intervals for them."


def plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 and value == round(value) else f"{value:.10g}"


def axis(title: str, label: Callable[[float], str] = plain, *, is_log: bool = True) -> Axis:
    return Axis(title, label, is_log=is_log)


def _percent(value: float) -> str:
    return f"{100 * value:.10g}%" if value >= 9e-7 else f"{value:.0e}"


def _round_seconds(value: float) -> str:
    return seconds(value).replace(".0 ", " ")


ERROR = axis("relative error ‖K - K̃‖ / ‖K‖", _percent)
SECONDS = axis("time", _round_seconds)
CPU_SECONDS = axis("CPU time", _round_seconds)
SHARE = axis("share", percent, is_log=False)


def curves(
    title: str,
    x: Axis,
    y: Axis,
    series: dict[str, list[At]],
    caption: str = "",
    references: list[Reference] | None = None,
) -> Curves:
    """Return curves for a logarithmic axis; 0 is drawn at its end."""
    if y.is_log:
        series = {
            name: [
                At(at.x, max(at.y, LEAST), *(None if v is None else max(v, LEAST) for v in at[2:]))
                for at in points
            ]
            for name, points in series.items()
        }
    return Curves(title, x, y, series, caption, references or [])


def across(value: float, label: str) -> Reference:
    """Return a horizontal dashed line."""
    return Reference(value, label, vertical=False)


def upright(value: float, label: str) -> Reference:
    """Return a vertical dashed line."""
    return Reference(value, label, vertical=True)
