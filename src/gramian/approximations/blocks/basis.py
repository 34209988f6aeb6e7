"""A block's basis: the best features of a given rank, from Nyström features of its rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from gramian.approximations.projected import ProjectedKernel, inverse_root
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.kernels import tiles
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows
from gramian.samplers import Landmarks, Sampler

# A basis of rank r has 3 r + 10 landmarks. It is chosen, and links are fitted, on these and twice
# as many further rows. Unlike landmarks, these cost nothing after the fit.
SAMPLED_PER_RANK, SAMPLED_EXTRA = 3, 10
FURTHER = 2


class Basis(NamedTuple):
    """The features of a block, z(x) = k(x, landmarks) P, and the points for fitting links."""

    map: ProjectedKernel
    landmarks: Landmarks
    points: Array  # the landmarks and further rows, (p, d); this and ``inverse`` serve a fit only
    inverse: Array  # pseudo-inverse of these points' features, (rank, p), where the points are

    @property
    def rank(self) -> int:
        return self.map.width

    def inner(self, n: int) -> np.ndarray:
        """Return ZᵀZ of the block's n rows, estimated from the points, whose ZᵀZ is diagonal."""
        squared = 1.0 / array_ops.to_numpy(array_ops.row_norms(self.inverse))
        return np.diag(squared * (n / self.inverse.shape[1]))


def points_of(rank: int) -> int:
    """Return how many landmarks a basis of this rank has."""
    return SAMPLED_PER_RANK * rank + SAMPLED_EXTRA


def find_basis(
    gram: Gram, rank: int, sampler: Sampler, rng: np.random.Generator, y: np.ndarray | None
) -> Basis:
    """Find the basis of a block from its matrix.

    There are more landmarks than the rank. Of their Nyström features the best of this rank are
    kept, measured on a sample of the block's rows. The sample has landmarks and other rows, since
    links fitted on only one of the two are unstable.
    """
    kernel, n = gram.kernel, gram.shape[0]
    count = min(n, points_of(rank))
    landmarks = sampler.select(gram, count, rng, y)
    others = _others(n, FURTHER * count, landmarks, rng)
    points = _stack(landmarks.points, gram.rows.take(np.sort(others)))
    M, V = in_float64(landmarks.points), in_float64(points)  # shapes: (m, d) and (p, d)
    cutoff = max(count * np.finfo(float).eps, array_ops.eps(gram.dtype))
    root = inverse_root(tiles.dense(kernel, ArrayRows(M)), cutoff, gram)
    features = tiles.dense(kernel, ArrayRows(V), ArrayRows(M)) @ root  # shape: (p, rank of W)
    gram.evaluations += M.shape[0] * (M.shape[0] + V.shape[0])
    left, values, right = scipy.linalg.svd(features, full_matrices=False, check_finite=False)
    rank = min(rank, int(np.count_nonzero(values > np.sqrt(cutoff) * values[0])))
    projection = root @ right[:rank].T
    example = array_ops.dense(landmarks.points)
    mapped = ProjectedKernel(
        kernel, landmarks.points, array_ops.like(projection, example), dtype=gram.dtype
    )
    inverse = array_ops.like((left[:, :rank] / values[:rank]).T, example)
    return Basis(mapped, landmarks, points, inverse)


def _others(n: int, count: int, landmarks: Landmarks, rng: np.random.Generator) -> np.ndarray:
    """Draw ``count`` of n rows that are no landmarks, or all of these if there are fewer."""
    known = np.empty(0, dtype=np.intp) if landmarks.indices is None else landmarks.indices
    drawn = rng.choice(n, size=min(n, count + len(known)), replace=False)
    return drawn[~np.isin(drawn, known)][:count]


def in_float64(points: Array) -> np.ndarray:
    """Return points on the host in float64, for small kernel matrices; sparse ones stay sparse."""
    points = points if array_ops.issparse(points) else array_ops.to_numpy(points)
    return points.astype(np.float64)


def _stack(landmarks: Array, rows: Array) -> Array:
    """Stack landmarks and rows; if one is sparse, the result is."""
    if array_ops.issparse(rows) and not array_ops.issparse(landmarks):
        landmarks = type(rows)(landmarks)
    return array_ops.concat_rows([landmarks, rows])
