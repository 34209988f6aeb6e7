"""Learners: kernel ridge, kernel k-means, kernel PCA."""

from gramian.learners.kmeans import KernelKMeans
from gramian.learners.kmeans.online import OnlineKernelKMeans
from gramian.learners.pca import KernelPCA
from gramian.learners.ridge import KernelRidge, KernelRidgeClassifier

__all__ = [
    "KernelKMeans",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeClassifier",
    "OnlineKernelKMeans",
]
