"""The problem of kernel PCA, and what solves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.learners.pca.moments import Components, Moments
from gramian.learners.pca.pre_images import pre_images_memory
from gramian.learners.strategy import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentsProblem(Problem):
    """Rows of which principal components are wanted."""

    n_components: int | None  # None: all with an eigenvalue above 0
    solver: str
    tol: float
    max_iter: int
    inverse: bool  # whether pre-images are learned afterwards
    approximation: Any = None  # the one in use, fitted; None where the matrix is exact

    def count(self, most: int) -> int:
        """The number of components, of as many as there may be."""
        return most if self.n_components is None else min(int(self.n_components), most)

    def with_pre_images(self, step: Amounts) -> Sequence[Amounts]:
        """The step of finding components, and that of learning pre-images where asked for."""
        if not self.inverse:
            return [step]
        n, k = self.rows.shape[0], self.count(self.rows.shape[0])
        kept = 2 * 8 * n * k if keeps_vectors(n, k, self.rows.place.room()) else 0
        return [step, {"components": kept, **pre_images_memory(self.rows, k)}]


class Analysis(NamedTuple):
    """What a strategy finds."""

    found: Components
    vectors: Array | None  # eigenvectors, of shape (n, k); None where they are too large to keep
    dtype: Any  # of scores
    moments: Moments | None = None  # on factors
    passes: int = 1
    met: bool = True  # whether the tolerance was met
    tol: float = 0.0


def keeps_vectors(n: int, k: int, room: int) -> bool:
    """Whether eigenvectors are kept: where they take no more than a quarter of the room."""
    return 8 * n * k <= room // 4


def inverse_roots(values: np.ndarray) -> np.ndarray:
    """1 / sqrt(values), and 0 where a value is 0."""
    return np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)
