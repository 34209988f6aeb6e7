"""Random Maclaurin features (Kar and Karnick, 2012)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gramian.approximations.dot_product_series import DotProductMap, Series
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.wording import counted
from gramian.estimators.parameters import RandomState
from gramian.kernels import Kernel, tiles

__all__ = ["RandomMaclaurin"]

TOO_MANY = "Use TensorSketch, whose vectors are sparse, or fewer n_components"


class MaclaurinFeatures:
    """Products of random projections; a feature of degree p has p factors.

    Features are in order of falling degree: the j-th factors belong to the first
    ``self.factors[j].shape[1]`` features, and take one matrix product for each j.
    """

    def __init__(self, series: Series, n: int, rng: np.random.Generator, like: Array) -> None:
        terms = series.terms(n, rng)[::-1]
        degrees = np.repeat([t.degree for t in terms], [t.count for t in terms])
        weights = np.repeat([t.weight / t.count for t in terms], [t.count for t in terms])
        # Each factor has its share of the weight, so that no product overflows.
        scales = weights ** (0.5 / degrees)
        self.width, d = n, like.shape[1]
        size = array_ops.itemsize(like.dtype)
        config.check_fits(
            size * d * int(degrees.sum()),
            f"{counted(int(degrees.sum()), 'random vector')} with {counted(d, 'column')}",
            TOO_MANY,
        )
        self.factors = []
        for number in range(int(degrees[0])):
            width = int(np.count_nonzero(degrees > number))
            signs = 1.0 - 2.0 * rng.integers(2, size=(d, width), dtype=np.int8)
            self.factors.append(array_ops.like(signs * scales[:width], like, like.dtype))
        self.work_bytes = size * n

    def fill(self, x: Array, out: Array) -> None:
        first, *others = self.factors
        array_ops.matmul(x, first, out)
        for factor in others:
            width = factor.shape[1]
            part = out[:, :width]
            sparse = array_ops.issparse(x)  # their products use new memory anyway
            memory = None if sparse else tiles.scratch(x.shape[0], width, factor, factor.dtype)
            part *= array_ops.matmul(x, factor, memory)


def maclaurin_bytes(n: int, d: int, degree: int, item: int) -> int:
    """Return the memory of the vectors of all factors, and of one factor while it is drawn."""
    return d * n * (degree * item + 2 * 8)


class RandomMaclaurin(DotProductMap):
    """Random features for dot-product kernels k(x, y) = Σ a_p (xᵀy)^p with a_p ≥ 0.

    A feature of degree p is the product of p random projections Π ω_jᵀx with random signs ω_j (Kar
    and Karnick, 2012). Degrees are drawn by their shares of the trace of K, instead of the paper's
    2^-(p+1), and the constant term is one feature. The expectation of K̃ is K.

    Parameters
    ----------
    kernel : str or Kernel, default="polynomial"
        :class:`Polynomial` with coef0 ≥ 0, :class:`ExponentialDot`, :class:`Linear`; sums, products
        and scalings of these; or your own kernel with a method ``maclaurin``.
    n_components : int, default=100
        The number of features.
    keep_linear : bool, default=False
        Keep the terms of degree 0 and 1 exactly, with the columns of X among the features, and draw
        only higher degrees (H0/1 in the paper). Useful if n_components is well above the number of
        columns.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    n_components_ : int
        The number of features.
    nbytes_ : int
        The memory of the training rows' features.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.

    See Also
    --------
    TensorSketch : usually less error at equal size, and faster if X has many columns.
    CRAFT : less error if the degree is high.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import Polynomial, RandomMaclaurin, relative_error
    >>> X = load_digits().data / 16
    >>> kernel = Polynomial(degree=2, gamma=0.1)
    >>> approximation = RandomMaclaurin(kernel, 1000, random_state=0).fit(X)
    >>> approximation.transform(X).shape
    (1797, 1000)
    >>> float(relative_error(approximation, X)) < 0.1
    True
    """

    compared: ClassVar = {"Random Maclaurin": {}}

    def __init__(
        self,
        kernel: str | Kernel = "polynomial",
        n_components: int = 100,
        *,
        keep_linear: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.keep_linear = keep_linear
        self.random_state = random_state

    def advice(self) -> str:
        return TOO_MANY

    def _map_bytes(self, n: int, d: int, item: int) -> tuple[int, int]:
        return maclaurin_bytes(n, d, self._degree(), item), item * n

    def _draw(
        self, series: Series, n: int, rng: np.random.Generator, like: Array
    ) -> MaclaurinFeatures:
        return MaclaurinFeatures(series, n, rng, like)
