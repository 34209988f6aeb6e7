"""TensorSketch (Pham and Pagh, 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import scipy.fft

from gramian.approximations.dot_product_series import DotProductMap, Series
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.estimators.parameters import RandomState
from gramian.kernels import Kernel

__all__ = ["TensorSketch"]


class TensorSketchFeatures:
    """A sketch of x ⊗ ... ⊗ x for each term: the circular convolution of count sketches of x.

    ``self.sketches`` has, for each group of features, one matrix per factor, which maps every
    column of x to one feature with a sign.
    """

    def __init__(self, series: Series, n: int, rng: np.random.Generator, like: Array) -> None:
        self.width, d = n, like.shape[1]
        self.sketches: list[list[Array]] = []
        for term in series.terms(n, rng):
            p = term.degree
            for size in _fast_sizes(term.count) if p > 1 else [term.count]:
                # Each factor has its share of the weight, so that none overflows.
                scale = (term.weight * size / term.count) ** (0.5 / p)
                rows = rng.integers(size, size=(p, d))
                values = scale * (1.0 - 2.0 * rng.integers(2, size=(p, d)))
                factors = [
                    array_ops.scatter_matrix(values[j], rows[j], size, like) for j in range(p)
                ]
                self.sketches.append(factors)
        widest = max(factors[0].shape[0] for factors in self.sketches)
        self.work_bytes = sketch_work(widest, d, array_ops.itemsize(like.dtype))

    def fill(self, x: Array, out: Array) -> None:
        # Transposed, a sketch adds whole rows, and transforms are vectorised over columns.
        xp = array_ops.namespace(out)
        transposed = (
            x.T.tocsr() if array_ops.issparse(x) else array_ops.contiguous(xp.matrix_transpose(x))
        )
        start = 0
        for factors in self.sketches:
            stop = start + factors[0].shape[0]
            out[:, start:stop] = xp.matrix_transpose(_convolved(factors, transposed))
            start = stop


def _convolved(factors: list[Array], transposed: Array) -> Array:
    """Return the circular convolution of the factors' products with the transposed rows.

    Shapes: factors (size, d), transposed (d, n), result (size, n).
    """
    if len(factors) == 1:
        return array_ops.matmul(factors[0], transposed)
    first, *others = factors
    product = array_ops.rfft(array_ops.matmul(first, transposed), axis=0)
    for factor in others:
        product *= array_ops.rfft(array_ops.matmul(factor, transposed), axis=0)
    return array_ops.irfft(product, n=first.shape[0], axis=0)


def _fast_sizes(n: int) -> Iterator[int]:
    """Split n into lengths for which Fourier transforms are fast, the largest first."""
    while n:
        size = n
        while scipy.fft.next_fast_len(size, real=True) != size:
            size -= 1
        yield size
        n -= size


def sketch_work(widest: int, d: int, item: int) -> int:
    """Return the memory per row: the transposed row, a sketch, its transform, their product."""
    return item * (d + 3 * widest + 4)


def sketch_bytes(n: int, d: int, degree: int, item: int) -> int:
    """Return the memory of the sparse matrices: p for each degree p, in a few groups of sizes."""
    return 2 * degree**2 * (d * (item + 8) + 8 * n) // 2 + 4 * 8 * d


class TensorSketch(DotProductMap):
    """Sketches of tensor powers, for dot-product kernels Σ a_p (xᵀy)^p with a_p ≥ 0.

    (xᵀy)^p is the inner product of p-fold tensor products. These are sketched without being
    computed, by the circular convolution of p count sketches of x through Fourier transforms (Pham
    and Pagh, 2013). A row costs O(p (d + D log D)); of sparse rows only the entries count.

    Each degree of the series has its own sketch, with features by its share of the trace of K. For
    (gamma xᵀy + coef0)^p this has less error than one sketch of (sqrt(gamma) x, sqrt(coef0)): the
    constant term is exact, and low degrees have little variance.

    Parameters
    ----------
    kernel : str or Kernel, default="polynomial"
        :class:`Polynomial` with coef0 ≥ 0, :class:`ExponentialDot`, :class:`Linear`; sums, products
        and scalings of these; or your own kernel with a method ``maclaurin``.
    n_components : int, default=100
        The number of features.
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
    CRAFT : less error if the degree is high.
    RandomMaclaurin : products of random projections.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import Polynomial, TensorSketch, relative_error
    >>> X = load_digits().data / 16
    >>> approximation = TensorSketch(Polynomial(3, gamma=0.1), 1000, random_state=0).fit(X)
    >>> approximation.transform(X).shape
    (1797, 1000)
    >>> float(relative_error(approximation, X)) < 0.1
    True
    """

    compared: ClassVar = {"TensorSketch": {}}

    def __init__(
        self,
        kernel: str | Kernel = "polynomial",
        n_components: int = 100,
        *,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def _map_bytes(self, n: int, d: int, item: int) -> tuple[int, int]:
        return sketch_bytes(n, d, self._degree(), item), sketch_work(n, d, item)

    def _draw(
        self, series: Series, n: int, rng: np.random.Generator, like: Array
    ) -> TensorSketchFeatures:
        return TensorSketchFeatures(series, n, rng, like)
