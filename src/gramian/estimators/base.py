"""What approximations and learners share as scikit-learn estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import validate_data

from gramian.backend import array_ops, config
from gramian.backend.checks import positive_integer
from gramian.backend.memory import Amounts, MemoryEstimate
from gramian.estimators.scales import warn_if_one_column_dominates
from gramian.kernels import Kernel, as_kernel
from gramian.rows import ArrayRows, Rows
from gramian.rows.device import DeviceRows
from gramian.rows.files import formats
from gramian.rows.files.rows import Planned, planned_rows
from gramian.rows.reading import is_collection

Method = TypeVar("Method", bound=Callable[..., Any])

ROWS_HERE = 100_000  # of spread rows, more than any sample of them that comes to this process


def all_or_nothing(fit: Method) -> Method:
    """A fit that fails or is interrupted leaves the estimator as it was before.

    It has one memory budget from beginning to end.
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


def generator(random_state: Any) -> np.random.Generator:
    """The one random generator of a fit."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    return np.random.default_rng(random_state)


class KernelParameter:
    """The parameter ``kernel`` of an estimator, and what follows from it for scikit-learn.

    It comes before ``BaseEstimator`` among the bases.
    """

    kernel: Any
    kernel_: Kernel

    def set_params(self, **params: Any) -> Any:
        # ``kernel__gamma`` may be set where the kernel is given by name: it becomes an object.
        if isinstance(self.kernel, str) and any(p.startswith("kernel__") for p in params):
            self.kernel = as_kernel(params.pop("kernel", self.kernel))
        return super().set_params(**params)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
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
            kernel = kernel.kernel  # an approximation's own
        return as_kernel(kernel)


class KernelEstimator(KernelParameter, ABC):
    """What is fitted to rows: how it reads them, and what it takes in memory."""

    _device: str | None = None  # where it was fitted, if rows of the host were moved there

    def _read(self, X: Any, *, reset: bool, min_rows: int = 1) -> Rows:
        """X as rows, checked: of any kind where ``reset``, as in a fit; else as those of the fit.

        Whether they are objects is then known by the kernel given, where that is an approximation
        fitted already, or by this estimator.
        """
        kernel = self._bare_kernel() if reset else self.kernel_
        objects = getattr(self.kernel if reset else self, "_on_objects", None)
        rows = kernel.read(X, owner=type(self).__name__, min_rows=min_rows, objects=objects)
        if reset:
            self._on_objects = rows.are_objects
            if formats.is_path(X) and isinstance(rows, ArrayRows):  # read from it
                config.hold(_bytes_of(rows))
            if not rows.are_objects and not kernel.is_matrix:
                names = list(X.columns) if hasattr(X, "columns") else rows.names
                warn_if_one_column_dominates(rows, names)
        rows = self._placed(rows, reset)
        if not rows.are_objects or hasattr(X, "columns"):
            validate_data(self, _table(X, rows), reset=reset, skip_check_array=True)
        elif reset:  # objects have no features that could be counted; an earlier fit's may have had
            for name in ("n_features_in_", "feature_names_in_"):
                vars(self).pop(name, None)
        return rows

    def _placed(self, rows: Rows, reset: bool) -> Rows:
        """The rows where they are to be computed with: on the device that the settings name.

        What is fitted already stays where it is, and rows come there.
        """
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
        if not reset:  # they are walked once
            return placed
        self._device = None if placed is rows else device
        if isinstance(placed, DeviceRows) and placed is not rows:
            placed = placed.persist()
            config.hold(placed.kept_bytes)
        return placed

    def estimate_memory(
        self, n: int, d: int, *, dtype: Any = "float64", on_disk: bool = False
    ) -> MemoryEstimate:
        """The memory that ``fit`` takes beside its data, at its peak.

        It follows from the settings in force: what is kept, and what is computed anew when it is
        needed, depends on the memory budget. A fit that would need more than the budget is refused
        before it begins; one that needs less than 16 MiB never is.

        Parameters
        ----------
        n, d : int
            The number of rows and of columns. What sparse rows take follows from their entries, and
            is less.
        dtype : dtype, default="float64"
            Of the data. All but float32 is computed with in float64.
        on_disk : bool, default=False
            Whether the rows are read from files. A path whose rows take less than half of the
            memory budget is read into memory, which then counts too.

        Returns
        -------
        MemoryEstimate
            The bytes, as a number whose ``parts`` say what they are for.

        Examples
        --------
        >>> from gramian import KernelRidge, Nystroem, config_context
        >>> model = KernelRidge(kernel=Nystroem("rbf", 1000))
        >>> with config_context(memory_budget="2GB", n_threads=2):
        ...     print(model.estimate_memory(10**6, 50))
        2 GB: kernel values of 21 % of the rows 1.76 GB, preconditioner 80 MB, blocks ...
        """
        return self._estimate(planned(n, d, dtype, on_disk))

    def _estimate(self, rows: Rows, **known: Any) -> MemoryEstimate:
        """What a fit on these rows takes, which may be planned ones."""
        return affordable(self._estimates(rows, **known))

    @config.one_budget()
    def _estimates(self, rows: Rows, **known: Any) -> dict[Any, MemoryEstimate]:
        """What each way to fit takes, in order of preference."""
        kernel, read = self._bare_kernel(), 0
        rows = rows.place.planned(rows)
        if isinstance(rows, Planned) and rows.fits():
            read = _bytes_of(rows)
            config.hold(read)
            rows = planned_rows(*rows.shape, np.dtype(rows.dtype), False)
        first = {"sampled rows": kernel.fit_bytes(rows), "blocks": rows.walk_bytes(0)}
        return {
            way: MemoryEstimate.peak({"rows": read, **step} for step in (first, *steps))
            for way, steps in self._ways(rows, **known).items()
        }

    @abstractmethod
    def _ways(self, rows: Rows, **known: Any) -> Mapping[Any, Sequence[Amounts]]:
        """What each way to fit takes at each of its steps, by names, in order of preference."""

    def _check_memory(self, need: MemoryEstimate, rows: Rows, advice: str) -> None:
        """Refuse a fit that would exceed the memory budget, before it begins."""
        need.check(f"a fit of {type(self).__name__} to rows of shape {rows.shape}", advice)


def affordable(estimates: Mapping[Any, MemoryEstimate]) -> MemoryEstimate:
    """The first that fits the memory budget, or else the first."""
    return next((e for e in estimates.values() if e.fits()), next(iter(estimates.values())))


def planned(n: Any, d: Any, dtype: Any, on_disk: bool) -> Rows:
    n, d = (positive_integer("estimate_memory", name, v) for name, v in (("n", n), ("d", d)))
    return planned_rows(n, d, np.dtype(dtype), on_disk)


def _bytes_of(rows: Rows) -> int:
    return rows.shape[0] * rows.shape[1] * array_ops.itemsize(rows.dtype)


def _table(X: Any, rows: Rows) -> Any:
    """What scikit-learn takes the number of the columns from, and their names."""
    if rows.names is not None:  # it knows frames and tables only
        return formats.empty_table(rows.names)
    return rows if formats.is_path(X) or is_collection(X) else X
