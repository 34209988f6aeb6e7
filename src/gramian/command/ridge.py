"""``gramian ridge``: kernel ridge regression or classification."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import Any

import numpy as np

from gramian.backend import array_ops
from gramian.backend.wording import counted
from gramian.command import arguments, estimators, forecast, reading, signatures
from gramian.command.errors import UsageError
from gramian.command.results import Outputs, columns_of, writer
from gramian.command.row_labels import row_labels
from gramian.command.screen import Screen
from gramian.learners import KernelRidge, KernelRidgeClassifier
from gramian.tables import Table, TableModel

MOST_CLASSES = 20  # whole numbers with more distinct values are regressed on


def add_options(parser: arguments.Parser) -> None:
    arguments.add_data(parser)
    both = KernelRidge, KernelRidgeClassifier
    found = signatures.parameters(*both, skip=signatures.ELSEWHERE)
    signatures.add_options(parser, "ridge", found)
    arguments.add_kernel(parser)
    arguments.add_preparation(parser, "column to predict, by name or number (counting from 0)")
    group = parser.add_argument_group("target")
    group.add_argument(
        "--task",
        choices=["auto", "regress", "classify"],
        default="auto",
        help=f"by default, text and whole numbers with at most {MOST_CLASSES} distinct values are "
        "classified, and other numbers are regressed on",
    )
    group.add_argument(
        "--holdout",
        type=_fraction,
        default=0.2,
        metavar="PART",
        help="fraction of the rows, chosen at random, to hold out and score; 0 fits all rows. "
        "Default: 0.2",
    )
    arguments.add_output(parser, ".predictions.csv")
    arguments.add_run(parser, device=True)


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ArgumentTypeError(f"expected a number from 0 to less than 1; got {text!r}")
    return value


def run(args: Namespace, screen: Screen) -> None:
    outputs = Outputs(args, "predictions.csv")
    with reading.opened(args) as source:
        check_target(source, args)
        planned = reading.prepared(source, args, args.target)
        table, preparation = planned.table, planned.preparation
        y = target_of(table, args)
        classes = is_classes(y) if args.task == "auto" else args.task == "classify"
        if not classes and y.dtype.kind not in "biuf":
            raise UsageError("The target contains text, which only --task classify accepts.")
        model = estimators.estimator(args, KernelRidgeClassifier if classes else KernelRidge)
        held_out = _drawn(table.n_rows, args.holdout, args.seed)
        train = np.flatnonzero(~held_out)
        rows = reading.learned(table, preparation, train if held_out.any() else None)
        reading.show(screen, table, preparation)
        reading.show_plan(screen, planned)
        screen.line("target", _about(y, classes, args.target or "from the data set"))
        fitted_to = rows.choose(train).persist() if held_out.any() else rows
        forecast.show(screen, model, fitted_to)
        with screen.timed():
            model.fit(fitted_to, y[train])
        estimators.show(screen, model, fitted_to)
        if model.path_ is not None:
            screen.line("alpha", f"{model.alpha_:.4g}, chosen automatically")
        predicted = np.asarray(array_ops.to_numpy(model.predict(rows)))
        columns = columns_of(model, predicted)
        if held_out.any():
            columns["held_out"] = held_out
            where = counted(held_out.sum(), "held-out row", ",")
            score(screen, y[held_out], predicted[held_out], where, classes)
        write = writer(columns, row_labels(table, list(columns)))
        outputs.write(write, TableModel(model, preparation))
    outputs.show(screen, "output")


def check_target(table: Table, args: Namespace) -> None:
    if args.target is None and table.target is None:
        raise UsageError(
            f"{table.said} has no target: name the column to predict with --target COLUMN."
        )


def target_of(table: Table, args: Namespace) -> np.ndarray:
    """Return the requested column, or the target of the data set."""
    if args.target is None:
        check_target(table, args)
        assert table.target is not None
        return table.target
    values = table.column(table.find(args.target))
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        return values.astype(np.int64)  # gaps made them fractions
    return values


def is_classes(y: np.ndarray) -> bool:
    if y.dtype.kind not in "iuf":
        return True
    values = np.unique(y)
    return len(values) <= MOST_CLASSES and bool((values == np.floor(values)).all())


def _about(y: np.ndarray, classes: bool, name: str) -> str:
    if classes:
        other = " (--task regress treats them as numbers)" if y.dtype.kind in "iuf" else ""
        return f"{name}: {counted(len(np.unique(y)), 'class', ',')}{other}"
    low, high = (f"{float(end):.4g}" for end in (y.min(), y.max()))
    return f"{name}: numbers from {low} to {high}"


def _drawn(n: int, part: float, seed: int) -> np.ndarray:
    """Return a mask of the rows to hold out."""
    held_out = np.zeros(n, dtype=bool)
    count = min(round(part * n), n - 2)
    if count > 0:
        held_out[np.random.default_rng(seed).choice(n, size=count, replace=False)] = True
    return held_out


def score(screen: Screen, y: Any, predicted: Any, where: str, classes: bool) -> None:
    """Print the score of the predictions."""
    if classes:
        right = float(np.mean(np.asarray(y == predicted)))
        screen.line("score", f"accuracy {right:.1%} on {where}")
        return
    missed = np.asarray(y, dtype=float) - predicted
    spread = float(np.var(np.asarray(y, dtype=float)))
    explained = f"R² {1 - float(np.mean(missed**2)) / spread:.4f}, " if spread > 0 else ""
    root = float(np.sqrt(np.mean(missed**2)))
    screen.line("score", f"{explained}root mean squared error {root:.4g} on {where}")
