"""The report as one HTML file, including its style, script and pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.analysis.report import pictures, views
from gramian.analysis.report.shell import document, figure, style
from gramian.analysis.report.table import table
from gramian.analysis.report.text import escape, format_bytes, percent, significant
from gramian.backend.wording import counted

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison
    from gramian.analysis.comparison.structure import GammaView

NAMES_SHOWN = 12


def write(comparison: Comparison, path: Any, title: str | None = None) -> Path:
    """Write the page; a failure leaves no partial file."""
    target = Path(path).expanduser()
    content = page(comparison, title).encode("utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def page(comparison: Comparison, title: str | None = None) -> str:
    """Return the whole page. It loads nothing and runs no script but its own."""
    version = str(comparison.settings["versions"]["gramian"])
    measured = escape(comparison.settings["measured"])
    return document(
        _title(comparison) if title is None else title,
        _facts(comparison),
        "".join(_sections(comparison)),
        f"Measured {measured} with gramian {escape(version)}.",
        style=_style(comparison),
        version=version,
    )


def fragment(comparison: Comparison) -> str:
    """Return a short form for notebooks: the recommendation, the first chart and the table."""
    return (
        f'<style>{_style(comparison)}</style><div class="gramian">'
        f'<p class="recommendation">{escape(comparison.recommendation)}</p>'
        f"<figure>{views.error_over_memory(comparison).svg()}</figure>"
        f"{table(comparison, sorts=False)}</div>"
    )


def _sections(comparison: Comparison) -> list[str]:
    parts = [_answers(comparison), _code(comparison), _errors(comparison)]
    if comparison.score_name is not None:
        parts.append(_scores(comparison))
    parts.append(_matrix(comparison))
    if comparison.structure.gammas:
        parts.append(_gammas(comparison))
    parts += [_measurements(comparison), _left_out(comparison), _settings(comparison)]
    return parts


# What it is about.


def _title(comparison: Comparison) -> str:
    source = comparison.data.source
    return f"Which approximation for {Path(source).name}?" if source else "Which approximation?"


def _facts(comparison: Comparison) -> str:
    data = comparison.data
    rows = f"{counted(data.rows, 'row', ',')} with {counted(data.columns, 'column', ',')}"
    held = f", scored on {data.held_out:,} held-out rows" if data.held_out else ""
    measured = counted(data.measured, "row", ",")
    return escape(f"{comparison.kernel_source} on {rows}; measured on {measured}{held}.")


def _answers(comparison: Comparison) -> str:
    from_budget, sentence = comparison.affordable
    best, exact = comparison.best, comparison.exact
    size = format_bytes(comparison.matrix_bytes)
    good = f"{percent(best.error)} error"
    beside = f"Relative to K, in the Frobenius norm: {views.interval(best)}."
    if comparison.score_name is not None:
        good = f"{comparison.score_name} {best.score:.3f}"
        good = good[0].upper() + good[1:]
        other = f" The exact kernel reaches {exact.score:.3f}." if exact and exact.score else ""
        beside = f"Its relative error is {views.interval(best)}.{other}"
    share = best.nbytes_all / comparison.matrix_bytes
    memory = (
        f"With {counted(best.size, 'feature', ',')}, all rows take "
        f"{format_bytes(best.nbytes_all)}: {percent(share)} of the exact matrix."
    )
    cards = (
        ("Can you afford the exact kernel?", f"{'Yes' if from_budget else 'No'}: {size}", sentence),
        ("Which approximation?", best.name, memory),
        ("How good is it?", good, beside),
    )
    return '<div class="answers">' + "".join(
        f'<div class="answer"><h2>{escape(question)}</h2><strong>{escape(answer)}</strong>'
        f"<p>{escape(more)}</p></div>"
        for question, answer, more in cards
    ) + "</div>"  # fmt: skip


def _code(comparison: Comparison) -> str:
    return (
        f'<p class="recommendation">{escape(comparison.recommendation)}</p>'
        '<div class="code"><pre tabindex="0" role="region" aria-label="Python code to paste">'
        f'<code id="code">{escape(comparison.code)}</code></pre>'
        '<button class="copy" type="button" data-copies="code" hidden>Copy</button></div>'
    )


# Charts.


def _section(title: str, intro: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2><p>{escape(intro)}</p>{''.join(parts)}</section>"


def _errors(comparison: Comparison) -> str:
    repeats = comparison.settings["repeats"]
    fits = f", over {repeats} fits with different seeds" if repeats > 1 else ""
    return _section(
        "Error against memory and time",
        "Lower left is better. Filled marks are on the frontier (the grey staircase): no other "
        "approximation has a smaller error at the same cost. The ring marks the recommendation; "
        f"bars show the interval of the error{fits}.",
        '<div class="pair">',
        figure(
            views.error_over_memory(comparison),
            "Each line is one approximation; the number of features grows from mark to mark.",
        ),
        figure(
            views.error_over_time(comparison),
            "Measured on this machine; times grow with the number of rows.",
        ),
        "</div>",
    )


def _scores(comparison: Comparison) -> str:
    learner = type(comparison.learner).__name__
    where = (
        f"on {counted(comparison.data.held_out, 'held-out row', ',')}"
        if comparison.data.held_out
        else "measured with the exact kernel"
    )
    exact = comparison.exact
    line = " The dashed line is the exact kernel." if exact and exact.score else ""
    name = str(comparison.score_name)
    return _section(
        "Score of the learner",
        f"{name[0].upper()}{name[1:]} of {learner} {where}; higher is better.{line} An "
        "approximation can have a visible error and still predict as well as the exact kernel. "
        "The axis is stretched towards 1.",
        '<div class="pair">',
        figure(views.score_over_size(comparison), "The gain from more features."),
        figure(views.score_over_memory(comparison), "The gain from more memory."),
        "</div>",
    )


# The kernel matrix.


def _matrix(comparison: Comparison) -> str:
    found = comparison.structure
    signed = _is_signed(comparison)
    edges = np.cumsum(found.blocks)[:-1]
    n = len(found.picture)
    lines = "".join(f"M{e},0V{n}M0,{e}H{n}" for e in edges)
    picture = (
        '<div class="matrix">'
        + _picture(
            found.picture, f"The kernel matrix of {counted(n, 'row')}, sorted by cluster", signed
        )
        + f'<svg viewBox="0 0 {n} {n}" preserveAspectRatio="none" aria-hidden="true">'
        + f'<path d="{lines}"/></svg></div>'
    )
    key = (
        f'<div class="key" aria-hidden="true"><span>{"-1" if signed else "0"}</span><i></i>'
        "<span>1</span><span>kernel value of a pair of rows</span></div>"
    )
    return _section(
        "Why: the kernel matrix",
        f"The kernel matrix of {found.rows:,} rows shows which approximations can work.",
        '<div class="pair">',
        figure(views.spectrum(comparison), views.spectrum_sentence(comparison)),
        f"<figure>{picture}{key}<figcaption>{escape(views.block_sentence(comparison))} "
        "The lines separate the clusters of kernel k-means.</figcaption></figure></div>",
    )


def _picture(matrix: np.ndarray, said: str, signed: bool) -> str:
    light, dark = (pictures.data_uri(matrix, dark=dark, signed=signed) for dark in (False, True))
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(said)}" width="{len(matrix)}" height="{len(matrix)}">'
        "</picture>"
    )


def _is_signed(comparison: Comparison) -> bool:
    """Whether the picture needs colours for negative kernel values."""
    return bool(comparison.structure.picture.min() < -0.02)


def _gammas(comparison: Comparison) -> str:
    views_ = comparison.structure.gammas
    own = next(view for view in views_ if view.factor == 1)
    cards = "".join(_gamma(comparison, view) for view in views_)
    return _section(
        "Effect of gamma",
        f"Here gamma is {significant(own.gamma, 3)}, {comparison.settings['gamma']}. "
        f"{views.gamma_sentence(comparison)}",
        f'<ul class="gammas">{cards}</ul>',
    )


def _gamma(comparison: Comparison, view: GammaView) -> str:
    times = {0.25: "¼ gamma", 0.5: "½ gamma", 1.0: "gamma"}
    name = times.get(view.factor, f"{view.factor:g} times gamma")
    numbers = [("gamma", significant(view.gamma, 3)), ("error", percent(view.error))]
    if view.score is not None and comparison.score_name is not None:
        numbers.append((comparison.score_name, f"{view.score:.3f}"))
    numbers.append(("eff. dimension", significant(view.effective_dimension)))
    numbers.append(("within clusters", percent(view.within)))
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in numbers)
    image = _picture(view.picture, f"The kernel matrix at {name}", _is_signed(comparison))
    own = " own" if view.factor == 1 else ""
    said = f"{name}, in use" if own else name
    return (
        f'<li class="gamma{own}"><div class="frame">{image}</div><h3>{escape(said)}</h3>'
        f"<dl>{listed}</dl></li>"
    )


# Numbers and settings.


def _measurements(comparison: Comparison) -> str:
    data = comparison.data
    rows = f"Memory is for the factors of all {counted(data.rows, 'row', ',')}"
    if data.rows != data.measured:
        rows += f", extrapolated from the {data.measured:,} that were measured"
    notes = {(r.name, r.note): None for r in comparison.results if r.note}
    listed = "".join(f"<li>{escape(name)}: {escape(note)}</li>" for name, note in notes)
    return _section(
        "All measurements",
        f"{rows}. Time and kernel values are for {counted(data.measured, 'row', ',')}.",
        table(comparison, sorts=True),
        f'<ul class="notes muted">{listed}</ul>' if listed else "",
    )


def _left_out(comparison: Comparison) -> str:
    if not comparison.failures:
        return ""
    items = "".join(
        f"<li>{escape(f.name)} ({escape(', '.join(f'{size:,}' for size in f.sizes))}): "
        f"{escape(f.reason)}</li>"
        for f in comparison.failures
    )
    return _section(
        "Not measured", "Approximations that failed on this data, and why.", f"<ul>{items}</ul>"
    )


def _settings(comparison: Comparison) -> str:
    data, settings = comparison.data, comparison.settings
    listed: list[tuple[str, str]] = []
    if data.source:
        listed.append(("data", escape(data.source)))
    columns = counted(data.columns, "column", ",")
    listed.append(("rows", escape(f"{data.rows:,} with {columns}, {data.kind}")))
    if data.names:
        shown = ", ".join(f"<bdi>{escape(name)}</bdi>" for name in data.names[:NAMES_SHOWN])
        more = len(data.names) - NAMES_SHOWN
        listed.append(("columns", shown + (f" and {more:,} more" if more > 0 else "")))
    held = f", {data.held_out:,} held out" if data.held_out else ""
    listed += [
        ("measured on", escape(f"{counted(data.measured, 'row', ',')}{held}")),
        ("kernel", f"<code>{escape(comparison.kernel_source)}</code>"),
        ("sizes", escape(", ".join(f"{size:,}" for size in settings["sizes"]))),
        ("repeats", escape(settings["repeats"])),
        ("seed", escape(settings["seed"])),
        ("threads", escape(settings["threads"])),
        ("memory budget", escape(format_bytes(settings["memory budget"]))),
    ]
    if comparison.learner is not None:
        said = " ".join(repr(comparison.learner).split())
        listed.append(("learner", f"<code>{escape(said)}</code>"))
    versions = settings["versions"]
    packages = [f"{name} {said}" for name, said in versions.items() if name != "system"]
    listed += [("versions", escape(", ".join(packages))), ("system", escape(versions["system"]))]
    items = "".join(f"<dt>{escape(name)}</dt><dd>{said}</dd>" for name, said in listed)
    return f'<section><h2>Settings and versions</h2><dl class="settings">{items}</dl></section>'


# Style.


def _style(comparison: Comparison) -> str:
    signed = _is_signed(comparison)
    light, dark = (
        f".gramian{{--map:{pictures.gradient(dark=is_dark, signed=signed)}}}"
        for is_dark in (False, True)
    )
    return style(views.methods(comparison).values(), light, dark)
