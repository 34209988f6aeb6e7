"""Kernel ridge where K̃ = Z Zᵀ + D is exact inside blocks: a Cholesky factor for each block.

With A_b = D_b + alpha I, M = I + Σ Z_bᵀ A_b⁻¹ Z_b and w = M⁻¹ Σ Z_bᵀ A_b⁻¹ Y_b, the coefficients
are a_b = A_b⁻¹ (Y_b - Z_b w). The inverse of K̃ + alpha I has the blocks
A_b⁻¹ - A_b⁻¹ Z_b M⁻¹ Z_bᵀ A_b⁻¹; a fit without row i misses it by a_i divided by the i-th entry of
the diagonal. Weighted rows have W^½ on both sides. With an intercept, q is one more target, whose
solution d_q turns d into d - d_q b, orthogonal to q, and takes d_q² / qᵀd_q from the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.learners.ridge.exact import left_out_rows
from gramian.learners.ridge.factored import Sums
from gramian.learners.ridge.systems import AlphaPath, Solution, System, indefinite
from gramian.learners.strategy import Strategy, room_left
from gramian.matrices.block_diagonal import BlockDiagonal
from gramian.matrices.block_function import BlockFunction

COARSE = 8  # of the steps of the grid of alphas, at first
SAMPLED = 500  # rows that tell the largest eigenvalue


class LocalDirect(Strategy[System]):
    """A Cholesky factor of each block, and Woodbury's identity for what is between them."""

    def serves(self, system: System) -> bool:
        return system.is_local and system.rule is None and not system.iterates

    def memory(self, system: System) -> Sequence[Amounts]:
        return [_memory(system)]

    def solve(self, system: System) -> Solution:
        return _solution(system, system.alphas)


class LocalPath(Strategy[System]):
    """Choose alpha by leaving out rows, with factors for few alphas: first far apart, then near."""

    def serves(self, system: System) -> bool:
        return system.is_local and system.rule is not None

    def memory(self, system: System) -> Sequence[Amounts]:
        sampled = 5 * 8 * min(system.factors.shape[0], SAMPLED) ** 2
        return [{"sampled rows": sampled}, _memory(system)]

    def solve(self, system: System) -> Solution:
        rule = system.rule
        assert rule is not None
        grid = rule.alphas(_largest(system), _local(system).dtype)
        errors: dict[int, np.ndarray] = {}
        step = 1 if rule.grid is not None else COARSE
        wanted = list(range(0, len(grid), step))
        while wanted:
            for i in wanted:
                try:
                    errors[i] = _error(system, float(grid[i]), rule.error)
                except linalg.NotPositiveDefiniteError:  # alpha is below rounding
                    errors[i] = np.full(system.n_targets, np.inf)
            tried = np.array(sorted(errors))
            table = np.array([errors[i] for i in tried])
            table = table.mean(axis=1, keepdims=True) if rule.shared else table
            step //= 2
            near = {int(i) + side for i in tried[table.argmin(axis=0)] for side in (-step, step)}
            wanted = sorted(i for i in near - set(errors) if step and 0 <= i < len(grid))
        tried = np.array(sorted(errors))
        path = AlphaPath(grid[tried], np.array([errors[i] for i in tried]))
        chosen = rule.choose(path.alphas, path.errors)
        return _solution(system, chosen)._replace(alphas=chosen, path=path)


class _Inner(NamedTuple):
    """What is needed of a block for one alpha, weighted by W^½."""

    z: Array | None  # Z_b, of shape (n_b, r)
    targets: Array  # A_b⁻¹ Y_b, of shape (n_b, t), or (n_b, t + 1) with q as last target
    features: Array | None  # A_b⁻¹ Z_b, of shape (n_b, r)
    diagonal: Array | None  # of A_b⁻¹, where it is wanted


class _Between(NamedTuple):
    """What all blocks tell together."""

    factor: np.ndarray | None  # of M; None where nothing is between blocks
    w: np.ndarray | None  # (r, t), or (r, t + 1)
    along: np.ndarray | None  # qᵀd, (t + 1,); None without an intercept

    @property
    def b(self) -> np.ndarray:
        """What is taken of d_q for each target."""
        assert self.along is not None
        return self.along[:-1] / self.along[-1]


class _Blocks:
    """The blocks of the system for one alpha and some of the targets."""

    def __init__(
        self, system: System, alpha: float, columns: np.ndarray, *, diagonal: bool = False
    ) -> None:
        local = _local(system)
        points, groups = local.groups.points, local.groups
        self.local = local
        self.alpha = alpha
        self.wants_diagonal = diagonal
        Y = array_ops.take_columns(system.weighted(system.Y), columns)
        self.intercept = system.intercept
        if self.intercept:
            Y = array_ops.namespace(Y).concat((Y, system.q), axis=1)
        self.Y = array_ops.like(groups.arrange(Y), points)
        root = system.root
        self.root = None if root is None else array_ops.like(groups.arrange(root), points)
        self.xp = array_ops.namespace(points)
        self.kept: dict[int, _Inner] | None = {} if _keeps(system) else None

    def weighted(self, b: int, V: Array) -> Array:
        """W^½ V for an array of a block's rows."""
        return V if self.root is None else V * array_ops.astype(self._of(b, self.root), V.dtype)

    def _of(self, b: int, V: Array) -> Array:
        return V[self.local.groups.span(b), :]

    def inner(self, b: int) -> _Inner:
        if self.kept is not None and b in self.kept:
            return self.kept[b]
        found = self._solve(b)
        if self.kept is not None:
            self.kept[b] = found
        return found

    def _solve(self, b: int) -> _Inner:
        local, dtype = self.local, self.local.dtype
        x = local.groups.rows(b)
        z = local.features(x)
        A = array_ops.astype(local.left_out(x, z), dtype)
        if self.root is not None:
            root = array_ops.astype(self._of(b, self.root), dtype)
            A *= root
            A *= root[:, 0]
        A = array_ops.set_diagonal(A, self.xp.linalg.diagonal(A) + self.alpha)
        L = linalg.lower_factor(A)

        def apart(B: Array) -> Array:
            inside = linalg.solve_lower(L, array_ops.astype(B, dtype))
            return linalg.solve_lower(L, inside, transposed=True)

        z = None if z is None else self.weighted(b, z)
        targets, features = apart(self._of(b, self.Y)), None if z is None else apart(z)
        diagonal = None
        if self.wants_diagonal:
            diagonal = array_ops.astype(linalg.diagonal_of_inverse(L), self.xp.float64)
        return _Inner(z, targets, features, diagonal)

    def only(self, start: int, stop: int) -> _Blocks:
        """Some of the blocks, for a worker: it has neither the others nor their rows."""
        part, edges = copy(self), self.local.groups.edges
        rows = slice(int(edges[start]), int(edges[stop]))
        part.local, part.Y = self.local.only(start, stop), self.Y[rows, :]
        part.root = None if self.root is None else self.root[rows, :]
        part.kept = None
        return part

    def walk(self, operation: Callable[[_Blocks, int], Any], label: str) -> Iterator[Any]:
        """Yield what an operation gives for each block, in their order."""
        parts = [partial(_each, self.only(*span), operation) for span in self.local.shares()]
        if parts:
            assert self.local.place is not None
            yield from chain(*(self.local.place.call(parts) or ()))
        else:
            yield from self.local.walk(partial(operation, self), label)

    def total(self, operation: Callable[[_Blocks, int], Any], label: str) -> list[np.ndarray]:
        """The sums of the arrays that an operation gives for each block."""
        parts = [partial(_added, self.only(*span), operation) for span in self.local.shares()]
        if not parts:
            return _added(self, operation, label)
        assert self.local.place is not None
        return _sum(self.local.place.call(parts) or ())

    def between(self) -> _Between:
        """M, w and qᵀd, from sums over the blocks."""
        if not self.local.width and not self.intercept:
            return _Between(None, None, None)
        M, right, along = self.total(_Blocks.sums, "kernel ridge")
        factor = w = None
        if self.local.width:
            M = np.eye(len(M)) + (M + M.T) / 2
            factor = scipy.linalg.cholesky(M, lower=True)
            w = scipy.linalg.cho_solve((factor, True), right)
            along = along - right[:, -1] @ w  # its last column is Zᵀ A⁻¹ q
        return _Between(factor, w, along if self.intercept else None)

    def sums(self, b: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Z_bᵀ A_b⁻¹ Z_b, Z_bᵀ A_b⁻¹ Y_b and, for the last column of Y, Y_bᵀ A_b⁻¹ Y_b."""
        inner = self.inner(b)
        last = self._of(b, self.Y)[:, -1]
        along = array_ops.host_float64(last @ array_ops.astype(inner.targets, last.dtype))
        if inner.z is None:
            return np.empty((0, 0)), np.empty((0, len(along))), along
        turned = self.xp.matrix_transpose(inner.z)
        products = (turned @ array_ops.astype(V, turned.dtype) for V in inner[1:3])
        h, G = (array_ops.host_float64(product) for product in products)
        return G, h, along

    def coefficients(self, b: int, found: _Between) -> tuple[_Inner, Array, Array | None]:
        """The block, its d (n_b, t) in float64, and with an intercept d_q (n_b, 1)."""
        inner = self.inner(b)
        own = array_ops.astype(inner.targets, self.xp.float64)
        if found.w is not None and inner.features is not None:
            moved = array_ops.like(found.w, inner.features, self.xp.float64)
            own = own - array_ops.astype(inner.features, self.xp.float64) @ moved
        if found.along is None:
            return inner, own, None
        own, constant = own[:, :-1], own[:, -1:]
        return inner, own - constant * array_ops.like(found.b, own), constant


def solved(system: System, alphas: np.ndarray) -> Solution:
    """The learned function and its intercepts, with one alpha for each target."""
    local, t = _local(system), len(alphas)
    xp, n = array_ops.namespace(local.groups.points), system.factors.shape[0]
    dual = array_ops.empty((n, t), local.groups.points, xp.float64)
    others, intercepts = np.zeros((len(local), local.width, t)), np.zeros(t)
    freedom = np.zeros((n if system.sampled is not None else 0, t))
    for alpha in np.unique(alphas):
        where = np.flatnonzero(alphas == alpha)
        blocks = _Blocks(system, float(alpha), where, diagonal=system.sampled is not None)
        found = blocks.between()
        if found.along is not None:
            intercepts[where] = found.b / system.weight**0.5
        found_of = partial(_finished, found=found)
        for b, (own, share, free) in enumerate(blocks.walk(found_of, "kernel ridge")):
            for i, column in enumerate(where):
                dual[local.groups.span(b), int(column)] = own[:, i]
            if free is not None:
                freedom[local.groups.span(b), where] = free[:, None]
            if share is not None:
                others[b][:, where] = share
    function = BlockFunction(dual, None)
    if local.width:
        function = BlockFunction.from_shares(dual, array_ops.like(others, dual))
    dual = local.groups.restore(dual)
    left_out = None
    if system.sampled is not None:
        freedom = array_ops.host_float64(local.groups.restore(array_ops.like(freedom, dual)))
        left_out = left_out_rows(system, dual, freedom[system.sampled])
    return Solution(
        dual, intercepts if system.intercept else None, left_out=left_out, function=function
    )


def _solution(system: System, alphas: np.ndarray) -> Solution:
    try:
        return solved(system, alphas)
    except linalg.NotPositiveDefiniteError:
        indefinite("negative eigenvalues larger than alpha in a block")


def _finished(
    blocks: _Blocks, b: int, found: _Between
) -> tuple[Array, np.ndarray | None, np.ndarray | None]:
    """The coefficients a_b of a block, Z_bᵀ a_b if there are features, and the diagonal."""
    inner, own, constant = blocks.coefficients(b, found)
    free = None
    if inner.diagonal is not None:
        free = array_ops.host_float64(_free(blocks, inner, constant, found))
    if inner.z is None:
        return blocks.weighted(b, own), None, free
    turned = blocks.xp.matrix_transpose(array_ops.astype(inner.z, blocks.xp.float64))
    return blocks.weighted(b, own), array_ops.to_numpy(turned @ own), free


def _free(blocks: _Blocks, inner: _Inner, constant: Array | None, found: _Between) -> Array:
    """The diagonal of the inverse of the whole matrix, for a block's rows."""
    xp, free = blocks.xp, inner.diagonal
    assert free is not None
    if found.factor is not None:
        assert inner.features is not None
        turned = xp.matrix_transpose(array_ops.astype(inner.features, xp.float64))
        free = free - xp.sum(
            linalg.solve_lower(array_ops.like(found.factor, turned), turned) ** 2, axis=0
        )
    if constant is not None:
        assert found.along is not None
        free = free - constant[:, 0] ** 2 / float(found.along[-1])
    least = float(np.finfo(float).tiny)
    return xp.where(free > least, free, xp.full_like(free, least))


def _error(system: System, alpha: float, by: str) -> np.ndarray:
    """The error of leaving out rows, or generalised cross-validation, for each target."""
    blocks = _Blocks(system, alpha, np.arange(system.n_targets), diagonal=True)
    sums = Sums.without_features(system.Y, system.weights)
    missed = partial(_missed, found=blocks.between(), by=by)
    total, free = blocks.total(missed, "leaving out rows")
    if by == "loo":
        return total / sums.weight
    return total / sums.weight * (sums.rows / float(free)) ** 2


def _missed(blocks: _Blocks, b: int, found: _Between, by: str) -> tuple[np.ndarray, np.ndarray]:
    """The squared errors of a block's rows, and the sum of the inverse's diagonal."""
    xp = blocks.xp
    inner, own, constant = blocks.coefficients(b, found)
    free = _free(blocks, inner, constant, found)
    missed = own / free[:, None] if by == "loo" else own
    counts = xp.ones_like(free)
    if blocks.root is not None:
        counts = array_ops.astype(blocks._of(b, blocks.root)[:, 0] > 0, xp.float64)
    squares = array_ops.host_float64(xp.sum(missed**2, axis=0))
    return squares, np.asarray(float(xp.sum(free * counts)))


def _each(blocks: _Blocks, operation: Callable[[_Blocks, int], Any]) -> list[Any]:
    return list(blocks.walk(operation, "blocks"))


def _added(
    blocks: _Blocks, operation: Callable[[_Blocks, int], Any], label: str = "blocks"
) -> list[np.ndarray]:
    return _sum(blocks.walk(operation, label))


def _sum(parts: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The sums of arrays that each part has, in float64."""
    total: list[np.ndarray] = []
    for part in parts:
        if not total:
            total = [np.zeros(np.shape(array)) for array in part]
        for array, more in zip(total, part, strict=True):
            array += more
    return total


def _largest(system: System) -> float:
    """About the largest eigenvalue of K̃, as a sample of its rows tells."""
    n = system.factors.shape[0]
    numbers = np.linspace(0, n - 1, min(n, SAMPLED)).astype(int)
    K = array_ops.host_float64(system.factors.take(numbers).dense())
    return float(np.linalg.eigvalsh(K)[-1]) * n / len(numbers)


# Memory.


def _local(system: System) -> BlockDiagonal:
    local = system.factors.local
    assert local is not None
    return local


def _besides(system: System) -> Amounts:
    """What a solution takes besides what it keeps of each block."""
    local, t = _local(system), system.n_targets
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
    """What it takes to keep Z_b and A_b⁻¹ Z_b of all blocks between the two passes."""
    r, item = _local(system).width, array_ops.itemsize(_local(system).dtype)
    return system.factors.shape[0] * ((item + 8) * r + 8 * (system.n_targets + 2)) if r else 0


def _keeps(system: System) -> bool:
    needed = _kept_bytes(system)
    return 0 < needed <= room_left(_besides(system)) // 2


def _memory(system: System) -> Amounts:
    kept = _kept_bytes(system) if _keeps(system) else 0
    return {**_besides(system), "features and solutions": kept}
