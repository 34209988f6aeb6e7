"""Learners: kernel ridge, other losses, kernel k-means, kernel PCA."""

from gramian.learners.kmeans import KernelKMeans
from gramian.learners.kmeans.online import OnlineKernelKMeans
from gramian.learners.losses import (
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelOneClass,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelSVC,
    KernelSVR,
)
from gramian.learners.pca import KernelPCA
from gramian.learners.ridge import KernelRidge, KernelRidgeClassifier, PathWarning

__all__ = [
    "KernelExpectileRegressor",
    "KernelHuberRegressor",
    "KernelKMeans",
    "KernelLogisticRegression",
    "KernelOneClass",
    "KernelPCA",
    "KernelPoissonRegressor",
    "KernelQuantileRegressor",
    "KernelRidge",
    "KernelRidgeClassifier",
    "KernelSVC",
    "KernelSVR",
    "OnlineKernelKMeans",
    "PathWarning",
]
