"""Ridge leverage scores on growing subsets: BLESS (Rudi et al., 2018)."""

from __future__ import annotations

import numpy as np

from gramian.matrices.gram import Gram
from gramian.samplers.base import settled_diagonal
from gramian.samplers.leverage.base import LeverageSampler
from gramian.samplers.leverage.scores import (
    Dictionary,
    Pair,
    covered_dimension,
    doublings,
    draw,
    suitable_ridge,
)


class BLESS(LeverageSampler):
    """Ridge leverage scores on growing uniform subsets; m distinct rows are drawn by them.

    Rudi, Calandriello, Carratino and Rosasco, "On fast leverage score sampling and optimal
    learning" (2018). As the ridge falls, dictionaries grow. Each is drawn from a uniform subset
    that is as large as the ridge demands: no score exceeds k(x, x) / ridge, so a large ridge needs
    few rows. Here the dictionary doubles in each step, and determines the ridge. It takes at most
    about 2 n m kernel evaluations, far fewer if the last subset is smaller than all rows, O(n m²)
    flops and O(n m) memory.

    Parameters
    ----------
    ridge : float, optional
        A positive number, the last ridge. By default, the effective dimension at the last ridge is
        about m / (2 log m).

    See Also
    --------
    RecursiveLeverage : estimates by halving.
    SQUEAK : estimates in one pass.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian import BLESS
    >>> gram = Gram(RBF(1.0), np.r_[np.zeros((98, 1)), [[9.0]], [[-9.0]]])
    >>> landmarks = BLESS(ridge=0.1).select(gram, 10, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {98, 99})
    [98, 99]
    """

    names = ("bless",)

    def most_evaluations(self, n: int, m: int) -> int:
        return n + sum(size * (n + size) for size in doublings(16, m))

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        n, largest = gram.shape[0], float(gram.rows.xp.max(settled_diagonal(gram)))
        sizes = doublings(16, m)
        rows, scores = _some_rows(n, sizes[0], rng), np.ones(sizes[0])
        for size in sizes:
            picked, probabilities = draw(scores, size, rng)
            dictionary = Dictionary(gram, rows[picked], n / len(rows) / probabilities)
            ridge = self._ridge(dictionary.values, size, gram.dtype)
            if size < m and self.ridge is not None:  # on the way down to it
                ridge = suitable_ridge(dictionary.values, size, floor=ridge)
            # An upper bound on each row's probability, about size / dimension times its score.
            rate = min(1.0, size / covered_dimension(size) * largest / ridge)
            rows = _some_rows(n, max(m, int(np.ceil(rate * n))), rng)
            scores = dictionary.scores(rows, ridge)
        return rows, scores


def _some_rows(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``size`` of n rows without replacement; their numbers are in ascending order."""
    if size >= n:
        return np.arange(n)
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.choice(n, size, replace=False, shuffle=False)] = True
    return np.flatnonzero(chosen)
