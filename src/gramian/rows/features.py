"""Rows of features: recomputed in every walk, or stored for as many rows as fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.backend.typing import Aligned, BlockSum, DType, Indices, State, Sums
from gramian.rows import arrays
from gramian.rows.arrays import ArrayRows
from gramian.rows.base import Rows, Walk
from gramian.rows.joined import JoinedRows

MOST_FUSED = 64  # columns that features are multiplied with; fused, more compute values repeatedly


class FeatureRows(Rows):
    """Features of other rows, recomputed block by block in every walk.

    Parameters
    ----------
    rows : Rows
    features : callable
        ``features(block, out=None)`` returns the features of a block, of shape (rows, width).
    width : int
        Number of features.
    dtype : dtype
    work_bytes : int
        Memory that ``features`` uses per row, in addition to the block and its result.
    serial : bool
        Whether ``features`` must not be called from two threads at once.
    row_evaluations : int
        Kernel values needed for the features of one row.
    product : tuple of Rows and array, optional
        C and P, if the features are a product C P of other rows, such as kernel values, with a
        matrix. Computing Z W as C (P W) takes far less work if W has few columns.
    fused : object, optional
        Multiplies with the features of a block without computing them:
        ``fused.times(block, V)`` and ``fused.transposed_times(block, U)``. Both return None for
        blocks that they cannot multiply accurately.

    See Also
    --------
    Factors : holds features of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import FeatureRows, as_rows
    >>> rows = as_rows(np.array([[1.0], [2.0], [3.0]]))
    >>> squares = FeatureRows(rows, lambda block, out=None: block**2, 1, rows.dtype)
    >>> squares.sum(lambda block: block.sum(axis=0))
    array([14.])
    """

    def __init__(
        self,
        rows: Rows,
        features: Callable[..., Array],
        width: int,
        dtype: DType,
        *,
        work_bytes: int = 0,
        serial: bool = False,
        row_evaluations: int = 0,
        product: tuple[Rows, Array] | None = None,
        fused: Any = None,
    ) -> None:
        self.rows = rows
        self.features = features
        self.fused = fused
        self.product = product
        self.shape = (rows.shape[0], width)
        self.dtype = dtype
        self.xp = rows.xp
        self.place = rows.place
        self.work_bytes = work_bytes
        self.serial = serial
        self.row_evaluations = row_evaluations
        self._row_bytes = work_bytes + width * array_ops.itemsize(dtype)

    @property
    def evaluations(self) -> int:
        return self.shape[0] * self.row_evaluations

    def take(self, indices: Indices) -> Array:
        if len(indices) == 0:  # kernels cannot take the maximum over an empty block
            return array_ops.empty((0, self.shape[1]), self.place.reference, self.dtype)
        taken = self.rows.take(indices)
        if len(indices) <= arrays.LEAST_ROWS:
            with one_blas_thread():
                return self.features(taken)
        return self.on(ArrayRows(taken)).collect()  # in blocks, with threads

    def _map(self, function: Callable[..., Array], aligned: Aligned, walk: Walk) -> Array:
        features = self.features  # without self: the function may be sent to other processes

        def of_features(x: Array, *parts: Array, out: Array) -> Array:
            return function(features(x), *parts, out=out)

        return self.rows._map(of_features, aligned, self._wider(walk))

    def _sum(self, function: BlockSum, aligned: Aligned, state: State, walk: Walk) -> Sums:
        features = self.features

        def of_features(x: Array, *parts: Array) -> Sums:
            return function(features(x), *parts)

        return self.rows._sum(of_features, aligned, state, self._wider(walk))

    def _wider(self, walk: Walk) -> Walk:
        """Return the walk over the underlying rows, with memory for the features."""
        row_bytes, serial = (walk.row_bytes or 0) + self._row_bytes, walk.serial or self.serial
        products = walk.products + self.row_evaluations * (self.rows.shape[1] + self.shape[1])
        return replace(walk, row_bytes=row_bytes, serial=serial, stored=False, products=products)

    def matmul(self, V: Array) -> Array:
        """Return the features times V (width, k), in V's dtype, by ``fused`` where that serves."""
        features = self.features  # without self, as in ``_map``
        fused = self.fused if V.shape[1] <= MOST_FUSED else None

        def product(x: Array, out: Array) -> Array:
            result = None if fused is None else fused.times(x, V)
            if result is None:
                result = array_ops.matmul(array_ops.astype(features(x), V.dtype), V, out)
            return result

        wide = (self.shape[1] + V.shape[1]) * array_ops.itemsize(V.dtype)
        walk = Walk(V.shape[1], V.dtype, row_bytes=wide, label="features")
        return self.rows._map(product, (), self._wider(walk))

    def collect(self) -> Array:
        return array_ops.like(self._values(), self.place.reference)

    def _values(self) -> Array:
        walk = Walk(self.shape[1], self.dtype, row_bytes=0, label="features")
        return self.rows._map(self.features, (), self._wider(walk))

    def choose(self, numbers: np.ndarray) -> Rows:
        product = self.product and (self.product[0].choose(numbers), self.product[1])
        return self.on(self.rows.choose(numbers), product)

    def on(self, rows: Rows, product: tuple[Rows, Array] | None = None) -> FeatureRows:
        """Return the same features of other rows."""
        return self._maker()(rows, product=product)  # type: ignore[call-arg, return-value]

    def rounded(self, dtype: DType, product: tuple[Rows, Array] | None = None) -> FeatureRows:
        """Return these features, computed as before and rounded to another dtype."""
        return FeatureRows(
            self.rows,
            partial(_rounded, self.features, dtype),
            self.shape[1],
            dtype,
            work_bytes=self._row_bytes,
            serial=self.serial,
            row_evaluations=self.row_evaluations,
            product=product,
        )

    def _maker(self) -> Callable[[Rows], Rows]:
        return partial(
            FeatureRows,
            features=self.features,
            width=self.shape[1],
            dtype=self.dtype,
            work_bytes=self.work_bytes,
            serial=self.serial,
            row_evaluations=self.row_evaluations,
            fused=self.fused,
        )

    def walk_bytes(self, row_bytes: int, result_bytes: int = 0) -> int:
        return self.rows.walk_bytes(row_bytes + self._row_bytes, result_bytes)

    def persist(self) -> Rows:
        size = self.shape[0] * self.row_bytes
        return self if size > self.place.room() // 2 else self.place.keep(self._values())

    def persist_some(self, count: int, *, half: bool = False) -> tuple[JoinedRows, np.ndarray]:
        """Return these rows with ``count`` of them in memory, and their new order.

        Rows in memory come first, in half precision if ``half``. They are taken in stretches at
        equal distances, so that they represent rows in any order, and all rows are still read from
        front to back.
        """
        inside = spread(self.shape[0], count)
        order = np.concatenate((np.flatnonzero(inside), np.flatnonzero(~inside)))
        first, rest = (self.choose(numbers) for numbers in np.split(order, [count]))
        return JoinedRows([held(first, half=half), rest]), order


def _rounded(
    features: Callable[..., Array], dtype: DType, x: Array, out: Array | None = None
) -> Array:
    rounded = array_ops.astype(features(x), dtype)
    if out is None:
        return rounded
    out[...] = rounded
    return out


def held(rows: Rows, *, half: bool = False) -> Rows:
    """Return rows stored in memory at their place, in the working dtype or in half precision."""
    if half:
        if not hasattr(rows.xp, "float16"):
            raise ValueError(
                f"half_precision=True needs NumPy arrays or torch tensors; {rows.xp.__name__} "
                "has no half precision."
            )
        values = rows.map(for_half, width=rows.shape[1], dtype=rows.xp.float16, label="features")
        return rows.place.keep_half(values, rows.dtype)
    return rows.persist() if isinstance(rows, ArrayRows) else rows.place.keep(rows._values())


def for_half(z: Array, out: Array | None = None) -> Array:
    """Return a block z; raise an error if its values are too large for half precision."""
    xp, largest = array_ops.namespace(z), 65504.0
    if z.shape[0] and float(xp.max(xp.abs(z))) > largest:
        raise ValueError(
            f"Half precision represents numbers up to {largest:g}, but some features are larger. "
            "Use half_precision=False, or scale the kernel down, such as 0.001 * kernel."
        )
    return z


def spread(n: int, count: int, stretch: int = 256) -> np.ndarray:
    """Return a mask of shape (n,) that selects ``count`` rows in stretches at equal distances."""
    whole = n // stretch
    chosen = min(count // stretch, whole)
    edges = np.arange(whole + 1) * chosen // max(whole, 1)
    inside = np.zeros(n, dtype=bool)
    inside[: whole * stretch] = np.repeat(np.diff(edges) > 0, stretch)
    inside[np.flatnonzero(~inside)[: count - chosen * stretch]] = True
    return inside
