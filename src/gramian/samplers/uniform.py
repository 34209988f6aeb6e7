"""Landmarks drawn independently: uniformly, or weighted by diagonal entries or columns."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.wording import counted
from gramian.matrices.gram import Gram
from gramian.rows import Rows, even_spans
from gramian.samplers.base import Landmarks, Sampler, drawn_by_weight, from_rows, host_diagonal

__all__ = ["ColumnNorm", "Diagonal", "Probabilities", "Uniform"]

COLUMNS = 16  # of the matrix, in memory at once


class Uniform(Sampler):
    """Rows drawn with equal probability; no kernel evaluation.

    Parameters
    ----------
    replace : bool, default=False
        Whether a row may be drawn more than once.

    See Also
    --------
    KMeansCentres : less error for the same number of landmarks.
    Probabilities : rows drawn with given probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram, Uniform
    >>> gram = Gram(RBF(1.0), np.arange(6.0)[:, None])
    >>> len(Uniform().select(gram, 3, np.random.default_rng(0)))
    3
    """

    names = ("uniform",)

    def __init__(self, replace: bool = False) -> None:
        self.replace = replace

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        n = gram.shape[0]
        if self.replace:
            return from_rows(gram, rng.integers(n, size=m), np.full(m, 1.0 / n))
        return from_rows(gram, np.sort(rng.choice(n, size=min(m, n), replace=False)))


class _Weighted(Sampler):
    """Rows drawn with replacement, with probability in proportion to a weight."""

    @abstractmethod
    def _weights(self, gram: Gram, m: int, rng: np.random.Generator) -> np.ndarray:
        """Return a non-negative weight for each row; shape (n,)."""

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        return drawn_by_weight(gram, self._weights(gram, m, rng), m, rng)


class Diagonal(_Weighted):
    """Rows drawn with probability K_ii / tr K, with replacement.

    These are the probabilities that :func:`gramian.theory.nystrom_bound` needs. Drineas and Mahoney
    (2005) print K_ii² / Σ K_jj², but their proof is for columns of X with K = XᵀX, whose squared
    norms are K_ii. For a kernel with a constant diagonal, such as RBF, both are uniform sampling
    with replacement. n kernel evaluations.

    See Also
    --------
    Uniform : the same if all values on the diagonal are equal.
    ColumnNorm : rows drawn by the norm of their column.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Diagonal, Gram, Linear
    >>> gram = Gram(Linear(), [[0.0], [0.0], [3.0]])
    >>> Diagonal().select(gram, 2, np.random.default_rng(0)).indices
    array([2, 2])
    """

    names = ("diagonal",)

    def _weights(self, gram: Gram, m: int, rng: np.random.Generator) -> np.ndarray:
        return host_diagonal(gram)


class ColumnNorm(_Weighted):
    """Rows drawn in proportion to the squared norm of their column of K, with replacement.

    The norms are estimated from m random rows of K: n·m kernel evaluations. The exact norms would
    take n².

    See Also
    --------
    Diagonal : rows drawn by their value on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import ColumnNorm, Gram, RBF
    >>> gram = Gram(RBF(1.0), np.arange(6.0)[:, None])
    >>> len(ColumnNorm().select(gram, 3, np.random.default_rng(0)))
    3
    """

    names = ("column-norm",)

    def _weights(self, gram: Gram, m: int, rng: np.random.Generator) -> np.ndarray:
        n = gram.shape[0]
        some = np.sort(rng.choice(n, size=min(m, n), replace=False))
        weights = np.zeros(n)
        for start, stop in even_spans(0, len(some), COLUMNS):
            columns = gram.rows.place.column(gram.columns(some[start:stop]))
            weights += array_ops.to_numpy(_squared_norms(columns))
        return weights

    def select_bytes(self, rows: Rows, m: int) -> int:
        return super().select_bytes(rows, m) + 2 * 8 * rows.shape[0] * min(m, COLUMNS)


def _squared_norms(columns: Array) -> Array:
    """Return the squared norm of each row in float64; shape (n, c) -> (n,), lazy if they are."""
    return np.einsum("ij,ij->i", columns, columns, dtype=np.float64)


class Probabilities(_Weighted):
    """Rows drawn with replacement, with the probabilities that you pass.

    Parameters
    ----------
    probabilities : array of shape (n,)
        The probability of each row; they sum to 1.

    See Also
    --------
    Uniform : equal probabilities.
    LeverageScores : probabilities from ridge leverage scores.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Gram, Probabilities, RBF
    >>> gram = Gram(RBF(1.0), np.arange(4.0)[:, None])
    >>> Probabilities([0, 0, 1, 0]).select(gram, 2, np.random.default_rng(0)).indices
    array([2, 2])
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        self.probabilities = probabilities

    def _weights(self, gram: Gram, m: int, rng: np.random.Generator) -> np.ndarray:
        p = array_ops.host_float64(self.probabilities)
        if p.shape != (gram.shape[0],):
            raise ValueError(
                "probabilities must have one number for each of the "
                f"{counted(gram.shape[0], 'row')}; got shape {p.shape}."
            )
        if not np.isfinite(p).all() or (p < 0).any() or abs(p.sum() - 1.0) > 1e-6:
            raise ValueError(
                "probabilities must not be negative and must sum to 1; they sum to "
                f"{p.sum():.6g}, the smallest is {p.min():.3g}. Divide them by their sum."
            )
        return p
