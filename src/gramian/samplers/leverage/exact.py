"""Exact ridge leverage scores, for matrices that can be stored."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gramian.backend import array_ops, checks
from gramian.backend.array_ops import Array
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers.base import Landmarks, Sampler, drawn_by_weight
from gramian.samplers.leverage.base import LeverageSampler
from gramian.samplers.leverage.scores import Pair, scores_from_spectrum, spectrum


def exact_leverage_scores(K: Array, ridge: float) -> np.ndarray:
    """Return the ridge leverage scores [K (K + ridge I)⁻¹]_ii of a stored PSD matrix, in O(n³).

    Their sum is the effective dimension of K at this ridge.

    Parameters
    ----------
    K : array of shape (n, n)
    ridge : float
        A positive number.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.samplers.leverage import exact_leverage_scores
    >>> exact_leverage_scores(np.diag([3.0, 1.0]), ridge=1.0)
    array([0.75, 0.5 ])
    """
    K = array_ops.host_float64(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square matrix; got shape {K.shape}.")
    ridge = checks.positive("exact_leverage_scores", "ridge", ridge)
    return scores_from_spectrum(*spectrum(K), ridge)


class LeverageScores(LeverageSampler):
    """Independent draws in proportion to the exact ridge leverage scores.

    The scores are those of Alaoui and Mahoney, "Fast randomized kernel ridge regression with
    statistical guarantees" (2015): τ_i = [K (K + ridge I)⁻¹]_ii. All n² kernel values are evaluated
    and the matrix is decomposed, in O(n³) flops. It serves as a reference for the other samplers
    by leverage scores, for a matrix that can be stored. Rows are drawn with replacement, so a row
    may be drawn more than once, and the landmarks have probabilities. Rows on a cluster are
    refused.

    Parameters
    ----------
    ridge : float, optional
        A positive number. By default, the effective dimension Σ τ_i is about m / (2 log m).

    See Also
    --------
    RecursiveLeverage : the same scores, estimated without the whole matrix.
    gramian.theory.ridge_leverage_scores : the scores themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian import LeverageScores
    >>> gram = Gram(RBF(1.0), np.r_[np.zeros((98, 1)), [[9.0]], [[-9.0]]])
    >>> landmarks = LeverageScores(ridge=0.1).select(gram, 20, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {98, 99})
    [98, 99]
    """

    names = ("leverage",)

    spreads: ClassVar[bool] = False

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        """Select m landmarks from the rows of ``gram``, with their probabilities."""
        _, scores = self._scored(gram, self._checked(gram, m), rng)
        return drawn_by_weight(gram, scores, m, rng)

    def most_evaluations(self, n: int, m: int) -> int:
        return n * (n + 1)

    def select_bytes(self, rows: Rows, m: int) -> int:
        return Sampler.select_bytes(self, rows, m) + 5 * 8 * rows.shape[0] ** 2

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        if not gram.fits():
            raise ValueError(
                "LeverageScores stores and decomposes the whole matrix; a matrix of shape "
                f"{gram.shape} is too large for that. Use RecursiveLeverage."
            )
        values, vectors = spectrum(array_ops.host_float64(gram.dense()))
        ridge = self._ridge(values, m, gram.dtype)
        return np.arange(len(values)), scores_from_spectrum(values, vectors, ridge)
