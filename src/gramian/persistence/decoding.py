"""Convert plain values and arrays back to gramian's objects, after a complete check.

Nothing read back can run code: a name can only refer to a class of this package, or to one that the
caller passes. All values are read and checked first; objects get their states only then, so nothing
is computed from a file that turns out to be wrong.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import scipy.sparse

from gramian.backend import array_ops
from gramian.backend.typing import Array, Namespace
from gramian.persistence import generators, guests
from gramian.persistence.archive import MOST_NODES, Archive
from gramian.persistence.generators import Random
from gramian.persistence.states import Node, class_named, is_model
from gramian.rows import ArrayRows

SPARSE = ("csr_array", "csc_array", "csr_matrix", "csc_matrix")
FLOATS = ("nan", "inf", "-inf")
MOST_SHARED = 4  # times the size of the file: the arrays of all objects, counted for each of them

_DTYPE = re.compile(r"[<>|=][biufcUSMm]\d{1,9}(\[\w{1,12}\])?")


class Decoder:
    """Rebuild the object that an ``Encoder`` turned into JSON nodes and ``count`` arrays.

    ``known`` maps names to classes. Anything that an ``Encoder`` would not write raises an
    exception, of any type.
    """

    def __init__(self, archive: Archive, count: int, known: Mapping[str, type]) -> None:
        self._archive = archive
        self._known = known
        self._unread = set(range(count))
        self._complete: list[tuple[object, int]] = []  # with the nodes behind each
        self._nodes = 0
        self._states: list[tuple[object, dict[str, object]]] = []  # of objects that are still empty

    def model(self, node: Node) -> object:
        """Return the model that a node describes."""
        model = self._decode(node)
        if not is_model(type(model), self._known):
            raise ValueError(f"it contains an object of type {type(model).__name__}, not a model")
        if self._unread:
            raise ValueError(f"{len(self._unread)} of its arrays belong to nothing")
        self._check_shared()
        for made, state in self._states:
            _set_state(made, state)
        return model

    def _check_shared(self) -> None:
        """Limit what objects that share arrays may prepare from them, each for itself."""
        total = sum(_nbytes(part) for _, state in self._states for part in state.values())
        if total > MOST_SHARED * self._archive.size:
            raise ValueError("too many of its objects share large arrays")

    def _decode(self, node: Node) -> Any:
        if isinstance(node, list | dict):
            self._count(1)
        if isinstance(node, list):
            return [self._decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        tag = next(iter(node), "")
        return self._TAGS[tag](self, **{"value" if k == tag else k: v for k, v in node.items()})

    def _count(self, nodes: int) -> None:
        """Count nodes as often as they are shared: a walk over the model meets each so often."""
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            raise ValueError(f"it has more than {MOST_NODES} objects and lists")

    def _array(self, value: int) -> np.ndarray:
        if value not in self._unread:  # an array has one place; others say that they are the same
            raise ValueError(f"there is no array {value!r:.50}, or it belongs to two objects")
        self._unread.remove(value)
        return self._archive.array(value)

    def _scalar(self, value: Node) -> np.generic:
        array = self._decode(value)
        if array.shape != ():
            raise ValueError(f"a number has the shape {array.shape}")
        return array[()]

    def _float(self, value: str) -> float:
        return float(FLOATS[FLOATS.index(value)])

    def _tuple(self, value: list[Node]) -> tuple[object, ...]:
        return tuple(self._decode(value))

    def _dict(self, value: list[Node]) -> dict[object, object]:
        pairs = self._decode(value)
        for key, _ in pairs:
            # Other keys could be chosen to have the same hash, and then take forever.
            if isinstance(key, tuple) or (type(key) is int and abs(key) >= 2**60):
                raise ValueError(f"a dictionary has the key {key!r:.50}")
        return dict(pairs)

    def _slice(self, value: list[Node]) -> slice:
        edges = self._decode(value)
        if len(edges) != 3 or any(edge is not None and type(edge) is not int for edge in edges):
            raise ValueError("a slice must have three whole numbers")
        return slice(*edges)

    def _dtype(self, value: str, type: bool) -> np.dtype | builtins.type:
        if not _DTYPE.fullmatch(value):
            raise ValueError(f"no array of a model has the dtype {value!r:.50}")
        dtype = np.dtype(value)
        return dtype.type if type else dtype

    def _namespace(self, value: str) -> Namespace:
        if value != "numpy":
            raise ValueError(f"the arrays of a model must be NumPy's, not of {value!r:.50}")
        return array_ops.numpy_namespace

    def _object_array(self, value: list[Node], shape: list[int]) -> np.ndarray:
        entries = self._decode(value)
        sizes = _shape(shape)
        if not isinstance(entries, list) or len(entries) != prod(sizes):
            raise ValueError("an array of objects does not have its shape")
        return np.fromiter(entries, dtype=object, count=len(entries)).reshape(sizes)

    def _sparse(self, value: str, parts: list[Node], shape: list[int]) -> Array:
        make = getattr(scipy.sparse, SPARSE[SPARSE.index(value)])
        data, indices, starts = self._decode(parts)
        rows, columns = _shape(shape)
        lines, length = (rows, columns) if value.startswith("csr") else (columns, rows)
        _check_compressed(data, indices, starts, lines, length)
        count = int(starts[-1])
        indices = indices[:count]
        matrix = make((data[:count], indices, starts), shape=(rows, columns))
        matrix.indices, matrix.indptr = indices, starts  # SciPy may have made them shorter
        return matrix

    def _generator(self, value: str, old: bool, state: Node, seeds: Node) -> Random:
        return generators.made(value, old, self._decode(state), self._decode(seeds))

    def _rows(self, value: Node, names: list[str] | None) -> ArrayRows:
        data = self._decode(value)
        if isinstance(data, np.ndarray) and data.dtype.kind not in "biufO":
            raise ValueError(f"rows have the dtype {data.dtype}")
        rows = ArrayRows(data)
        if names is not None and [type(name) for name in names] != [str] * rows.shape[1]:
            raise ValueError("rows must have a name for each column")
        rows.names = names
        return rows

    def _once(self, value: Node) -> object:
        before = self._nodes
        made = self._decode(value)
        self._complete.append((made, self._nodes - before))
        return made

    def _same(self, value: int) -> object:
        if type(value) is not int or not 0 <= value < len(self._complete):
            raise ValueError(f"there is no object {value!r:.50}")
        made, nodes = self._complete[value]
        self._count(nodes)
        return made

    def _object(self, value: str, state: Any = None, items: list[Node] | None = None) -> object:
        cls = class_named(value, self._known)
        if cls is None:
            raise ValueError(
                f"this version of gramian has no class {value!r}; if it is yours, pass it: "
                f"load(path, classes=[{value}])"
            )
        if issubclass(cls, tuple):
            return cls(*self._decode(items))
        made = object.__new__(cls)
        attributes = {name: self._decode(part) for name, part in state.items()}
        for name in attributes:
            if callable(getattr(cls, name, None)):
                raise ValueError(f"{value}.{name} is a method, and cannot be part of a state")
        guests.check(cls, attributes)
        self._states.append((made, attributes))
        return made

    _TAGS: dict[str, Callable[..., object]] = {  # noqa: RUF012
        "scalar": _scalar,
        "float": _float,
        "tuple": _tuple,
        "dict": _dict,
        "slice": _slice,
        "dtype": _dtype,
        "namespace": _namespace,
        "array": _array,
        "objects": _object_array,
        "sparse": _sparse,
        "generator": _generator,
        "rows": _rows,
        "once": _once,
        "same": _same,
        "object": _object,
    }


def _set_state(made: object, state: dict[str, object]) -> None:
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    else:
        vars(made).update(state)


def _nbytes(value: object) -> int:
    """Return the size of an array, or of rows that are one."""
    array: Array = value.data if isinstance(value, ArrayRows) else value
    array = array.data if array_ops.issparse(array) else array
    return array.nbytes if isinstance(array, np.ndarray) else 0


def _shape(sizes: list[int]) -> tuple[int, ...]:
    if not isinstance(sizes, list) or any(type(n) is not int or not 0 <= n < 2**63 for n in sizes):
        raise ValueError(f"no array has the shape {sizes!r:.50}")
    return tuple(sizes)


def _check_compressed(
    data: np.ndarray, indices: np.ndarray, starts: np.ndarray, lines: int, length: int
) -> None:
    """Check the arrays of a CSR or CSC matrix: SciPy's loops rely on every index."""
    integers = np.dtype(np.int32), np.dtype(np.int64)
    if data.dtype.kind not in "biufc" or {indices.dtype, starts.dtype} - {*integers}:
        raise ValueError("the parts of a sparse matrix have the wrong dtypes")
    if not data.ndim == indices.ndim == starts.ndim == 1 or len(starts) != lines + 1:
        raise ValueError("the parts of a sparse matrix have the wrong shapes")
    if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError("the row pointers of a sparse matrix must start at 0 and not fall")
    if starts[-1] > min(len(data), len(indices)):
        raise ValueError("a sparse matrix has fewer entries than it says")
    used = indices[: starts[-1]]
    if len(used) and not 0 <= used.min() <= used.max() < length:
        raise ValueError(f"the indices of a sparse matrix must be from 0 to {length - 1}")
