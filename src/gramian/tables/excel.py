"""Spreadsheets: the first sheet of an Excel or OpenDocument file as a table."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramian.backend import optional
from gramian.rows.files.dialect import is_header
from gramian.tables.files import FileTable

if TYPE_CHECKING:
    import pyarrow


def excel_table(path: Path, said: str, header: bool | None = None) -> FileTable:
    """Read the first sheet of a spreadsheet.

    python-calamine reads .xlsx, .xls, .xlsb and .ods files, has no dependencies, and is several
    times as fast as openpyxl.
    """
    with optional.needed("python_calamine", "Reading Excel files (or save the sheet as CSV)"):
        from python_calamine import CalamineWorkbook
    try:
        with CalamineWorkbook.from_path(str(path)) as book:
            rows = book.get_sheet_by_index(0).to_python(skip_empty_area=True)
    except Exception as error:  # a damaged file raises many types
        raise OSError(f"The file {said} could not be read as a spreadsheet: {error}") from error
    while rows and not any(cell != "" for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise ValueError(f"The first sheet of {said} is empty.")
    texts = [str(cell).strip() for cell in rows[0]]
    named = is_header(texts) if header is None else header
    names = [text or str(i) for i, text in enumerate(texts)] if named else None
    names = names or [str(i) for i in range(len(texts))]
    with optional.needed("pyarrow", "Reading Excel files"):
        import pyarrow

        from gramian.rows.files.arrow import MemoryFile
    data = rows[1:] if named else rows
    columns = [_column([row[i] for row in data]) for i in range(len(names))]
    table = pyarrow.Table.from_arrays(columns, names=names)
    return FileTable([MemoryFile(table, path.absolute(), named, 2 if named else 1)], said)


def _column(cells: list[Any]) -> pyarrow.Array:
    """Return the cells of a column as an Arrow array of one type."""
    import pyarrow

    from gramian.rows.files.dialect import is_missing

    values = [None if isinstance(c, str) and is_missing(c) else c for c in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pyarrow.array([None if v is None else float(v) for v in values], pyarrow.float64())
    if kinds == {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    if kinds <= {datetime.datetime, datetime.date}:
        return pyarrow.array(values, pyarrow.timestamp("us"))
    return pyarrow.array([None if v is None else _text(v) for v in values], pyarrow.string())


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
