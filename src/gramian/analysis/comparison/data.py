"""The rows to measure: a sample, split if there is a target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from gramian.backend import array_ops, config
from gramian.backend.checks import positive
from gramian.backend.wording import counted
from gramian.kernels import Kernel, as_kernel
from gramian.rows import ArrayRows, Rows
from gramian.rows.reading import is_path
from gramian.tuning.kernel import tuned_kernel

HELD_OUT = 4  # one in four rows is held out
TUNED = "tune"  # the kernel is to be chosen
SECONDS = 30.0  # of the search for a kernel
MOST_CLASSES = 20  # whole numbers with more distinct values are regressed on


class Unprepared(ABC):
    """Rows that are still to be prepared, in a way that is learned from the training rows alone.

    Attributes
    ----------
    n_rows : int
    """

    n_rows: int

    @abstractmethod
    def rows(self, train: np.ndarray | None) -> Rows:
        """Learn from the rows with these numbers, or from all; return all rows, prepared."""


class Split(NamedTuple):
    """The numbers of the training rows and, if there is a target, of the held-out rows."""

    train: np.ndarray
    test: np.ndarray | None = None
    by_class: bool = False  # whether each class was split in the same proportion


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows in memory and, if there is a target, held-out rows."""

    rows: ArrayRows
    target: np.ndarray | None = None
    new_rows: ArrayRows | None = None
    new_target: np.ndarray | None = None
    by_class: bool = False  # whether each class was split in the same proportion


@dataclass(frozen=True)
class DataFacts:
    """A description of the data.

    Attributes
    ----------
    source : str
        The path or name of a file; empty if there is none.
    is_path : bool
        Whether the rows were passed as a path.
    rows, columns : int
    names : tuple of str
        The names of the columns, if they have any.
    kind : str
        The kind of data and its dtype.
    measured, held_out : int
        The number of rows measured, and of rows held out for the scores.
    by_class : bool
        Whether the same part of each class was held out.
    """

    source: str
    is_path: bool
    rows: int
    columns: int
    names: tuple[str, ...]
    kind: str
    measured: int
    held_out: int
    by_class: bool = False


class Data(NamedTuple):
    """All rows, the target, and which rows are measured."""

    rows: Rows
    target: np.ndarray | None
    split: Split

    def known(self, kernel: Kernel) -> Rows:
        """Return all rows but those held out; of a matrix all, since nothing is learned from it."""
        if self.split.test is None or kernel.is_matrix:
            return self.rows
        return self.rows.choose(self._not_held_out())

    def known_target(self) -> np.ndarray | None:
        """Return the target of these rows in numbers, for kernels that learn from it."""
        if self.target is None:
            return None
        known = self.target[self._not_held_out()]
        return codes(known) if are_classes(self.target) else known

    def _not_held_out(self) -> np.ndarray:
        test = np.empty(0, dtype=int) if self.split.test is None else self.split.test
        return np.setdiff1d(np.arange(self.rows.shape[0]), test)


def begin(
    kernel: Any, seconds: float | None, X: Any, y: Any, most: int, seed: int
) -> tuple[Kernel, Data, str]:
    """Return the kernel, the rows, and words for where a gamma that is a number comes from.

    ``seconds`` are for the search of a kernel that is tuned; None for the default.
    """
    tunes = isinstance(kernel, str) and kernel == TUNED
    if seconds is None:
        seconds = SECONDS
    elif not tunes:
        raise ValueError(
            f"time of compare is for kernel='tune'; got time={seconds!r} with kernel={kernel!r}."
        )
    seconds = positive("compare", "time", seconds)
    bare = clone(as_kernel("rbf" if tunes else kernel))
    given = read(bare, X, y, most, seed)
    if not tunes:
        return bare, given, "as given"
    said = f"chosen with the kernel, as tune does in up to {seconds:g} s, from the training rows"
    return tuned(given, seconds, seed), given, said


def read(kernel: Kernel, X: Any, y: Any, most: int, seed: int) -> Data:
    """Read the rows, and choose at most ``most`` of them."""
    checked = partial(kernel.read, owner="compare", min_rows=2, objects=None)
    rows = None if isinstance(X, Unprepared) else checked(X)
    n = X.n_rows if rows is None else rows.shape[0]
    target = as_target(y, n)
    parts = split(n, target, most, seed)
    if rows is None:
        rows = checked(X.rows(None if target is None else parts.train))
    return Data(rows, target, parts)


def as_target(y: Any, n: int) -> np.ndarray | None:
    """Return the target as a NumPy array, with one entry or line per row."""
    if y is None:
        return None
    target = np.asarray(array_ops.to_numpy(y))
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim not in (1, 2) or len(target) != n:
        raise ValueError(
            f"y of compare must have one entry per row, {counted(n, 'row')}; "
            f"got shape {target.shape}."
        )
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise ValueError("y of compare contains NaN or infinity. Drop or fill in these values.")
    return target


def are_classes(target: np.ndarray) -> bool:
    """Whether a target holds classes: text, or few distinct whole numbers."""
    if target.ndim > 1 or target.dtype.kind == "c":
        return False
    if target.dtype.kind not in "iuf":
        return True
    return bool(np.all(target == np.round(target))) and len(np.unique(target)) <= MOST_CLASSES


def codes(labels: np.ndarray) -> np.ndarray:
    """Return one indicator column per class."""
    numbers = np.unique(labels, return_inverse=True)[1].ravel()
    return (numbers[:, None] == np.unique(numbers)).astype(np.float64)


def split(n: int, target: np.ndarray | None, most: int, seed: int) -> Split:
    """Sample at most ``most`` of n rows; with a target, hold out a quarter of them."""
    if target is None:
        if n <= most:
            return Split(np.arange(n))
        return Split(np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False)))
    size = min(n, most)
    if size < 2 * HELD_OUT:
        raise ValueError(
            "compare has too few rows to hold out a quarter of them for scoring; got "
            f"{counted(size, 'row')}. Omit y, or pass more rows."
        )
    by_class = _splits_by_class(target, size // HELD_OUT)
    train, test = train_test_split(
        np.arange(n),
        train_size=size - size // HELD_OUT,
        test_size=size // HELD_OUT,
        random_state=seed,
        stratify=target if by_class else None,
    )
    return Split(train, test, by_class)


def tuned(given: Data, seconds: float, seed: int) -> Kernel:
    """Return the kernel that ``tune`` chooses from the training rows that are measured."""
    rows, target, (train, _, _) = given
    if target is None or rows.are_objects or array_ops.issparse(rows.take([0])):
        what = "a target: pass y" if target is None else "dense rows of numbers"
        raise ValueError(f"kernel='tune' of compare needs {what}. Or name a kernel, such as 'rbf'.")
    X = array_ops.host_float64(rows.take(np.sort(train)))
    y, classes = target[np.sort(train)], are_classes(target)
    Y = codes(y) if classes else y.reshape(len(y), -1).astype(np.float64)
    return tuned_kernel(X, Y, classes, seconds, np.random.default_rng(seed))


def draw(kernel: Kernel, given: Data) -> Sample:
    """Take the rows that are measured into memory."""
    rows, target, (train, test, by_class) = given
    known = _part(kernel, rows, train, train)
    if target is None or test is None:
        return Sample(known)
    return Sample(known, target[train], _part(kernel, rows, test, train), target[test], by_class)


def _splits_by_class(target: np.ndarray, size: int) -> bool:
    """Whether each class can be on both sides of the split."""
    if not are_classes(target):
        return False
    counts = np.unique(target, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(counts) <= size)


def _part(kernel: Kernel, rows: Rows, numbers: np.ndarray, among: np.ndarray) -> ArrayRows:
    """Return some rows in memory, or on the device that is set.

    For a precomputed kernel, they have the columns ``among``.
    """
    device = config.device()
    if device is not None and not rows.are_objects:
        rows = rows.place.to_device(rows, device)
    taken = rows.take(numbers)
    return ArrayRows(array_ops.take_columns(taken, among) if kernel.is_matrix else taken)


def facts(X: Any, rows: Rows, sample: Sample) -> DataFacts:
    first = rows.take([0])
    kind = "objects" if rows.are_objects else "sparse" if array_ops.issparse(first) else "dense"
    names = rows.names or ([str(name) for name in X.columns] if hasattr(X, "columns") else [])
    return DataFacts(
        source=_source(X),
        is_path=is_path(X),
        rows=rows.shape[0],
        columns=rows.shape[1],
        names=tuple(names),
        kind=kind if rows.are_objects else f"{kind}, float{8 * array_ops.itemsize(rows.dtype)}",
        measured=sample.rows.shape[0],
        held_out=0 if sample.new_rows is None else sample.new_rows.shape[0],
        by_class=sample.by_class,
    )


def _source(X: Any) -> str:
    if is_path(X):
        return str(X)
    files = [str(file.path) for file in getattr(X, "files", [])]  # FileRows
    if not files:
        return ""
    return Path(files[0]).name + (f" and {len(files) - 1} more" if len(files) > 1 else "")
