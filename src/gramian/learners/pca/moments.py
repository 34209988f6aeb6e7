"""Moments of features: all that principal components need from the rows, also of a stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import scipy.linalg

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
    """Counts, means and scatter matrices of features, for each part, in float64 on the host."""

    counts: list[int]
    means: list[np.ndarray]  # (columns,)
    scatters: list[np.ndarray]  # Σ (z - mean)(z - mean)ᵀ, (columns, columns)
    first: list[np.ndarray]  # features of the first rows, (rows, columns)
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
                turned = xp.matrix_transpose(z)
                return turned @ z, xp.sum(z, axis=0, dtype=xp.float64)

            return part

        spare = array_ops.itemsize(factors.dtype) * factors.rank
        means, scatters = [], []
        for count, shift, sums in zip(
            counts, shifts, factors.sum(prepare, row_bytes=spare), strict=True
        ):
            squares, total = map(_host, sums)
            apart = total / max(count, 1)
            # The shift as it was subtracted, in the dtype of the features.
            means.append(_host(array_ops.like(shift, sums[0], factors.dtype)) + apart)
            scatters.append(squares - count * np.outer(apart, apart))
        return cls(counts, means, scatters, [_host(Z.collect()) for Z in few.parts], trace)

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
            n, apart = max(a + b, 1), other_mean - mean
            counts.append(a + b)
            means.append(mean + (b / n) * apart)
            scatters.append(scatter + other_scatter + (a * b / n) * np.outer(apart, apart))
        first = [np.concatenate(pair) for pair in zip(self.first, other.first, strict=True)]
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
        r = sum(map(len, self.means))
        config.check_fits(
            3 * 8 * r**2,
            f"the decomposition of a matrix of {counted(r, 'feature')}",
            "Use fewer features",
        )
        mean, scatter = self._pooled()
        if not centred:
            scatter, mean = scatter + self.n * np.outer(mean, mean), np.zeros_like(mean)
        S = None if core is None else core.dense()
        with few_blas_threads(r):
            values, P = linalg.spectrum(scatter, S, k)
        total = float(np.trace(scatter) if S is None else np.vdot(scatter, S))
        of_mean = self.n * float(mean @ (mean if S is None else S @ mean))
        rounding = (ROUNDED * array_ops.eps(dtype)) ** 2 * abs(total + of_mean)  # of each feature
        values = np.where(values > max(linalg.cutoff(values, r), rounding), values, 0.0)
        P = np.where(values > 0, P, 0.0)  # scores in directions without variance are 0
        if self.trace is not None:
            # The exact diagonal; the part of the mean is small, and its estimate from K̃ close.
            total = max(self.trace - of_mean, total)
        P = P * self._signs(P, mean @ P)
        return Components(values, P, mean @ P, total)

    def _pooled(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean (r,) of all rows and their scatter (r, r), within and between parts."""
        n = max(self.n, 1)
        shares = np.array(self.counts) / n
        mean = np.concatenate([w * m for w, m in zip(shares, self.means, strict=True)])
        scatter = scipy.linalg.block_diag(*self.scatters)
        if len(self.means) > 1:
            apart = scipy.linalg.block_diag(*self.means) - mean
            scatter += apart.T @ (np.array(self.counts)[:, None] * apart)
        return mean, scatter

    def _signs(self, P: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return signs (k,) for P (r, k) that make the largest score of the first rows positive."""
        edges = [0, *accumulate(map(len, self.means))]
        parts = zip(self.first, pairwise(edges), strict=True)
        scores = np.concatenate([z @ P[start:stop] - offset for z, (start, stop) in parts])
        return signs(scores)


def signs(vectors: Array) -> Array:
    """Return for each column of an array (n, k) the sign of its largest absolute entry."""
    xp = array_ops.namespace(vectors)
    largest = xp.argmax(xp.abs(vectors), axis=0)
    found = xp.sign(xp.take_along_axis(vectors, largest[None, :], axis=0)[0, :])
    return xp.where(found == 0, xp.ones_like(found), found)


def _guessed_mean(Z: Rows) -> np.ndarray:
    some = _host(Z.take(np.arange(min(Z.shape[0], SHIFT_ROWS))))
    return some.sum(axis=0) / max(len(some), 1)


def _host(z: Array) -> np.ndarray:
    return np.asarray(array_ops.to_numpy(z), np.float64)
