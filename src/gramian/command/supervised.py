"""What ``gramian ridge``, ``classify`` and ``regress`` share: a target, held-out rows, a score."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace, _ArgumentGroup
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from gramian.backend.wording import counted
from gramian.command import arguments, estimators, forecast, reading, signatures
from gramian.command.errors import UsageError
from gramian.command.results import Outputs, check_probabilities, predictions, writer
from gramian.command.row_labels import row_labels
from gramian.command.scores import show_scores
from gramian.command.screen import Screen
from gramian.tables import Table, TableModel

MOST_CLASSES = 20  # whole numbers with more distinct values are regressed on


def add_options(
    parser: arguments.Parser, title: str, classes: Sequence[type], skip: Sequence[str] = ()
) -> _ArgumentGroup:
    """Add all options of a command that predicts; return the group of those about the target."""
    arguments.add_data(parser)
    found = signatures.parameters(*classes, skip=(*signatures.ELSEWHERE, *skip))
    signatures.add_options(parser, title, found)
    arguments.add_kernel(parser)
    arguments.add_preparation(parser, "column to predict, by name or number (counting from 0)")
    group = parser.add_argument_group("target")
    add_holdout(group)
    arguments.add_output(parser, ".predictions.csv")
    arguments.add_run(parser, device=True)
    return group


def add_holdout(group: _ArgumentGroup) -> None:
    group.add_argument(
        "--holdout",
        type=_fraction,
        default=0.2,
        metavar="PART",
        help="fraction of the rows, chosen at random, to hold out and score; 0 fits all rows. "
        "Default: 0.2",
    )


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ArgumentTypeError(f"expected a number from 0 to less than 1; got {text!r}")
    return value


def run(args: Namespace, screen: Screen, model_for: Callable[[np.ndarray], BaseEstimator]) -> None:
    """Fit the model for the target, score it on held-out rows, and write all predictions."""
    proba = getattr(args, "proba", False)
    outputs = Outputs(args, "predictions.csv")
    with reading.opened(args) as source:
        check_target(source, args)
        planned = reading.prepared(source, args, args.target)
        table, preparation = planned.table, planned.preparation
        y = target_of(table, args)
        model = model_for(y)
        if proba:
            check_probabilities(model)
        classes = is_classifier(model)
        if not classes and y.dtype.kind not in "biuf":
            raise UsageError("The target contains text: use gramian classify.")
        held_out = drawn(table.n_rows, args.holdout, args.seed)
        train = np.flatnonzero(~held_out)
        rows = reading.learned(table, preparation, train if held_out.any() else None)
        reading.show(screen, table, preparation)
        reading.show_plan(screen, planned)
        screen.line("target", _about(args, y, classes))
        fitted_to = rows.choose(train).persist() if held_out.any() else rows
        forecast.show(screen, model, fitted_to)
        with screen.timed():
            model.fit(fitted_to, y[train])
        estimators.show(screen, model, fitted_to)
        if getattr(model, "path_", None) is not None:
            screen.line("alpha", f"{model.alpha_:.4g}, chosen automatically")
        columns = predictions(model, rows, proba=proba)
        if held_out.any():
            where = counted(held_out.sum(), "held-out row", ",")
            new = {name: values[held_out] for name, values in columns.items()}
            show_scores(screen, model, y[held_out], new, where)
            columns["held_out"] = held_out
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


def _about(args: Namespace, y: np.ndarray, classes: bool) -> str:
    name = args.target or "from the data set"
    if classes:
        other = "(--task regress treats them as numbers)" if hasattr(args, "task") else ""
        numbers = f" {other}".rstrip() if y.dtype.kind in "iuf" else ""
        return f"{name}: {counted(len(np.unique(y)), 'class', ',')}{numbers}"
    low, high = (f"{float(end):.4g}" for end in (y.min(), y.max()))
    return f"{name}: numbers from {low} to {high}"


def drawn(n: int, part: float, seed: int) -> np.ndarray:
    """Return a mask of the rows to hold out."""
    held_out = np.zeros(n, dtype=bool)
    count = min(round(part * n), n - 2)
    if count > 0:
        held_out[np.random.default_rng(seed).choice(n, size=count, replace=False)] = True
    return held_out
