"""How messages count and show things: "1 row", "2 rows"; 3 for np.int64(3)."""

from __future__ import annotations

from typing import Any

import numpy as np


def counted(count: int, noun: str, form: str = "") -> str:
    """The count and the noun, in the plural unless there is one: "1 row", "2 rows".

    ``form`` is a format of the number, such as "," for thousands apart.
    """
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{count:{form}} {noun}{ending}"


def shown(value: Any) -> str:
    """A value as Python writes it, without NumPy's types: 3 for np.int64(3), 'cat' for text."""
    return repr(value.item() if isinstance(value, np.generic) else value)
