"""The page of all experiments: a table of verdicts, then figures and settings of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramian.analysis.report.colours import LOOKS, looks
from gramian.analysis.report.figures import Figure
from gramian.analysis.report.shell import document, style
from gramian.analysis.report.summary import counted, kind, measured, rated
from gramian.analysis.report.text import escape, seconds

if TYPE_CHECKING:
    from gramian.experiments.outcomes import Outcome, Reproduction


def page(reproduction: Reproduction) -> str:
    """Return the whole page; see :func:`gramian.analysis.report.shell.document`."""
    sections = "".join(
        f'<h2 class="paper">{escape(paper)}</h2>{"".join(map(_section, own))}'
        for paper, own in reproduction.papers.items()
    )
    return document(
        "The papers, reproduced",
        escape(f"{counted(reproduction)} {kind(reproduction)}"),
        _summary(reproduction) + sections,
        escape(f"{reproduction.measured}. {measured(reproduction)}"),
        style=style(LOOKS.values()),
        version=reproduction.version,
    )


def _summary(reproduction: Reproduction) -> str:
    rows = "".join(
        f'<tbody><tr><th scope="rowgroup" colspan="4" class="group">{escape(paper)}</th></tr>'
        f"{''.join(map(_row, outcomes))}</tbody>"
        for paper, outcomes in reproduction.papers.items()
    )
    return (
        '<section><h2>Verdicts</h2><div class="scroll" tabindex="0" role="region" '
        'aria-label="Verdicts"><table class="plain verdicts"><thead><tr>'
        '<th scope="col">experiment</th>'
        '<th scope="col">verdict</th><th scope="col">title</th>'
        '<th scope="col" class="number">time</th></tr></thead>'
        f"{rows}</table></div></section>"
    )


def _row(each: Outcome) -> str:
    return (
        f'<tr><td><a href="#{_anchor(each)}">{escape(each.name)}</a></td>'
        f'<td>{_flag(each)}</td><td class="long">{escape(each.title)}</td>'
        f'<td class="number">{escape(seconds(each.seconds)) if each.seconds else ""}</td></tr>'
    )


def _section(each: Outcome) -> str:
    headed = len(each.figures) > 1
    figures = "".join(_drawn(figure, headed) for figure in each.figures)
    settings = dict(each.settings)
    if each.rate is not None:
        settings["replicates that hold"] = rated(each)
    if each.measured:
        settings["measured"] = f"{each.measured}, in {seconds(each.seconds)}"
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_said(value))}</dd>"
        for name, value in settings.items()
    )
    checks = "".join(
        f'<li class="{"held" if check.is_passed else "failed"}">{escape(check.text)}</li>'
        for check in each.checks
    )
    reason = f"<p>{escape(each.reason)}</p>" if each.reason else ""
    noted = "".join(
        f'<p class="muted">{escape(one)}</p>' for one in (each.note, *each.notes) if one
    )
    return (
        f'<section class="experiment" id="{_anchor(each)}">'
        f'<h3 class="experiment">{escape(each.name)}: {escape(each.title)} {_flag(each)}</h3>'
        f'<p><b>The paper:</b> {escape(each.claim)}</p>{reason}<ul class="checks">{checks}</ul>'
        f'{noted}<div class="pair">{figures}<dl class="settings">{listed}</dl></div></section>'
    )


def _drawn(figure: Figure, headed: bool) -> str:
    """Give each method the same look in all figures; other groups take the looks left over."""
    own = looks(figure.names)
    colours = [look.light for look in LOOKS.values()]
    heading = f"<h4>{escape(figure.title)}</h4>" if headed else ""
    return figure.html(
        {name: colours.index(look.light) for name, look in own.items()}, own, heading
    )


def _flag(each: Outcome) -> str:
    kind = {"reproduced": "flag", "differs": "flag differs"}.get(each.word, "flag muted")
    return f'<span class="{kind}">{escape(each.word)}</span>'


def _anchor(each: Outcome) -> str:
    return "e" + "".join(c if c.isalnum() else "-" for c in each.name)


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
