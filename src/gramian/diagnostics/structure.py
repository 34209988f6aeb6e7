"""The blocks of a kernel matrix: their ranks, and the similarity of their bases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.linalg
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import BKA, MEKA
from gramian.backend import array_ops
from gramian.backend.checks import positive, positive_integer
from gramian.backend.threads import side_by_side
from gramian.backend.typing import ArrayLike, RandomState, T
from gramian.backend.wording import counted
from gramian.diagnostics.table import lines
from gramian.estimators.base import generator
from gramian.kernels.base import KernelLike
from gramian.matrices.gram import Gram
from gramian.theory.blocks import members

__all__ = ["BlockRanks", "PrincipalCosines", "block_ranks", "principal_cosines"]

Pair: TypeAlias = tuple[int, int]

DRAWN_PAIRS = 20  # default number of pairs of blocks to compare


@dataclass(frozen=True, eq=False)
class BlockRanks:
    """Numerical ranks of the blocks of a kernel matrix.

    Attributes
    ----------
    numerical : int array of shape (blocks, blocks)
        The rank of the block of rows s and columns t.
    rows : int array of shape (blocks,)
        Number of rows of each block that were used; no rank can exceed it.
    allocated : int array of shape (blocks,) or None
        The ranks that a fitted approximation assigned to the blocks.
    """

    numerical: np.ndarray
    rows: np.ndarray
    allocated: np.ndarray | None

    def __str__(self) -> str:
        header = ["block", *range(len(self.rows)), "rows"]
        table = [[s, *ranks, self.rows[s]] for s, ranks in enumerate(self.numerical)]
        if self.allocated is not None:
            header.append("allocated")
            table = [[*line, r] for line, r in zip(table, self.allocated, strict=True)]
        return lines(header, table)


@dataclass(frozen=True, eq=False)
class PrincipalCosines:
    """Cosines of the principal angles between bases of diagonal and off-diagonal blocks.

    Attributes
    ----------
    pairs : list of (s, t)
    cosines : dict of int to array of shape (pairs, rank)
        For each rank, the cosines of each pair of blocks, largest first; NaN beyond the numerical
        rank of either block.
    """

    pairs: list[tuple[int, int]]
    cosines: dict[int, np.ndarray]

    def __str__(self) -> str:
        header = ["rank", "cosines", "mean", "median", "smallest", "above 0.9"]
        table = []
        for rank, each in self.cosines.items():
            seen = each[~np.isnan(each)]
            shown = [f(seen) for f in (np.mean, np.median, np.min)] if len(seen) else [np.nan] * 3
            table.append([rank, len(seen), *shown, np.count_nonzero(seen > 0.9)])
        return lines(header, table)


def block_ranks(
    source: KernelLike | BKA | MEKA,
    X: ArrayLike,
    labels: ArrayLike = None,
    *,
    delta: float | None = None,
    max_rows: int = 500,
    random_state: RandomState = 0,
) -> BlockRanks:
    """Numerical rank of each block of K for a partition (002, tables 5 and 6).

    This is the number of singular values above max(rows, columns) ‖K_st‖₂ δ. A partition is useful
    if the ranks are far below the number of rows, both on and off the diagonal.

    Parameters
    ----------
    source : Kernel, str, callable, or fitted BKA or MEKA
        If you pass an approximation, its kernel and partition are used.
    X : array-like
        The rows; for an approximation, those that it was fitted on.
    labels : array of shape (n,), optional
        The block of each row, if you pass a kernel.
    delta : float, optional
        δ, which 002 does not state. By default the machine epsilon of K's dtype, 2.2e-16 in
        float64. The error you can tolerate, divided by the rows of a block, is more informative.
    max_rows : int, default=500
        From larger blocks, this many rows are sampled and the ranks estimated. The singular values
        of a sample decay, relative to the largest, like those of the block, so the threshold is
        that of the block; ranks close to the sample size are too low. c blocks with s rows each
        take c²s²/2 kernel values and O(c²s³) time.
    random_state : int, Generator or None, default=0

    See Also
    --------
    principal_cosines : whether blocks share their bases.
    gramian.theory.block_rank_bound : a bound on the ranks.

    References
    ----------
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from gramian import RBF
    >>> from gramian.diagnostics import block_ranks
    >>> X, labels = make_blobs(300, centers=3, random_state=0)
    >>> print(block_ranks(RBF(1.0), X, labels, delta=1e-6))
    block   0   1   2  rows
        0  49  19  25   100
        1  19  47  18   100
        2  25  18  52   100
    >>> block_ranks(RBF(1.0), X, labels[::-1], delta=1e-6).numerical.min() > 52  # other blocks
    np.True_
    """
    gram, blocks = _blocks("block_ranks", source, X, labels)
    sampled = _sampled("block_ranks", blocks, max_rows, random_state)
    delta = array_ops.eps(gram.dtype) if delta is None else positive("block_ranks", "delta", delta)
    largest = max(len(numbers) for numbers in blocks)
    if largest * delta >= 1:
        raise ValueError(
            f"delta of block_ranks is multiplied by the rows of a block, and {delta:g} times "
            f"{largest} leaves no singular value above the threshold: use a smaller delta."
        )

    def rank(pair: tuple[int, int]) -> int:
        s, t = pair
        K = _block(gram, sampled[s], sampled[t])
        values = (
            np.abs(scipy.linalg.eigvalsh(K, check_finite=False))
            if s == t
            else scipy.linalg.svdvals(K, check_finite=False)
        )
        size = max(len(blocks[s]), len(blocks[t]))
        return int(np.count_nonzero(values > size * values.max() * delta))

    count = len(sampled)
    numerical = np.zeros((count, count), dtype=int)
    upper = np.triu_indices(count)
    numerical[upper] = _each(gram, rank, list(zip(*upper, strict=True)))
    numerical = np.maximum(numerical, numerical.T)
    return BlockRanks(
        numerical, np.array([len(rows) for rows in sampled]), getattr(source, "ranks_", None)
    )


def principal_cosines(
    source: KernelLike | BKA | MEKA,
    X: ArrayLike,
    labels: ArrayLike = None,
    *,
    ranks: Sequence[int] = (5, 10, 20),
    pairs: Sequence[tuple[int, int]] | None = None,
    max_rows: int = 1000,
    random_state: RandomState = 0,
) -> PrincipalCosines:
    """Similarity of the bases of diagonal and off-diagonal blocks (002, figure 6).

    For blocks s ≠ t and each rank r, these are the cosines of the principal angles between the
    leading r left singular vectors of K_ss and of K_st. MEKA expresses K_st in the basis of K_ss,
    which works if the cosines are close to 1.

    Parameters
    ----------
    source, X, labels
        As in :func:`block_ranks`.
    ranks : sequence of int, default=(5, 10, 20)
    pairs : sequence of (s, t), optional
        By default all pairs of different blocks, or a random 20 of them.
    max_rows : int, default=1000
        From larger blocks, this many rows are sampled. A pair with s rows each takes 2 s² kernel
        values and O(s³) time.
    random_state : int, Generator or None, default=0

    See Also
    --------
    block_ranks : ranks of the blocks.

    References
    ----------
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from gramian import RBF
    >>> from gramian.diagnostics import principal_cosines
    >>> X, labels = make_blobs(300, centers=3, random_state=0)
    >>> found = principal_cosines(RBF(0.01), X, labels, ranks=[3])
    >>> found.cosines[3].shape, bool(found.cosines[3][:, 0].min() > 0.9)
    ((6, 3), True)
    """
    gram, blocks = _blocks("principal_cosines", source, X, labels)
    rng = generator(random_state)
    sampled = _sampled("principal_cosines", blocks, max_rows, rng)
    sizes = [positive_integer("principal_cosines", "ranks", r) for r in ranks]
    chosen = _pairs(len(sampled), pairs, rng)

    def basis(s: int, t: int) -> np.ndarray:
        left, values, _ = scipy.linalg.svd(
            _block(gram, sampled[s], sampled[t]), full_matrices=False, check_finite=False
        )
        return left[:, values > max(left.shape) * values[0] * array_ops.eps(gram.dtype)]

    def cosines(pair: tuple[int, int]) -> list[np.ndarray]:
        own, other = basis(pair[0], pair[0]), basis(*pair)
        found = []
        for r in sizes:
            shared = np.full(r, np.nan)
            if other.shape[1]:  # K_st is not 0
                angles = scipy.linalg.subspace_angles(own[:, :r], other[:, :r])
                shared[: len(angles)] = np.cos(angles[::-1])
            found.append(shared)
        return found

    each = _each(gram, cosines, chosen)
    return PrincipalCosines(
        chosen, {r: np.array([found[i] for found in each]) for i, r in enumerate(sizes)}
    )


def _blocks(
    owner: str, source: KernelLike | BKA | MEKA, X: ArrayLike, labels: ArrayLike
) -> tuple[Gram, list[np.ndarray]]:
    """Return the matrix and the row numbers of each block."""
    fitted = isinstance(source, BKA | MEKA)
    if fitted == (labels is not None):
        raise ValueError(
            f"{owner} needs a kernel and labels, or a fitted BKA or MEKA with its own labels; "
            f"got {source!r:.100} {'and' if fitted else 'without'} labels."
        )
    if not isinstance(source, BKA | MEKA):
        gram = Gram(source, X)
        return gram, members(owner, labels, gram.shape[0])
    check_is_fitted(source, "labels_")
    gram = Gram(source.kernel_, source._new_rows(X))
    if gram.shape[0] != len(source.labels_):
        raise ValueError(
            f"{owner} needs the {counted(len(source.labels_), 'row')} that "
            f"{type(source).__name__} was fitted on; got {counted(gram.shape[0], 'row')}."
        )
    return gram, members(owner, source.labels_, gram.shape[0])


def _sampled(
    owner: str, blocks: list[np.ndarray], max_rows: int, random_state: RandomState
) -> list[np.ndarray]:
    """Sample at most ``max_rows`` rows of each block."""
    rng, most = generator(random_state), positive_integer(owner, "max_rows", max_rows)
    return [
        np.sort(rng.choice(numbers, size=most, replace=False)) if len(numbers) > most else numbers
        for numbers in blocks
    ]


def _pairs(
    count: int, given: Sequence[tuple[int, int]] | None, rng: np.random.Generator
) -> list[tuple[int, int]]:
    every = [(s, t) for s in range(count) for t in range(count) if s != t]
    if not every:
        raise ValueError("principal_cosines compares blocks and needs two or more; got one.")
    if given is None:
        return [every[i] for i in np.sort(rng.permutation(len(every))[:DRAWN_PAIRS])]
    pairs = [(int(s), int(t)) for s, t in given]
    if not pairs or not set(pairs) <= set(every):
        raise ValueError(
            f"pairs of principal_cosines must name two different blocks, from 0 to {count - 1}; "
            f"got {pairs!r}."
        )
    return pairs


def _block(gram: Gram, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return np.asarray(array_ops.to_numpy(gram.block(i, j)), dtype=np.float64)


def _each(gram: Gram, function: Callable[[Pair], T], pairs: list[Pair]) -> list[T]:
    serial = gram.kernel.serial or array_ops.is_foreign(gram.rows.place.reference)
    return side_by_side(function, pairs, "pairs of blocks", serial=serial)
