"""Sums over all rows for the iterations of ridge: products with C, from both sides at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramian.backend import array_ops, numba_loops
from gramian.backend.array_ops import Array
from gramian.learners.ridge.systems import System
from gramian.matrices.factors import unprojected
from gramian.rows import ArrayRows, FeatureRows

MANY = 16  # columns from which on products in float32 take no longer than compiled loops


class Values:
    """A block of C, the kernel values."""

    def __init__(self, c: Array) -> None:
        self.c = c  # (rows, m)

    def times(self, U: Array) -> Array:
        """Multiply with U (m, c); shape (rows, c)."""
        return array_ops.matmul(self.c, U)

    def transposed_times(self, W: Array) -> Array:
        """Multiply the transpose with W (rows, c); shape (m, c)."""
        return array_ops.transposed_matmul(self.c, W)


class FusedValues:
    """A block of C that is not stored: a GPU program computes products with it from the rows x.

    If float64 is needed, the values are computed after all, some rows at a time, and multiplied in
    the dtype of the other matrix, as the GPU program does.
    """

    def __init__(self, source: FeatureRows, x: Array) -> None:
        self.source, self.x = source, x

    def times(self, U: Array) -> Array:
        product = self.source.fused.times(self.x, U)
        if product is not None:
            return product

        def part(c: Array, out: Array) -> Array:
            return array_ops.matmul(array_ops.astype(c, U.dtype), U, out)

        made, columns = self._made(), U.shape[1]
        return made.map(part, width=columns, dtype=U.dtype, row_bytes=self._spare + 8 * columns)

    def transposed_times(self, W: Array) -> Array:
        product = self.source.fused.transposed_times(self.x, W)
        if product is not None:
            return product
        xp = self.source.xp

        def part(c: Array, w: Array) -> Array:
            return xp.matrix_transpose(array_ops.astype(c, w.dtype)) @ w

        return self._made().sum(part, W, row_bytes=self._spare)

    def _made(self) -> FeatureRows:
        return self.source.on(ArrayRows(self.x))

    @property
    def _spare(self) -> int:
        """Memory per row: values in float64, and those of a tile while it is computed."""
        return 2 * 8 * self.source.shape[1]


class Products:
    """Sums over all rows: [Z, 1]ᵀW F for F = [Y, 1] or Z V - 1 shift.

    Each is summed with the weights of the rows, and with those of held-out rows if there are any.
    """

    def __init__(self, system: System, room: int) -> None:
        factors = system.factors
        rows, self._P = unprojected(factors)
        self.dtype = factors.xp.float64 if system.precise else factors.dtype
        source: Any = rows.parts[0]
        self._fused = None if getattr(source, "fused", None) is None else source
        self._C = rows if self._fused is not None else rows.persist(room, partly=True)
        self._loops = numba_loops.multiply(rows.parts.example(), rows.shape[0] * rows.rank)
        weights = (system.weights, system.held_out)
        self._weights = [self._C.arrange(w)[:, None] for w in weights if w is not None]

    def with_targets(
        self, Y: Array, V: np.ndarray, shift: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the same as ``with_features`` for F = [Y, 1, Z V - 1 shift]."""
        return self._sum(V, shift, self._C.arrange(Y))

    def with_features(
        self, V: np.ndarray, shift: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return ZᵀWF (r, c) and 1ᵀWF (1, c) for each kind of weights, with F = Z V - 1 shift.

        V has shape (r, c), ``shift`` (1, c).
        """
        return self._sum(V, shift)

    def _sum(
        self, V: np.ndarray, shift: np.ndarray, *targets: Array
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        xp, P, example = self._C.xp, self._P, self._C.parts.example()
        U = array_ops.like(V, example, xp.float64)
        U = array_ops.astype(U if P is None else P @ U, self.dtype)
        s = array_ops.like(shift, example, self.dtype)
        columns = V.shape[1] + sum(Y.shape[1] + 1 for Y in targets)
        kinds = max(len(self._weights), 1)
        result = 8 * (self._C.rank + 1) * columns * kinds
        aligned = (*targets, *self._weights)
        if self._loops and (self.dtype == xp.float64 or columns < MANY):
            image, total = self._looped(U, s, result, aligned, len(targets))
        else:
            image, total = self._multiplied(U, s, result, aligned, len(targets))
        image = image if P is None else xp.matrix_transpose(P) @ image
        images, totals = (
            np.split(array_ops.to_numpy(each), kinds, axis=1) for each in (image, total)
        )
        return list(zip(images, totals, strict=True))

    def _looped(
        self, U: np.ndarray, shift: np.ndarray, result: int, aligned: Sequence[Array], count: int
    ) -> tuple[Array, Array]:
        """Return the sums over all rows of C by compiled loops, which convert it as they read it.

        The first ``count`` of the aligned arrays are targets, the others weights.
        """
        dtype = self.dtype

        def part(c: Array, *aligned: Array) -> tuple[Array, Array]:
            one, none = np.ones((len(c), 1), dtype), np.empty((len(c), 0), dtype)
            aligned = tuple(a.astype(dtype, copy=False) for a in aligned)
            given = np.hstack((*aligned[:count], one)) if count else none
            weights = np.hstack(aligned[count:]) if aligned[count:] else one
            return numba_loops.both_sides(c, U, shift[0], given, weights)

        (total,) = self._C.sum(lambda _: part, *aligned, result_bytes=result)
        return total

    def _multiplied(
        self, U: Array, shift: Array, result: int, aligned: Sequence[Array], count: int
    ) -> tuple[Array, Array]:
        """Return the same by matrix products, in ``dtype``."""
        xp, dtype = self._C.xp, self.dtype

        def part(values: Values | FusedValues, *aligned: Array) -> tuple[Array, Array]:
            F = values.times(U) - shift
            if count:
                y = array_ops.astype(aligned[0], dtype)
                F = xp.concat((y, xp.ones_like(y[:, :1]), F), axis=1)
            if aligned[count:]:
                weights = (array_ops.astype(w, dtype) for w in aligned[count:])
                F = xp.concat([F * w for w in weights], axis=1)
            return values.transposed_times(F), xp.sum(F, axis=0, keepdims=True, dtype=xp.float64)

        return self._walk(part, result, *aligned)

    def _walk(
        self, part: Callable[..., Any], result_bytes: int, *aligned: Array
    ) -> tuple[Array, Array]:
        source, dtype = self._fused, self.dtype
        if source is not None:
            return source.rows.sum(
                lambda x, *a: part(FusedValues(source, x), *a),
                *aligned,
                result_bytes=result_bytes,
                label="ridge",
            )

        def dense(c: Array, *a: Array) -> tuple[Array, Array]:
            return part(Values(array_ops.astype(c, dtype)), *a)

        spare = 0 if dtype == self._C.dtype else 8 * self._C.rank  # C in float64
        (total,) = self._C.sum(
            lambda _: dense, *aligned, row_bytes=spare, result_bytes=result_bytes
        )
        return total
