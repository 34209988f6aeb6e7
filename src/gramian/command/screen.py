"""Print the command's output: short lines, with control characters escaped."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

LABEL = 10

# Phrases in the library's messages, and their equivalents on the command line.
IN_THE_COMMAND = {
    "gramian.set_config(memory_budget=...)": "--memory",
    "Set n_threads=1": "Set --threads 1",
    "device=": "--device ",
    "(scikit-learn's StandardScaler)": "(--scale standard)",
    "device must be None, 'cpu'": "--device must be 'cpu'",
}


def visible(text: str) -> str:
    """Return text as one line, with characters that control a terminal escaped."""
    text = re.sub(r"\s*\n\s*", " ", text.strip())
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


class Screen:
    """Lines and tables on standard output, or nothing if ``quiet``."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def print(self, text: str) -> None:
        """Print text unchanged: escape names in it with ``visible`` first."""
        if self.quiet:
            return
        try:
            from gramian.backend import progress

            with progress.paused():
                print(text, flush=True)
        except BrokenPipeError:  # the reader stopped, like head; keep Python's exit from writing
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(1) from None

    def line(self, label: str, text: str) -> None:
        self.print(f"{label:<{LABEL}}{visible(text)}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table; a column whose name starts with > is aligned to the right."""
        names = [column.removeprefix(">") for column in columns]
        lines = [names, *([visible(text) for text in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["─" * width for width in widths])
        sides = [">" if column.startswith(">") else "<" for column in columns]
        for line in lines:
            cells = zip(line, sides, widths, strict=True)
            self.print("   ".join(f"{text:{side}{width}}" for text, side, width in cells).rstrip())

    @contextmanager
    def timed(self, label: str = "time") -> Iterator[None]:
        start = perf_counter()
        yield
        self.line(label, f"{perf_counter() - start:.3g} s")


@contextmanager
def warnings_in_one_line(name: str) -> Iterator[None]:
    """Print gramian's warnings as lines on standard error; hide those of other libraries."""

    def show(message: Warning | str, *where: object, **more: object) -> None:
        for python, here in IN_THE_COMMAND.items():
            message = str(message).replace(python, here)
        from gramian.backend import progress

        with progress.paused():
            print(visible(f"{name}: warning: {message}"), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
