"""Kernel ridge regression and classification."""

from gramian.learners.ridge.alpha_path import PathWarning
from gramian.learners.ridge.classifier import KernelRidgeClassifier
from gramian.learners.ridge.kernel_ridge import KernelRidge

__all__ = ["KernelRidge", "KernelRidgeClassifier", "PathWarning"]
