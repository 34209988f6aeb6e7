"""Compare approximations on data: error, time, memory, and the score of a learner.

Rules such as ``gamma="median"`` become numbers once, on all rows, so all approximations are of the
same kernel. Every approximation gets the same seeds. Kernel values are counted, not assumed. Memory
is extrapolated to all rows; times are those of the measured rows.
"""

from gramian.analysis.comparison.measure import compare
from gramian.analysis.comparison.result import Comparison, Failure, Measurement

__all__ = ["Comparison", "Failure", "Measurement", "compare"]
