"""Base classes: rows, the options of a walk over them, and the place where they are.

A learner supplies a function of one block of rows; ``map`` collects its results row by row, and
``sum`` adds them in float64. Rows are in this process, are moved to a device block by block, or are
in the processes of a cluster. Learners, samplers and approximations do not ask which: the place of
the rows makes the arrays that are walked with them, says how much memory there is, gathers rows
into this process, and hands results back in the caller's array type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace
from gramian.backend.typing import Aligned, ArrayLike, BlockSum, DType, Indices, State, Sums, T

if TYPE_CHECKING:
    from gramian.rows.parts import Map, Parts


@dataclass(frozen=True, slots=True)
class Walk:
    """The options of :meth:`Rows.map` and :meth:`Rows.sum`.

    Parameters
    ----------
    width : int, optional
        Number of columns of the result of ``map``; by default it is one number per row.
    dtype : dtype, optional
        The dtype of the result of ``map``; by default that of the rows.
    row_bytes : int, optional
        Memory that the function uses per row, in addition to the block. Block sizes are chosen so
        that this fits the cache and the memory budget. By default, the size of the result of
        ``map``.
    result_bytes : int
        The size of one result of ``sum``. If results are large, fewer may wait to be added.
    serial : bool
        Whether the function must not run in two threads at once.
    label : str
        The text of the progress bar.
    start : int
        The first row of ``sum``.
    into : array, optional
        The array that ``map`` writes its result to, instead of a new one.
    stored : bool
        Whether blocks keep the stored dtype of the rows, for functions that accept any dtype.
    products : int
        Multiplications for each row in matrix products, if they are what takes the time. Threads
        then share few rows too.
    """

    width: int | None = None
    dtype: DType = None
    row_bytes: int | None = None
    result_bytes: int = 0
    serial: bool = False
    label: str = "rows"
    start: int = 0
    into: Array | None = None
    stored: bool = False
    products: int = 0

    def for_map(self, dtype: DType) -> Walk:
        """Return this walk with its defaults filled in; ``dtype`` is the default for results."""
        dtype = self.dtype if self.dtype is not None else dtype
        row_bytes = self.row_bytes
        if row_bytes is None:
            row_bytes = (1 if self.width is None else self.width) * array_ops.itemsize(dtype)
        return replace(self, dtype=dtype, row_bytes=row_bytes)

    @property
    def ending(self) -> tuple[int, ...]:
        """The shape of the result of ``map`` without its first axis."""
        return () if self.width is None else (self.width,)


class Rows(ABC):
    """Base class of the rows of a data set, wherever they are stored.

    Subclasses implement ``_map`` and ``_sum``, which get the options of ``map`` and ``sum`` as a
    :class:`~gramian.rows.base.Walk`.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and number of columns.
    dtype : dtype
        The dtype of blocks: float32 for float32, half precision and bytes, else float64.
    xp : module
        The array API namespace of the blocks.
    place : Place
        Where the rows are: this process, a device or a cluster. It creates arrays that are walked
        with the rows, and converts results to the caller's array type. ``place.reference`` is an
        empty array with the library and device of blocks.
    names : list of str or None
        The names of the columns, if known.
    are_objects : bool
        Whether each row is a Python object, such as a string, for a kernel function.

    See Also
    --------
    as_rows : makes rows from data.
    gramian.testing.check_rows : tests a kind of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Rows, as_rows
    >>> rows = as_rows(np.ones((4, 2), dtype=np.float32))
    >>> isinstance(rows, Rows), rows.shape
    (True, (4, 2))
    >>> rows.sum(lambda block: block.sum(axis=0))
    array([4., 4.])
    """

    shape: tuple[int, int]
    dtype: DType
    xp: Namespace
    place: Place
    names: list[str] | None = None
    are_objects: bool = False

    @property
    def row_bytes(self) -> int:
        """The average memory of one row, in bytes."""
        return self.shape[1] * array_ops.itemsize(self.dtype)

    def map(self, function: Callable[..., Array], *aligned: Array, **walk: Any) -> Array:
        """Return one result per row, of shape (n,) or (n, width).

        ``function(block, *aligned_blocks, out=out)`` gets a block of rows, the same rows of each
        aligned array, and memory for its result, of shape (rows, width), or (rows,) if width is
        None. It may write to ``out`` or return another array. The options are those of
        :class:`~gramian.rows.base.Walk`: width, dtype, row_bytes, into, serial and label.
        """
        return self._map(function, aligned, Walk(**walk).for_map(self.dtype))

    def sum(
        self, function: BlockSum, *aligned: Array, state: Sequence[Array] | None = None, **walk: Any
    ) -> Sums:
        """Return the sum of ``function(block, *aligned_blocks)`` over all blocks.

        The function returns an array or a tuple of arrays; they are added in float64. The arrays in
        ``state`` are also aligned; their blocks come last, and the function may write to them. With
        a state, the result is a pair: the sum, and the arrays afterwards. These are the same
        arrays, or new ones if the rows are in other processes. The options are those of
        :class:`~gramian.rows.base.Walk`: start, row_bytes, result_bytes, serial, label and stored.
        """
        return self._sum(function, aligned, state, Walk(**walk))

    @abstractmethod
    def _map(self, function: Callable[..., Array], aligned: Aligned, walk: Walk) -> Array:
        """Implement ``map``; the defaults of the walk are filled in."""

    @abstractmethod
    def _sum(self, function: BlockSum, aligned: Aligned, state: State, walk: Walk) -> Sums:
        """Implement ``sum``."""

    @abstractmethod
    def take(self, indices: Indices) -> Array:
        """Return the rows with these numbers, as one array in memory."""

    @abstractmethod
    def choose(self, numbers: np.ndarray) -> Rows:
        """Return the rows with these numbers without copying them; each walk gathers them."""

    @abstractmethod
    def persist(self) -> Rows:
        """Return these rows stored in memory in their working dtype, if that fits the budget."""

    @abstractmethod
    def collect(self) -> Array:
        """Return all rows as one array in memory."""

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        """Return the memory that a walk with these sizes needs, excluding the result of ``map``."""
        return 0

    def _values(self) -> Array:
        """Return all rows as one aligned array of shape (n, d), which is lazy on a cluster."""
        return self.collect()

    def _maker(self) -> Callable[[Rows], Rows]:
        """Return a function that derives rows like these from other rows of the underlying data.

        It holds no reference to any rows, so it can be sent to other processes.
        """
        return _same


def _same(rows: Rows) -> Rows:
    return rows


@dataclass(eq=False)
class Place:
    """Rows in this process.

    Parameters
    ----------
    n : int
        Number of rows.
    reference : array
        An empty array with the library and device of blocks.
    """

    n: int
    reference: Array

    @property
    def xp(self) -> Namespace:
        """The array API namespace of blocks."""
        return array_ops.namespace(self.reference)

    # Arrays with one entry per row.

    def align(self, values: ArrayLike, dtype: DType = None) -> Array:
        """Convert values of shape (n, ...) to an array that can be walked with the rows."""
        return array_ops.like(values, self.reference, dtype)

    def constant(self, value: float) -> Array:
        """Return an array of shape (n,) and dtype float64 that holds one number everywhere."""
        return self.align(np.full(self.n, value), self.xp.float64)

    def column(self, values: ArrayLike, dtype: DType = None) -> Array:
        """Convert values of shape (n, ...) to a NumPy array, or a lazy one on a cluster.

        A number becomes an array of shape ().
        """
        return np.asarray(array_ops.to_numpy(values), dtype=dtype)

    def targets(self, y: ArrayLike, owner: object) -> Array:
        """Return y as finite numbers; errors name the estimator ``owner``."""
        if array_ops.is_foreign(y) and not array_ops.is_lazy(y):
            return y
        y = check_array(
            array_ops.to_numpy(y) if array_ops.is_lazy(y) else y,
            ensure_2d=False,
            dtype="numeric",
            input_name="y",
            estimator=type(owner).__name__,
        )
        if y.dtype == object:  # scikit-learn leaves None in lists unchanged
            y = y.astype(np.float64)
            assert_all_finite(y, input_name="y")
        return y

    def values(self, rows: Rows) -> Array:
        """Return all rows as one aligned array of shape (n, d)."""
        return rows._values()

    def empty_columns(self, most: int, dtype: DType) -> Array:
        """Allocate an array for up to ``most`` columns, to be filled by ``with_columns``."""
        return array_ops.empty((self.n, most), self.reference, dtype)

    def with_columns(self, array: Array, used: int, new: Array) -> Array:
        """Return the array with new columns after its first ``used``, possibly in place."""
        array[:, used : used + new.shape[1]] = new
        return array

    # Memory.

    def room(self) -> int:
        """Return the memory that is available now to store results of the rows."""
        return config.memory_budget()

    def check_room(self, size: int, what: str, advice: str) -> None:
        """Raise an error if a result of ``map`` of this size does not fit; lazy ones always do."""
        config.check_fits(size, what, advice)

    def share(self, room: int | None, partly: bool) -> tuple[int, bool]:
        """Return the memory for stored features, and whether features of some rows may be stored.

        ``room`` and ``partly`` are the caller's wishes.
        """
        return config.memory_budget() // 2 if room is None else room, partly

    def planned(self, rows: Rows) -> Rows:
        """Return rows to use in place of these when estimating the memory of this process."""
        return rows

    # Moving rows.

    def here(self, rows: Rows) -> Rows:
        """Return these rows in this process, for matrices that must be computed in one piece."""
        return rows

    def check_whole(self, what: str) -> None:
        """Raise an error if the rows are not in one process, which ``what`` needs."""

    def to_device(self, rows: Rows, device: str, *, must: str = "") -> Rows:
        """Return the rows on a device; rows that already compute elsewhere stay there.

        ``must`` names an estimator that was fitted on the device. With it, rows that cannot be
        moved raise an error.
        """
        if array_ops.is_foreign(self.reference):
            return rows
        from gramian.rows.device import DeviceRows

        return DeviceRows(rows, device)

    def keep(self, values: Array) -> Rows:
        """Return a result of ``map``, of shape (n, width), as rows at this place."""
        from gramian.rows.arrays import ArrayRows

        return ArrayRows(values)

    def keep_half(self, values: Array, dtype: DType) -> Rows:
        """Return values in half precision as rows whose blocks have this dtype."""
        from gramian.rows.arrays import HalfRows

        return HalfRows(values, dtype)

    def samples(self, parts: Parts, count: int) -> Parts:
        """Return the parts; on a cluster, the parts of ``count`` rows in this process."""
        return parts

    def arrays(self, parts: Sequence[Rows]) -> list[Array] | None:
        """Return each part as one array; None if the rows are in other processes."""
        return [rows.collect() for rows in parts]

    def later(self, compute: Callable[..., Array], *arguments: object) -> Rows | None:
        """Return the rows of a lazy ``compute(*arguments)``; None if it would run immediately."""
        return None

    def now(self, compute: Callable[..., Array], *aligned: Array) -> Array | None:
        """Return ``compute(*aligned)`` of aligned arrays in this process; None if they are lazy."""
        return compute(*aligned)

    def early(self, gather: Callable[[], T]) -> T | None:
        """Return ``gather()`` if workers should do it before they compute features, else None."""
        return None

    # Groups of rows.

    @property
    def workers(self) -> int:
        """The number of processes that ``call`` uses; 0 if one process has all rows."""
        return 0

    def split(self, rows: Rows, labels: Array, count: int) -> list[Rows]:
        """Return the rows of each of ``count`` labels, in their order; labels: (n,)."""
        from gramian.rows.arrays import by_label

        order, edges = by_label(labels, count)
        return [rows.choose(numbers) for numbers in np.split(order, edges[:-1])]

    def by_parts(
        self, rows: Rows, prepare: Callable[[], Callable[[Rows, int], T]], *, serial: bool = False
    ) -> list[T] | None:
        """Return the results of an operation on each chunk of rows; None if one process has all.

        ``prepare()`` returns the operation, which gets a chunk and the number of its first row.
        """
        return None

    def call(self, functions: Sequence[Callable[[], T]]) -> list[T] | None:
        """Return the results of functions that workers call; None if one process has all rows.

        What a function refers to is sent to one worker, once for all calls.
        """
        return None

    def in_parts(
        self, rows: Rows, labels: Array, maps: Sequence[Map], dtype: DType, serial: bool
    ) -> Parts:
        """Return features of rows in parts; the label of a row selects the map for its features."""
        from gramian.rows.parts import in_parts

        return in_parts(rows, labels, maps, dtype, serial)

    # Results.

    def hand_back(self, values: Array) -> Array:
        """Convert values with one entry per row to the caller's array type."""
        return values

    def hand_back_kept(self, values: Array) -> Array:
        """Convert such values for a fitted attribute; lazy ones are computed."""
        return self.hand_back(values)

    def memory_to_hand_back(self, shape: tuple[int, ...], dtype: DType) -> Array | None:
        """Allocate memory of the caller's array type for ``map``, if blocks have another type."""
        return None
