"""Kernel ridge on factors K̃ = Z S Zᵀ: θ with f(x) = z(x)ᵀθ, from the sums ZᵀWZ and ZᵀWY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.wording import counted
from gramian.learners.ridge.systems import Solution, System, indefinite
from gramian.learners.strategy import Strategy
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors, projected
from gramian.matrices.normal_equations import normal_equations


class Sums(NamedTuple):
    """All that a direct solution needs: sums over the rows, on the host."""

    blocks: list[np.ndarray]  # of ZᵀWZ, each (columns, columns)
    right: np.ndarray  # ZᵀWY, (r, n_targets)
    squares: np.ndarray  # the diagonal of YᵀWY, (n_targets,)
    weight: float
    rows: int  # the number of rows with weight

    @classmethod
    def over(cls, factors: Factors, Y: Array, weights: Array | None, *, precise: bool) -> Sums:
        """Sum over all rows; Y has shape (n, n_targets), weights (n,)."""
        blocks, right = normal_equations(factors, Y, weights, precise=precise)
        return cls.without_features(Y, weights)._replace(blocks=blocks, right=right)

    @classmethod
    def without_features(cls, Y: Array, weights: Array | None) -> Sums:
        """Return only the sums of targets and weights."""
        xp, n = array_ops.namespace(Y), Y.shape[0]
        squares = xp.sum(Y**2 if weights is None else Y**2 * weights[:, None], axis=0)
        host = np.asarray(array_ops.to_numpy(squares))
        if weights is None:
            return cls([], np.empty(0), host, float(n), n)
        usable = int(xp.sum(array_ops.astype(weights > 0, xp.int64)))
        return cls([], np.empty(0), host, float(xp.sum(weights)), usable)

    def plus(self, other: Sums) -> Sums:
        return Sums(
            [a + b for a, b in zip(self.blocks, other.blocks, strict=True)],
            self.right + other.right,
            self.squares + other.squares,
            self.weight + other.weight,
            self.rows + other.rows,
        )


class Factored(Strategy[System]):
    """Sums over the rows in one pass, and a solution from them; by blocks if there are no links."""

    def serves(self, system: System) -> bool:
        return not system.is_exact and system.rule is None and not system.iterates

    def memory(self, system: System) -> Sequence[Amounts]:
        factors = system.factors
        if factors.core is None:
            copies = min(len(system.alphas), 8) + 1  # Cholesky factors, or eigenvectors
            return from_sums(system, copies * 8 * factors.parts.widest**2)
        return from_sums(system, 6 * 8 * factors.rank**2)

    def solve(self, system: System) -> Solution:
        factors = system.factors
        sums = Sums.over(factors, system.Y, system.weights, precise=system.precise)
        theta = factored_direct(sums, factors.core, system.alphas)
        return Solution(system.local(theta))


def targets_bytes(system: System) -> Amounts:
    """Return the memory of targets, as passed and as float64, and of weights."""
    return {"targets": 8 * system.factors.shape[0] * (4 * system.n_targets + 4)}


def from_sums(system: System, decomposition: int) -> list[Amounts]:
    """Return the memory of ZᵀWZ in one pass, in float64 if necessary, and of its decomposition."""
    factors, targets = system.factors, targets_bytes(system)
    size, walked, P, spare = 8 * factors.parts.widest**2, projected(factors), 0, 0
    if walked is not None:
        spare, P = 8 * (walked.rank + factors.rank), 8 * walked.rank * factors.rank
    passes = max((Z.walk_bytes(spare, size) for Z in (walked or factors).parts), default=0)
    return [
        {**targets, "sums": P + passes},
        {**targets, "sums": blocks_bytes(factors), "decomposition": decomposition},
    ]


def blocks_bytes(factors: Factors) -> int:
    """Return the memory of the blocks of ZᵀWZ."""
    return 8 * sum(Z.shape[1] ** 2 for Z in factors.parts)


def factored_direct(sums: Sums, core: BlockCore | None, alphas: np.ndarray) -> np.ndarray:
    """Return θ (r, n_targets) from one decomposition, or Cholesky factors per alpha and block."""
    if core is None:  # blocks are independent
        edges = np.cumsum([len(block) for block in sums.blocks])[:-1]
        pairs = zip(sums.blocks, np.split(sums.right, edges), strict=True)
        return np.concatenate([linalg.shifted_solver(A, alphas)(b) for A, b in pairs])
    return Decomposition.of(sums, core).solve(alphas)


class Decomposition(NamedTuple):
    """Eigenvalues λ of W^½ K̃ W^½, P with W^½ Z P = V |λ|^½, and PᵀZᵀWY."""

    values: np.ndarray  # (r,)
    P: np.ndarray  # (r, r)
    right: np.ndarray  # (r, n_targets)

    @classmethod
    def of(cls, sums: Sums, core: BlockCore | None) -> Decomposition:
        r = len(sums.right)
        config.check_fits(
            3 * 8 * r**2,
            f"the decomposition of a matrix of {counted(r, 'feature')}",
            "Use fewer features",
        )
        inner = scipy.linalg.block_diag(*sums.blocks)
        values, P = linalg.spectrum(inner, None if core is None else core.dense())
        return cls(values, P, P.T @ sums.right)

    def scaled(self, alphas: np.ndarray) -> np.ndarray:
        """Return c (r, n_targets) with θ = P c, one alpha per target: sign(λ) PᵀZᵀWY / (λ + α)."""
        shifted = self.values[:, None] + alphas
        if (shifted <= 0).any():
            indefinite(f"an eigenvalue of {self.values.min():.2g}")
        return self.signs[:, None] * self.right / shifted

    def solve(self, alphas: np.ndarray) -> np.ndarray:
        return self.P @ self.scaled(alphas)

    @property
    def signs(self) -> np.ndarray:
        return np.where(self.values < 0, -1.0, 1.0)


def mean_square(sums: Sums, theta: np.ndarray, image: np.ndarray) -> float:
    """Return the mean of w (y - zᵀθ)² from sums over the rows and the image ZᵀWZ θ.

    ``theta`` and ``image`` have shape (r, n_targets).
    """
    squares = sums.squares - 2 * (theta * sums.right).sum(axis=0) + (theta * image).sum(axis=0)
    return float(np.maximum(squares, 0.0).mean() / sums.weight)
