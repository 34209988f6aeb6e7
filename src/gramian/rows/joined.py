"""Rows of several kinds, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.rows.arrays import ArrayRows
from gramian.rows.base import Rows


class JoinedRows(Rows):
    """Rows of several kinds, one after the other: of the same columns, dtype and library."""

    def __init__(self, members: Sequence[Rows]) -> None:
        self.members = list(members)
        first = self.members[0]
        self.edges = np.cumsum([0, *(rows.shape[0] for rows in members)]).tolist()
        self.shape = (self.edges[-1], first.shape[1])
        self.dtype = first.dtype
        self.xp = first.xp

    @property
    def serial(self) -> bool:
        return any(getattr(rows, "serial", False) for rows in self.members)

    def take(self, indices: Any) -> Array:
        indices = np.asarray(indices)
        order = np.argsort(indices, kind="stable")
        edges = np.searchsorted(indices[order], self.edges)
        out = array_ops.empty((len(indices), self.shape[1]), self.example(), self.dtype)
        for rows, start, (first, last) in zip(
            self.members, self.edges, pairwise(edges), strict=False
        ):
            mine = order[first:last]
            array_ops.put_rows(out, mine, rows.take(indices[mine] - start))
        return out

    def map(
        self, function: Callable[..., Array], *aligned: Array, width: int | None = None,
        dtype: Any = None, **options: Any,
    ) -> Array:  # fmt: skip
        dtype = self.dtype if dtype is None else dtype
        n = self.shape[0]
        out = array_ops.empty((n,) if width is None else (n, width), self.example(), dtype)
        for rows, (start, stop) in zip(self.members, pairwise(self.edges), strict=True):
            own = (array_ops.span(a, start, stop) for a in aligned)
            values = rows.map(function, *own, width=width, dtype=dtype, **options)
            out[start:stop, ...] = values
        return out

    def sum(
        self,
        function: Callable[..., Any],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        start: int = 0,
        **options: Any,
    ) -> Any:
        together = (*aligned, *(state or ()))
        totals = []
        for rows, (first, stop) in zip(self.members, pairwise(self.edges), strict=True):
            if max(start, first) < stop:
                own = (array_ops.span(a, first, stop) for a in together)
                totals.append(rows.sum(function, *own, start=max(start - first, 0), **options))
        several = isinstance(totals[0], tuple)
        total = tuple(map(sum, zip(*totals, strict=True))) if several else sum(totals)
        return total if state is None else (total, list(state))

    def collect(self) -> Array:
        return array_ops.concat_rows([rows.collect() for rows in self.members])

    def example(self) -> Array:
        return self.members[0].example()

    def choose(self, numbers: np.ndarray) -> Rows:
        if np.any(numbers[1:] < numbers[:-1]):  # members mix: each block gathers its own rows

            def gathered(x: Array, out: Array | None = None) -> Array:
                return self.take(array_ops.to_numpy(x)[:, 0].astype(np.intp))

            by_number = ArrayRows(array_ops.like(numbers[:, None], self.example(), self.xp.float64))
            from gramian.rows.features import FeatureRows

            return FeatureRows(by_number, gathered, self.shape[1], self.dtype, serial=self.serial)
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

    def stored(self) -> Rows:
        return JoinedRows([rows.stored() for rows in self.members])

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        return max(rows.walk_bytes(row_bytes, result_bytes) for rows in self.members)
