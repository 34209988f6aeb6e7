"""Concatenated rows, which may be of different kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.typing import Aligned, BlockSum, Indices, State, Sums
from gramian.rows.arrays import ArrayRows
from gramian.rows.base import Place, Rows, Walk


class JoinedRows(Rows):
    """Concatenated rows with the same columns, dtype and array library."""

    def __init__(self, members: Sequence[Rows]) -> None:
        self.members = list(members)
        first = self.members[0]
        self.edges = np.cumsum([0, *(rows.shape[0] for rows in members)]).tolist()
        self.shape = (self.edges[-1], first.shape[1])
        self.dtype = first.dtype
        self.xp = first.xp

    @property
    def place(self) -> Place:  # type: ignore[override]
        return Place(self.shape[0], self.members[0].place.reference)

    @property
    def serial(self) -> bool:
        return any(getattr(rows, "serial", False) for rows in self.members)

    def take(self, indices: Indices) -> Array:
        indices = np.asarray(indices)
        order = np.argsort(indices, kind="stable")
        edges = np.searchsorted(indices[order], self.edges)
        out = array_ops.empty((len(indices), self.shape[1]), self.place.reference, self.dtype)
        for rows, start, (first, last) in zip(
            self.members, self.edges, pairwise(edges), strict=False
        ):
            positions = order[first:last]
            array_ops.put_rows(out, positions, rows.take(indices[positions] - start))
        return out

    def _map(self, function: Callable[..., Array], aligned: Aligned, walk: Walk) -> Array:
        out = walk.into
        if out is None:
            out = array_ops.empty((self.shape[0], *walk.ending), self.place.reference, walk.dtype)
        for rows, (start, stop) in zip(self.members, pairwise(self.edges), strict=True):
            *parts, target = (array_ops.span(a, start, stop) for a in (*aligned, out))
            rows._map(function, tuple(parts), replace(walk, into=target))
        return out

    def _sum(self, function: BlockSum, aligned: Aligned, state: State, walk: Walk) -> Sums:
        together = (*aligned, *(state or ()))
        totals = []
        for rows, (first, stop) in zip(self.members, pairwise(self.edges), strict=True):
            if max(walk.start, first) < stop:
                parts = tuple(array_ops.span(a, first, stop) for a in together)
                rest = replace(walk, start=max(walk.start - first, 0))
                totals.append(rows._sum(function, parts, None, rest))
        several = isinstance(totals[0], tuple)
        total = tuple(map(sum, zip(*totals, strict=True))) if several else sum(totals)
        return total if state is None else (total, list(state))

    def collect(self) -> Array:
        return array_ops.concat_rows([rows.collect() for rows in self.members])

    def choose(self, numbers: np.ndarray) -> Rows:
        if np.any(numbers[1:] < numbers[:-1]):  # members alternate: each block gathers its rows

            def gathered(x: Array, out: Array | None = None) -> Array:
                return self.take(array_ops.to_numpy(x)[:, 0].astype(np.intp))

            from gramian.rows.features import FeatureRows

            column = array_ops.like(numbers[:, None], self.place.reference, self.xp.float64)
            width, serial = self.shape[1], self.serial
            return FeatureRows(ArrayRows(column), gathered, width, self.dtype, serial=serial)
        edges = np.searchsorted(numbers, self.edges)
        chosen = [
            rows.choose(numbers[first:last] - start)
            for rows, start, (first, last) in zip(
                self.members, self.edges, pairwise(edges), strict=False
            )
            if first < last
        ]
        if not chosen:
            return self.members[0].choose(numbers)
        return chosen[0] if len(chosen) == 1 else JoinedRows(chosen)

    def persist(self) -> Rows:
        return self

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        return max(rows.walk_bytes(row_bytes, result_bytes) for rows in self.members)
