"""``gramian predict``: apply a saved model to new rows."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from gramian.backend.wording import counted
from gramian.command import arguments, reading
from gramian.command.results import Outputs, kind_of, outcome_writer
from gramian.command.ridge import score
from gramian.command.screen import Screen
from gramian.learners import KernelRidgeClassifier
from gramian.persistence.models import load
from gramian.tables import Preparation, Table, TableModel


def add_options(parser: arguments.Parser) -> None:
    parser.add_argument(
        "fitted", metavar="MODEL", help="a model file, written by --model or gramian.save"
    )
    arguments.add_data(parser)
    arguments.add_output(parser, "the kind of result, such as .labels.csv", model=False)
    arguments.add_run(parser, seed=False)


def run(args: Namespace, screen: Screen) -> None:
    loaded = load(args.fitted)
    estimator = loaded.estimator if isinstance(loaded, TableModel) else loaded
    kind = kind_of(estimator)
    outputs = Outputs(args, kind.suffix)
    preparation = loaded.preparation if isinstance(loaded, TableModel) else None
    with reading.opened(args, None if preparation is None else preparation.names) as table:
        if preparation is None:  # saved from Python: only width and feature names are known
            names = getattr(estimator, "feature_names_in_", [])
            others = [name for name in table.names if name not in names] if len(names) else []
            preparation = Preparation(table, exclude=others)
            preparation.names = list(names) if table.named and len(names) else preparation.names
        reading.show(screen, table, preparation)
        screen.line("model", type(estimator).__name__)
        rows = preparation.rows(preparation.raw(table))
        with screen.timed():
            columns, write = outcome_writer(estimator, rows)
        if kind.word == "prediction":
            _score(screen, table, preparation, estimator, columns["prediction"])
        outputs.write(write, None)
    outputs.show(screen, "output")


def _score(
    screen: Screen, table: Table, preparation: Preparation, estimator: Any, predicted: Any
) -> None:
    """Score the predictions if the true values are known."""
    known = preparation.target in table.names and (
        table.named or len(table.names) == preparation.width
    )
    truth = table.column(preparation.target or "") if known else table.target
    if truth is not None and not screen.quiet:
        classes = isinstance(estimator, KernelRidgeClassifier)
        if classes or np.asarray(truth).dtype.kind in "biuf":
            where = counted(len(truth), "row", ",")
            score(screen, np.asarray(truth), predicted, where, classes)
