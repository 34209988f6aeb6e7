"""Compact random feature maps (Hamid, Xiao, Gittens and DeCoste, 2014)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.fft

from gramian.approximations.dot_product_series import DotProductMap, Features, Series
from gramian.approximations.maclaurin import MaclaurinFeatures, maclaurin_bytes
from gramian.approximations.tensor_sketch import TensorSketchFeatures, sketch_bytes, sketch_work
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, positive_integer
from gramian.estimators.parameters import RandomState
from gramian.kernels import Kernel

__all__ = ["CRAFT"]

_UP: dict[str, type[TensorSketchFeatures] | type[MaclaurinFeatures]] = {
    "tensor_sketch": TensorSketchFeatures,
    "maclaurin": MaclaurinFeatures,
}


class FourierProjection:
    """Reduce many features to n: random signs, a Fourier transform, n of its numbers.

    A frequency gives two features, the sum with cosines and the sum with sines. The squares of
    these weights add up to 1 for every input feature, so inner products keep their expectation.
    For odd n the remaining feature is the plain sum, frequency 0.
    """

    def __init__(self, up: Features, n: int, rng: np.random.Generator, like: Array) -> None:
        self.up, self.width = up, n
        self.frequencies = 1 + rng.permutation((up.width - 1) // 2)[: n // 2]
        signs = 1.0 - 2.0 * rng.integers(2, size=up.width)
        self.signs = array_ops.like(signs * np.sqrt(2.0 / n), like, like.dtype)
        self.work_bytes = up.work_bytes + _projection_work(
            up.width, n, array_ops.itemsize(like.dtype)
        )

    def fill(self, x: Array, out: Array) -> None:
        xp = array_ops.namespace(out)
        many = array_ops.empty((x.shape[0], self.up.width), out, out.dtype)
        self.up.fill(x, many)
        many *= self.signs
        transform = array_ops.rfft(many, axis=1)
        half = len(self.frequencies)
        if half:
            taken = array_ops.take_columns(transform, self.frequencies)
            out[:, :half] = xp.real(taken)
            out[:, half : 2 * half] = xp.imag(taken)
        if 2 * half < self.width:
            out[:, -1] = xp.real(transform[:, 0]) * 0.5**0.5


def _projection_work(many: int, n: int, item: int) -> int:
    """Return the memory per row: the many features, their transform, and its selected numbers."""
    return item * (2 * many + 2 + n)


class CRAFT(DotProductMap):
    """Compact random features: many features of another map, reduced by a fast projection.

    For dot-product kernels k(x, y) = Σ a_p (xᵀy)^p with a_p ≥ 0. Many features have a small error;
    the projection adds an error that does not grow with the degree, unlike theirs (Hamid, Xiao,
    Gittens and DeCoste, 2014). So n of these features are better than n of the other map, the more
    so the higher the degree, at the cost of the many. The projection applies random signs and a
    Fourier transform, which takes O(E log E) for E features.

    Parameters
    ----------
    kernel : str or Kernel, default="polynomial"
        :class:`Polynomial` with coef0 ≥ 0, :class:`ExponentialDot`, :class:`Linear`; sums, products
        and scalings of these; or your own kernel with a method ``maclaurin``.
    n_components : int, default=100
        The number of features.
    up : {"tensor_sketch", "maclaurin"}, default="tensor_sketch"
        The map to the many features: that of :class:`TensorSketch` or, as in the paper, of
        :class:`RandomMaclaurin`.
    expansion : int, default=8
        The many features are this times n_components, or a few more if that is faster.
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
    TensorSketch : faster, with more error if the degree is high.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import CRAFT, Polynomial, relative_error
    >>> X = load_digits().data / 16
    >>> approximation = CRAFT(Polynomial(3, gamma=0.1), 500, random_state=0).fit(X)
    >>> approximation.transform(X).shape
    (1797, 500)
    >>> float(relative_error(approximation, X)) < 0.1
    True
    """

    compared: ClassVar = {"CRAFT": {}}

    def __init__(
        self,
        kernel: str | Kernel = "polynomial",
        n_components: int = 100,
        *,
        up: str = "tensor_sketch",
        expansion: int = 8,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.up = up
        self.expansion = expansion
        self.random_state = random_state

    def _map_bytes(self, n: int, d: int, item: int) -> tuple[int, int]:
        many, degree = self._many(n), self._degree()
        if choice(self, "up", self.up, tuple(_UP)) == "maclaurin":
            size, work = maclaurin_bytes(many, d, degree, item), item * many
        else:
            size, work = sketch_bytes(many, d, degree, item), sketch_work(many, d, item)
        return size + 8 * many, work + _projection_work(many, n, item)

    def _many(self, n: int) -> int:
        many = positive_integer(self, "expansion", self.expansion) * n
        return int(scipy.fft.next_fast_len(max(many, n + 2), real=True))

    def _draw(
        self, series: Series, n: int, rng: np.random.Generator, like: Array
    ) -> FourierProjection:
        features = _UP[choice(self, "up", self.up, tuple(_UP))]
        return FourierProjection(features(series, self._many(n), rng, like), n, rng, like)
