"""The same charts for matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramian.analysis.report.text import format_bytes, seconds
from gramian.analysis.report.views import methods
from gramian.backend import optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gramian.analysis.comparison.result import Comparison


def draw(comparison: Comparison) -> Figure:
    """Draw error against memory and time and, if there are scores, score against size."""
    with optional.needed("matplotlib", "Drawing a plot"):
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter
    panels = [("nbytes_all", "error", "memory for all rows"), ("seconds", "error", "time")]
    if comparison.score_name is not None:
        panels.append(("size", "score", "features"))
    figure = Figure(figsize=(5 * len(panels), 4.2), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    units = {"nbytes_all": format_bytes, "seconds": seconds, "size": lambda n: f"{n:,.0f}"}
    for ax, (x, y, label) in zip(axes, panels, strict=True):
        _lines(ax, comparison, x, y)
        ax.set(xscale="log", xlabel=label)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _, unit=units[x]: unit(v)))
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        if y == "error":
            stairs = [(getattr(r, x), r.error) for r in comparison.frontier_by(x)]
            ax.step(*zip(*stairs, strict=True), where="post", color="0.8", lw=5, zorder=0.5)
            ax.set(yscale="log", ylabel="relative error")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g}%"))
        else:
            for other, style in zip(comparison.others, (":", "--", "-.", "-"), strict=False):
                if other.score is not None:
                    ax.axhline(other.score, color="0.4", ls=style, lw=1, label=other.name)
            ax.set_ylabel(comparison.score_name)
    figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _lines(ax: Any, comparison: Comparison, x: str, y: str) -> None:
    for name, look in methods(comparison).items():
        own = [result for result in comparison.approximations if result.name == name]
        if not own:
            continue
        own.sort(key=lambda result: result.size)
        values = [getattr(result, y) for result in own]
        bars = None
        if y == "error":
            bars = [[r.error - r.error_low for r in own], [r.error_high - r.error for r in own]]
        ax.errorbar(
            [getattr(result, x) for result in own],
            values,
            yerr=bars,
            color=look.light,
            marker=look.marker,
            ms=6,
            lw=1.2,
            label=name,
        )
