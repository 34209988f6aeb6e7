"""Tables from files: which columns become rows, how, and models that remember it.

The command ``gramian`` works on these; :func:`gramian.load` gives a :class:`TableModel` where it
wrote the file.
"""

from gramian.tables.model import TableModel
from gramian.tables.preparation import Preparation
from gramian.tables.sources import ArrayTable, FileTable, Table, open_table

__all__ = ["ArrayTable", "FileTable", "Preparation", "Table", "TableModel", "open_table"]
