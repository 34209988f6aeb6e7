"""The verdicts of the experiments as Markdown: ``docs/reproduction.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramian.analysis.report.text import seconds

if TYPE_CHECKING:
    from gramian.experiments.outcomes import Outcome, Reproduction

WORDS = {True: "reproduced", False: "differs", None: "not run"}
COLUMNS = "experiment", "the paper says", "measured", "verdict", "date"
INTRODUCTION = """\
gramian measures every figure, table and theorem of the papers behind it and compares the numbers \
with what the paper says. Each one is a class in `gramian.experiments`, with checks that fail if a \
method is broken. It is *reproduced* if all its checks hold."""


def summary(reproduction: Reproduction) -> str:
    """Return one table per paper, then what differs, with the notes of the experiments."""
    command = "gramian reproduce"
    if reproduction.settings.quick:
        command += " --quick"
    if reproduction.settings.rows:
        command += f" --rows {reproduction.settings.rows}"
    parts = [
        "# The papers, reproduced",
        INTRODUCTION,
        f"`{command} --summary reproduction.md` writes this page and an HTML report with all "
        "figures, settings and numbers.",
        f"{counted(reproduction.outcomes)} {kind(reproduction)} Measured in "
        f"{seconds(sum(each.seconds for each in reproduction.outcomes))} with "
        f"{reproduction.versions}.",
    ]
    for paper, outcomes in reproduction.papers.items():
        parts += [f"## {paper}", _table(outcomes)]
    differing = [each for each in reproduction.outcomes if each.reproduced is False]
    if differing:
        parts += ["## What differs", *map(_difference, differing)]
    return "\n\n".join(parts) + "\n"


def counted(outcomes: list[Outcome]) -> str:
    """Count the experiments by verdict."""
    numbers = {word: 0 for word in WORDS.values()}
    for each in outcomes:
        numbers[WORDS[each.reproduced]] += 1
    if numbers["differs"] > 1:
        numbers["differ"] = numbers.pop("differs")
    said = ", ".join(f"{n} {word}" for word, n in numbers.items() if n)
    what = "figure, table or theorem" if len(outcomes) == 1 else "figures, tables and theorems"
    return f"{len(outcomes)} {what}: {said}."


def kind(reproduction: Reproduction) -> str:
    if reproduction.settings.quick:
        return "This is a quick run, on data that ships with scikit-learn."
    return "This is a full run, on the papers' data sets where they are available."


def _table(outcomes: list[Outcome]) -> str:
    rows = [
        (
            each.name,
            each.claim,
            each.verdict or each.reason,
            WORDS[each.reproduced] if each.reproduced else f"**{WORDS[each.reproduced]}**",
            each.measured,
        )
        for each in outcomes
    ]
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(tuple(map(_plain, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _difference(each: Outcome) -> str:
    failed = " ".join(check.text for check in each.checks if not check.holds)
    return _plain(f"**{each.name}.** {failed} {each.note}".rstrip())


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
