"""plan: decide how to prepare a table, and say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gramian.backend.wording import counted
from gramian.tables.base import Table, listed
from gramian.tables.gaps import odd_cells
from gramian.tables.preparation import Preparation
from gramian.tables.roles import Role, roles

__all__ = ["Plan", "plan"]

LARGE = 10_000_000  # values; larger tables are prepared in single precision


@dataclass(frozen=True)
class Plan:
    """How to prepare a table.

    Attributes
    ----------
    preparation : Preparation
        Not fitted yet, with its columns written out.
    table : Table
        The table without the rows that are left out.
    notes : list of str
        What the user should know of the columns: which were encoded, or left out and why.
    row_notes : list of str
        What the user should know of rows that were left out.
    identifiers : list of str
        Columns that identify the rows.
    """

    preparation: Preparation
    table: Table
    notes: list[str]
    row_notes: list[str]
    identifiers: list[str]


def plan(
    table: Table,
    *,
    target: str | None = None,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    one_hot: bool = False,
    impute: str | None = None,
    drop_missing: bool = False,
    scale: str = "standard",
    unknown: str = "ignore",
) -> Plan:
    """Recognise what the columns of a table are, and plan their preparation.

    Tables of more than ten million values are prepared in single precision.

    Parameters
    ----------
    table : Table
    target : str, optional
        The target, by name or number. Rows without one are left out.
    exclude, include : list of str
        Columns to leave out, and columns to use even if they look like no features.
    one_hot : bool, default=False
        Whether to encode text with many distinct entries too.
    impute, drop_missing, scale, unknown
        As in :class:`Preparation`.

    Examples
    --------
    >>> from gramian.tables import open_table, plan
    >>> plan(open_table("iris"), exclude=["0"]).preparation.numbers
    ['1', '2', '3']
    """
    if not table.n_rows:
        raise ValueError(f"{table.said} has column names, but no rows.")
    goal = None if target is None else table.find(target)
    dropped = {goal, *(table.find(name) for name in exclude)}
    names = [name for name in table.names if name not in dropped]
    wanted = [table.find(name) for name in include]
    found = roles(table, names, include=wanted, one_hot=one_hot)
    used = [role for role in found if role.use]
    if not used:
        reasons = "; ".join(f"{role.name!r} {role.why}" for role in found[:5])
        raise ValueError(
            f"{table.said} has no column to use{': ' + reasons if reasons else ''}. Use one with "
            "--include COLUMN."
        )
    preparation = Preparation(
        numbers=_used(found, "number"),
        categories=_used(found, "category"),
        dates=_used(found, "date"),
        target=goal,
        impute=impute,
        drop_missing=drop_missing,
        scale=scale,
        unknown=unknown,
        dtype="float32" if table.n_rows * len(used) > LARGE and not table.sparse else "float64",
    )
    notes, row_notes = _notes(found), []
    kept = table if goal is None else table.complete([goal])
    if kept.n_rows < table.n_rows:
        gone = counted(table.n_rows - kept.n_rows, "row", ",")
        row_notes.append(f"left out {gone} without {goal!r}")
    if drop_missing:
        before, kept = kept, kept.complete([role.name for role in used])
        if kept.n_rows < before.n_rows:
            gone = counted(before.n_rows - kept.n_rows, "row", ",")
            row_notes.append(f"left out {gone} with missing values")
    if kept.n_rows == 0:
        raise ValueError(f"{table.said} has no row without missing values.")
    filled = [role.name for role in used] if impute or drop_missing else []
    notes += [
        f"{name!r} has {odd_cells(table, name)}, treated as missing"
        for name in [*filled, *([] if goal is None else [goal])]
        if table.facts[name].n_odd
    ]
    identifiers = [role.name for role in found if role.why == "is an identifier"]
    return Plan(preparation, kept, notes, row_notes, identifiers)


def _used(found: list[Role], use: str) -> list[str]:
    return [role.name for role in found if role.use == use]


def _notes(found: list[Role]) -> list[str]:
    """Say which columns are encoded and which are left out, and why."""
    notes = []
    text = _used(found, "category")
    if text:
        notes.append(f"{listed(text)} encoded as categories")
    whys = dict.fromkeys(role.why for role in found if not role.use)
    for why in whys:
        some = [role.name for role in found if not role.use and role.why == why]
        notes.append(f"left out {listed(some)}: it {why}" if len(some) == 1 else
                     f"left out {listed(some)}: each {why}")  # fmt: skip
    if whys:
        notes[-1] += " (--include COLUMN uses it)"
    return notes
