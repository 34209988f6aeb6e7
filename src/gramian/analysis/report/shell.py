"""The frame of every page: head, inline style and script, and a policy that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from gramian.analysis.report.charts import Chart
from gramian.analysis.report.colours import Look
from gramian.analysis.report.text import escape


def document(title: str, facts: str, main: str, footer: str, *, style: str, version: str) -> str:
    """Return a whole page. It loads nothing and runs no script but its own.

    ``facts``, ``main``, ``footer`` and ``style`` are HTML and CSS; the others are plain text.
    """
    script = _file("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="gramian {escape(version)}">
<title>{escape(title)}</title>
<style>
{style}
</style>
</head>
<body class="gramian">
<header>
<h1 dir="auto">{escape(title)}</h1>
<p class="facts">{facts}</p>
</header>
<main>
{main}
</main>
<footer>{footer} This file is
self-contained and loads nothing.</footer>
<script>{script}</script>
</body>
</html>
"""


def style(looks: Iterable[Look], light: str = "", dark: str = "") -> str:
    """Return the style sheet, with the colours of methods for light and dark pages."""
    by_number = list(looks)

    def colours(is_dark: bool) -> str:
        return "".join(
            f".gramian .c{i}{{--c:{look.dark if is_dark else look.light}}}"
            for i, look in enumerate(by_number)
        )

    return (
        f"{_file('style.css')}{colours(False)}{light}"
        f"@media screen and (prefers-color-scheme: dark){{{colours(True)}{dark}}}"
    )


def section(title: str, intro: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2><p>{escape(intro)}</p>{''.join(parts)}</section>"


def figure(chart: Chart, caption: str) -> str:
    return f"<figure>{chart.svg()}<figcaption>{escape(caption)}</figcaption></figure>"


@cache
def _file(name: str) -> str:
    return (files("gramian.analysis.report") / name).read_text(encoding="utf-8")
