"""The command ``gramian``: kernel methods on files, one module per subcommand.

A subcommand is a module with ``add_options(parser)`` and ``run(args, screen)``. ``COMMANDS`` lists
their names and summaries, so ``gramian --help`` imports none of them. The options of an estimator
come from its signature and docstring. Library errors become one line on standard error.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module

import gramian
from gramian.command import imports
from gramian.command.arguments import Parser, settings
from gramian.command.errors import UsageError
from gramian.command.screen import IN_THE_COMMAND, Screen, visible, warnings_in_one_line

__all__ = ["main"]

COMMANDS = {
    "cluster": "cluster rows with kernel k-means",
    "ridge": "predict a target with kernel ridge regression or classification",
    "classify": "predict classes with logistic regression or another loss, with probabilities",
    "regress": "predict numbers: means (also robust to outliers), quantiles or counts",
    "tune": "choose kernel, scales of columns, gamma and alpha for a target",
    "pca": "reduce rows to principal components with kernel PCA",
    "embed": "compute features whose inner products approximate a kernel",
    "predict": "apply a saved model to new rows",
    "compare": "compare approximations on your data and write a report",
    "reproduce": "measure the figures and tables of the papers and write a report",
    "datasets": "list the named data sets",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    0: success. 2: an error that the user can fix, explained in one line on standard error. 130:
    interrupted. 1: unexpected error.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    name = f"gramian {command}".rstrip()
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # unprintable characters must not end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings_in_one_line(name), _ended_by_signals():
            return _run(command, arguments)
    except KeyboardInterrupt:
        return _ends(name, "interrupted", 130)
    except SystemExit as end:  # from argparse after help, or from the screen when a pipe closes
        return int(end.code or 0)
    except Exception as error:
        if debug:
            traceback.print_exc()
        said = f"{error}" or type(error).__name__
        for python, here in IN_THE_COMMAND.items():
            said = said.replace(python, here)
        if isinstance(error, UsageError | ValueError | OSError | ImportError):
            return _ends(name, f"error: {said}", 2)
        if isinstance(error, MemoryError):
            return _ends(name, f"error: not enough memory. {said}", 2)
        how = "" if debug else "; --debug shows the traceback"
        return _ends(name, f"unexpected {type(error).__name__}: {said} (please report it{how})", 1)


def _ends(name: str, said: str, status: int) -> int:
    print(visible(f"{name}: {said}"), file=sys.stderr)
    return status


def _run(command: str, arguments: list[str]) -> int:
    if not command:
        return _without_command(arguments)
    with imports.quick():
        module = import_module(f"gramian.command.{command}")
        parser = Parser(prog=f"gramian {command}", description=f"{COMMANDS[command].capitalize()}.")
        module.add_options(parser)
        args = parser.parse(arguments[1:])
        with settings(args):
            module.run(args, Screen(quiet=args.quiet))
    return 0


def _without_command(arguments: list[str]) -> int:
    listed = "\n".join(f"  {name:<11}{what}" for name, what in COMMANDS.items())
    parser = Parser(
        prog="gramian",
        usage="gramian COMMAND ...",
        description=f"Kernel methods without the n-by-n matrix, on files.\n\ncommands:\n{listed}",
        epilog="Run gramian COMMAND --help for the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"gramian {gramian.__version__}")
    if not arguments:
        parser.print_help()
        return 0
    if not arguments[0].startswith("-"):
        near = get_close_matches(arguments[0], COMMANDS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"There is no command {arguments[0]!r}.{hint} The commands are: {', '.join(COMMANDS)}."
        )
    parser.parse(arguments)
    raise UsageError(f"A command is missing. The commands are: {', '.join(COMMANDS)}.")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Make SIGTERM clean up as an interrupt does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
