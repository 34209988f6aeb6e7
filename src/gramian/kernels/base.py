"""Base classes of kernels: Kernel, and ProfileKernel for a profile of a pairing of two rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.parameter_names import ParameterNames
from gramian.backend.typing import ArrayLike, RandomState
from gramian.kernels import tiles
from gramian.kernels.gpu_form import GpuForm, traced_form
from gramian.kernels.pairings import Tile, gpu_pairing
from gramian.kernels.spectrum import Law
from gramian.rows import ArrayRows, Rows, as_rows, even_spans

CHECKED = 256  # rows whose kernel values are checked before a fit
FINISHED = 2 * 1024**2  # bytes of a tile: the profile finds the pairings of more no longer in cache

__all__ = ["Kernel", "KernelWarning"]


# A kernel, its name, or a function of two blocks of rows.
KernelLike: TypeAlias = "Kernel | str | Callable[..., Array]"


class KernelWarning(UserWarning):
    """The kernel carries little information about the data it was fitted on.

    See Also
    --------
    ApproximationWarning : what approximations warn of.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from gramian import RBF, KernelWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     kernel = RBF(gamma=1e6).fit(np.arange(20.0)[:, None])  # no two rows look alike
    >>> caught[0].category is KernelWarning
    True
    """


class Kernel(ParameterNames, BaseEstimator, ABC):
    """Base class of kernel functions k(x, y); their parameters work as in scikit-learn.

    ``kernel(X, Y)`` returns the matrix of all k(x_i, y_j); ``kernel(X)`` is ``kernel(X, X)`` with
    an exact diagonal. Kernels can be added, multiplied and scaled: ``0.5 * RBF(0.1) + Linear()``.
    ``fit`` computes parameters that are rules, such as ``gamma="median"``, from the data; learners
    call it for you.

    Subclasses implement ``against`` and ``_diagonal``. Most are simpler to write as a
    :class:`ProfileKernel`, which needs only a profile function.

    See Also
    --------
    FunctionKernel : a kernel from any Python function.
    gramian.testing.check_kernel : tests a kernel class.

    Examples
    --------
    >>> from gramian import RBF, Kernel, Linear
    >>> kernel = 0.5 * RBF(0.1) + Linear()
    >>> isinstance(kernel, Kernel)
    True
    >>> kernel([[1.0], [2.0]], [[0.0], [1.0], [3.0]]).shape
    (2, 3)
    """

    names: ClassVar[tuple[str, ...]] = ()  # accepted in place of the kernel, as in kernel="rbf"
    takes_sparse: ClassVar[bool] = True
    takes_negative: ClassVar[bool] = True
    stationary: ClassVar[bool] = False  # whether it is a function of x - y with its maximum at 0
    takes_objects: ClassVar[bool] = False  # whether rows may be strings, sets, graphs, ...
    is_matrix: ClassVar[bool] = False  # whether the rows are rows of the kernel matrix itself
    __array_ufunc__ = None  # so that np.float64(2) * kernel calls kernel.__rmul__
    serial: ClassVar[bool] = False  # whether blocks must be computed one at a time

    @property
    def psd(self) -> bool:
        """Whether every Gram matrix of this kernel is positive semi-definite."""
        return True

    def fit(self, X: ArrayLike, y: ArrayLike = None, *, random_state: RandomState = 0) -> Kernel:
        """Compute parameters that are rules, such as ``gamma="median"``, from the rows X.

        Warns if nearly all kernel values of these rows underflow or are nearly equal.

        Parameters
        ----------
        X : array-like of shape (n, d), or Rows
        y : array-like of shape (n,) or (n, n_targets), optional
            The targets, for parameters that are learned from them, such as ``gamma="loo"``.
            Pass classes as one-hot columns.
        random_state : int, Generator or None, default=0
            Draws the sample of rows for rules that need distances.

        Returns
        -------
        Kernel
            The kernel itself.
        """
        rows = self.read(X)
        return self.fit_rows(rows, np.random.default_rng(random_state), y=y)

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        weights: Array | None = None,
        y: Array | None = None,
    ) -> Kernel:
        """Like ``fit``, for rows that are already checked; ``rng`` draws the samples.

        A row of weight 2 counts as two rows. ``y`` has the targets (n,) or (n, n_targets), if there
        are any; classes are one-hot columns.
        """
        return self

    def fit_bytes(self, rows: Rows) -> int:
        """Return the memory that ``fit_rows`` needs in addition to blocks of rows, in bytes."""
        return 0

    def __call__(self, X: ArrayLike, Y: ArrayLike = None, *, out: Array | None = None) -> Array:
        """Return the matrix of all k(x_i, y_j).

        Parameters
        ----------
        X : array-like of shape (n, d), or Rows
        Y : array-like of shape (m, d), or Rows, optional
            By default X.
        out : array of shape (n, m), optional
            The result is written here. Reusing ``out`` is about three times faster than allocating.

        Returns
        -------
        array of shape (n, m)
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

    def diag(self, X: ArrayLike) -> Array:
        """Return k(x, x) for each row of X, shape (n,)."""
        return self.diagonal(self.read(X))

    def read(
        self,
        X: ArrayLike,
        *,
        name: str = "X",
        owner: str | None = None,
        min_rows: int = 1,
        objects: bool | None = None,
    ) -> Rows:
        """Check X and return it as rows of numbers, or of objects if this kernel accepts them.

        ``objects`` says which of the two, if known; see :func:`gramian.as_rows`.
        """
        owner = type(self).__name__ if owner is None else owner
        objects = objects if self.takes_objects else False
        rows = as_rows(X, name=name, owner=owner, min_rows=min_rows, objects=objects)
        return self.check_rows(rows)

    def check_rows(self, rows: Rows) -> Rows:
        """Return the rows; raise a ``ValueError`` if this kernel cannot be used on them."""
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
        """Return the part of the training rows that ``against`` needs."""
        return rows

    def maclaurin(self, count: int) -> np.ndarray | None:
        """Return the first ``count`` coefficients a_p of k(x, y) = Σ a_p (xᵀy)^p, in float64.

        None if the kernel is not such a series. Dot-product features such as
        :class:`gramian.TensorSketch` accept every kernel that has them.
        """
        return None

    def spectrum(self) -> list[Law] | None:
        """Return the distributions of random frequencies whose weighted mixture is the kernel.

        None if the kernel is not shift-invariant. :class:`gramian.RandomFourier` accepts every
        kernel that has them. See :class:`gramian.kernels.spectrum.Law`.
        """
        return None

    def parts(self) -> tuple[Kernel, ...]:
        """The kernels in a sum, product or multiple; empty for all other kernels."""
        return ()

    def column_scales(self) -> np.ndarray | None:
        """Return what the columns are multiplied with, (d,) or (d, d); None for a kernel without.

        Landmarks that are means of rows are found with the distances that the kernel sees.
        """
        return None

    @abstractmethod
    def against(self, points: Array) -> Tile:
        """Return a function ``tile(x, out=None)`` that computes k(x_i, point_j) for a block x.

        The function returns a matrix of shape (rows of x, points), written into ``out`` if that is
        passed. Anything that depends only on the points, of shape (m, d), is computed here, once.
        """

    def gpu_form(self) -> GpuForm | None:
        """Return the form in which a GPU computes the kernel without storing its values.

        None if there is no such form; torch then computes the values and stores them in tiles.
        """
        return None

    def check_values(self, rows: Rows) -> None:
        """Raise an error if k(x, x) overflows for some rows of a sample.

        k(x, x) of a positive semi-definite kernel is the largest value that a row can have.
        """
        if self.is_matrix or rows.are_objects:
            return
        n = rows.shape[0]
        sample = rows.take(np.linspace(0, n - 1, min(n, CHECKED)).astype(int))
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.diagonal(ArrayRows(sample))
        array_ops.finite(diagonal, partial(overflows, self))

    def diagonal(self, rows: Rows) -> Array:
        """Return k(x, x) for each row, shape (n,)."""
        return rows.map(lambda x, out: self._diagonal(x), serial=self.serial, label="diagonal")

    def _diagonal(self, x: Array) -> Array:
        """Return k(x, x) for each row of a block; not needed if ``diagonal`` is overridden."""
        raise NotImplementedError(f"{type(self).__name__} must implement _diagonal.")

    def __add__(self, other: object) -> Kernel:
        from gramian.kernels.compose import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from gramian.kernels.compose import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        number = isinstance(other, Real) and not isinstance(other, bool)
        return Scaled(self, other) if number else NotImplemented

    def __rmul__(self, factor: float) -> Kernel:
        return self * factor


def overflows(kernel: Kernel) -> str:
    """Return the error message for kernel values that are not finite."""
    return (
        f"{kernel!r} has values that are not finite on these rows: they overflow. Scale the rows, "
        "for example with StandardScaler, or choose a smaller gamma or degree."
    )


class ProfileKernel(Kernel):
    """Base class of kernels f(scale * pairing(x, y)) with a profile f.

    Subclasses set ``pairing`` and implement ``_profile`` and, unless it is 1, ``_scale``. See
    :class:`gramian.Cauchy` for a short example. The GPU program is derived from these if the
    profile uses only arithmetic and the functions listed in :mod:`gramian.kernels.gpu_form`.
    """

    pairing: ClassVar[
        Callable[..., Tile]
    ]  # one of the functions in kernels/pairings.py, as a static method
    tolerance: float = 2e-5  # allowed float32 error of the pairing; beyond it, float64 is used

    def _scale(self) -> float:
        """Return the factor of the pairing; it is applied inside the matrix product."""
        return 1.0

    @abstractmethod
    def _profile(self, u: Array) -> Array:
        """Return f(u) for each entry of u, a scaled pairing; it may overwrite u and return it."""

    def gpu_form(self) -> GpuForm | None:
        pairing = gpu_pairing(type(self).pairing)
        return None if pairing is None else traced_form(pairing, self._scale(), self._profile)

    def against(self, points: Array) -> Tile:
        with np.errstate(over="ignore", invalid="ignore"):
            pair = type(self).pairing(points, self._scale(), self.tolerance)

        def finish(x: Array, out: Array | None) -> Array:
            return self._profile(pair(x, out))

        def tile(x: Array, out: Array | None = None) -> Array:
            # Estimators check what they return, and name the kernel.
            with np.errstate(over="ignore", invalid="ignore"):
                if not isinstance(out, np.ndarray) or out.nbytes <= FINISHED or x is points:
                    return finish(x, out)
                most = max(len(out) * FINISHED // out.nbytes, 1)
                for start, stop in even_spans(0, len(out), most):
                    part = out[start:stop]
                    values = finish(x[start:stop], part)
                    if values is not part:
                        part[...] = values
                return out

        return tile
