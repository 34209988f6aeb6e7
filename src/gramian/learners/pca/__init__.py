"""Kernel PCA, and pre-images of its components."""

from gramian.learners.pca.kernel_pca import KernelPCA

__all__ = ["KernelPCA"]
