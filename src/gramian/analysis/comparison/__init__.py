"""Compare approximations on data: error, time, memory, and the score of a learner.

Rules such as ``gamma="median"`` become numbers once, on all rows that are not held out, so all
approximations are of the same kernel; with a target, a gamma that is not given is chosen. Every
approximation gets the same seeds. What prepares the rows learns from the training rows alone.
Kernel values are counted, not assumed. Memory and time are extrapolated to all rows.
"""

from gramian.analysis.comparison.data import Unprepared
from gramian.analysis.comparison.measure import compare
from gramian.analysis.comparison.result import Baseline, Comparison, Failure, Measurement, Reading

__all__ = [
    "Baseline",
    "Comparison",
    "Failure",
    "Measurement",
    "Reading",
    "Unprepared",
    "compare",
]
