"""Missing values: what to say about them."""

from __future__ import annotations

from collections.abc import Sequence

from gramian.backend.wording import counted
from gramian.rows.files.formats import gaps_in
from gramian.tables.base import Table

MOST_COLUMNS = 5


FILL = (
    "Fill them with --impute median (or mean, most-frequent), or leave those rows out with "
    "--drop-missing."
)
REFIT = "The model was fitted without any: fit it with --impute median, or with --drop-missing."


def check_complete(table: Table, names: Sequence[str], advice: str = FILL) -> None:
    """Raise an error if these columns have gaps, which says where and what to do."""
    some = [name for name in names if table.facts[name].missing or table.facts[name].n_odd]
    if table.numbers is not None:  # the rows with gaps may have been left out
        some = [name for name in some if gaps_in(table.column(name)).any()]
    if not some:
        return
    said = "; ".join(_places(table, name) for name in some[:MOST_COLUMNS])
    more = f"; and {len(some) - MOST_COLUMNS} more columns" if len(some) > MOST_COLUMNS else ""
    raise ValueError(f"{table.said} has missing values: {said}{more}. {advice}")


def _places(table: Table, name: str) -> str:
    facts = table.facts[name]
    said = []
    if facts.missing:
        where = ", ".join(map(str, table.lines(facts.gaps)))
        more = ", ..." if facts.missing > len(facts.gaps) else ""
        noun = "line" if facts.missing == 1 else "lines"
        said.append(f"{facts.missing:,} ({noun} {where}{more})")
    if facts.n_odd:
        said.append(odd_cells(table, name))
    return f"{name!r} " + " and ".join(said)


def odd_cells(table: Table, name: str) -> str:
    """Name the cells of text in a column of numbers."""
    facts = table.facts[name]
    lines = table.lines([row for row, _ in facts.odd])
    cells = [f"{cell!r} in line {i}" for (_, cell), i in zip(facts.odd, lines, strict=True)]
    more = ", ..." if facts.n_odd > len(cells) else ""
    return f"{counted(facts.n_odd, 'cell')} of text ({', '.join(cells)}{more})"
