"""A loss over K̃ = Z Zᵀ + D, which is exact inside blocks: a factor for each block.

The system of a Newton step is that of the exact matrix, (alpha I + C K̃ C) s = B with C = diag(c),
where c² is the curvature of each row. With M_b = alpha I + C_b D_b C_b and F_b = C_b Z_b,
Woodbury's identity gives s_b = M_b⁻¹ (B_b - F_b w), where
(I + Σ F_bᵀ M_b⁻¹ F_b) w = Σ F_bᵀ M_b⁻¹ B_b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.losses.easing import minimised
from gramian.learners.losses.exact import ExactSpace, exact_solution
from gramian.learners.losses.loss import Root
from gramian.learners.losses.newton import Evaluation
from gramian.learners.losses.problem import LossProblem, LossSolution, joined
from gramian.learners.losses.walks import TEMPORARY
from gramian.learners.strategy import Strategy
from gramian.matrices.block_diagonal import BlockDiagonal

NEGLIGIBLE = 1e-4  # curvature roots, relative to the largest
PART = 4  # blocks take at most this part of the budget


class _Stored(NamedTuple):
    """D and Z in float64, block by block; rows are in the order of the blocks."""

    local: BlockDiagonal
    D: list[np.ndarray]  # (n_b, n_b)
    Z: list[np.ndarray]  # (n_b, r), with no columns where nothing is between blocks

    @classmethod
    def of(cls, local: BlockDiagonal) -> _Stored:
        def features(b: int) -> np.ndarray:
            x = local.groups.rows(b)
            z = local.features(x)
            return np.empty((x.shape[0], 0)) if z is None else array_ops.host_float64(z)

        D = local.each(lambda b: array_ops.host_float64(local.block(b)))
        return cls(local, D, local.each(features))

    def span(self, b: int) -> slice:
        return self.local.groups.span(b)


class _Factored(NamedTuple):
    """A block with the curvature of a step: what is needed to solve its system."""

    rows: np.ndarray  # those that have curvature, by their numbers
    solve: Callable[[np.ndarray], np.ndarray]  # M_b⁻¹
    F: np.ndarray
    G: np.ndarray  # M_b⁻¹ F_b


class LocalSpace(ExactSpace):
    """Coefficients of all rows, in the order of the blocks."""

    def __init__(self, problem: LossProblem, stored: _Stored) -> None:
        super().__init__(problem, problem.gram, None)
        self._stored = stored
        order = stored.local.groups.order
        self._y, self._w = self._y[order], self._w[order]

    def times(self, V: np.ndarray) -> np.ndarray:
        stored, out = self._stored, np.empty(V.shape)

        def product(b: int) -> np.ndarray:
            v = V[stored.span(b)]
            out[stored.span(b)] = stored.D[b] @ v
            return stored.Z[b].T @ v

        pulled = sum(stored.local.each(product))
        if stored.local.width:
            for b, z in enumerate(stored.Z):
                out[stored.span(b)] += z @ pulled
        return out

    def _solved(self, root: Root, right: list[np.ndarray], here: Evaluation) -> list[np.ndarray]:
        if self.loss.coupled:
            return self._iterated(root, right, here)
        solved = self._inverse(root.scale[:, 0])(np.column_stack([each[:, 0] for each in right]))
        return [solved[:, [i]] for i in range(len(right))]

    def _preconditioner(self, here: Evaluation, columns: int) -> Callable[[np.ndarray], np.ndarray]:
        c = np.sqrt(self._w * self.loss.curvature(self._y, here.more.f).mean(axis=1, keepdims=True))
        return self._inverse(c[:, 0])

    def _inverse(self, c: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return (alpha I + C K̃ C)⁻¹; rows without curvature have 0."""
        blocks = [
            each
            for each in self._stored.local.each(lambda b: self._factored(b, c), "blocks")
            if each is not None
        ]
        r = self._stored.local.width
        inner = np.eye(r) + sum((each.F.T @ each.G for each in blocks), np.zeros((r, r)))

        def solve(B: np.ndarray) -> np.ndarray:
            X = np.zeros_like(B)
            for each in blocks:
                X[each.rows] = each.solve(B[each.rows])
            if r and blocks:
                w = np.linalg.solve(inner, sum(each.F.T @ X[each.rows] for each in blocks))
                for each in blocks:
                    X[each.rows] -= each.G @ w
            return X

        return solve

    def _factored(self, b: int, c: np.ndarray) -> _Factored | None:
        stored, span = self._stored, self._stored.span(b)
        own = np.flatnonzero(c[span] > NEGLIGIBLE * c.max())
        if not len(own):
            return None
        scale, D = c[span][own, None], stored.D[b]
        M = (D if len(own) == len(D) else D[np.ix_(own, own)]) * scale
        M *= scale.T
        F = scale * stored.Z[b][own]
        inverse = linalg.shifted_solver(M, np.full(1, self.problem.alpha))

        def solve(B: np.ndarray) -> np.ndarray:
            return np.column_stack([inverse(B[:, [i]]) for i in range(B.shape[1])])

        return _Factored(span.start + own, solve, F, solve(F) if F.shape[1] else F)


class LocalNewton(Strategy[LossProblem]):
    """Newton steps with a factor of each block, and Woodbury's identity between them."""

    def serves(self, problem: LossProblem) -> bool:
        if not problem.is_local or problem.leaves_out:
            return False
        if array_ops.is_on_gpu(problem.rows.place.reference):
            return False
        return sum(_stored_bytes(problem).values()) <= config.memory_budget() // PART

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        n, t, local = problem.rows.shape[0], problem.loss.outputs, problem.factors.local
        assert local is not None
        together = t if problem.loss.coupled else 1
        systems = 1 + (together if problem.intercept else 0)
        width = local.width
        stored = _stored_bytes(problem)
        step = {
            "targets": 8 * n * 5,
            "coefficients": 8 * n * (TEMPORARY * together + 2 * t + 8 * together * systems),
            "factors": stored["kernel matrix"] + 2 * 8 * n * width + 4 * 8 * width**2,
            "blocks": local.at_once * 3 * 8 * local.largest**2,
        }
        return [{**stored, "blocks": local.work_bytes}, {**stored, **step}]

    @one_blas_thread()
    def solve(self, problem: LossProblem) -> LossSolution:
        local, outputs = problem.factors.local, range(problem.loss.outputs)
        assert local is not None
        stored = _Stored.of(local)
        groups = [list(outputs)] if problem.loss.coupled else [[k] for k in outputs]
        minimum = joined(
            [
                minimised(problem.of(each), lambda part: LocalSpace(part, stored))[0]
                for each in groups
            ]
        )
        point = np.empty_like(minimum.point)
        point[np.append(local.groups.order, len(point) - 1)] = minimum.point
        solution = exact_solution(minimum._replace(point=point), problem.gram)
        return solution._replace(blocks=local)


def _stored_bytes(problem: LossProblem) -> Amounts:
    local = problem.factors.local
    assert local is not None
    n, squares = problem.rows.shape[0], float((local.groups.sizes.astype(float) ** 2).sum())
    return {"kernel matrix": int(8 * squares), "features": 8 * n * local.width}
