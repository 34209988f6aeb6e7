"""The report as one HTML file, including its style, script and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gramian.analysis.comparison.advice import is_scored
from gramian.analysis.comparison.measurements import Baseline
from gramian.analysis.report import pictures, views
from gramian.analysis.report.answers import answers, code, preparation
from gramian.analysis.report.shell import document, figure, section, style
from gramian.analysis.report.table import table
from gramian.analysis.report.text import escape, format_bytes, percent, significant
from gramian.backend.typing import PathLike
from gramian.backend.wording import counted
from gramian.backend.writing import whole_file

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison
    from gramian.analysis.comparison.structure import GammaView

NAMES_SHOWN = 12


def write(comparison: Comparison, path: PathLike, title: str | None = None) -> Path:
    """Write the page; a failure leaves no partial file."""
    target = Path(path).expanduser()
    content = page(comparison, title).encode("utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as file:
        file.write(content)
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
    parts = [answers(comparison), code(comparison), preparation(comparison)]
    if comparison.score_name is not None:
        parts.append(_scores(comparison))
    parts.append(_errors(comparison))
    parts.append(_matrix(comparison))
    if comparison.structure.gammas:
        parts.append(_gammas(comparison))
    parts += [_measurements(comparison), _left_out(comparison), _settings(comparison)]
    return parts


# What it is about.


def _title(comparison: Comparison) -> str:
    source = comparison.data.source
    return f"Which kernel for {Path(source).name}?" if source else "Which kernel?"


def _facts(comparison: Comparison) -> str:
    data = comparison.data
    rows = f"{counted(data.rows, 'row', ',')} with {counted(data.columns, 'column', ',')}"
    held = f", scored on {data.held_out:,} held-out rows" if data.held_out else ""
    measured = counted(data.measured, "row", ",")
    return escape(f"{comparison.kernel_source} on {rows}; measured on {measured}{held}.")


# Charts.


def _errors(comparison: Comparison) -> str:
    repeats = comparison.settings["repeats"]
    fits = f", over {repeats} fits with different seeds" if repeats > 1 else ""
    ring = (
        ""
        if isinstance(comparison.winner, Baseline) or comparison.best.is_exact
        else " The ring marks "
    )
    return section(
        "Error against memory and time",
        "How far the similarities between rows are from those of the exact kernel: at 0% they are "
        "the same, at 100% nothing is left of them. Filled marks are on the frontier (the grey "
        "staircase): no other approximation has a smaller error at the same cost."
        f"{ring and ring + 'the recommendation.'} Bars show the interval of the error{fits}.",
        '<div class="pair">',
        figure(
            views.error_over_memory(comparison),
            "What to look for: lower left is better. Each line is one approximation, and the "
            "number of features grows from mark to mark. A line that falls steeply gains a lot "
            "from more features.",
        ),
        figure(
            views.error_over_time(comparison),
            "What to look for: the lowest mark at the time you have. Measured on this machine; "
            "times grow with the number of rows.",
        ),
        "</div>",
    )


def _scores(comparison: Comparison) -> str:
    learner = type(comparison.learner).__name__
    held = comparison.data.held_out
    name = str(comparison.score_name)
    name = f"{name[0].upper()}{name[1:]}"
    what = (
        f"{name} of {learner} on {counted(held, 'row', ',')} that it was not fitted to"
        if held
        else f"{name} that the clusters of {learner} explain, measured with the exact kernel"
    )
    beside = " Dashed lines are the exact kernel and models without a kernel."
    if not comparison.baselines:
        beside = " The dashed line is the exact kernel." if comparison.exact else ""
    rule = (
        "What to look for: the leftmost mark above the dashed line, which lies one standard error "
        "below the best score. It is as good as the best, as far as the held-out rows can tell, "
        "and the fastest. The ring marks the recommendation."
        if is_scored(comparison)
        else "What to look for: upper left is better. The ring marks the recommendation."
    )
    if comparison.data.rows != comparison.data.measured + held:
        rule += " It is for all rows, so times are scaled up to them first."
    return section(
        "Score of the learner",
        f"{what}; higher is better.{beside} An approximation can have a visible error and still do "
        "as well as the exact kernel. The axis is stretched towards 1.",
        '<div class="pair">',
        figure(
            views.score_over_size(comparison),
            "What to look for: where a line becomes flat, more features gain nothing.",
        ),
        figure(views.score_over_time(comparison), rule),
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
    return section(
        "Why: the kernel matrix",
        f"The similarities of {found.rows:,} rows with each other, which every approximation has "
        "to describe with fewer numbers.",
        '<div class="pair">',
        figure(
            views.spectrum(comparison),
            "What to look for: the faster the curve falls, the fewer features are needed. "
            + views.spectrum_sentence(comparison),
        ),
        f"<figure>{picture}{key}<figcaption>What to look for: strong squares with little between "
        "them mean separate clusters, which BKA and MEKA describe one by one. The lines separate "
        f"the clusters of kernel k-means. {escape(views.block_sentence(comparison))}"
        "</figcaption></figure></div>",
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
    return section(
        "Effect of gamma",
        f"gamma sets how near two rows must be to count as similar. Here it is "
        f"{significant(own.gamma, 3)}, {comparison.settings['gamma']}. "
        f"{views.gamma_sentence(comparison)} What to look for: an empty picture means that hardly "
        "any rows are similar, an evenly filled one that all are.",
        f'<ul class="gammas">{cards}</ul>',
    )


def _gamma(comparison: Comparison, view: GammaView) -> str:
    times = {0.25: "¼ gamma", 0.5: "½ gamma", 1.0: "gamma"}
    name = times.get(view.factor, f"{view.factor:g} times gamma")
    numbers = [("gamma", significant(view.gamma, 3)), ("error", percent(view.error))]
    if view.score is not None and comparison.score_name is not None:
        numbers.append((comparison.score_name, f"{view.score:.3f}"))
    numbers.append(("directions", significant(view.effective_dimension)))
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
    if comparison.baselines:
        rows += (
            ". Gradient boosting and the linear model are scikit-learn's, with default settings; "
            "the dummy looks only at the target"
        )
    notes = {(r.name, r.note): None for r in comparison.results if r.note}
    listed = "".join(f"<li>{escape(name)}: {escape(note)}</li>" for name, note in notes)
    return section(
        "All measurements",
        f"{rows}. Time and kernel values are for {counted(data.measured, 'row', ',')}"
        f"{', with the prediction of the held-out rows' if data.held_out else ''}.",
        table(comparison, sorts=True),
        f'<ul class="notes muted">{listed}</ul>' if listed else "",
    )


def _left_out(comparison: Comparison) -> str:
    if not comparison.failures:
        return ""
    items = "".join(
        f"<li>{escape(f.name)}{escape(_sizes(f.sizes))}: {escape(f.reason)}</li>"
        for f in comparison.failures
    )
    return section("Not measured", "What failed on this data, and why.", f"<ul>{items}</ul>")


def _sizes(sizes: tuple[int, ...]) -> str:
    return f" ({', '.join(f'{size:,}' for size in sizes)})" if sizes else ""


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
    if comparison.reading is None:
        listed.append(("columns are", "as given: not scaled, filled or encoded"))
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
