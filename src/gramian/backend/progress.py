"""One progress bar for all loops, drawn by rich if the setting ``progress`` is on.

The bar has one line: the loops that run now, from the outermost in, each with its step and number
of steps, the share that is done, and the time left. ``whole`` keeps it for a whole command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from gramian.backend import config

if TYPE_CHECKING:
    import rich.progress

_display: ContextVar[Display | None] = ContextVar("gramian_progress_display", default=None)


@dataclass
class Loop:
    """A loop that runs: its name, and how far it is."""

    label: str
    total: int
    done: int = 0


class Display:
    """A bar that shows nested loops in one line."""

    def __init__(self, bar: rich.progress.Progress) -> None:
        self._bar = bar
        self._task: rich.progress.TaskID | None = None
        self._loops: list[Loop] = []
        self._end: float | None = None

    def expect(self, seconds: float) -> None:
        """Count down from this many seconds."""
        self._end = monotonic() + seconds

    @contextmanager
    def loop(self, label: str, total: int) -> Iterator[Callable[..., None]]:
        one = Loop(label, total)
        self._loops.append(one)
        if self._task is None:
            self._task = self._bar.add_task(label, total=1.0)
        self._show()

        def step(steps: int = 1) -> None:
            one.done += steps
            self._show()

        try:
            yield step
        finally:
            self._loops.remove(one)
            if not self._loops:
                self._bar.remove_task(self._task)
                self._task = None

    def _show(self) -> None:
        said = ", ".join(
            f"{one.label} {min(one.done + 1, one.total)} of {one.total}" for one in self._loops
        )
        left = None if self._end is None else max(self._end - monotonic(), 0.0)
        said += "" if left is None else f", about {left:.0f} s left"
        assert self._task is not None
        self._bar.update(self._task, description=said, completed=self.share())

    def share(self) -> float:
        """The share of the outermost loop that is done, with what is done of those inside."""
        share = 0.0
        for one in reversed(self._loops):
            share = min((one.done + share) / one.total, 1.0)
        return share

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bar off the screen, so that something else can be printed."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a loop with ``total`` steps; yield a function that advances it, by default one step."""
    if total <= 1 or not config.current().progress:
        yield lambda steps=1: None
        return
    with whole() as display:
        assert display is not None
        with display.loop(label, total) as step:
            yield step


@contextmanager
def whole() -> Iterator[Display | None]:
    """Show one bar for all loops inside; yield the display, or None if no bar is wanted."""
    if _display.get() is not None or not config.current().progress:
        yield _display.get()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Left())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        token = _display.set(Display(bar))
        try:
            yield _display.get()
        finally:
            _display.reset(token)


@contextmanager
def paused() -> Iterator[None]:
    """Take the bar off the screen, if there is one, so that something else can be printed."""
    display = _display.get()
    if display is None:
        yield
        return
    with display.paused():
        yield


def expect(seconds: float) -> None:
    """Make the bar, if there is one, count down from this many seconds."""
    display = _display.get()
    if display is not None:
        display.expect(seconds)
