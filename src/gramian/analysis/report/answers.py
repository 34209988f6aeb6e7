"""The top of the report: short answers, the recommendation with its code, the preparation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramian.analysis.comparison import words
from gramian.analysis.comparison.measurements import Baseline
from gramian.analysis.report import views
from gramian.analysis.report.shell import section
from gramian.analysis.report.text import escape, format_bytes, percent, seconds
from gramian.backend.wording import counted

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison


def answers(comparison: Comparison) -> str:
    fits, sentence = comparison.affordable
    cards = [
        (
            "Can you afford the exact kernel?",
            f"{'Yes' if fits else 'No'}: {format_bytes(comparison.matrix_bytes)}",
            sentence,
        ),
        (_which(comparison), comparison.best.name, _cost(comparison)),
        ("How good is it?", *_quality(comparison)),
    ]
    if comparison.baselines:
        cards.insert(0, ("Is a kernel worth it?", *words.worth(comparison)))
    return f'<div class="answers of{len(cards)}">' + "".join(
        f'<div class="answer"><h2>{escape(question)}</h2><strong>{escape(answer)}</strong>'
        f"<p>{escape(more)}</p></div>"
        for question, answer, more in cards
    ) + "</div>"  # fmt: skip


def _which(comparison: Comparison) -> str:
    if isinstance(comparison.winner, Baseline):
        return "Which kernel, if you want one?"
    return "Which approximation?"


def _cost(comparison: Comparison) -> str:
    best = comparison.best
    rows = counted(comparison.data.rows, "row", ",")
    took = f"All {rows} take about {seconds(best.seconds_all)} and {format_bytes(best.nbytes_all)}"
    if best.is_exact:
        return f"The kernel itself, without an approximation. {took}."
    share = percent(best.nbytes_all / comparison.matrix_bytes)
    return f"With {counted(best.size, 'feature', ',')}. {took}: {share} of the exact matrix."


def _quality(comparison: Comparison) -> tuple[str, str]:
    best, exact, name = comparison.best, comparison.exact, comparison.score_name
    matrix = f"Its kernel matrix is off by {views.interval(best)}."
    if best.is_exact:
        matrix = "Its kernel matrix is exact."
    if name is None:
        return ("No error" if best.is_exact else f"{percent(best.error)} error"), matrix
    other = ""
    if exact is not None and exact.score is not None and not best.is_exact:
        other = f" The exact kernel reaches {exact.score:.3f}."
    return f"{name[0].upper()}{name[1:]} {words.score(best)}", f"{matrix}{other}"


def code(comparison: Comparison) -> str:
    shown = _box(comparison.code, "code")
    if isinstance(comparison.winner, Baseline):
        shown += (
            f"<details><summary>The same with the recommended kernel, "
            f"{escape(words.described(comparison.best))}</summary>"
            f"{_box(comparison.code_of(comparison.best), 'kernel-code')}</details>"
        )
    return f'<p class="recommendation">{escape(comparison.recommendation)}</p>{shown}'


def _box(text: str, name: str) -> str:
    return (
        '<div class="code"><pre tabindex="0" role="region" aria-label="Python code to paste">'
        f'<code id="{name}">{escape(text)}</code></pre>'
        f'<button class="copy" type="button" data-copies="{name}" hidden>Copy</button></div>'
    )


def preparation(comparison: Comparison) -> str:
    """Name what was done to the columns of a file."""
    reading = comparison.reading
    if reading is None:
        return ""
    steps = "".join(f"<li>{escape(step)}</li>" for step in reading.steps)
    intro = "What the code does to the columns before a kernel sees them:"
    return section(
        "How the table was prepared",
        intro if steps else "The columns were used as they are.",
        f'<ul class="steps">{steps}</ul>' if steps else "",
    )
