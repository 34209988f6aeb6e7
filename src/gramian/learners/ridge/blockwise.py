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
from gramian.matrices.normal_equations import normal_equations

LARGE_CORE = 4000  # with more columns of Z than this, a system with links is solved by iteration


class Blockwise(Strategy[System]):
    """θ by conjugate gradients, for a core too large to decompose.

    With Z = Q R in blocks, θ = S Rᵀ u where (R S Rᵀ + alpha I) u = QᵀY. The preconditioner is this
    matrix without the links.
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
        blocks, right = normal_equations(factors, system.Y, system.weights)
        core, alphas = factors.core, system.alphas
        roots, inverses = zip(*map(linalg.root_and_inverse, blocks), strict=True)

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

        def theta(U: np.ndarray) -> np.ndarray:
            return times_core(turned([r.T for r in roots], U))

        def apply(U: np.ndarray) -> np.ndarray:
            return turned(roots, theta(U)) + alphas * U

        def precondition(U: np.ndarray) -> np.ndarray:
            return turned(vectors, turned([v.T for v in vectors], U) / values)

        watch = Watch(None)
        if system.held_out is not None:
            held_out = Sums.over(factors, system.Y, system.held_out, precise=False)

            def error(U: np.ndarray, length: np.ndarray) -> float:
                now = theta(U)
                return mean_square(held_out, now, turned(held_out.blocks, now))

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
