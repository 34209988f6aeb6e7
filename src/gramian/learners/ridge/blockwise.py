"""Kernel ridge on factors with a large core: iterate on the sums, with a block preconditioner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramian.backend import linalg
from gramian.backend.memory import Amounts
from gramian.learners.ridge.factored import Sums, blocks_bytes, from_sums, mean_square
from gramian.learners.ridge.falkon import streams
from gramian.learners.ridge.systems import Solution, System, Watch, indefinite
from gramian.learners.strategy import Strategy

LARGE_CORE = 4000  # with more columns of Z than this, a system with links is solved by iteration


class Blockwise(Strategy[System]):
    """θ by conjugate gradients, for a core too large to decompose.

    With Z = Q R in blocks, θ = S Rᵀ u where (R S Rᵀ + alpha I) u = QᵀY. The preconditioner is this
    matrix without the links. With an intercept, centred features are (I - q qᵀ) Q R: with c = Qᵀq,
    G = I - c cᵀ and u = G^½ v, the system is (G^½ R S Rᵀ G^½ + alpha I) v = G^-½ (QᵀY - c qᵀY).
    """

    def serves(self, system: System) -> bool:
        if system.is_exact or system.rule is not None or streams(system.factors):
            return False
        large = system.factors.core is not None and system.factors.rank > LARGE_CORE
        return system.iterates or (system.solver == "auto" and large)

    def memory(self, system: System) -> Sequence[Amounts]:
        # Roots of the blocks, their inverses, and eigenvectors.
        return from_sums(system, 4 * blocks_bytes(system.factors))

    def solve(self, system: System) -> Solution:
        factors = system.factors
        sums = Sums.over(factors, system.Y, system.weights, precise=False)
        core, alphas = factors.core, system.alphas
        roots, inverses = zip(*map(linalg.root_and_inverse, sums.blocks), strict=True)

        def turned(matrices: Sequence[np.ndarray], V: np.ndarray) -> np.ndarray:
            return linalg.times_blocks(matrices, V)

        def times_core(V: np.ndarray) -> np.ndarray:
            return V if core is None else core.matmul(V)

        spectra = [
            np.linalg.eigh(root @ root.T if core is None else root @ core.block(s) @ root.T)
            for s, root in enumerate(roots)
        ]
        values = np.concatenate([np.maximum(each, 0.0) for each, _ in spectra])[:, None] + alphas
        vectors = [each for _, each in spectra]

        back = [i.T for i in inverses]
        right, root = turned(back, sums.right), _Root(None)
        if system.intercept:
            c = turned(back, sums.features[:, None]) / sums.weight**0.5
            root = _Root(c)
            right = root.inverse(right - c * (sums.targets / sums.weight**0.5))

        def theta(U: np.ndarray) -> np.ndarray:
            return times_core(turned([r.T for r in roots], root(U)))

        def apply(U: np.ndarray) -> np.ndarray:
            return root(turned(roots, theta(U))) + alphas * U

        def precondition(U: np.ndarray) -> np.ndarray:
            return turned(vectors, turned([v.T for v in vectors], U) / values)

        def intercepts(theta: np.ndarray) -> np.ndarray | None:
            return sums.intercepts(theta) if system.intercept else None

        watch = Watch(None)
        if system.held_out is not None:
            held_out = Sums.over(factors, system.Y, system.held_out, precise=False)

            def error(U: np.ndarray, length: np.ndarray) -> float:
                now = theta(U)
                b = intercepts(now)
                image = turned(held_out.blocks, now)
                return mean_square(held_out, now, image, 0.0 if b is None else b)

            watch = Watch(error)
        try:
            u, _, left = linalg.conjugate_gradients(
                apply,
                right,
                precondition,
                tol=system.tol,
                max_iter=system.max_iter,
                watch=watch,
            )
        except linalg.NotPositiveDefiniteError:
            indefinite("negative eigenvalues")
        solution = watch.solution(u, left, system.tol)
        found = theta(solution.coefficients)
        return solution._replace(coefficients=system.local(found), intercepts=intercepts(found))


class _Root:
    """G^½ for G = I - c cᵀ with ‖c‖ ≤ 1, of shape (r, 1); the identity without c."""

    def __init__(self, c: np.ndarray | None) -> None:
        self._unit, self._size = c, 1.0
        if c is not None:
            length = float(np.linalg.norm(c))
            self._unit = c / max(length, np.finfo(float).tiny)
            self._size = max(1.0 - length**2, 0.0) ** 0.5

    def __call__(self, V: np.ndarray) -> np.ndarray:
        return self._scaled(V, self._size)

    def inverse(self, V: np.ndarray) -> np.ndarray:
        """Return G^-½ V, or its pseudo-inverse where a constant is among the features."""
        return self._scaled(V, 1.0 / self._size if self._size > 1e-7 else 0.0)

    def _scaled(self, V: np.ndarray, size: float) -> np.ndarray:
        if self._unit is None:
            return V
        return V + (size - 1.0) * self._unit * (self._unit.T @ V)
