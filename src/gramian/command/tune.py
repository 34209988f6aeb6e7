"""``gramian tune``: choose kernel, scales, gamma and alpha for a target, and print the code."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

import gramian
from gramian.backend import array_ops
from gramian.backend.wording import counted
from gramian.command import arguments, reading, signatures, supervised
from gramian.command.results import check_free, predictions
from gramian.command.scores import show_scores
from gramian.command.screen import Screen
from gramian.persistence import models
from gramian.rows import ArrayRows, Rows
from gramian.tables import TableModel, preparation_code

# Parameters that have options of their own, or none.
HERE = ("X", "y", "holdout", "random_state")
SHOWN = 5  # candidates and columns


def add_options(parser: arguments.Parser) -> None:
    arguments.add_data(parser)
    signatures.add_options(parser, "tuning", signatures.parameters(_tune(), skip=HERE))
    arguments.add_preparation(parser, "column to predict, by name or number (counting from 0)")
    supervised.add_holdout(parser.add_argument_group("target"))
    group = parser.add_argument_group("output")
    group.add_argument(
        "--model",
        "--save",
        metavar="FILE",
        help="save the pipeline, for gramian predict and gramian.load",
    )
    group.add_argument("--force", action="store_true", help="replace an existing file")
    arguments.add_run(parser, device=True)


def _tune() -> Callable[..., BaseEstimator]:
    return gramian.tune


def run(args: Namespace, screen: Screen) -> None:
    path = None if args.model is None else Path(args.model).expanduser()
    if path is not None:
        reading.check_input(args.data)
        check_free(path, "--model", force=args.force, read=[args.data])
    with reading.opened(args) as source:
        supervised.check_target(source, args)
        planned = reading.prepared(source, args, args.target)
        table, preparation = planned.table, planned.preparation
        y = supervised.target_of(table, args)
        held_out = supervised.drawn(table.n_rows, args.holdout, args.seed)
        train = np.flatnonzero(~held_out)
        # Nothing that is learned, not even a mean or a scale, comes from rows that are scored.
        rows = reading.learned(table, preparation, train if held_out.any() else None)
        reading.show(screen, table, preparation)
        reading.show_plan(screen, planned)
        with screen.timed():
            model = _tune()(
                _training(rows, train),
                y[train],
                holdout=0.0,
                random_state=args.seed,
                **signatures.given(args, _tune()),
            )
        _show_search(screen, model.search_)
        _show_columns(screen, preparation.columns, model.feature_importances_)
        if held_out.any():
            new = np.flatnonzero(held_out)
            where = counted(len(new), "held-out row", ",")
            show_scores(screen, model, y[new], predictions(model, rows.choose(new)), where)
        imports, code = preparation_code(table, preparation, args.target or "target")
        if path is not None:
            models.save(TableModel(model, preparation), path)
    said = model.code_.partition("\n\n")
    screen.print("\n" + "\n".join([*imports, said[0], "", code, said[2]]))
    if path is not None:
        screen.line("model", f"→ {path}")


def _training(rows: Rows, train: np.ndarray) -> np.ndarray | Rows:
    """Return the rows to tune on: an array if they are in memory, else rows that stay on disk."""
    chosen = rows.choose(train)
    if isinstance(rows, ArrayRows):
        return array_ops.host_float64(array_ops.dense(chosen.collect()))
    return chosen


def _show_columns(screen: Screen, names: list[str], importances: np.ndarray) -> None:
    order = np.argsort(-importances)[:SHOWN]
    shares = (f"{names[i]} {importances[i]:.0%}" for i in order)
    screen.line("columns", f"by importance: {', '.join(shares)}")


def _errors(search: dict[str, np.ndarray]) -> np.ndarray:
    """Return the error of each candidate: the part of missed classes, if there are classes."""
    missed = search["missed_classes"]
    if not np.isnan(missed).all():
        return missed
    left_out = search["leave_one_out_error"]
    return np.where(np.isnan(left_out), search["validation_error"], left_out)


def _show_search(screen: Screen, search: dict[str, np.ndarray]) -> None:
    """Print the best of the candidates, the last ones first: they saw the most rows."""
    errors = _errors(search)
    order = sorted(range(len(errors)), key=lambda i: (-search["rows"][i], errors[i]))
    words = ("transform", "kernel", "scales", "approximation")
    screen.table(
        ["columns", "kernel", "scales", "approximation", ">gamma", ">alpha", ">rows", ">error"],
        [
            [
                *(str(search[word][i]) for word in words),
                *(f"{search[number][i]:.3g}" for number in ("gamma", "alpha")),
                f"{search['rows'][i]:,}",
                f"{errors[i]:.4f}",
            ]
            for i in order[:SHOWN]
        ],
    )
