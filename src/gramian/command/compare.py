"""``gramian compare``: approximations on your data, side by side, in a report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import gramian
from gramian.backend import config
from gramian.command import arguments, estimators, reading, signatures
from gramian.command.results import Outputs
from gramian.command.screen import Screen, visible
from gramian.rows import Rows
from gramian.tables import Preparation, Table
from gramian.tables.code import IMPORTS, prepare_code, table_code

if TYPE_CHECKING:
    from gramian.analysis.comparison import Comparison, Measurement, Reading, Unprepared

# Parameters that have options of their own, or none.
HERE = ("X", "y", "kernel", "approximations", "sizes", "learner", "random_state", "callback")
TUNED = "tune"
LINE = "{:<20} {:>6} {:>30} {:>9} {:>9} {:>13} {:>8}"


def add_options(parser: arguments.Parser) -> None:
    arguments.add_data(parser)
    group = parser.add_argument_group("comparison")
    group.add_argument(
        "--sizes", type=int, nargs="+", metavar="SIZE", help="numbers of features to try"
    )
    sampling = signatures.parameters(_compare(), skip=HERE)
    tuning = {"time": sampling.pop("time")}
    signatures.add_options(parser, "sample", sampling)
    chosen = (
        "chosen by a quick cross-validation if there is a target, else scale, or mean for chi2; "
        "--kernel tune takes longer (--time) and chooses the kernel and the scales of its columns, "
        "too"
    )
    arguments.add_kernel(parser, several=True, gamma=chosen)
    signatures.add_options(parser, "search of --kernel tune", tuning)
    arguments.add_preparation(parser, "column to predict: approximations are scored on it")
    arguments.add_output(parser, ".report.html", model=False)
    arguments.add_run(parser, device=True)


def _compare() -> Callable[..., Comparison]:
    return gramian.compare


def run(args: Namespace, screen: Screen) -> None:
    outputs = Outputs(args, "report.html", (".html",))
    tuned = args.kernel == TUNED and args.gamma is None
    kernel = TUNED if tuned else estimators.bare_kernel(args, gramian.Nystroem)
    chosen = [estimators.approximation_by_name(name) for name in args.approximation]
    with reading.opened(args) as source:
        planned = reading.prepared(source, args, args.target)
        table, preparation = planned.table, planned.preparation
        y = _target(args, table)
        rows = _unprepared(table, preparation)
        preparation.look(table)
        reading.show(screen, table, preparation)
        reading.show_plan(screen, planned)
        _line(screen, "method", "size", "error", "seconds", "memory", "kernel values", "score")
        with screen.timed():
            comparison = _compare()(
                rows,
                y,
                kernel=kernel,
                approximations=chosen or None,
                sizes=args.sizes,
                random_state=args.seed,
                callback=lambda result: _show(screen, result),
                **signatures.given(args, _compare()),
            )
            for one in comparison.baselines:
                _line(screen, one.name, "", "", f"{one.seconds:.3g}", "", "", f"{one.score:.4f}")
        comparison = replace(comparison, reading=_reading(args, table, preparation, y is not None))
    comparison.report(outputs.path, title=reading.stem(args.data))
    screen.line("advice", comparison.recommendation)
    screen.print(f"\n{comparison.code}")
    if comparison.winner is not comparison.best:
        screen.line("kernel", "the report has the code of the recommended kernel, too")
    outputs.show(screen, "report")


def _unprepared(table: Table, preparation: Preparation) -> Unprepared:
    """Return the rows of a table; the preparation learns from the training rows alone."""
    from gramian.analysis.comparison import Unprepared

    class TableRows(Unprepared):
        n_rows = table.n_rows

        def rows(self, train: np.ndarray | None) -> Rows:
            return reading.learned(table, preparation, None if train is None else np.sort(train))

    return TableRows()


def _target(args: Namespace, table: Table) -> np.ndarray | None:
    """Return the requested column, or the target of the data set unless clusters are wanted."""
    if args.target is not None:
        return table.column(table.find(args.target))
    return None if "n_clusters" in signatures.given(args, _compare()) else table.target


def _reading(args: Namespace, table: Table, preparation: Preparation, has_target: bool) -> Reading:
    """Describe how the rows come from the file, in code and in words."""
    from gramian.analysis.comparison import Reading

    target = (table.find(args.target) if args.target else "target") if has_target else None
    said = ""
    if args.data == reading.STDIN:
        table.source = f"stdin.{args.format or 'csv'}"
        said = f"# {table.source}: what came from standard input\n"
    train = "np.sort(train)" if has_target else None
    return Reading(
        tuple(IMPORTS),
        said + table_code(table, target),
        prepare_code(preparation, train),
        tuple(preparation.steps()),
    )


def _show(screen: Screen, result: Measurement) -> None:
    interval = f"{result.error:.3g} [{result.error_low:.3g}, {result.error_high:.3g}]"
    score = "" if result.score is None else f"{result.score:.4f}"
    memory = config.format_bytes(result.nbytes_all)
    values = f"{result.kernel_evaluations:,}"
    _line(
        screen, result.name, result.size, interval, f"{result.seconds:.3g}", memory, values, score
    )


def _line(screen: Screen, *entries: object) -> None:
    screen.print(visible(LINE.format(*entries)))
