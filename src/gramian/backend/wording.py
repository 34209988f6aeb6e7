"""Count and show values in messages: "1 row", "2 rows"; 3 for np.int64(3)."""

from __future__ import annotations

import numpy as np


def counted(count: int, noun: str, form: str = "") -> str:
    """Return the count and the noun, in the plural if needed: "1 row", "2 rows".

    ``form`` is the format of the number, such as "," for a thousands separator.
    """
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{count:{form}} {noun}{ending}"


def shown(value: object) -> str:
    """Return a value as Python writes it, without NumPy types: 3 for np.int64(3)."""
    return repr(value.item() if isinstance(value, np.generic) else value)
