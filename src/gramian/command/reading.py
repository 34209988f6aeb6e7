"""Open the table that DATA names, and prepare its rows."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gramian.backend.wording import counted
from gramian.command.errors import UsageError
from gramian.command.screen import Screen
from gramian.rows import Rows
from gramian.tables import Plan, Preparation, Table, open_table, plan
from gramian.tables.sources import ENDINGS, check_name

STDIN = "-"


def check_input(data: str) -> None:
    """Raise an error if there is no such file or data set."""
    if data != STDIN and not Path(data).expanduser().exists():
        check_name(data)


@contextmanager
def opened(args: Namespace, like: list[str] | None = None) -> Iterator[Table]:
    """Open the table; standard input is copied to a temporary file."""
    named = ("format", "header", "separator", "decimal", "encoding")
    options = {name: getattr(args, name) for name in named}
    options["like"] = like
    if args.data != STDIN:
        yield open_table(args.data, **options)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("There is no data on standard input: pipe data in, or name a file.")
    with tempfile.NamedTemporaryFile(prefix="gramian-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        if file.tell() == 0:
            raise UsageError("Standard input is empty.")
        try:
            table = open_table(file.name, **options)
            table.said = "standard input"
            yield table
        except (ValueError, OSError) as error:  # these name the temporary file
            said = str(error).replace(f"The file {file.name!r}", "Standard input")
            raise UsageError(said.replace(repr(file.name), "standard input")) from error


def stem(data: str) -> str:
    """Return the name that results of this data start with."""
    if data == STDIN:
        return "stdin"
    if not Path(data).exists():  # a data set, or its test set
        return Path(data).name.replace(":", "-")
    name = Path(data).name or Path(data).resolve().name
    ending = next((e for e in ENDINGS if name.lower().endswith(e) and len(name) > len(e)), "")
    packed = ending.rpartition(".")[2] if ending.count(".") > 1 else ""
    # Two files that differ only in their compression have different results.
    return name[: len(name) - len(ending)] + (f"-{packed}" if packed else "")


class Training(NamedTuple):
    """The training data."""

    table: Table
    preparation: Preparation
    rows: Rows


@contextmanager
def training(args: Namespace, screen: Screen, target: str | None = None) -> Iterator[Training]:
    """Open DATA, prepare it as the options say, and describe it on the screen."""
    with on_cluster(args) as spread, opened(args) as source:
        planned = prepared(source, args, target)
        table, preparation = planned.table, planned.preparation
        rows = learned(table, preparation, spread=spread)
        show(screen, table, preparation)
        show_plan(screen, planned)
        yield Training(table, preparation, rows)


def in_memory(rows: Rows) -> Rows:
    return rows.persist()


def learned(
    table: Table,
    preparation: Preparation,
    train: np.ndarray | None = None,
    spread: Callable[[Rows], Rows] = in_memory,
) -> Rows:
    """Learn the preparation from the rows with these numbers, or from all; prepare all rows."""
    preparation.look(table if train is None else table.choose(train))
    raw = spread(preparation.raw(table))
    preparation.learn(raw if train is None else raw.choose(train))
    return preparation.rows(raw)


@contextmanager
def on_cluster(args: Namespace) -> Iterator[Callable[[Rows], Rows]]:
    """Yield a function that moves rows to the cluster, or to memory if there is none."""
    address = getattr(args, "scheduler", None)
    if address is None:
        yield in_memory
        return
    if args.data == STDIN:
        raise UsageError("--scheduler: workers cannot read standard input; name a file.")
    if args.scale == "minmax":
        raise UsageError("--scheduler does not support --scale minmax; use --scale standard.")
    if args.drop_missing:
        raise UsageError("--scheduler does not support --drop-missing; use --impute.")
    from gramian.rows.dask.rows import connected, spread_rows

    device = None if args.device == "cpu" else args.device
    with connected(address):
        yield lambda rows: spread_rows(rows, device=device)


def prepared(table: Table, args: Namespace, target: str | None = None) -> Plan:
    """Plan the preparation of a table."""
    return plan(
        table,
        target=target,
        exclude=args.exclude,
        include=args.include,
        one_hot=args.one_hot,
        impute=args.impute,
        drop_missing=args.drop_missing,
        scale=args.scale or ("none" if table.sparse else "standard"),
    )


def show(screen: Screen, table: Table, preparation: Preparation) -> None:
    used = len(preparation.columns)
    left_out = [name for name in table.names if name not in preparation.names]
    said = f"{counted(table.n_rows, 'row', ',')}, {counted(used, 'column', ',')} from {table.said}"
    if left_out:
        named = left_out if len(left_out) <= 5 else [*left_out[:5], "..."]
        said += f" (without {', '.join(named)})"
    screen.line("data", said)
    if table.notation:
        screen.line("format", table.notation)


def show_plan(screen: Screen, planned: Plan) -> None:
    """Say what was recognised, and what is done to the columns."""
    for note in planned.notes:
        screen.line("columns", note)
    for note in planned.row_notes:
        screen.line("rows", note)
    for step in planned.preparation.steps():
        if "scaled" in step:
            screen.line("scale", f"{step} (--scale none turns this off)")
        elif "filled" in step:
            screen.line("gaps", step)
