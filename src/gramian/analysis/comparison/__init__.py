"""Approximations compared on data: error, time, memory, and what a learner makes of them."""

from gramian.analysis.comparison.measure import compare
from gramian.analysis.comparison.result import Comparison, Failure, Measurement

__all__ = ["Comparison", "Failure", "Measurement", "compare"]
