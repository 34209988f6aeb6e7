"""``gramian tune``: choose kernel, scales, gamma and alpha for a target, and print the code."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

import gramian
from gramian.backend import array_ops
from gramian.command import arguments, reading, signatures
from gramian.command.errors import UsageError
from gramian.command.screen import Screen
from gramian.tables import Table, preparation_code

HERE = ("X", "y", "random_state")  # parameters that have options of their own
SHOWN = 5  # candidates and columns


def add_options(parser: arguments.Parser) -> None:
    arguments.add_data(parser)
    signatures.add_options(parser, "tuning", signatures.parameters(_tune(), skip=HERE))
    arguments.add_preparation(parser, "column to predict, by name or number (counting from 0)")
    arguments.add_run(parser)


def _tune() -> Any:
    return gramian.tune


def run(args: Namespace, screen: Screen) -> None:
    with reading.training(args, screen, args.target) as (table, preparation, rows):
        y = _target(args, table)
        X = array_ops.host_float64(array_ops.dense(rows.collect()))
        with screen.timed():
            model = _tune()(X, y, random_state=args.seed, **signatures.given(args, _tune()))
        imports, code = preparation_code(table, preparation, args.target or "target")
    _show_search(screen, model.search_)
    order = np.argsort(-model.feature_importances_)[:SHOWN]
    shares = (f"{preparation.columns[i]} {model.feature_importances_[i]:.0%}" for i in order)
    screen.line("columns", f"by importance: {', '.join(shares)}")
    if model.score_ is not None:
        measure = "accuracy" if "missed" in _error_name(model.search_) else "R²"
        screen.line("score", f"{measure} {model.score_:.4f} on rows that were held out")
    said = model.code_.partition("\n\n")
    screen.print("\n" + "\n".join([*imports, said[0], "", code, said[2]]))


def _target(args: Namespace, table: Table) -> np.ndarray:
    if args.target is not None:
        return table.column(table.find(args.target))
    if table.target is None:
        raise UsageError(
            f"{table.said} has no target: name the column to predict with --target COLUMN."
        )
    return table.target


def _error_name(search: dict[str, np.ndarray]) -> str:
    missed = search["missed_classes"]
    return "leave_one_out_error" if np.isnan(missed).all() else "missed_classes"


def _show_search(screen: Screen, search: dict[str, np.ndarray]) -> None:
    """Print the best of the candidates, the last ones first: they saw the most rows."""
    name = _error_name(search)
    order = sorted(range(len(search[name])), key=lambda i: (-search["rows"][i], search[name][i]))
    words = ("transform", "kernel", "scales")
    screen.table(
        ["columns", "kernel", "scales", ">gamma", ">alpha", ">rows", ">leave-one-out error"],
        [
            [
                *(str(search[word][i]) for word in words),
                *(f"{search[number][i]:.3g}" for number in ("gamma", "alpha")),
                f"{search['rows'][i]:,}",
                f"{search[name][i]:.4f}",
            ]
            for i in order[:SHOWN]
        ],
    )
