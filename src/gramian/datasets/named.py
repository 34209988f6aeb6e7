"""Public data sets by name, for examples, benchmarks and tests.

A data set is read from ``<name>.npz`` in the folder named by the environment variable
``GRAMIAN_DATA``. If that is not set or has no such file, scikit-learn's copy is used: some data
sets ship with it, others are downloaded.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets as public

from gramian.backend.typing import ArrayLike, DType
from gramian.datasets.deformations import deformed, write_deformed

__all__ = ["Dataset", "Listed", "deformed", "listing", "load", "names", "scaled", "write_deformed"]

FOLDER = "GRAMIAN_DATA"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows and targets, with a test set if there is an official one.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows, in their stored dtype, often uint8 or int16.
    y : array of shape (n,)
        Classes or values.
    X_test, y_test : array or None
        The official test set. X and y are then the training set.

    See Also
    --------
    load : makes it.

    Examples
    --------
    >>> from gramian import datasets
    >>> datasets.load("iris")
    Dataset(X=(150, 4) float64, y=(150,) int64)
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None

    def __repr__(self) -> str:
        arrays = ((field.name, getattr(self, field.name)) for field in fields(self))
        shown = (f"{name}={a.shape} {a.dtype}" for name, a in arrays if a is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


def load(name: str) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of :func:`names`. ``<name>.npz`` in the folder ``GRAMIAN_DATA`` comes first; it must
        contain the arrays X and y, or X_train and y_train, and may contain X_test and y_test.

    Returns
    -------
    Dataset
        Rows are neither scaled nor shuffled. Of the downloaded data sets, only mnist has a test
        set: OpenML does not split pendigits and satimage.

    See Also
    --------
    names : the names it accepts.
    scaled : scales columns to [0, 1].

    Examples
    --------
    >>> from gramian import datasets
    >>> digits = datasets.load("digits")
    >>> digits.X.shape, digits.X_test is None
    ((1797, 64), True)
    """
    folder = _folder()
    if folder is not None and (folder / f"{name}.npz").is_file():
        return _read(folder / f"{name}.npz")
    if name not in _SOURCES:
        known = names()
        close = get_close_matches(str(name).lower(), known, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"No data set {name!r}.{meant} The names are: {', '.join(known)}.")
    source = _SOURCES[name]
    if source is None:
        raise FileNotFoundError(
            f"The data set {name!r} cannot be downloaded from here. {_what_to_do(name)}"
        )
    try:
        return source.load()
    except OSError as error:
        raise OSError(
            f"The data set {name!r} could not be downloaded ({error}). {_what_to_do(name)}"
        ) from error


def names() -> list[str]:
    """Return the names that :func:`load` accepts, including files in ``GRAMIAN_DATA``.

    See Also
    --------
    listing : the same with sizes and sources.
    load : loads one of them.

    Examples
    --------
    >>> from gramian import datasets
    >>> [name for name in datasets.names() if "digits" in name]
    ['digits', 'pendigits']
    """
    folder = _folder()
    files = folder.glob("*.npz") if folder else ()
    return sorted({*_SOURCES, *(file.stem for file in files if _parts(file))})


class Listed(NamedTuple):
    """An entry of the list of data sets: its size, if known without a download."""

    name: str
    shape: tuple[int, ...] | None
    test_rows: int | None
    place: str


def listing() -> list[Listed]:
    """List all data sets with their sizes and sources.

    See Also
    --------
    names : the names alone.
    load : loads one of them.

    Examples
    --------
    >>> from gramian import datasets
    >>> next(one for one in datasets.listing() if one.name == "iris").shape
    (150, 4)
    """
    return [_listed(name) for name in names()]


def _listed(name: str) -> Listed:
    folder, source = _folder(), _SOURCES.get(name)
    file = None if folder is None else folder / f"{name}.npz"
    if file is not None and _parts(file):
        shapes = _shapes(file)
        return Listed(name, shapes[0], shapes[2][0] if len(shapes) > 2 else None, str(file))
    if source is None:
        return Listed(name, None, None, "not here")
    shape = source.load().X.shape if source.is_shipped else None
    return Listed(
        name, shape, None, "scikit-learn" + ("" if source.is_shipped else ", by download")
    )


def _shapes(path: Path) -> list[tuple[int, ...]]:
    """Read the shapes of the arrays X, y, X_test, y_test from their headers."""
    shapes = []
    with zipfile.ZipFile(path) as archive:
        for part in _parts(path):
            with archive.open(f"{part}.npy") as array:
                version = np.lib.format.read_magic(array)
                read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
                shapes.append(read(array)[0])
    return shapes


def scaled(X: ArrayLike, dtype: DType = np.float64) -> np.ndarray:
    """Scale each column of X to [0, 1]; constant columns become 0.

    Parameters
    ----------
    X : array of shape (n, d)
        Of any real dtype; it is not changed.
    dtype : dtype, default=float64
        The floating-point type of the result.

    See Also
    --------
    load : rows that are not scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.datasets import scaled
    >>> scaled(np.array([[0, 7], [5, 7], [10, 7]]))
    array([[0. , 0. ],
           [0.5, 0. ],
           [1. , 0. ]])
    """
    X, dtype = np.asarray(X), np.dtype(dtype)
    if dtype.kind != "f":
        raise ValueError(f"dtype must be a floating-point type; got {dtype}.")
    # Use the wider dtype, so that uint8 does not overflow and float64 keeps its digits.
    out = X.astype(np.result_type(X.dtype, dtype))
    out -= out.min(axis=0)
    largest = out.max(axis=0)
    out /= np.where(largest > 0, largest, 1)
    return out.astype(dtype, copy=False)


def _folder() -> Path | None:
    given = os.environ.get(FOLDER)
    return Path(given).expanduser() if given else None


def _what_to_do(name: str) -> str:
    folder = _folder()
    where = "which is not set" if folder is None else f"now {str(folder)!r}"
    if folder is not None and not folder.is_dir():
        where += ", where there is no folder"
    return (
        f"Put {name}.npz, with the arrays X and y (or X_train, y_train, X_test, y_test), in the "
        f"folder that the environment variable {FOLDER} names ({where})."
    )


def _parts(path: Path) -> list[str]:
    """Return the names of the arrays X, y, X_test, y_test in this file; empty without X and y."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        inside = {entry.removesuffix(".npy") for entry in archive.namelist()}
    for training in (["X", "y"], ["X_train", "y_train"]):
        if inside.issuperset(training):
            test = ["X_test", "y_test"]
            return training + test if inside.issuperset(test) else training
    return []


def _read(path: Path) -> Dataset:
    parts = _parts(path)
    if not parts:
        raise ValueError(
            f"{path} is not a data set: it lacks the arrays X and y, or X_train and y_train."
        )
    with np.load(path, allow_pickle=False) as archive:
        return Dataset(*(archive[part] for part in parts))


class Source(NamedTuple):
    """The source of a data set that is not in the folder."""

    load: Callable[[], Dataset]
    is_shipped: bool = False  # ships with scikit-learn; others are downloaded


def _shipped(loader: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Source:
    return Source(lambda: Dataset(*loader(return_X_y=True)), is_shipped=True)


def _covtype() -> Dataset:
    X, y = public.fetch_covtype(return_X_y=True)
    return Dataset(_narrow(X, np.int16), _narrow(y, np.uint8))


def _cadata() -> Dataset:
    """Return the original columns, before scikit-learn averages them per household."""
    X, y = public.fetch_california_housing(return_X_y=True)
    income, age, rooms, bedrooms, population, occupancy, latitude, longitude = X.T
    households = np.rint(population / occupancy)
    counts = np.rint(rooms * households), np.rint(bedrooms * households), population, households
    columns = longitude, latitude, age, *counts, income
    return Dataset(np.stack(columns, axis=1).astype(np.float32), (y * 1e5).astype(np.float32))


def _openml(name: str, split: int | None = None) -> Source:
    """Load a classification data set from OpenML; rows from ``split`` on are the test set."""

    def source() -> Dataset:
        # This parser is the one that does not need pandas.
        X, y = public.fetch_openml(
            name, version=1, return_X_y=True, as_frame=False, parser="liac-arff"
        )
        X, y = _narrow(X, np.uint8), _narrow(y.astype(np.float64), np.uint8)
        return (
            Dataset(X, y) if split is None else Dataset(X[:split], y[:split], X[split:], y[split:])
        )

    return Source(source)


def _narrow(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Convert x to a smaller dtype, if that holds every value exactly."""
    with np.errstate(invalid="ignore"):
        small = x.astype(dtype)
    return small if np.array_equal(small, x) else x


# None: no public source reliably gives the same rows.
_SOURCES: dict[str, Source | None] = {
    "a9a": None,
    "abalone": None,
    "avila": None,
    "banknote": None,
    "breast_cancer": _shipped(public.load_breast_cancer),
    "cadata": Source(_cadata),
    "cod_rna": None,
    "covtype": Source(_covtype),
    "cpusmall": None,
    "diabetes": _shipped(public.load_diabetes),
    "digits": _shipped(public.load_digits),
    "ijcnn1": None,
    "iris": _shipped(public.load_iris),
    "mnist": _openml("mnist_784", split=60_000),
    "pendigits": _openml("pendigits"),
    "satimage": _openml("satimage"),
    "skin": None,
    "w8a": None,
    "wine": _shipped(public.load_wine),
    "wine_quality": None,
}
