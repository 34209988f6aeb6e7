"""Exact inside blocks of rows, low rank between them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from gramian.approximations.base import Approximation, Plan, are_vectors
from gramian.approximations.blocks.partition import (
    PARTITIONS,
    nearest,
    nearest_in,
    split,
    split_bytes,
)
from gramian.approximations.nystroem import Nystroem
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, DType
from gramian.backend.checks import choice, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.estimators.parameters import KernelLike, RandomState, RowsLike
from gramian.kernels import Kernel
from gramian.matrices.block_diagonal import BlockDiagonal
from gramian.matrices.block_function import BlockFunction
from gramian.matrices.block_rows import Grouped
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import FeatureRows, Place, Rows

__all__ = ["Local"]

ROWS_PER_BLOCK = 1000  # of "auto": larger blocks gain little and cost more
SHARE = 16  # a block in work takes at most this part of the memory budget


@dataclass(frozen=True, eq=False)
class LocalPlan(Plan):
    """Also the number of blocks, and the plan of what is between them."""

    count: int = field(kw_only=True)
    between: Plan | None = field(kw_only=True)


class Local(Approximation):
    """K̃ = Z Zᵀ + D: exact inside blocks of rows, low rank between them.

    Approximations by features keep what is smooth and blur what is local. This one adds what they
    leave out, K - Z Zᵀ, for pairs of rows that are close to each other, in the same block. Its
    error is 0 inside blocks and that of the features between them, so it is never larger than
    theirs. Around a bare kernel there is nothing between blocks.

    A fitted model keeps the training rows. Fits take time in proportion to the number of rows times
    the square of the rows of a block.

    Parameters
    ----------
    kernel : str, Kernel, callable or Approximation, default="rbf"
        What is between blocks: nothing for a kernel, or an approximation that leaves out something
        positive semi-definite, such as :class:`Nystroem`.
    n_blocks : int or "auto", default="auto"
        The number of blocks. "auto" makes blocks of about 1,000 rows, or smaller ones if a block in
        work would take more than a sixteenth of the memory budget.
    partition : {"balanced", "kmeans", "spectral", "random"} or array, default="balanced"
        How rows are divided: into compact blocks of similar size; by k-means; by spectral
        clustering; at random. An array has the block of each row.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    approximation_ : Approximation or None
        The fitted approximation between blocks.
    labels_ : array of shape (n,)
        The block of each training row.
    centres_ : array of shape (n_blocks, n_columns)
        The centres of the blocks; a new row belongs to the nearest.
    block_sizes_ : array of shape (n_blocks,)
        The number of training rows of each block.
    n_components_ : int
        The number of features that ``transform`` gives: those of the approximation, and one for
        each training row.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.

    See Also
    --------
    BKA : Low rank inside blocks, nothing between them.
    MEKA : Low rank inside blocks and between them.

    References
    ----------
    - Y. Zhang, J. Duchi and M. Wainwright, Divide and conquer kernel ridge regression, JMLR 16,
      2015 (nothing between blocks).
    - E. Snelson and Z. Ghahramani, Local and global sparse Gaussian process approximations, AISTATS
      2007 (Nyström between them).
    - C.-J. Hsieh, S. Si and I. S. Dhillon, A divide-and-conquer solver for kernel support vector
      machines, ICML 2014 (early prediction).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import RBF, Local, Nystroem, relative_error
    >>> X = load_digits().data / 16
    >>> between = Nystroem(RBF(1.0), 100, random_state=0)
    >>> exact_inside = Local(between, n_blocks=10, random_state=0).fit(X)
    >>> float(relative_error(exact_inside, X)) < 0.5 * float(relative_error(between.fit(X), X))
    True
    """

    compared: ClassVar = {"Local": {"kernel": Nystroem()}}
    has_features = False

    def __init__(
        self,
        kernel: KernelLike | Approximation = "rbf",
        n_blocks: int | Literal["auto"] = "auto",
        *,
        partition: str | Array = "balanced",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_blocks = n_blocks
        self.partition = partition
        self.random_state = random_state

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        # A single block is the exact kernel.
        return kernel.stationary and are_vectors(kernel, rows) and self._count(rows) > 1

    # The fit.

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        y: Any = None,
        weights: Array | None = None,
        plan: Plan | None = None,
    ) -> Local:
        """Like ``fit``, for rows that are already checked."""
        self._trained_on: Callable[[], Rows | None] | None = None
        super().fit_rows(rows, rng, y, weights, plan)
        self._trained_on = weakref.ref(rows)
        return self

    def _fit_kernel(
        self, rows: Rows, rng: np.random.Generator, y: Any, weights: Array | None, plan: Plan
    ) -> Kernel:
        assert isinstance(plan, LocalPlan)
        self.approximation_: Approximation | None = None
        if plan.between is None:
            return super()._fit_kernel(rows, rng, y, weights, plan)
        fitted = plan.between.approximation
        if not hasattr(fitted, "n_components_"):
            fitted = clone(fitted).fit_rows(rows, rng, y, weights, plan.between)
        self.approximation_ = fitted
        return fitted.kernel_

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Any, plan: LocalPlan) -> int:
        if isinstance(self.partition, str):
            choice(self, "partition", self.partition, PARTITIONS)
        labels, self.centres_ = split(gram, self.partition, plan.count, rng)
        return self._keep(gram.rows, np.asarray(array_ops.to_numpy(labels)), gram.rows.dtype)

    def _keep(self, rows: Rows, labels: np.ndarray, dtype: DType) -> int:
        """Keep training rows in the blocks that labels name; returns the number of features."""
        here = rows.place.here(rows)
        self.labels_ = labels
        self._groups = Grouped.of(here, labels, int(self.centres_.shape[0])).astype(dtype)
        self._trained_on = weakref.ref(rows)
        self.block_sizes_ = self._groups.sizes
        local = self._diagonal_of(self._groups)
        config.check_fits(
            local.work_bytes,
            f"a block of {counted(local.largest, 'row')} of {counted(rows.shape[0], 'row')}",
            "Use more blocks, or partition='balanced'",
        )
        return self._width() + rows.shape[0]

    def trained_on(self, rows: Rows) -> Local:
        """Return this approximation with the rows of a learner in place of its training rows.

        They go to the blocks of their nearest centres.
        """
        if self._is_training(rows):
            return self
        adapted, labels = copy(self), nearest(rows.place.here(rows), self.centres_)
        dtype = self._groups.points.dtype
        size = adapted._keep(rows, np.asarray(array_ops.to_numpy(labels)), dtype)
        adapted.n_components_ = adapted._n_features_out = size
        return adapted

    def _width(self) -> int:
        return 0 if self.approximation_ is None else self.approximation_.n_components_

    # What a fit takes.

    def _between(self) -> Approximation | None:
        if not isinstance(self.kernel, Approximation):
            return None
        if not self.kernel.below or not self.kernel.has_features:
            raise ValueError(
                "Local needs a kernel, or an approximation that leaves out something positive "
                f"semi-definite, such as Nystroem; got {type(self.kernel).__name__}."
            )
        return self.kernel

    def _count(self, rows: Rows) -> int:
        n = rows.shape[0]
        if not isinstance(self.partition, str):
            return len(np.unique(np.asarray(array_ops.to_numpy(self.partition))))
        if self.n_blocks == "auto":
            item = array_ops.itemsize(rows.dtype)
            room = config.memory_budget() // SHARE // (3 * item * config.n_threads())
            return max(ceil(n / min(ROWS_PER_BLOCK, max(int(room**0.5 / 2), 1))), 1)
        count = positive_integer(self, "n_blocks", self.n_blocks)
        if count > n:
            raise ValueError(
                f"n_blocks={count} exceeds the {counted(n, 'row')}: use fewer blocks than rows."
            )
        return count

    def _plan(self, rows: Rows) -> LocalPlan:
        between, count, n = self._between(), self._count(rows), rows.shape[0]
        inner = None if between is None else between.plan(rows)
        before = [] if inner is None else list(inner.steps)
        kept: Amounts = {**({} if inner is None else inner.kept), **self._kept(rows)}
        steps = [
            *before,
            {**kept, "choice of blocks": split_bytes(rows, self.partition, count)},
        ]
        groups = Grouped.planned(rows, self._planned_sizes(n, count))
        Z = self._nothing(rows) if inner is None else inner.factors.parts
        width = 0 if inner is None else inner.factors.rank
        local = BlockDiagonal(self._bare_kernel(), groups, None, width)
        return LocalPlan(
            self, rows, Factors(Z, local=local), kept, steps, count=count, between=inner
        )

    def _planned_sizes(self, n: int, count: int) -> np.ndarray:
        """The sizes of blocks: from small ones to the largest, unless they are given."""
        if not isinstance(self.partition, str) and not hasattr(self, "n_components_"):
            return np.unique(np.asarray(array_ops.to_numpy(self.partition)), return_counts=True)[1]
        shares = np.cumsum(np.arange(count + 1)) / (count * (count + 1) / 2)
        return np.diff(np.round(shares * n).astype(int))

    def advice(self) -> str:
        return "Local keeps the training rows: use Nystroem, which keeps landmarks only"

    def plan(self, rows: Rows) -> Plan:
        if not hasattr(self, "n_components_"):
            return self._plan(rows)
        if self._is_training(rows):
            return Plan(self, rows, self.factor_rows(rows))
        between, width = self.approximation_, self._width()
        Z = self._nothing(rows) if between is None else between.factor_rows(rows).parts
        groups = Grouped.planned(rows, self._planned_sizes(rows.shape[0], len(self._groups)))
        local = BlockDiagonal(self.kernel_, groups, None, width)
        kept = self._kept(rows)
        return Plan(self, rows, Factors(Z, local=local), kept, [kept])

    def _kept(self, rows: Rows) -> Amounts:
        return {"training rows": rows.shape[0] * (rows.row_bytes + 16)}

    def _nothing(self, rows: Rows) -> Rows:
        """Features of width 0."""
        return FeatureRows(rows, _no_features, 0, rows.dtype)

    # What K̃ is for rows.

    def _is_training(self, rows: Rows) -> bool:
        return self._trained_on is not None and self._trained_on() is rows

    def factor_rows(self, rows: Rows) -> Factors:
        """Like ``factor``, for rows that are already checked."""
        training = self._is_training(rows)
        groups, place = self._groups, rows.place
        rows = place.here(rows)
        if not training:
            labels = array_ops.to_numpy(nearest(rows, self.centres_))
            groups = Grouped.of(rows, np.asarray(labels), len(self._groups))
            groups = groups.astype(self._groups.points.dtype)
        between = self.approximation_
        Z = self._nothing(rows) if between is None else between.factor_rows(rows).parts
        return Factors(Z, local=self._diagonal_of(groups, place))

    def _diagonal_of(self, groups: Grouped, place: Place | None = None) -> BlockDiagonal:
        between = self.approximation_
        features = None if between is None else between._features
        return BlockDiagonal(self.kernel_, groups, features, self._width(), place=place)

    def in_double(self, rows: Rows) -> Local | None:
        if not self._single:
            return None
        double = copy(self)
        double._single = False
        if self.approximation_ is not None:
            between = self.approximation_.in_double(rows)
            double.approximation_ = self.approximation_ if between is None else between
        double._groups = self._groups.astype(rows.xp.float64)
        double.n_components_ = double._n_features_out = double._width() + rows.shape[0]
        return double

    def expressed(self, learned: Array | BlockFunction) -> BlockFunction:
        """Return the function Σ_i a_i k̃(x_i, ·) of coefficients a (n, k) of the training rows."""
        if isinstance(learned, BlockFunction):
            return learned
        return BlockFunction.of(self._diagonal_of(self._groups), learned)

    def values(self, rows: Rows, learned: Array | BlockFunction) -> tuple[Array, Factors | None]:
        """Return the values of a function for each row; see :meth:`Approximation.values`."""
        function = self.expressed(learned)
        label_of = nearest_in(self.centres_, rows)
        local = self._diagonal_of(self._groups)

        def at(x: Array, out: Array) -> Array:
            return function.at(local, x, np.asarray(array_ops.to_numpy(label_of(x))))

        serial = self.kernel_.serial
        k, double = function.dual.shape[1], rows.xp.float64
        values = rows.map(at, width=k, dtype=double, row_bytes=8 * k, serial=serial, label="blocks")
        return values, None

    def transform(self, X: RowsLike) -> Array:
        """Return features of the rows X, of shape (n, n_components_); for few rows.

        They are those of the approximation between blocks, and one for each training row. Their
        inner products are K̃ among training rows, and between these and other rows. Learners work
        on the blocks instead.
        """
        return super().transform(X)

    @one_blas_thread()
    def _transformed(self, rows: Rows) -> Array:
        n, width = rows.shape[0], self.n_components_
        rows.place.check_room(
            n * width * array_ops.itemsize(rows.dtype),
            f"{counted(width, 'feature')} of {counted(n, 'row')}",
            "Pass fewer rows; learners need no features",
        )
        label_of, xp = nearest_in(self.centres_, rows), rows.xp
        local, dtype = self._diagonal_of(self._groups), self._feature_dtype(rows)
        roots = local.each(lambda b: _inverse_root(local.block(b)))

        def features(x: Array, out: Array) -> Array:
            labels = np.asarray(array_ops.to_numpy(label_of(x)))
            z = array_ops.like(np.zeros((x.shape[0], width)), self.centres_, dtype)
            if self.approximation_ is not None:
                z[:, : local.width] = array_ops.astype(self.approximation_._features(x), dtype)
            for b in np.unique(labels):
                numbers, span = np.flatnonzero(labels == b), local.groups.span(b)
                left_out = local.between(b, array_ops.take_rows(x, numbers))
                turned = array_ops.astype(xp.matrix_transpose(left_out), xp.float64)
                columns = slice(local.width + span.start, local.width + span.stop)
                own = array_ops.take_rows(z, numbers)
                own[:, columns] = array_ops.astype(turned @ roots[b], dtype)
                array_ops.put_rows(z, numbers, own)
            return z

        result = rows.map(features, width=width, dtype=dtype, serial=self.kernel_.serial)
        return rows.place.hand_back(result)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_trained_on": None}


def _inverse_root(D: Array) -> Array:
    """Return V Λ^-½ for the eigenvectors and eigenvalues of a block; 0 for those that are 0."""
    xp = array_ops.namespace(D)
    values, vectors = xp.linalg.eigh(array_ops.astype(D, xp.float64))
    host = array_ops.to_numpy(values)
    least = len(host) * array_ops.eps(D.dtype) * max(float(host[-1]), 0.0)
    inverse = np.where(host > least, 1.0 / np.sqrt(np.where(host > least, host, 1.0)), 0.0)
    return vectors * array_ops.like(inverse, vectors)


def _no_features(x: Array, out: Array | None = None) -> Array:
    return array_ops.empty((x.shape[0], 0), x, x.dtype)
