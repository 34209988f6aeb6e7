"""Learners with a loss other than squares: probabilities, margins, quantiles, novelty."""

from gramian.learners.losses.classifiers import KernelLogisticRegression, KernelSVC
from gramian.learners.losses.one_class import KernelOneClass
from gramian.learners.losses.regressors import (
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
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
