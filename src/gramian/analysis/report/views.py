"""The charts of a comparison, and the sentences that explain them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gramian.analysis.comparison.advice import choice, is_scored
from gramian.analysis.comparison.gamma import LANDMARKS
from gramian.analysis.comparison.measurements import Baseline, Measurement
from gramian.analysis.comparison.words import score
from gramian.analysis.report.charts import Axis, Chart, Line, Mark, Reference
from gramian.analysis.report.colours import LOOKS, Look, looks
from gramian.analysis.report.text import count, format_bytes, percent, seconds, short, significant
from gramian.backend.wording import counted

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison

LEAST = 1e-6  # errors that are less are drawn here
FAR = 30.0  # a reference so many times beyond the rest would squeeze the rest


def methods(comparison: Comparison) -> dict[str, Look]:
    """Return all that was measured with its look: the catalogue's order, others, baselines."""
    names = {result.name for result in comparison.approximations}
    known = [name for name in LOOKS if name in names]
    beside = [other.name for other in comparison.others]
    return looks([*known, *sorted(names - set(known)), *beside])


def error_over_memory(comparison: Comparison) -> Chart:
    data, exact = comparison.data, comparison.exact
    references = []
    if exact is not None:
        largest = max(result.nbytes_all for result in comparison.approximations)
        if exact.nbytes_all <= FAR * largest:
            label = f"exact: {format_bytes(exact.nbytes_all)}"
            references.append(Reference(exact.nbytes_all, label, vertical=True))
    axis = Axis(f"memory for the features of all {counted(data.rows, 'row', ',')}", format_bytes)
    return _error_chart(comparison, axis, "nbytes_all", "memory", references)


def error_over_time(comparison: Comparison) -> Chart:
    return _error_chart(comparison, _time(comparison), "seconds", "time", [])


def _time(comparison: Comparison) -> Axis:
    data = comparison.data
    rows = counted(data.measured, "row", ",")
    if data.held_out:
        return Axis(f"time to fit {rows} and predict {data.held_out:,}", seconds)
    what = "fit and transform" if comparison.score_name is None else "cluster"
    return Axis(f"time to {what} {rows}", seconds)


def _error_chart(
    comparison: Comparison,
    x: Axis,
    cost: str,
    what: str,
    references: list[Reference],
) -> Chart:
    best = comparison.frontier_by(cost)
    on = {id(result) for result in best}
    least = min(comparison.approximations, key=lambda result: result.error)
    named = ", ".join({result.name: None for result in comparison.approximations})
    return Chart(
        description=(
            f"Error of the kernel matrix against {what}, on logarithmic axes, for {named}. The "
            f"smallest error is {percent(least.error)}, by {least.name} with "
            f"{counted(least.size, 'feature')}. The table below has all numbers."
        ),
        x=x,
        y=Axis("error of the kernel matrix", _percent_tick),
        lines=_lines(comparison, cost, "error", on),
        stairs=[(getattr(result, cost), max(result.error, LEAST)) for result in best],
        references=references,
    )


def score_over_size(comparison: Comparison) -> Chart:
    """Draw scores against sizes; what has no size is a dashed line."""
    axis = Axis("number of features", lambda value: f"{value:,.0f}")
    references = [
        Reference(1 - other.score, other.name, vertical=False)
        for other in comparison.others
        if other.score is not None
    ]
    lines = _lines(comparison, "size", "score", None)
    return _score_chart(comparison, axis, lines, references, behind=True)


def score_over_time(comparison: Comparison) -> Chart:
    """Draw scores against time, with the line above which the recommendation is looked for."""
    lines = _lines(comparison, "seconds", "score", None)
    shapes = methods(comparison)
    numbers = list(shapes)
    for other in comparison.others:
        if other.score is not None:
            ringed = other is comparison.winner
            mark = Mark(other.seconds, 1 - other.score, tip(comparison, other), ringed=ringed)
            number = numbers.index(other.name)
            lines.append(Line(other.name, number, shapes[other.name].shape, [mark]))
    references = []
    if is_scored(comparison):
        top = choice(comparison, comparison.baselines).top
        if top.score is not None and top.standard_error:
            least = 1 - top.score + top.standard_error
            references.append(Reference(least, "as good as the best ↑", vertical=False))
    return _score_chart(comparison, _time(comparison), lines, references, behind=False)


def _score_chart(
    comparison: Comparison, x: Axis, lines: list[Line], references: list[Reference], *, behind: bool
) -> Chart:
    """Draw 1 - score on a logarithmic axis, labelled with the score."""
    name = comparison.score_name or ""
    scored = [result for result in comparison.approximations if result.score is not None]
    top = max(scored, key=lambda result: result.score or 0.0)
    return Chart(
        description=(
            f"{name} against {x.title}. The best approximation has {top.score:.3f}: {top.name} "
            f"with {counted(top.size, 'feature')}. The table below has all numbers."
        ),
        x=x,
        y=Axis(name, lambda value: f"{1 - value:.10g}", turned=True),
        lines=lines,
        references=references,
        names_behind=behind,
    )


def _lines(
    comparison: Comparison,
    x: str,
    y: str,
    filled: set[int] | None,
) -> list[Line]:
    lines, best = [], comparison.winner
    names = {result.name for result in comparison.approximations}
    for number, (name, look) in enumerate(methods(comparison).items()):
        if name not in names:
            continue
        own = [result for result in comparison.approximations if result.name == name]
        marks = [
            Mark(
                getattr(result, x),
                1 - (result.score or 0.0) if y == "score" else max(result.error, LEAST),
                tip(comparison, result),
                max(result.error_low, LEAST) if y == "error" else None,
                max(result.error_high, LEAST) if y == "error" else None,
                filled=filled is None or id(result) in filled,
                ringed=result is best,
            )
            for result in sorted(own, key=lambda result: result.size)
        ]
        lines.append(Line(short(name, 24), number, look.shape, marks))
    return lines


def tip(comparison: Comparison, result: Measurement | Baseline) -> str:
    if isinstance(result, Baseline):
        said = [result.name, seconds(result.seconds)]
    else:
        size = "all rows" if result.is_exact else counted(result.size, "feature", ",")
        said = [
            f"{result.name}, {size}",
            f"error {interval(result)}",
            f"{format_bytes(result.nbytes_all)}, {seconds(result.seconds)}",
        ]
    if result.score is not None:
        said.append(f"{comparison.score_name} {score(result)}")
    return "\n".join(said)


def interval(result: Measurement) -> str:
    """Return the error, with its interval if that differs in the digits shown."""
    low, value, high = map(percent, (result.error_low, result.error, result.error_high))
    return value if low == high else f"{value} ({low} to {high})"


def spectrum(comparison: Comparison) -> Chart:
    found = comparison.structure
    values = found.eigenvalues[found.eigenvalues > 1e-6]
    points = [(i + 1.0, float(value)) for i, value in enumerate(values)]
    kept = {round(i) for i in np.geomspace(1, max(len(points), 1), 160)}
    curve = [point for i, point in enumerate(points, start=1) if i in kept]
    if len(curve) == 1:
        curve.append((2.0, curve[0][1]))
    dimension = found.effective_dimension
    label = f"{significant(max(dimension, 1.0))} directions matter"
    return Chart(
        description=(
            f"The share of variance of each direction of the kernel matrix of "
            f"{counted(found.rows, 'row')}, largest first, on logarithmic axes. "
            f"{spectrum_sentence(comparison)}"
        ),
        x=Axis("direction, the largest first", lambda value: f"{value:,.0f}"),
        y=Axis("share of variance", _percent_tick),
        curve=curve,
        references=[Reference(max(dimension, 1.0), label, vertical=True)],
    )


def spectrum_sentence(comparison: Comparison) -> str:
    found = comparison.structure
    cumulated = np.cumsum(np.maximum(found.eigenvalues, 0.0))
    need = [int(np.searchsorted(cumulated, share * cumulated[-1])) + 1 for share in (0.9, 0.99)]
    holds = "holds" if need[0] == 1 else "hold"
    return (
        f"{_so_many(need[0], 'direction')} of {found.rows:,} {holds} 90% of the variance, "
        f"{need[1]:,} hold 99%. About {significant(max(found.effective_dimension, 1.0))} matter: "
        f"those below {percent(found.ridge, 1)} of the variance count only in part."
    )


def block_sentence(comparison: Comparison) -> str:
    found = comparison.structure
    held = f"{counted(len(found.blocks), 'cluster')} hold {percent(found.within)} of the matrix"
    chance = f"random groups of the same sizes would hold {percent(found.by_chance)}"
    if found.within >= 0.8:
        rest = "Little lies between them."
    elif found.within >= 0.5:
        rest = "The blocks are visible, but what lies between them counts too."
    else:
        rest = "Most of it lies between clusters."
    return f"{held} ({chance}). {rest}"


def gamma_sentence(comparison: Comparison) -> str:
    views = comparison.structure.gammas
    size = counted(views[0].size, "landmark", ",")
    first, last = views[0], views[-1]
    said = (
        f"With {size}, Nyström's error is {percent(first.error)} at a quarter of gamma and "
        f"{percent(last.error)} at four times gamma."
    )
    if last.error > first.error:
        said += " A larger gamma makes the kernel more local, and its matrix harder to approximate."
    if all(view.score is None for view in views):
        return f"{said} Without a target, nothing here shows which gamma is right."
    return (
        f"{said} The {comparison.score_name} at each gamma is that of Nyström with up to "
        f"{LANDMARKS} landmarks, cross-validated on the training rows."
    )


def kernel_values(result: Measurement) -> str:
    return count(result.kernel_evaluations)


def _so_many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _percent_tick(value: float) -> str:
    return f"{100 * value:.10g}%" if value >= 9e-7 else f"{value:.0e}"
