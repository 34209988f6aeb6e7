"""Kernel PCA of a subsample, which 004 compares with Kernel-JL."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from gramian.approximations.base import Approximation, Plan
from gramian.approximations.projected import ProjectedKernel, gram_of
from gramian.backend.typing import Array, RandomState
from gramian.kernels.base import KernelLike
from gramian.matrices.gram import Gram
from gramian.samplers import Uniform


class FastKPCA(Approximation):
    """Kernel PCA of a subsample of s rows, as in the paper; the rest is Kernel-JL's code.

    An eigenvector α of the centred matrix, scaled to 1/√λ, maps x to Σ α_i k(x, x_i).
    """

    def __init__(
        self, kernel: KernelLike, n_components: int, s: int, random_state: RandomState = None
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.s = s
        self.random_state = random_state

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: Plan) -> int:
        self.sample_ = sample = Uniform().select(gram, self.s, rng)
        K = gram_of(gram, sample).dense()
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
        leading = [self.s - self.n_components, self.s - 1]
        values, vectors = scipy.linalg.eigh(K, subset_by_index=leading)
        P = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        self._projected = ProjectedKernel(self.kernel_, sample.points, P, dtype=gram.dtype)
        return self.n_components

    def _features(self, x: Array, out: Array | None = None) -> Array:
        return self._projected.features(x, out)

    def _work_bytes(self) -> int:
        return self._projected.work_bytes
