"""Write the preparation of a table as Python code."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gramian.tables.base import Table
from gramian.tables.preparation import Preparation

__all__ = ["preparation_code"]

DEFAULTS = {"separator": ",", "decimal": ".", "encoding": "utf-8"}
WIDTH = 88
IMPORTS = ["from gramian.tables import Preparation, open_table"]


def preparation_code(
    table: Table, preparation: Preparation, target: str | None = None
) -> tuple[list[str], str]:
    """Return import lines and code that make the prepared array ``X``, and ``y`` for a target.

    Parameters
    ----------
    table : Table
        The rows that are prepared; the code leaves out the rows that this view leaves out.
    preparation : Preparation
    target : str, optional
        The column for ``y``; for a data set with a target of its own, any text.

    Examples
    --------
    >>> from gramian.tables import open_table, plan, preparation_code
    >>> planned = plan(open_table("iris"), exclude=["0"])
    >>> imports, code = preparation_code(planned.table, planned.preparation, "target")
    >>> print(*imports, code, sep="\\n")
    from gramian.tables import Preparation, open_table
    table = open_table("iris")
    y = table.target
    prepare = Preparation(numbers=["1", "2", "3"])
    X = prepare.fit_transform(table)
    """
    return IMPORTS, f"{table_code(table, target)}\n{prepare_code(preparation)}"


def table_code(table: Table, target: str | None = None) -> str:
    """Return code that opens the table, and makes ``y`` for a target."""
    given = {name: v for name, v in table.opened_with.items() if DEFAULTS.get(name) != v}
    opened = _call("open_table", [table.source, *given.items()])
    if table.completed:
        opened += f".complete({_source(list(table.completed))})"
    lines = [f"table = {opened}"]
    if target is not None:
        column = f"table.column({_source(target)})" if target in table.names else "table.target"
        lines.append(f"y = {column}")
    return "\n".join(lines)


def prepare_code(preparation: Preparation, train: str | None = None) -> str:
    """Return code that prepares ``table`` as ``X``.

    ``train`` is an expression for the numbers of the rows to learn from; by default all.
    """
    made = f"prepare = {_constructor(preparation)}"
    if train is None:
        return f"{made}\nX = prepare.fit_transform(table)"
    return f"{made}\nX = prepare.fit(table.choose({train})).transform(table)"


def _constructor(preparation: Preparation) -> str:
    parameters = preparation.get_params(deep=False)
    plain = Preparation().get_params(deep=False)
    # The code leaves out what the table leaves out: it needs no target and drops no rows.
    skip = ("target", "drop_missing", "unknown")
    given = [
        (name, parameters[name])
        for name in ("numbers", "categories", "dates", *sorted(parameters))
        if name not in skip and parameters[name] not in (plain[name], [])
    ]
    return _call("Preparation", list(dict(given).items()))


def _call(name: str, arguments: Sequence[object]) -> str:
    """Write a call on one line, or with one argument per line."""
    parts = [f"{a[0]}={_source(a[1])}" if isinstance(a, tuple) else _source(a) for a in arguments]
    line = f"{name}({', '.join(parts)})"
    if len(line) <= WIDTH:
        return line
    inside = "".join(f"    {_wrapped(part)},\n" for part in parts)
    return f"{name}(\n{inside})"


def _wrapped(part: str) -> str:
    """Break a long list after its entries; a comma and a space within a name stay together."""
    if len(part) + 5 <= WIDTH or not part.endswith("]"):
        return part
    start, _, inside = part.partition("[")
    lines = [""]
    for entry in map(_source, json.loads(f"[{inside}")):
        if len(lines[-1]) + len(entry) + 10 > WIDTH:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{entry},"
    return f"{start}[\n" + "".join(f"        {line}\n" for line in lines) + "    ]"


def _source(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(map(_source, value)) + "]"
    return repr(value)
