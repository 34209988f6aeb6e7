"""Tables from files: which columns become rows, how, and models that remember it.

The command ``gramian`` works on tables; :func:`gramian.load` returns a :class:`TableModel` for a
file that the command wrote. ``open_table`` recognises how a file is written and what its columns
hold; ``plan`` decides what each column is used as, and says why; a ``Preparation`` is a
scikit-learn transformer that does it. It works block by block, so files can be larger than memory:
text is read as category numbers and expanded in the block, and fills and scale are learned in one
pass. ``preparation_code`` writes it all as Python.
"""

from gramian.tables.base import Table
from gramian.tables.code import preparation_code
from gramian.tables.files import ArrayTable, FileTable
from gramian.tables.model import TableModel
from gramian.tables.planning import Plan, plan
from gramian.tables.preparation import Preparation
from gramian.tables.sources import as_table, open_table

__all__ = [
    "ArrayTable",
    "FileTable",
    "Plan",
    "Preparation",
    "Table",
    "TableModel",
    "as_table",
    "open_table",
    "plan",
    "preparation_code",
]
