"""The parser of arguments, and the options that several subcommands have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn

from gramian.backend import optional
from gramian.backend.config import config_context
from gramian.command.errors import UsageError
from gramian.tables.sources import FORMATS


class Parser(argparse.ArgumentParser):
    """One that raises a :class:`UsageError`, and suggests the nearest option."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. {self.prog} --help lists all options.")

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        args, unknown = self.parse_known_args(arguments)
        for one in unknown:
            if not one.startswith("-"):
                raise UsageError(f"Unexpected argument {one!r}. {self.prog} --help says which.")
            option = one.partition("=")[0]
            near = get_close_matches(option, self._option_string_actions, n=1)
            hint = f" Did you mean {near[0]}?" if near else f" {self.prog} --help lists them all."
            raise UsageError(f"Unknown option {option}.{hint}")
        return args


def add_data(parser: Parser) -> None:
    """Where the rows come from."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a CSV, TSV, Parquet, Arrow, NPY, NPZ or svmlight file, a folder of parts, - for "
        "standard input, or a named data set (see gramian datasets; NAME:test is its test part)",
    )
    group = parser.add_argument_group("data")
    group.add_argument(
        "--format", choices=list(FORMATS), help="where neither ending nor content tell"
    )
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of a CSV file names the columns; by default it does unless "
        "it holds numbers only",
    )


def add_preparation(parser: Parser, target: str | None = None) -> None:
    """Which columns are used, and how; ``target`` says what it is for, where there may be one."""
    group = parser.add_argument_group("columns")
    if target:
        group.add_argument("--target", metavar="COLUMN", help=target)
    group.add_argument(
        "--exclude",
        metavar="COLUMN",
        action="append",
        default=[],
        help="leave out a column, by name or number from 0; may be repeated",
    )
    group.add_argument(
        "--one-hot", action="store_true", help="make columns of 0 and 1 of columns of text"
    )
    group.add_argument(
        "--scale",
        choices=["standard", "minmax"],
        help="scale columns of numbers to mean 0 and variance 1, or to 0 to 1",
    )


def add_kernel(parser: Parser, *, several: bool = False) -> None:
    group = parser.add_argument_group("kernel")
    repeated: dict[str, Any] = {"action": "append", "default": []} if several else {}
    group.add_argument(
        "--kernel", metavar="NAME", help="such as rbf, laplacian or matern:nu=2.5; default: rbf"
    )
    group.add_argument(
        "--gamma", help="a number, or a rule: scale (the default), median, mean, percentile:10"
    )
    group.add_argument(
        "--approximation",
        metavar="NAME",
        help="such as nystroem, nystroem:n_components=400,landmarks=rpcholesky, meka, "
        "random-fourier, or exact; by default exact while the matrix is small, then nystroem",
        **repeated,
    )


def add_run(
    parser: Parser, *, device: bool = False, seed: bool = True, scheduler: bool = False
) -> None:
    """How the work is done, and what is shown of it."""
    group = parser.add_argument_group("run")
    if seed:
        group.add_argument("--seed", type=int, default=0, help="of all chance; default: 0")
    if device:
        group.add_argument(
            "--device", default="cpu", help="cpu (the default), or cuda: compute through torch"
        )
    if scheduler:
        group.add_argument(
            "--scheduler",
            metavar="ADDRESS",
            help="compute on a dask cluster, such as tcp://host:8786, whose workers read DATA from "
            "the same path",
        )
    group.add_argument("--memory", metavar="SIZE", help="memory to use beside the data, as 2GB")
    group.add_argument("--threads", type=int, help="by default one for each core")
    add_quiet(parser, group)


def add_quiet(parser: Parser, group: Any = None) -> None:
    group = group or parser
    group.add_argument("--quiet", action="store_true", help="show nothing but warnings and errors")
    group.add_argument("--debug", action="store_true", help="show where an error came from")


def add_output(parser: Parser, suffix: str, *, model: bool = True) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output", "-o", metavar="FILE", help=f"by default DATA's name with {suffix}, right here"
    )
    if model:
        group.add_argument(
            "--model", metavar="FILE", help="keep the model, for gramian predict and gramian.load"
        )
    group.add_argument("--force", action="store_true", help="replace files that are there already")


_SETTINGS = {"memory": "memory_budget", "threads": "n_threads", "device": "device"}


@contextmanager
def settings(args: argparse.Namespace) -> Iterator[None]:
    """The library's settings as the options say."""
    wanted = sys.stderr.isatty() and not args.quiet
    chosen: dict[str, Any] = {"progress": wanted and optional.is_importable("rich.progress")}
    for option, name in _SETTINGS.items():
        if getattr(args, option, None) is not None:
            chosen[name] = getattr(args, option)
    with config_context(**chosen):
        yield
