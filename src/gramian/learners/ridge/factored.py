"""Kernel ridge on factors K̃ = Z S Zᵀ: θ with f(x) = z(x)ᵀθ, from the sums ZᵀWZ and ZᵀWY."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.learners.ridge.systems import Solution, System, Watch
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors, unprojected
from gramian.matrices.normal_equations import normal_equations


class Sums(NamedTuple):
    """All that a direct solution needs to know of the rows: sums over them, on the host."""

    blocks: list[np.ndarray]  # of ZᵀWZ
    right: np.ndarray  # ZᵀWY
    squares: np.ndarray  # the diagonal of YᵀWY
    weight: float
    rows: int  # those that have weight

    @classmethod
    def over(cls, factors: Factors, Y: Array, weights: Array | None, *, precise: bool) -> Sums:
        blocks, right = normal_equations(factors, Y, weights, precise=precise)
        return cls.without_features(Y, weights)._replace(blocks=blocks, right=right)

    @classmethod
    def without_features(cls, Y: Array, weights: Array | None) -> Sums:
        """What is known of the targets and weights alone."""
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


@one_blas_thread()
def rounds_too_much(system: System, alpha: float | None, *, seen: int = 0) -> bool:
    """Whether float32 features would change eigenvalues by more than a tenth of alpha.

    Features C P are small differences of kernel values where P is large. How much their rounding
    changes K̃ is seen on a sample of rows; ``seen`` are rows to be added to those of this system.
    Without alpha, that of the default path is meant, which is relative to the largest eigenvalue.
    """
    factors: Factors = system.matrix
    C, P = unprojected(factors)
    if P is None or array_ops.itemsize(factors.dtype) == 8:
        return False
    n = factors.shape[0]
    numbers = np.linspace(0, n - 1, min(n, 256)).astype(int)
    rounded, values = (
        array_ops.astype(rows.take(numbers).parts[0].collect(), factors.xp.float64)
        for rows in (factors, C)
    )
    exact, rounded = array_ops.to_numpy(values @ P), array_ops.to_numpy(rounded)
    K = exact @ exact.T
    change = np.abs(np.linalg.eigvalsh(rounded @ rounded.T - K)).max()
    if alpha is None:
        alpha = 10 * array_ops.eps(factors.dtype) * np.linalg.eigvalsh(K)[-1]
        return bool(change > 0.1 * alpha)
    weight = 1.0
    if system.weights is not None:
        weight = float(array_ops.namespace(system.weights).mean(system.weights))
    return bool(change * weight * (n + seen) / len(numbers) > 0.1 * alpha)


def factored_direct(sums: Sums, core: BlockCore | None, alphas: np.ndarray) -> np.ndarray:
    """θ from one decomposition, or for each alpha one Cholesky factor of each block."""
    if core is None:  # blocks have nothing to do with each other
        edges = np.cumsum([len(block) for block in sums.blocks])[:-1]
        pairs = zip(sums.blocks, np.split(sums.right, edges), strict=True)
        return np.concatenate([linalg.shifted_solver(A, alphas)(b) for A, b in pairs])
    return Decomposition.of(sums, core).solve(alphas)


class Decomposition(NamedTuple):
    """Eigenvalues λ of W^½ K̃ W^½, P with W^½ Z P = V |λ|^½, and PᵀZᵀWY."""

    values: np.ndarray
    P: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, sums: Sums, core: BlockCore | None) -> Decomposition:
        r = len(sums.right)
        config.check_fits(
            3 * 8 * r**2,
            f"the decomposition of a matrix of {counted(r, 'feature')}",
            "Use fewer of them",
        )
        inner = scipy.linalg.block_diag(*sums.blocks)
        values, P = linalg.spectrum(inner, None if core is None else core.dense())
        return cls(values, P, P.T @ sums.right)

    def scaled(self, alphas: np.ndarray) -> np.ndarray:
        """c with θ = P c, for one alpha for each target: ± PᵀZᵀWY / (λ + alpha), as λ's sign."""
        shifted = self.values[:, None] + alphas
        if (shifted <= 0).any():
            indefinite(f"an eigenvalue of {self.values.min():.2g}")
        return self.signs[:, None] * self.right / shifted

    def solve(self, alphas: np.ndarray) -> np.ndarray:
        return self.P @ self.scaled(alphas)

    @property
    def signs(self) -> np.ndarray:
        return np.where(self.values < 0, -1.0, 1.0)


def factored_iteration(system: System) -> Solution:
    """θ by conjugate gradients, for a core too large to be decomposed.

    With Z = Q R in blocks, θ = S Rᵀ u where (R S Rᵀ + alpha I) u = QᵀY. The preconditioner is this
    matrix without the links.
    """
    factors: Factors = system.matrix
    blocks, right = normal_equations(factors, system.Y, system.weights)
    core, alphas = factors.core, system.alphas
    roots, inverses = zip(*map(linalg.root_and_inverse, blocks), strict=True)

    def turned(matrices: Any, V: np.ndarray) -> np.ndarray:
        return linalg.times_blocks(matrices, V)

    def times_core(V: np.ndarray) -> np.ndarray:
        return V if core is None else core.matmul(V)

    own = [
        np.linalg.eigh(root @ root.T if core is None else root @ core.block(s) @ root.T)
        for s, root in enumerate(roots)
    ]
    values = np.concatenate([np.maximum(each, 0.0) for each, _ in own])[:, None] + alphas
    vectors = [each for _, each in own]

    def theta(U: np.ndarray) -> np.ndarray:
        return times_core(turned([r.T for r in roots], U))

    def apply(U: np.ndarray) -> np.ndarray:
        return turned(roots, theta(U)) + alphas * U

    def precondition(U: np.ndarray) -> np.ndarray:
        return turned(vectors, turned([v.T for v in vectors], U) / values)

    watch = Watch(None)
    if system.held_out is not None:
        checked = Sums.over(factors, system.Y, system.held_out, precise=False)

        def error(U: np.ndarray, length: np.ndarray) -> float:
            now = theta(U)
            return mean_square(checked, now, turned(checked.blocks, now))

        watch = Watch(error)
    try:
        u, _, left = linalg.conjugate_gradients(
            apply,
            turned([i.T for i in inverses], right),
            precondition,
            tol=system.tol,
            max_iter=system.max_iter,
            watch=watch,
        )
    except linalg.NotPositiveDefiniteError:
        indefinite("negative eigenvalues")
    solution = watch.solution(u, left, system.tol)
    return solution._replace(coefficients=system.local(theta(solution.coefficients)))


def mean_square(sums: Sums, theta: np.ndarray, image: np.ndarray) -> float:
    """The mean of w (y - zᵀθ)² from sums over the rows, with the image ZᵀWZ θ."""
    squares = sums.squares - 2 * (theta * sums.right).sum(axis=0) + (theta * image).sum(axis=0)
    return float(np.maximum(squares, 0.0).mean() / sums.weight)


def indefinite(what: str) -> NoReturn:
    raise ValueError(
        f"K̃ + alpha I is not positive definite: the approximation has {what}. Use psd='clip', or "
        "a larger alpha."
    )
