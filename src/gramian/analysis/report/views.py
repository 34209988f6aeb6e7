"""The charts of a comparison, and the sentences that explain them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gramian.analysis.report.charts import Axis, Chart, Line, Mark, Reference
from gramian.analysis.report.colours import LOOKS, Look, looks
from gramian.analysis.report.text import count, format_bytes, percent, seconds, short, significant
from gramian.backend.wording import counted

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison, Measurement

LEAST = 1e-6  # errors that are less are drawn here
FAR = 30.0  # a reference so many times beyond the rest would squeeze the rest


def methods(comparison: Comparison) -> dict[str, Look]:
    """Return the approximations with their looks: in the catalogue's order, then the others."""
    names = {result.name for result in comparison.approximations}
    known = [name for name in LOOKS if name in names]
    return looks([*known, *sorted(names - set(known))])


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
    measured = comparison.data.measured
    axis = Axis(f"time to fit and transform {counted(measured, 'row', ',')}", seconds)
    return _error_chart(comparison, axis, "seconds", "time", [])


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
    return Chart(
        description=(
            f"Relative error against {what}, on logarithmic axes, for "
            f"{', '.join(methods(comparison))}. The smallest error is {percent(least.error)}, by "
            f"{least.name} with {counted(least.size, 'feature')}. The table below has all "
            "numbers."
        ),
        x=x,
        y=Axis("relative error ‖K - K̃‖ / ‖K‖", _percent_tick),
        lines=_lines(comparison, cost, "error", on),
        stairs=[(getattr(result, cost), max(result.error, LEAST)) for result in best],
        references=references,
    )


def score_over_size(comparison: Comparison) -> Chart:
    return _score_chart(
        comparison, Axis("number of features", lambda value: f"{value:,.0f}"), "size", behind=True
    )


def score_over_memory(comparison: Comparison) -> Chart:
    rows = counted(comparison.data.rows, "row", ",")
    axis = Axis(f"memory for the features of all {rows}", format_bytes)
    return _score_chart(comparison, axis, "nbytes_all", behind=False)


def _score_chart(comparison: Comparison, x: Axis, cost: str, *, behind: bool) -> Chart:
    """Draw 1 - score on a logarithmic axis, labelled with the score."""
    exact, name = comparison.exact, comparison.score_name or ""
    references = []
    if exact is not None and exact.score is not None:
        references.append(Reference(1 - exact.score, f"exact: {exact.score:.3f}", vertical=False))
    scored = [result for result in comparison.approximations if result.score is not None]
    top = max(scored, key=lambda result: result.score or 0.0)
    return Chart(
        description=(
            f"{name} against {x.title}. The best is {top.score:.3f}, by {top.name} with {top.size} "
            "features. The table below has all numbers."
        ),
        x=x,
        y=Axis(name, lambda value: f"{1 - value:.10g}", turned=True),
        lines=_lines(comparison, cost, "score", None),
        references=references,
        names_behind=behind,
    )


def _lines(
    comparison: Comparison,
    x: str,
    y: str,
    filled: set[int] | None,
) -> list[Line]:
    lines, best = [], comparison.best
    for number, (name, look) in enumerate(methods(comparison).items()):
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


def tip(comparison: Comparison, result: Measurement) -> str:
    said = [
        f"{result.name}, {counted(result.size, 'feature', ',')}",
        f"error {interval(result)}",
        f"{format_bytes(result.nbytes_all)}, {seconds(result.seconds)}",
    ]
    if result.score is not None:
        said.append(f"{comparison.score_name} {result.score:.3f}")
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
    label = f"effective dimension {significant(dimension)}"
    return Chart(
        description=(
            f"Eigenvalues of the kernel matrix of {counted(found.rows, 'row')}, largest first, as "
            f"fractions of its trace, on logarithmic axes. {spectrum_sentence(comparison)}"
        ),
        x=Axis("index of the eigenvalue", lambda value: f"{value:,.0f}"),
        y=Axis("fraction of the trace", _percent_tick),
        curve=curve,
        references=[Reference(max(dimension, 1.0), label, vertical=True)],
    )


def spectrum_sentence(comparison: Comparison) -> str:
    found = comparison.structure
    cumulated = np.cumsum(np.maximum(found.eigenvalues, 0.0))
    need = [int(np.searchsorted(cumulated, share * cumulated[-1])) + 1 for share in (0.9, 0.99)]
    return (
        f"{_so_many(need[0], 'eigenvalue')} of {found.rows:,} hold 90% of the trace, {need[1]:,} "
        f"hold 99%; {significant(found.effective_dimension)} directions rise above a ridge of "
        f"{percent(found.ridge, 1)} of it. A Nyström approximation needs a few features for each "
        "of these directions."
    )


def block_sentence(comparison: Comparison) -> str:
    found = comparison.structure
    held = f"{counted(len(found.blocks), 'cluster')} hold {percent(found.within)} of ‖K‖²"
    chance = f"random groups of the same sizes would hold {percent(found.by_chance)}"
    if found.within >= 0.8:
        return (
            f"{held} ({chance}). Little lies between them, so block approximations (MEKA and BKA) "
            "suit this kernel."
        )
    if found.within >= 0.5:
        return (
            f"{held} ({chance}). The blocks are visible, but what lies between them matters. MEKA, "
            "which links its blocks, may suit; BKA drops the rest."
        )
    return (
        f"{held} ({chance}). Most of the matrix lies between clusters. Nyström suits, because it "
        "has one basis for all rows; BKA drops what lies between."
    )


def gamma_sentence(comparison: Comparison) -> str:
    views = comparison.structure.gammas
    size = counted(views[0].size, "landmark", ",")
    first, last = views[0], views[-1]
    said = (
        f"With {size}, Nyström's error is {percent(first.error)} at a quarter of gamma and "
        f"{percent(last.error)} at four times gamma: a larger gamma makes the kernel more local "
        "and its matrix harder to approximate."
        if last.error > first.error
        else f"With {size}, Nyström's error is {percent(first.error)} at a quarter of gamma and "
        f"{percent(last.error)} at four times gamma."
    )
    scored = [(view.score, view) for view in views if view.score is not None]
    if not scored:
        return said
    top, best = max(scored, key=lambda pair: pair[0])
    own = next(view for view in views if view.factor == 1)
    if own.score is not None and top - own.score > 0.005:
        return (
            f"{said} The {comparison.score_name} is best at {best.factor:g} times the current "
            f"gamma: {top:.3f} instead of {own.score:.3f}. Try gamma={significant(best.gamma)}."
        )
    return f"{said} None of these gammas improves the {comparison.score_name} by more than 0.005."


def kernel_values(result: Measurement) -> str:
    return count(result.kernel_evaluations)


def _so_many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _percent_tick(value: float) -> str:
    return f"{100 * value:.10g}%" if value >= 9e-7 else f"{value:.0e}"
