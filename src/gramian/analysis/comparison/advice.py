"""The rule by which a comparison recommends: the fastest that is as good as the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gramian.analysis.comparison.measurements import Baseline, Measurement

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison

Result = Measurement | Baseline


class Choice(NamedTuple):
    """The chosen result, and what it was chosen from."""

    result: Result
    top: Result  # the one with the best score or the least error
    good: list[Result]  # those that are good enough, within the budget
    is_good: bool  # False if none was good enough, and this one is only nearest to it
    left_out: list[Measurement]  # results that do not fit in the memory budget
    fits: bool  # False if none fits in the budget, and this one takes least memory


def best(comparison: Comparison) -> Measurement:
    """Return the recommended kernel: an approximation or the exact matrix."""
    result = choice(comparison, ()).result
    assert isinstance(result, Measurement)
    return result


def winner(comparison: Comparison) -> Result:
    """Return the recommended result, with models without a kernel among the candidates."""
    return choice(comparison, comparison.baselines).result


def choice(comparison: Comparison, others: Sequence[Baseline]) -> Choice:
    """Choose among all results within the memory budget, and other models."""
    budget = int(comparison.settings["memory budget"])
    left_out = [result for result in comparison.results if result.nbytes_all > budget]
    fitting = [result for result in comparison.results if result.nbytes_all <= budget]
    if not fitting and not others:
        least = min(comparison.results, key=lambda result: result.nbytes_all)
        return Choice(least, least, [least], True, left_out, False)
    if is_scored(comparison):
        return _by_score([*fitting, *others], left_out)
    return _by_error(fitting, left_out, comparison.settings["max error"])


def is_scored(comparison: Comparison) -> bool:
    """Whether there are scores on held-out rows."""
    return comparison.data.held_out > 0


def _by_score(results: Sequence[Result], left_out: list[Measurement]) -> Choice:
    top = max(results, key=_score)
    least = _score(top) - (top.standard_error or 0.0)
    good = [result for result in results if _score(result) >= least]
    chosen = min(good, key=lambda result: (result.seconds_all, -_score(result)))
    return Choice(chosen, top, good, True, left_out, True)


def _by_error(results: Sequence[Measurement], left_out: list[Measurement], most: float) -> Choice:
    top = min(results, key=lambda result: (result.error, result.seconds_all))
    good: list[Result] = [result for result in results if result.error <= most]
    if not good:
        return Choice(top, top, [top], False, left_out, True)
    chosen = min(good, key=lambda result: result.seconds_all)
    return Choice(chosen, top, good, True, left_out, True)


def _score(result: Result) -> float:
    return float("-inf") if result.score is None else result.score


def matrix_bytes(comparison: Comparison) -> int:
    """Return the size of the exact matrix of all rows."""
    return comparison.settings["bytes per kernel value"] * comparison.data.rows**2
