"""Whether goals are met: ratios of medians with their intervals, and equal quality."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.job import Goal, Quality
from benchmarks.peers.record import Entry, JobRecord, Verdict

RESAMPLES = 2000
COVERED = 0.9  # of the resampled figures lie in an interval


def compared(ours: list[float], theirs: list[float], difference: bool = False) -> np.ndarray:
    """Theirs over ours by their medians (or ours less theirs): the figure, and its interval.

    Rounds are drawn anew with replacement, both sides of a round together, since whatever else the
    machine did in a round met both.
    """
    pairs = np.array([ours, theirs])
    draws = np.random.default_rng(0).integers(pairs.shape[1], size=(RESAMPLES, pairs.shape[1]))
    a, b = np.median(pairs, axis=1)
    A, B = np.median(pairs[:, draws], axis=2)
    low, high = (1 - COVERED) / 2, (1 + COVERED) / 2
    figures = A - B if difference else B / A
    return np.array([a - b if difference else b / a, *np.quantile(figures, [low, high])])


def judge(goal: Goal, record: JobRecord, quality: Quality | None) -> Verdict:
    """The verdict on one goal, with "?" after it where the interval does not decide it."""
    verdict = Verdict(str(goal), goal.by, goal.against, goal.of)
    ours, theirs = record.entry(goal.by), record.entry(goal.against)
    for entry in (ours, theirs):
        if entry.problem:
            verdict.verdict = f"{entry.contender}: {entry.problem}"
            return verdict
    figure, low, high = map(float, _figures(goal, ours, theirs))
    verdict.reached, verdict.low, verdict.high = figure, low, high
    sign = -1.0 if goal.is_difference else 1.0
    met = sign * figure >= sign * goal.bound
    clear = low > goal.bound or high < goal.bound or low == high
    verdict.verdict = ("met" if met else "missed") + ("" if clear else "?")
    if quality is not None and not _as_good(goal, ours, theirs, quality):
        verdict.verdict = f"worse {quality.name}"
    return verdict


def _figures(goal: Goal, ours: Entry, theirs: Entry) -> np.ndarray:
    if goal.of in ("seconds", "added seconds"):
        return compared(ours.seconds, theirs.seconds, goal.is_difference)
    a, b = getattr(ours, goal.of), getattr(theirs, goal.of)
    return np.full(3, b / a)


def _as_good(goal: Goal, ours: Entry, theirs: Entry, quality: Quality) -> bool:
    slack = quality.slack if goal.slack is None else goal.slack
    if slack is None or ours.quality is None or theirs.quality is None:
        return True
    return quality.no_worse(ours.quality, theirs.quality, slack)


def disagreement(record: JobRecord, quality: Quality | None) -> str:
    """Whose results do not keep to what the job asks of all; empty where all do."""
    if quality is None:
        return ""
    return "; ".join(
        f"{entry.contender}: {quality.name} {entry.quality:.2e} beyond {quality.limit:g}"
        for entry in record.entries
        if entry.quality is not None and not quality.meets_limit(entry.quality)
    )
