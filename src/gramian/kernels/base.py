"""Kernel: what every kernel offers, and the class that builds one from a pairing and a profile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.kernels import tiles
from gramian.kernels.gpu_form import GpuForm, traced_form
from gramian.kernels.pairings import Tile, gpu_pairing
from gramian.kernels.spectrum import Law
from gramian.rows import Rows, as_rows

__all__ = ["Kernel", "KernelWarning"]


class KernelWarning(UserWarning):
    """A kernel that says little about the data it was fitted on."""


class Kernel(BaseEstimator, ABC):
    """A kernel function k(x, y), as a scikit-learn parameter object.

    A kernel is called on rows: ``kernel(X, Y)`` is the matrix of all k(x_i, y_j), and ``kernel(X)``
    is short for ``kernel(X, X)`` with an exact diagonal. Kernels add, multiply and scale:
    ``0.5 * RBF(0.1) + Linear()``. Parameters that are rules, such as ``gamma="median"``, are worked
    out by ``fit`` from the data; learners do that themselves.

    A subclass implements ``against`` and ``_diagonal``, or better derives from
    :class:`ProfileKernel`, which needs one profile function.
    """

    names: ClassVar[tuple[str, ...]] = ()  # what users may type for it, as in kernel="rbf"
    takes_sparse: ClassVar[bool] = True
    takes_negative: ClassVar[bool] = True
    stationary: ClassVar[bool] = False  # whether it is a function of x - y that falls from 0 on
    takes_objects: ClassVar[bool] = False  # whether rows may be strings, sets, graphs, ...
    is_matrix: ClassVar[bool] = False  # whether rows are those of the kernel matrix itself
    __array_ufunc__ = None  # so that NumPy's numbers leave products with a kernel to the kernel
    serial: ClassVar[bool] = False  # whether blocks must be evaluated one after the other

    @property
    def psd(self) -> bool:
        """Whether every Gram matrix of this kernel is positive semi-definite."""
        return True

    def fit(self, X: Any, y: Any = None, *, random_state: Any = 0) -> Kernel:
        """Work out parameters that are rules on the rows X.

        Warns if on these rows nearly all kernel values underflow, or are nearly the same.
        """
        rows = self.read(X)
        return self.fit_rows(rows, np.random.default_rng(random_state))

    def fit_rows(
        self, rows: Rows, rng: np.random.Generator, weights: Array | None = None
    ) -> Kernel:
        """``fit`` on rows that are checked already; samples are drawn from ``rng``.

        A row of weight 2 counts as two rows.
        """
        return self

    def fit_bytes(self, rows: Rows) -> int:
        """What ``fit_rows`` takes in memory, beside blocks of rows."""
        return 0

    def __call__(self, X: Any, Y: Any = None, *, out: Array | None = None) -> Array:
        """The matrix of all k(x_i, y_j), written into ``out`` where that is given.

        Memory that was used before takes a third of the time of fresh memory.
        """
        rows = self.read(X)
        columns = None
        if Y is not None:
            columns = self.read(Y, name="Y", objects=rows.are_objects)
            if columns.shape[1] != rows.shape[1]:
                raise ValueError(
                    f"X and Y must have the same number of columns; got {rows.shape[1]} and "
                    f"{columns.shape[1]}."
                )
        return tiles.dense(self, rows, columns, out)

    def diag(self, X: Any) -> Array:
        """k(x, x) for each row of X."""
        return self.diagonal(self.read(X))

    def read(
        self,
        X: Any,
        *,
        name: str = "X",
        owner: str | None = None,
        min_rows: int = 1,
        objects: bool | None = None,
    ) -> Rows:
        """X as rows that this kernel can serve, checked: of numbers, or objects if it takes these.

        ``objects`` says which, where that is known; see :func:`gramian.as_rows`.
        """
        owner = type(self).__name__ if owner is None else owner
        objects = objects if self.takes_objects else False
        rows = as_rows(X, name=name, owner=owner, min_rows=min_rows, objects=objects)
        return self.check_rows(rows)

    def check_rows(self, rows: Rows) -> Rows:
        """The rows, if this kernel can serve them; a ``ValueError`` if not."""
        if rows.are_objects and not self.takes_objects:
            raise ValueError(
                f"{type(self).__name__} needs rows of numbers; got objects. Use a kernel that is a "
                "function of two objects: FunctionKernel(function, pairwise=True)."
            )
        if not self.takes_sparse and array_ops.issparse(getattr(rows, "data", None)):
            raise ValueError(
                f"{type(self).__name__} does not take sparse rows. Convert them with X.toarray(), "
                "or use a kernel that does, such as RBF, Laplacian, Linear or Polynomial."
            )
        return rows

    def points(self, rows: Rows) -> Rows:
        """What must be kept of training rows so that ``against`` can be called on them."""
        return rows

    def maclaurin(self, count: int) -> np.ndarray | None:
        """The first ``count`` coefficients a_p of k(x, y) = Σ a_p (xᵀy)^p, in float64.

        None where the kernel is no such series. With it, maps for kernels of inner products, such
        as :class:`gramian.TensorSketch`, take the kernel.
        """
        return None

    def spectrum(self) -> list[Law] | None:
        """The laws of random frequencies whose mixture, by their weights, gives the kernel.

        None if the kernel is not shift-invariant. With it, :class:`gramian.RandomFourier` takes the
        kernel. See :class:`gramian.kernels.spectrum.Law`.
        """
        return None

    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of; none unless it is a sum, product or multiple."""
        return ()

    @abstractmethod
    def against(self, points: Array) -> Tile:
        """A function ``tile(x, out=None)`` that gives the matrix k(x_i, point_j) of a block x.

        It writes the result into ``out`` where that is given. Whatever depends on the points alone
        is computed here, once.
        """

    def gpu_form(self) -> GpuForm | None:
        """The kernel as a GPU computes it without storing its values.

        None if it has no such form: its values are then computed by torch and stored in tiles.
        """
        return None

    def diagonal(self, rows: Rows) -> Array:
        """k(x, x) for each of the rows."""
        return rows.map(lambda x, out: self._diagonal(x), serial=self.serial, label="diagonal")

    def _diagonal(self, x: Array) -> Array:
        """k(x, x) for each row of a block; not asked for where ``diagonal`` is overridden."""
        raise NotImplementedError(f"{type(self).__name__} must implement _diagonal.")

    def __add__(self, other: Any) -> Kernel:
        from gramian.kernels.compose import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from gramian.kernels.compose import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        number = isinstance(other, Real) and not isinstance(other, bool)
        return Scaled(self, other) if number else NotImplemented

    def __rmul__(self, factor: float) -> Kernel:
        return self * factor


class ProfileKernel(Kernel):
    """A kernel that is a profile of a pairing: f(scale * pairing(x, y)).

    A subclass names its ``pairing`` and implements ``_profile`` and, unless it is 1, ``_scale``.
    See :class:`gramian.Cauchy` for a short example. The program for a GPU follows from these if the
    profile uses nothing but arithmetic and the functions listed in :mod:`gramian.kernels.gpu_form`.
    """

    pairing: ClassVar[Any]  # one of the functions in kernels/pairings.py, as a static method
    tolerance: float = 2e-5  # how far the pairing may be off in float32 before float64 steps in

    def _scale(self) -> float:
        """The number that multiplies the pairing, inside the matrix product."""
        return 1.0

    @abstractmethod
    def _profile(self, u: Array) -> Array:
        """f(u) for each entry of u, a scaled pairing; it may overwrite u and return it."""

    def gpu_form(self) -> GpuForm | None:
        pairing = gpu_pairing(type(self).pairing)
        return None if pairing is None else traced_form(pairing, self._scale(), self._profile)

    def against(self, points: Array) -> Tile:
        pair = type(self).pairing(points, self._scale(), self.tolerance)
        return lambda x, out=None: self._profile(pair(x, out))
