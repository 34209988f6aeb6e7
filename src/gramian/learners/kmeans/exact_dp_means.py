"""DP-means on the exact kernel matrix: a centre is the mean of its rows, as their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.progress import progress
from gramian.kernels.tiles import tile_columns
from gramian.learners.kmeans import dp_means
from gramian.learners.kmeans.dp_means import Chunk, Clusters, OpenClustering, Opened
from gramian.learners.kmeans.exact import members_of
from gramian.learners.strategy import Strategy
from gramian.matrices.gram import Gram


class ExactDPMeans(Strategy[OpenClustering]):
    """Passes over the matrix, until no row changes its cluster and none opens one."""

    def serves(self, problem: OpenClustering) -> bool:
        return problem.is_exact

    def memory(self, problem: OpenClustering) -> Sequence[Amounts]:
        gram, expected = problem.gram, problem.expected_clusters
        n, item = gram.shape[0], array_ops.itemsize(gram.dtype)
        # The largest number of clusters if it is set, else the expected number.
        k = expected if problem.max_clusters is None else problem.max_clusters
        tile = min(n, tile_columns(gram.rows.place.reference))
        chunk, sample = min(dp_means.CHUNK, n), min(n, dp_means.sample_size(expected))
        return [
            {
                "kernel matrix": gram.kept_bytes,
                "blocks of the matrix": gram.product_bytes,
                "labels, weights and distances": 88 * n,
                "centres as weights of rows": 6 * 8 * n * k,
                "sampled and far rows": 3 * 8 * chunk * max(chunk, sample),
                "blocks": gram.rows.walk_bytes(item * (tile + 4 * k)),
            }
        ]

    def solve(self, problem: OpenClustering) -> Clusters:
        gram = problem.gram.persist()
        if problem.threshold is None:
            problem = replace(problem, threshold=_threshold(problem, gram))
        assert problem.threshold is not None
        limit, weights = problem.threshold**2, array_ops.host_float64(problem.weights)
        diagonal = array_ops.host_float64(gram.diag())
        labels, k, history = np.full(len(weights), -1), 1, []
        dual = (weights / weights.sum())[:, None]
        with progress("DP-means", problem.max_iter) as step:
            for _ in range(problem.max_iter):
                distances, _ = _distances(gram, diagonal, dual)
                now, squared = distances.argmin(axis=1), distances.min(axis=1)
                changed = bool((now != labels).any())
                now, squared, opened = _open(problem, gram, weights, now, squared, dual.shape[1])
                labels, k, dropped = _without_empty(now, weights, dual.shape[1] + opened)
                masses = np.bincount(labels, weights=weights, minlength=k)
                dual = members_of(labels, weights, k) / masses
                history.append(float(weights @ squared) + limit * k)
                step()
                if not changed and not opened and not dropped:
                    break
        _, norms = _distances(gram, diagonal, dual)

        def moved(a: np.ndarray) -> Array:
            return array_ops.like(a, problem.weights)

        return Clusters(
            labels=moved(labels),
            squared=moved(squared),
            history=history,
            counts=moved(masses),
            threshold=problem.threshold,
            dual=moved(dual),
            norms=moved(norms),
            centres=None,
        )


def _distances(gram: Gram, diagonal: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances (n, k) of the rows to centres, and these centres' norms (k,)."""
    config.check_fits(
        4 * dual.nbytes,
        f"the {dual.shape[1]} clusters that the threshold opens",
        "Use a larger threshold, or set max_clusters",
    )
    products = array_ops.host_float64(gram.matmul(dual))
    norms = np.einsum("ij,ij->j", dual, products)
    return diagonal[:, None] + norms - 2.0 * products, norms


def _open(
    problem: OpenClustering, gram: Gram, weights: np.ndarray, labels: np.ndarray,
    squared: np.ndarray, k: int,
) -> tuple[np.ndarray, np.ndarray, int]:  # fmt: skip
    """Let rows beyond the threshold open clusters, in the order of the data.

    Returns labels and squared distances (n,), and the number of new clusters.
    """
    assert problem.threshold is not None
    far = np.flatnonzero((squared > problem.threshold**2) & (weights > 0))
    room = len(far) if problem.max_clusters is None else min(len(far), problem.max_clusters - k)
    opened, first = Opened(problem.threshold**2, max(room, 0)), np.empty(0, dtype=np.int64)
    for start in range(0, len(far) if room > 0 else 0, dp_means.CHUNK):
        rows = far[start : start + dp_means.CHUNK]
        new, squared[rows], places = opened.take(_chunk(gram, rows, first), squared[rows])
        labels[rows] = np.where(new < 0, labels[rows], k + new)
        first = np.concatenate((first, rows[places]))
    return labels, squared, len(first)


def _chunk(gram: Gram, rows: np.ndarray, first: np.ndarray) -> Chunk:
    """Return a chunk of rows with the matrix as the metric; ``first`` are rows before them."""
    within = array_ops.host_float64(gram.block(rows, rows))
    before = np.empty((len(rows), 0))
    if len(first):
        before = array_ops.host_float64(gram.block(rows, first))
    return Chunk(np.diagonal(within), before, lambda at: within[:, at])


def _without_empty(labels: np.ndarray, weights: np.ndarray, k: int) -> tuple[np.ndarray, int, int]:
    """Remove clusters without weight; return labels, remaining clusters and the number removed."""
    filled = np.flatnonzero(np.bincount(labels, weights=weights, minlength=k) > 0)
    numbers = np.zeros(k, dtype=np.int64)  # rows without weight go to cluster 0
    numbers[filled] = np.arange(len(filled))
    return numbers[labels], len(filled), k - len(filled)


def _threshold(problem: OpenClustering, gram: Gram) -> float:
    """Return the threshold that farthest rows of a sample give."""
    rounds, weights = problem.expected_clusters, problem.weights
    chosen = dp_means.sampled(weights, rounds, problem.rng)
    w = array_ops.host_float64(weights)[chosen]
    w = w / w.sum()
    diagonal = array_ops.host_float64(gram.diag())[chosen]
    with_mean = np.concatenate(
        [
            array_ops.host_float64(gram.block(chosen[start : start + dp_means.CHUNK], chosen)) @ w
            for start in range(0, len(chosen), dp_means.CHUNK)
        ]
    )

    def squared(row: int) -> np.ndarray:
        column = array_ops.host_float64(gram.block(chosen, chosen[[row]]))[:, 0]
        return diagonal + diagonal[row] - 2.0 * column

    noise = 1e3 * array_ops.eps(gram.dtype) * float(diagonal.max())
    nearest = diagonal + w @ with_mean - 2.0 * with_mean
    return dp_means.threshold_of(nearest, squared, rounds, noise)
