"""CSI: incomplete Cholesky whose pivots also take the target into account."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt
from typing import ClassVar, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular

from gramian.backend import array_ops, checks, config
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.backend.threads import in_order, one_blas_thread
from gramian.backend.wording import counted
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.rows.arrays import even_spans
from gramian.samplers.base import Landmarks, Sampler, from_rows, host_diagonal, rounding_limit
from gramian.samplers.pivoted import greedy_block

__all__ = ["CSI"]

Parts: TypeAlias = tuple[np.ndarray, ...]

MOST_CANDIDATES = 256  # rows that a block of columns ahead is chosen from
# Of the squared length of a column: what its projection leaves is rounding. Also 100 epsilons of
# its length, in float32.
NEGLIGIBLE = 1e-12
LITTLE = 0.01  # of the squared length of a column: what is left is projected again
BLOCK = 16_384  # rows that a thread takes at a time


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
    for n (2 m + 6 delta) numbers. It is deterministic.

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
        n, delta = rows.shape[0], checks.positive_integer(self, "delta", self.delta)
        at_once = min(n, config.n_threads() * BLOCK)
        numbers = n * (2 * m + 6 * delta) + at_once * 4 * delta
        item = array_ops.itemsize(rows.dtype)
        return super().select_bytes(rows, m) + item * numbers + n * 8 * 8

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
    and leave it for G, in blocks. Columns have the precision of the kernel, small matrices float64.
    Each array of columns is stored as its transpose, so that a column is contiguous.
    """

    def __init__(self, gram: Gram, m: int, delta: int, R: np.ndarray, centred: bool) -> None:
        n = gram.shape[0]
        self.gram, self.centred, self.delta = gram, centred, delta
        self.room = min(n, m + delta)  # columns that may still be seen
        self.unseen = host_diagonal(gram)  # the diagonal of K - G Gᵀ - A Aᵀ
        self.trace = float(self.unseen.sum())
        self.limit = rounding_limit(gram, self.unseen)
        self.dtype = np.float32 if array_ops.itemsize(gram.dtype) == 4 else np.float64
        self.negligible = max(NEGLIGIBLE, (100 * array_ops.eps(self.dtype)) ** 2)
        self.G = np.empty((m, n), dtype=self.dtype)
        self.Q = np.empty_like(self.G)  # orthonormal basis of the columns of G
        self.rank, self.last = 0, 1
        self.pivots: list[int] = []
        self.taken = np.zeros(n, dtype=bool)  # which rows are pivots
        self.R = R - R.mean(axis=0) * centred  # P y, with P the projection away from Q; (n, t)
        # A and B = P A; both have shape (width, n). New pages would take as long as products.
        self.ahead = np.empty((2, self._wanted, n), dtype=self.dtype)
        self._show(0)
        self._start()

    @property
    def _wanted(self) -> int:
        """The number of columns to look ahead to after new ones joined."""
        return self.delta + max(self.delta // 2, 1)

    def _show(self, width: int) -> None:
        """Let A and B be the first columns of their memory."""
        self.width = width
        self.A, self.B = self.ahead[:, :width]

    def loss(self) -> float:
        """Return the squared residual of y before this block."""
        return float(np.sum(self.R**2))

    def look_ahead(self, kappa: float) -> None:
        """See further columns if fewer than delta are ahead: half as many more.

        They are those of rows with a large residual, of the diagonal and of the target.
        """
        if self.width - len(self.directions) >= self.delta or not self._more():
            return
        self._settle()
        missed = np.sum(self.R**2, axis=1)
        chances = (1 - kappa) / len(missed) + kappa * missed / (missed.sum() or 1.0)
        while (free := min(self._wanted - self.width, self.room)) > 0 and self._more():
            # As many kernel values between candidates as the last block's columns had.
            candidates = min(isqrt(len(missed) * self.last), MOST_CANDIDATES)
            block = greedy_block(
                self.unseen, self._residual_block, candidates, free, self.limit, chances
            )
            self._see(*block)
        self._start()

    def gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return by how much rows would reduce trace and loss, and which of them may be pivots.

        All three are of ``rows``: those ahead, and others that the columns seen explain.
        """
        H = self.left @ self.of_rows
        lengths = np.sum(H**2, axis=0)
        H /= np.sqrt(np.maximum(lengths, 1e-300))
        explains = np.sum(H * (self.N @ H), axis=0)
        independent = np.sum(H * (self.M @ H), axis=0)
        sure = independent > self.negligible * explains
        reached = np.sum((self.C.T @ H) ** 2, axis=0)
        predicts = np.where(sure, reached / np.where(sure, independent, 1.0), 0.0)
        return explains, predicts, (lengths > self.limit) & ~self.taken[self.rows]

    def take(self, position: int) -> None:
        """Make the row at this position of ``rows`` the next pivot."""
        row = self.rows[position]
        h = self.left @ self.of_rows[:, position]
        h = self.left @ (h / np.linalg.norm(h))  # twice: little may be left of a long row
        h /= np.linalg.norm(h)
        Mh = self.M @ h
        length = float(h @ Mh)
        self.independent.append(length > self.negligible * float(h @ self.N @ h))
        if self.independent[-1]:
            self.C -= np.outer(Mh, h @ self.C) / length
            self.M -= np.outer(Mh, Mh) / length
        self.left -= np.outer(h, h)
        self.directions.append(h)
        self.pivots.append(int(row))
        self.taken[row] = True

    def _more(self) -> bool:
        return self.room > 0 and self.unseen.max() > self.limit

    def _settle(self) -> None:
        """Move the columns of this block's pivots from A to G and Q."""
        if not self.directions:
            return
        H, taken = np.array(self.directions), len(self.pivots)
        rest = np.linalg.qr(H.T, mode="complete")[0].T[len(H) :]
        fresh = self.Q[self.rank : self.rank + sum(self.independent)]
        self._turn(self.A, H, rest, self.G[taken - len(H) : taken])
        self._turn(self.B, H[self.independent], rest, fresh)
        self._show(len(rest))
        _orthonormalise(fresh)
        self._leave(fresh)
        self.rank += len(fresh)

    def _turn(self, columns: np.ndarray, H: np.ndarray, rest: np.ndarray, out: np.ndarray) -> None:
        """Write ``H columns`` to ``out``, and ``rest columns`` over the first of the columns."""
        both = np.vstack([H, rest]).astype(self.dtype)  # thin products would take longer

        def turn(rows: slice) -> Parts:
            turned = both @ columns[:, rows]
            out[:, rows], columns[: len(rest), rows] = turned[: len(H)], turned[len(H) :]
            return ()

        _sums(columns.shape[1], turn)

    def _leave(self, fresh: np.ndarray) -> None:
        """Project B and R away from the orthonormal columns ``fresh``."""

        def known(rows: slice) -> Parts:
            F = fresh[:, rows]
            return self.B[:, rows] @ F.T, F.astype(np.float64, copy=False) @ self.R[rows]

        of_B, of_R = _sums(fresh.shape[1], known)
        of_B = of_B.astype(self.dtype)

        def leave(rows: slice) -> Parts:
            F = fresh[:, rows]
            self.B[:, rows] -= of_B @ F
            self.R[rows] -= F.T.astype(np.float64, copy=False) @ of_R
            return ()

        _sums(fresh.shape[1], leave)

    def _see(self, rows: np.ndarray, lower: np.ndarray) -> None:
        """Add columns to A; ``lower`` (p, p) is the Cholesky factor of their residual block."""
        joined = slice(self.width, self.width + len(rows))
        self._append(rows, lower, self.ahead[0, joined])
        self.unseen[rows] = 0.0
        self._project(*self.ahead[:, joined])
        self.room, self.last = self.room - len(rows), len(rows)
        self._show(joined.stop)

    def _append(self, rows: np.ndarray, lower: np.ndarray, out: np.ndarray) -> None:
        """Write what G and A leave of these rows' columns, times L⁻ᵀ, to ``out``."""
        G, A, unseen = self.G[: len(self.pivots)], self.A, self.unseen
        of_G, of_A = (np.ascontiguousarray(known[:, rows].T) for known in (G, A))
        columns = array_ops.to_numpy(self.gram.columns(rows))
        inverse = solve_triangular(lower, np.eye(len(rows)), lower=True, check_finite=False)
        inverse = inverse.astype(self.dtype)

        def fill(some: slice) -> Parts:
            left = of_G @ G[:, some]
            left += of_A @ A[:, some]
            np.subtract(columns[some].T, left, out=left)
            new = np.matmul(inverse, left, out=out[:, some])
            unseen[some] = np.maximum(unseen[some] - np.einsum("ij,ij->j", new, new), 0.0)
            return ()

        _sums(len(columns), fill)

    def _start(self) -> None:
        """Begin a block of steps with the columns that are ahead."""
        self.rows = np.flatnonzero((self.unseen <= self.limit) & ~self.taken)
        self.of_rows = self.A[:, self.rows].astype(np.float64)

        def products(rows: slice) -> Parts:
            A, B, R = self.A[:, rows], self.B[:, rows], self.R[rows]
            return A @ A.T, B @ B.T, B @ R.astype(self.dtype, copy=False)

        self.N, self.M, self.C = _sums(len(self.R), products)
        self.left = np.eye(self.width)  # Π
        self.directions: list[np.ndarray] = []
        self.independent: list[bool] = []  # which of them P does not map to rounding errors

    def _residual_block(self, rows: np.ndarray) -> np.ndarray:
        known = np.vstack([self.G[: len(self.pivots), rows], self.A[:, rows]]).astype(np.float64)
        return array_ops.host_float64(self.gram.block(rows, rows)) - known.T @ known

    def _project(self, columns: np.ndarray, out: np.ndarray) -> None:
        """Write P c for these columns c; those of which little is left are projected once more."""
        before, after = self._away(columns, out)
        again = after < LITTLE * before
        if again.any():
            few = out[again]
            self._away(few, few)
            out[again] = few

    def _away(self, columns: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Write P c for these columns c; returns the squared lengths of c and of P c."""
        Q, n = self.Q[: self.rank], columns.shape[1]

        def known(rows: slice) -> Parts:
            c = columns[:, rows]
            return c.sum(axis=1), c @ Q[:, rows].T, array_ops.row_norms(c)

        sums, inner, before = _sums(n, known)
        inner, mean = inner.astype(self.dtype), (sums * self.centred / n).astype(self.dtype)

        def leave(rows: slice) -> Parts:
            left = inner @ Q[:, rows]
            left += mean[:, None]
            left = np.subtract(columns[:, rows], left, out=out[:, rows])
            return (array_ops.row_norms(left),)

        (after,) = _sums(n, leave)
        return before, after


def _sums(n: int, function: Callable[[slice], Parts]) -> Parts:
    """Return the sums, in float64, of the arrays that a function returns for blocks of n rows.

    Threads share the blocks, which do not depend on their number, nor does the order of the sums.
    """
    spans = [slice(*span) for span in even_spans(0, n, BLOCK)]
    results = in_order(function, spans, config.n_threads(), "columns of CSI")
    totals = tuple(part.astype(np.float64) for part in next(results))
    for parts in results:
        for total, part in zip(totals, parts, strict=True):
            total += part
    return totals


def _orthonormalise(F: np.ndarray) -> None:
    """Replace columns, the rows of F (k, n), by an orthonormal basis, to the precision of F.

    Cholesky factors of the small matrix F Fᵀ take far less time than reflections do. If the columns
    are far from orthonormal, the first leaves errors that the next one takes away.
    """
    accurate = len(F) == 0
    while not accurate:
        (W,) = _sums(F.shape[1], partial(_inner, F))
        scale = 1.0 / np.sqrt(np.maximum(W.diagonal(), 1e-300))
        try:
            lower = np.linalg.cholesky(scale[:, None] * W * scale)
        except np.linalg.LinAlgError:  # columns that are nearly dependent
            F[...] = np.linalg.qr(F.T.astype(np.float64))[0].T
            return
        inverse = solve_triangular(lower, np.diag(scale), lower=True, check_finite=False)
        _sums(F.shape[1], partial(_multiply, F, inverse))
        errors = array_ops.eps(np.float64) / np.min(lower.diagonal()) ** 2
        accurate = errors < 10 * array_ops.eps(F.dtype)


def _inner(F: np.ndarray, rows: slice) -> Parts:
    part = F[:, rows].astype(np.float64)
    return (part @ part.T,)


def _multiply(F: np.ndarray, inverse: np.ndarray, rows: slice) -> Parts:
    F[:, rows] = inverse @ F[:, rows].astype(np.float64)
    return ()


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
