"""Landmarks by ridge leverage scores, which say how much a row adds to the other rows.

The ridge leverage scores of a kernel matrix K are the diagonal of K (K + ridge I)⁻¹. ``exact.py``
computes them; ``recursive.py``, ``bless.py`` and ``squeak.py`` estimate them without the matrix.
A ridge below rounding error, relative to the trace of K, is raised to it.
"""

from gramian.samplers.leverage.bless import BLESS
from gramian.samplers.leverage.exact import LeverageScores, exact_leverage_scores
from gramian.samplers.leverage.recursive import RecursiveLeverage
from gramian.samplers.leverage.squeak import SQUEAK

__all__ = ["BLESS", "SQUEAK", "LeverageScores", "RecursiveLeverage", "exact_leverage_scores"]
