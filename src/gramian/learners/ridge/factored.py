"""Kernel ridge on factors K̃ = Z S Zᵀ: θ with f(x) = z(x)ᵀθ, from the sums ZᵀWZ and ZᵀWY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import few_blas_threads
from gramian.backend.wording import counted
from gramian.learners.ridge.systems import Solution, System, indefinite
from gramian.learners.strategy import Strategy
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors, projected
from gramian.matrices.normal_equations import inner_products


class Sums(NamedTuple):
    """All that a direct solution needs: sums over the rows, on the host except for blocks."""

    blocks: list[Array]  # of ZᵀWZ, each (columns, columns); on the host, or on a GPU if kept there
    right: np.ndarray  # ZᵀWY, (r, n_targets)
    squares: np.ndarray  # the diagonal of YᵀWY, (n_targets,)
    weight: float
    rows: int  # the number of rows with weight
    features: np.ndarray  # ZᵀW1, (r,)
    targets: np.ndarray  # YᵀW1, (n_targets,)

    @classmethod
    def over(
        cls, factors: Factors, Y: Array, weights: Array | None, *, precise: bool,
        late: bool = False, stay: bool = False,
    ) -> Sums:  # fmt: skip
        """Sum over all rows; Y has shape (n, n_targets), weights (n,).

        ``precise`` and ``late`` are those of ``inner_products``. With ``stay``, blocks that are on
        a GPU stay there, to be decomposed.
        """
        pairs = inner_products(factors, Y, weights, precise=precise, late=late, ones=True)
        right = np.concatenate([array_ops.host_float64(beside) for _, beside in pairs])
        return cls.without_features(Y, weights)._replace(
            blocks=[
                array_ops.astype(block, factors.xp.float64)
                if stay and array_ops.is_on_gpu(block)
                else array_ops.host_float64(block)
                for block, _ in pairs
            ],
            right=right[:, :-1],
            features=right[:, -1],
        )

    @classmethod
    def of(cls, system: System) -> Sums:
        """Sum over all rows of a system, as exactly as its alphas need."""
        late = system.late
        return cls.over(
            system.factors,
            system.Y,
            system.weights,
            precise=not late and system.precise_sums,
            late=late,
            stay=True,
        )

    @property
    def inner(self) -> Array:
        """ZᵀWZ, of shape (r, r)."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        return scipy.linalg.block_diag(*map(array_ops.to_numpy, self.blocks))

    @classmethod
    def without_features(cls, Y: Array, weights: Array | None) -> Sums:
        """Return only the sums of targets and weights."""
        xp, n, none = array_ops.namespace(Y), Y.shape[0], np.empty(0)
        squares, targets = (
            array_ops.host_float64(
                xp.sum(values if weights is None else values * weights[:, None], axis=0)
            )
            for values in (Y**2, Y)
        )
        if weights is None:
            return cls([], none, squares, float(n), n, none, targets)
        usable = int(xp.sum(array_ops.astype(weights > 0, xp.int64)))
        return cls([], none, squares, float(xp.sum(weights)), usable, none, targets)

    def plus(self, other: Sums) -> Sums:
        return Sums(
            [a + b for a, b in zip(self.blocks, other.blocks, strict=True)],
            self.right + other.right,
            self.squares + other.squares,
            self.weight + other.weight,
            self.rows + other.rows,
            self.features + other.features,
            self.targets + other.targets,
        )

    def centred(self) -> Sums:
        """Return the sums over features and targets minus their weighted means, in one block."""
        inner = self.inner
        e = array_ops.like(self.features, inner)
        return self._replace(
            blocks=[inner - (e / self.weight)[:, None] * e[None, :]],
            right=self.right - np.outer(self.features / self.weight, self.targets),
            squares=np.maximum(self.squares - self.targets**2 / self.weight, 0.0),
            features=np.zeros_like(self.features),
            targets=np.zeros_like(self.targets),
        )

    def intercepts(self, theta: np.ndarray) -> np.ndarray:
        """Return b (n_targets,) with Σ w (y - zᵀθ - b) = 0; θ has shape (r, n_targets)."""
        return (self.targets - self.features @ theta) / self.weight


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
        sums = Sums.of(system)
        if factors.core is not None:
            used = sums.centred() if system.intercept else sums
            spectrum = Decomposition.of(used, factors.core)
            return decomposed(system, sums, spectrum, system.alphas)
        Z = (
            None
            if system.sampled is None
            else array_ops.host_float64(factors.coordinates(system.sampled))
        )
        theta, b, leverage = _apart(sums, system.alphas, intercept=system.intercept, Z=Z)
        left_out = None
        if Z is not None:
            assert leverage is not None
            scores = Z @ theta + (0.0 if b is None else b)
            left_out = system.left_out(scores, sample_weights(system) * leverage)
        return Solution(system.local(theta), b, left_out=left_out)


def targets_bytes(system: System) -> Amounts:
    """Return the memory of targets, as passed and as float64, and of weights."""
    return {"targets": 8 * system.factors.shape[0] * (4 * system.n_targets + 4)}


def from_sums(system: System, decomposition: int) -> list[Amounts]:
    """Return the memory of ZᵀWZ in one pass, in float64 if necessary, and of its decomposition."""
    factors, targets = system.factors, targets_bytes(system)
    size, walked, P, spare = 8 * factors.parts.widest**2, projected(factors), 0, 0
    if walked is not None:
        size = 8 * walked.rank**2
        spare, P = 8 * (walked.rank + factors.rank), 8 * walked.rank * factors.rank
    passes = max((Z.walk_bytes(spare, size) for Z in (walked or factors).parts), default=0)
    return [
        {**targets, "sums": P + passes},
        {
            **targets,
            "sums": blocks_bytes(factors),
            "decomposition": decomposition,
            "left-out rows": left_out_bytes(system),
        },
    ]


def left_out_bytes(system: System) -> int:
    """Return the memory of the features of sampled rows, and of what they become."""
    return 8 * system.sample_size * (4 * system.factors.rank + 4 * system.n_targets)


def blocks_bytes(factors: Factors) -> int:
    """Return the memory of the blocks of ZᵀWZ."""
    return 8 * sum(Z.shape[1] ** 2 for Z in factors.parts)


def factored_direct(
    sums: Sums, core: BlockCore | None, alphas: np.ndarray, *, intercept: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return θ (r, n_targets) and the intercepts, from sums over the rows.

    It takes one decomposition, or Cholesky factors per alpha and block.
    """
    if core is None:  # blocks are independent
        return _apart(sums, alphas, intercept=intercept)[:2]
    theta = Decomposition.of(sums.centred() if intercept else sums, core).solve(alphas)
    return theta, sums.intercepts(theta) if intercept else None


def _apart(
    sums: Sums, alphas: np.ndarray, *, intercept: bool, Z: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return θ, the intercepts, and the leverage of rows Z (k, r) for each target, block by block.

    An intercept has e = ZᵀW1 as border: [ZᵀWZ + alpha I, e; eᵀ, Σw] [θ; b] = [ZᵀWY; Σ w y]. A
    constant is one more target, whose solution e' leaves blocks independent:
    b = (Σ w y - eᵀθ') / (Σw - eᵀe') and θ = θ' - e' b, with the solution θ' without an intercept.
    """
    e, t = sums.features, len(alphas)
    different, which = np.unique(alphas, return_inverse=True)
    border = [e[:, None]] * len(different) if intercept else []
    all_alphas = np.concatenate((alphas, different)) if intercept else alphas
    found = _by_blocks(sums, np.column_stack((sums.right, *border)), all_alphas)
    theta, b, leverage = found[:, :t], None, None
    if Z is not None:
        leverage = np.column_stack([_leverage(sums, Z, float(alpha)) for alpha in different])
    if intercept:
        constant = found[:, t:]
        left = np.maximum(sums.weight - e @ constant, 10 * np.finfo(float).eps * sums.weight)
        if leverage is not None:
            leverage += (1.0 - Z @ constant) ** 2 / left
        b = (sums.targets - e @ theta) / left[which]
        theta = theta - constant[:, which] * b
    return theta, b, None if leverage is None else leverage[:, which]


def _leverage(sums: Sums, Z: np.ndarray, alpha: float) -> np.ndarray:
    """Return zᵀ(ZᵀWZ + alpha I)⁻¹z for each row of Z (k, r)."""
    parts = np.split(Z, _edges(sums), axis=1)
    pairs = zip(sums.blocks, parts, strict=True)
    return np.sum([shifted_norms(A, alpha, z) for A, z in pairs], axis=0)


def shifted_norms(A: Array, alpha: float, Z: np.ndarray) -> np.ndarray:
    """Return zᵀ(A + alpha I)⁻¹z for each row z of Z (k, n), for a PSD matrix A."""
    shifted = array_ops.host_float64(A) + alpha * np.eye(A.shape[0])
    try:
        with few_blas_threads(len(shifted)):
            half = linalg.solve_lower(linalg.lower_factor(shifted), Z.T)
    except linalg.NotPositiveDefiniteError:  # by rounding
        return (Z.T * linalg.shifted_solver(A, np.full(len(Z), alpha))(Z.T)).sum(axis=0)
    return np.einsum("ij,ij->j", half, half)


def _edges(sums: Sums) -> np.ndarray:
    """Return where the blocks of ZᵀWZ end, but for the last."""
    return np.cumsum([len(block) for block in sums.blocks])[:-1]


def _by_blocks(sums: Sums, right: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    pairs = zip(sums.blocks, np.split(right, _edges(sums)), strict=True)
    return np.concatenate([linalg.shifted_solver(A, alphas)(b) for A, b in pairs])


def sample_weights(system: System) -> np.ndarray:
    """Return the weights of the sampled rows, as a column."""
    assert system.sampled is not None
    if system.weights is None:
        return np.ones((len(system.sampled), 1))
    return system.of_sample(system.weights[:, None])


def decomposed(system: System, sums: Sums, spectrum: Decomposition, alphas: np.ndarray) -> Solution:
    """Return the solution from a decomposition of centred sums, or of sums without an intercept."""
    theta = spectrum.solve(alphas)
    b = sums.intercepts(theta) if system.intercept else None
    left_out = None
    if system.sampled is not None:
        Z, w = (
            array_ops.host_float64(system.factors.coordinates(system.sampled)),
            sample_weights(system),
        )
        mean = sums.features / sums.weight if system.intercept else 0.0
        T = spectrum.turned(Z - mean)
        leverage = T**2 @ (spectrum.signs[:, None] / (spectrum.values[:, None] + alphas))
        leverage = w * (leverage + (1.0 / sums.weight if system.intercept else 0.0))
        left_out = system.left_out(Z @ theta + (0.0 if b is None else b), leverage)
    return Solution(system.local(theta), b, left_out=left_out)


class Decomposition(NamedTuple):
    """Eigenvalues λ of W^½ K̃ W^½, P with W^½ Z P = V |λ|^½, and PᵀZᵀWY."""

    values: np.ndarray  # (r,)
    P: Array  # (r, r), on the host or on a GPU
    right: np.ndarray  # (r, n_targets)

    @classmethod
    def of(cls, sums: Sums, core: BlockCore | None) -> Decomposition:
        r = len(sums.right)
        config.check_fits(
            3 * 8 * r**2,
            f"the decomposition of a matrix of {counted(r, 'feature')}",
            "Use fewer features",
        )
        inner = sums.inner
        if core is None and array_ops.is_on_gpu(inner):
            found, P = array_ops.namespace(inner).linalg.eigh(inner)
            values = np.maximum(array_ops.host_float64(found), 0.0)
        else:
            dense = None if core is None else core.dense()
            values, P = linalg.spectrum(array_ops.to_numpy(inner), dense)
        spectrum = cls(values, P, np.empty(0))
        return spectrum._replace(right=spectrum.turned(sums.right.T).T)

    def turned(self, M: np.ndarray) -> np.ndarray:
        """Return M P, on the host."""
        return array_ops.host_float64(array_ops.like(M, self.P) @ self.P)

    def scaled(self, alphas: np.ndarray) -> np.ndarray:
        """Return c (r, n_targets) with θ = P c, one alpha per target: sign(λ) PᵀZᵀWY / (λ + α)."""
        shifted = self.values[:, None] + alphas
        if (shifted <= 0).any():
            indefinite(f"an eigenvalue of {self.values.min():.2g}")
        return self.signs[:, None] * self.right / shifted

    def solve(self, alphas: np.ndarray) -> np.ndarray:
        return array_ops.host_float64(self.P @ array_ops.like(self.scaled(alphas), self.P))

    @property
    def signs(self) -> np.ndarray:
        return np.where(self.values < 0, -1.0, 1.0)


def mean_square(sums: Sums, theta: np.ndarray, image: np.ndarray, b: np.ndarray | float) -> float:
    """Return the mean of w (y - zᵀθ - b)² from sums over the rows and the image ZᵀWZ θ.

    ``theta`` and ``image`` have shape (r, n_targets), b (n_targets,).
    """
    squares = sums.squares - 2 * (theta * sums.right).sum(axis=0) + (theta * image).sum(axis=0)
    squares += b * (b * sums.weight - 2 * (sums.targets - sums.features @ theta))
    return float(np.maximum(squares, 0.0).mean() / sums.weight)
