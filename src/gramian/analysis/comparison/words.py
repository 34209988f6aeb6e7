"""The advice in words. Every sentence is about the same choice as the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramian.analysis.comparison import advice
from gramian.analysis.comparison.measurements import Baseline, Measurement
from gramian.analysis.report.text import percent, seconds
from gramian.backend.config import format_bytes
from gramian.backend.wording import counted

if TYPE_CHECKING:
    from gramian.analysis.comparison.advice import Choice, Result
    from gramian.analysis.comparison.result import Comparison

# The baselines within a sentence.
BASELINES = {"Gradient boosting": "gradient boosting", "Linear model": "a linear model"}


def described(result: Result) -> str:
    """Return a result as a phrase: "MEKA with 50 features", "the exact kernel"."""
    if isinstance(result, Baseline):
        return BASELINES.get(result.name, "the dummy")
    if result.is_exact:
        return "the exact kernel"
    return f"{result.name} with {counted(result.size, 'feature', ',')}"


def score(result: Result) -> str:
    """Return a score with its standard error, if it has one."""
    error = "" if result.standard_error is None else f" ± {result.standard_error:.3f}"
    return f"{result.score:.3f}{error}"


def recommendation(comparison: Comparison) -> str:
    choice = advice.choice(comparison, comparison.baselines)
    said = [_use(comparison, choice), _memory(comparison, choice)]
    if advice.is_scored(comparison):
        said.append(_beside(comparison, choice))
    elif choice.result.score is not None:
        said.append(f"Its clusters explain {choice.result.score:.1%} of the variance.")
    return " ".join(part for part in said if part)


def _use(comparison: Comparison, choice: Choice) -> str:
    chosen = choice.result
    if advice.is_scored(comparison) and choice.fits:
        return _by_score(comparison, choice)
    assert isinstance(chosen, Measurement)
    if not choice.fits:
        size = format_bytes(chosen.nbytes_all)
        return f"Use {described(chosen)}, which takes the least memory: {size}."
    error, aim = percent(chosen.error), percent(comparison.settings["max error"], 1)
    if not choice.is_good:
        return (
            f"Use {described(chosen)}, the most accurate: its error of {error} is still above "
            f"{aim}, so try larger sizes or another gamma."
        )
    error = "no" if chosen.is_exact else error
    return f"Use {described(chosen)}: {error} error, and the fastest below {aim}."


def _by_score(comparison: Comparison, choice: Choice) -> str:
    chosen = choice.result
    if chosen.name == "Dummy":
        return _nothing(comparison, choice)
    instead = " instead of a kernel" if isinstance(chosen, Baseline) else ""
    return (
        f"Use {described(chosen)}{instead}: {comparison.score_name} {score(chosen)} on "
        f"{counted(comparison.data.held_out, 'held-out row', ',')}{_why(choice)}."
    )


def _why(choice: Choice) -> str:
    if len(choice.good) == 1:
        return ", better than all others by more than one standard error"
    number = counted(len(choice.good), "candidate", ",")
    if choice.result is choice.top:
        return f", the best score, and the fastest of the {number} within one standard error of it"
    return (
        f", the fastest of the {number} within one standard error of the best "
        f"({choice.top.score:.3f}, {described(choice.top)})"
    )


def _nothing(comparison: Comparison, choice: Choice) -> str:
    constant = "class" if comparison.score_name == "accuracy" else "value"
    return (
        f"Nothing here predicts the target: a dummy that always gives the same {constant} has "
        f"{comparison.score_name} {score(choice.result)}, and no model is better by more than "
        "one standard error. Look for better columns first."
    )


def _memory(comparison: Comparison, choice: Choice) -> str:
    """Say something about memory where it is scarce."""
    if not choice.left_out:
        return ""
    budget = format_bytes(int(comparison.settings["memory budget"]))
    if not choice.fits:
        return f"Nothing fits in the memory budget of {budget}."
    if [one.name for one in choice.left_out] == ["Exact"]:
        size = format_bytes(advice.matrix_bytes(comparison))
        return f"The exact matrix would take {size}, more than the memory budget of {budget}."
    number = counted(len(choice.left_out), "candidate", ",")
    needs = "needs" if len(choice.left_out) == 1 else "need"
    return f"{number[0].upper()}{number[1:]} {needs} more than the memory budget of {budget}."


def _beside(comparison: Comparison, choice: Choice) -> str:
    """Give the scores of the other kind: of baselines beside a kernel, or the other way."""
    name, chosen = comparison.score_name, choice.result
    if isinstance(chosen, Baseline):
        best = comparison.best
        return f"The recommended kernel, {described(best)}, has {name} {score(best)}."
    others = [one for one in comparison.baselines if one.name in BASELINES]
    if not others:
        return ""
    listed = " and ".join(f"{described(one)} {one.score:.3f}" for one in others)
    return f"Without a kernel: {listed}."


def worth(comparison: Comparison) -> tuple[str, str]:
    """Whether a kernel is worth it, in a word, and the scores that say so."""
    chosen = comparison.winner
    kernel = comparison.best.score or 0.0
    if not isinstance(chosen, Baseline):
        answer = "Yes"
    elif chosen.name == "Dummy":
        answer = "Nothing predicts this target"
    else:
        is_better = chosen.score - kernel > chosen.standard_error
        answer = f"No: {described(chosen)} is {'better' if is_better else 'as good, and faster'}"
    listed = ", ".join(f"{_plain(one)} {one.score:.3f}" for one in comparison.baselines)
    best = f"{comparison.score_name} of the recommended kernel: {kernel:.3f}"
    return answer, f"{best[0].upper()}{best[1:]}. Without a kernel: {listed}."


def _plain(result: Baseline) -> str:
    return described(result).removeprefix("a ").removeprefix("the ")


def affordable(comparison: Comparison) -> tuple[bool, str]:
    """Whether the exact matrix of all rows fits in the memory budget, and a sentence about it."""
    size, budget = advice.matrix_bytes(comparison), int(comparison.settings["memory budget"])
    rows = counted(comparison.data.rows, "row", ",")
    if size > budget:
        return False, (
            f"The exact matrix of {rows} would take {format_bytes(size)}; the memory budget is "
            f"{format_bytes(budget)}."
        )
    said = f"The exact matrix of {rows} takes {format_bytes(size)}; the memory budget is "
    return True, f"{said}{format_bytes(budget)}.{_time(comparison)}"


def _time(comparison: Comparison) -> str:
    exact, best = comparison.exact, comparison.best
    if exact is None or best.is_exact:
        return ""
    return (
        f" But it is slower: all rows would take about {seconds(exact.seconds_all)}, and "
        f"{seconds(best.seconds_all)} with {best.name}."
        if exact.seconds_all > best.seconds_all
        else ""
    )
