"""ClusterParts: features in parts of rows on a cluster, where each process has rows of every part.

Arrays stay in the order of the data; each process arranges its rows by parts while it walks them.
Stored features are as wide as the widest part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.typing import Aligned, BlockSum, DType, State, Sums
from gramian.rows import ArrayRows, Rows, Walk, for_half
from gramian.rows.dask.places import Cluster
from gramian.rows.parts import Map, Parts, in_parts, slices

Local: TypeAlias = Callable[[Rows, Array], Parts]  # the parts of some rows, in their process


class ClusterParts(Parts):
    """Features of rows on a cluster in parts; the label of a row selects its map."""

    def __init__(
        self, rows: Rows, labels: Array, maps: Sequence[Map], *, dtype: DType, serial: bool
    ) -> None:
        assert isinstance(rows.place, Cluster)
        self._cluster = rows.place
        self._make = rows._maker()
        self._labels = self._cluster.align(labels)
        self._maps = list(maps)
        self._serial = serial
        self._members, self._stored, self.order = [], None, None
        self.dtype = dtype
        self.columns = slices(map_.width for map_ in maps)

    @property
    def place(self) -> Cluster:
        return self._cluster

    @property
    def shape(self) -> tuple[int, int]:
        return self._cluster.n, self.columns[-1].stop

    @cached_property
    def sizes(self) -> list[int]:
        return array_ops.counts(self._labels, len(self._maps)).tolist()

    @property
    def evaluations(self) -> int:
        pairs = zip(self.sizes, self._maps, strict=True)
        return sum(size * map_.row_evaluations for size, map_ in pairs)

    def example(self) -> Array:
        return array_ops.empty((0,), self._cluster.reference, self.dtype)

    def nbytes(self, *, half: bool = False) -> int:
        return self.shape[0] * self.widest * (2 if half else array_ops.itemsize(self.dtype))

    def order_nbytes(self) -> int:
        return self.shape[0] * self._labels.dtype.itemsize

    def map(
        self, prepare: Callable[[slice], Callable[..., Array]], aligned: Aligned, walk: Walk
    ) -> Array:
        functions = [prepare(columns) for columns in self.columns]
        operation = partial(_map_parts, self._local, functions, walk)
        return self._cluster.map_chunks(operation, (self._labels, *aligned), self._serially(walk))

    def sum(
        self, prepare: Callable[[slice], BlockSum], aligned: Aligned, state: State, walk: Walk
    ) -> Sums:
        functions = [prepare(columns) for columns in self.columns]
        operation = partial(_sum_parts, self._local, functions, walk, len(state or ()))
        together = (self._labels, *aligned)
        return self._cluster.sum_chunks(operation, together, state, self._serially(walk))

    def take(self, numbers: np.ndarray) -> Parts:
        rows = ArrayRows(self._cluster.take(numbers))
        here = self._local(rows, array_ops.take_rows(self._labels, np.asarray(numbers)))
        return Parts([ArrayRows(part.collect()) for part in here], here.order)

    def product(self) -> tuple[Parts, Array] | None:
        return None

    def persist(self, count: int, *, half: bool = False) -> Parts:
        place, widest = self._cluster, self.widest
        walk = Walk(widest, place.xp.float16 if half else self.dtype, serial=self._serial)
        operation = partial(_keep_parts, self._local, widest, half)
        stored = place.keep(place.map_chunks(operation, (self._labels,), walk))
        maps = [Map(partial(_first_columns, map_.width), map_.width) for map_ in self._maps]
        return ClusterParts(stored, self._labels, maps, dtype=stored.dtype, serial=False)

    def _serially(self, walk: Walk) -> Walk:
        return Walk(walk.width, walk.dtype, serial=self._serial)

    @property
    def _local(self) -> Callable[[Rows, Array], Parts]:
        """Return a function that builds the parts of some rows in the process that has them."""
        return partial(_parts_here, self._make, self._maps, self.dtype, self._serial)


def _parts_here(
    make: Callable[[Rows], Rows], maps: list[Map], dtype: DType, serial: bool, rows: Rows,
    labels: Array,
) -> Parts:  # fmt: skip
    return in_parts(make(rows), np.asarray(array_ops.to_numpy(labels)), maps, dtype, serial)


def _by_columns(parts: Parts, functions: list[BlockSum]) -> Callable[[slice], BlockSum]:
    starts = [columns.start for columns in parts.columns]
    return lambda columns: functions[starts.index(columns.start)]


def _map_parts(
    local: Local, functions: list[BlockSum], walk: Walk, rows: Rows, labels: Array, *aligned: Array
) -> Array:
    here = local(rows, labels)
    arranged = tuple(here.arrange(a) for a in aligned)
    return here.restore(here.map(_by_columns(here, functions), arranged, walk))


def _sum_parts(
    local: Local, functions: list[BlockSum], walk: Walk, written: int, rows: Rows, labels: Array,
    *aligned: Array,
) -> list[Sums]:  # fmt: skip
    here = local(rows, labels)
    arranged = tuple(here.arrange(a) for a in aligned)
    totals = here.sum(_by_columns(here, functions), arranged, None, walk)
    for i in range(len(aligned) - written, len(aligned)):
        aligned[i][...] = here.restore(arranged[i])
    return totals


def _keep_parts(local: Local, widest: int, half: bool, rows: Rows, labels: Array) -> Array:
    """Return features of all parts, each in the first columns."""
    here = local(rows, labels)

    def prepare(columns: slice) -> Callable[..., Array]:
        width = columns.stop - columns.start

        def fill(z: Array, out: Array) -> Array:
            out[:, :width] = for_half(z) if half else z
            out[:, width:] = 0
            return out

        return fill

    dtype = here.place.xp.float16 if half else here.dtype
    return here.restore(here.map(prepare, (), Walk(widest, dtype).for_map(dtype)))


def _first_columns(width: int, z: Array, out: Array | None = None) -> Array:
    return z[:, :width]
