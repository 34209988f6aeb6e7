"""The command ``gramian``: kernel methods on files, one small file for each subcommand.

A subcommand is a module with ``add_options(parser)`` and ``run(args, screen)``; its name and what
it does are listed here, so that help needs none of them.
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
from gramian.command.arguments import Parser, settings
from gramian.command.errors import UsageError
from gramian.command.screen import Screen, visible, warnings_in_one_line

__all__ = ["main"]

COMMANDS = {
    "cluster": "find clusters, by kernel k-means",
    "ridge": "fit a target, by kernel ridge regression or classification",
    "pca": "find principal components, by kernel PCA",
    "embed": "make features of rows, whose inner products approximate a kernel",
    "predict": "apply a model to new rows",
    "compare": "compare approximations on your rows, in a report",
    "reproduce": "measure the figures and tables of the papers, in a report",
    "datasets": "list the data sets that have names",
}

# What the library says to those who write Python, and what it is here.
IN_THE_COMMAND = {
    "gramian.set_config(memory_budget=...)": "--memory",
    "Set n_threads=1": "Set --threads 1",
    "device=": "--device ",
    "device must be None or 'cpu'": "--device must be 'cpu'",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status.

    0: done. 2: something is to be put right by the user, said in one line on standard error. 130:
    interrupted. 1: an error that nobody foresaw.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    name = f"gramian {command}".rstrip()
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal cannot show must not end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings_in_one_line(name), _ended_by_signals():
            return _run(command, arguments)
    except KeyboardInterrupt:
        return _ends(name, "interrupted", 130)
    except SystemExit as end:  # argparse's, after help; the screen's, when nobody reads on
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
            return _ends(name, f"error: too little memory. {said}", 2)
        how = "" if debug else "; --debug shows where"
        return _ends(name, f"unexpected {type(error).__name__}: {said} (please report it{how})", 1)


def _ends(name: str, said: str, status: int) -> int:
    print(visible(f"{name}: {said}"), file=sys.stderr)
    return status


def _run(command: str, arguments: list[str]) -> int:
    if not command:
        return _without_command(arguments)
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
        epilog="gramian COMMAND --help says more of each.",
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
    """A request to end cleans up as an interrupt does."""
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
