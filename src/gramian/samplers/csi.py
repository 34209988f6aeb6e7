"""CSI: incomplete Cholesky whose pivots also take the target into account."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gramian.backend import array_ops, checks
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers.base import Landmarks, Sampler, from_rows, host_diagonal, rounding_limit

__all__ = ["CSI"]


class CSI(Sampler):
    """Greedy pivots that explain both the kernel matrix and a target: Cholesky with side
    information (Bach and Jordan 2005, "Predictive low-rank decomposition for kernel methods").

    Each step selects the row with the largest gain: (1 - mixing) times the reduction of the trace
    of K by its column, plus mixing times the reduction of the squared residual of y, each relative
    to its initial value. Columns of rows that are not selected are unknown; they are estimated from
    ``delta`` further columns, which look ahead. The paper takes those of the usual incomplete
    Cholesky decomposition. Here the residual diagonal is weighted by the squared residual of y, in
    the same proportion as the gains: where the spectrum falls slowly, the usual pivots are
    outliers, and looking at these finds little that predicts y.

    It takes n (m + delta) kernel evaluations and the diagonal, O(n (m + delta)(m + delta + t))
    flops for t targets, and memory for n (2 m + delta) numbers. It is deterministic.

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
        return n * (m + self.delta + 1)

    def select_bytes(self, rows: Rows, m: int) -> int:
        columns = 2 * m + checks.positive_integer(self, "delta", self.delta)
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
        to_explain, to_predict = state.trace, state.loss() or 1.0
        pivots: list[int] = []
        with progress("CSI", m) as step:
            while len(pivots) < min(m, gram.shape[0]):
                state.look_ahead(delta, kappa)
                explains, predicts, open_rows = state.gains()
                if not open_rows.any():
                    break
                gains = (1 - kappa) * explains / to_explain + kappa * predicts / to_predict
                pivots.append(int(np.argmax(np.where(open_rows, gains, -np.inf))))
                state.take(pivots[-1])
                step()
        return from_rows(gram, pivots or [0])  # K = 0 is explained by any row


class _LookAhead:
    """A Cholesky factor F of K on the columns seen: first those of pivots, then those ahead.

    Let A be the columns of F ahead and a_i its rows. The residual of column i of K, after the
    pivots, is A a_i plus a part that no column seen explains; of that part only the diagonal is
    known. Each new column updates all values per candidate in O(n delta).
    """

    def __init__(self, gram: Gram, m: int, delta: int, R: np.ndarray, centred: bool) -> None:
        n = gram.shape[0]
        self.gram, self.centred = gram, centred
        self.unseen = host_diagonal(gram)  # the diagonal of K - F Fᵀ
        self.trace = float(self.unseen.sum())
        self.limit = rounding_limit(gram, self.unseen)
        # below this, relative to a bound of ||K_i||², the norm of a projected column is rounding
        self.norm_limit = 1e-12 * self.trace * self.unseen
        self.F = np.empty((n, min(n, m + delta)), order="F")  # columns seen
        self.Q = np.empty((n, m), order="F")  # orthonormal basis of the pivots' columns
        self.taken = self.seen = self.rank = 0
        self.open = np.ones(n, dtype=bool)
        self.norms = np.zeros(n)  # ||A a_i||²
        self.projected = np.zeros(n)  # ||P A a_i||², with P the projection away from Q
        self.R = R - R.mean(axis=0) if centred else R  # P y

    @property
    def ahead(self) -> np.ndarray:
        return self.F[:, self.taken : self.seen]

    def loss(self) -> float:
        return float(np.sum(self.R**2))

    def look_ahead(self, delta: int, kappa: float) -> None:
        """See further columns: of rows with a large residual, of the diagonal and of the target.

        Only columns that were seen can promise much. By the diagonal alone, these would be the
        outliers wherever the spectrum falls slowly, and no step could find what predicts y.
        """
        missed = np.sum(self.R**2, axis=1)
        chances = (1 - kappa) / len(missed) + kappa * missed / (missed.sum() or 1.0)
        while self.seen - self.taken < delta and self.unseen.max() > self.limit:
            weighed = np.where(self.unseen > self.limit, self.unseen * chances, -1.0)
            self._see(int(np.argmax(weighed)))

    def gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each row's reduction of trace and loss, and which rows may become pivots.

        All three have shape (n,).
        """
        A, e = self.ahead, self.unseen
        s = np.einsum("ij,ij->i", A, A)
        open_rows = self.open & (s + e > self.limit)
        # At least s_i², the square of the i-th entry of A a_i; the maximum removes rounding.
        squared = np.maximum(self.norms, s * s) + e * (2 * s + e)
        explains = squared / np.where(open_rows, s + e, 1.0)
        # The unseen part counts in the norm only, since it may not predict anything.
        squared = np.maximum(self.projected, 0.0) + e * e
        known = squared > self.norm_limit
        reached = np.sum((A @ (A.T @ self.R)) ** 2, axis=1)
        predicts = np.where(known, reached / np.where(known, squared, 1.0), 0.0)
        return explains, predicts, open_rows

    def take(self, row: int) -> None:
        """Make this row the next pivot."""
        if self.unseen[row] > self.limit:
            self._see(row)  # its true column, so that nothing of it is unseen
        # A reflection of the columns ahead does not change F Fᵀ. The one that maps a_row to a
        # multiple of the first unit vector makes the first column the pivot's.
        A = self.ahead
        normal = A[row].copy()
        normal[0] += np.copysign(np.linalg.norm(normal), normal[0])
        A -= np.outer(A @ normal, normal * (2 / (normal @ normal)))
        column = A[:, 0]
        self.taken += 1
        self.open[row] = False
        self.norms -= self._change(column, column)
        q = self._project(column)
        length = np.linalg.norm(q)
        if length > 1e-10 * np.linalg.norm(column):
            q /= length
            self.Q[:, self.rank] = q
            self.rank += 1
            self.R = self.R - np.outer(q, q @ self.R)
            self.projected -= (column * (q @ column) + self.ahead @ (self.ahead.T @ q)) ** 2

    def _see(self, row: int) -> None:
        column = array_ops.host_float64(self.gram.columns([row]))[:, 0]
        known = self.F[:, : self.seen]
        column = (column - known @ known[row]) / np.sqrt(self.unseen[row])
        self.norms += self._change(column, column)
        self.projected += self._change(column, self._project(column))
        self.F[:, self.seen] = column
        self.seen += 1
        self.unseen = np.maximum(self.unseen - column**2, 0.0)

    def _change(self, c: np.ndarray, Bc: np.ndarray) -> np.ndarray:
        """Return ||B (A a_i + c_i c)||² - ||B A a_i||² for all i, where B is a projection."""
        return c * (2 * (self.ahead @ (self.ahead.T @ Bc)) + c * (c @ Bc))

    def _project(self, c: np.ndarray) -> np.ndarray:
        Q = self.Q[:, : self.rank]
        c = c - c.mean() if self.centred else c
        c = c - Q @ (Q.T @ c)
        return c - Q @ (Q.T @ c)  # twice: one Gram-Schmidt step loses orthogonality


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
