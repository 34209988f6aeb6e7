"""A coupled loss over the exact matrix: the columns of its Cholesky factor are features.

With K = Z Zᵀ and θ = Zᵀa, the problem of the coefficients a of the rows is that of the coefficients
θ of features. Steps over features take one product with Z each, and intercepts need no systems of
their own. At the minimum, a = -g / alpha with the gradient g of the loss. Elsewhere that
would be a long step, so a also makes up for the gradient ∇ = alpha θ + Zᵀg that is left:
a = -g / alpha + Z (ZᵀZ + alpha / c)⁻¹ ∇ / alpha has Zᵀa = θ - (c ZᵀZ + alpha)⁻¹ ∇. Where no row
has a curvature above c, such a step only lowers the objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.losses.exact import ExactSpace
from gramian.learners.losses.iterated import Iterated
from gramian.learners.losses.leaving_out import best_of_path, sampled
from gramian.learners.losses.problem import LossProblem, LossSolution
from gramian.learners.losses.walks import TEMPORARY
from gramian.learners.strategy import Strategy
from gramian.matrices.factors import Factors
from gramian.rows import ArrayRows

ROUNDING = 100.0  # times the machine epsilon and the largest diagonal entry: the factor ends there
LEAST = 1e-100  # a smaller curvature counts as this much
FINER = 1e-4  # times tol: the last steps are cheap


class ExactFeatures(Strategy[LossProblem]):
    """Steps over the features of a Cholesky factor; ``otherwise`` if the matrix has none."""

    def __init__(self, otherwise: Strategy[LossProblem]) -> None:
        self._otherwise, self._over_features = otherwise, Iterated()

    def serves(self, problem: LossProblem) -> bool:
        if not problem.is_exact or not problem.loss.coupled or not problem.gram.fits():
            return False
        return not array_ops.is_on_gpu(problem.rows.place.reference)

    def memory(self, problem: LossProblem) -> Sequence[Amounts]:
        n, t, leaves_out = problem.rows.shape[0], problem.loss.outputs, problem.leaves_out
        rows = ArrayRows(np.broadcast_to(np.zeros(()), (n, n)))
        over = replace(problem, matrix=Factors(rows), rows=rows, leaves_out=False)
        kept = {"kernel matrix": 8 * n**2} if leaves_out else {}
        blocks = problem.gram.rows.walk_bytes(8 * n)
        return [
            {"kernel matrix": 4 * 8 * n**2, "blocks": blocks},
            *({**kept, **step} for step in self._over_features.memory(over)),
            {
                **kept,
                "features": 3 * 8 * n**2,
                "left-out rows": 2 * 8 * n**2 if leaves_out else 0,
                "coefficients": 8 * n * t * (TEMPORARY + 6),
                "blocks": blocks,
            },
        ]

    @one_blas_thread()
    def solve(self, problem: LossProblem) -> LossSolution:
        y, weights = array_ops.host_float64(problem.y), problem.weights
        if weights is not None:
            weights = array_ops.host_float64(weights)
        matrix = array_ops.host_float64(problem.gram.dense())
        Z = _features(matrix, array_ops.eps(problem.gram.dtype))
        if Z is None:
            return self._otherwise.solve(problem)
        inner, rows = Z.T @ Z, ArrayRows(Z)
        K, numbers = (matrix, sampled(problem)) if problem.leaves_out else (None, None)
        del matrix  # if no row is left out, its memory is free for the steps

        def solved(part: LossProblem) -> LossSolution:
            found = self._over_features.solve(
                replace(
                    part,
                    matrix=Factors(rows),
                    rows=rows,
                    y=y,
                    weights=weights,
                    leaves_out=False,
                    tol=FINER * part.tol,
                )
            )
            space = ExactSpace(part, part.gram, K)
            a = _of_rows(space, Z, inner, np.asarray(found.coefficients), found.intercepts)
            here = space.evaluate(np.vstack((a, found.intercepts)))
            if numbers is not None:
                error = space.left_out(here.point, found.loss, numbers)
                found = found._replace(error=error)
            like = part.gram.points.place.reference
            a = array_ops.like(a, like, part.gram.rows.xp.float64)
            met = found.met or found.accuracy <= part.tol
            return found._replace(coefficients=a, values=here.values, met=met)

        return best_of_path(problem, solved)


def _features(K: np.ndarray, eps: float) -> np.ndarray | None:
    """Return Z (n, r) with K = Z Zᵀ up to rounding; None if K is not positive semi-definite."""
    least = ROUNDING * eps * float(np.diagonal(K).max())
    Z = linalg.cholesky_columns(K, least)
    probe = np.cos(np.arange(1.0, len(K) + 1.0))[:, None]  # some vector
    lacking = np.linalg.norm(K @ probe - Z @ (Z.T @ probe))
    return Z if lacking <= len(K) * least * np.linalg.norm(probe) else None


def _of_rows(
    space: ExactSpace, Z: np.ndarray, inner: np.ndarray, theta: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Return coefficients of the rows for those of the features, as the module says."""
    alpha, f = space.problem.alpha, Z @ theta + b
    g, curvature = space.derivatives(f)
    # The sum of the curvatures of a row bounds the largest of its matrix.
    shift = alpha / max(float(curvature.sum(axis=1).max()), LEAST)
    left = theta + Z.T @ g / alpha
    return Z @ linalg.shifted_solver(inner, np.full(len(b), shift))(left) - g / alpha
