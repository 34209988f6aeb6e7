"""``gramian pca``: kernel principal component analysis."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from gramian import _arrays
from gramian.command import _arguments, _estimators, _reading, _signatures
from gramian.command._results import Outputs, outcome_writer
from gramian.command._screen import Screen
from gramian.learners import KernelPCA
from gramian.tables import TableModel


def add_options(parser: _arguments.Parser) -> None:
    _arguments.add_data(parser)
    found = _signatures.parameters(KernelPCA, skip=_signatures.ELSEWHERE)
    _signatures.add_options(parser, "components", found)
    _arguments.add_kernel(parser)
    _arguments.add_preparation(parser)
    _arguments.add_output(parser, ".components.csv")
    _arguments.add_run(parser, device=True)


def run(args: Namespace, screen: Screen) -> None:
    model = _estimators.estimator(args, KernelPCA)
    outputs = Outputs(args, "components.csv")
    with _reading.training(args, screen) as (_, preparation, rows):
        with screen.timed():
            model.fit(rows)
        _estimators.show(screen, model, rows)
        ratios = np.asarray(_arrays.to_numpy(model.explained_variance_ratio_))
        shown = ", ".join(f"{ratio:.1%}" for ratio in ratios[:10])
        more = ", ..." if len(ratios) > 10 else ""
        screen.line("variance", f"{shown}{more} ({ratios.sum():.1%} in all)")
        outputs.write(outcome_writer(model, rows)[1], TableModel(model, preparation))
    outputs.show(screen, "output")
