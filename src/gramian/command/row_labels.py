"""Which row each result belongs to: columns that are kept, an identifier, or the row's number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramian.command.errors import UsageError
from gramian.tables import Table
from gramian.tables.roles import roles

Columns = dict[str, np.ndarray]


def row_labels(
    table: Table, results: Sequence[str] = (), keep: Sequence[str] | None = None
) -> Columns:
    """Return columns that say which row a result belongs to; ``results`` are names in use."""
    if keep is None:
        named = table.names if table.named else []
        found = roles(table, named) if named else []
        keep = [role.name for role in found if role.why == "is an identifier"][:1]
    else:
        keep = [table.find(name) for name in keep]
    taken = [name for name in keep if name in results]
    if taken:
        raise UsageError(f"--keep {taken[0]}: the results have a column of that name already.")
    if keep:
        return {name: _shown(table.column(name)) for name in keep}
    if "row" in results:
        return {}
    numbers = np.arange(table.n_rows) if table.numbers is None else table.numbers
    return {"row": numbers + 1}


def _shown(values: np.ndarray) -> np.ndarray:
    """Return values to write, with empty text where there is none."""
    if values.dtype == object:
        return np.array(["" if value is None else str(value) for value in values])
    return values
