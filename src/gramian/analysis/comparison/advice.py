"""The advice that follows from a comparison, in words and as code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import clone, is_regressor

from gramian.analysis.comparison.source import Source
from gramian.analysis.report.text import percent
from gramian.backend.config import format_bytes
from gramian.backend.wording import counted

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison, Measurement

SCORE_LOSS = 0.01  # how far below the best score the recommendation may be
ERROR_AIM = 0.05  # the largest error of the recommendation if there are no scores


def best(comparison: Comparison) -> Measurement:
    """Return the result with the least memory among those with a good score or small error."""
    results = comparison.approximations
    if comparison.score_name is not None:
        top = max(_score(result) for result in results)
        enough = [result for result in results if _score(result) >= top - SCORE_LOSS]
    else:
        enough = [result for result in results if result.error <= ERROR_AIM]
        if not enough:
            return min(results, key=lambda result: (result.error, result.nbytes_all))
    return min(enough, key=lambda result: (result.nbytes_all, result.size, result.error))


def _score(result: Measurement) -> float:
    return float("-inf") if result.score is None else result.score


def recommendation(comparison: Comparison) -> str:
    chosen, data = best(comparison), comparison.data
    what = f"{chosen.name} with {counted(chosen.size, 'feature', ',')}"
    error = percent(chosen.error)
    memory = (
        f"{format_bytes(chosen.nbytes_all)} for all {counted(data.rows, 'row', ',')} (exact "
        f"matrix: {format_bytes(matrix_bytes(comparison))})"
    )
    if comparison.score_name is not None:
        exact = comparison.exact
        beside = "" if exact is None or exact.score is None else f" (exact: {exact.score:.3f})"
        where = f" on {counted(data.held_out, 'held-out row', ',')}" if data.held_out else ""
        return (
            f"Use {what}: {comparison.score_name} {chosen.score:.3f}{beside}{where}, {error} "
            f"relative error, and the least memory within {SCORE_LOSS:g} of the best score: "
            f"{memory}."
        )
    if chosen.error <= ERROR_AIM:
        return (
            f"Use {what}: {error} relative error, and the least memory below {ERROR_AIM:.0%} "
            f"error: {memory}."
        )
    return (
        f"Use {what}, the most accurate: its relative error of {error} is still above "
        f"{ERROR_AIM:.0%}, so try larger sizes or another gamma; it takes {memory}."
    )


def affordable(comparison: Comparison) -> tuple[bool, str]:
    """Whether the exact matrix of all rows fits in the memory budget, and a sentence about it."""
    size, budget = matrix_bytes(comparison), int(comparison.settings["memory budget"])
    rows = counted(comparison.data.rows, "row", ",")
    if size <= budget:
        said = f"The exact matrix of {rows} takes {format_bytes(size)}"
        return True, f"{said}; the memory budget is {format_bytes(budget)}."
    return False, (
        f"The exact matrix of {rows} would take {format_bytes(size)}; the memory budget is "
        f"{format_bytes(budget)}."
    )


def matrix_bytes(comparison: Comparison) -> int:
    """Return the size of the exact matrix of all rows."""
    return comparison.settings["bytes per kernel value"] * comparison.data.rows**2


def code(comparison: Comparison) -> str:
    chosen, source = best(comparison), Source()
    approximation = source.of(chosen.approximation)
    lines = [f"approximation = {approximation}"]
    needs = ["X"]
    learner = comparison.learner
    if learner is None:
        source.imports.add(("gramian", "relative_error"))
        lines += [
            "approximation.fit(X)",
            "print(approximation.nbytes_, relative_error(approximation, X))",
            "# Pass it to a learner as its kernel: KernelKMeans(8, kernel=approximation)",
        ]
    else:
        source.variables.append((chosen.approximation, "approximation"))
        lines.append(f"model = {source.of(_with_kernel(learner, chosen.approximation))}")
        if comparison.score_name == "explained scatter":
            lines += ["labels = model.fit_predict(X)", "print(labels, model.inertia_)"]
        else:
            needs.append("y")
            lines += _prediction(comparison, learner)
    if comparison.data.is_path and needs == ["X"]:
        given = f"X = {source.of(comparison.data.source)}"
    else:
        given = f"# {' and '.join(needs)}: your {'rows' if len(needs) == 1 else 'rows and target'}"
    if source.unknown:
        given += f"\n# {', '.join(sorted(source.unknown))}: your function"
    return "\n".join([source.header(), "", given, *lines]) + "\n"


def _with_kernel(learner: Any, kernel: Any) -> Any:
    return clone(learner).set_params(kernel=kernel)


def _prediction(comparison: Comparison, learner: Any) -> list[str]:
    if is_regressor(learner) and comparison.settings["target is centred"]:
        return [
            "centre = y.mean(axis=0)",
            "model.fit(X, y - centre)",
            "predicted = model.predict(X) + centre",
        ]
    return ["model.fit(X, y)", "predicted = model.predict(X)"]
