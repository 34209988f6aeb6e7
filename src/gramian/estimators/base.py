"""Base classes that make approximations and learners scikit-learn estimators."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, DType
from gramian.backend.checks import positive_integer
from gramian.backend.memory import Amounts, MemoryEstimate
from gramian.backend.parameter_names import ParameterNames
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.kernels import Kernel, KernelWarning, as_kernel
from gramian.kernels.base import overflows
from gramian.rows import ArrayRows, Rows
from gramian.rows.device import DeviceRows
from gramian.rows.files import formats
from gramian.rows.files.rows import Planned, planned_rows
from gramian.rows.reading import is_collection, is_path

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(fit: Method) -> Method:
    """Decorate a fit so that it leaves the estimator unchanged if it fails or is interrupted.

    The memory budget is fixed for the whole fit.
    """

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with config.one_budget():
                return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


def generator(random_state: RandomState) -> np.random.Generator:
    """Return the random generator of a fit; None draws from NumPy's global state.

    So ``np.random.seed`` makes fits without a ``random_state`` repeatable, as in scikit-learn.
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        random_state = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(random_state)


class KernelParameter(ParameterNames):
    """Mixin for the parameter ``kernel`` of an estimator: ``kernel__gamma`` and tags.

    It must precede ``BaseEstimator`` among the bases.
    """

    kernel: Any
    kernel_: Kernel

    def set_params(self, **params: Any) -> Any:
        # To set ``kernel__gamma`` of a kernel passed by name, the name becomes an object.
        if isinstance(self.kernel, str) and any(p.startswith("kernel__") for p in params):
            self.kernel = as_kernel(params.pop("kernel", self.kernel))
        return super().set_params(**params)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        try:
            kernel = self._bare_kernel()
        except (TypeError, ValueError):  # reported by fit
            return tags
        tags.input_tags.sparse = kernel.takes_sparse
        tags.input_tags.pairwise = kernel.is_matrix
        tags.input_tags.positive_only = not kernel.takes_negative
        return tags

    def _bare_kernel(self) -> Kernel:
        kernel = self.kernel
        while hasattr(kernel, "kernel") and not hasattr(kernel, "against"):
            kernel = kernel.kernel  # the kernel of an approximation
        return as_kernel(kernel)


class KernelEstimator(KernelParameter, ABC):
    """Base of everything that is fitted to rows: reads them, and estimates memory."""

    _device: str | None = None  # the device of the fit, if host rows were moved there

    def _read(self, X: RowsLike, *, reset: bool, min_rows: int = 1) -> Rows:
        """Check X and return it as rows: of any kind if ``reset``, as in a fit; else as in the fit.

        Whether rows are objects is known from this estimator's fit or, if ``reset``, from an
        approximation that is fitted already.
        """
        kernel = self._bare_kernel() if reset else self.kernel_
        objects = getattr(self.kernel if reset else self, "_on_objects", None)
        rows = kernel.read(X, owner=type(self).__name__, min_rows=min_rows, objects=objects)
        if reset:
            self._on_objects = rows.are_objects
            if is_path(X) and isinstance(rows, ArrayRows):  # read from it
                config.hold(rows.shape[0] * rows.row_bytes)
            if not rows.are_objects and not kernel.is_matrix:
                names = list(X.columns) if hasattr(X, "columns") else rows.names
                warn_if_one_column_dominates(rows, names)
        rows = self._placed(rows, reset)
        if reset and (rows.are_objects or type(X) is np.ndarray) and not hasattr(X, "columns"):
            # Features without names: those of an earlier fit may have had some.
            for name in ("n_features_in_", "feature_names_in_"):
                vars(self).pop(name, None)
            if not rows.are_objects:  # which have no features to count
                self.n_features_in_ = rows.shape[1]
        elif not rows.are_objects or hasattr(X, "columns"):
            validate_data(self, _table(X, rows), reset=reset, skip_check_array=True)
        return rows

    def _placed(self, rows: Rows, reset: bool) -> Rows:
        """Move rows to the configured device; for a fitted estimator, to the device of its fit."""
        if not reset:
            device = self._device
        elif hasattr(self.kernel, "kernel_"):  # an approximation that is fitted already
            device = self.kernel._device
        else:
            device = config.device()
        placed = rows
        if device is not None and not rows.are_objects:
            must = "" if reset else type(self).__name__
            placed = rows.place.to_device(rows, device, must=must)
        if not reset:  # new rows are read only once, so they are not kept on the device
            return placed
        self._device = None if placed is rows else device
        if isinstance(placed, DeviceRows) and placed is not rows:
            placed = placed.persist()
            config.hold(placed.kept_bytes)
        return placed

    def _finite(self, values: Array) -> Array:
        """Return a result, or raise an error if an entry is not finite."""
        return array_ops.finite(values, partial(overflows, self.kernel_))

    def estimate_memory(
        self, n: int, d: int, *, dtype: DType = "float64", on_disk: bool = False
    ) -> MemoryEstimate:
        """Estimate the peak memory of ``fit``, in addition to its data.

        It depends on the current settings: the memory budget determines what is cached and what is
        recomputed. A fit that needs more than the budget raises an error before it starts, unless
        it needs less than 16 MiB.

        Parameters
        ----------
        n, d : int
            The number of rows and of columns. Sparse rows take less, depending on their entries.
        dtype : dtype, default="float64"
            The dtype of the data. Everything except float32 is computed in float64.
        on_disk : bool, default=False
            Whether the rows are read from files. Files whose rows take less than half of the memory
            budget are read into memory, which then counts too.

        Returns
        -------
        MemoryEstimate
            The number of bytes; ``parts`` says what they are for.

        Examples
        --------
        >>> from gramian import KernelRidge, Nystroem, config_context
        >>> model = KernelRidge(kernel=Nystroem("rbf", 1000))
        >>> with config_context(memory_budget="2GB", n_threads=2):
        ...     print(model.estimate_memory(10**6, 50))
        2 GB: kernel values of 21 % of the rows 1.71 GB, blocks 123 MB, preconditioner ...
        """
        return self._estimate(planned(n, d, dtype, on_disk))

    def _estimate(self, rows: Rows, **known: Any) -> MemoryEstimate:
        """Estimate the memory of a fit on these rows, which may be planned ones."""
        return affordable(self._estimates(rows, **known))

    @config.one_budget()
    def _estimates(self, rows: Rows, **known: Any) -> dict[Hashable, MemoryEstimate]:
        """Estimate the memory of each way to fit, in order of preference."""
        kernel, read = self._bare_kernel(), 0
        rows = rows.place.planned(rows)
        if isinstance(rows, Planned) and rows.fits():
            read = rows.shape[0] * rows.row_bytes
            config.hold(read)
            rows = planned_rows(*rows.shape, np.dtype(rows.dtype), False)
        first = {"sampled rows": kernel.fit_bytes(rows), "blocks": rows.walk_bytes(0)}
        estimates: dict[Hashable, MemoryEstimate] = {}
        for way, steps in self._ways(rows, **known).items():
            estimates[way] = MemoryEstimate.peak((first, *steps), {"rows": read})
        return estimates

    @abstractmethod
    def _ways(self, rows: Rows, **known: Any) -> Mapping[Hashable, Sequence[Amounts]]:
        """Return the memory of each step of each way to fit, by name, in order of preference."""

    def _check_memory(
        self, estimates: Mapping[Hashable, MemoryEstimate], rows: Rows, advice: Callable[[], str]
    ) -> frozenset[Hashable]:
        """Return the ways to fit that exceed the memory budget; if all do, raise an error."""
        too_large = frozenset(way for way, need in estimates.items() if not need.fits())
        if len(too_large) == len(estimates):
            what = f"a fit of {type(self).__name__} to rows of shape {rows.shape}"
            affordable(estimates).check(what, advice())
        return too_large


def affordable(estimates: Mapping[Hashable, MemoryEstimate]) -> MemoryEstimate:
    """Return the first estimate that fits the memory budget, or else the first of all."""
    for estimate in estimates.values():
        if estimate.fits():
            return estimate
    return next(iter(estimates.values()))


def planned(n: int, d: int, dtype: DType, on_disk: bool) -> Rows:
    """Return rows that have a shape but no data."""
    n, d = (positive_integer("estimate_memory", name, v) for name, v in (("n", n), ("d", d)))
    return planned_rows(n, d, np.dtype(dtype), on_disk)


def _table(X: RowsLike, rows: Rows) -> Any:
    """Return what scikit-learn reads the number of columns and their names from."""
    if rows.names is not None:  # it reads names only from data frames and tables
        return formats.empty_table(rows.names)
    return rows if is_path(X) or is_collection(X) else X


SAMPLE = 250
SHARE = 0.999  # of the variance of all columns


def warn_if_one_column_dominates(rows: Rows, names: Sequence[str] | None) -> None:
    """Look at a sample of rows in memory, and name a column that has nearly all the variance."""
    data = getattr(rows, "data", None)
    if type(rows) is not ArrayRows or not isinstance(data, np.ndarray) or rows.shape[1] < 2:
        return
    step = max(rows.shape[0] // SAMPLE, 1)
    sample = np.asarray(data[::step][:SAMPLE], dtype=rows.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = _variances(sample)
        total = variances.sum()
        if not np.isfinite(total):  # too large for float32
            variances = _variances(sample.astype(np.float64))
            total = variances.sum()
        share = variances.max() / total if total > 0 else 0.0
    if not SHARE < share < 1.0:
        return
    column = int(variances.argmax())
    named = column if names is None else repr(str(names[column]))
    warnings.warn(
        f"Column {named} has more than {SHARE:.1%} of the variance of all columns, so it alone "
        "decides the distances between rows. Scale the columns (scikit-learn's StandardScaler).",
        KernelWarning,
        stacklevel=2,
    )


def _variances(sample: np.ndarray) -> np.ndarray:
    """Return the variance of each column, times the number of rows."""
    centred = sample - np.add.reduce(sample, axis=0) / sample.dtype.type(len(sample))
    centred *= centred
    return np.add.reduce(centred, axis=0)
