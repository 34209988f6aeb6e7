"""The partition of rows into blocks: found on training rows, applied to new ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np

from gramian.approximations.base import ApproximationWarning
from gramian.approximations.blocks.balanced import SPLIT_ROWS, balanced_centres, halved
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.wording import counted
from gramian.kernels import Linear
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers.centroids import centred, lloyd
from gramian.samplers.plus_plus import plus_plus

CLUSTERED_ROWS = 10_000  # k-means uses at most this many rows, or a hundred per block
LEAST_CLUSTERED = 5_000
DRAWN_FROM = 50  # rows for each block's first centre
SETTLED = 1e-4  # k-means ends when a pass lowers its objective by less than this part of it
SPECTRAL_ROWS = 2_000  # spectral clustering at most this many: it needs their whole matrix
PARTITIONS = ("kmeans", "balanced", "spectral", "random")
LEAST_ROWS = 5  # a block with fewer is merged with its neighbours


class Partition(NamedTuple):
    """The block of each training row, and the blocks' centres."""

    labels: Array  # int32, shape (n,), on the host or lazy like the rows
    centres: Array  # shape: (blocks, d)


def split(gram: Gram, how: str | Array, count: int, rng: np.random.Generator) -> Partition:
    """Assign rows to blocks by one of ``PARTITIONS``, or by the label of each row."""
    rows = gram.rows
    if gram.kernel.is_matrix or rows.are_objects:
        got = "objects" if rows.are_objects else "a precomputed matrix"
        raise ValueError(
            f"Blocks are found by distances between rows, which must be vectors; got {got}. Use "
            "Nystroem."
        )
    n = rows.shape[0]
    if isinstance(how, str) and how == "kmeans":
        centres = _kmeans_centres(rows, count, rng)
        labels = nearest(rows, centres)
    elif isinstance(how, str) and how == "balanced":
        labels, centres = _balanced(rows, count, rng)
    elif isinstance(how, str) and how == "spectral":
        numbers = np.sort(rng.choice(n, size=min(n, SPECTRAL_ROWS), replace=False))
        sampled = _spectral_labels(gram, numbers, count, rng)
        centres = _means(rows.choose(numbers), sampled, count)
        labels = sampled if len(numbers) == n else nearest(rows, centres)
    elif isinstance(how, str) and how == "random":
        labels = rows.place.column((rng.permutation(n) % count).astype(np.int32))
        centres = _means(rows, labels, count)
    else:
        host_labels = _checked_labels(how, n)
        labels = rows.place.column(host_labels)
        centres = _means(rows, labels, int(host_labels.max()) + 1)
    # The number of balanced blocks varies with the data in any case.
    told = not (isinstance(how, str) and how == "balanced")
    return _merged(rows, array_ops.settled(labels), centres, told)


def nearest(rows: Rows, centres: Array) -> Array:
    """Return the nearest centre of each row, shape (n,), on the host or lazy like the rows.

    ``centres`` has shape (blocks, d).
    """
    closest, xp = nearest_in(centres, rows), rows.xp
    labels = rows.map(
        lambda x, out: closest(x),
        dtype=xp.int32,
        row_bytes=_row_bytes(rows, centres),
        label="blocks",
    )
    return rows.place.column(labels)


def nearest_in(centres: Array, rows: Rows) -> Callable[[Array], Array]:
    """Return a function that gives the nearest centre of each row of a block, as int32."""
    xp, dtype = rows.xp, rows.dtype
    # Rows and centres are shifted to reduce cancellation. Sparse rows would become dense, so for
    # them the products are corrected instead.
    middle = xp.mean(centres, axis=0)
    moved = centres - middle
    right = array_ops.contiguous(array_ops.astype(xp.matrix_transpose(moved), dtype))
    halves = array_ops.row_norms(moved) / 2
    dense_halves = array_ops.astype(halves, dtype)
    sparse_halves = array_ops.astype(halves + moved @ middle, dtype)
    shift = array_ops.astype(middle, dtype)

    def closest(x: Array) -> Array:
        if array_ops.issparse(x):
            products = array_ops.matmul(x, right) - sparse_halves
        else:
            products = array_ops.matmul(x - shift, right)
            products -= dense_halves
        return array_ops.astype(xp.argmax(products, axis=1), xp.int32)

    return closest


def _row_bytes(rows: Rows, centres: Array) -> int:
    return (rows.shape[1] + 2 * int(centres.shape[0])) * array_ops.itemsize(rows.dtype)


def _kmeans_centres(rows: Rows, count: int, rng: np.random.Generator) -> Array:
    """Return the centres of k-means on a subsample; shape (count, d)."""
    n, size = rows.shape[0], _clustered_rows(rows, count, few=True)
    sample = rows.take(np.sort(rng.choice(n, size=size, replace=False)))
    as_dense = size * rows.shape[1] * array_ops.itemsize(rows.dtype)
    if not array_ops.issparse(sample) or as_dense <= config.memory_budget() // 4:
        sample = array_ops.to_numpy(array_ops.dense(sample))
    middle = centred(sample)
    # Few rows are enough to draw first centres from: Lloyd's steps move them to those of all.
    few = np.sort(rng.choice(size, size=min(size, DRAWN_FROM * count), replace=False))
    starts = few[plus_plus(Gram(Linear(), array_ops.take_rows(sample, few)), count, rng)]
    # Where rows coincide there are fewer, and centres coincide; their empty blocks are merged.
    centres, _ = lloyd(sample, np.resize(starts, count), steps=100, tol=SETTLED)
    return array_ops.like(centres + middle, rows.place.reference, rows.xp.float64)


def _balanced(rows: Rows, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return labels and centres of blocks none of which is much larger than the mean."""
    centres = balanced_centres(_sample(rows, count, rng), count, rng)
    while True:
        labels = nearest(rows, array_ops.like(centres, rows.place.reference, rows.xp.float64))
        sizes = array_ops.counts(array_ops.settled(labels), len(centres))
        large = np.flatnonzero(sizes > largest_size(rows.shape[0], count))
        if not len(large) or len(centres) > 2 * count:
            break
        host = array_ops.to_numpy(labels)
        for block in large:
            members = np.flatnonzero(host == block)
            some = np.sort(rng.choice(members, min(len(members), SPLIT_ROWS), replace=False))
            halves = halved(_host(rows.take(some)), rng)
            centres[block] = halves[0]
            centres = np.concatenate((centres, halves[1:]))
    return labels, array_ops.like(centres, rows.place.reference, rows.xp.float64)


def largest_size(n: int, count: int) -> int:
    """Return how many rows a balanced block may have: twice the mean, or less if blocks are few."""
    return ceil(2 * n / (count + 1))


def _sample(rows: Rows, count: int, rng: np.random.Generator) -> np.ndarray:
    n, size = rows.shape[0], _clustered_rows(rows, count)
    return _host(rows.take(np.sort(rng.choice(n, size=size, replace=False))))


def _host(x: Array) -> np.ndarray:
    """Rows as a dense array on the host, in float64: blocks should not depend on the dtype."""
    return array_ops.host_float64(array_ops.dense(x))


def _clustered_rows(rows: Rows, count: int, *, few: bool = False) -> int:
    """Return how many rows k-means uses: at most a quarter of the memory budget.

    If ``few`` are enough, there are fewer for few blocks.
    """
    room = config.memory_budget() // 4 // rows.row_bytes
    enough = min(max(LEAST_CLUSTERED, 250 * count), CLUSTERED_ROWS) if few else CLUSTERED_ROWS
    return min(rows.shape[0], max(enough, 100 * count), max(room, count))


def split_bytes(rows: Rows, how: str | Array, count: int) -> int:
    """Return the memory that ``split`` takes, in addition to blocks of rows."""
    n, d = rows.shape
    result = 2 * 8 * n + 4 * 8 * count * d  # labels and centres
    if isinstance(how, str) and how == "kmeans":
        return result + _clustered_rows(rows, count, few=True) * (rows.row_bytes + 24)
    if isinstance(how, str) and how == "balanced":
        return result + _clustered_rows(rows, count) * (rows.row_bytes + 2 * 8 * d + 24)
    if isinstance(how, str) and how == "spectral":
        return result + 6 * 8 * min(n, SPECTRAL_ROWS) ** 2
    return result


def _spectral_labels(
    gram: Gram, numbers: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return labels of some rows by scikit-learn's spectral clustering of their kernel matrix."""
    from sklearn.cluster import spectral_clustering  # takes long to import

    K = array_ops.host_float64(gram.block(numbers, numbers))
    if K.min() < 0:
        raise ValueError(
            "partition='spectral' uses kernel values as weights of a graph, so they must not be "
            f"negative; got {gram.kernel!r}. Use partition='kmeans'."
        )
    if count == 1:
        return np.zeros(len(numbers), dtype=np.int32)
    with warnings.catch_warnings():  # about a graph in several pieces, which are good blocks
        warnings.simplefilter("ignore", UserWarning)
        labels = spectral_clustering(
            K, n_clusters=count, eigen_solver="arpack", random_state=int(rng.integers(2**31))
        )
    return labels.astype(np.int32)


def _checked_labels(partition: Array, n: int) -> np.ndarray:
    labels = np.asarray(array_ops.to_numpy(partition))
    if labels.ndim == 0:
        raise ValueError(
            f"partition must be one of {', '.join(map(repr, PARTITIONS))}, or the block of each "
            f"row; got {partition!r}."
        )
    if labels.shape != (n,):
        raise ValueError(
            f"partition as labels needs one for each of the {counted(n, 'row')}; got shape "
            f"{labels.shape}."
        )
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def _means(rows: Rows, labels: Array, count: int) -> Array:
    """Return the mean row of each block; shape (count, d)."""
    xp, dtype = rows.xp, rows.dtype
    blocks = np.arange(count)

    def sums(x: Array, block_labels: Array) -> tuple[Array, Array]:
        members = array_ops.like(
            array_ops.to_numpy(block_labels)[:, None] == blocks, array_ops.dense(x), dtype
        )
        turned = x.T if array_ops.issparse(x) else xp.matrix_transpose(x)
        return array_ops.matmul(turned, members), xp.sum(members, axis=0, dtype=xp.float64)

    totals, sizes = rows.sum(sums, labels, row_bytes=count * 8, label="blocks")
    return xp.matrix_transpose(totals / xp.where(sizes > 0, sizes, xp.ones_like(sizes)))


def _merged(rows: Rows, labels: Array, centres: Array, told: bool) -> Partition:
    """Merge empty and tiny blocks: their rows go to the nearest other block.

    Warns of it if it is to be ``told``.
    """
    count = int(centres.shape[0])
    sizes = array_ops.counts(labels, count)
    least = LEAST_ROWS if rows.shape[0] >= 4 * LEAST_ROWS * count else 1
    large = np.flatnonzero(sizes >= least)
    if len(large) == count:
        return Partition(labels, centres)
    if told:
        few = "no rows" if least == 1 else f"fewer than {least} rows"
        warnings.warn(
            f"Blocks with {few} were merged with the nearest others ({count - len(large)} of "
            f"{count}). This leaves {counted(len(large), 'block')}.",
            ApproximationWarning,
            stacklevel=7,
        )
    centres = array_ops.take_rows(centres, large)
    renumbered = np.full(count, -1, dtype=np.int32)
    renumbered[large] = np.arange(len(large), dtype=np.int32)
    labels = renumbered[array_ops.to_numpy(labels)]
    lost = np.flatnonzero(labels < 0)
    if len(lost):
        labels[lost] = array_ops.to_numpy(nearest(rows.choose(lost), centres))
    return Partition(rows.place.column(labels), centres)
