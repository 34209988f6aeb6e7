"""A sampler from outside the package, as CONTRIBUTING says to write one."""

import numpy as np

from gramian import Sampler
from gramian.backend import array_ops
from gramian.samplers.base import from_rows, host_diagonal


class Farthest(Sampler):
    """Each landmark is the row farthest from those before it, in the kernel's space."""

    names = ("farthest",)

    def select(self, gram, m, rng, y=None):
        diagonal = host_diagonal(gram)
        left = np.full(len(diagonal), np.inf)  # squared distances to the nearest landmark
        chosen = [int(rng.integers(len(diagonal)))]
        while True:
            i = chosen[-1]
            column = array_ops.to_numpy(gram.columns([i]))[:, 0]
            left = np.minimum(left, diagonal + diagonal[i] - 2 * column)
            left[i] = 0
            if len(chosen) == m or left.max() <= 1e-8 * diagonal.max():
                return from_rows(gram, chosen)
            chosen.append(int(left.argmax()))
