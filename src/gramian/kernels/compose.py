"""Sums, products and scalings of kernels."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive
from gramian.kernels.base import Kernel
from gramian.kernels.pairings import Tile
from gramian.kernels.spectrum import Law
from gramian.rows import Rows

__all__ = ["Product", "Scaled", "Sum"]


class Composed(Kernel):
    """A kernel made of other kernels; most questions are passed on to these."""

    @abstractmethod
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of."""

    @property
    def psd(self) -> bool:
        return all(part.psd for part in self.parts())

    @property
    def serial(self) -> bool:  # type: ignore[override]
        return any(part.serial for part in self.parts())

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return all(part.stationary for part in self.parts())

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        return all(part.takes_sparse for part in self.parts())

    @property
    def takes_negative(self) -> bool:  # type: ignore[override]
        return all(part.takes_negative for part in self.parts())

    @property
    def takes_objects(self) -> bool:  # type: ignore[override]
        return all(part.takes_objects for part in self.parts())

    def check_rows(self, rows: Rows) -> Rows:
        for part in self.parts():
            rows = part.check_rows(rows)
        return rows

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        weights: Array | None = None,
        y: Array | None = None,
    ) -> Composed:
        for part in self.parts():
            part.fit_rows(rows, rng, weights, y)
        return self

    def fit_bytes(self, rows: Rows) -> int:
        return max(part.fit_bytes(rows) for part in self.parts())


class _Pair(Composed):
    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def parts(self) -> tuple[Kernel, ...]:
        sign = "+" if isinstance(self, Sum) else "*"
        form = f"{type(self).__name__}(left, right), or left {sign} right"
        return kernel_of(self, "left", form), kernel_of(self, "right", form)

    def against(self, points: Array) -> Tile:
        left, right = self.left.against(points), self.right.against(points)

        def tile(x: Array, out: Array | None = None) -> Array:
            out = left(x, out)
            second = array_ops.empty(tuple(out.shape), out, out.dtype)
            return self._combine(out, right(x, second))

        return tile

    def diagonal(self, rows: Rows) -> Array:
        a, b = self.left.diagonal(rows), self.right.diagonal(rows)
        # A lazy array cannot be written into one in memory, such as a constant diagonal.
        return self._combine(b, a) if array_ops.is_lazy(b) else self._combine(a, b)

    @staticmethod
    @abstractmethod
    def _combine(a: Array, b: Array) -> Array:
        """Combine the two matrices; the first may be overwritten."""


class Sum(_Pair):
    """Sum of two kernels, left(x, y) + right(x, y); also written ``left + right``.

    Parameters
    ----------
    left, right : Kernel

    See Also
    --------
    Product : rows that are alike in both ways.
    Scaled : a multiple of a kernel.

    Examples
    --------
    >>> from gramian import Linear, RBF
    >>> (RBF(1.0) + Linear())([[1.0]], [[1.0]])
    array([[2.]])
    """

    def maclaurin(self, count: int) -> np.ndarray | None:
        left, right = self.left.maclaurin(count), self.right.maclaurin(count)
        return None if left is None or right is None else left + right

    def spectrum(self) -> list[Law] | None:
        left, right = self.left.spectrum(), self.right.spectrum()
        return None if left is None or right is None else left + right

    @staticmethod
    def _combine(a: Array, b: Array) -> Array:
        a += b
        return a


class Product(_Pair):
    """Product of two kernels, left(x, y) * right(x, y); also written ``left * right``.

    Parameters
    ----------
    left, right : Kernel

    See Also
    --------
    Sum : rows that are alike in one way or another.

    Examples
    --------
    >>> from gramian import Linear, RBF
    >>> (RBF(1.0) * Linear())([[2.0]], [[2.0]])
    array([[4.]])
    """

    def maclaurin(self, count: int) -> np.ndarray | None:
        left, right = self.left.maclaurin(count), self.right.maclaurin(count)
        return None if left is None or right is None else np.convolve(left, right)[:count]

    def spectrum(self) -> list[Law] | None:
        left, right = self.left.spectrum(), self.right.spectrum()
        if left is None or right is None or not all(a.agrees(b) for a in left for b in right):
            return None
        return [a * b for a in left for b in right]

    @staticmethod
    def _combine(a: Array, b: Array) -> Array:
        a *= b
        return a


class Scaled(Composed):
    """Kernel times a positive factor, factor * kernel(x, y); also written ``factor * kernel``.

    Parameters
    ----------
    kernel : Kernel
    factor : float
        A positive number.

    See Also
    --------
    Sum : sums of kernels, which multiples weight.

    Examples
    --------
    >>> from gramian import RBF
    >>> (3.0 * RBF(1.0))([[2.0]], [[2.0]])
    array([[3.]])
    """

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    def parts(self) -> tuple[Kernel, ...]:
        return (kernel_of(self, "kernel", "Scaled(kernel, factor), or factor * kernel"),)

    def against(self, points: Array) -> Tile:
        inner, factor = self.kernel.against(points), self._checked_factor()

        def tile(x: Array, out: Array | None = None) -> Array:
            out = inner(x, out)
            out *= factor
            return out

        return tile

    def diagonal(self, rows: Rows) -> Array:
        return self.kernel.diagonal(rows) * self._checked_factor()

    def maclaurin(self, count: int) -> np.ndarray | None:
        inner = self.kernel.maclaurin(count)
        return None if inner is None else self._checked_factor() * inner

    def spectrum(self) -> list[Law] | None:
        inner, factor = self.kernel.spectrum(), Law(self._checked_factor())
        return None if inner is None else [factor * law for law in inner]

    def _checked_factor(self) -> float:
        return positive(self, "factor", self.factor)


def kernel_of(owner: Kernel, name: str, form: str) -> Kernel:
    """Return a parameter of the owner, which must be a kernel."""
    value = getattr(owner, name)
    if isinstance(value, Kernel):
        return value
    raise TypeError(
        f"{name} of {type(owner).__name__} must be a kernel, such as RBF(); got {value!r:.100}. "
        f"Write {form}."
    )
