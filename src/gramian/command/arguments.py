"""The argument parser, and the options that several subcommands share."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn

from gramian.command.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser that raises :class:`UsageError` and suggests the nearest option."""

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
                raise UsageError(f"Unexpected argument {one!r}. See {self.prog} --help.")
            option = one.partition("=")[0]
            near = get_close_matches(option, self._option_string_actions, n=1)
            hint = f" Did you mean {near[0]}?" if near else f" {self.prog} --help lists them all."
            raise UsageError(f"Unknown option {option}.{hint}")
        return args


def add_data(parser: Parser) -> None:
    """Add the argument DATA and the options for its format."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a CSV, TSV, Excel, Parquet, Arrow, NPY, NPZ or svmlight file, a folder of parts, "
        "- for standard input, or a named data set (see gramian datasets; NAME:test is a test set)",
    )
    from gramian.tables.sources import FORMATS

    group = parser.add_argument_group("data")
    group.add_argument(
        "--format",
        choices=list(FORMATS),
        help="file format; by default detected from the extension or the content",
    )
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of a CSV file holds the column names; by default it does, "
        "unless it contains only numbers",
    )
    group.add_argument(
        "--separator",
        metavar="SIGN",
        type=_separator,
        help="separator of a CSV file: a character, tab, or space for any number of spaces; "
        "detected by default",
    )
    group.add_argument(
        "--decimal",
        choices=[".", ","],
        help="decimal character of a CSV file; detected by default",
    )
    group.add_argument(
        "--encoding",
        type=_encoding,
        help="encoding of a CSV file, such as utf-8 or latin-1; detected by default",
    )


def _separator(text: str) -> str:
    sign = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(sign) != 1:
        raise argparse.ArgumentTypeError(f"expected one character, tab or space; got {text!r}")
    return sign


def _encoding(text: str) -> str:
    try:
        codecs.lookup(text)
    except LookupError:
        raise argparse.ArgumentTypeError(f"there is no encoding {text!r}") from None
    return text


def add_preparation(parser: Parser, target: str | None = None) -> None:
    """Add the options for columns; ``target`` is the help text of --target, if there is one."""
    group = parser.add_argument_group("columns")
    if target:
        group.add_argument("--target", metavar="COLUMN", help=target)
    group.add_argument(
        "--exclude",
        metavar="COLUMN",
        action="append",
        default=[],
        help="drop a column, by name or number (counting from 0); can be repeated",
    )
    group.add_argument(
        "--include",
        metavar="COLUMN",
        action="append",
        default=[],
        help="use a column that would be left out: an identifier, a constant, dates (as day, year, "
        "week and time of day) or text; can be repeated",
    )
    group.add_argument(
        "--one-hot",
        action="store_true",
        help="encode text columns with up to 1,000 distinct values; by default up to 50",
    )
    group.add_argument(
        "--impute",
        choices=["median", "mean", "most-frequent"],
        help="fill missing numbers with this value of their column, and missing text with the most "
        "frequent one",
    )
    group.add_argument(
        "--drop-missing", action="store_true", help="leave out rows with missing values"
    )
    group.add_argument(
        "--scale",
        choices=["standard", "minmax", "none"],
        help="scale numeric columns to mean 0 and variance 1 (the default, unless the table is "
        "sparse), to the range 0 to 1, or not at all",
    )


def add_kernel(
    parser: Parser, *, several: bool = False, gamma: str = "scale, or mean for chi2"
) -> None:
    """Add the options of the kernel; ``gamma`` is what is used if it is left out."""
    group = parser.add_argument_group("kernel")
    repeated: dict[str, Any] = {"action": "append", "default": []} if several else {}
    group.add_argument(
        "--kernel",
        metavar="NAME",
        help="kernel, such as rbf, laplacian or matern:nu=2.5; default: rbf",
    )
    group.add_argument(
        "--gamma",
        help="kernel parameter: a number, or a rule: scale, median, mean, percentile:10; default: "
        f"{gamma}",
    )
    group.add_argument(
        "--approximation",
        metavar="NAME",
        help="approximation, such as nystroem, nystroem:n_components=400,landmarks=rpcholesky, "
        "meka, random-fourier, or exact; by default exact while the kernel matrix is small, "
        "nystroem beyond",
        **repeated,
    )


def add_run(
    parser: Parser, *, device: bool = False, seed: bool = True, scheduler: bool = False
) -> None:
    """Add the options that control the run."""
    group = parser.add_argument_group("run")
    if seed:
        group.add_argument("--seed", type=int, default=0, help="random seed; default: 0")
    if device:
        group.add_argument(
            "--device", default="cpu", help="cpu (the default), or cuda to compute with torch"
        )
    if scheduler:
        group.add_argument(
            "--scheduler",
            metavar="ADDRESS",
            help="compute on a dask cluster, such as tcp://host:8786; its workers must be able to "
            "read DATA from the same path",
        )
    group.add_argument(
        "--memory", metavar="SIZE", help="memory budget on top of the data, e.g. 2GB"
    )
    group.add_argument("--threads", type=int, help="number of threads; default: one per core")
    add_quiet(parser, group)


def add_quiet(parser: Parser, group: argparse._ArgumentGroup | None = None) -> None:
    to = group or parser
    to.add_argument("--quiet", action="store_true", help="print only warnings and errors")
    to.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_output(parser: Parser, suffix: str, *, model: bool = True) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help=f"result file; by default the name of DATA with {suffix}, in the current folder",
    )
    if model:
        group.add_argument(
            "--model",
            metavar="FILE",
            help="also save the model, for gramian predict and gramian.load",
        )
    group.add_argument("--force", action="store_true", help="replace existing files")


_SETTINGS = {"memory": "memory_budget", "threads": "n_threads", "device": "device"}


@contextmanager
def settings(args: argparse.Namespace) -> Iterator[None]:
    """Apply the options to the library's settings."""
    from gramian.backend import optional, progress
    from gramian.backend.config import config_context

    wanted = sys.stderr.isatty() and not args.quiet
    chosen: dict[str, Any] = {"progress": wanted and optional.is_importable("rich.progress")}
    for option, name in _SETTINGS.items():
        if getattr(args, option, None) is not None:
            chosen[name] = getattr(args, option)
    with config_context(**chosen), progress.whole():  # one bar for the whole command
        yield
