"""Kernel k-means, and DP-means for an unknown number of clusters."""

from gramian.learners.kmeans.kernel_kmeans import KernelKMeans
from gramian.learners.kmeans.online import OnlineKernelKMeans

__all__ = ["KernelKMeans", "OnlineKernelKMeans"]
