"""Factors: an approximation K̃ = Z S Zᵀ + D of the kernel matrix, which is never formed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, Namespace
from gramian.backend.linalg import psd_root
from gramian.backend.typing import BlockSum, DType, Indices, Sums
from gramian.backend.wording import counted
from gramian.matrices.block_core import BlockCore
from gramian.matrices.block_diagonal import BlockDiagonal
from gramian.rows import ArrayRows, FeatureRows, Map, Parts, Rows, Walk
from gramian.rows.parts import slices

__all__ = ["Factors"]


class Factors:
    """K̃ = Z S Zᵀ + D with the features Z of n rows, a small symmetric core S and blocks D.

    The rows may be in parts. A row then has features only in the columns of its part, and only
    these are stored: Z is never expanded to all columns, and ZᵀZ is block-diagonal.

    Parameters
    ----------
    Z : Rows, sequence of Rows, or Parts
        One row of features for each row of the data, part by part. Features are either stored or
        recomputed in every pass.
    core : BlockCore, optional
        S. By default, the identity.
    order : array of int of shape (n,), optional
        The row numbers in the data of the rows of the parts. By default, they are in order.
    local : BlockDiagonal, optional
        D, the difference between K and Z S Zᵀ inside blocks of rows. By default, 0. ``rmatmul``,
        ``features_matmul``, ``coordinates``, ``map`` and ``sum`` are about Z only.

    Attributes
    ----------
    parts : Parts
        The features of each part. ``parts.columns`` has the columns of Z, and the rows and columns
        of S, of each part; ``parts.place`` says where the rows are.

    See Also
    --------
    Gram : the exact matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import ArrayRows, Factors
    >>> factors = Factors(ArrayRows(np.array([[1.0, 0.0], [1.0, 2.0]])))
    >>> factors.matmul(np.array([1.0, 1.0]))
    array([2., 6.])
    >>> factors.diagonal()
    array([1., 5.])

    Two parts; the first contains the second and third rows:

    >>> Z = ArrayRows(np.array([[1.0], [2.0]])), ArrayRows(np.array([[3.0]]))
    >>> Factors(Z, order=[1, 2, 0]).dense()
    array([[9., 0., 0.],
           [0., 1., 2.],
           [0., 2., 4.]])
    """

    def __init__(
        self,
        Z: Rows | Sequence[Rows] | Parts,
        core: BlockCore | None = None,
        order: Indices | None = None,
        local: BlockDiagonal | None = None,
    ) -> None:
        if not isinstance(Z, Parts):
            order = None if order is None else np.asarray(order)
            Z = Parts([Z] if isinstance(Z, Rows) else list(Z), order)
        self.parts = Z
        self.core = core
        self.local = local

    def __setstate__(self, state: dict[str, Any]) -> None:
        if not isinstance(state.get("parts"), Parts):  # a file can contain anything
            raise ValueError("factors need parts of Z")
        vars(self).update(state)

    def __repr__(self) -> str:
        count = len(self.parts.columns)
        parts = f"{count} parts, " if count > 1 else ""
        if self.local is not None:
            parts += f"{counted(len(self.local), 'exact block')}, "
        return f"Factors(n={self.shape[0]}, rank={self.rank}, {parts}{self.nbytes / 1e6:.3g} MB)"

    @property
    def dtype(self) -> DType:
        """The dtype of Z."""
        return self.parts.dtype

    @property
    def xp(self) -> Namespace:
        """The array API namespace of blocks of Z."""
        return array_ops.namespace(self.parts.example())

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of K̃."""
        n = self.parts.shape[0]
        return n, n

    @property
    def rank(self) -> int:
        """The number of columns of Z, an upper bound on the rank of Z S Zᵀ."""
        return self.parts.shape[1]

    @property
    def nbytes(self) -> int:
        """The memory that Z, S, D and the order of the rows take if they are stored."""
        core = 0 if self.core is None else self.core.nbytes
        local = 0 if self.local is None else self.local.nbytes
        return self.parts.nbytes() + self.parts.order_nbytes() + core + local

    def persist(
        self, room: int | None = None, *, partly: bool = False, half: bool = False
    ) -> Factors:
        """Return these factors with Z stored in memory, if it fits.

        ``room`` is the memory available, by default half of the budget. With ``partly``, the
        features of as many rows as fit are stored, and the others are recomputed in every pass.
        With ``half``, they are stored in half precision. On a cluster, the workers' memory counts,
        and features are stored for all rows or none. D is stored if there is room left for it.
        """
        count = keepable(self, room, partly=partly, half=half)
        parts = self.parts if count == 0 else self.parts.persist(count, half=half)
        local = self.local
        if local is not None:
            room = config.memory_budget() // 2 if room is None else room
            local = local.persist(room - self.parts.kept_bytes(count, half=half))
        if parts is self.parts and local is self.local:
            return self
        return Factors(parts, self.core, local=local)

    def take(self, numbers: np.ndarray) -> Factors:
        """Return the factors of the rows with these numbers, stored in memory."""
        local = None if self.local is None else self.local.take(numbers)
        return Factors(self.parts.take(numbers), self.core, local=local)

    def coordinates(self, numbers: np.ndarray) -> Array:
        """Return a few rows of Z with all columns, shape (k, rank), in float64; most are 0."""
        few = self.parts.take(np.asarray(numbers))
        if len(few) == 1:
            rows = few.restore(array_ops.astype(few[0].collect(), self.xp.float64))
            return array_ops.like(rows, self.parts.example(), self.xp.float64)
        blocks = [np.asarray(array_ops.to_numpy(Z.collect()), dtype=np.float64) for Z in few]
        rows = few.restore(scipy.linalg.block_diag(*blocks))
        return array_ops.like(rows, self.parts.example(), self.xp.float64)

    # Walks. Aligned arrays and results of map are in the order of the parts.

    def arrange(self, V: Array) -> Array:
        """Reorder an array of shape (n, ...) from the order of the data to that of the parts."""
        return self.parts.arrange(V)

    def restore(self, V: Array) -> Array:
        """Undo ``arrange``."""
        return self.parts.restore(V)

    def map(
        self, prepare: Callable[[slice], Callable[..., Array]], *aligned: Array, **walk: Any
    ) -> Array:
        """Return one result per row; see :meth:`Rows.map`.

        ``prepare(columns)`` returns the function for blocks of the part with these columns of Z.
        """
        options = Walk(**{"label": "features", **walk})
        return self.parts.map(prepare, aligned, options.for_map(self.dtype))

    def sum(
        self,
        prepare: Callable[[slice], BlockSum],
        *aligned: Array,
        state: Sequence[Array] | None = None,
        **walk: Any,
    ) -> Sums:
        """Return a list of the sums over the blocks of each part; see :meth:`Rows.sum`.

        ``prepare(columns)`` returns the function for blocks of the part with these columns of Z.
        With a ``state``, the result is a pair: the list, and the state afterwards.
        """
        return self.parts.sum(prepare, aligned, state, Walk(**{"label": "features", **walk}))

    # Products.

    def features_matmul(self, W: Array) -> Array:
        """Return Z @ W, in float64."""  # W: (rank, k)
        if W.ndim == 1:
            return self.features_matmul(W[:, None])[:, 0]
        xp = self.xp
        C, P = unprojected(self)
        if P is not None and 4 * W.shape[1] <= self.rank:
            # C (P W) costs far less than (C P) W, and C P is not rounded to float32 on the way.
            return C.restore(C.parts.matmul(P @ array_ops.like(W, P, xp.float64)))
        W = array_ops.astype(W, self.dtype)

        def prepare(columns: slice) -> Callable[..., Array]:
            w = array_ops.contiguous(W[columns, :])
            return lambda z, out: array_ops.astype(array_ops.matmul(z, w), xp.float64)

        return self.restore(self.map(prepare, width=W.shape[1], dtype=xp.float64))

    def rmatmul(self, V: Array) -> Array:
        """Return Zᵀ @ V, in float64."""  # V: (n, k)
        V = V if array_ops.is_foreign(V) else array_ops.to_numpy(V)
        if V.ndim == 1:
            return self.rmatmul(V[:, None])[:, 0]
        xp, dtype = self.xp, self.dtype

        def product(z: Array, v: Array) -> Array:
            return xp.matrix_transpose(z) @ array_ops.astype(v, dtype)

        parts = self.sum(lambda columns: product, self.arrange(V))
        return xp.concat([array_ops.astype(part, xp.float64) for part in parts], axis=0)

    def core_matmul(self, W: Array) -> Array:
        """Return S @ W in float64, for W of shape (rank, k)."""
        if self.core is None:
            return W
        product = self.core.matmul(np.asarray(array_ops.to_numpy(W), dtype=np.float64))
        return array_ops.like(product, W, self.xp.float64)

    def matmul(self, V: Array) -> Array:
        """Return K̃ @ V in float64, for V of shape (n,) or (n, k)."""
        product = self.features_matmul(self.core_matmul(self.rmatmul(V)))
        return product if self.local is None else product + self.local.matmul(V)

    def columns(self, numbers: Indices) -> Array:
        """Return the columns of K̃ with these numbers, shape (n, len(numbers)), in float64."""
        numbers = np.asarray(numbers)
        columns = self._columns_with(self.coordinates(numbers))
        return columns if self.local is None else columns + self.local.columns(numbers)

    def block(self, i: Indices, j: Indices) -> Array:
        """Return the rows i and columns j of K̃, in float64."""
        rows = self.take(np.asarray(i))
        return rows.dense(None if i is j else self.take(np.asarray(j)))

    def _columns_with(self, coordinates: Array) -> Array:
        """Return Z S Zᵀ with k other rows, whose features in all columns have shape (k, rank)."""
        return self.features_matmul(self.core_matmul(self.xp.matrix_transpose(coordinates)))

    def diagonal(self) -> Array:
        """Return the diagonal of K̃, in float64."""
        if self.local is not None:  # exact
            rows = ArrayRows(self.local.groups.points)
            diagonal = self.local.groups.restore(self.local.kernel.diagonal(rows))
            return array_ops.astype(diagonal, self.xp.float64)
        return self.restore(self.map(partial(norms_in, self), dtype=self.xp.float64))

    diag = diagonal  # as in Gram: both are oracles of a matrix

    def dense(self, other: Factors | None = None) -> Array:
        """Return K̃, or K̃ with ``other`` rows of the same approximation; for few rows."""
        other = self if other is None else other
        if self.local is None or other.local is None:
            return self._features_dense(other)
        own = None if other is self else other.local
        return self._features_dense(other) + self.local.dense(own)

    def _features_dense(self, other: Factors) -> Array:
        """Z S Zᵀ of these rows with other ones."""
        right = other.parts.arrays()
        left = None if right is None else self.parts.arrays()
        if left is None or right is None:
            config.check_fits(
                8 * other.shape[0] * self.rank,
                f"features of {counted(other.shape[0], 'row')}",
                "Pass fewer",
            )
            return self._columns_with(other.coordinates(np.arange(other.shape[0])))
        xp, example = self.xp, self.parts.example()
        out = array_ops.empty((self.shape[0], other.shape[0]), example, xp.float64)
        right = [array_ops.astype(z, xp.float64) for z in right]
        here, there = slices(self.parts.sizes), slices(other.parts.sizes)
        for Z, rows, columns in zip(left, here, self.parts.columns, strict=True):
            lifted = array_ops.like(np.zeros((self.rank, Z.shape[0])), example, xp.float64)
            lifted[columns, :] = xp.matrix_transpose(array_ops.astype(Z, xp.float64))
            ZS = xp.matrix_transpose(self.core_matmul(lifted))  # (rows of the part, rank)
            for z, other_rows, other_columns in zip(right, there, other.parts.columns, strict=True):
                out[rows, other_rows] = ZS[:, other_columns] @ xp.matrix_transpose(z)
        turned = other.restore(xp.matrix_transpose(self.restore(out)))
        return xp.matrix_transpose(turned)


def in_parts(
    rows: Rows,
    labels: Array,
    maps: Sequence[Map],
    core: BlockCore | None,
    *,
    dtype: DType,
    serial: bool = False,
) -> Factors:
    """Return factors of rows in parts; the label of a row selects the map for its features."""
    return Factors(rows.place.in_parts(rows, labels, maps, dtype, serial), core)


def keepable(
    factors: Factors, room: int | None = None, *, partly: bool = False, half: bool = False
) -> int:
    """Return how many rows of Z ``persist`` stores: none, all or, with ``partly``, some."""
    core = 0 if factors.core is None else factors.core.nbytes
    return factors.parts.keepable(room, partly=partly, half=half, besides=core)


def projected(factors: Factors) -> Factors | None:
    """Return factors of C if Z is a product C P, such as kernel values times a matrix."""
    product = factors.parts.product() if factors.core is None else None
    return None if product is None else Factors(product[0])


def unprojected(factors: Factors) -> tuple[Factors, Array | None]:
    """Return factors of C, and P in float64, if Z is a product C P; else the factors, and None."""
    product = factors.parts.product() if factors.core is None else None
    if product is None:
        return factors, None
    return Factors(product[0]), array_ops.astype(product[1], factors.xp.float64)


def in_single(factors: Factors) -> Factors | None:
    """Return factors of Z = C P whose values are computed in float64 and rounded to float32.

    None if Z is no product.
    """
    product = factors.parts.product() if factors.core is None else None
    if product is None:
        return None
    single = factors.xp.float32
    (values,), (features,) = product[0], factors.parts
    assert isinstance(values, FeatureRows) and isinstance(features, FeatureRows)
    return Factors(features.rounded(single, (values.rounded(single), product[1])))


def norms_in(factors: Factors, columns: slice) -> Callable[..., Array]:
    """Return a function that computes zᵀSz for each row of a block of the part's features."""
    xp, dtype = factors.xp, factors.dtype
    if factors.core is None:
        return lambda z, out=None: array_ops.astype(array_ops.row_norms(z), xp.float64)
    block = factors.core.block(factors.parts.columns.index(columns))
    core = array_ops.like(block, factors.parts.example(), dtype)
    return lambda z, out=None: array_ops.astype(xp.sum((z @ core) * z, axis=1), xp.float64)


def features(factors: Factors, into: Array | None = None) -> Array:
    """Return F of shape (n, rank of S) with K̃ = F Fᵀ, even if Z is in parts.

    If F is Z itself, it is written to ``into``.
    """
    parts = factors.parts
    if len(parts) == 1 and factors.core is None:
        return parts.values(into)
    root = np.eye(factors.rank) if factors.core is None else psd_root(factors.core.dense())
    right = array_ops.like(root, parts.example(), factors.dtype)

    def prepare(columns: slice) -> Callable[..., Array]:
        r = right[columns, :]
        return lambda z, out: array_ops.matmul(z, r, out)

    return factors.restore(factors.map(prepare, width=root.shape[1], dtype=factors.dtype))
