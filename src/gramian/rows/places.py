"""Place: where rows are, and all that depends on it.

Rows are in this process, are moved to a device block by block, or are in the processes of a
cluster. Learners, samplers and approximations do not ask which: the place of the rows makes the
arrays that are walked with them, says how much memory there is, gathers rows into this process, and
hands results back in the caller's array type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace

if TYPE_CHECKING:
    from gramian.rows.base import Rows
    from gramian.rows.parts import Map, Parts


class Place:
    """Rows in this process.

    Parameters
    ----------
    n : int
        The number of rows.
    reference : array
        An array without entries, of the library and device that the rows are computed with.
    """

    def __init__(self, n: int, reference: Array) -> None:
        self.n = n
        self.reference = reference

    @property
    def xp(self) -> Namespace:
        """The array API namespace of blocks."""
        return array_ops.namespace(self.reference)

    # Arrays with an entry for each row.

    def align(self, values: Any, dtype: Any = None) -> Array:
        """Return values of shape (n, ...) as an array that is walked with the rows."""
        return array_ops.like(values, self.reference, dtype)

    def constant(self, value: float) -> Array:
        """Return an array of shape (n,), float64, of one number, that is walked with the rows."""
        return self.align(np.full(self.n, value), self.xp.float64)

    def column(self, values: Any, dtype: Any = None) -> Array:
        """Return values of shape (n, ...) as an array to look into: NumPy's, or a lazy one.

        A number stays one, as an array of shape ().
        """
        return np.asarray(array_ops.to_numpy(values), dtype=dtype)

    def targets(self, y: Any, owner: Any) -> Array:
        """Return y as finite numbers, or raise an error that names the estimator ``owner``."""
        if array_ops.is_foreign(y) and not array_ops.is_lazy(y):
            return y
        y = check_array(
            array_ops.to_numpy(y) if array_ops.is_lazy(y) else y,
            ensure_2d=False,
            dtype="numeric",
            input_name="y",
            estimator=type(owner).__name__,
        )
        if y.dtype == object:  # of lists, where scikit-learn leaves None as it is
            y = y.astype(np.float64)
            assert_all_finite(y, input_name="y")
        return y

    def values(self, rows: Rows) -> Array:
        """Return all rows as one array of shape (n, d) that is walked with them."""
        return rows._values()

    def empty_columns(self, most: int, dtype: Any) -> Array:
        """Return an array for up to ``most`` columns, which ``with_columns`` fills."""
        return array_ops.empty((self.n, most), self.reference, dtype)

    def with_columns(self, array: Array, used: int, new: Array) -> Array:
        """Return the array with new columns after its first ``used``; it may be overwritten."""
        array[:, used : used + new.shape[1]] = new
        return array

    # Memory.

    def room(self) -> int:
        """Return the bytes that may be used now for what is kept of the rows."""
        return config.memory_budget()

    def check_room(self, size: int, what: str, advice: str) -> None:
        """Raise an error if a result of ``map`` of this size has no room; a lazy one needs none."""
        config.check_fits(size, what, advice)

    def share(self, room: int | None, partly: bool) -> tuple[int, bool]:
        """Return the bytes for features that are kept, and whether some rows may be kept alone.

        ``room`` and ``partly`` are what the caller would like.
        """
        return config.memory_budget() // 2 if room is None else room, partly

    def planned(self, rows: Rows) -> Rows:
        """Return rows that stand for these where the memory of this process is estimated."""
        return rows

    # Rows elsewhere, and from elsewhere.

    def here(self, rows: Rows) -> Rows:
        """Return these rows in this process, for matrices that are made in one piece."""
        return rows

    def check_whole(self, what: str) -> None:
        """Raise an error if ``what``, which needs all rows in one process, cannot have them."""

    def to_device(self, rows: Rows, device: str, *, must: str = "") -> Rows:
        """Return the rows on a device, or the same rows if they are computed with elsewhere.

        ``must`` names the estimator that was fitted there, so that rows which cannot go there are
        an error.
        """
        if array_ops.is_foreign(self.reference):
            return rows
        from gramian.rows.device import DeviceRows

        return DeviceRows(rows, device)

    def keep(self, values: Array) -> Rows:
        """Return what ``map`` gave for these rows, of shape (n, width), as rows that stay here."""
        from gramian.rows.arrays import ArrayRows

        return ArrayRows(values)

    def keep_half(self, values: Array, dtype: Any) -> Rows:
        """Return values in half precision as rows that are computed with in ``dtype``."""
        from gramian.rows.arrays import HalfRows

        return HalfRows(values, dtype)

    def samples(self, parts: Parts, count: int) -> Parts:
        """Return the parts themselves, or those of their first ``count`` rows in this process."""
        return parts

    def arrays(self, parts: Sequence[Rows]) -> list[Array] | None:
        """Return each of the rows as one array; None where they stay in other processes."""
        return [rows.collect() for rows in parts]

    def later(self, compute: Callable[..., Array], *arguments: Any) -> Rows | None:
        """Return rows of ``compute(*arguments)`` if that is lazy; None if it would run at once."""
        return None

    # Groups of rows.

    def split(self, rows: Rows, labels: Array, count: int) -> list[Rows]:
        """Return for each of ``count`` labels its rows, in their order."""
        order = np.argsort(labels, kind="stable")
        edges = np.cumsum(np.bincount(labels, minlength=count))[:-1]
        return [rows.choose(numbers) for numbers in np.split(order, edges)]

    def by_parts(
        self, rows: Rows, prepare: Callable[[], Callable[[Rows, int], Any]], *, serial: bool = False
    ) -> list[Any] | None:
        """Return what an operation gives for each part of the rows; None if one process has all.

        ``prepare()`` makes the operation, which gets a part and the number of its first row.
        """
        return None

    def in_parts(
        self, rows: Rows, labels: Array, maps: Sequence[Map], dtype: Any, serial: bool
    ) -> Parts:
        """Return features of rows, each of which has those that the map of its label makes."""
        from gramian.rows.parts import in_parts

        return in_parts(rows, labels, maps, dtype, serial)

    # Results.

    def hand_back(self, values: Array) -> Array:
        """Return values with an entry for each row in the caller's array type."""
        return values

    def hand_back_kept(self, values: Array) -> Array:
        """Return such values that a fit keeps: computed where the rows are."""
        return self.hand_back(values)

    def memory_to_hand_back(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        """Return memory for such values that ``map`` can write into, if the rows have other."""
        return None
