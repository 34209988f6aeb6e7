"""A block's basis: Nyström features of its rows, the best of their rank; and ranks for all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from gramian.approximations.nystroem import inverse_root
from gramian.approximations.projected import ProjectedKernel
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.kernels import Kernel, tiles
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows
from gramian.samplers import Landmarks, Sampler

# For a rank r: so many landmarks, and as many rows again that links are fitted on.
SAMPLED_PER_RANK, SAMPLED_BESIDE = 3, 10


class Basis(NamedTuple):
    """The features of a block, z(x) = k(x, landmarks) P, and what links are fitted on."""

    map: ProjectedKernel
    landmarks: Landmarks
    points: Array  # the landmarks, and further rows; dropped after the fit
    inverse: np.ndarray  # the pseudo-inverse of these points' features; dropped after the fit

    @property
    def rank(self) -> int:
        return self.map.width


def points_of(rank: int) -> int:
    """How many landmarks a basis of this rank has; it looks at as many rows beside them."""
    return SAMPLED_PER_RANK * rank + SAMPLED_BESIDE


def find_basis(
    gram: Gram, rank: int, sampler: Sampler, rng: np.random.Generator, y: np.ndarray | None
) -> Basis:
    """The basis of a block from its own matrix.

    More landmarks than the rank are taken, and of their Nyström features the best of this rank
    kept, as a sample of the block's rows shows it: with links fitted on the landmarks alone, or on
    other rows alone, the least squares are unstable.
    """
    kernel, n = gram.kernel, gram.shape[0]
    count = min(n, points_of(rank))
    landmarks = sampler.select(gram, count, rng, y)
    others = np.arange(n)
    if landmarks.indices is not None:
        others = np.setdiff1d(others, landmarks.indices)
    others = rng.choice(others, size=min(count, len(others)), replace=False)
    points = _stack(landmarks.points, gram.rows.take(np.sort(others)))
    M, V = in_float64(landmarks.points), in_float64(points)
    cutoff = max(count * np.finfo(float).eps, array_ops.eps(gram.dtype))
    root = inverse_root(tiles.dense(kernel, ArrayRows(M)), cutoff, gram)
    features = tiles.dense(kernel, ArrayRows(V), ArrayRows(M)) @ root
    gram.evaluations += M.shape[0] * (M.shape[0] + V.shape[0])
    left, values, right = scipy.linalg.svd(features, full_matrices=False, check_finite=False)
    kept = min(rank, int(np.count_nonzero(values > np.sqrt(cutoff) * values[0])))
    projection = root @ right[:kept].T
    example = array_ops.dense(landmarks.points)
    mapped = ProjectedKernel(
        kernel, landmarks.points, array_ops.like(projection, example), dtype=gram.dtype
    )
    return Basis(mapped, landmarks, points, (left[:, :kept] / values[:kept]).T)


def link_matrix(kernel: Kernel, bases: list[Basis], linked: np.ndarray) -> np.ndarray:
    """S: the identity on the diagonal, and where blocks are linked the least-squares fit L of
    K(V_s, V_t) = Z_s L Z_tᵀ on the sampled points V."""
    edges = np.concatenate(([0], np.cumsum([basis.rank for basis in bases])))
    S = np.eye(edges[-1])
    for s, basis in enumerate(bases):
        partners = s + 1 + np.flatnonzero(linked[s, s + 1 :])
        if not len(partners):
            continue
        points = _stack(*(bases[t].points for t in partners))
        K = tiles.dense(kernel, _host(basis.points), _host(points))
        own, start = basis.inverse @ K, 0
        for t in partners:
            stop = start + bases[t].inverse.shape[1]
            link = own[:, start:stop] @ bases[t].inverse.T
            S[edges[s] : edges[s + 1], edges[t] : edges[t + 1]] = link
            S[edges[t] : edges[t + 1], edges[s] : edges[s + 1]] = link.T
            start = stop
    return S


def ranks_by_spectrum(spectra: list[np.ndarray], sizes: np.ndarray, total: int) -> np.ndarray:
    """The total rank goes to the largest eigenvalues of all blocks together, but 1 to each."""
    pool = np.concatenate([values[1:] for values in spectra])
    owner = np.repeat(np.arange(len(sizes)), [len(values) - 1 for values in spectra])
    chosen = owner[np.argsort(-pool, kind="stable")[: total - len(sizes)]]
    ranks = 1 + np.bincount(chosen, minlength=len(sizes))
    # What sampled spectra are too short for goes to the blocks that have rows left.
    return ranks + in_proportion(sizes, sizes - ranks, total - int(ranks.sum()), least=0)


def in_proportion(
    weights: np.ndarray, most: np.ndarray, total: int, *, least: int = 1
) -> np.ndarray:
    """Whole numbers in proportion to weights, between ``least`` and ``most``, with this total."""
    total = min(total, int(most.sum()))
    low, high = 0.0, float(total + 1) * len(weights) / weights[weights > 0].min()
    for _ in range(100):  # the factor at which the clipped shares have the total
        middle = (low + high) / 2
        shares = np.clip(middle * weights, least, most)
        low, high = (middle, high) if shares.sum() < total else (low, middle)
    whole = np.floor(shares).astype(int)
    rest = np.argsort(-(shares - whole) * (whole < most), kind="stable")
    whole[rest[: max(total - int(whole.sum()), 0)]] += 1
    return whole


def _stack(*points: Array) -> Array:
    if any(array_ops.issparse(p) for p in points):
        import scipy.sparse

        return scipy.sparse.vstack(points, format="csr")
    return array_ops.namespace(points[0]).concat(points, axis=0)


def _host(points: Array) -> ArrayRows:
    return ArrayRows(points if array_ops.issparse(points) else array_ops.to_numpy(points))


def in_float64(points: Array) -> np.ndarray:
    """Points on the host in float64, for small matrices of them."""
    return _host(points).data.astype(np.float64)
