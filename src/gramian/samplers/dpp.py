"""A Markov chain over sets of landmarks whose kernel matrix has a large determinant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gramian.backend import array_ops, checks
from gramian.backend.threads import one_blas_thread
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers.base import Landmarks, Sampler, from_rows, host_diagonal, rounding_limit
from gramian.samplers.pivoted import factor_bytes, pivoted_cholesky

__all__ = ["KDPP"]

SMALLEST_BATCH = 32  # steps that share one evaluation of the kernel


class KDPP(Sampler):
    """Rows from a k-DPP: a set S of m rows has probability proportional to det K[S, S].

    A Metropolis chain swaps a random member with a random other row and accepts with probability
    min(1, det K[S', S'] / det K[S, S]) (Anari, Oveis Gharan and Rezaei 2016, "Monte Carlo Markov
    chain algorithms for sampling strongly Rayleigh distributions and determinantal point
    processes"; for Nyström: Li, Jegelka and Sra 2016, "Fast DPP sampling for Nyström with
    application to kernel methods"). It starts from the pivots of a randomly pivoted Cholesky
    decomposition, which are far apart already: the theory requires O(n m log n) steps from any
    start, the default takes fewer. If K has rank r < m, it selects r rows.

    The start takes the evaluations and flops of :class:`RPCholesky`. The chain takes O(m²) flops
    per step, and (m + b)² kernel evaluations per batch of b = max(m, 32) steps.

    Parameters
    ----------
    n_steps : int, optional
        The number of proposed swaps; min(n, 10 m) by default.

    See Also
    --------
    RPCholesky : diverse rows at less cost.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KDPP, RBF, Gram
    >>> gram = Gram(RBF(1.0), [[0.0], [0.01], [5.0], [5.01]])
    >>> indices = KDPP().select(gram, 2, np.random.default_rng(0)).indices
    >>> sorted(int(i) // 2 for i in indices)  # one row of each pair
    [0, 1]
    """

    names = ("dpp",)

    def __init__(self, n_steps: int | None = None) -> None:
        self.n_steps = n_steps

    def most_evaluations(self, n: int, m: int) -> int:
        batch = max(m, SMALLEST_BATCH)
        steps = min(n, 10 * m) if self.n_steps is None else self.n_steps
        return super().most_evaluations(n, m) + -(-steps // batch) * (m + batch) ** 2

    def select_bytes(self, rows: Rows, m: int) -> int:
        pool = m + max(m, SMALLEST_BATCH)
        return super().select_bytes(rows, m) + factor_bytes(rows, m) + 4 * 8 * pool**2

    @one_blas_thread()  # BLAS's own threads would spin between columns
    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        n = gram.shape[0]
        steps = min(n, 10 * m)
        if self.n_steps is not None:
            steps = checks.positive_integer(self, "n_steps", self.n_steps)
        limit = rounding_limit(gram, host_diagonal(gram))
        members = pivoted_cholesky(gram, m, rng, rounding=1000.0).pivots
        m = len(members)
        if m == 0:  # K = 0 is explained by any row
            return from_rows(gram, [0])
        if m == n:
            return from_rows(gram, members)
        batch = max(m, SMALLEST_BATCH)
        for start in range(0, steps, batch):
            size = min(batch, steps - start)
            candidates = rng.integers(n, size=size)
            others = np.setdiff1d(candidates, members)
            pool = np.concatenate([members, others])  # possible members in this batch
            place = np.empty(n, dtype=np.intp)
            place[pool] = np.arange(len(pool))
            # The multiple of I is below rounding error, and makes K[S, S] nonsingular.
            K = array_ops.host_float64(gram.block(pool, pool)) + limit * np.eye(len(pool))
            *_, last = swaps(K, np.arange(m), place[candidates], rng)
            members = pool[last]
        return from_rows(gram, members)


def swaps(
    K: np.ndarray, members: np.ndarray, candidates: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the members after each step of the chain; each step proposes one candidate.

    Candidates are drawn uniformly from all rows. One that is a member already changes nothing,
    which keeps the proposal symmetric. Shapes: K (p, p), members (m,), candidates (steps,).
    """
    members = members.copy()
    # Recomputed in each batch, so that rounding errors of the updates do not accumulate.
    inverse = cho_solve(cho_factor(K[np.ix_(members, members)]), np.eye(len(members)))
    leaving = rng.integers(len(members), size=len(candidates))
    levels = rng.random(len(candidates))
    for new, old, level in zip(candidates, leaving, levels, strict=True):
        if new not in members:  # for a member the ratio is 0, up to rounding
            k = K[members, new]
            x = inverse @ k
            w = inverse[:, old]
            # det with the new row over det of the set, times det without the old member over it
            ratio = (K[new, new] - k @ x) * w[old] + x[old] ** 2
            if level < ratio:
                inverse, members[old] = _swapped(inverse, x, old, ratio), new
        yield members.copy()


def _swapped(inverse: np.ndarray, x: np.ndarray, old: int, ratio: float) -> np.ndarray:
    """Return the inverse of K[S, S] after replacing the member at ``old``: two rank-one updates."""
    w = inverse[:, old]
    x = x - w * (x[old] / w[old])  # the weights of the members that stay, for the new row
    x[old] = -1.0
    without = inverse - np.outer(w, w / w[old])
    return without + np.outer(x, x * (w[old] / ratio))
