"""The tables of benchmarks/RESULTS.md and docs/reproduction.md, for numbers on the site.

Every number on the site is looked up in a file that a command wrote; none is typed.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Table:
    """A Markdown table: the names of its columns, and its rows as lists of text."""

    columns: list[str]
    rows: list[list[str]]

    def cell(self, keys: list[str], column: str) -> str:
        """The cell of a column in the only row that has all keys among its cells."""
        found = [row for row in self.rows if set(keys) <= set(row)]
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows have {keys}; expected exactly one.")
        if column not in self.columns:
            raise LookupError(f"there is no column {column!r}, only {self.columns}.")
        return found[0][self.columns.index(column)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _table(lines: list[str]) -> Table:
    rows = [_cells(line) for line in lines[2:]]
    for above, row in pairwise(rows):  # an empty first cell repeats the one above
        row[0] = row[0] or above[0]
    return Table(_cells(lines[0]), rows)


def sections(text: str) -> dict[str, list[Table]]:
    """The tables below each second-level heading of a Markdown text."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        tables = re.findall(r"(?:^\|.*\n?)+", body, flags=re.M)
        found[heading.strip()] = [_table(table.splitlines()) for table in tables]
    return found


def measured() -> dict[str, list[Table]]:
    return sections((ROOT / "benchmarks" / "RESULTS.md").read_text())


def reproduced() -> dict[str, list[Table]]:
    return sections((ROOT / "docs" / "reproduction.md").read_text())


def missing(paper: str) -> int:
    """How many figures, tables and theorems of this paper the page lists as missing."""
    page = (ROOT / "docs" / "reproduction.md").read_text()
    _, _, listed = page.partition("## What is missing")
    return len(re.findall(rf"^- \*\*{re.escape(paper.partition(':')[0])}/", listed, re.MULTILINE))


def number(cell: str) -> float:
    """The first number of a cell: 12.5 of '12.50 [8.30, 13.79]', 2145 of '2,145'."""
    return float(re.search(r"-?[\d,]*\.?\d+(?:e-?\d+)?", cell).group().replace(",", ""))


def interval(cell: str) -> tuple[float, float]:
    """The interval of '12.50 [8.30, 13.79]'."""
    low, high = re.search(r"\[(.*), (.*)\]", cell).groups()
    return float(low), float(high)


def look_up(place: str) -> str:
    """The cell that ``section / key / ... / column`` names; ``section#2`` is its second table."""
    section, *keys, column = re.split(r" / (?!\()", place)
    section, _, which = section.partition("#")
    cell = measured()[section][int(which or 1) - 1].cell(keys, column)
    return re.split(r" [(\[]", cell)[0]  # without quartiles and intervals
