"""Features that are kernel values with some points, times a matrix: k(x, points) P + b."""

from __future__ import annotations

from typing import Any

from gramian import _arrays, _tiles
from gramian._arrays import Array
from gramian.gram import Gram
from gramian.kernels import Kernel
from gramian.kernels._pairings import Tile, tile_memory
from gramian.rows import ArrayRows, Rows, even_spans
from gramian.samplers import Landmarks


def gram_of(gram: Gram, landmarks: Landmarks) -> Gram:
    """The exact matrix of the landmarks with themselves, in float64 whatever the data's dtype."""
    points = landmarks.points
    if gram.kernel.is_matrix:
        points = gram.block(landmarks.indices, landmarks.indices)  # counts its evaluations
    else:
        gram.evaluations += len(landmarks) ** 2
    return Gram(gram.kernel, ArrayRows(_arrays.astype(points, gram.rows.xp.float64)))


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
        b. By default 0.
    dtype : dtype
        Of the features: P and b are kept in it, in the array library of the points.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Array,
        projection: Array,
        offset: Array | None = None,
        *,
        dtype: Any,
    ) -> None:
        self.kernel = kernel
        self.points = points
        self.projection = _arrays.contiguous(_arrays.like(projection, points, dtype))
        self.offset = None if offset is None else _arrays.like(offset, points, dtype)
        self._make_tiles()

    def __repr__(self) -> str:
        m, r = self.projection.shape
        return f"{type(self).__name__}({self.kernel!r}, points={m}, features={r})"

    def _make_tiles(self) -> None:
        """What depends on the points alone, for blocks of them."""
        self._tiles = [
            (start, stop, self.kernel.against(_arrays.span(self.points, start, stop)))
            for start, stop in even_spans(0, self.points.shape[0], _tiles.TILE_COLUMNS)
        ]

    def __getstate__(self) -> dict[str, Any]:
        # The tiles are functions, which cannot be pickled; they are made anew.
        return {name: value for name, value in vars(self).items() if name != "_tiles"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_tiles()

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.projection.shape[1])

    @property
    def work_bytes(self) -> int:
        """What ``features`` works on for each row, beside the block and its result."""
        columns = min(self.points.shape[0], _tiles.TILE_COLUMNS)
        return columns * _arrays.itemsize(self.projection.dtype)

    def features(self, x: Array, out: Array | None = None) -> Array:
        """The features of a block of rows, of shape (rows, width)."""
        total: Any = None
        x = _arrays.astype(x, self.projection.dtype)
        for start, stop, tile in self._tiles:
            part = self.projection[start:stop, :]
            values = tile(x, _tiles.scratch(x.shape[0], stop - start, part, part.dtype))
            if total is None:
                total = _arrays.matmul(values, part, out)
            else:
                total += values @ part
        if self.offset is not None:
            total += self.offset
        return total


class FeatureKernel(Kernel):
    """The inner product of features, as an exact kernel: z(x)ᵀ z(y).

    Its rows are those of the kernel that the features are made of; for a precomputed one, rows of
    its matrix, new rows as well as old.

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
        own = _arrays.namespace(z.projection).matrix_transpose(z.features(points))
        offset = None if z.offset is None else z.offset @ own
        onto = ProjectedKernel(z.kernel, z.points, z.projection @ own, offset, dtype=own.dtype)

        def tile(x: Array, out: Array | None = None) -> Array:
            # ``out`` may be the scratch memory that ``features`` works in: it is written last.
            values = onto.features(x)
            out = tile_memory(x, points, out)
            out[...] = _arrays.astype(values, out.dtype)
            return out

        return tile

    def _diagonal(self, x: Array) -> Array:
        return _arrays.astype(_arrays.row_norms(self.projected.features(x)), x.dtype)
