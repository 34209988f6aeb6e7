"""The verdicts of the experiments as Markdown: ``docs/reproduction.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramian.analysis.report.text import seconds

if TYPE_CHECKING:
    from gramian.experiments.outcomes import Outcome, Reproduction

VERDICTS = "reproduced", "inconclusive", "differs", "not run"
PLURAL = {"differs": "differ"}
COLUMNS = "experiment", "the paper says", "measured", "verdict", "runs that hold", "date"
INTRODUCTION = """\
gramian measures the figures, tables and theorems of the papers behind it and compares the numbers \
with what the paper says. Each one is a class in `gramian.experiments`, whose criteria were fixed \
before the run.

The runs, each with its own seed, are divided into ten replicates where there are that many. A \
result is *reproduced* if every criterion holds for all runs together and in nine of ten \
replicates. It *differs* if one fails for all runs together and in at least half of the \
replicates. Otherwise it is *inconclusive*. "Runs that hold" counts the replicates in which every \
claim holds; results without random draws have none. A claim on the spread of the runs is judged \
on all runs but those of each replicate.

What is fitted is also compared with the papers' formulas in dense float64 matrices. A method that \
is broken on purpose changes its verdict: `gramian reproduce --breaks` prints the table."""


def summary(reproduction: Reproduction) -> str:
    """Return one table per paper, then what is not reproduced, and what is missing."""
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
        f"{counted(reproduction)} {kind(reproduction)} {measured(reproduction)}",
    ]
    for paper, outcomes in reproduction.papers.items():
        parts += [f"## {paper}", _table(outcomes)]
    others = [each for each in reproduction.outcomes if each.reproduced is False]
    if others:
        parts += ["## What differs or stays open", *map(_difference, others)]
    if reproduction.missing:
        lines = [f"- **{name}.** {_plain(why)}" for name, why in reproduction.missing.items()]
        parts += ["## What is missing", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def counted(reproduction: Reproduction) -> str:
    """Count the experiments by verdict, and what is missing."""
    outcomes, missing = reproduction.outcomes, len(reproduction.missing)
    numbers = {word: sum(each.word == word for each in outcomes) for word in VERDICTS}
    said = [f"{n} {PLURAL.get(word, word) if n > 1 else word}" for word, n in numbers.items() if n]
    if missing:
        said.append(f"{missing} missing")
    total = len(outcomes) + missing
    what = "figure, table or theorem" if total == 1 else "figures, tables and theorems"
    return f"{total} {what}: {', '.join(said)}."


def rated(each: Outcome) -> str:
    """Return how many replicates hold: "9 of 10"."""
    if each.rate is None:
        return ""
    return f"{round(each.rate * each.replicates)} of {each.replicates}"


def kind(reproduction: Reproduction) -> str:
    if reproduction.settings.quick:
        return "This is a quick run, on data that ships with scikit-learn."
    return "This is a full run, on the papers' data sets where they are available."


def measured(reproduction: Reproduction) -> str:
    """Return a sentence on how long it took, on which machines and with which versions.

    The times of pieces that ran at once are added up.
    """
    outcomes = reproduction.outcomes
    wall, cpu = sum(each.seconds for each in outcomes), sum(each.cpu_seconds for each in outcomes)
    where = f" on {', '.join(reproduction.machines)}" if reproduction.machines else ""
    return (
        f"Measured in {seconds(wall)} ({seconds(cpu)} of CPU time){where}, with "
        f"{reproduction.versions}."
    )


def _table(outcomes: list[Outcome]) -> str:
    rows = [
        (
            each.name,
            each.claim,
            each.verdict or each.reason,
            each.word if each.reproduced else f"**{each.word}**",
            rated(each),
            each.measured,
        )
        for each in outcomes
    ]
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(tuple(map(_plain, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _difference(each: Outcome) -> str:
    failed = " ".join(check.text for check in each.checks if not check.is_passed)
    return _plain(f"**{each.name}.** {failed} {each.note}".rstrip())


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
