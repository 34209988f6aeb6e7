"""Convert gramian's objects to plain values and arrays; ``decoding`` converts them back.

One walk over an object's state serves every class: numbers, strings, lists and dictionaries become
JSON, arrays go to a store, and objects of gramian's classes become their name and attributes, as do
the few of scikit-learn's in ``guests``. Nothing else is accepted.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from math import isfinite
from types import ModuleType
from typing import Any, NoReturn, TypeAlias

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

import gramian
from gramian.backend import array_ops, config
from gramian.backend.typing import Array, T
from gramian.backend.wording import counted
from gramian.matrices.factors import Factors
from gramian.persistence import generators, guests
from gramian.persistence.generators import Random
from gramian.rows import ArrayRows, Rows
from gramian.tables.model import TableModel

# Models consist of classes from these modules. Files of rows are not included: loading a model must
# not open other files.
MODULES = (
    "kernels", "samplers", "approximations", "learners", "matrices", "rows.parts",
    "tables.preparation", "tables.model", "tuning.blocks",
)  # fmt: skip

MODELS = (BaseEstimator, Factors, TableModel)
ARRAYS = "biufcUSMm"  # dtype kinds that an NPY file can hold without pickle

Node: TypeAlias = "bool | int | float | str | Sequence[Node] | Mapping[str, Node] | None"  # JSON


@cache
def classes() -> dict[str, type]:
    """Return the classes that a model may contain, by name."""
    found: dict[str, type] = {}
    for module in _modules():
        for cls in vars(module).values():
            if not isinstance(cls, type) or cls.__module__ != module.__name__:
                continue
            if issubclass(cls, BaseException):
                continue
            assert cls.__name__ not in found, f"two classes are called {cls.__name__}"
            found[cls.__name__] = cls
    return found


def known_classes(more: Iterable[type] = ()) -> dict[str, type]:
    """The classes that a model may be made of, with those that the caller adds."""
    known = dict(classes())
    for cls in more:
        if not isinstance(cls, type):
            raise TypeError(f"classes must hold classes, such as [MyKernel]; got {cls!r:.100}.")
        if known.get(cls.__name__, cls) is not cls:
            raise ValueError(
                f"classes must have names of their own; there is another {cls.__name__} already."
            )
        known[cls.__name__] = cls
    return known


def class_named(name: str, known: Mapping[str, type]) -> type | None:
    """Return the class of this name that a model may contain."""
    return known.get(name) or guests.named(name)


def is_model(cls: type, known: Mapping[str, type]) -> bool:
    """Whether objects of a class can be saved on their own, rather than as parts of others."""
    own = classes().get(cls.__name__) is not cls  # of the caller
    return class_named(cls.__name__, known) is cls and (own or issubclass(cls, MODELS))


def _modules() -> Iterator[ModuleType]:
    for name in MODULES:
        module = import_module(f"{gramian.__name__}.{name}")
        yield module
        for inside in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
            yield import_module(inside.name)


class Encoder:
    """Turn an object into JSON nodes; ``store`` takes an array and returns its number.

    Objects and arrays that occur twice are stored once. ``known`` maps names to the classes that
    objects may have; by default gramian's own.
    """

    def __init__(
        self, store: Callable[[np.ndarray], int], known: Mapping[str, type] | None = None
    ) -> None:
        self._store = store
        self._known = classes() if known is None else known
        # Numbers of finished objects by identity, with a reference that keeps them alive.
        self._seen: dict[int, tuple[int | None, object]] = {}
        self._count = 0
        self._path: list[str] = []

    def encode(self, value: object) -> Node:
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value))}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return self._items(value)
        if isinstance(value, tuple) and type(value) is tuple:
            return {"tuple": self._items(value)}
        if isinstance(value, dict):
            return {"dict": [self._items(pair) for pair in value.items()]}
        if isinstance(value, slice):
            return {"slice": self._items((value.start, value.stop, value.step))}
        if isinstance(value, np.random.Generator | np.random.RandomState):
            return self._generator(value)
        if isinstance(value, Rows):
            return self._once(value, self._rows)
        if scipy.sparse.issparse(value):
            return self._once(value, self._sparse)
        if isinstance(value, ModuleType) and hasattr(value, "__array_api_version__"):
            return {"namespace": "numpy"}  # as all arrays are when they come back
        dtype = array_ops.host_dtype(value)
        if dtype is not None:
            return {"dtype": dtype.str, "type": isinstance(value, type)}
        if class_named(type(value).__name__, self._known) is type(value):
            return self._once(value, self._object)
        if hasattr(value, "__array__") or array_ops.is_foreign(value):
            return self._once(value, lambda v: self._array(np.asarray(array_ops.to_numpy(v))))
        self._refuse(value)

    def _refuse(self, value: object) -> NoReturn:
        where = f" at {'.'.join(self._path)}" if self._path else ""
        if isinstance(value, type) or not callable(value) or hasattr(value, "get_params"):
            what = f"an object of type {type(value).__name__}"
            why = "gramian's own classes, numbers, strings and arrays"
            if isinstance(value, BaseEstimator):
                why += f", and classes that you name: save(..., classes=[{type(value).__name__}])"
        else:
            what = f"the Python function {getattr(value, '__name__', repr(value))!r}"
            why = "numbers, strings and arrays, because code in a file could do harm"
        raise TypeError(
            f"This model cannot be saved: it contains {what}{where}. A model file contains only "
            f"{why}. Use pickle if everyone who loads the file trusts you."
        )

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        self._path.append(name)
        yield
        self._path.pop()

    def _items(self, values: Iterable[object]) -> list[Node]:
        nodes = []
        for i, value in enumerate(values):
            with self._at(str(i)):
                nodes.append(self.encode(value))
        return nodes

    def _once(self, value: T, make: Callable[[T], Node]) -> Node:
        if id(value) in self._seen:
            number = self._seen[id(value)][0]
            if number is None:
                raise TypeError(
                    f"The model cannot be saved: {type(value).__name__} contains itself."
                )
            return {"same": number}
        self._seen[id(value)] = None, value
        node = {"once": make(value)}
        self._seen[id(value)] = self._count, value
        self._count += 1
        return node

    def _array(self, value: np.ndarray) -> Node:
        if value.dtype == object:  # class labels and names of columns, mostly
            entries = [_plain(entry) for entry in value.ravel().tolist()]
            return {"objects": self._items(entries), "shape": list(value.shape)}
        if value.dtype.kind not in ARRAYS:
            self._refuse(value)
        return {"array": self._store(value)}

    def _sparse(self, value: Array) -> Node:
        is_array = isinstance(value, scipy.sparse.sparray)
        value = value if value.format in ("csr", "csc") else value.tocsr()
        parts = [self._array(part) for part in (value.data, value.indices, value.indptr)]
        kind = f"{value.format}_{'array' if is_array else 'matrix'}"
        return {"sparse": kind, "parts": parts, "shape": [int(size) for size in value.shape]}

    def _generator(self, value: Random) -> Node:
        described = generators.plain(value)
        if described is None:
            self._refuse(value)
        return {
            name: part if name == "generator" else self.encode(part)
            for name, part in described.items()
        }

    def _rows(self, value: Rows) -> Node:
        """Return the rows in memory, wherever they are: a loaded model has no files."""
        data = value.data if type(value) is ArrayRows else _collected(value)
        return {"rows": self.encode(data), "names": value.names}

    def _object(self, value: Any) -> Node:
        if isinstance(value, tuple):
            return {"object": type(value).__name__, "items": self._items(value)}
        state: dict[str, Node] = {}
        attributes = value.__getstate__() or {}
        self._check_guest(value, attributes)
        for name, part in attributes.items():
            if name == "_device":  # arrays come back on the host
                continue
            with self._at(name):
                state[name] = self.encode(part)
        return {"object": type(value).__name__, "state": state}

    @staticmethod
    def _check_guest(value: object, attributes: Mapping[str, object]) -> None:
        try:
            guests.check(type(value), attributes)
        except ValueError as error:
            raise TypeError(f"This model cannot be saved: {error}.") from None


def _plain(entry: object) -> object:
    return entry.item() if isinstance(entry, np.generic) else entry


def _collected(rows: Rows) -> Array:
    config.check_fits(
        rows.shape[0] * rows.shape[1] * array_ops.itemsize(rows.dtype),
        f"the {counted(rows.shape[0], 'row')} that the model file must contain",
        "Use an approximation, which keeps few rows",
    )
    return rows.collect()
