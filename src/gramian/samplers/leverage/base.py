"""What the samplers by leverage scores share: checks, the ridge, and the draw."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from gramian.backend import checks
from gramian.backend.array_ops import DType
from gramian.matrices.gram import Gram
from gramian.rows import Rows
from gramian.samplers.base import Landmarks, Sampler, from_rows
from gramian.samplers.leverage.scores import Pair, draw, resolution, suitable_ridge


class LeverageSampler(Sampler):
    """Scores some of the rows, then draws m distinct ones of them by their scores."""

    def __init__(self, ridge: float | None = None) -> None:
        self.ridge = ridge

    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        """Select at most m landmarks from the rows of ``gram``; all rows if there are at most m."""
        m = self._checked(gram, m)
        if m >= gram.shape[0]:
            return from_rows(gram, np.arange(gram.shape[0]))
        rows, scores = self._scored(gram, m, rng)
        return from_rows(gram, rows[draw(scores, m, rng)[0]])

    def _checked(self, gram: Gram, m: int) -> int:
        gram.diag()  # raises an error unless K is the matrix of the rows with themselves
        self._check_numbers()
        return checks.positive_integer(self, "m", m)

    def _check_numbers(self) -> None:
        if self.ridge is not None:
            checks.positive(self, "ridge", self.ridge)

    def select_bytes(self, rows: Rows, m: int) -> int:
        # The decomposition of a matrix of m rows, and blocks of kernel values with these.
        return super().select_bytes(rows, m) + 8 * 8 * m * max(m, 256)

    @abstractmethod
    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        """Return at least m distinct row numbers, and their scores: rows are drawn by these."""

    def _ridge(self, values: np.ndarray, m: int, dtype: DType) -> float:
        """Return the requested ridge, or one that suits m landmarks and these eigenvalues."""
        floor = resolution(values, dtype)
        return suitable_ridge(values, m, floor) if self.ridge is None else max(self.ridge, floor)
