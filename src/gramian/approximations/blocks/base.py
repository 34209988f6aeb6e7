"""What BKA and MEKA share: the partition, the ranks, and a basis for each block."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import isclose
from time import perf_counter
from typing import Any

import numpy as np

from gramian.approximations.base import Approximation, ApproximationWarning, Plan, are_vectors
from gramian.approximations.blocks.basis import (
    FURTHER,
    SAMPLED_EXTRA,
    SAMPLED_PER_RANK,
    find_basis,
    points_of,
)
from gramian.approximations.blocks.partition import PARTITIONS, nearest, split, split_bytes
from gramian.approximations.blocks.ranks import choose_ranks, each_block, sampled_rows
from gramian.approximations.projected import projected_bytes
from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array, DType
from gramian.backend.checks import choice, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.parameters import RowsLike
from gramian.kernels import Kernel, tiles
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors, in_parts
from gramian.matrices.gram import Gram
from gramian.rows import FeatureRows, Map, Rows
from gramian.rows.files.rows import planned_rows
from gramian.samplers import Sampler, as_sampler


@dataclass(frozen=True, eq=False)
class BlocksPlan(Plan):
    """Also the sampler that selects the landmarks of each block."""

    sampler: Sampler = field(kw_only=True)


class BlockApproximation(Approximation):
    """Rows in blocks, each with a basis of its own; subclasses define what is between blocks."""

    n_components: int
    n_blocks: int
    ranks: str
    landmarks: str | Sampler
    partition: str | Array

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        return kernel.stationary and are_vectors(kernel, rows)

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: BlocksPlan) -> int:
        n = gram.shape[0]
        choice(self, "ranks", self.ranks, ("spectrum", "size", "equal"))
        total = positive_integer(self, "n_components", self.n_components)
        count = positive_integer(self, "n_blocks", self.n_blocks)
        if isinstance(self.partition, str):
            choice(self, "partition", self.partition, PARTITIONS)
            self._check_count(count, total, n)
        sampler = plan.sampler
        if sampler.fixed:
            raise ValueError(
                f"{type(self).__name__} selects landmarks in each block: landmarks must be the "
                f"name of a sampler, such as 'uniform', or a sampler; got {self.landmarks!r}."
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
            ranks = choose_ranks(self.ranks, grams, sizes, total, rng)
            targets: list[np.ndarray | None] = [None] * len(members)
            if y is not None and sampler.needs_target:
                target, host_labels = np.asarray(array_ops.to_numpy(y)), array_ops.to_numpy(labels)
                targets = [target[host_labels == label] for label in range(len(members))]
            self._bases = each_block(
                lambda i, rng: find_basis(grams[i], int(ranks[i]), sampler, rng, targets[i]),
                grams,
                rng,
                (1 + FURTHER) * points_of(int(ranks.max())),
            )
        self.ranks_ = np.array([basis.rank for basis in self._bases])
        self.landmarks_ = [basis.landmarks for basis in self._bases]
        gram.evaluations += sum(part.evaluations for part in grams)
        self._core = self._link(gram)
        self._bases = [basis._replace(points=None, inverse=None) for basis in self._bases]
        return int(self.ranks_.sum())

    def _link(self, gram: Gram) -> BlockCore | None:
        """Return the core S, from the bases; None if no blocks are linked."""
        return None

    def _check_count(self, count: int, total: int, n: int) -> None:
        if count > n:
            raise ValueError(
                f"n_blocks={count} exceeds the {counted(n, 'row')}: use fewer blocks than rows."
            )
        if total < count:
            raise ValueError(
                f"n_components={total} is the total rank of {count} blocks, which need at least 1 "
                "each: raise n_components, or lower n_blocks."
            )

    def _warn_of_kernel(self, gram: Gram) -> None:
        if not gram.kernel.stationary:
            warnings.warn(
                f"{type(self).__name__} puts rows that are close to each other into one block, "
                f"which theory justifies for stationary kernels such as RBF; {gram.kernel!r} is "
                "not stationary. Check relative_error, and compare with Nystroem.",
                ApproximationWarning,
                stacklevel=6,
            )

    # The memory of a fit. Blocks are expected to differ in rows and in ranks.

    def _count(self) -> int:
        if isinstance(self.partition, str):
            return positive_integer(self, "n_blocks", self.n_blocks)
        return len(np.unique(np.asarray(array_ops.to_numpy(self.partition))))

    def _plan(self, rows: Rows) -> BlocksPlan:
        (n, d), item, count = rows.shape, array_ops.itemsize(rows.dtype), self._count()
        total = positive_integer(self, "n_components", self.n_components)
        rank = -(-2 * total // count)  # of a large block
        points = min(points_of(rank), 2 * n // count + 1)
        all_points = min(SAMPLED_PER_RANK * total + SAMPLED_EXTRA * count, n)
        kept = {
            "labels and order of rows": (4 + 4 + 8) * n,
            "landmarks": projected_bytes(rows, all_points, 0)["landmarks"],
            "projection": 3 * all_points * rank * item,
        }
        fitted_on = min((1 + FURTHER) * all_points, n) * (rows.row_bytes + 8 * rank)  # for links
        sampled = sampled_rows(total, count) if self.ranks == "spectrum" else 0
        wide = 8 * rows.row_bytes // item  # a row in float64
        # Kernel values of landmarks with each other and with all points, and their decompositions.
        work = (6 + 4 * (1 + FURTHER) // 2) * 8 * points**2 + 2 * (2 + FURTHER) * points * wide
        work = max(work, 4 * 8 * sampled**2)
        sampler = as_sampler(self.landmarks, Gram(self._bare_kernel(), rows))
        block = planned_rows(max(2 * n // count, 1), d, _dtype_of(rows), False)
        work = max(work, sampler.select_bytes(block, points))
        at_once = min(config.n_threads(), count)
        steps: list[Amounts] = [
            {"choice of blocks": split_bytes(rows, self.partition, count)},
            {**kept, "fitted on": fitted_on, "bases": at_once * work},
        ]
        columns = min(points_of(rank), tiles.tile_columns(rows.place.reference))
        factors = self._uneven(rows, rows.dtype, total, columns * item)
        return BlocksPlan(self, rows, factors, kept, steps, sampler=sampler)

    def _sizes(self, rows: Rows) -> Factors:
        return self._uneven(rows, self._feature_dtype(rows), self.n_components_)

    def _uneven(self, rows: Rows, dtype: DType, width: int, work_bytes: int = 0) -> Factors:
        """Return factors in parts of growing sizes: all that is known before rows are assigned."""
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
        """Return a placeholder for S in a plan; None if blocks are not linked."""
        return None

    # The block of each row: training rows keep theirs, new rows go to the nearest centre.

    def _remember(self, rows: Rows, rng: np.random.Generator) -> None:
        self._trained_on: Callable[[], Rows | None] | None = weakref.ref(rows)
        self._checksum: float | None = None
        by_distance = isinstance(self.partition, str) and self.partition in ("kmeans", "balanced")
        if not by_distance:  # the centres do not determine the labels
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
        """Return a checksum that differs between the training rows, in their order, and others."""
        rng, double = np.random.default_rng(self._checksum_seed), rows.xp.float64
        weights = rows.place.align(1.0 + rng.random(rows.shape[0]), double)
        across = array_ops.like(1.0 + rng.random(rows.shape[1]), rows.place.reference, double)

        def part(x: Array, w: Array) -> Array:
            return w @ array_ops.matmul(array_ops.astype(x, double), across[:, None])[:, 0]

        return float(rows.sum(part, weights, label="blocks"))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_trained_on": None}

    def factor_rows(self, rows: Rows) -> Factors:
        """Like ``factor``, for rows that are already checked."""
        maps = [
            Map(basis.map.features, basis.rank, basis.map.work_bytes, basis.map.points_used)
            for basis in self._bases
        ]
        return in_parts(
            rows,
            self._labels(rows),
            maps,
            self._core,
            dtype=self._feature_dtype(rows),
            serial=self.kernel_.serial,
        )

    def transform(self, X: RowsLike) -> Array:
        """Return dense features of the rows X, whose inner products are K̃.

        They take n times the total rank in memory, about n_blocks times as much as ``factor(X)``.
        Learners and ``relative_error`` work on the factors and never expand them.
        """
        return super().transform(X)

    def _transformed(self, rows: Rows) -> Array:
        try:
            return super()._transformed(rows)
        except linalg.NotPositiveDefiniteError as error:
            raise ValueError(
                f"K̃ is indefinite, so there are no features with these inner products: {error}. "
                "Use psd='clip', or factor(X)."
            ) from error

    @contextmanager
    def _timed(self, step: str, *, small: bool = True) -> Iterator[None]:
        """Time a step. BLAS uses its own threads only for large matrices, where it is faster."""
        start = perf_counter()
        with one_blas_thread() if small else nullcontext():
            yield
        self.times_[step] = perf_counter() - start


def _dtype_of(rows: Rows) -> np.dtype:
    return np.dtype(f"float{8 * array_ops.itemsize(rows.dtype)}")
