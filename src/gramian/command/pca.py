"""``gramian pca``: kernel principal component analysis."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from gramian.backend import array_ops
from gramian.command import arguments, estimators, forecast, reading, signatures
from gramian.command.results import Outputs, outcome_writer
from gramian.command.row_labels import row_labels
from gramian.command.screen import Screen
from gramian.learners import KernelPCA
from gramian.tables import TableModel


def add_options(parser: arguments.Parser) -> None:
    arguments.add_data(parser)
    found = signatures.parameters(KernelPCA, skip=signatures.ELSEWHERE)
    signatures.add_options(parser, "components", found)
    arguments.add_kernel(parser)
    arguments.add_preparation(parser)
    arguments.add_output(parser, ".components.csv")
    arguments.add_run(parser, device=True)


def run(args: Namespace, screen: Screen) -> None:
    model = estimators.estimator(args, KernelPCA)
    outputs = Outputs(args, "components.csv")
    with reading.training(args, screen) as (table, preparation, rows):
        forecast.show(screen, model, rows)
        with screen.timed():
            model.fit(rows)
        estimators.show(screen, model, rows)
        ratios = np.asarray(array_ops.to_numpy(model.explained_variance_ratio_))
        shown = ", ".join(f"{ratio:.1%}" for ratio in ratios[:10])
        more = ", ..." if len(ratios) > 10 else ""
        screen.line("variance", f"{shown}{more} ({ratios.sum():.1%} in total)")
        _, write = outcome_writer(model, rows, row_labels(table))
        outputs.write(write, TableModel(model, preparation))
    outputs.show(screen, "output")
