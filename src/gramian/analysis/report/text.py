"""Numbers formatted for people, and text escaped for HTML."""

from __future__ import annotations

import html
import unicodedata
from math import floor, isfinite, log10

from gramian.backend.config import format_bytes

__all__ = ["count", "escape", "format_bytes", "percent", "seconds", "short", "significant"]


def escape(value: object) -> str:
    """Escape any text for HTML elements and attributes.

    Control characters and lone surrogates are replaced.
    """
    said = str(value).encode("utf-8", "replace").decode("utf-8")
    shown = (c if c in "\n\t" or unicodedata.category(c) != "Cc" else "\ufffd" for c in said)
    return html.escape("".join(shown), quote=True)


def short(text: str, most: int) -> str:
    """Return a name on one line, shortened if it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def percent(share: float, digits: int = 2) -> str:
    """0.0198 -> ``"2.0%"``; values at the level of rounding errors all look the same."""
    if 0 < share < 1e-6:
        return "<0.0001%"
    return f"{significant(100 * share, digits)}%"


def seconds(value: float) -> str:
    """0.0123 -> ``"12 ms"``."""
    if value < 1e-3:
        return f"{significant(value * 1e6)} µs"
    if value < 1:
        return f"{significant(value * 1e3)} ms"
    return f"{significant(value)} s" if value < 120 else f"{significant(value / 60)} min"


def count(value: float) -> str:
    """1234567 -> ``"1.2 million"``; up to a hundred thousand with all digits."""
    if value < 1e5:
        return f"{value:,.0f}"
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{significant(value / size)} {name}"
    return f"{significant(value / 1e3)} thousand"


def significant(value: float, digits: int = 2) -> str:
    """Format with at least ``digits`` digits; an exponent only for very small numbers."""
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    places = digits - 1 - floor(log10(abs(value)))
    if places > 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(places, 0)}f}"
