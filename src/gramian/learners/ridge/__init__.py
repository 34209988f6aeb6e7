"""Kernel ridge regression and classification."""

from gramian.learners.ridge.alpha_path import PathWarning
from gramian.learners.ridge.kernel_ridge import KernelRidge, KernelRidgeClassifier

__all__ = ["KernelRidge", "KernelRidgeClassifier", "PathWarning"]
