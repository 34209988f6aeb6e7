"""Parts: features of rows in parts that use different columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.threads import side_by_side
from gramian.backend.typing import Aligned, BlockSum, DType, State, Sums, T
from gramian.rows.arrays import ArrayRows
from gramian.rows.base import Place, Rows
from gramian.rows.features import FeatureRows, held
from gramian.rows.joined import JoinedRows
from gramian.rows.walks import Walk, by_label

LEAST_KEPT = 0.02  # the smallest fraction of rows worth storing


class Map(NamedTuple):
    """The function that computes the features of a part, and what it costs."""

    features: Callable[..., Array]
    width: int
    work_bytes: int = 0
    row_evaluations: int = 0


class Parts:
    """Features Z of n rows in parts; a row has features only in the columns of its part.

    This is a sequence of parts, each of them rows of features. Aligned arrays and results are in
    the order of the parts: ``arrange`` converts to that order, and ``restore`` converts back.

    Parameters
    ----------
    members : sequence of Rows
        The features of each part, of shape (rows of the part, columns of the part).
    order : array of int of shape (n,), optional
        The row numbers in the data of the rows of the parts. By default, they are in order.
    stored : Parts, optional
        The first rows of each part, if only these are in memory.
    """

    def __init__(
        self, members: Sequence[Rows], order: np.ndarray | None = None, stored: Parts | None = None
    ) -> None:
        self.order = order
        self.dtype = members[0].dtype
        rows, columns = zip(*[part.shape for part in members], strict=True)
        self.columns = slices(columns)
        self._members = list(members)
        self._rows = slices(rows)
        self._stored = stored

    def __iter__(self) -> Iterator[Rows]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, i: int) -> Rows:
        return self._members[i]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and the total number of columns."""
        return self._rows[-1].stop, self.columns[-1].stop

    @property
    def place(self) -> Place:
        """Where the rows are."""
        place = self._members[0].place
        return place if len(self._members) == 1 else Place(self.shape[0], place.reference)

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each part."""
        return [part.shape[0] for part in self]

    @property
    def widest(self) -> int:
        """The number of columns of the widest part."""
        return max(columns.stop - columns.start for columns in self.columns)

    @property
    def evaluations(self) -> int:
        """The number of kernel values that one walk computes; 0 if features are stored."""
        return sum(getattr(part, "evaluations", 0) for part in self)

    def example(self) -> Array:
        """Return an empty array with the library, device and dtype of features."""
        return self._members[0].example()

    # Walks.

    def arrange(self, V: Array) -> Array:
        """Reorder an array of shape (n, ...) from the order of the data to that of the parts."""
        return V if self.order is None else array_ops.take_rows(V, self.order)

    def restore(self, V: Array) -> Array:
        """Undo ``arrange``."""
        return V if self.order is None else array_ops.take_rows(V, _inverse(self.order))

    def map(
        self, prepare: Callable[[slice], Callable[..., Array]], aligned: Aligned, walk: Walk
    ) -> Array:
        """Return one result per row; ``prepare(columns)`` returns the function for a part."""
        members = self._members
        if len(members) == 1:
            return members[0]._map(prepare(self.columns[0]), aligned, walk)

        def one(i: int) -> Array:
            return members[i]._map(prepare(self.columns[i]), self._of_part(i, aligned), walk)

        return self.place.xp.concat(self._each(one), axis=0)

    def sum(
        self, prepare: Callable[[slice], BlockSum], aligned: Aligned, state: State, walk: Walk
    ) -> Sums:
        """Return a list of the sums of each part; with a ``state``, also the state afterwards."""
        members = self._members
        if len(members) == 1 and members[0].shape[0]:
            total = members[0]._sum(prepare(self.columns[0]), aligned, state, walk)
            return [total] if state is None else ([total[0]], total[1])
        together = (*aligned, *(state or ()))

        def one(i: int) -> Sums:
            arrays, function = self._of_part(i, together), prepare(self.columns[i])
            if members[i].shape[0] == 0:  # the function gives the shape of an empty sum
                return function(members[i].collect(), *arrays)
            return members[i]._sum(function, arrays, None, walk)

        totals = self._each(one)
        return totals if state is None else (totals, list(state))

    def _of_part(self, i: int, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        rows = self._rows[i]
        return tuple(array_ops.span(a, rows.start, rows.stop) for a in arrays)

    def _each(self, function: Callable[[int], T]) -> list[T]:
        """Apply a function to all parts, one thread each; a single part uses all threads."""
        if len(self._members) == 1:
            return [function(0)]
        serial = any(getattr(part, "serial", False) for part in self._members)
        serial = serial or array_ops.is_foreign(self.example())
        return side_by_side(function, range(len(self)), "parts", serial=serial)

    # Some of the rows.

    def take(self, numbers: np.ndarray) -> Parts:
        """Return the features of the rows with these numbers, stored in memory."""
        numbers = np.asarray(numbers)
        where = numbers if self.order is None else _inverse(self.order)[numbers]
        if len(self._members) == 1:
            return Parts([ArrayRows(self._members[0].take(where))])
        parts, order = [], []
        for part, rows in zip(self._members, self._rows, strict=True):
            inside = np.flatnonzero((where >= rows.start) & (where < rows.stop))
            parts.append(ArrayRows(part.take(where[inside] - rows.start)))
            order.append(inside)
        return Parts(parts, np.concatenate(order))

    def take_bytes(self, count: int) -> int:
        """Return the memory that ``take`` needs for ``count`` rows, including temporary copies."""
        of_row = max((x.rows.row_bytes for x in self if isinstance(x, FeatureRows)), default=0)
        return count * (2 * self.nbytes() // max(self.shape[0], 1) + of_row)

    def samples(self, count: int) -> Parts:
        """Return parts whose first rows are quick to read: these parts themselves.

        On a cluster, these are the parts of the first ``count`` rows.
        """
        return self.place.samples(self, count)

    def choose(self, positions: np.ndarray) -> Parts:
        """Select rows, without copying, by ascending positions in the order of the parts."""
        edges = np.searchsorted(positions, [0, *(rows.stop for rows in self._rows)])
        return Parts(
            [
                part.choose(positions[first:last] - rows.start)
                for part, rows, (first, last) in zip(self, self._rows, pairwise(edges), strict=True)
            ]
        )

    def kept(self) -> tuple[Parts, np.ndarray] | None:
        """Return the rows in memory and their numbers, if only some rows are in memory."""
        if self._stored is None:
            return None
        assert self.order is not None
        numbers = [
            self.order[rows.start : rows.start + part.shape[0]]
            for part, rows in zip(self._stored, self._rows, strict=True)
        ]
        return self._stored, np.concatenate(numbers)

    def arrays(self) -> list[Array] | None:
        """Return each part as an array; None if the rows are in other processes."""
        return self.place.arrays(self._members)

    def values(self, into: Array | None = None) -> Array:
        """Return Z of a single part as one array, lazy on a cluster, or write it to ``into``."""
        (part,) = self
        if into is None:
            return part._values()
        return part.map(lambda z, out: z, width=part.shape[1], dtype=part.dtype, into=into)

    def matmul(self, V: Array) -> Array:
        """Return Z V for features of a single part that are computed in every walk."""
        (part,) = self
        assert isinstance(part, FeatureRows)
        return part.matmul(V)

    def product(self) -> tuple[Parts, Array] | None:
        """Return C and P if Z has one part and is computed as their product."""
        product = getattr(self._members[0], "product", None) if len(self._members) == 1 else None
        return None if product is None else (Parts([product[0]], self.order), product[1])

    # Storing features.

    def nbytes(self, *, half: bool = False) -> int:
        """Return the memory that the features of all rows take if they are stored."""
        numbers = sum([part.shape[0] * part.shape[1] for part in self._members])
        return numbers * (2 if half else array_ops.itemsize(self.dtype))

    def order_nbytes(self) -> int:
        """Return the memory of the order of the rows."""
        return 0 if self.order is None else self.order.nbytes

    def keepable(
        self, room: int | None, *, partly: bool = False, half: bool = False, besides: int = 0
    ) -> int:
        """Return how many rows ``persist`` can store: none, all or, with ``partly``, some.

        ``besides`` is the memory that other things need from the same ``room``.
        """
        n, size = self.shape[0], self.nbytes(half=half)
        room, partly = self.place.share(room, partly)
        besides += self.order_nbytes()
        if size + besides <= room:
            return n
        if not partly or not all(isinstance(part, FeatureRows) for part in self):
            return 0
        # The order of the rows is stored too.
        fraction = (room - besides - 8 * n) / size
        return int(fraction * n) if fraction >= LEAST_KEPT else 0

    def kept_bytes(self, count: int, *, half: bool = False) -> int:
        """Return the memory of the features if those of ``count`` rows are stored."""
        order = 8 * self.shape[0] if 0 < count < self.shape[0] else 0
        return self.nbytes(half=half) * count // max(self.shape[0], 1) + order

    def persist(self, count: int, *, half: bool = False) -> Parts:
        """Return these parts with the features of ``count`` rows, from ``keepable``, stored."""
        n = self.shape[0]
        if count == n:
            return Parts(self._each(lambda i: held(self._members[i], half=half)), self.order)

        def some(i: int) -> tuple[JoinedRows, np.ndarray]:
            part = self._members[i]
            assert isinstance(part, FeatureRows)
            rows, order = part.persist_some(count * part.shape[0] // n, half=half)
            return rows, self._rows[i].start + order

        pairs = self._each(some)
        order = np.concatenate([order for _, order in pairs])
        order = order if self.order is None else self.order[order]
        stored = Parts([part.members[0] for part, _ in pairs])
        return Parts([part for part, _ in pairs], order, stored)


def in_parts(
    rows: Rows, labels: np.ndarray, maps: Sequence[Map], dtype: DType, serial: bool = False
) -> Parts:
    """Return features of rows in parts; the label of a row selects the map for its features."""
    order, edges = by_label(labels, len(maps))
    members = [
        FeatureRows(
            rows.choose(numbers), map_.features, map_.width, dtype,
            work_bytes=map_.work_bytes, serial=serial, row_evaluations=map_.row_evaluations,
        )
        for map_, numbers in zip(maps, np.split(order, edges[:-1]), strict=True)
    ]  # fmt: skip
    return Parts(members, order)


def slices(lengths: Iterable[int]) -> list[slice]:
    """Return slices of these lengths, one after the other."""
    edges = [0, *accumulate(map(int, lengths))]
    return list(map(slice, edges[:-1], edges[1:]))


def _inverse(order: np.ndarray) -> np.ndarray:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order), dtype=order.dtype)
    return inverse
