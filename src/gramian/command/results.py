"""Write results: all files or none, and never over existing files without --force."""

from __future__ import annotations

import os
from argparse import Namespace, _ArgumentGroup
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, is_classifier, is_regressor

from gramian.approximations import Approximation
from gramian.backend import array_ops, optional
from gramian.backend.typing import Array
from gramian.backend.writing import whole_file
from gramian.command.errors import UsageError
from gramian.command.reading import check_input, stem
from gramian.command.row_labels import Columns
from gramian.command.screen import Screen
from gramian.learners import KernelExpectileRegressor, KernelPCA, KernelQuantileRegressor
from gramian.persistence import models
from gramian.rows import Rows
from gramian.rows.files import formats
from gramian.tables import TableModel
from gramian.tables.model import applied

ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".npy")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
TEXT_ROWS = 10_000  # rows written at a time


class Kind(NamedTuple):
    """What an estimator returns for each row: a column name and a file suffix."""

    word: str
    suffix: str


def kind_of(estimator: BaseEstimator) -> Kind:
    if isinstance(estimator, ClusterMixin):
        return Kind("cluster", "labels.csv")
    if is_classifier(estimator) or is_regressor(estimator):
        return Kind("prediction", "predictions.csv")
    if isinstance(estimator, KernelPCA):
        return Kind("component", "components.csv")
    if isinstance(estimator, Approximation):
        return Kind("feature", "features.npy")
    raise UsageError(f"{type(estimator).__name__} cannot predict on its own.")


def columns_of(estimator: BaseEstimator, values: Array) -> Columns:
    """Return the values of all rows as named columns."""
    word, values = kind_of(estimator).word, np.asarray(array_ops.to_numpy(values))
    if values.ndim == 1:
        return {word: values}
    levels = levels_of(estimator) or range(1, 1 + values.shape[1])
    return {f"{word}_{level:g}": values[:, i] for i, level in enumerate(levels)}


def levels_of(estimator: BaseEstimator) -> list[float] | None:
    """Return the quantiles or expectiles that an estimator predicts, or None."""
    if isinstance(estimator, KernelQuantileRegressor):
        return np.atleast_1d(estimator.quantile).tolist()
    if isinstance(estimator, KernelExpectileRegressor):
        return np.atleast_1d(estimator.level).tolist()
    return None


def predictions(estimator: BaseEstimator, rows: Rows, *, proba: bool = False) -> Columns:
    """Apply a fitted estimator to rows; with ``proba``, also a column for each class."""
    method = "predict" if hasattr(estimator, "predict") else "transform"
    columns = columns_of(estimator, applied(estimator, method, rows))
    if proba:
        found = np.asarray(array_ops.to_numpy(applied(estimator, "predict_proba", rows)))
        labels = estimator.classes_.tolist()
        columns |= {f"probability_{label}": found[:, i] for i, label in enumerate(labels)}
    return columns


def add_proba(group: _ArgumentGroup) -> None:
    group.add_argument(
        "--proba", action="store_true", help="also write a column of probabilities for each class"
    )


def check_probabilities(estimator: BaseEstimator) -> None:
    """Raise an error if a model has no probabilities."""
    if not hasattr(estimator, "predict_proba"):
        raise UsageError(
            f"--proba: {type(estimator).__name__} has no probabilities. Fit a model that has, with "
            "gramian classify --loss logistic."
        )


class Outputs:
    """The files to write: checked before the work starts, moved into place together at the end."""

    def __init__(self, args: Namespace, suffix: str, endings: tuple[str, ...] = ENDINGS) -> None:
        check_input(args.data)
        self.path = Path(args.output or f"{stem(args.data)}.{suffix}").expanduser()
        self.model = Path(args.model).expanduser() if getattr(args, "model", None) else None
        if not self.path.name.lower().endswith(endings):
            raise UsageError(
                f"The output {str(self.path)!r} must end in one of {', '.join(endings)}."
            )
        if self.path.suffix.lower() in (".parquet", ".arrow"):
            _arrow_to_write(self.path.suffix.lower())
        if self.model and self.model.absolute() == self.path.absolute():
            raise UsageError("The output and the model must be different files.")
        read = [getattr(args, "data", ""), getattr(args, "fitted", "")]  # data, and a model
        for path, option in ((self.path, "--output"), (self.model, "--model")):
            if path is not None:
                check_free(path, option, force=args.force, read=read)

    def write(self, write: Callable[[BinaryIO, str], None], model: TableModel | None) -> None:
        """Write the result with ``write(file, ending)``, and the model if one is wanted."""
        # Both are complete before either is moved into place: the model, and then its result.
        with ExitStack() as both:
            write(both.enter_context(whole_file(self.path)), self.path.suffix.lower())
            if self.model is not None and model is not None:
                models.write(model, both.enter_context(whole_file(self.model)))

    def show(self, screen: Screen, what: str) -> None:
        screen.line(what, f"→ {self.path}")
        if self.model is not None:
            screen.line("model", f"→ {self.model}")


def check_free(path: Path, option: str, *, force: bool, read: Sequence[str] = ()) -> None:
    """Raise an error if a file cannot be written, or would replace an input or existing file."""
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r} for {option} {str(path)!r}.")
    if path.is_dir():
        raise UsageError(f"{option} {str(path)!r} is a folder; name a file instead.")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"No permission to write to the folder {str(folder)!r}: see {option}.")
    if not path.exists():
        return
    if any(Path(one).exists() and path.samefile(one) for one in read):
        raise UsageError(f"{option} {str(path)!r} would replace an input file.")
    if not force:
        raise UsageError(
            f"The file {str(path)!r} already exists: use --force to replace it, or {option} FILE "
            "to name another."
        )


def writer(columns: Columns, labels: Columns | None = None) -> Callable[[BinaryIO, str], None]:
    """Return a function that writes the columns in the format of the file's extension.

    ``labels`` are columns that come first, except in an array.
    """

    def write(file: BinaryIO, ending: str) -> None:
        plain = {name: _plain(values) for name, values in columns.items()}
        if ending == ".npy":
            first = list(plain.values())
            array = first[0] if len(first) == 1 else np.stack(first, axis=1)
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
            return
        named = {name: _plain(values) for name, values in (labels or {}).items()}
        table = named | plain
        if ending in DELIMITERS:
            table = {inert(name): _inert_column(values) for name, values in table.items()}
        _write_table(file, ending, table)

    return write


def inert(text: str) -> str:
    """Return text that a spreadsheet does not run as a formula.

    >>> inert("=1+1"), inert("-0.5"), inert("setosa")
    ("'=1+1", '-0.5', 'setosa')
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _inert_column(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "U":
        return values
    entries, places = np.unique(values, return_inverse=True)
    return np.array([inert(entry) for entry in entries.tolist()])[places]


def _plain(values: np.ndarray) -> np.ndarray:
    return values.astype(str) if values.dtype == object else values


def _write_table(file: BinaryIO, ending: str, columns: Columns) -> None:
    if ending in DELIMITERS and not optional.is_importable("pyarrow.csv"):
        _write_text(file, DELIMITERS[ending], columns)
        return
    pyarrow = _arrow_to_write(ending)
    # Arrow supports only contiguous columns.
    table = pyarrow.table({name: np.ascontiguousarray(v) for name, v in columns.items()})
    if ending == ".parquet":
        pyarrow.parquet.write_table(table, file)
    elif ending == ".arrow":
        with pyarrow.ipc.new_file(file, table.schema) as out:
            out.write_table(table)
    else:
        delimiter = DELIMITERS[ending]
        pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(delimiter=delimiter))


def _arrow_to_write(ending: str) -> ModuleType:
    with optional.needed("pyarrow", f"Writing {formats.FORMATS[ending]} files"):
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    return pyarrow


def _write_text(file: BinaryIO, delimiter: str, columns: Columns) -> None:
    """Write the same text as pyarrow, which is five times as fast."""
    names = (_quoted(name) for name in columns)
    file.write((delimiter.join(names) + "\n").encode())
    n = len(next(iter(columns.values())))
    for start in range(0, n, TEXT_ROWS):
        block = (_entries(values[start : start + TEXT_ROWS]) for values in columns.values())
        lines = (delimiter.join(line) + "\n" for line in zip(*block, strict=True))
        file.write("".join(lines).encode())


def _entries(values: np.ndarray) -> list[str]:
    texts = values.astype(str).tolist()
    if values.dtype.kind == "b":
        return [text.lower() for text in texts]
    return texts if values.dtype.kind in "iufM" else [_quoted(text) for text in texts]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def features_writer(
    approximation: Approximation, rows: Rows, labels: Columns | None = None
) -> Callable[[BinaryIO, str], None]:
    """Return a function that writes features; to NPY block by block, if they have one part."""
    factors = approximation.factor_rows(rows)

    def write(file: BinaryIO, ending: str) -> None:
        whole = len(factors.parts) != 1 or factors.core is not None
        if ending != ".npy" or whole or array_ops.is_foreign(rows.place.reference):
            columns = columns_of(approximation, approximation.transform(rows))
            writer(columns, labels)(file, ending)
            return
        features = factors.parts[0]
        dtype = np.dtype(features.dtype)
        header = np.lib.format.header_data_from_array_1_0(np.empty((0, 0), dtype))
        np.lib.format.write_array_header_2_0(file, {**header, "shape": features.shape})
        file.flush()
        start = file.tell()
        # Detect a full disk now: later it would kill the process.
        if hasattr(os, "posix_fallocate"):
            size = features.shape[0] * features.shape[1] * dtype.itemsize
            os.posix_fallocate(file.fileno(), 0, start + size)
        out = np.memmap(file, dtype, "r+", start, features.shape)

        def put(z: np.ndarray, place: np.ndarray) -> np.ndarray:
            place[...] = z
            return np.zeros(())

        features.sum(put, out, label="features")
        out.flush()

    return write


def outcome_writer(
    estimator: BaseEstimator, rows: Rows, labels: Columns | None = None, *, proba: bool = False
) -> tuple[Columns, Callable[[BinaryIO, str], None]]:
    """Apply a fitted estimator to rows; return the columns and a function that writes them."""
    if isinstance(estimator, Approximation):
        return {}, features_writer(estimator, rows, labels)
    columns = predictions(estimator, rows, proba=proba)
    return columns, writer(columns, labels)
