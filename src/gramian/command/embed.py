"""``gramian embed``: the features of an approximation."""

from __future__ import annotations

from argparse import Namespace

from gramian.command import _arguments, _estimators, _reading
from gramian.command._results import Outputs, features_writer
from gramian.command._screen import Screen
from gramian.tables import TableModel


def add_options(parser: _arguments.Parser) -> None:
    _arguments.add_data(parser)
    _arguments.add_kernel(parser)
    _arguments.add_preparation(parser)
    _arguments.add_output(parser, ".features.npy")
    _arguments.add_run(parser, device=True)


def run(args: Namespace, screen: Screen) -> None:
    model = _estimators.approximation(args, "nystroem")
    outputs = Outputs(args, "features.npy")
    with _reading.training(args, screen) as (_, preparation, rows):
        with screen.timed():
            model.fit(rows)
        _estimators.show(screen, model, rows)
        outputs.write(features_writer(model, rows), TableModel(model, preparation))
    outputs.show(screen, "output")
