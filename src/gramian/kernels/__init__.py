"""Kernels, by class and by name."""

from __future__ import annotations

from gramian.backend.names import by_name, unknown
from gramian.kernels.base import Kernel, KernelLike, KernelWarning
from gramian.kernels.categories import Categorical
from gramian.kernels.columns import Columns
from gramian.kernels.compose import Product, Scaled, Sum
from gramian.kernels.dot_product import (
    AdditiveChi2,
    Cosine,
    ExponentialDot,
    Linear,
    Polynomial,
    Sigmoid,
)
from gramian.kernels.given import FunctionKernel, Precomputed
from gramian.kernels.stationary import (
    RBF,
    Cauchy,
    Chi2,
    Exponential,
    Laplacian,
    Matern,
    RationalQuadratic,
)

__all__ = [
    "RBF",
    "AdditiveChi2",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Columns",
    "Cosine",
    "Exponential",
    "ExponentialDot",
    "FunctionKernel",
    "Kernel",
    "KernelWarning",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "Sum",
    "as_kernel",
    "kernel_names",
]

_BY_NAME: dict[str, type[Kernel]] = by_name(globals(), Kernel)


def kernel_names() -> list[str]:
    """Return the names that ``kernel=`` accepts, such as ``"rbf"``.

    See Also
    --------
    as_kernel : makes a kernel from a name.

    Examples
    --------
    >>> from gramian import kernel_names
    >>> "rbf" in kernel_names()
    True
    """
    return list(_BY_NAME)


def as_kernel(kernel: KernelLike) -> Kernel:
    """Convert a name or a function to a kernel.

    Parameters
    ----------
    kernel : str, callable or Kernel
        One of :func:`kernel_names`, a function of two blocks of rows that returns the matrix of
        kernel values, or a kernel, which is returned unchanged.

    Returns
    -------
    Kernel

    See Also
    --------
    kernel_names : the names it accepts.

    Examples
    --------
    >>> from gramian import as_kernel
    >>> as_kernel("laplacian")
    Laplacian()
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel in _BY_NAME:
            return _BY_NAME[kernel]()
        raise unknown("kernel", kernel, _BY_NAME)
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"kernel must be an instance, not a class: write {kernel.__name__}().")
    if callable(kernel):
        return FunctionKernel(kernel)
    raise TypeError(
        "kernel must be a name such as 'rbf', a Kernel such as RBF(gamma=0.1), or a function of "
        f"two blocks of rows; got {kernel!r}."
    )
