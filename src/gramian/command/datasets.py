"""``gramian datasets``: list the named data sets."""

from __future__ import annotations

from argparse import Namespace

from gramian import datasets
from gramian.command import arguments
from gramian.command.screen import Screen


def add_options(parser: arguments.Parser) -> None:
    arguments.add_quiet(parser)


def run(args: Namespace, screen: Screen) -> None:
    table = []
    for one in datasets.listing():
        rows, columns = ("?", "?") if one.shape is None else (f"{size:,}" for size in one.shape[:2])
        test = "" if one.test_rows is None else f"{one.test_rows:,}"
        table.append([one.name, rows, columns, test, one.place])
    screen.table(["name", ">rows", ">columns", ">test rows", "from"], table)
    screen.line("NAME.npz", f"in the folder that {datasets.FOLDER} names becomes the data set NAME")
