"""Features that are kernel values with some points times a matrix: k(x, points) P + b."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from sklearn.utils.extmath import randomized_svd

from gramian.approximations.base import Approximation
from gramian.backend import array_ops, blas, config, linalg
from gramian.backend.array_ops import Array, DType
from gramian.backend.memory import Amounts
from gramian.kernels import Kernel, tiles
from gramian.kernels.pairings import Tile, tile_memory
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows, arrays, even_spans
from gramian.samplers import Landmarks

if TYPE_CHECKING:
    from gramian.backend.triton_programs import FusedKernel

PANEL_COLUMNS = 128
MOST_FUSED = 64  # columns of rows whose kernel values are computed again for each panel


def gram_of(gram: Gram, landmarks: Landmarks) -> Gram:
    """Return the kernel matrix of the landmarks, in float64 whatever the dtype of the data."""
    points = landmarks.points
    if gram.kernel.is_matrix:
        points = gram.block(landmarks.indices, landmarks.indices)  # counts its evaluations
    else:
        gram.evaluations += len(landmarks) ** 2
    return Gram(gram.kernel, ArrayRows(array_ops.astype(points, gram.rows.xp.float64)))


def inverse_root(W: Array, cutoff: float, gram: Gram) -> Array:
    """Return P with P Pᵀ = W⁺ by pivoted Cholesky; W is (m, m), P (m, rank of W)."""
    xp = array_ops.namespace(W)
    diagonal = xp.linalg.diagonal(W)
    largest = float(xp.max(diagonal))
    lower, pivots = linalg.pivoted_cholesky(W, cutoff * max(largest, 0.0))
    if len(pivots) == 0 or not array_ops.all_finite(lower):
        _not_psd(gram)
    P = xp.zeros_like(W)[:, : len(pivots)]
    array_ops.put_rows(P, pivots, xp.matrix_transpose(linalg.inverse_triangle(lower)))
    others = np.setdiff1d(np.arange(len(W)), pivots)  # nothing is left of the pivots
    if len(others):
        left = array_ops.take_rows(diagonal, others)
        left = left - array_ops.row_norms(array_ops.take_rows(W, others) @ P)
        if float(xp.min(left)) < -1e3 * cutoff * len(W) * float(xp.max(xp.abs(diagonal))):
            _not_psd(gram)
    return P


def inverse_root_of_rank(W: np.ndarray, rank: int, cutoff: float) -> np.ndarray:
    """Return P (m, rank) with P Pᵀ = W_r⁺, from the leading eigenvectors of W (m, m)."""
    m = len(W)
    if m > 1000 and rank < m // 5:  # far fewer than m
        vectors, values, _ = randomized_svd(W, rank, n_iter=4, random_state=0)
    else:
        values, vectors = scipy.linalg.eigh(W, subset_by_index=[max(m - rank, 0), m - 1])
    large = values > cutoff * values.max()
    return vectors[:, large] / np.sqrt(values[large])


def _not_psd(gram: Gram) -> None:
    raise ValueError(
        f"The Nyström approximation needs a positive semi-definite kernel; {gram.kernel!r} is not, "
        "on these rows. Use a kernel such as RBF, Laplacian or Polynomial with coef0 >= 0, or an "
        "exact learner: kernel=Exact(...)."
    )


def projected_bytes(rows: Rows, m: int, r: int, point_bytes: int | None = None) -> Amounts:
    """Return the memory of a :class:`ProjectedKernel` with m points and r features.

    A point takes ``point_bytes``, by default as much as a row.
    """
    item = array_ops.itemsize(rows.dtype)
    point = rows.row_bytes if point_bytes is None else point_bytes
    # The points, and prepared in their dtype and in float64; P, also in panels.
    return {"landmarks": m * (2 + 8 // item) * point, "projection": 3 * m * r * item}


class ProjectedKernel:
    """The map x ↦ k(x, points) P + b, one tile of kernel values and one product at a time.

    Parameters
    ----------
    kernel : Kernel
    points : array of shape (m, d)
        As ``kernel.against`` takes them.
    projection : array of shape (m, r)
        P.
    offset : array of shape (r,), optional
        b, by default 0.
    dtype : dtype
        The dtype of the features, P and b. P and b are stored in the array library of the points.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Array,
        projection: Array,
        offset: Array | None = None,
        *,
        dtype: DType,
    ) -> None:
        self.kernel = kernel
        self.points = points
        self.projection = array_ops.contiguous(array_ops.like(projection, points, dtype))
        self.offset = None if offset is None else array_ops.like(offset, points, dtype)
        self._make_tiles()

    def __repr__(self) -> str:
        m, r = self.projection.shape
        return f"{type(self).__name__}({self.kernel!r}, points={m}, features={r})"

    def _make_tiles(self) -> None:
        """Prepare what depends on the points only, in blocks of points, leaving out zeros of P.

        Points are ordered by their first nonzero column in P. A triangular P, as from a Cholesky
        factor, then has the form of steps: a block of columns needs only the first points.
        """
        xp = array_ops.namespace(self.projection)
        self.width = int(self.projection.shape[1])  # the number of features
        nonzero = self.projection != 0
        some = array_ops.to_numpy(xp.any(nonzero, axis=1))
        used = np.flatnonzero(some) if some.any() else np.zeros(1, int)  # even if all is 0
        first = array_ops.to_numpy(xp.argmax(array_ops.astype(nonzero, xp.uint8), axis=1))[used]
        order = used[np.argsort(first, kind="stable")]
        first = np.sort(first)
        in_order = len(order) == len(some) and bool((np.diff(order) == 1).all())
        points = self.points if in_order else array_ops.take_rows(self.points, order)
        P = self.projection if in_order else array_ops.take_rows(self.projection, order)
        self.steps = P  # P in the order of ``values``; shape: (points used, r)
        self._used = points
        self._tiles = []
        for start, stop in even_spans(0, len(order), tiles.tile_columns(points)):
            tile = self.kernel.against(array_ops.span(points, start, stop))
            panels = []
            for left, right in _panels(first[start:stop], self.width):
                count = int(np.searchsorted(first[start:stop], right))
                part = array_ops.contiguous(P[start : start + count, left:right])
                if count or start == 0:
                    panels.append((slice(left, right), count, part))
            self._tiles.append((stop - start, tile, panels))
        square = isinstance(P, np.ndarray) and len(P) == self.width
        self._triangle = P if square and (first >= np.arange(self.width)).all() else None
        self._fused = self.fused() if self._fits_program() else None
        # The number of kernel values that the features of a row take; their memory, one tile at a
        # time; and what ``features`` takes per row, in addition to the block and its result.
        item = array_ops.itemsize(P.dtype)
        self.points_used = int(P.shape[0])
        self._tile_row_bytes = item * min(self.points.shape[0], tiles.tile_columns(self.points))
        self.work_bytes = self._tile_row_bytes
        if self._fused is not None:
            self.work_bytes = 3 * item * self.points.shape[1]  # copies of the row

    def _fits_program(self) -> bool:
        """Whether a GPU program is faster than stored kernel values, and as accurate.

        It computes kernel values again for each panel, which costs little for rows of few columns.
        """
        if self.projection.dtype != array_ops.namespace(self.projection).float32:
            return False
        if self.width <= PANEL_COLUMNS:
            return all(len(panels) == 1 for *_, panels in self._tiles)
        return len(self._tiles) == 1 and self.points.shape[1] <= MOST_FUSED

    def __getstate__(self) -> dict[str, Any]:
        # The tiles are functions, which cannot be pickled; __setstate__ makes them again.
        return {
            name: value
            for name, value in vars(self).items()
            if name in ("kernel", "points", "projection", "offset")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.projection.ndim != 2 or self.projection.shape[0] != self.points.shape[0]:
            raise ValueError(
                f"{self.points.shape[0]} points need a projection of as many rows; got the shape "
                f"{tuple(self.projection.shape)}"
            )
        self._make_tiles()

    def values(self, x: Array, out: Array | None = None) -> Array:
        """Return kernel values, shape (rows, points_used); features are values @ steps."""
        dtype = self.projection.dtype
        if out is None:
            out = array_ops.empty((x.shape[0], self.points_used), self.projection, dtype)
        return self._fill(array_ops.astype(x, dtype), out)

    def _fill(self, x: Array, out: Array) -> Array:
        start = 0
        for size, tile, _ in self._tiles:
            target = out[:, start : start + size]
            result = tile(x, target)
            if result is not target:
                target[...] = result
            start += size
        return out

    def fused(self) -> FusedKernel | None:
        """Return GPU programs for products with ``values``, if there are any."""
        return tiles.fused_kernel(self.kernel, ArrayRows(self._used))

    def features(self, x: Array, out: Array | None = None) -> Array:
        """Return the features of a block of rows; shape (rows, width)."""
        P = self.projection
        x = array_ops.astype(x, P.dtype)
        if out is None:
            out = array_ops.empty((x.shape[0], self.width), P, P.dtype)
        if self._fused is None:
            return self._stored(x, out)
        if self._fused.times_panels(x, self._fused_panels(), out) is not None:
            if self.offset is not None:
                out += self.offset
            return out
        # The program takes larger blocks than tiles of kernel values leave room for.
        room = min(arrays.DEVICE_BYTES, config.memory_budget() // 32)
        for start, stop in even_spans(0, x.shape[0], max(room // self._tile_row_bytes, 1)):
            self._stored(x[start:stop, :], out[start:stop, :])
        return out

    def _fused_panels(self) -> list[tuple[slice, Array]]:
        """Columns of the features, and what the first points are multiplied with for them."""
        if len(self._tiles) > 1:
            return [(slice(0, self.width), self.steps)]
        return [(columns, part) for columns, _, part in self._tiles[0][2]]

    def _stored(self, x: Array, out: Array) -> Array:
        """The same in ``out``, with one tile of kernel values stored at a time."""
        P, triangle = self.projection, self._triangle
        if triangle is not None and blas.multiply_triangle(self._fill(x, out), triangle):
            return out if self.offset is None else np.add(out, self.offset, out=out)
        for i, (size, tile, panels) in enumerate(self._tiles):
            values = tile(x, tiles.scratch(x.shape[0], size, P, P.dtype))
            for columns, count, part in panels:
                if i == 0:
                    array_ops.matmul(values[:, :count], part, out[:, columns])
                else:
                    out[:, columns] += values[:, :count] @ part
        if self.offset is not None:
            out += self.offset
        return out


def _panels(first: np.ndarray, width: int) -> list[tuple[int, int]]:
    """Return blocks of columns if that saves work, else all columns at once.

    ``first`` (points,) has the first nonzero column of each point, in order.
    """
    spans = even_spans(0, width, PANEL_COLUMNS)
    work = sum((right - left) * np.searchsorted(first, right) for left, right in spans)
    return spans if work < 0.9 * len(first) * width else [(0, width)]


class ProjectedApproximation(Approximation):
    """An approximation whose features are those of a :class:`ProjectedKernel`."""

    _projected: ProjectedKernel

    def _features(self, x: Array, out: Array | None = None) -> Array:
        return self._projected.features(x, out)

    def in_double(self, rows: Rows) -> Approximation | None:
        """Compute features in float64, with the same matrix P."""
        if not self._single:
            return None
        z, double = self._projected, copy(self)
        double._single = False
        double._projected = ProjectedKernel(
            z.kernel, z.points, z.projection, z.offset, dtype=rows.xp.float64
        )
        return double

    def _work_bytes(self) -> int:
        return self._projected.work_bytes

    def _row_evaluations(self) -> int:
        return self._projected.points_used


class FeatureKernel(Kernel):
    """The inner product of features as an exact kernel, z(x)ᵀ z(y).

    Its rows are those of the kernel behind the features; for a precomputed kernel, rows of its
    matrix, for training and for new rows.

    Parameters
    ----------
    projected : ProjectedKernel
        The features.
    """

    def __init__(self, projected: ProjectedKernel) -> None:
        self.projected = projected

    @property
    def serial(self) -> bool:  # type: ignore[override]
        return self.projected.kernel.serial

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        return self.projected.kernel.takes_sparse

    @property
    def takes_negative(self) -> bool:  # type: ignore[override]
        return self.projected.kernel.takes_negative

    def check_rows(self, rows: Rows) -> Rows:
        return self.projected.kernel.check_rows(rows)

    def against(self, points: Array) -> Tile:
        # (k(x) P + b) z(y) = k(x) (P z(y)) + b z(y): features of x with a narrower projection.
        z = self.projected
        zy = array_ops.namespace(z.projection).matrix_transpose(z.features(points))  # (r, points)
        offset = None if z.offset is None else z.offset @ zy
        narrow = ProjectedKernel(z.kernel, z.points, z.projection @ zy, offset, dtype=zy.dtype)

        def tile(x: Array, out: Array | None = None) -> Array:
            # ``out`` may be the scratch memory that ``features`` uses, so it is written last.
            values = narrow.features(x)
            out = tile_memory(x, points, out)
            out[...] = array_ops.astype(values, out.dtype)
            return out

        return tile

    def _diagonal(self, x: Array) -> Array:
        return array_ops.astype(array_ops.row_norms(self.projected.features(x)), x.dtype)
