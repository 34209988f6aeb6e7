"""Principal components of the exact matrix, by decomposition or by a block Krylov method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, config, lanczos, linalg
from gramian.backend.array_ops import Array
from gramian.backend.checks import not_negative, positive_integer
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.kernels.tiles import tile_columns
from gramian.learners.pca.components import Analysis, ComponentsProblem, inverse_roots
from gramian.learners.pca.moments import ROUNDED, Components, signs
from gramian.learners.strategy import Strategy
from gramian.matrices.gram import Gram

BLOCKS_BESIDES = 6  # of vectors in a pass, in addition to those of all passes


class Decomposed(Strategy[ComponentsProblem]):
    """Decompose the centred matrix, as far as LAPACK needs to."""

    def serves(self, problem: ComponentsProblem) -> bool:
        if not problem.is_exact:
            return False
        n, k = problem.gram.shape[0], problem.n_components
        few = k is not None and problem.count(n) <= n // 20
        return problem.solver == "direct" or (problem.solver == "auto" and not few)

    def memory(self, problem: ComponentsProblem) -> Sequence[Amounts]:
        n, item = problem.gram.shape[0], array_ops.itemsize(problem.gram.dtype)
        copies = 3 if item == 8 else 2
        step = {**_other_memory(problem), "decomposition": copies * 8 * n**2}
        return problem.with_pre_images(step)

    def solve(self, problem: ComponentsProblem) -> Analysis:
        gram = _kept(problem.gram)
        means = _means(gram, problem.centred)
        values, vectors = _decompose(gram, means, problem.count(gram.shape[0]))
        return _analysis(problem, gram, means, values, vectors)


class Krylov(Strategy[ComponentsProblem]):
    """The leading components by block Krylov iterations, in passes over the matrix."""

    def serves(self, problem: ComponentsProblem) -> bool:
        return problem.is_exact and not Decomposed().serves(problem)

    def memory(self, problem: ComponentsProblem) -> Sequence[Amounts]:
        n = problem.gram.shape[0]
        width = _width(problem.gram, problem.count(n))
        space = 8 * n * width * (_most_passes(problem, n, width) + BLOCKS_BESIDES)
        return problem.with_pre_images({**_other_memory(problem), "Krylov space": space})

    def solve(self, problem: ComponentsProblem) -> Analysis:
        gram = _kept(problem.gram)
        means = _means(gram, problem.centred)
        with one_blas_thread():
            values, vectors, met, passes, tol = self._iterate(problem, gram)
        found = _analysis(problem, gram, means, values, vectors)
        return found._replace(passes=passes, met=met, tol=tol)

    def _iterate(
        self, problem: ComponentsProblem, gram: Gram
    ) -> tuple[np.ndarray, Array, bool, int, float]:
        xp, n = gram.rows.xp, gram.shape[0]

        def centred(V: Array) -> Array:
            return V - xp.mean(V, axis=0) if problem.centred else V

        def product(V: Array) -> Array:
            return centred(array_ops.astype(gram.matmul(centred(V)), xp.float64))

        k = problem.count(n)
        width = _width(problem.gram, k)
        start = array_ops.like(problem.rng.standard_normal((n, width)), gram.diag(), xp.float64)
        passes = _most_passes(problem, n, width)
        tol = max(not_negative("KernelPCA", "tol", problem.tol), 50 * array_ops.eps(gram.dtype))
        values, vectors, met, taken = lanczos.top_eigenpairs(
            product, centred(start), k, tol=tol, max_passes=passes
        )
        return values, vectors, met, taken, tol


def _other_memory(problem: ComponentsProblem) -> Amounts:
    """Return the memory of both: the matrix, components, and blocks of kernel values."""
    gram = problem.gram
    n, item = gram.shape[0], array_ops.itemsize(gram.dtype)
    k, tile = problem.count(n), min(n, tile_columns(gram.rows.place.reference))
    return {
        "kernel matrix": gram.nbytes if _keeps(gram) else 0,
        "blocks of the matrix": gram.product_bytes,
        "components": 4 * 8 * n * k,
        "blocks": gram.rows.walk_bytes(item * (tile + 4 * k)),
    }


def _keeps(gram: Gram) -> bool:
    """Whether the whole matrix is stored: if it takes at most a quarter of the memory budget."""
    return gram.nbytes <= config.memory_budget() // 4


def _kept(gram: Gram) -> Gram:
    return gram.stored() if _keeps(gram) else gram


def _width(gram: Gram, k: int) -> int:
    """Return the number of columns of a Krylov block.

    Passes over a stored matrix are cheap, and narrow blocks need fewer columns in all; two of them
    have k. Otherwise a pass costs far more than its columns, and wide blocks need fewer passes.
    """
    return min(gram.shape[0], max(8, -(-k // 2)) if _keeps(gram) else k + max(8, k // 4))


def _most_passes(problem: ComponentsProblem, n: int, width: int) -> int:
    room = config.memory_budget() // 2 // (8 * n * width) - BLOCKS_BESIDES
    return max(2, min(positive_integer("KernelPCA", "max_iter", problem.max_iter), room))


def _means(gram: Gram, centred: bool) -> Array:
    """Return what is subtracted from each row of K, shape (n,): its mean, or 0."""
    xp, n = gram.rows.xp, gram.shape[0]
    if not centred:
        return array_ops.like(np.zeros(n), gram.diag(), xp.float64)
    ones = array_ops.like(np.ones((n, 1)), gram.diag(), xp.float64)
    return gram.matmul(ones)[:, 0] / n


def _decompose(gram: Gram, means: Array, k: int) -> tuple[np.ndarray, Array]:
    """Return the k largest eigenvalues (k,) and eigenvectors (n, k) of the matrix less ``means``.

    ``means`` has shape (n,).
    """
    xp, n = gram.rows.xp, gram.shape[0]
    K = array_ops.astype(gram.dense(), xp.float64)
    K = K - means[:, None]
    K -= means
    K += float(xp.mean(means))
    if not array_ops.is_foreign(K):  # LAPACK can stop after the k largest
        values, vectors = scipy.linalg.eigh(
            K, subset_by_index=[n - k, n - 1], overwrite_a=True, check_finite=False
        )
        return values[::-1], vectors[:, ::-1]
    values, vectors = xp.linalg.eigh(K)
    return array_ops.to_numpy(values)[::-1][:k], xp.flip(vectors, axis=1)[:, :k]


def _analysis(
    problem: ComponentsProblem, gram: Gram, means: Array, values: np.ndarray, vectors: Array
) -> Analysis:
    """Return components from eigenvalues (k,) and eigenvectors (n, k) of the matrix."""
    xp, n = gram.rows.xp, gram.shape[0]
    # If rows hardly vary, the rounding of K is large compared with the centred matrix.
    rounding = ROUNDED * array_ops.eps(gram.dtype) * abs(gram.trace())
    least = max(linalg.cutoff(values, n, gram.dtype), rounding)
    values = np.where(values > least, values, 0.0)
    vectors = vectors * signs(vectors)
    # A new row's score is k(x, ·) A minus that of the mean row, if that is subtracted.
    projection = vectors * array_ops.like(inverse_roots(values), vectors)
    total = gram.trace() - float(xp.sum(means))
    found = Components(values, projection, means @ projection, total)
    if problem.n_components is None:
        found = found.leading(int(np.count_nonzero(values)))
    return Analysis(found, vectors[:, : len(found.values)], gram.rows.dtype)
