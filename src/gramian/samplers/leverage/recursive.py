"""Ridge leverage scores by recursive halving (Musco and Musco, 2017)."""

from __future__ import annotations

import numpy as np

from gramian.matrices.gram import Gram
from gramian.samplers.leverage.base import LeverageSampler
from gramian.samplers.leverage.scores import Dictionary, Pair, doublings, draw


class RecursiveLeverage(LeverageSampler):
    """Ridge leverage scores by recursive halving; m distinct rows are drawn by them.

    Musco and Musco, "Recursive sampling for the Nyström method" (2017). From a random half of the
    rows, m are drawn by the same method; they serve to estimate the scores of all rows. It takes
    about 2 n m kernel evaluations (and m² among the draws of each level), O(n m²) flops and O(n m)
    memory.

    Parameters
    ----------
    ridge : float, optional
        A positive number. By default, it is chosen on each level so that the effective dimension
        is about m / (2 log m). If it is so small that m rows cannot cover the effective dimension,
        scores are overestimated, most of all those of ordinary rows.

    See Also
    --------
    LeverageScores : exact scores, for small data.
    BLESS : estimates from growing subsets.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian import RecursiveLeverage
    >>> gram = Gram(RBF(1.0), np.r_[np.zeros((98, 1)), [[9.0]], [[-9.0]]])
    >>> landmarks = RecursiveLeverage().select(gram, 10, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {98, 99})
    [98, 99]
    """

    names = ("recursive-leverage",)

    def most_evaluations(self, n: int, m: int) -> int:
        return n + sum(m * (size + m) for size in doublings(m, n)[1:])

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        order = rng.permutation(gram.shape[0])
        smallest, *sizes = doublings(m, len(order))
        rows, scores = order[:smallest], np.ones(smallest)
        for size in sizes:
            picked, probabilities = draw(scores, m, rng)
            dictionary = Dictionary(gram, rows[picked], 1 / probabilities)
            rows = np.sort(order[:size])
            scores = dictionary.scores(rows, self._ridge(dictionary.values, m, gram.dtype))
        return rows, scores
