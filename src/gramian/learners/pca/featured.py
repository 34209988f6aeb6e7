"""Principal components of factors K̃ = Z S Zᵀ: from moments of the features, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.learners.pca.components import (
    Analysis,
    ComponentsProblem,
    inverse_roots,
    keeps_vectors,
)
from gramian.learners.pca.moments import SIGN_ROWS, Components, Moments
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors


class FromMoments(Strategy[ComponentsProblem]):
    """Eigenvectors of ZᵀZ, centred or not; those of K̃ take one more pass, if they are stored."""

    def serves(self, problem: ComponentsProblem) -> bool:
        return not problem.is_exact

    def memory(self, problem: ComponentsProblem) -> Sequence[Amounts]:
        step = keeping(problem.factors, self._other_memory(problem))
        return problem.with_pre_images(step)

    def _other_memory(self, problem: ComponentsProblem) -> Amounts:
        """Return the memory of the fit, in addition to features."""
        factors = problem.factors
        n, r, item = factors.shape[0], factors.rank, array_ops.itemsize(factors.dtype)
        k, size = problem.count(r), item * factors.parts.widest**2
        return {
            "components": 2 * 8 * n * k if keeps_vectors(n, k, factors.parts.place.room()) else 0,
            "decomposition": (4 if factors.core is None else 7) * 8 * r**2,
            "first rows": 8 * min(n, SIGN_ROWS) * r,
            "blocks": max((Z.walk_bytes(item * r, size) for Z in factors.parts), default=0),
        }

    def solve(self, problem: ComponentsProblem) -> Analysis:
        factors = problem.factors.persist(room_left(self._other_memory(problem)))
        moments = Moments.over(factors, trace_of_kernel(problem))
        found = components_of(moments, factors, problem)
        vectors = eigenvectors(found, factors)
        return Analysis(found, vectors, factors.dtype, moments)


def trace_of_kernel(problem: ComponentsProblem) -> float | None:
    """Return Σ k(x, x), the total variance to compare with; None if it is that of K̃."""
    approximation = problem.approximation
    assert approximation is not None
    if approximation.unbiased or approximation.kernel_.is_matrix:
        return None
    diagonal = approximation.kernel_.diagonal(problem.rows)
    xp = array_ops.namespace(diagonal)
    return float(xp.sum(diagonal, dtype=xp.float64))


def components_of(moments: Moments, factors: Factors, problem: ComponentsProblem) -> Components:
    """Return the components of all rows so far, with any factors of the approximation in use."""
    count = problem.count(factors.rank)
    found = moments.components(factors.core, count, factors.dtype, centred=problem.centred)
    if problem.n_components is None:
        found = found.leading(int(np.count_nonzero(found.values)))
    example, dtype = factors.parts.example(), factors.xp.float64
    projection, offset = (
        array_ops.like(each, example, dtype) for each in (found.projection, found.offset)
    )
    return found._replace(projection=projection, offset=offset)


def eigenvectors(found: Components, factors: Factors) -> Array | None:
    """Compute eigenvectors (n, k) in a pass over the features; None if too large to store."""
    if not keeps_vectors(factors.shape[0], len(found.values), factors.parts.place.room()):
        return None
    scores = scores_of(found.projection, found.offset, factors)
    roots = inverse_roots(found.values)
    scores *= array_ops.beside(roots, scores)
    return array_ops.settled(scores)


def scores_of(projection: Array, offset: Array, factors: Factors) -> Array:
    """Return the scores (n, k) of rows from their features; lazy if the rows are.

    ``projection`` has shape (r, k), ``offset`` (k,).
    """
    scores = factors.features_matmul(projection)
    scores -= array_ops.beside(offset, scores)
    return scores
