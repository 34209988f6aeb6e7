"""CSI: incomplete Cholesky whose pivots also take the target into account."""

from __future__ import annotations

from math import isqrt
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from gramian.backend import array_ops, checks
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers.base import Landmarks, Sampler, from_rows, host_diagonal, rounding_limit
from gramian.samplers.pivoted import greedy_block

__all__ = ["CSI"]

MOST_CANDIDATES = 256  # rows that a block of columns ahead is chosen from
NEGLIGIBLE = 1e-12  # of the squared length of a column: what its projection leaves is rounding


class CSI(Sampler):
    """Greedy pivots that explain both the kernel matrix and a target: Cholesky with side
    information (Bach and Jordan 2005, "Predictive low-rank decomposition for kernel methods").

    Each step selects the row with the largest gain: (1 - mixing) times the reduction of the trace
    of K by its column, plus mixing times the reduction of the squared residual of y, each relative
    to its initial value. Both follow from the columns of ``delta`` rows or more that the algorithm
    looks ahead to. One of these becomes the next pivot, or another row that they explain.

    It differs from the paper in two ways. The paper looks ahead to the pivots of the usual
    incomplete Cholesky decomposition; here the residual diagonal is weighted by the squared
    residual of y, in the same proportion as the gains. And the paper estimates the gains of all
    other rows from the columns ahead, by the direction that these know. Where the spectrum falls
    slowly, the usual pivots are outliers, and know little of the other rows or of what predicts y.

    It takes at most 2 n (m + delta) kernel evaluations and the diagonal,
    O(n (m + delta)(m + delta + t)) flops for t targets, nearly all in matrix products, and memory
    for n (2 m + 8 delta) numbers. It is deterministic.

    Parameters
    ----------
    delta : int
        The number of columns to look ahead.
    centred : bool
        Whether to predict the target with an intercept.
    mixing : float
        From 0, which considers K only, to 1, which considers the target only (the paper's kappa).

    See Also
    --------
    Greedy : pivots that do not look at the target.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import CSI, Gram
    >>> X = np.array([[3.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> y = X[:, 1]
    >>> gram, rng = Gram("linear", X), np.random.default_rng(0)
    >>> CSI().select(gram, 1, rng, y).indices, CSI(mixing=0.0).select(gram, 1, rng, y).indices
    (array([2]), array([0]))
    """

    names = ("csi",)
    needs_target: ClassVar[bool] = True
    spreads: ClassVar[bool] = False

    def __init__(self, delta: int = 40, centred: bool = True, mixing: float = 0.99) -> None:
        self.delta = delta
        self.centred = centred
        self.mixing = mixing

    def most_evaluations(self, n: int, m: int) -> int:
        return 2 * n * (m + self.delta + 1)

    def select_bytes(self, rows: Rows, m: int) -> int:
        columns = 2 * m + 8 * checks.positive_integer(self, "delta", self.delta)
        return super().select_bytes(rows, m) + 8 * rows.shape[0] * (columns + 8)

    @one_blas_thread()  # BLAS's own threads would spin between columns
    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        delta = checks.positive_integer(self, "delta", self.delta)
        kappa = checks.not_negative(self, "mixing", self.mixing)
        if kappa > 1:
            raise ValueError(f"mixing of CSI must be from 0 to 1; got {self.mixing!r}.")
        state = _LookAhead(gram, min(m, gram.shape[0]), delta, _target(y, gram), self.centred)
        to_explain, to_predict = state.trace or 1.0, state.loss() or 1.0
        with progress("CSI", m) as step:
            while len(state.pivots) < min(m, gram.shape[0]):
                state.look_ahead(kappa)
                explains, predicts, open_rows = state.gains()
                if not open_rows.any():
                    break
                gains = (1 - kappa) * explains / to_explain + kappa * predicts / to_predict
                state.take(int(np.argmax(np.where(open_rows, gains, -np.inf))))
                step()
        return from_rows(gram, state.pivots or [0])  # K = 0 is explained by any row


class _LookAhead:
    """Cholesky columns of K: G, those of pivots, and A, those of rows that may become pivots.

    Let a_j be the rows of A. After the pivots of a block, A Π Aᵀ is left
    of A Aᵀ, with a projection Π of size (w, w). The next pivot takes away the direction
    h = Π a_j / ||Π a_j||: its column is A h. So a step needs small matrices only. Columns join A,
    and leave it for G, in blocks.
    """

    def __init__(self, gram: Gram, m: int, delta: int, R: np.ndarray, centred: bool) -> None:
        n = gram.shape[0]
        self.gram, self.centred, self.delta = gram, centred, delta
        self.room = min(n, m + delta)  # columns that may still be seen
        self.unseen = host_diagonal(gram)  # the diagonal of K - G Gᵀ - A Aᵀ
        self.trace = float(self.unseen.sum())
        self.limit = rounding_limit(gram, self.unseen)
        self.G = np.empty((n, m), order="F")
        self.Q = np.empty((n, m), order="F")  # orthonormal basis of the columns of G
        self.rank, self.last = 0, 1
        self.pivots: list[int] = []
        self.R = R - R.mean(axis=0) if centred else R  # P y, with P the projection away from Q
        self._start(np.empty((n, 0)), np.empty((n, 0)))

    def loss(self) -> float:
        """Return the squared residual of y before this block."""
        return float(np.sum(self.R**2))

    def look_ahead(self, kappa: float) -> None:
        """See further columns if fewer than delta are ahead: half as many more.

        They are those of rows with a large residual, of the diagonal and of the target.
        """
        if self.A.shape[1] - len(self.directions) >= self.delta or not self._more():
            return
        self._settle()
        missed = np.sum(self.R**2, axis=1)
        chances = (1 - kappa) / len(missed) + kappa * missed / (missed.sum() or 1.0)
        wanted = self.delta + max(self.delta // 2, 1)
        while (free := min(wanted - self.A.shape[1], self.room)) > 0 and self._more():
            # As many kernel values between candidates as the last block's columns had.
            candidates = min(isqrt(len(missed) * self.last) + 1, MOST_CANDIDATES)
            block = greedy_block(
                self.unseen, self._residual_block, candidates, free, self.limit, chances
            )
            self._see(*block)

    def gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return by how much rows would reduce trace and loss, and which of them may be pivots.

        All three are of ``rows``: those ahead, and others that the columns seen explain.
        """
        H = self.left @ self.A[self.rows].T
        lengths = np.sum(H**2, axis=0)
        H /= np.sqrt(np.maximum(lengths, 1e-300))
        explains = np.sum(H * (self.N @ H), axis=0)
        independent = np.sum(H * (self.M @ H), axis=0)
        sure = independent > NEGLIGIBLE * explains
        reached = np.sum((self.C.T @ H) ** 2, axis=0)
        predicts = np.where(sure, reached / np.where(sure, independent, 1.0), 0.0)
        return explains, predicts, (lengths > self.limit) & ~np.isin(self.rows, self.pivots)

    def take(self, position: int) -> None:
        """Make the row at this position of ``rows`` the next pivot."""
        row = self.rows[position]
        h = self.left @ self.A[row]
        h = self.left @ (h / np.linalg.norm(h))  # twice: little may be left of a long row
        h /= np.linalg.norm(h)
        Mh = self.M @ h
        length = float(h @ Mh)
        self.independent.append(length > NEGLIGIBLE * float(h @ self.N @ h))
        if self.independent[-1]:
            self.C -= np.outer(Mh, h @ self.C) / length
            self.M -= np.outer(Mh, Mh) / length
        self.left -= np.outer(h, h)
        self.directions.append(h)
        self.pivots.append(int(row))

    def _more(self) -> bool:
        return self.room > 0 and self.unseen.max() > self.limit

    def _settle(self) -> None:
        """Move the columns of this block's pivots from A to G and Q."""
        if not self.directions:
            return
        H, taken = np.column_stack(self.directions), len(self.pivots)
        self.G[:, taken - H.shape[1] : taken] = self.A @ H
        fresh = np.linalg.qr(self.B @ H[:, self.independent])[0]
        self.Q[:, self.rank : self.rank + fresh.shape[1]] = fresh
        self.rank += fresh.shape[1]
        self.R = self.R - fresh @ (fresh.T @ self.R)
        rest = np.linalg.qr(H, mode="complete")[0][:, H.shape[1] :]
        B = self.B @ rest
        self._start(self.A @ rest, B - fresh @ (fresh.T @ B))

    def _see(self, rows: np.ndarray, lower: np.ndarray) -> None:
        """Add columns to A; ``lower`` (p, p) is the Cholesky factor of their residual block."""
        G = self.G[:, : len(self.pivots)]
        new = array_ops.host_float64(self.gram.columns(rows))
        new = new - G @ G[rows].T
        new -= self.A @ self.A[rows].T
        new = solve_triangular(lower, new.T, lower=True, check_finite=False).T
        self.unseen = np.maximum(self.unseen - np.sum(new**2, axis=1), 0.0)
        self.unseen[rows] = 0.0
        self.room, self.last = self.room - len(rows), len(rows)
        projected = self._project(self._project(new - new.mean(axis=0) if self.centred else new))
        self._start(np.hstack([self.A, new]), np.hstack([self.B, projected]))

    def _start(self, A: np.ndarray, B: np.ndarray) -> None:
        """Begin a block of steps with columns A ahead, and B = P A; both have shape (n, w)."""
        self.A, self.B = A, B
        self.rows = np.setdiff1d(np.flatnonzero(self.unseen <= self.limit), self.pivots)
        self.N, self.M, self.C = A.T @ A, B.T @ B, B.T @ self.R
        self.left = np.eye(A.shape[1])  # Π
        self.directions: list[np.ndarray] = []
        self.independent: list[bool] = []  # which of them P does not map to rounding errors

    def _residual_block(self, rows: np.ndarray) -> np.ndarray:
        known = np.hstack([self.G[rows, : len(self.pivots)], self.A[rows]])
        return array_ops.host_float64(self.gram.block(rows, rows)) - known @ known.T

    def _project(self, c: np.ndarray) -> np.ndarray:
        Q = self.Q[:, : self.rank]
        return c - Q @ (Q.T @ c)


def _target(y: Array | None, gram: Gram) -> np.ndarray:
    """Return y as a float64 matrix with one column per target; shape (n, t)."""
    if y is None:
        raise ValueError("CSI chooses rows that predict a target, so it needs y: fit(X, y).")
    values = array_ops.to_numpy(y)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"CSI takes y as numbers; got dtype {values.dtype}. Encode classes as one-hot columns."
        )
    values = np.asarray(values, dtype=float)
    if values.ndim not in (1, 2) or len(values) != gram.shape[0]:
        raise ValueError(
            f"y must have one row for each of the {counted(gram.shape[0], 'row')}; got shape "
            f"{values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("y contains NaN or infinity; CSI needs finite numbers.")
    return values.reshape(len(values), -1)
