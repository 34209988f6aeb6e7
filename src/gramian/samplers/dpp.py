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
TOGETHER = 48  # steps that share one update of the inverse


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
    per step, nearly all in matrix products, and (m + b) b kernel evaluations per batch of
    b = max(m, 32) steps.

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
        if len(members) == 0:  # K = 0 is explained by any row
            return from_rows(gram, [0])
        if len(members) < n:
            members = _after(gram, members, steps, limit, rng)
        return from_rows(gram, members)


def _after(
    gram: Gram, members: np.ndarray, steps: int, limit: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the members after this number of steps, of which batches share kernel values."""
    n, m = gram.shape[0], len(members)
    batch = max(m, SMALLEST_BATCH)
    K = array_ops.host_float64(gram.block(members, members))
    for start in range(0, steps, batch):
        candidates = rng.integers(n, size=min(batch, steps - start))
        others = np.setdiff1d(candidates, members)
        pool = np.concatenate([members, others])  # possible members in this batch
        K = _extended(K, array_ops.host_float64(gram.block(pool, others)))
        place = np.empty(n, dtype=np.intp)
        place[pool] = np.arange(len(pool))
        # The multiple of I is below rounding error, and makes K[S, S] nonsingular.
        regular = K + limit * np.eye(len(pool))
        *_, last = swaps(regular, np.arange(m), place[candidates], rng)
        members, K = pool[last], K[np.ix_(last, last)]
    return members


def _extended(K: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return K (m, m) with further columns (m + k, k), and rows that mirror them."""
    return np.hstack([np.vstack([K, columns[: len(K)].T]), columns])


def swaps(
    K: np.ndarray, members: np.ndarray, candidates: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the members after each step of the chain; each step proposes one candidate.

    Candidates are drawn uniformly from all rows. One that is a member already changes nothing,
    which keeps the proposal symmetric. Shapes: K (p, p), members (m,), candidates (steps,).
    """
    # Recomputed in each batch, so that rounding errors of the updates do not accumulate.
    inverse = cho_solve(cho_factor(K[np.ix_(members, members)]), np.eye(len(members)))
    leaving = rng.integers(len(members), size=len(candidates))
    levels = rng.random(len(candidates))
    for start in range(0, len(candidates), TOGETHER):
        some = slice(start, start + TOGETHER)
        few = _Swept(K, inverse, members, np.append(members[leaving[some]], candidates[some]))
        members = members.copy()
        for new, at, level in zip(candidates[some], leaving[some], levels[some], strict=True):
            if few.swap(members[at], new, level):
                members[at] = new
            yield members.copy()
        members, inverse = few.result()


class _Swept:
    """K swept on the members S, restricted to few rows, which may leave or enter S.

    The sweep has -K[S, S]⁻¹ between members, K[S, S]⁻¹ K[S, ·] between members and others, and the
    residual K - K[·, S] K[S, S]⁻¹ K[S, ·] between others. If a member and another row change
    places, det K[S, S] changes by the factor -det of these two rows' entries, and the sweep by a
    matrix of rank 2. So a step needs the entries of few rows only, and K[S, S]⁻¹ follows later.
    """

    def __init__(
        self, K: np.ndarray, inverse: np.ndarray, members: np.ndarray, rows: np.ndarray
    ) -> None:
        self.members, self.inverse, self.rows = members, inverse, np.unique(rows)
        here, self.at = np.nonzero(self.rows[:, None] == members)
        self.began = np.isin(np.arange(len(self.rows)), here)  # which rows are members
        self.inside = self.began.copy()  # which of them are members now
        others = np.flatnonzero(~self.began)
        known = K[np.ix_(self.rows[others], members)]
        self.sides = np.empty((len(self.rows), len(members)))  # entries of ``rows`` and members
        self.sides[here], self.sides[others] = -inverse[self.at], known @ inverse
        self.table = np.empty((len(self.rows), len(self.rows)))  # entries of ``rows``
        self.table[:, here] = self.sides[:, self.at]
        self.table[here] = self.table[:, here].T
        left = K[np.ix_(self.rows[others], self.rows[others])] - self.sides[others] @ known.T
        self.table[np.ix_(others, others)] = left

    def swap(self, old: int, new: int, level: float) -> bool:
        """Replace a member by another row if the ratio of determinants is above ``level``."""
        i, j = np.searchsorted(self.rows, (old, new))
        if self.inside[j]:  # the ratio is 0, up to rounding
            return False
        a, b, c = self.table[i, i], self.table[i, j], self.table[j, j]
        ratio = b * b - a * c
        if level >= ratio:
            return False
        W = self.table[[i, j]]
        F = np.array([[-c, b], [b, -a]]) / ratio @ W
        self.table -= W.T @ F
        self.table[i], self.table[j] = -F[0], F[1]
        self.table[:, i], self.table[:, j] = -F[0], F[1]
        self.table[i, i], self.table[j, j] = c / ratio, a / ratio
        self.table[i, j] = self.table[j, i] = b / ratio
        self.inside[i], self.inside[j] = False, True
        return True

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the members now and their K[S, S]⁻¹; a row that entered has a leaver's place."""
        changed = np.flatnonzero(self.inside != self.began)
        enters = self.inside[changed]
        signs = np.where(enters, -1.0, 1.0)
        # minus the inverse of the entries that these rows had at first
        E = signs[:, None] * self.table[np.ix_(changed, changed)] * signs
        F = E @ self.sides[changed]
        inverse = self.inverse - self.sides[changed].T @ F
        places = self.at[~self.inside[self.began]]
        inverse[places] = F[enters]
        inverse[:, places] = F[enters].T
        inverse[np.ix_(places, places)] = -E[np.ix_(enters, enters)]
        members = self.members.copy()
        members[places] = self.rows[changed[enters]]
        return members, inverse
