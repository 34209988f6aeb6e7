"""Roles: which columns of a table are features, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gramian.backend.wording import counted
from gramian.rows.files.facts import MOST_ENTRIES, Facts
from gramian.tables.base import Table

__all__ = ["Role", "roles"]

FEW_ENTRIES = 50  # text with at most this many distinct entries is a category
LEAST_ROWS = 10  # below this, text that never repeats may still be a category
COUNTED_ROWS = 20  # from here on, a first column 1, 2, 3, ... numbers the rows
UNIQUE = 0.9  # share of distinct entries that makes an identifier
SENTENCE = 3.0  # words per entry that make free text
_WORDS = "id|uid|uuid|guid|key|index|idx|nr|no|number|nummer|row|rowid"
IDENTIFIER = re.compile(rf"(?i:{_WORDS}|unnamed: 0|.*[ _.-]({_WORDS}))|.*[a-z](I[Dd]|Nr|No|Key)")


@dataclass(frozen=True)
class Role:
    """What a column is used as: "number", "category", "date", or "" with the reason."""

    name: str
    use: str
    why: str = ""


def roles(
    table: Table, names: Sequence[str], *, include: Sequence[str] = (), one_hot: bool = False
) -> list[Role]:
    """Return the role of each of these columns; those in ``include`` are used in any case."""
    found = [
        _included(table.facts[name]) if name in include else _role(table.facts[name], one_hot)
        for name in names
    ]
    others = [role for role in found if role.use]
    if others and names and found[0].use == "number" and names[0] not in include:
        facts = table.facts[names[0]]
        if len(others) > 1 and _counts_rows(facts) and names[0] == table.names[0]:
            found[0] = Role(names[0], "", "numbers the rows")
    return found


def _included(facts: Facts) -> Role:
    if facts.kind == "number":
        return Role(facts.name, "number")
    if facts.kind == "date":
        return Role(facts.name, "date")
    if facts.many:
        raise ValueError(
            f"Column {facts.name!r} has more than {MOST_ENTRIES} distinct values; too many to "
            "encode."
        )
    if facts.kind == "empty":
        raise ValueError(f"Column {facts.name!r} has no values.")
    return Role(facts.name, "category")


def _role(facts: Facts, one_hot: bool) -> Role:
    name, kind = facts.name, facts.kind
    if kind == "empty":
        return Role(name, "", "is empty")
    if kind == "other":
        return Role(name, "", "holds lists or other values that are neither numbers nor text")
    if facts.constant:
        return Role(name, "", "has the same value in every row")
    if kind == "number":
        if facts.whole and facts.unique and IDENTIFIER.fullmatch(name.strip()):
            return Role(name, "", "is an identifier")
        return Role(name, "number")
    if kind == "date":
        return Role(name, "", "holds dates")
    return Role(name, "category") if kind == "boolean" else _text_role(facts, one_hot)


def _text_role(facts: Facts, one_hot: bool) -> Role:
    distinct, seen = len(facts.entries), sum(facts.entries.values())
    if distinct >= UNIQUE * seen and seen >= LEAST_ROWS:
        what = "is free text" if facts.words > SENTENCE else "is an identifier"
        return Role(facts.name, "", what)
    if distinct <= (MOST_ENTRIES if one_hot else FEW_ENTRIES):
        return Role(facts.name, "category")
    if facts.words > SENTENCE:
        return Role(facts.name, "", "is free text")
    if facts.many:
        return Role(facts.name, "", f"is text with more than {MOST_ENTRIES:,} distinct values")
    return Role(facts.name, "", f"is text with {counted(distinct, 'distinct value')}")


def _counts_rows(facts: Facts) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return (
        facts.whole
        and facts.rising
        and facts.rows >= COUNTED_ROWS
        and facts.missing == 0
        and facts.low in (0.0, 1.0)
        and facts.high - facts.low == facts.rows - 1
    )
