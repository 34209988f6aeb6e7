"""Models on disk: ``save`` and ``load``.

A model file is a ZIP archive of NPY arrays and of one JSON text, ``model.json``, which says how
they make up the model. No part of it is code, and NumPy alone can read the arrays.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, BinaryIO

import numpy as np

import gramian
from gramian.backend.writing import whole_file
from gramian.persistence import states

__all__ = ["ModelFileError", "load", "save"]

FORMAT = "gramian model"
VERSION = 1  # to be raised when an older gramian could misread what this one writes
TEXT = "model.json"


class ModelFileError(ValueError):
    """A file that is no model, is damaged, or needs a newer gramian.

    Examples
    --------
    >>> import tempfile, gramian
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         gramian.load(file.name)
    ...     except gramian.ModelFileError as error:
    ...         print("no model" in str(error))
    True
    """


def save(estimator: Any, path: Any, *, classes: Iterable[type] = ()) -> None:
    """Write a learner, an approximation, a kernel or a sampler, fitted or not, to a file.

    The file holds arrays and JSON, no code: whoever loads it needs not trust it, as with pickle.
    It is written whole or not at all. Models that contain Python functions, such as a
    ``FunctionKernel``, cannot be saved. Arrays of torch and other libraries are
    stored as NumPy's, and loaded as such; rows that an exact model keeps, also those of a file, are
    stored in the model.

    Parameters
    ----------
    estimator : estimator
        Of gramian's own classes and of those that you name. The same estimator always gives the
        same bytes.
    path : path or str
        A file that is there already is replaced.
    classes : list of classes, optional
        Classes of yours that the estimator has or is: ``[MyKernel]``. What they keep must be
        numbers, texts, arrays or objects of known classes. Pass the same ones to :func:`load`.

    Examples
    --------
    >>> import tempfile
    >>> import gramian
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = gramian.KernelRidgeClassifier(alpha=0.1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gramian.save(model, f"{folder}/iris.gramian")
    ...     again = gramian.load(f"{folder}/iris.gramian")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    with whole_file(path) as file:
        write(estimator, file, classes)


def load(path: Any, *, classes: Iterable[type] = ()) -> Any:
    """What :func:`save`, or the command ``gramian``, wrote to a file.

    Parameters
    ----------
    path : path or str
    classes : list of classes, optional
        Classes of yours that the model may hold: ``[MyKernel]``. A file names its classes, and only
        gramian's own and these are made; no module is imported. The attributes of such an object
        come from the file, so pass only classes whose methods do no harm whatever these are.

    Returns
    -------
    estimator
        As it was saved, its arrays NumPy's. From a file of the command: a
        :class:`gramian.tables.TableModel`, whose ``estimator`` it is.

    Raises
    ------
    ModelFileError
        Where the file is no model, is damaged, or was written by a newer gramian whose models this
        one cannot read.

    Examples
    --------
    >>> import tempfile
    >>> import gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gramian.save(gramian.RBF(gamma=0.5), f"{folder}/kernel.gramian")
    ...     gramian.load(f"{folder}/kernel.gramian")
    RBF(gamma=0.5)
    """
    known = states.known_classes(classes)
    with open(path, "rb") as file:
        try:
            return _read(file, known)
        except ModelFileError as error:
            raise ModelFileError(f"The file {os.fspath(path)!r} {error}") from error
        except MemoryError:
            raise
        except Exception as error:  # of every type, as damages are
            raise ModelFileError(
                f"The file {os.fspath(path)!r} is no model that can be read, or is damaged: "
                f"{type(error).__name__}: {error}".rstrip(".")
                + "."
            ) from error


def write(estimator: Any, file: BinaryIO, classes: Iterable[type] = ()) -> None:
    """``save`` to an open file."""
    known = states.known_classes(classes)
    if type(estimator) not in known.values():
        raise TypeError(
            "Expected a learner, an approximation, a kernel or a sampler of gramian's own classes, "
            f"or of those in classes=[...]; got an object of type {type(estimator).__name__}."
        )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        count = 0

        def store(array: np.ndarray) -> int:
            nonlocal count
            with archive.open(_entry(f"{count}.npy"), "w", force_zip64=True) as out:
                np.lib.format.write_array(out, array, allow_pickle=False)
            count += 1
            return count - 1

        model = states.Encoder(store, known).encode(estimator)
        text = {
            "format": FORMAT,
            "version": VERSION,
            "gramian": gramian.__version__,
            "arrays": count,
            "model": model,
        }
        archive.writestr(_entry(TEXT), json.dumps(text, allow_nan=False))


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))  # the same bytes at any time


def _read(file: BinaryIO, known: Mapping[str, type]) -> Any:
    size = os.fstat(file.fileno()).st_size
    if not zipfile.is_zipfile(file):
        raise ModelFileError("is no model: it was not written by gramian.save, or is cut off.")
    with zipfile.ZipFile(file) as archive:
        if TEXT not in archive.namelist():
            raise ModelFileError(f"is no model: it is an archive without {TEXT}.")
        for entry in archive.infolist():  # nothing is unpacked that could grow
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
                raise ValueError(f"its part {entry.filename!r} is not stored as it should be")
        text = json.loads(archive.read(TEXT))
        if text.get("format") != FORMAT:
            raise ModelFileError(f"is no model: its {TEXT} does not say that it is one.")
        if text["version"] > VERSION:
            raise ModelFileError(
                f"was written by gramian {text['gramian']}, in version {text['version']} of the "
                f"format; gramian {gramian.__version__} reads version {VERSION}. Update gramian."
            )
        arrays = [_array(archive, f"{number}.npy") for number in range(text["arrays"])]
        return states.Decoder(arrays.__getitem__, known).decode(text["model"])


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    info = archive.getinfo(name)
    with archive.open(info) as part:
        version = np.lib.format.read_magic(part)
        shape, _, dtype = np.lib.format.read_array_header_1_0(part)
        size = part.tell() + dtype.itemsize * prod(shape)
        if version != (1, 0) or dtype.hasobject or size != info.file_size:
            raise ValueError(f"its array {name!r} is not of the size that it says")
    with archive.open(info) as part:
        return np.lib.format.read_array(part, allow_pickle=False)
