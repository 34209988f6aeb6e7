"""The problem of kernel PCA, and its solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.approximations import Approximation
from gramian.backend.array_ops import Array, DType
from gramian.backend.memory import Amounts
from gramian.learners.pca.moments import Components, Moments
from gramian.learners.pca.pre_images import pre_images_memory
from gramian.learners.strategy import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentsProblem(Problem):
    """Find the principal components of rows."""

    n_components: int | None  # None: all with a positive eigenvalue
    centred: bool  # whether the mean of the rows is subtracted in feature space
    solver: str
    tol: float
    max_iter: int
    inverse: bool  # whether pre-images are learned afterwards
    approximation: Approximation | None = None  # the fitted one; None if the matrix is exact

    def count(self, most: int) -> int:
        """Return the number of components, at most ``most``."""
        return most if self.n_components is None else min(int(self.n_components), most)

    def with_pre_images(self, step: Amounts) -> Sequence[Amounts]:
        """Return the memory of finding components, and of learning pre-images if requested."""
        if not self.inverse:
            return [step]
        n, k = self.rows.shape[0], self.count(self.rows.shape[0])
        vectors = 2 * 8 * n * k if keeps_vectors(n, k, self.rows.place.room()) else 0
        return [step, {"components": vectors, **pre_images_memory(self.rows, k)}]


class Analysis(NamedTuple):
    """The result of a strategy."""

    found: Components
    vectors: Array | None  # eigenvectors (n, k); None if they are too large to store
    dtype: DType  # of scores
    moments: Moments | None = None  # if the matrix is approximated
    passes: int = 1
    met: bool = True  # whether the tolerance was met
    tol: float = 0.0


def keeps_vectors(n: int, k: int, room: int) -> bool:
    """Whether eigenvectors are stored: if they take at most a quarter of the room."""
    return 8 * n * k <= room // 4


def inverse_roots(values: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(values), and 0 for values of 0."""
    return np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)
