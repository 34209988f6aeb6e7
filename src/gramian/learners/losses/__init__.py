"""Learners with a loss other than squares: probabilities, margins, quantiles, novelty."""

from gramian.learners.losses.classifiers import KernelLogisticRegression, KernelSVC
from gramian.learners.losses.levels import KernelExpectileRegressor, KernelQuantileRegressor
from gramian.learners.losses.one_class import KernelOneClass
from gramian.learners.losses.regressors import (
    KernelHuberRegressor,
    KernelPoissonRegressor,
    KernelSVR,
)

__all__ = [
    "KernelExpectileRegressor",
    "KernelHuberRegressor",
    "KernelLogisticRegression",
    "KernelOneClass",
    "KernelPoissonRegressor",
    "KernelQuantileRegressor",
    "KernelSVC",
    "KernelSVR",
]
