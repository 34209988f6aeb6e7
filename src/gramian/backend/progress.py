"""Progress bars for long loops, drawn by rich if the setting ``progress`` is on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gramian.backend import config

_display: ContextVar[Any] = ContextVar("gramian_progress_display", default=None)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a bar with ``total`` steps; yield a function that advances it, by default one step.

    Nested loops share one display, with one line each.
    """
    if total <= 1 or not config.progress_wanted():
        yield lambda steps=1: None
        return
    outer = _display.get()
    if outer is not None:
        yield from _line(outer, label, total)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as display:
        token = _display.set(display)
        try:
            yield from _line(display, label, total)
        finally:
            _display.reset(token)


def _line(display: Any, label: str, total: int) -> Iterator[Callable[..., None]]:
    task = display.add_task(label, total=total)
    try:
        yield lambda steps=1: display.advance(task, steps)
    finally:
        display.remove_task(task)
