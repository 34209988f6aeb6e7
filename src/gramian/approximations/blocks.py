"""BKA and MEKA: approximations in blocks of rows that lie close together."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import isclose
from time import perf_counter
from typing import Any

import numpy as np
import scipy.linalg
import scipy.spatial.distance

from gramian.approximations.base import Approximation, ApproximationWarning
from gramian.approximations.block_basis import (
    SAMPLED_BESIDE,
    SAMPLED_PER_RANK,
    Basis,
    find_basis,
    in_float64,
    in_proportion,
    link_matrix,
    points_of,
    ranks_by_spectrum,
)
from gramian.approximations.partition import nearest, split, split_bytes
from gramian.approximations.projected import projected_bytes
from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, is_real, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread, side_by_side
from gramian.backend.wording import counted
from gramian.kernels import tiles
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors, in_parts
from gramian.matrices.gram import Gram
from gramian.matrices.normal_equations import normal_equations
from gramian.rows import FeatureRows, Map, Rows
from gramian.rows.files.rows import planned_rows
from gramian.samplers import as_sampler

__all__ = ["BKA", "MEKA"]


class _Blocks(Approximation):
    """What BKA and MEKA share: the partition, the ranks, a basis for each block."""

    n_components: int
    n_blocks: int
    ranks: str
    landmarks: Any
    partition: Any

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Any) -> int:
        n = gram.shape[0]
        choice(self, "ranks", self.ranks, ("spectrum", "size", "equal"))
        total = positive_integer(self, "n_components", self.n_components)
        count = positive_integer(self, "n_blocks", self.n_blocks)
        if isinstance(self.partition, str):
            choice(self, "partition", self.partition, ("kmeans", "spectral", "random"))
            self._check_count(count, total, n)
        sampler = as_sampler(self.landmarks, gram)
        if sampler.fixed:
            raise ValueError(
                f"{type(self).__name__} chooses landmarks in each block: landmarks must be the "
                f"name of a sampler or a sampler, such as 'uniform'; got {self.landmarks!r}."
            )
        self.times_: dict[str, float] = {}
        with self._timed("partition"):
            labels, centres = split(gram, self.partition, count, rng)
        self._warn_of_kernel(gram)
        self.labels_, self.centres_ = labels, centres
        members = gram.rows.place.split(gram.rows, labels, int(centres.shape[0]))
        self.block_sizes_ = sizes = np.array([part.shape[0] for part in members])
        self._check_count(len(sizes), total, n)
        self._remember(gram.rows, rng)
        with self._timed("basis"):
            grams = [Gram(gram.kernel, part) for part in members]
            ranks = self._ranks(grams, sizes, total, rng)
            targets: list[Any] = [None] * len(members)
            if y is not None and sampler.needs_target:
                target, own = np.asarray(array_ops.to_numpy(y)), array_ops.to_numpy(labels)
                targets = [target[own == label] for label in range(len(members))]
            self._bases = _each_block(
                lambda i, own: find_basis(grams[i], int(ranks[i]), sampler, own, targets[i]),
                grams,
                rng,
            )
        self.ranks_ = np.array([basis.rank for basis in self._bases])
        self.landmarks_ = [basis.landmarks for basis in self._bases]
        gram.evaluations += sum(part.evaluations for part in grams)
        self._core = self._link(gram)
        self._bases = [basis._replace(points=None, inverse=None) for basis in self._bases]
        return int(self.ranks_.sum())

    def _link(self, gram: Gram) -> BlockCore | None:
        """The core S, from the bases; None where no blocks are linked."""
        return None

    def _check_count(self, count: int, total: int, n: int) -> None:
        if count > n:
            raise ValueError(
                f"n_blocks={count} exceeds the {counted(n, 'row')}: ask for fewer blocks than rows."
            )
        if total < count:
            raise ValueError(
                f"n_components={total} is the total rank of {count} blocks, which need at least 1 "
                "each: raise n_components, or lower n_blocks."
            )

    def _warn_of_kernel(self, gram: Gram) -> None:
        if not gram.kernel.stationary:
            warnings.warn(
                f"{type(self).__name__} puts rows that lie close together into one block, which "
                f"theory justifies for stationary kernels such as RBF; {gram.kernel!r} is none. "
                "Look at relative_error, and compare with Nystroem.",
                ApproximationWarning,
                stacklevel=6,
            )

    def _ranks(
        self, grams: list[Gram], sizes: np.ndarray, total: int, rng: np.random.Generator
    ) -> np.ndarray:
        if self.ranks == "equal":
            return in_proportion(np.ones(len(sizes)), sizes, total)
        if self.ranks == "size":
            return in_proportion(sizes, sizes, total)
        sample = max(4 * total // len(sizes), 100)

        def spectrum(i: int, own: np.random.Generator) -> np.ndarray:
            n = int(sizes[i])
            rows = own.choice(n, size=min(n, sample), replace=False)
            K = np.asarray(array_ops.to_numpy(grams[i].block(rows, rows)), dtype=np.float64)
            values = scipy.linalg.eigvalsh(K, check_finite=False)[::-1]
            return np.maximum(values, 0.0) * (n / len(rows))

        return ranks_by_spectrum(_each_block(spectrum, grams, rng), sizes, total)

    # What a fit takes in memory. Blocks are expected to be uneven, in rows as in ranks.

    def _expected(self, rows: Rows) -> tuple[int, int]:
        total = positive_integer(self, "n_components", self.n_components)
        points = points_of(-(-2 * total // self._count()))
        columns = min(points, tiles.tile_columns(rows.example()))
        return total, columns * array_ops.itemsize(rows.dtype)

    def _count(self) -> int:
        if isinstance(self.partition, str):
            return positive_integer(self, "n_blocks", self.n_blocks)
        return len(np.unique(np.asarray(array_ops.to_numpy(self.partition))))

    def _planned_factors(self, rows: Rows, dtype: Any, width: int, work_bytes: int) -> Factors:
        n, count = rows.shape[0], len(getattr(self, "_bases", ())) or self._count()
        count = min(count, n, width)
        edges = np.cumsum(np.arange(count + 1)) / (count * (count + 1) // 2)
        sizes = np.diff((edges * n).astype(int)), np.diff((edges * width).astype(int))
        kind = _dtype_of(rows)
        parts = [
            FeatureRows(
                planned_rows(int(size), rows.shape[1], kind, False),
                self._features,
                max(int(rank), 1),
                dtype,
                work_bytes=work_bytes,
            )
            for size, rank in zip(*sizes, strict=True)
        ]
        order = np.broadcast_to(np.zeros((), np.int32 if n < 2**31 else np.int64), (n,))
        return Factors(parts, self._planned_core(), order)

    def _planned_core(self) -> BlockCore | None:
        """None where blocks are not linked."""
        return None

    def _fit_steps(self, rows: Rows) -> tuple[Amounts, list[Amounts]]:
        (n, d), item = rows.shape, array_ops.itemsize(rows.dtype)
        total, count = self._expected(rows)[0], self._count()
        rank = -(-2 * total // count)  # of a large block
        points = min(points_of(rank), 2 * n // count + 1)
        all_points = min(SAMPLED_PER_RANK * total + SAMPLED_BESIDE * count, n)
        labels = {"labels and order of rows": (4 + 4 + 8) * n}
        kept = {
            **labels,
            "landmarks": projected_bytes(rows, all_points, 0)["landmarks"],
            "projection": 3 * all_points * rank * item,
        }
        fitted_on = 2 * all_points * (rows.row_bytes + 8 * rank)  # what links are fitted on
        sampled = max(4 * total // count, 100) if self.ranks == "spectrum" else 0
        wide = 8 * rows.row_bytes // item  # a row in float64
        work = max(10 * 8 * points**2 + 6 * points * wide, 4 * 8 * sampled**2)
        block = planned_rows(max(2 * n // count, 1), d, _dtype_of(rows), False)
        sampler = as_sampler(self.landmarks, Gram(self._bare_kernel(), block))
        work = max(work, sampler.select_bytes(block, points))
        at_once = min(config.n_threads(), count)
        steps: list[Amounts] = [
            {"choice of blocks": split_bytes(rows, self.partition, count)},
            {**kept, "fitted on": fitted_on, "bases": at_once * work},
        ]
        return kept, steps

    # Which block a row belongs to: training rows keep theirs, new rows go to the nearest centre.

    def _remember(self, rows: Rows, rng: np.random.Generator) -> None:
        self._trained_on: Any = weakref.ref(rows)
        self._checksum: float | None = None
        by_distance = isinstance(self.partition, str) and self.partition == "kmeans"
        if not by_distance:  # labels that centres do not tell
            self._checksum_seed = int(rng.integers(2**31))
            self._checksum = self._sum_of(rows)

    def _labels(self, rows: Rows) -> Array:
        if self._trained_on is not None and self._trained_on() is rows:
            return self.labels_
        as_many = rows.shape[0] == self.labels_.shape[0]
        if as_many and self._checksum is not None and isclose(self._sum_of(rows), self._checksum):
            return rows.place.column(self.labels_)
        return nearest(rows, self.centres_)

    def _sum_of(self, rows: Rows) -> float:
        """A number that tells the training rows, in their order, from others."""
        own = np.random.default_rng(self._checksum_seed)
        weights = rows.place.align(1.0 + own.random(rows.shape[0]), rows.xp.float64)
        across = array_ops.like(1.0 + own.random(rows.shape[1]), rows.example(), rows.xp.float64)

        double = rows.xp.float64

        def part(x: Array, w: Array) -> Array:
            return w @ array_ops.matmul(array_ops.astype(x, double), across[:, None])[:, 0]

        return float(rows.sum(part, weights, label="blocks"))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_trained_on": None}

    def factor_rows(self, rows: Rows) -> Factors:
        """``factor`` of rows that are checked already."""
        maps = [
            Map(own.map.features, own.rank, own.map.work_bytes, own.map.points_used)
            for own in self._bases
        ]
        return in_parts(
            rows,
            self._labels(rows),
            maps,
            self._core,
            dtype=self._feature_dtype(rows),
            serial=self.kernel_.serial,
        )

    def transform(self, X: Any) -> Array:
        """Dense features of the rows X, whose inner products are K̃.

        They take n times the total rank in memory, some n_blocks times what ``factor(X)`` takes:
        learners and ``relative_error`` work on the factors and never expand them.
        """
        try:
            return super().transform(X)
        except linalg.NotPositiveDefiniteError as error:
            raise ValueError(
                f"K̃ is indefinite, so there are no features with these inner products: {error}. "
                "Use psd='clip', or factor(X)."
            ) from error

    @contextmanager
    def _timed(self, step: str, *, small: bool = True) -> Iterator[None]:
        """Clock a step. BLAS wakes its own threads for large matrices only, which pay for it."""
        start = perf_counter()
        with one_blas_thread() if small else nullcontext():
            yield
        self.times_[step] = perf_counter() - start


def _dtype_of(rows: Rows) -> np.dtype:
    return np.dtype(f"float{8 * array_ops.itemsize(rows.dtype)}")


def _each_block(function: Any, grams: list[Gram], rng: np.random.Generator) -> list[Any]:
    """``function(i, generator)`` for each block, in threads, with a generator of its own."""
    generators = rng.spawn(len(grams))
    serial = grams[0].kernel.serial or array_ops.runs_own_threads(grams[0].rows.example())
    blocks = range(len(grams))
    return side_by_side(lambda i: function(i, generators[i]), blocks, "blocks", serial=serial)


class BKA(_Blocks):
    """Block kernel approximation: each block of rows by its own Nyström, nothing between blocks.

    The rows are partitioned by k-means. K̃ is block-diagonal: what a local kernel (a large gamma)
    leaves between clusters is taken as 0. A row has features in its own block only, so that n rows
    take n times the rank of a block. (Si, Hsieh and Dhillon, 2014.)

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        See :func:`gramian.kernel_names` for the names. ``kernel__gamma`` reaches its parameters.
    n_components : int, default=100
        The total rank, over all blocks.
    n_blocks : int, default=10
        Not looked at where ``partition`` gives the labels.
    ranks : {"spectrum", "size", "equal"}, default="spectrum"
        How the total rank is spread: to the largest eigenvalues of all blocks, seen on samples; in
        proportion to the blocks' rows; or equally.
    landmarks : str or Sampler, default="uniform"
        How each block's landmarks are chosen, three for each rank and ten more; see
        :func:`gramian.sampler_names`.
    partition : {"kmeans", "spectral", "random"} or array of shape (n,), default="kmeans"
        k-means in the space of the rows, on a subsample; spectral clustering on the kernel matrix
        of a subsample; at random; or the block of each row. New rows go to the nearest centre.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n,)
        The block of each training row.
    block_sizes_, ranks_ : array of shape (blocks,)
        The number of training rows and the rank of each block.
    centres_ : array of shape (blocks, d)
    landmarks_ : list of Landmarks
        Those of each block.
    n_components_ : int
        The total rank in use.
    nbytes_ : int
        What the factors of the training rows take.
    times_ : dict
        Seconds for each step of the fit.
    kernel_ : Kernel
        The kernel in use, its parameters worked out.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import BKA, RBF
    >>> X = load_digits().data / 16
    >>> approximation = BKA(RBF(1.0), 200, random_state=0).fit(X)
    >>> approximation.n_components_, int(approximation.block_sizes_.sum())
    (200, 1797)
    >>> approximation.nbytes_ < 0.2 * approximation.transform(X).nbytes
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        n_components: int = 100,
        *,
        n_blocks: int = 10,
        ranks: str = "spectrum",
        landmarks: Any = "uniform",
        partition: Any = "kmeans",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_blocks = n_blocks
        self.ranks = ranks
        self.landmarks = landmarks
        self.partition = partition
        self.random_state = random_state


class MEKA(_Blocks):
    """Memory-efficient kernel approximation: a basis for each block of rows, and links between.

    As in :class:`BKA` each block of rows has a basis of its own, in whose columns alone its rows
    have features. What lies between two blocks is written in their two bases, K_st ≈ Z_s L_st Z_tᵀ,
    with a small matrix L_st fitted on sampled rows. (Si, Hsieh and Dhillon, 2014.) At equal memory
    this has n_blocks times the rank of Nyström, which pays where the matrix is of high rank: for a
    large gamma and rows of few columns.

    Parameters
    ----------
    kernel, n_components, n_blocks, ranks, landmarks, partition, random_state
        As in :class:`BKA`.
    link_threshold : float, optional
        Leave out the link of two blocks whose centres have a kernel value of at most this.
    link_distance : float, optional
        Leave out the link of two blocks whose centres are farther apart than this; 0 gives BKA.
    link_fraction : float, optional
        Leave out this part of all links, of the centres that are least alike. Of the three, one
        may be given; by default all links are kept.
    psd : {"clip", "shift", None}, default="clip"
        With fitted links K̃ may have negative eigenvalues. "clip" sets them to 0, the nearest
        positive semi-definite matrix in the span of the bases; "shift" adds to all until the least
        is 0; None leaves them.

    Attributes
    ----------
    links_ : bool array of shape (blocks, blocks)
        Which blocks are linked.
    labels_, block_sizes_, ranks_, centres_, landmarks_, n_components_, nbytes_, times_, kernel_
        As in :class:`BKA`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from gramian import MEKA, RBF, Nystroem, relative_error
    >>> X, _ = make_moons(2000, noise=0.1, random_state=0)
    >>> approximation = MEKA(RBF(20.0), 200, random_state=0).fit(X)
    >>> nystroem = Nystroem(RBF(20.0), 50, random_state=0).fit(X)
    >>> approximation.nbytes_ < nystroem.nbytes_
    True
    >>> float(relative_error(approximation, X)) < 0.2 * float(relative_error(nystroem, X))
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        n_components: int = 100,
        *,
        n_blocks: int = 10,
        ranks: str = "spectrum",
        landmarks: Any = "uniform",
        link_threshold: float | None = None,
        link_distance: float | None = None,
        link_fraction: float | None = None,
        psd: str | None = "clip",
        partition: Any = "kmeans",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_blocks = n_blocks
        self.ranks = ranks
        self.landmarks = landmarks
        self.link_threshold = link_threshold
        self.link_distance = link_distance
        self.link_fraction = link_fraction
        self.psd = psd
        self.partition = partition
        self.random_state = random_state

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Any) -> int:
        if self.psd is not None:
            choice(self, "psd", self.psd, ("clip", "shift"))
        self._rule()
        return super()._fit(gram, rng, y)

    def _planned_core(self) -> BlockCore | None:
        return None if self._count() == 1 else BlockCore(np.empty((0, 0)))

    def _fit_steps(self, rows: Rows) -> tuple[Amounts, list[Amounts]]:
        kept, steps = super()._fit_steps(rows)
        total = self._expected(rows)[0]
        wide = 8 * rows.row_bytes // array_ops.itemsize(rows.dtype)  # a row in float64
        points = 2 * (SAMPLED_PER_RANK * total + SAMPLED_BESIDE * self._count())
        points = min(points, rows.shape[0])
        largest = min(2 * points_of(-(-3 * total // (2 * self._count()))), points)
        links = 3 * 8 * largest * points // 2 + 3 * points * wide
        square = 8 * total**2
        steps += [
            {**kept, "fitted on": steps[-1]["fitted on"], "links": square + links},
            {**kept, "links": square, "decomposition": 7 * square},
        ]
        return {**kept, "links": square // 2}, steps

    def _link(self, gram: Gram) -> BlockCore | None:
        bases, count = self._bases, len(self._bases)
        with self._timed("links"):
            self.links_ = self._linked(gram)
            if not self.links_.any():  # BKA: K̃ is block-diagonal and positive semi-definite
                return None
            S = link_matrix(gram.kernel, bases, self.links_)
            gram.evaluations += _pairs_of_points(bases, self.links_)
        links: np.ndarray | None = self.links_
        with self._timed("psd", small=len(S) <= 1000):
            if self.psd is not None and not linalg.is_psd(S):
                self._core = None
                inner = normal_equations(self.factor_rows(gram.rows))[0]
                S, links = linalg.nearest_psd(S, inner, shift=self.psd == "shift"), None
        dtype = np.float32 if self._single else np.float64
        sizes = [basis.rank for basis in bases]
        return BlockCore(S, sizes, None if count == 1 else links, dtype)

    def _rule(self) -> tuple[str, float] | None:
        names = ("link_threshold", "link_distance", "link_fraction")
        given = [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]
        if not given:
            return None
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(name for name, _ in given)} of {type(self).__name__} are two ways "
                "to leave out links: give one of them."
            )
        name, value = given[0]
        good = is_real(value) and value >= 0 and (name != "link_fraction" or value <= 1)
        if not good:
            bounds = "from 0 to 1" if name == "link_fraction" else "not below 0"
            raise ValueError(f"{name} of {type(self).__name__} must be {bounds}; got {value!r}.")
        return name, float(value)

    def _linked(self, gram: Gram) -> np.ndarray:
        """Which pairs of blocks are linked, by their centres."""
        count = len(self._bases)
        linked = ~np.eye(count, dtype=bool)
        rule = self._rule()
        if rule is None or count == 1:
            return linked
        name, value = rule
        centres = in_float64(self.centres_)
        if name == "link_distance":
            return linked & (scipy.spatial.distance.cdist(centres, centres) <= value) & (value > 0)
        likeness = array_ops.to_numpy(gram.kernel(centres))
        gram.evaluations += count**2
        if name == "link_threshold":
            return linked & (likeness > value)
        pairs = np.triu_indices(count, k=1)
        dropped = np.argsort(likeness[pairs], kind="stable")[: round(value * len(pairs[0]))]
        linked[pairs[0][dropped], pairs[1][dropped]] = False
        return linked & linked.T


def _pairs_of_points(bases: list[Basis], linked: np.ndarray) -> int:
    counts = np.array([basis.inverse.shape[1] for basis in bases])
    return int(counts @ np.triu(linked, k=1) @ counts)
