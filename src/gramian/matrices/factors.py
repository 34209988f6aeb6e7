"""Factors: an approximation of the kernel matrix, K̃ = Z S Zᵀ, never multiplied out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace
from gramian.backend.linalg import psd_root
from gramian.backend.threads import side_by_side
from gramian.backend.wording import counted
from gramian.matrices.block_core import BlockCore
from gramian.rows import ArrayRows, FeatureRows, JoinedRows, Rows, for_half, held

__all__ = ["Factors"]

LEAST_KEPT = 0.02  # of the rows: fewer are not worth keeping


class Factors:
    """K̃ = Z S Zᵀ with the features Z of n rows and a small symmetric core S.

    The rows may be in parts. A row then has features in its own part's columns of Z only, and only
    these are kept: Z is never expanded to n times all columns, and ZᵀZ is block-diagonal.

    Parameters
    ----------
    Z : Rows or sequence of Rows
        One row of features for each row of the data, part by part; kept, or computed whenever they
        are walked.
    core : BlockCore, optional
        S. By default the identity.
    order : array of int, optional
        The number, in the data, of each row of the parts. By default they are in order.

    Attributes
    ----------
    parts : list of Rows
    part_columns : list of slice
        The columns of Z, and rows and columns of S, that belong to each part.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import ArrayRows, Factors
    >>> factors = Factors(ArrayRows(np.array([[1.0, 0.0], [1.0, 2.0]])))
    >>> factors.matmul(np.array([1.0, 1.0]))
    array([2., 6.])
    >>> factors.diagonal()
    array([1., 5.])

    Two parts, of which the first holds the second and third row:

    >>> Z = ArrayRows(np.array([[1.0], [2.0]])), ArrayRows(np.array([[3.0]]))
    >>> Factors(Z, order=[1, 2, 0]).dense()
    array([[9., 0., 0.],
           [0., 1., 2.],
           [0., 2., 4.]])
    """

    def __init__(
        self, Z: Rows | Sequence[Rows], core: BlockCore | None = None, order: Any = None
    ) -> None:
        self.parts = [Z] if isinstance(Z, Rows) else list(Z)
        self.core = core
        self.order = None if order is None else np.asarray(order)
        first = self.parts[0]
        self.xp: Namespace = first.xp
        self.dtype = first.dtype
        self._rows = _slices(part.shape[0] for part in self.parts)
        self.part_columns = _slices(part.shape[1] for part in self.parts)

    def __repr__(self) -> str:
        parts = f"{len(self.parts)} parts, " if len(self.parts) > 1 else ""
        return f"Factors(n={self.shape[0]}, rank={self.rank}, {parts}{self.nbytes / 1e6:.3g} MB)"

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of K̃."""
        n = self._rows[-1].stop
        return n, n

    @property
    def rank(self) -> int:
        """The number of columns of Z: the rank of K̃ at most."""
        return self.part_columns[-1].stop

    @property
    def part_sizes(self) -> list[int]:
        """The number of rows of each part."""
        return [part.shape[0] for part in self.parts]

    @property
    def single(self) -> Rows | None:
        """Z, where it is in one part."""
        return self.parts[0] if len(self.parts) == 1 else None

    @property
    def nbytes(self) -> int:
        """What Z, S and the order of the rows take when they are kept."""
        small = [kept.nbytes for kept in (self.core, self.order) if kept is not None]
        return self.features_nbytes + sum(small)

    @property
    def evaluations(self) -> int:
        """The kernel values that one walk over Z computes: none where it is kept."""
        return sum(part.evaluations for part in self.parts)

    @property
    def features_nbytes(self) -> int:
        """What Z alone takes when it is kept."""
        return self._size(half=False)

    def _size(self, half: bool) -> int:
        numbers = sum(part.shape[0] * part.shape[1] for part in self.parts)
        return numbers * (2 if half else array_ops.itemsize(self.dtype))

    def room(self) -> int:
        """See :meth:`Rows.room`."""
        return self.parts[0].room()

    def persist(
        self, room: int | None = None, *, partly: bool = False, half: bool = False
    ) -> Factors:
        """These factors with Z kept in memory, if that fits.

        ``room`` is what it may take, by default half of the memory budget. With ``partly``, Z of as
        many rows as fit is kept, and that of the others computed whenever it is walked. With
        ``half``, it is kept in half precision. Where other processes hold the rows, the room is
        theirs, and Z is kept for all rows or none.
        """
        count = self.keepable(room, partly=partly, half=half)
        if count == 0:
            return self
        if count == self.shape[0]:
            parts = self._each(lambda i: held(self.parts[i], half=half))
            return Factors(parts, self.core, self.order)

        def some(i: int) -> tuple[Rows, np.ndarray]:
            Z, rows = self.parts[i], self._rows[i]
            assert isinstance(Z, FeatureRows)
            kept, order = Z.persist_some(count * Z.shape[0] // self.shape[0], half=half)
            return kept, rows.start + order

        pairs = self._each(some)
        order = np.concatenate([order for _, order in pairs])
        order = order if self.order is None else self.order[order]
        return Factors([Z for Z, _ in pairs], self.core, order)

    def keepable(self, room: int | None = None, *, partly: bool = False, half: bool = False) -> int:
        """The number of rows that ``persist`` keeps: none, all or, with ``partly``, some."""
        n, size = self.shape[0], self._size(half)
        if self.spread:
            room, partly = self.room() // 2, False
        room = config.memory_budget() // 2 if room is None else room
        beside = self.nbytes - self.features_nbytes
        if size + beside <= room:
            return n
        if not partly or not all(isinstance(Z, FeatureRows) for Z in self.parts):
            return 0
        # The order of the rows is kept too.
        fraction = (room - beside - 8 * n) / size
        return int(fraction * n) if fraction >= LEAST_KEPT else 0

    def kept_bytes(self, count: int, *, half: bool = False) -> int:
        """What Z takes where so many rows of it are kept."""
        order = 8 * self.shape[0] if 0 < count < self.shape[0] else 0
        return self._size(half) * count // max(self.shape[0], 1) + order

    def kept(self) -> tuple[Factors, np.ndarray] | None:
        """Where Z of some rows is in memory: the factors of these, and their numbers."""
        if self.spread or not all(isinstance(Z, JoinedRows) for Z in self.parts):
            return None
        assert self.order is not None
        parts = [Z.members[0] for Z in self.parts]  # type: ignore[attr-defined]
        numbers = [
            self.order[rows.start : rows.start + Z.shape[0]]
            for Z, rows in zip(parts, self._rows, strict=True)
        ]
        return Factors(parts, self.core), np.concatenate(numbers)

    def stored(self) -> Factors:
        """These factors with blocks of Z as they are kept: see :meth:`Rows.stored`."""
        return Factors([Z.stored() for Z in self.parts], self.core, self.order)

    def take(self, numbers: np.ndarray) -> Factors:
        """The factors of some rows, kept in memory."""
        where = self._positions(numbers)
        parts, order = [], []
        for Z, rows in zip(self.parts, self._rows, strict=True):
            mine = np.flatnonzero((where >= rows.start) & (where < rows.stop))
            parts.append(ArrayRows(Z.take(where[mine] - rows.start)))
            order.append(mine)
        return Factors(parts, self.core, np.concatenate(order))

    def take_bytes(self, count: int) -> int:
        """What ``take`` of so many rows takes: their features, partly twice, and the rows."""
        rows = [Z.rows for Z in self.parts if isinstance(Z, FeatureRows)]
        of_row = max((x.row_bytes for x in rows), default=0)
        return count * (2 * self.features_nbytes // max(self.shape[0], 1) + of_row)

    def some(self, positions: np.ndarray) -> Factors:
        """The factors of rows at ascending places in the order of the parts, still where they are.

        The result is in the order given.
        """
        edges = np.searchsorted(positions, [0, *(rows.stop for rows in self._rows)])
        parts = [
            Z.choose(positions[first:last] - rows.start)
            for Z, rows, (first, last) in zip(self.parts, self._rows, pairwise(edges), strict=True)
        ]
        return Factors(parts, self.core)

    def coordinates(self, numbers: np.ndarray) -> Array:
        """Some rows of Z in all columns, in float64: few rows only, since most of it is 0."""
        few = self.take(np.asarray(numbers))
        blocks = [np.asarray(array_ops.to_numpy(Z.collect()), dtype=np.float64) for Z in few.parts]
        rows = few.restore(scipy.linalg.block_diag(*blocks))
        return array_ops.like(rows, self.example(), self.xp.float64)

    def align(self, values: Any, dtype: Any = None) -> Array:
        """See :meth:`Rows.align`."""
        return self.parts[0].align(values, dtype)

    def constant(self, value: float) -> Array:
        """See :meth:`Rows.constant`."""
        if self.single is not None:
            return self.single.constant(value)
        return self.align(np.full(self.shape[0], value), self.xp.float64)

    def check_room(self, size: int, what: str, advice: str) -> None:
        """See :meth:`Rows.check_room`."""
        self.parts[0].check_room(size, what, advice)

    # Walking the parts: aligned arrays, and results of map, are in the order of the parts.

    def arrange(self, V: Array) -> Array:
        """An array with one entry for each row of the data, in the order of the parts."""
        return V if self.order is None else array_ops.take_rows(V, self.order)

    def restore(self, V: Array) -> Array:
        """What ``arrange`` undoes."""
        return V if self.order is None else array_ops.take_rows(V, self._inverse(self.order))

    def map(
        self,
        prepare: Callable[[slice], Callable[..., Array]],
        *aligned: Array,
        width: int | None = None,
        dtype: Any = None,
        label: str = "features",
    ) -> Array:
        """One result per row; ``prepare(columns)`` gives a part's function of a block of Z.

        See :meth:`Rows.map`.
        """

        def one(i: int) -> Array:
            mine = (array_ops.span(a, self._rows[i].start, self._rows[i].stop) for a in aligned)
            function = prepare(self.part_columns[i])
            return self.parts[i].map(function, *mine, width=width, dtype=dtype, label=label)

        results = self._each(one)
        return results[0] if len(results) == 1 else self.xp.concat(results, axis=0)

    def sum(
        self,
        prepare: Callable[[slice], Callable[..., Any]],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        row_bytes: int = 0,
        result_bytes: int = 0,
        label: str = "features",
    ) -> Any:
        """For each part, the sum over its blocks; ``prepare(columns)`` gives its function.

        A list, or with a ``state`` that and the state afterwards. See :meth:`Rows.sum`.
        """
        options: Any = {"row_bytes": row_bytes, "result_bytes": result_bytes, "label": label}
        if self.spread:
            function = prepare(self.part_columns[0])
            result = self.parts[0].sum(function, *aligned, state=state, **options)
            return [result] if state is None else ([result[0]], result[1])
        together = (*aligned, *(state or ()))

        def one(i: int) -> Any:
            mine = (array_ops.span(a, self._rows[i].start, self._rows[i].stop) for a in together)
            function, Z = prepare(self.part_columns[i]), self.parts[i]
            if Z.shape[0] == 0:  # no block to begin with: sums of nothing have their shape too
                return function(Z.collect(), *mine)
            return Z.sum(function, *mine, **options)

        totals = self._each(one)
        return totals if state is None else (totals, list(state))

    def _each(self, function: Callable[[int], Any]) -> list[Any]:
        """Parts side by side, each in one thread; a single one uses all threads itself."""
        serial = any(getattr(Z, "serial", False) for Z in self.parts)
        serial = serial or array_ops.runs_own_threads(self.example())
        return side_by_side(function, range(len(self.parts)), "parts", serial=serial)

    # Products.

    def unprojected(self) -> tuple[Factors, Array | None]:
        """Factors of C and a matrix P in float64, where Z = C P; else these factors, and None."""
        values = self.values()
        if values is None:
            return self, None
        projection = self.single.product[1]  # type: ignore[union-attr]
        return values, array_ops.astype(projection, self.xp.float64)

    def values(self) -> Factors | None:
        """Factors of C, where Z = C P."""
        product = getattr(self.single, "product", None)
        if product is None or self.core is not None:
            return None
        return Factors(product[0], order=self.order)

    def features_matmul(self, W: Array) -> Array:
        """Z @ W, in float64."""
        if W.ndim == 1:
            return self.features_matmul(W[:, None])[:, 0]
        xp = self.xp
        C, P = self.unprojected()
        if P is not None and 4 * W.shape[1] <= self.rank:
            # C (P W) costs far less than (C P) W, and C P is not rounded to float32 on the way.
            right = P @ array_ops.like(W, P, xp.float64)

            def product(columns: slice) -> Callable[..., Array]:
                return lambda c, out: array_ops.matmul(array_ops.astype(c, xp.float64), right, out)

            return C.restore(C.map(product, width=W.shape[1], dtype=xp.float64))
        W = array_ops.astype(W, self.dtype)

        def prepare(columns: slice) -> Callable[..., Array]:
            own = array_ops.contiguous(W[columns, :])
            return lambda z, out: array_ops.astype(array_ops.matmul(z, own), xp.float64)

        return self.restore(self.map(prepare, width=W.shape[1], dtype=xp.float64))

    def rmatmul(self, V: Array) -> Array:
        """Zᵀ @ V, in float64."""
        if V.ndim == 1:
            return self.rmatmul(V[:, None])[:, 0]
        xp = self.xp
        V = self.arrange(V if array_ops.is_spread(V) else array_ops.like(V, V, self.dtype))
        dtype = self.dtype

        def product(z: Array, v: Array) -> Array:
            return xp.matrix_transpose(z) @ array_ops.astype(v, dtype)

        parts = self.sum(lambda columns: product, V)
        return xp.concat([array_ops.astype(part, xp.float64) for part in parts], axis=0)

    def core_matmul(self, W: Array) -> Array:
        """S @ W, in float64: what rows of Z are to be multiplied with."""
        if self.core is None:
            return W
        product = self.core.matmul(np.asarray(array_ops.to_numpy(W), dtype=np.float64))
        return array_ops.like(product, W, self.xp.float64)

    def matmul(self, V: Array) -> Array:
        """K̃ @ V, in float64."""
        return self.features_matmul(self.core_matmul(self.rmatmul(V)))

    def columns(self, numbers: Any) -> Array:
        """Some columns of K̃, in float64."""
        return self.columns_with(self.coordinates(np.asarray(numbers)))

    def columns_with(self, coordinates: Array) -> Array:
        """K̃ with other rows, that are given by their features in all columns."""
        return self.features_matmul(self.core_matmul(self.xp.matrix_transpose(coordinates)))

    def inner(self) -> np.ndarray:
        """Zᵀ Z, in float64, on the host."""
        return scipy.linalg.block_diag(*self.normal_equations()[0])

    def normal_equations(
        self, V: Array | None = None, weights: Array | None = None, *, precise: bool = False
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """The blocks of Zᵀ W Z, and Zᵀ W V, with W = diag(weights): on the host, in one pass.

        With ``precise``, features are computed and multiplied in float64 whatever their dtype.
        """
        pairs = self.inner_products(V, weights, precise=precise)
        host = [[np.asarray(array_ops.to_numpy(a), np.float64) for a in pair] for pair in pairs]
        return [pair[0] for pair in host], np.concatenate([pair[1] for pair in host])

    def inner_products(
        self, V: Array | None = None, weights: Array | None = None, *, precise: bool = False
    ) -> list[tuple[Array, Array]]:
        """The same for each part, where its rows are computed with."""
        xp = self.xp
        dtype = xp.float64 if precise else self.dtype
        walked, P = self.unprojected() if precise else (self, None)
        targets, weighted = V is not None, weights is not None
        aligned = [self.arrange(a) for a in (V, weights) if a is not None]

        def part(z: Array, *given: Array) -> tuple[Array, Array]:
            z = array_ops.astype(z, dtype)
            z = z if P is None else z @ P
            v = array_ops.astype(given[0], dtype) if targets else z[:, :0]
            if weighted:
                root = xp.sqrt(array_ops.astype(given[-1], dtype))[:, None]
                z, v = z * root, v * root
            turned = xp.matrix_transpose(z)  # of the same array: half the work of other products
            return turned @ z, turned @ v

        # Copies in float64 are what a block needs beside itself.
        spare = 8 * (walked.rank + self.rank) if precise else 0
        return walked.sum(
            lambda columns: part,
            *aligned,
            row_bytes=spare,
            result_bytes=self.inner_size() * array_ops.itemsize(dtype),
        )

    def inner_size(self) -> int:
        """The numbers of the largest block of ZᵀZ."""
        return max(Z.shape[1] for Z in self.parts) ** 2

    def diagonal(self) -> Array:
        """The diagonal of K̃, in float64."""

        def prepare(columns: slice) -> Callable[..., Array]:
            norms = self.norms_in(columns)
            return lambda z, out: norms(z)

        return self.restore(self.map(prepare, dtype=self.xp.float64))

    def norms_in(self, columns: slice) -> Callable[[Array], Array]:
        """For the part with these columns: a function of a block z of its rows, zᵀSz of each."""
        xp = self.xp
        if self.core is None:
            return lambda z: array_ops.astype(array_ops.row_norms(z), xp.float64)
        block = self.core.block(self.part_columns.index(columns))
        own = array_ops.like(block, self.example(), self.dtype)
        return lambda z: array_ops.astype(xp.sum((z @ own) * z, axis=1), xp.float64)

    diag = diagonal  # as in Gram: both are oracles of a matrix

    def features(self, into: Array | None = None) -> Array:
        """F with K̃ = F Fᵀ, as one array: n times the rank of S, also where Z is in parts.

        It is written ``into`` memory that is given where Z is what is asked for.
        """
        Z = self.single
        if Z is not None and self.core is None:
            if into is None:
                return Z.values()
            return Z.map(lambda z, out: z, width=self.rank, dtype=self.dtype, into=into)
        root = np.eye(self.rank) if self.core is None else psd_root(self.core.dense())
        right = array_ops.like(root, self.example(), self.dtype)

        def prepare(columns: slice) -> Callable[..., Array]:
            own = right[columns, :]
            return lambda z, out: array_ops.matmul(z, own, out)

        return self.restore(self.map(prepare, width=root.shape[1], dtype=self.dtype))

    def dense(self, other: Factors | None = None) -> Array:
        """K̃ itself, or with ``other`` rows of the same approximation; for few rows."""
        other = self if other is None else other
        if self.spread or other.spread:
            config.check_fits(
                8 * other.shape[0] * self.rank,
                f"features of {counted(other.shape[0], 'row')}",
                "Pass fewer",
            )
            return self.columns_with(other.coordinates(np.arange(other.shape[0])))
        xp = self.xp
        out = array_ops.empty((self.shape[0], other.shape[0]), self.example(), xp.float64)
        right = [array_ops.astype(Z.collect(), xp.float64) for Z in other.parts]
        for Z, mine, columns in zip(self.parts, self._rows, self.part_columns, strict=True):
            lift = np.zeros((self.rank, columns.stop - columns.start))
            lift[columns] = np.eye(lift.shape[1])
            S = array_ops.like(lift, self.example(), xp.float64)
            S = xp.matrix_transpose(self.core_matmul(S))  # this part's rows of the core
            left = array_ops.astype(Z.collect(), xp.float64) @ S
            for z, theirs, own in zip(right, other._rows, other.part_columns, strict=True):
                out[mine, theirs] = left[:, own] @ xp.matrix_transpose(z)
        turned = other.restore(xp.matrix_transpose(self.restore(out)))
        return xp.matrix_transpose(turned)

    def example(self) -> Array:
        """An array without entries, of the library, device and dtype of Z."""
        return self.parts[0].example()

    @property
    def spread(self) -> bool:
        """Whether other processes hold Z: see :class:`gramian.Rows`."""
        return self.parts[0].spread

    def _positions(self, numbers: np.ndarray) -> np.ndarray:
        """Where rows of the data stand in the order of the parts."""
        numbers = np.asarray(numbers)
        return numbers if self.order is None else self._inverse(self.order)[numbers]

    @staticmethod
    def _inverse(order: np.ndarray) -> np.ndarray:
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order), dtype=order.dtype)
        return inverse


class Map(NamedTuple):
    """How a part's rows become features."""

    features: Callable[..., Array]
    width: int
    work_bytes: int = 0
    row_evaluations: int = 0


def in_parts(
    rows: Rows, labels: Array, maps: Sequence[Map], core: BlockCore | None, *, dtype: Any,
    serial: bool = False,
) -> Factors:  # fmt: skip
    """Factors of rows of which each has the features that the map of its label makes."""
    if rows.spread:
        return SpreadFactors(rows, labels, maps, core, dtype=dtype, serial=serial)
    small = rows.shape[0] <= np.iinfo(np.int32).max
    order = np.argsort(labels, kind="stable").astype(np.int32 if small else np.int64)
    edges = np.cumsum(np.bincount(labels, minlength=len(maps)))
    parts = [
        FeatureRows(
            rows.choose(numbers), own.features, own.width, dtype,
            work_bytes=own.work_bytes, serial=serial, row_evaluations=own.row_evaluations,
        )
        for own, numbers in zip(maps, np.split(order, edges[:-1]), strict=True)
    ]  # fmt: skip
    return Factors(parts, core, order)


class SpreadFactors(Factors):
    """Factors in parts of rows that other processes hold, of which each has rows of every part.

    There is no order of the parts: arrays stay in that of the data, and each process arranges its
    own rows while it walks them. Features that are kept are as wide as the widest part.
    """

    order = None

    def __init__(
        self, rows: Any, labels: Array, maps: Sequence[Map], core: BlockCore | None, *, dtype: Any,
        serial: bool,
    ) -> None:  # fmt: skip
        self.core, self.dtype, self.xp = core, dtype, rows.xp
        self.part_columns = _slices(own.width for own in maps)
        self.parts = []
        self._rows_of = rows
        self._labels = rows.align(labels)
        self._maps = list(maps)
        self._serial = serial

    spread = True
    single = None

    @property
    def shape(self) -> tuple[int, int]:
        n = self._rows_of.shape[0]
        return n, n

    @property
    def nbytes(self) -> int:
        labels = self.shape[0] * self._labels.dtype.itemsize
        return self.features_nbytes + labels + (0 if self.core is None else self.core.nbytes)

    @property
    def _widest(self) -> int:
        return max(own.width for own in self._maps)

    def example(self) -> Array:
        return array_ops.empty((0,), self._rows_of.example(), self.dtype)

    def align(self, values: Any, dtype: Any = None) -> Array:
        return self._rows_of.align(values, dtype)

    def constant(self, value: float) -> Array:
        return self._rows_of.constant(value)

    def check_room(self, size: int, what: str, advice: str) -> None:
        self._rows_of.check_room(size, what, advice)

    def room(self) -> int:
        return self._rows_of.room()

    @property
    def evaluations(self) -> int:
        pairs = zip(self.part_sizes, self._maps, strict=True)
        return sum(size * own.row_evaluations for size, own in pairs)

    @cached_property
    def part_sizes(self) -> list[int]:
        return array_ops.counts(self._labels, len(self._maps)).tolist()

    def _size(self, half: bool) -> int:
        return self.shape[0] * self._widest * (2 if half else array_ops.itemsize(self.dtype))

    def inner_size(self) -> int:
        return self._widest**2

    def persist(
        self, room: int | None = None, *, partly: bool = False, half: bool = False
    ) -> Factors:
        if self.keepable(half=half) == 0:
            return self
        dtype = self.xp.float16 if half else self.dtype
        operation = partial(_keep_parts, self._local, self._widest, half)
        options = {"width": self._widest, "dtype": dtype, "serial": self._serial}
        kept = self._rows_of.keep(self._rows_of.map_locally(operation, self._labels, **options))
        maps = [Map(partial(_first_columns, own.width), own.width) for own in self._maps]
        return SpreadFactors(kept, self._labels, maps, self.core, dtype=kept.dtype, serial=False)

    def take(self, numbers: np.ndarray) -> Factors:
        rows = ArrayRows(self._rows_of.take(numbers))
        here = self._local(rows, array_ops.take_rows(self._labels, np.asarray(numbers)))
        parts = [ArrayRows(Z.collect()) for Z in here.parts]
        return Factors(parts, self.core, here.order)

    def map(
        self,
        prepare: Callable[[slice], Callable[..., Array]],
        *aligned: Array,
        width: int | None = None,
        dtype: Any = None,
        label: str = "features",
    ) -> Array:
        functions = [prepare(columns) for columns in self.part_columns]
        dtype = self.dtype if dtype is None else dtype
        options = {"width": width, "dtype": dtype}
        operation = partial(_map_parts, self._local, functions, options)
        return self._rows_of.map_locally(
            operation, self._labels, *aligned, **options, serial=self._serial
        )

    def sum(
        self,
        prepare: Callable[[slice], Callable[..., Any]],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        row_bytes: int = 0,
        result_bytes: int = 0,
        label: str = "features",
    ) -> Any:
        functions = [prepare(columns) for columns in self.part_columns]
        operation = partial(_sum_parts, self._local, functions, row_bytes, len(state or ()))
        return self._rows_of.sum_locally(
            operation, self._labels, *aligned, state=state, serial=self._serial
        )

    @property
    def _local(self) -> Callable[[Rows, Array], Factors]:
        """Factors of some of the rows, in the process that has them."""
        options = {"dtype": self.dtype, "serial": self._serial}
        return partial(_in_parts_here, self._maps, options)


def _in_parts_here(maps: list[Map], options: dict[str, Any], rows: Rows, labels: Array) -> Factors:
    return in_parts(rows, np.asarray(array_ops.to_numpy(labels)), maps, None, **options)


def _by_columns(factors: Factors, functions: list[Any]) -> Callable[[slice], Any]:
    starts = [columns.start for columns in factors.part_columns]
    return lambda columns: functions[starts.index(columns.start)]


def _map_parts(
    local: Any, functions: list[Any], options: dict[str, Any], rows: Rows, labels: Array,
    *aligned: Array,
) -> Array:  # fmt: skip
    here = local(rows, labels)
    aligned = tuple(here.arrange(a) for a in aligned)
    return here.restore(here.map(_by_columns(here, functions), *aligned, **options))


def _sum_parts(
    local: Any, functions: list[Any], row_bytes: int, written: int, rows: Rows, labels: Array,
    *aligned: Array,
) -> list[Any]:  # fmt: skip
    here = local(rows, labels)
    arranged = [here.arrange(a) for a in aligned]
    totals = here.sum(_by_columns(here, functions), *arranged, row_bytes=row_bytes)
    for i in range(len(aligned) - written, len(aligned)):
        aligned[i][...] = here.restore(arranged[i])
    return totals


def _keep_parts(local: Any, widest: int, half: bool, rows: Rows, labels: Array) -> Array:
    """Features in the first columns, whichever part they belong to."""
    here = local(rows, labels)

    def prepare(columns: slice) -> Callable[..., Array]:
        width = columns.stop - columns.start

        def fill(z: Array, out: Array) -> Array:
            out[:, :width] = for_half(z) if half else z
            out[:, width:] = 0
            return out

        return fill

    dtype = here.xp.float16 if half else here.dtype
    return here.restore(here.map(prepare, width=widest, dtype=dtype))


def _first_columns(width: int, z: Array, out: Array | None = None) -> Array:
    return z[:, :width]


def _slices(lengths: Any) -> list[slice]:
    edges = [0, *accumulate(int(length) for length in lengths)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
