"""``gramian cluster``: kernel k-means."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from gramian.approximations import Nystroem
from gramian.backend import array_ops
from gramian.command import arguments, estimators, forecast, reading, signatures
from gramian.command.results import Outputs, columns_of, writer
from gramian.command.row_labels import row_labels
from gramian.command.screen import Screen
from gramian.learners import KernelKMeans
from gramian.rows import Rows
from gramian.tables import Table, TableModel

FEATURES = 256


def add_options(parser: arguments.Parser) -> None:
    arguments.add_data(parser)
    found = signatures.parameters(KernelKMeans, skip=signatures.ELSEWHERE)
    signatures.add_options(parser, "clusters", found)
    arguments.add_kernel(parser)
    arguments.add_preparation(
        parser, "column of known classes: not used for the fit, but compared with the clusters"
    )
    arguments.add_output(parser, ".labels.csv")
    arguments.add_run(parser, device=True, scheduler=True)


def run(args: Namespace, screen: Screen) -> None:
    model = estimators.estimator(args, KernelKMeans)
    outputs = Outputs(args, "labels.csv")
    with reading.training(args, screen, args.target) as (table, preparation, rows):
        _use_few_features(args, model, rows)
        forecast.show(screen, model, rows)
        with screen.timed():
            model.fit(rows)
        estimators.show(screen, model, rows)
        labels = np.asarray(array_ops.to_numpy(model.labels_))
        sizes = np.bincount(labels, minlength=model.n_clusters)
        screen.line("clusters", ", ".join(f"{i}: {size:,}" for i, size in enumerate(sizes)))
        _compare(screen, table, preparation.target, labels)
        columns = columns_of(model, labels)
        write = writer(columns, row_labels(table, list(columns)))
        outputs.write(write, TableModel(model, preparation))
    outputs.show(screen, "labels")


def _use_few_features(args: Namespace, model: KernelKMeans, rows: Rows) -> None:
    """Use a Nyström approximation of moderate size for many rows, unless another is asked for.

    Clusters need fewer features than an accurate kernel matrix: the square root of the number of
    rows, the default in Python, takes several times the memory for the same clusters.
    """
    if args.approximation is None and rows.shape[0] > FEATURES**2:
        features = max(FEATURES, 4 * model.n_clusters)
        model.set_params(kernel=Nystroem(model.kernel, features))


def _compare(screen: Screen, table: Table, target: str | None, labels: np.ndarray) -> None:
    """Show how well the clusters agree with the known classes, if there are any."""
    known = table.target if target is None else table.column(target)
    if known is None or screen.quiet or len(np.unique(known)) > len(labels) // 2:
        return  # no target, or numbers that are not classes
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    classes = np.unique(known, return_inverse=True)[1]
    rand, information = (
        score(classes, labels) for score in (adjusted_rand_score, normalized_mutual_info_score)
    )
    named = "the known classes" if target is None else target
    said = f"adjusted Rand index {rand:.3f}, mutual information {information:.3f}"
    screen.line("agreement", f"with {named}: {said}")
