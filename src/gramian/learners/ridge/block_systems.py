"""The blocks of a system where K̃ = Z Zᵀ + D: their factors, and what they tell together.

Arrays of blocks are stacked: those of a batch have the shape (blocks, rows, columns). On the CPU a
batch is one block; on a device it has several, and shorter ones are padded with rows that are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.triangles import Triangles
from gramian.learners.ridge.systems import System
from gramian.learners.strategy import room_left
from gramian.matrices.block_diagonal import BlockDiagonal
from gramian.matrices.block_rows import Batch


class Inner(NamedTuple):
    """What is needed of a batch for one alpha, weighted by W^½."""

    z: Array | None  # Z_b, (b, n, r)
    targets: Array  # A_b⁻¹ Y_b, (b, n, t), or (b, n, t + 1) with q as last target
    features: Array | None  # A_b⁻¹ Z_b, (b, n, r)
    diagonal: Array | None  # of A_b⁻¹, (b, n), where it is wanted; 0 for rows that are not


class Between(NamedTuple):
    """What all blocks tell together."""

    factor: np.ndarray | None  # of M; None where nothing is between blocks
    w: np.ndarray | None  # (r, t), or (r, t + 1)
    along: np.ndarray | None  # qᵀd, (t + 1,); None without an intercept

    @property
    def b(self) -> np.ndarray:
        """What is taken of d_q for each target."""
        assert self.along is not None
        return self.along[:-1] / self.along[-1]


Operation = Callable[["Blocks", Batch], Any]


class Blocks:
    """The blocks of the system for one alpha and some of the targets.

    Parameters
    ----------
    system : System
    alpha : float
    columns : array
        The numbers of these targets.
    diagonal : bool or array, default=False
        Whether the diagonal of the inverse is wanted, or the numbers of rows for which it is.
    """

    def __init__(
        self,
        system: System,
        alpha: float,
        columns: np.ndarray,
        *,
        diagonal: bool | np.ndarray = False,
    ) -> None:
        local = local_of(system)
        points, groups = local.groups.points, local.groups
        self.local = local
        self.alpha = alpha
        self.wants_diagonal = diagonal is not False
        self.wanted: np.ndarray | None = None  # in the order of the blocks; None for all rows
        if not isinstance(diagonal, bool):
            self.wanted = np.flatnonzero(np.isin(groups.order, diagonal))
        Y = array_ops.take_columns(system.weighted(system.Y), columns)
        self.intercept = system.intercept
        if self.intercept:
            Y = array_ops.namespace(Y).concat((Y, system.q), axis=1)
        self.Y = array_ops.like(groups.arrange(Y), points)
        root = system.root
        self.root = None if root is None else array_ops.like(groups.arrange(root), points)
        self.xp = array_ops.namespace(points)
        self.shares: Array | None = None  # as in Repeats, in the order of the blocks, in float64
        self.kept: dict[tuple[int, ...], Inner] | None = {} if keeps(system) else None

    def weighted(self, batch: Batch, V: Array) -> Array:
        """W^½ V for a stacked array."""
        if self.root is None:
            return V
        return V * array_ops.astype(batch.stack(self.root), V.dtype)

    def inner(self, batch: Batch) -> Inner:
        if self.kept is not None and batch.blocks in self.kept:
            return self.kept[batch.blocks]
        found = self._solve(batch)
        if self.kept is not None:
            self.kept[batch.blocks] = found
        return found

    def _solve(self, batch: Batch) -> Inner:
        local, dtype = self.local, self.local.dtype
        A, z = local.stacked(batch)
        A = array_ops.astype(A, dtype)
        if self.root is not None:
            root = array_ops.astype(batch.stack(self.root), dtype)
            A *= root
            A *= self.xp.matrix_transpose(root)
        for i, present in enumerate(batch.rows):
            shift = array_ops.like(np.where(present, self.alpha, 1.0), A, dtype)
            array_ops.set_diagonal(A[i, ...], self.xp.linalg.diagonal(A[i, ...]) + shift)
        triangles = Triangles(A)

        def apart(B: Array) -> Array:
            return triangles.solve(array_ops.astype(B, dtype))

        z = None if z is None else self.weighted(batch, z)
        targets, features = apart(batch.stack(self.Y)), None if z is None else apart(z)
        diagonal = self._diagonal(batch, triangles) if self.wants_diagonal else None
        return Inner(z, targets, features, diagonal)

    def _diagonal(self, batch: Batch, triangles: Triangles) -> Array:
        """The diagonal of A_b⁻¹; of few rows i it is ‖L⁻¹ e_i‖²."""
        if self.wanted is None:
            return array_ops.astype(triangles.inverse_diagonal(), self.xp.float64)
        edges = np.searchsorted(self.wanted, [(span.start, span.stop) for span in batch.spans])
        units = np.zeros((len(edges), batch.height, int(np.diff(edges).max())))
        for i, (first, last) in enumerate(edges):
            own = self.wanted[first:last] - batch.spans[i].start
            units[i, own, np.arange(len(own))] = 1.0
        E = array_ops.like(units, self.local.groups.points, self.local.dtype)
        found = self.xp.sum(triangles.halfway(E) ** 2, axis=1)[:, None, :]
        return array_ops.astype(self.xp.sum(E * found, axis=2), self.xp.float64)

    def only(self, start: int, stop: int) -> Blocks:
        """Some of the blocks, for a worker: it has neither the others nor their rows."""
        part, edges = copy(self), self.local.groups.edges
        rows = slice(int(edges[start]), int(edges[stop]))
        part.local, part.Y = self.local.only(start, stop), self.Y[rows, :]
        part.root = None if self.root is None else self.root[rows, :]
        part.shares = None if self.shares is None else self.shares[rows, :]
        if self.wanted is not None:
            inside = (self.wanted >= rows.start) & (self.wanted < rows.stop)
            part.wanted = self.wanted[inside] - rows.start
        part.kept = None
        return part

    def walk(self, operation: Operation, label: str) -> Iterator[tuple[Batch, Any]]:
        """Yield batches, and what an operation gives for each of them."""
        shares, batches = self.local.shares(), self.local.batches()
        if not shares:
            found = self.local.walk(partial(operation, self), label, batches)
            yield from zip(batches, found, strict=True)
            return
        assert self.local.place is not None
        parts = [partial(_each, self.only(*span), operation) for span in shares]
        for (first, _), part in zip(shares, self.local.place.call(parts) or (), strict=True):
            for blocks, found in part:
                yield self.local.batch([first + b for b in blocks]), found

    def total(self, operation: Operation, label: str) -> list[np.ndarray]:
        """The sums of the arrays that an operation gives for each batch."""
        parts = [partial(_added, self.only(*span), operation) for span in self.local.shares()]
        if not parts:
            return _added(self, operation, label)
        assert self.local.place is not None
        return _sum(self.local.place.call(parts) or ())

    def between(self) -> Between:
        """M, w and qᵀd, from sums over the blocks."""
        if not self.local.width and not self.intercept:
            return Between(None, None, None)
        M, right, along = self.total(Blocks.sums, "kernel ridge")
        factor = w = None
        if self.local.width:
            M = np.eye(len(M)) + (M + M.T) / 2
            factor = scipy.linalg.cholesky(M, lower=True)
            w = scipy.linalg.cho_solve((factor, True), right)
            along = along - right[:, -1] @ w  # its last column is Zᵀ A⁻¹ q
        return Between(factor, w, along if self.intercept else None)

    def sums(self, batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ Z_bᵀ A_b⁻¹ Z_b, Σ Z_bᵀ A_b⁻¹ Y_b and, for the last column of Y, Σ Y_bᵀ A_b⁻¹ Y_b."""
        inner, xp = self.inner(batch), self.xp
        last = xp.matrix_transpose(batch.stack(self.Y)[:, :, -1:])
        along = self._summed(last, inner.targets)[0, :]
        if inner.z is None:
            return np.empty((0, 0)), np.empty((0, len(along))), along
        turned = xp.matrix_transpose(inner.z)
        return self._summed(turned, inner.features), self._summed(turned, inner.targets), along

    def _summed(self, left: Array, right: Array) -> np.ndarray:
        """The sum of the products of two stacks of matrices, on the host."""
        products = left @ array_ops.astype(right, left.dtype)
        return array_ops.host_float64(products).sum(axis=0)

    def coefficients(self, batch: Batch, found: Between) -> tuple[Inner, Array, Array | None]:
        """The batch, its d (b, n, t) in float64, and with an intercept d_q (b, n, 1)."""
        inner = self.inner(batch)
        own = array_ops.astype(inner.targets, self.xp.float64)
        if found.w is not None and inner.features is not None:
            moved = array_ops.like(found.w, inner.features, self.xp.float64)
            own = own - array_ops.astype(inner.features, self.xp.float64) @ moved
        if found.along is None:
            return inner, own, None
        own, constant = own[:, :, :-1], own[:, :, -1:]
        return inner, own - constant * array_ops.like(found.b, own), constant

    def finished(
        self, batch: Batch, found: Between
    ) -> tuple[Array, np.ndarray | None, Array | None]:
        """The coefficients a_b of each block, Z_bᵀ a_b if there are features, and the diagonal."""
        inner, own, constant = self.coefficients(batch, found)
        free = None if inner.diagonal is None else self.free(inner, constant, found)[..., None]
        if inner.z is None:
            return self.weighted(batch, own), None, free
        turned = self.xp.matrix_transpose(array_ops.astype(inner.z, self.xp.float64))
        return self.weighted(batch, own), array_ops.to_numpy(turned @ own), free

    def free(self, inner: Inner, constant: Array | None, found: Between) -> Array:
        """The diagonal of the inverse of the whole matrix, (b, n)."""
        xp, free = self.xp, inner.diagonal
        assert free is not None
        if found.factor is not None:
            assert inner.features is not None
            b, n, r = inner.features.shape
            flat = xp.reshape(array_ops.astype(inner.features, xp.float64), (b * n, r))
            factor = array_ops.like(found.factor, flat)
            half = linalg.solve_lower(factor, xp.matrix_transpose(flat))
            free = free - xp.reshape(xp.sum(half**2, axis=0), (b, n))
        if constant is not None:
            assert found.along is not None
            free = free - constant[:, :, 0] ** 2 / float(found.along[-1])
        least = float(np.finfo(float).tiny)
        return xp.where(free > least, free, xp.full_like(free, least))

    def missed(self, batch: Batch, found: Between, by: str) -> tuple[np.ndarray, np.ndarray]:
        """The squared errors of the rows, divided by alpha, and the sum of the inverse's diagonal.

        1 - h is alpha times the diagonal. A fit without a row's group, which has its mean as
        target, misses it by alpha d / (1 - Σ h).
        """
        xp = self.xp
        inner, own, constant = self.coefficients(batch, found)
        free = self.free(inner, constant, found)
        if by == "loo" and self.shares is None:
            own = own / (self.alpha * free[:, :, None])
        elif by == "loo":
            shares = batch.stack(self.shares)[:, :, 0]
            left = 1.0 - shares + shares * self.alpha * free  # exact for a row alone
            least = array_ops.eps(xp.float64)
            own = own / xp.where(left > least, left, xp.full_like(left, least))[:, :, None]
        counts = array_ops.like(batch.rows, free, xp.float64)
        if self.root is not None:
            counts = counts * array_ops.astype(batch.stack(self.root)[:, :, 0] > 0, xp.float64)
        squares = array_ops.host_float64(xp.sum(own**2, axis=(0, 1)))
        return squares, np.asarray(float(xp.sum(free * counts)))


def _each(blocks: Blocks, operation: Operation) -> list[tuple[tuple[int, ...], Any]]:
    return [(batch.blocks, found) for batch, found in blocks.walk(operation, "blocks")]


def _added(blocks: Blocks, operation: Operation, label: str = "blocks") -> list[np.ndarray]:
    return _sum(found for _, found in blocks.walk(operation, label))


def _sum(parts: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The sums of arrays that each part has, in float64."""
    total: list[np.ndarray] = []
    for part in parts:
        if not total:
            total = [np.zeros(np.shape(array)) for array in part]
        for array, more in zip(total, part, strict=True):
            array += more
    return total


# Memory.


def local_of(system: System) -> BlockDiagonal:
    local = system.factors.local
    assert local is not None
    return local


def _besides(system: System) -> Amounts:
    """What a solution takes besides what it keeps of each block."""
    local, t = local_of(system), system.n_targets
    n, r = system.factors.shape[0], local.width
    item, workers = array_ops.itemsize(local.dtype), local.at_once
    # A small alpha needs rows and blocks in float64.
    rows = 0 if item == 8 else n * local.groups.row_bytes * 8 // item
    return {
        "rows in float64": rows,
        "targets": 8 * n * (5 * t + 4),
        # M, its factor and its parts that wait to be added; a vector for each block.
        "what is between blocks": 8 * ((3 + 2 * workers) * r**2 + 2 * len(local) * r * t),
        # Besides D: features and targets in float64, and what they become.
        "blocks": local.work_bytes * 8 // item + workers * 3 * 8 * local.largest * (r + t),
    }


def _kept_bytes(system: System) -> int:
    """What it takes to keep Z_b, A_b⁻¹ Z_b and A_b⁻¹ Y_b of all blocks between the two passes.

    Where nothing is between blocks, not even an intercept, there is only one.
    """
    r, item = local_of(system).width, array_ops.itemsize(local_of(system).dtype)
    if not r and not system.intercept:
        return 0
    return system.factors.shape[0] * ((item + 8) * r + 8 * (system.n_targets + 2))


def keeps(system: System) -> bool:
    needed = _kept_bytes(system)
    return 0 < needed <= room_left(_besides(system)) // 2


def amounts(system: System) -> Amounts:
    kept = _kept_bytes(system) if keeps(system) else 0
    return {**_besides(system), "features and solutions": kept}
