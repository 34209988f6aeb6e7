"""Landmarks by pivoted Cholesky: pivots are chosen by what earlier ones leave unexplained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

import numpy as np
from scipy.linalg import solve_triangular

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.backend.progress import progress
from gramian.backend.threads import one_blas_thread
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers.base import Landmarks, Sampler, from_rows, gathered, settled_diagonal

__all__ = ["Greedy", "RPCholesky", "pivoted_cholesky"]

MOST_PIVOTS = 128  # drawn at once
MOST_CANDIDATES = 512  # rows that a greedy block looks at


@dataclass(eq=False)
class Pivoted:
    """A partial Cholesky factor F Fᵀ ≈ K, grown pivot by pivot."""

    gram: Gram
    F: Array  # shape: (n, most)
    left: Array  # the diagonal of K - F Fᵀ in float64, where the rows are; shape: (n,)
    pivots: np.ndarray  # row numbers

    @classmethod
    def start(cls, gram: Gram, most: int, dtype: DType) -> Pivoted:
        """Return a factor without pivots, and with memory for ``most``."""
        F = gram.rows.place.empty_columns(most, dtype)
        return cls(gram, F, settled_diagonal(gram), np.empty(0, dtype=np.intp))

    @property
    def factor(self) -> Array:
        """F, with a column for each pivot; shape (n, pivots)."""
        return self.F[:, : len(self.pivots)]

    def residual_block(self, rows: np.ndarray) -> np.ndarray:
        """Return (K - F Fᵀ)[rows, rows] in float64 on the host."""
        known = array_ops.host_float64(array_ops.take_rows(self.factor, rows))
        block = array_ops.host_float64(self.gram.block(rows, rows))
        return block - known @ known.T

    def extend(self, rows: np.ndarray, lower: np.ndarray) -> None:
        """Add pivots; ``lower`` (p, p) is the Cholesky factor of their residual block."""
        gram, used = self.gram, len(self.pivots)
        xp, dtype = gram.rows.xp, self.F.dtype
        taken = array_ops.like(
            array_ops.take_rows(self.factor, rows), gram.rows.place.reference, dtype
        )
        known = xp.matrix_transpose(taken)
        inverse = solve_triangular(lower, np.eye(len(rows)), lower=True, check_finite=False).T
        inverse = array_ops.like(np.ascontiguousarray(inverse), known, dtype)
        tile = gram.kernel.against(gram.points.take(rows))

        def fill(x: Array, *f: Array, out: Array) -> Array:
            """Compute (K - F Fᵀ)[block, rows] L⁻ᵀ while the block is in cache."""
            values = array_ops.astype(tile(x), dtype)
            if f:
                values -= f[0] @ known
            return array_ops.matmul(values, inverse, out)

        work = (used + 2 * len(rows)) * array_ops.itemsize(dtype)
        new = gram.rows.map(
            fill,
            *([self.factor] if used else []),
            width=len(rows),
            dtype=dtype,
            row_bytes=work,
            serial=gram.kernel.serial,
            label="pivoted Cholesky",
        )
        new = array_ops.settled(new)
        gram.evaluations += gram.shape[0] * len(rows)
        self.F = gram.rows.place.with_columns(self.F, used, new)
        self.pivots = np.append(self.pivots, rows)
        explained = gathered(array_ops.row_norms(new))
        self.left -= array_ops.astype(explained, self.left.dtype)
        self.left = array_ops.clip(self.left, low=0.0)
        array_ops.put_rows(self.left[:, None], rows, xp.zeros_like(self.left[: len(rows), None]))

    def left_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the diagonal of K - F Fᵀ at some rows, on the host."""
        return array_ops.to_numpy(array_ops.take_rows(self.left, rows))


@one_blas_thread()
def pivoted_cholesky(
    gram: Gram,
    m: int,
    rng: np.random.Generator,
    *,
    tol: float = 0.0,
    greedy: bool = False,
    rounding: float = 100.0,
    dtype: DType | None = None,
    weights: np.ndarray | None = None,
) -> Pivoted:
    """Factor K with at most m pivots, until at most ``tol`` of the trace is left.

    Random pivots are drawn in blocks, in proportion to the remaining diagonal. Rejection thins each
    block so that the pivots are distributed as if drawn one after the other; only accepted pivots
    cost a column. Ends early if only rounding errors are left of each row: ``rounding`` times the
    machine epsilon times the largest diagonal entry. By default the factor has the kernel's dtype.
    With ``weights`` (n,), each row counts as that many rows.
    """
    m = min(m, gram.shape[0])
    state = Pivoted.start(gram, m, gram.dtype if dtype is None else dtype)
    xp = array_ops.namespace(state.left)
    noise = rounding * array_ops.eps(gram.dtype) * float(xp.max(state.left))
    enough = max(tol * float(xp.sum(state.left)), noise)
    if weights is not None:
        weights = array_ops.like(weights, state.left)
    rows = np.empty(0, dtype=np.intp)
    with progress("pivoted Cholesky", m) as step:
        while len(state.pivots) < m and float(xp.sum(state.left)) > enough:
            room = m - len(state.pivots)
            # Large blocks are faster; with a tolerance, which may end it early, small ones first.
            size = min(MOST_PIVOTS, max(4, m // 4 if tol == 0 else len(state.pivots) // 4))
            if greedy:
                # As many kernel values between candidates as the last block's columns had.
                candidates = min(isqrt(gram.shape[0] * max(len(rows), 1)) + 1, MOST_CANDIDATES)
                most = min(room, size)
                left = array_ops.to_numpy(state.left)
                rows, lower = greedy_block(left, state.residual_block, candidates, most, noise)
            else:
                drawn = _drawn(state.left if weights is None else weights * state.left, size, rng)
                offered = state.left_of(drawn)
                accepted, lower = _thin(state.residual_block(drawn), offered, rng, room)
                rows = drawn[accepted]
            if state.left_of(rows).max() <= noise:
                break
            state.extend(rows, lower)
            step(len(rows))
    return state


def factor_bytes(rows: Rows, m: int, dtype: DType | None = None) -> int:
    """Return the memory of ``pivoted_cholesky`` for m pivots and a block of new columns."""
    block = min(MOST_PIVOTS, max(4, m // 4))
    item = array_ops.itemsize(rows.dtype if dtype is None else dtype)
    return rows.shape[0] * (min(m, rows.shape[0]) + block) * item


def _drawn(mass: Array, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw row numbers with replacement, in proportion to their mass (n,), where the mass is."""
    xp = array_ops.namespace(mass)
    edges = xp.cumulative_sum(mass)
    ticks = array_ops.like(rng.random(size), mass)
    return array_ops.to_numpy(xp.searchsorted(edges / edges[-1], ticks, side="right"))


def _thin(
    H: np.ndarray, offered: np.ndarray, rng: np.random.Generator, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Accept each draw of a block with the share of its diagonal that is still left.

    H (b, b) is the residual block of the draws, ``offered`` (b,) the diagonal they were drawn by.
    Returns the accepted positions (p,) and the Cholesky factor (p, p) of their block.
    """
    H = H.copy()
    thresholds = rng.random(len(H)) * offered
    accepted: list[int] = []
    columns: list[np.ndarray] = []
    for i in range(len(H)):
        if len(accepted) < most and 0 < thresholds[i] < H[i, i]:
            column = H[:, i] / np.sqrt(H[i, i])
            H -= np.outer(column, column)
            accepted.append(i)
            columns.append(column)
    if not accepted:  # rounding may reject all: accept the largest
        i = int(np.argmax(H.diagonal()))
        return np.array([i]), np.sqrt(np.maximum(H[[i], [i]], 1e-300))[:, None]
    return np.array(accepted), np.tril(np.column_stack(columns)[accepted])


def greedy_block(
    left: np.ndarray,
    residual_block: Callable[[np.ndarray], np.ndarray],
    candidates: int,
    most: int,
    noise: float,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pivots that greedy steps would select next, one after the other.

    The candidates are the rows with the largest residual diagonals, ``left`` (n,), times their
    weights (n,). Residuals only fall, so a candidate that is above the largest row outside is the
    next pivot, and the columns of all such pivots can be computed together. Returns their row
    numbers (p,) and the Cholesky factor (p, p) of their residual block.
    """
    worth = np.where(left > noise, left if weights is None else left * weights, -1.0)
    falling = worst_first(worth, candidates + 1)
    rows, others = np.sort(falling[:candidates]), falling[candidates:]
    outside = max([(worth[i], -i) for i in others[:1]], default=(-1.0, 0))
    of_row = 1.0 if weights is None else weights[rows]
    H, left = residual_block(rows), left[rows]
    L = np.zeros((len(rows), min(most, len(rows))))
    chosen = [int(np.searchsorted(rows, falling[0]))]
    for i in range(L.shape[1]):
        pivot = chosen[-1]
        L[:, i] = (H[:, pivot] - L[:, :i] @ L[pivot, :i]) / np.sqrt(left[pivot])
        L[pivot, i] = np.sqrt(left[pivot])
        left = left - L[:, i] ** 2
        left[chosen] = -1.0
        worth = np.where(left > noise, left * of_row, -1.0)
        best = int(np.argmax(worth))
        if worth[best] < 0 or (worth[best], -rows[best]) < outside:
            break
        chosen.append(best)
    chosen = chosen[: L.shape[1]]
    return rows[chosen], np.tril(L[chosen, : len(chosen)])


def worst_first(worth: np.ndarray, count: int) -> np.ndarray:
    """Return the ``count`` first row numbers, or a few more, in the order of falling worth (n,).

    Of equal rows the first comes first, as argmax has it.
    """
    some = np.arange(len(worth))
    if count < len(worth):  # far fewer rows to sort
        some = np.flatnonzero(worth >= np.partition(worth, -count)[-count])
    return some[np.argsort(-worth[some], kind="stable")]


class _PivotedSampler(Sampler):
    grows = True
    _greedy = False

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        return self.grow(gram, m, rng, 0.0)

    def grow(self, gram: Gram, most: int, rng: np.random.Generator, tol: float) -> Landmarks:
        state = pivoted_cholesky(gram, most, rng, tol=tol, greedy=self._greedy)
        return from_rows(gram, state.pivots)

    def select_bytes(self, rows: Rows, m: int) -> int:
        return super().select_bytes(rows, m) + factor_bytes(rows, m)


class RPCholesky(_PivotedSampler):
    """Randomly pivoted Cholesky: rows drawn in proportion to their residual.

    Rows are drawn in blocks with rejection, so that the work is matrix products: n·m kernel
    evaluations and those of the drawn blocks, O(n·m²) operations. (Chen, Epperly, Tropp and Webber,
    2022; Epperly, Tropp and Webber, 2024.)

    See Also
    --------
    Greedy : always the row with the largest residual.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, RPCholesky
    >>> X = np.array([[0.0], [0.0], [5.0], [5.0]])
    >>> landmarks = RPCholesky().select(Gram(RBF(1.0), X), 2, np.random.default_rng(0))
    >>> sorted(landmarks.points.ravel().tolist())
    [0.0, 5.0]
    """

    names = ("rpcholesky",)


class Greedy(_PivotedSampler):
    """Greedy pivoted (incomplete) Cholesky: always the row with the largest residual.

    At most 2 n·m kernel evaluations, O(n·m²) operations. Its pivots are those of the usual form,
    which computes one column after the other; here, columns of rows that must be the next pivots
    are computed together. It prefers outliers.

    See Also
    --------
    RPCholesky : draws rows by their residual, and so avoids outliers.
    CSI : pivots that also explain the target.

    References
    ----------
    - S. Fine and K. Scheinberg, Efficient SVM training using low-rank kernel representations,
      JMLR 2, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, Greedy
    >>> gram = Gram(RBF(1.0), [[0.0], [0.1], [1.0], [9.0]])
    >>> Greedy().select(gram, 3, np.random.default_rng(0)).indices
    array([0, 3, 2])
    """

    names = ("greedy",)
    _greedy = True

    def select_bytes(self, rows: Rows, m: int) -> int:
        candidates = min(rows.shape[0], MOST_CANDIDATES)
        return super().select_bytes(rows, m) + 4 * 8 * candidates**2
