"""``save`` and ``load``.

A model file is a ZIP archive of NPY arrays and one JSON document, ``model.json``, which describes
how they form the model. It contains no code, and NumPy alone can read the arrays.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

import numpy as np

import gramian
from gramian.backend.typing import PathLike
from gramian.backend.writing import whole_file
from gramian.persistence import archive, decoding, states
from gramian.persistence.archive import TEXT
from gramian.tables.preparation import OutdatedError

__all__ = ["ModelFileError", "load", "save"]

FORMAT = "gramian model"
VERSION = 1  # increase when older versions could misread new files


class ModelFileError(ValueError):
    """Raised for a file that is not a model, is damaged, or needs a newer gramian.

    See Also
    --------
    load : reads model files.
    save : writes them.

    Examples
    --------
    >>> import tempfile, gramian
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         gramian.load(file.name)
    ...     except gramian.ModelFileError as error:
    ...         print("not a model" in str(error))
    True
    """


def save(estimator: object, path: PathLike, *, classes: Iterable[type] = ()) -> None:
    """Save a learner, approximation, kernel, sampler or tuned pipeline, fitted or not, to a file.

    The file contains arrays and JSON but no code, so unlike a pickle it can be loaded without
    trusting its author. A failure leaves no partial file. Models with Python functions, such as a
    ``FunctionKernel``, cannot be saved. Arrays of torch and other libraries are saved and loaded as
    NumPy arrays. The training rows of an exact model are stored in the file, even if they came from
    another file.

    Parameters
    ----------
    estimator : estimator
        An object of gramian's classes or of those in ``classes``, or a scikit-learn ``Pipeline`` of
        these, as :func:`tune` returns it: its steps may also be a ``StandardScaler`` or a
        ``QuantileTransformer``. The same estimator always gives the same bytes.
    path : path or str
        An existing file is replaced.
    classes : list of classes, optional
        Your own classes that the estimator is or contains, such as ``[MyKernel]``. Their
        attributes must be numbers, strings, arrays or objects of known classes. Pass the same list
        to :func:`load`.

    See Also
    --------
    load : read the file.

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


def load(path: PathLike, *, classes: Iterable[type] = ()) -> Any:
    """Load a model saved by :func:`save` or by the command ``gramian``.

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
        The saved estimator, with NumPy arrays. For a file written by the command, a
        :class:`gramian.tables.TableModel` with the estimator in ``estimator``.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or needs a newer version of gramian; or if it is
        of a table, and an older version wrote it.

    See Also
    --------
    save : write a file.

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
        except (ModelFileError, OutdatedError) as error:
            raise ModelFileError(f"The file {os.fspath(path)!r} {error}") from error
        except MemoryError:
            raise  # sizes were checked: this is a large model, not a bad file
        except Exception as error:  # damaged files raise many types
            raise ModelFileError(
                f"The file {os.fspath(path)!r} is not a model or is damaged: "
                f"{type(error).__name__}: {error}".rstrip(".")
                + "."
            ) from error


def write(estimator: object, file: BinaryIO, classes: Iterable[type] = ()) -> None:
    """Save to an open file."""
    known = states.known_classes(classes)
    if not states.is_model(type(estimator), known):
        raise TypeError(
            "Expected a learner, an approximation, a kernel or a sampler of gramian's own classes, "
            f"or of those in classes=[...]; got an object of type {type(estimator).__name__}."
        )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out:
        count = 0

        def store(array: np.ndarray) -> int:
            nonlocal count
            name = archive.array_name(count)
            with out.open(archive.entry(name), "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)
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
        data = json.dumps(text, allow_nan=False).encode()
        try:
            archive.check_text(data, count)
        except ValueError as error:
            raise ValueError(f"This model is too large for a model file: {error}.") from None
        out.writestr(archive.entry(TEXT), data)


def _read(file: BinaryIO, known: Mapping[str, type]) -> object:
    if not zipfile.is_zipfile(file):
        raise ModelFileError("is not a model: it was not written by gramian.save, or is truncated.")
    entries = archive.Archive(file)
    if TEXT not in entries.names:
        raise ModelFileError(f"is not a model: it is an archive without {TEXT}.")
    text = entries.text()
    if text.get("format") != FORMAT:
        raise ModelFileError(f"is not a model: its {TEXT} has the wrong format.")
    if text["version"] > VERSION:
        raise ModelFileError(
            f"was written by gramian {text['gramian']}, in version {text['version']} of the "
            f"format; gramian {gramian.__version__} reads version {VERSION}. Update gramian."
        )
    entries.check_names(text["arrays"])
    return decoding.Decoder(entries, text["arrays"], known).model(text["model"])
