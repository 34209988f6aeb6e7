"""The table of all measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gramian.analysis.comparison.measurements import Baseline, Measurement
from gramian.analysis.comparison.words import score
from gramian.analysis.report import views
from gramian.analysis.report.text import escape, format_bytes, percent, seconds, short

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison


class _Column(NamedTuple):
    title: str
    value: Callable[[Any], str | float]
    shown: Callable[[Any], str]
    numeric: bool = True
    kernels_only: bool = False  # empty for models without a kernel


def _columns(comparison: Comparison) -> list[_Column]:
    on = {id(result) for result in comparison.frontier}
    columns = [
        _Column("method", lambda r: r.name, lambda r: short(r.name, 40), numeric=False),
        _Column(
            "features",
            lambda r: r.size,
            lambda r: "all" if r.is_exact else f"{r.size:,}",
            kernels_only=True,
        ),
        _Column("error", lambda r: r.error, lambda r: percent(r.error), kernels_only=True),
        _Column("interval", lambda r: r.error_high - r.error_low, _interval, kernels_only=True),
        _Column("time", lambda r: r.seconds, lambda r: seconds(r.seconds)),
        _Column(
            "memory",
            lambda r: r.nbytes_all,
            lambda r: format_bytes(r.nbytes_all),
            kernels_only=True,
        ),
        _Column(
            "kernel values", lambda r: r.kernel_evaluations, views.kernel_values, kernels_only=True
        ),
    ]
    if comparison.score_name is not None:
        columns.append(
            _Column(
                comparison.score_name,
                lambda r: "" if r.score is None else r.score,
                lambda r: "" if r.score is None else score(r),
            )
        )

    def flag(result: Measurement | Baseline) -> str:
        if result is comparison.winner:
            return "recommended"
        if result is comparison.best:
            return "best kernel"
        return "frontier" if id(result) in on else ""

    columns.append(_Column("", flag, flag, numeric=False))
    return columns


def _interval(result: Measurement) -> str:
    low, high = percent(result.error_low), percent(result.error_high)
    return "" if low == high else f"{low} to {high}"


def table(comparison: Comparison, *, sorts: bool) -> str:
    """Return the results as an HTML table; if ``sorts``, each column header is a button."""
    looks = views.methods(comparison)
    numbers = {name: i for i, name in enumerate(looks)}
    columns = _columns(comparison)
    heads = "".join(_head(column, sorts) for column in columns)
    lines = []
    for result in [*comparison.approximations, *comparison.others]:
        number = numbers.get(result.name)
        swatch, method = "", ""
        if number is not None:
            swatch = (
                f'<svg class="swatch c{number}" viewBox="-7 -7 14 14" aria-hidden="true">'
                f'<path d="{looks[result.name].shape}"/></svg>'
            )
            method = f' data-method="{number}"'
        cells = [_cell(column, result) for column in columns]
        cells[0] = cells[0].replace(">", f">{swatch}", 1)
        best = ' class="best"' if result is comparison.winner else ""
        lines.append(f"<tr{best}{method}>{''.join(cells)}</tr>")
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="All measurements">'
        f'<table class="{"sorts" if sorts else "plain"}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _head(column: _Column, sorts: bool) -> str:
    if not column.title:
        return '<th scope="col"><span aria-hidden="true"></span></th>'
    kind = ' class="number"' if column.numeric else ""
    title = escape(column.title)
    if sorts:  # the script enables it
        title = f'<button type="button" disabled>{title}</button>'
    return f'<th scope="col"{kind}>{title}</th>'


def _cell(column: _Column, result: Measurement | Baseline) -> str:
    kind = ' class="number"' if column.numeric else ""
    if column.kernels_only and isinstance(result, Baseline):
        return f'<td{kind} data-value=""></td>'
    shown = escape(column.shown(result))
    if not column.title and shown:
        shown = f'<span class="flag">{shown}</span>'
    return f'<td{kind} data-value="{escape(column.value(result))}">{shown}</td>'
