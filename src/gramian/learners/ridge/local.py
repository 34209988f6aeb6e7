"""Kernel ridge where K̃ = Z Zᵀ + D is exact inside blocks: a Cholesky factor for each block.

With A_b = D_b + alpha I, M = I + Σ Z_bᵀ A_b⁻¹ Z_b and w = M⁻¹ Σ Z_bᵀ A_b⁻¹ Y_b, the coefficients
are a_b = A_b⁻¹ (Y_b - Z_b w). The inverse of K̃ + alpha I has the blocks
A_b⁻¹ - A_b⁻¹ Z_b M⁻¹ Z_bᵀ A_b⁻¹; a fit without row i misses it by a_i divided by the i-th entry of
the diagonal. Weighted rows have W^½ on both sides. With an intercept, q is one more target, whose
solution d_q turns d into d - d_q b, orthogonal to q, and takes d_q² / qᵀd_q from the diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.memory import Amounts
from gramian.learners.ridge.alpha_steps import try_near
from gramian.learners.ridge.block_systems import Blocks, amounts, local_of
from gramian.learners.ridge.exact import left_out_rows
from gramian.learners.ridge.factored import Sums
from gramian.learners.ridge.repeats import Repeats, repeats_bytes
from gramian.learners.ridge.sampled import best_of_sample, sample_bytes
from gramian.learners.ridge.systems import AlphaPath, Solution, System, indefinite
from gramian.learners.strategy import Strategy
from gramian.matrices.block_function import BlockFunction

ROUNDED = 1e-12  # what rounding may leave of 1
SAMPLED = 500  # rows that tell the largest eigenvalue, and where to begin


class LocalDirect(Strategy[System]):
    """A Cholesky factor of each block, and Woodbury's identity for what is between them."""

    def serves(self, system: System) -> bool:
        return system.is_local and system.rule is None and not system.iterates

    def memory(self, system: System) -> Sequence[Amounts]:
        return [amounts(system)]

    def solve(self, system: System) -> Solution:
        return _solution(system, system.alphas)


class LocalPath(Strategy[System]):
    """Choose alpha by leaving out rows, with factors for few alphas near the best of a sample."""

    def serves(self, system: System) -> bool:
        return system.is_local and system.rule is not None and not system.iterates

    def memory(self, system: System) -> Sequence[Amounts]:
        n, equal = system.factors.shape[0], {"equal rows": repeats_bytes(system)}
        sampled = max(5 * 8 * min(n, SAMPLED) ** 2, sample_bytes(system, SAMPLED))
        return [{"sampled rows": sampled}, {**equal, **amounts(system)}]

    def solve(self, system: System) -> Solution:
        rule = system.rule
        assert rule is not None
        grid = rule.alphas(_largest(system), local_of(system).dtype)
        repeats = Repeats.of(system, local_of(system).groups.labels)
        errors: dict[int, np.ndarray] = {}

        def errors_at(i: int) -> np.ndarray:
            if i not in errors:
                try:
                    errors[i] = _error(system, float(grid[i]), rule.error, repeats)
                except linalg.NotPositiveDefiniteError:  # alpha is below rounding
                    errors[i] = np.full(system.n_targets, np.inf)
            return errors[i]

        if rule.grid is None:
            known = best_of_sample(system, SAMPLED).path
            assert known is not None
            try_near(known, grid, errors_at, shared=rule.shared)
        else:
            for i in range(len(grid)):
                errors_at(i)
        tried = np.array(sorted(errors))
        path = AlphaPath(grid[tried], np.array([errors[i] for i in tried]))
        chosen = rule.choose(path.alphas, path.errors)
        return _solution(system, chosen)._replace(alphas=chosen, path=path)


def solved(system: System, alphas: np.ndarray) -> Solution:
    """The learned function and its intercepts, with one alpha for each target."""
    local, t = local_of(system), len(alphas)
    xp, n = array_ops.namespace(local.groups.points), system.factors.shape[0]
    dual = array_ops.empty((n, t), local.groups.points, xp.float64)
    others, intercepts = np.zeros((len(local), local.width, t)), np.zeros(t)
    freedom = np.zeros((n if system.sampled is not None else 0, t))
    for alpha in np.unique(alphas):
        where = np.flatnonzero(alphas == alpha)
        wanted = False if system.sampled is None else system.sampled
        blocks = Blocks(system, float(alpha), where, diagonal=wanted)
        found = blocks.between()
        if found.along is not None:
            intercepts[where] = found.b / system.weight**0.5
        finished = partial(Blocks.finished, found=found)
        for batch, (own, share, free) in blocks.walk(finished, "kernel ridge"):
            batch.put(dual, own, where)
            if free is not None:
                batch.put(freedom, array_ops.host_float64(free), where)
            if share is not None:
                for i, b in enumerate(batch.blocks):
                    others[b][:, where] = share[i]
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


def _error(system: System, alpha: float, by: str, repeats: Repeats | None) -> np.ndarray:
    """The error of leaving out rows, or generalised cross-validation, for each target."""
    sums, within = Sums.without_features(system.Y, system.weights), np.zeros(1)
    counted, shares = sums.rows, None
    if repeats is not None:
        counted, within = repeats.distinct, repeats.within
        system = replace(system, Y=repeats.means)
        shares = local_of(system).groups.arrange(repeats.shares)
    blocks = Blocks(system, alpha, np.arange(system.n_targets), diagonal=True)
    blocks.shares = shares
    missed = partial(Blocks.missed, found=blocks.between(), by=by)
    total, free = blocks.total(missed, "leaving out rows")
    if by == "loo":
        return (alpha**2 * total + within) / sums.weight
    left = (counted - sums.rows + alpha * float(free)) / counted
    return alpha**2 * total / sums.weight / max(left, ROUNDED) ** 2


def _largest(system: System) -> float:
    """Estimate the largest eigenvalue of K̃ from a sample of its rows."""
    n = system.factors.shape[0]
    numbers = np.linspace(0, n - 1, min(n, SAMPLED)).astype(int)
    K = array_ops.host_float64(system.factors.take(numbers).dense())
    return float(np.linalg.eigvalsh(K)[-1]) * n / len(numbers)
