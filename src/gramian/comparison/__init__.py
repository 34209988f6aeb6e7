"""Approximations compared on data: error, time, memory, and what a learner makes of them."""

from gramian.comparison.measure import compare
from gramian.comparison.result import Comparison, Failure, Measurement

__all__ = ["Comparison", "Failure", "Measurement", "compare"]
