"""``gramian embed``: the features of an approximation."""

from __future__ import annotations

from argparse import Namespace

from gramian.command import arguments, estimators, forecast, reading
from gramian.command.results import Outputs, features_writer
from gramian.command.row_labels import row_labels
from gramian.command.screen import Screen
from gramian.tables import TableModel


def add_options(parser: arguments.Parser) -> None:
    arguments.add_data(parser)
    arguments.add_kernel(parser)
    arguments.add_preparation(parser)
    arguments.add_output(parser, ".features.npy")
    arguments.add_run(parser, device=True)


def run(args: Namespace, screen: Screen) -> None:
    model = estimators.approximation(args, "nystroem")
    outputs = Outputs(args, "features.npy")
    with reading.training(args, screen) as (table, preparation, rows):
        forecast.show(screen, model, rows)
        with screen.timed():
            model.fit(rows)
        estimators.show(screen, model, rows)
        write = features_writer(model, rows, row_labels(table))
        outputs.write(write, TableModel(model, preparation))
    outputs.show(screen, "output")
