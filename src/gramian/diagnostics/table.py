"""Results that print as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Table(list[Any]):
    """A list of named tuples that prints as a table."""

    def __repr__(self) -> str:
        return lines(self[0]._fields, self) if self else "Table([])"


def lines(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Align columns, numbers to the right."""
    lines = [[_cell(value) for value in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
