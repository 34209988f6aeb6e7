"""Tables from files: which columns become rows, how, and models that remember it.

The command ``gramian`` works on tables; :func:`gramian.load` returns a :class:`TableModel` for a
file that the command wrote. A ``Preparation`` works block by block, so files can be larger than
memory: text is read as category numbers and expanded in the block, and scaling is learned in one
pass.
"""

from gramian.tables.model import TableModel
from gramian.tables.preparation import Preparation
from gramian.tables.sources import ArrayTable, FileTable, Table, open_table

__all__ = ["ArrayTable", "FileTable", "Preparation", "Table", "TableModel", "open_table"]
