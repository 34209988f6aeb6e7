"""What the command shows: short lines, in which no name can do harm."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from gramian.command._errors import UsageError

LABEL = 10


def visible(text: str) -> str:
    """One line of text, with everything escaped that a terminal would not show but obey."""
    text = re.sub(r"\s*\n\s*", " ", text.strip())
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


class Screen:
    """Lines and tables on standard output, or nothing where quiet is asked for."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        try:
            from rich.console import Console
        except ImportError as error:
            raise UsageError(
                "The command gramian needs the package rich: pip install 'gramian[cli]'."
            ) from error
        # Names of columns and files are no markup.
        self.console = Console(markup=False, highlight=False, emoji=False, quiet=quiet)

    def line(self, label: str, text: str) -> None:
        self.console.print(f"{label:<{LABEL}}{visible(text)}", soft_wrap=True)

    def table(self, *columns: str) -> Any:
        """A table of rich, to which rows of texts are added with ``add_row``."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            is_text = not column.startswith(">")
            table.add_column(column.removeprefix(">"), justify="left" if is_text else "right")
        return table

    @contextmanager
    def timed(self, label: str = "time") -> Iterator[None]:
        start = perf_counter()
        yield
        self.line(label, f"{perf_counter() - start:.3g} s")


@contextmanager
def warnings_in_one_line(name: str) -> Iterator[None]:
    """The library's warnings as lines on standard error; those of others are left out."""

    def show(message: Any, *where: Any, **more: Any) -> None:
        print(visible(f"{name}: warning: {message}"), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
