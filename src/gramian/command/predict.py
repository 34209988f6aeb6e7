"""``gramian predict``: apply a saved model to new rows."""

from __future__ import annotations

from argparse import Namespace

from sklearn.base import BaseEstimator, is_classifier

from gramian.backend.wording import counted
from gramian.command import arguments, reading
from gramian.command.results import (
    Columns,
    Outputs,
    add_proba,
    check_probabilities,
    kind_of,
    outcome_writer,
)
from gramian.command.row_labels import row_labels
from gramian.command.scores import show_scores
from gramian.command.screen import Screen
from gramian.persistence.models import load
from gramian.rows import Rows
from gramian.rows.files.formats import gaps_in
from gramian.tables import Preparation, Table, TableModel
from gramian.tables.base import listed


def add_options(parser: arguments.Parser) -> None:
    parser.add_argument(
        "fitted", metavar="MODEL", help="a model file, written by --model or gramian.save"
    )
    arguments.add_data(parser)
    arguments.add_output(parser, "the kind of result, such as .labels.csv", model=False)
    group = parser.add_argument_group("columns")
    group.add_argument(
        "--keep",
        metavar="COLUMN,...",
        help="columns to copy into the result; by default an identifier or the row's number",
    )
    group.add_argument(
        "--unknown",
        choices=["ignore", "error"],
        default="ignore",
        help="what to do with text that the fit had not seen: count and ignore it, or stop",
    )
    add_proba(group)
    arguments.add_run(parser, seed=False)


def run(args: Namespace, screen: Screen) -> None:
    loaded = load(args.fitted)
    estimator = loaded.estimator if isinstance(loaded, TableModel) else loaded
    kind = kind_of(estimator)
    if args.proba:
        check_probabilities(estimator)
    outputs = Outputs(args, kind.suffix)
    preparation = loaded.preparation if isinstance(loaded, TableModel) else None
    with reading.opened(args, None if preparation is None else preparation.names) as table:
        if preparation is None:
            preparation = _of_python(estimator, table)
        preparation.unknown = args.unknown
        if preparation.drop_missing:
            table = _complete(screen, table, preparation)
        reading.show(screen, table, preparation)
        screen.line("model", type(estimator).__name__)
        keep = None if args.keep is None else [name.strip() for name in args.keep.split(",")]
        labels = row_labels(table, [], keep)
        raw = preparation.raw(table).persist()
        _show_unknown(screen, preparation, raw)
        rows = preparation.rows(raw)
        with screen.timed():
            columns, write = outcome_writer(estimator, rows, labels, proba=args.proba)
        if kind.word == "prediction":
            _score(screen, table, preparation, estimator, columns)
        outputs.write(write, None)
    outputs.show(screen, "output")


def _of_python(estimator: BaseEstimator, table: Table) -> Preparation:
    """Return the preparation for a model saved from Python, of which only names are known."""
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    numbers = names if names and table.named else table.names
    missing = [name for name in numbers if name not in table.names]
    if missing:
        raise ValueError(
            f"{table.said} lacks columns that the model was fitted on: {listed(missing)}."
        )
    preparation = Preparation(numbers, scale="none")
    preparation.look(table)
    preparation.learned_ = True  # there is nothing to learn
    return preparation


def _complete(screen: Screen, table: Table, preparation: Preparation) -> Table:
    """Leave out rows with gaps, as in the fit."""
    whole = table.complete([name for name in preparation.names if name in table.names])
    if whole.n_rows < table.n_rows:
        gone = counted(table.n_rows - whole.n_rows, "row", ",")
        screen.line("rows", f"left out {gone} with missing values")
    return whole


def _show_unknown(screen: Screen, preparation: Preparation, raw: Rows) -> None:
    if preparation.unknown == "error":
        return
    for name, count in preparation.unknown_entries(raw).items():
        said = f"{counted(count, 'row', ',')} with a value of {name!r} that the fit had not seen"
        screen.line("unknown", f"{said}: ignored (--unknown error refuses it)")


def _score(
    screen: Screen,
    table: Table,
    preparation: Preparation,
    estimator: BaseEstimator,
    columns: Columns,
) -> None:
    """Score the predictions of rows whose true values are known."""
    known = preparation.target in table.names and (
        table.named or len(table.names) == preparation.width
    )
    truth = table.column(preparation.target or "") if known else table.target
    if truth is None or (not is_classifier(estimator) and truth.dtype.kind not in "biuf"):
        return
    present = ~gaps_in(truth)
    if present.any():
        some = {name: values[present] for name, values in columns.items()}
        where = counted(int(present.sum()), "row", ",")
        show_scores(screen, estimator, truth[present], some, where)
