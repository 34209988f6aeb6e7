"""Moments of features: all that principal components need from the rows, also of a stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array, DType
from gramian.backend.threads import few_blas_threads, one_blas_thread
from gramian.backend.wording import counted
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors
from gramian.rows import Rows

SIGN_ROWS = 1000  # the number of first rows whose scores determine the signs of components
ROUNDED = 10  # times eps: how far features of equal rows may differ, relative to their size
SHIFT_ROWS = 100  # rows of a part whose mean estimates that of all


class Components(NamedTuple):
    """Principal components; scores are features, or kernel values, @ projection - offset."""

    values: np.ndarray  # eigenvalues of the matrix (k,), descending; 0 if below rounding
    projection: Array  # (r, k), or (n, k) for kernel values
    offset: Array  # (k,)
    total: float  # the trace of the matrix

    def leading(self, k: int) -> Components:
        return self._replace(
            values=self.values[:k], projection=self.projection[:, :k], offset=self.offset[:k]
        )


class Moments(NamedTuple):
    """Counts, means and scatter matrices of features, for each part, in float64.

    They are in the array library of the features, and on their device.
    """

    counts: list[int]
    means: list[Array]  # (columns,)
    scatters: list[Array]  # Σ (z - mean)(z - mean)ᵀ, (columns, columns)
    first: list[Array]  # features of the first rows, (rows, columns)
    trace: float | None  # Σ k(x, x); None to use the trace of K̃

    @classmethod
    @one_blas_thread()
    def over(cls, factors: Factors, trace: float | None, before: Moments | None = None) -> Moments:
        """Compute the moments of these rows in one pass; ``before`` has those of earlier rows.

        An estimate of the mean is subtracted from the features first: otherwise the final
        subtraction of the mean could cancel most digits.
        """
        xp, n = factors.xp, factors.shape[0]
        known = 0 if before is None else sum(map(len, before.first))
        few = factors.take(np.arange(min(n, SIGN_ROWS - known)))
        counts = factors.parts.sizes
        samples = factors.parts.samples(SIGN_ROWS)
        shifts = [
            before.means[i] if before is not None and before.counts[i] else _guessed_mean(Z)
            for i, Z in enumerate(samples)
        ]
        by_start = {c.start: s for c, s in zip(factors.parts.columns, shifts, strict=True)}

        def prepare(columns: slice) -> Callable[[Array], tuple[Array, Array]]:
            shift = by_start[columns.start]

            def part(z: Array) -> tuple[Array, Array]:
                z = z - array_ops.like(shift, z, z.dtype)
                return array_ops.self_product(z), xp.sum(z, axis=0, dtype=xp.float64)

            return part

        spare = array_ops.itemsize(factors.dtype) * factors.rank
        means, scatters = [], []
        for count, shift, sums in zip(
            counts, shifts, factors.sum(prepare, row_bytes=spare), strict=True
        ):
            squares, total = map(_double, sums)
            apart = total / max(count, 1)
            # The shift as it was subtracted, in the dtype of the features.
            means.append(_double(array_ops.like(shift, total, factors.dtype)) + apart)
            squares -= count * (apart[:, None] * apart)
            scatters.append(squares)
        return cls(counts, means, scatters, [_double(Z.collect()) for Z in few.parts], trace)

    def plus(self, other: Moments) -> Moments:
        """Add further rows, without cancellation (Chan, Golub and LeVeque, 1983)."""
        counts, means, scatters = [], [], []
        for a, b, mean, other_mean, scatter, other_scatter in zip(
            self.counts,
            other.counts,
            self.means,
            other.means,
            self.scatters,
            other.scatters,
            strict=True,
        ):
            mean, scatter = (array_ops.like(old, other_mean) for old in (mean, scatter))
            n, apart = max(a + b, 1), other_mean - mean
            counts.append(a + b)
            means.append(mean + (b / n) * apart)
            squares = (a * b / n) * (apart[:, None] * apart)
            scatters.append(scatter + other_scatter + squares)
        first = [
            array_ops.concat_rows([array_ops.like(old, new), new])
            for old, new in zip(self.first, other.first, strict=True)
        ]
        known = self.trace is not None and other.trace is not None
        trace = self.trace + other.trace if known else None  # type: ignore[operator]
        return Moments(counts, means, scatters, first, trace)

    @property
    def n(self) -> int:
        """The number of rows."""
        return sum(self.counts)

    def components(
        self, core: BlockCore | None, k: int, dtype: DType = np.float64, *, centred: bool = True
    ) -> Components:
        """Return the k leading components of K̃ = Z S Zᵀ, for features of this dtype."""
        r = sum(mean.shape[0] for mean in self.means)
        config.check_fits(
            3 * 8 * r**2,
            f"the decomposition of a matrix of {counted(r, 'feature')}",
            "Use fewer features",
        )
        mean, scatter = self._pooled()
        xp = array_ops.namespace(scatter)
        if not centred:
            scatter = scatter + self.n * (mean[:, None] * mean)
            mean = xp.zeros_like(mean)
        S = None if core is None else array_ops.like(core.dense(), scatter)
        with few_blas_threads(r):
            values, P = linalg.spectrum(scatter, S, k)
        total = float(xp.linalg.trace(scatter) if S is None else xp.sum(scatter * S))
        of_mean = self.n * float(mean @ (mean if S is None else S @ mean))
        rounding = (ROUNDED * array_ops.eps(dtype)) ** 2 * abs(total + of_mean)  # of each feature
        values = np.where(values > max(linalg.cutoff(values, r), rounding), values, 0.0)
        # Scores in directions without variance are 0.
        P = P * array_ops.like((values > 0).astype(np.float64), P)
        if self.trace is not None:
            # The exact diagonal; the part of the mean is small, and its estimate from K̃ close.
            total = max(self.trace - of_mean, total)
        P = P * self._signs(P, mean @ P)
        return Components(values, P, mean @ P, total)

    def _pooled(self) -> tuple[Array, Array]:
        """Return the mean (r,) of all rows and their scatter (r, r), within and between parts."""
        if len(self.means) == 1:
            return self.means[0], self.scatters[0]
        n, xp = max(self.n, 1), array_ops.namespace(self.means[0])
        mean = xp.concat([c / n * m for c, m in zip(self.counts, self.means, strict=True)])
        apart = _block_diagonal([m[None, :] for m in self.means]) - mean
        counts = array_ops.like(np.array(self.counts, dtype=np.float64), mean)
        scatter = _block_diagonal(self.scatters)
        scatter += xp.matrix_transpose(apart) @ (counts[:, None] * apart)
        return mean, scatter

    @one_blas_thread()
    def _signs(self, P: Array, offset: Array) -> Array:
        """Return signs (k,) for P (r, k) that make the largest score of the first rows positive."""
        edges = [0, *accumulate(mean.shape[0] for mean in self.means)]
        parts = zip(self.first, pairwise(edges), strict=True)
        scores = [z @ P[start:stop, :] - offset for z, (start, stop) in parts]
        return signs(array_ops.concat_rows(scores))


def _block_diagonal(blocks: list[Array]) -> Array:
    """Return the block-diagonal matrix of these blocks, each of two dimensions."""
    shape = sum(block.shape[0] for block in blocks), sum(block.shape[1] for block in blocks)
    out = array_ops.empty(shape, blocks[0], blocks[0].dtype)
    out[...] = 0
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


def signs(vectors: Array) -> Array:
    """Return for each column of an array (n, k) the sign of its largest absolute entry."""
    xp = array_ops.namespace(vectors)
    largest = xp.argmax(xp.abs(vectors), axis=0)
    found = xp.sign(xp.take_along_axis(vectors, largest[None, :], axis=0)[0, :])
    return xp.where(found == 0, xp.ones_like(found), found)


def _guessed_mean(Z: Rows) -> Array:
    some = _double(Z.take(np.arange(min(Z.shape[0], SHIFT_ROWS))))
    return Z.xp.sum(some, axis=0) / max(some.shape[0], 1)


def _double(z: Array) -> Array:
    return array_ops.astype(z, array_ops.namespace(z).float64)
