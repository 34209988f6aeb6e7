"""Blocks of about equal size: a tree of two-way splits, then a few steps of k-means.

The tree costs n·d·log(blocks) and gives blocks of equal size, but long ones. A few steps of k-means
make them compact. In each step the centre of a small block moves into a large one, so that sizes
stay close.
"""

from __future__ import annotations

import heapq

import numpy as np

from gramian.backend import array_ops

TINY = np.finfo(np.float64).tiny
STEPS = 3  # of k-means
SPLIT_ROWS = 1000  # at most this many rows decide how a node of the tree is split
LEAST_SHARE = 0.2  # of a node's rows that each of its children gets
SMALL, LARGE = 0.25, 2.0  # of the mean size: smaller blocks are given up, larger ones are split


def balanced_centres(sample: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` centres whose nearest rows are blocks of similar size.

    ``sample`` has shape (rows, d); the centres (count, d) are in float64.
    """
    labels = _tree_labels(sample, count, rng)
    centres = _means(sample, labels, count)
    for _ in range(STEPS):
        labels = _nearest(sample, centres)
        centres = _means(sample, labels, count, otherwise=centres)
        _even_out(sample, labels, centres, rng)
    return centres


def _tree_labels(sample: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Split the largest node in two until there are ``count`` leaves; the leaf of each row."""
    nodes = [(-len(sample), 0, np.arange(len(sample)))]
    for number in range(1, count):
        _, _, rows = heapq.heappop(nodes)
        right = _halves(sample[rows], rng)
        for side, name in ((~right, 2 * number), (right, 2 * number + 1)):
            part = rows[side]
            heapq.heappush(nodes, (-len(part), name, part))
    labels = np.empty(len(sample), dtype=np.int32)
    for leaf, (_, _, rows) in enumerate(sorted(nodes, key=lambda node: node[1])):
        labels[rows] = leaf
    return labels


def _halves(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Split rows in two by 2-means; neither side gets less than its least share.

    Returns for each row whether it belongs to the second side. Equal rows are split anyhow.
    """
    first, second = _two_means(x, rng)
    along = x @ (second - first).astype(x.dtype)
    middle = float((second - first) @ (first + second) / 2)
    low, high = np.quantile(along, [LEAST_SHARE, 1 - LEAST_SHARE])
    right = along > np.clip(middle, low, high)
    if right.all() or not right.any():
        right = np.arange(len(x)) >= len(x) // 2
    return right


def halved(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return two centres, of shape (2, d), each the nearest of half of the rows.

    They are a mean and its mirror image: between the means of two halves that differ much in width
    the border would be elsewhere.
    """
    first, second = _two_means(x, rng)
    direction = second - first
    along = x @ direction
    middle = np.median(along)
    sides = [x[along <= middle].mean(axis=0), x[along >= middle].mean(axis=0)]
    mean = min(sides, key=lambda side: abs(side @ direction - middle))
    step = 2 * (middle - mean @ direction) / max(float(direction @ direction), TINY)
    return np.stack((mean, mean + step * direction))


def _two_means(x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of 2-means on some of the rows, each of shape (d,)."""
    few = x if len(x) <= SPLIT_ROWS else x[rng.choice(len(x), SPLIT_ROWS, replace=False)]
    few = few.astype(np.float64, copy=False)
    # Begin with two rows that are far apart: the farthest from any row, and the farthest from that.
    first = few[_squared(few, few[rng.integers(len(few))]).argmax()]
    second = few[_squared(few, first).argmax()]
    for _ in range(5):
        right = few @ (second - first) > (second - first) @ (first + second) / 2
        if right.all() or not right.any():
            break
        first, second = few[~right].mean(axis=0), few[right].mean(axis=0)
    return first, second


def _squared(x: np.ndarray, point: np.ndarray) -> np.ndarray:
    return ((x - point) ** 2).sum(axis=1)


def _nearest(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    middle = centres.mean(axis=0)
    moved = (centres - middle).astype(x.dtype)
    halves = (moved * moved).sum(axis=1) / 2
    labels = np.empty(len(x), dtype=np.int32)
    rows = max(2**22 // len(centres), 256)
    for start in range(0, len(x), rows):
        block = x[start : start + rows] - middle.astype(x.dtype)
        labels[start : start + rows] = (block @ moved.T - halves).argmax(axis=1)
    return labels


def _means(
    x: np.ndarray, labels: np.ndarray, count: int, otherwise: np.ndarray | None = None
) -> np.ndarray:
    sums = array_ops.sum_by_label(x, labels, np.ones(len(x)), count)
    sizes = np.bincount(labels, minlength=count)[:, None]
    means = sums / np.maximum(sizes, 1)
    return means if otherwise is None else np.where(sizes > 0, means, otherwise)


def _even_out(
    x: np.ndarray, labels: np.ndarray, centres: np.ndarray, rng: np.random.Generator
) -> None:
    """Move the centre of the smallest block into the largest one while both are far off."""
    sizes = np.bincount(labels, minlength=len(centres))
    mean = len(x) / len(centres)
    for _ in range(len(centres)):
        small, large = int(sizes.argmin()), int(sizes.argmax())
        even = sizes[small] >= SMALL * mean and sizes[large] <= LARGE * mean
        if even or sizes[large] < max(2 * sizes[small], 2):
            return
        rows = np.flatnonzero(labels == large)
        right = _halves(x[rows], rng)
        centres[small] = x[rows[right]].mean(axis=0)
        centres[large] = x[rows[~right]].mean(axis=0)
        labels[labels == small] = -1  # these rows find their nearest centre in the next step
        labels[rows[right]] = small
        sizes[small], sizes[large] = right.sum(), (~right).sum()
