"""compare: measure approximations of a kernel on your own data."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

import gramian
from gramian.analysis.accuracy import ErrorEstimate, relative_error
from gramian.analysis.comparison import catalogue, data
from gramian.analysis.comparison.catalogue import Method
from gramian.analysis.comparison.data import Sample
from gramian.analysis.comparison.result import EXACT, Comparison, Failure, Measurement
from gramian.analysis.comparison.structure import fixed, look
from gramian.analysis.comparison.tasks import Task, task_for
from gramian.approximations import Approximation, Exact, Nystroem
from gramian.approximations.base import warnings_as_notes
from gramian.backend import array_ops, config
from gramian.backend.checks import positive_integer
from gramian.backend.progress import progress
from gramian.backend.wording import counted
from gramian.estimators.base import generator
from gramian.kernels import Kernel, as_kernel
from gramian.kernels.gamma import GammaKernel
from gramian.matrices.gram import Gram

__all__ = ["compare"]

SIZES = tuple(step * 10**power for power in range(5) for step in (1, 2, 5))
MOST_SIZE, HOW_MANY_SIZES = 1000, 5
ALL_PAIRS = 2000  # up to this many rows the error is exact and has no interval
PROBE_SIZE = 100  # landmarks of the approximation measured at each gamma


def compare(
    X: Any,
    y: Any = None,
    *,
    kernel: Any = "rbf",
    approximations: Any = None,
    sizes: Iterable[int] | None = None,
    learner: Any = None,
    n_clusters: int | None = None,
    repeats: int = 3,
    max_rows: int = 4000,
    random_state: Any = None,
    callback: Callable[[Measurement], Any] | None = None,
) -> Comparison:
    """Compare approximations of a kernel on your data: error, time, memory and score.

    Parameters
    ----------
    X : array-like, path or Rows
        The rows, of any kind that gramian accepts.
    y : array-like, optional
        The target. If given, a quarter of the rows is held out, and each approximation is scored
        by a learner that uses it.
    kernel : str, Kernel or callable, default="rbf"
        Rules such as ``gamma="median"`` are evaluated once, on all rows.
    approximations : list of str or Approximation, dict of Approximation, optional
        By default, those of the following that support the kernel: Nyström uniform, Nyström
        k-means, Nyström RPCholesky, MEKA, BKA, Random Fourier, TensorSketch, CRAFT, Random
        Maclaurin. If you pass an Approximation, its kernel, n_components and random_state are set
        by the comparison.
    sizes : list of int, optional
        Numbers of features. By default up to five of 10, 20, 50, ..., 1000, at most half the rows.
    learner : estimator, optional
        The learner that is scored on the held-out rows: a classifier or regressor with a parameter
        ``kernel``. By default, KernelRidgeClassifier if the target is text or whole numbers with
        at most 20 distinct values, else KernelRidge on the centred target, with alpha chosen by
        leave-one-out.
    n_clusters : int, optional
        Without a target: the score is the fraction of the variance in feature space that this
        many clusters of kernel k-means explain.
    repeats : int, default=3
        Number of fits of each approximation, with consecutive seeds.
    max_rows : int, default=4000
        If there are more rows, a random sample of this size is measured.
    random_state : int, Generator or None, default=None
        Pass an int for reproducible results (except times).
    callback : callable, optional
        Called with each :class:`Measurement` as soon as it is taken.

    Returns
    -------
    Comparison
        Approximations that do not support this data are in its ``failures``.

    See Also
    --------
    relative_error : the error of one approximation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare(X, y, approximations=["nystroem k-means", "random fourier"],
    ...                      sizes=[10, 40], repeats=1, random_state=0)
    >>> comparison.score_name, comparison.best.name, comparison.best.score > 0.9
    ('accuracy', 'Nyström k-means', True)
    >>> exec(comparison.code)  # uses X and y
    """
    repeats = positive_integer("compare", "repeats", repeats)
    max_rows = positive_integer("compare", "max_rows", max_rows)
    first = _first_seed(random_state)
    bare = clone(as_kernel(kernel))
    rows = bare.read(X, owner="compare", min_rows=2, objects=None)
    bare.fit_rows(rows, np.random.default_rng(first))
    exact_kernel = fixed(bare)
    target = data.as_target(y, rows)
    sample = data.draw(exact_kernel, rows, target, max_rows, first)
    task = task_for(sample, exact_kernel, learner, n_clusters, first)
    methods = catalogue.chosen(approximations, exact_kernel, sample.rows)
    counts = _sizes(sizes, sample.rows.shape[0])
    bench = _Bench(exact_kernel, sample, rows.shape[0], task, range(first, first + repeats))
    results, failures = bench.run(methods, counts, callback)
    facts = data.facts(X, rows, sample)
    probe_size = max(1, min(PROBE_SIZE, sample.rows.shape[0] // 4))
    with warnings_as_notes([]):
        structure = look(
            exact_kernel, sample.rows, first, lambda k: bench.probe(k, probe_size), probe_size
        )
    return Comparison(
        results=results,
        failures=failures,
        kernel=exact_kernel,
        score_name=None if task is None else task.score_name,
        data=facts,
        structure=structure,
        learner=None if task is None else task.learner,
        settings={
            "gamma": _gamma_from(bare),
            "sizes": counts,
            "repeats": repeats,
            "seed": first,
            "target is centred": task is not None and task.centred,
            "bytes per kernel value": array_ops.itemsize(sample.rows.dtype),
            "memory budget": config.memory_budget(),
            "threads": config.n_threads(),
            "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "versions": _versions(),
        },
    )


def _gamma_from(kernel: Kernel) -> str:
    if isinstance(kernel, GammaKernel) and kernel._given() is None:
        return f"from the rule {kernel._rule()!r}"
    return "as given"


def _first_seed(random_state: Any) -> int:
    """Return the first seed; an int is kept, so that the code to paste can use it."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    return int(generator(random_state).integers(2**31))


def _sizes(given: Iterable[int] | None, n: int) -> list[int]:
    if given is None:
        most = min(MOST_SIZE, max(n // 2, 1))
        return [size for size in SIZES if size <= most][-HOW_MANY_SIZES:]
    sizes = sorted({positive_integer("compare", "sizes", size) for size in given})
    if not sizes:
        raise ValueError("sizes of compare must hold at least one number; got none.")
    return sizes


def _versions() -> dict[str, str]:
    found = {"gramian": gramian.__version__, "Python": platform.python_version()}
    found |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    cores = counted(os.cpu_count() or 1, "core")
    return found | {"system": f"{platform.system()} {platform.machine()}, {cores}"}


class _Bench:
    """Measure approximations one after the other, with fixed rows, kernel and task."""

    def __init__(
        self, kernel: Kernel, sample: Sample, n_all: int, task: Task | None, seeds: range
    ) -> None:
        self.kernel, self.rows = kernel, sample.rows
        self.n_all = n_all
        self.task = task
        self.seeds = seeds

    def run(
        self,
        methods: list[Method],
        sizes: list[int],
        callback: Callable[[Measurement], Any] | None,
    ) -> tuple[list[Measurement], list[Failure]]:
        results: list[Measurement] = []
        refused: dict[tuple[str, str], list[int]] = {}

        def take(name: str, size: int, measure: Callable[[], Measurement]) -> None:
            try:
                result = measure()
            except Exception as error:  # whatever it is, continue with the others
                refused.setdefault((name, _reason(error)), []).append(size)
                return
            results.append(result)
            if callback is not None:
                callback(result)

        with progress("compare", len(sizes) * len(methods) + 1) as step:
            for size in sizes:
                for method in methods:
                    take(method.name, size, lambda m=method, s=size: self.measure(m, s))  # type: ignore[misc]
                    step()
            if not results:
                reasons = "; ".join(f"{name}: {reason}" for name, reason in refused)
                raise ValueError(f"No approximation could be measured on this data. {reasons}")
            take(EXACT, self.rows.shape[0], self.exact)
            step()
        failures = [Failure(name, tuple(n), reason) for (name, reason), n in refused.items()]
        return results, failures

    def measure(self, method: Method, size: int) -> Measurement:
        """Measure all repeats of one approximation at one size."""
        notes: list[str] = []
        errors, seconds, scores, factors = [], [], [], None
        with warnings_as_notes(notes):
            for seed in self.seeds:
                model = method.sized(self.kernel, size, seed)
                start = perf_counter()
                model.fit_rows(self.rows, generator(seed), self._codes())
                factors = model.factor_rows(self.rows)
                # Keep one number per row: all features are computed but none is stored.
                factors.map(lambda columns: lambda z, out: z[:, 0])
                seconds.append(perf_counter() - start)
                errors.append(self._error(model, seed))
                if self.task is not None:
                    scores.append(self.task.score(model, seed, errors[-1].value))
        assert factors is not None
        core = 0 if factors.core is None else factors.core.nbytes
        by_row = (model.nbytes_ - core) / self.rows.shape[0]
        return Measurement(
            name=method.name,
            size=size,
            error=float(np.mean([error.value for error in errors])),
            error_low=min(error.low for error in errors),
            error_high=max(error.high for error in errors),
            seconds=min(seconds),
            nbytes=int(model.nbytes_),
            nbytes_all=round(by_row * self.n_all) + core,
            kernel_evaluations=model.evaluations_ + factors.parts.evaluations,
            score=float(np.mean(scores)) if scores else None,
            note=" ".join(dict.fromkeys(notes)),
            approximation=method.sized(self.kernel, size, self.seeds[0]),
        )

    def exact(self) -> Measurement:
        gram = Gram(self.kernel, self.rows)
        n = gram.shape[0]
        if not gram.fits():
            raise ValueError(
                f"The exact matrix of {counted(n, 'row', ',')} takes "
                f"{config.format_bytes(gram.nbytes)}, too much to keep; reduce max_rows to "
                "measure it."
            )
        start = perf_counter()
        gram.dense()
        seconds = perf_counter() - start
        with warnings_as_notes([]):
            score = None if self.task is None else self.task.exact_score(Exact(self.kernel))
        return Measurement(
            name=EXACT,
            size=n,
            error=0.0,
            error_low=0.0,
            error_high=0.0,
            seconds=seconds,
            nbytes=gram.nbytes,
            nbytes_all=gram.nbytes // n**2 * self.n_all**2,
            kernel_evaluations=gram.evaluations,
            score=score,
        )

    def probe(self, kernel: Kernel, size: int) -> tuple[float, float | None]:
        """Return the error and score of one approximation with another kernel."""
        model = Nystroem(kernel, size, random_state=self.seeds[0])
        model.fit_rows(self.rows, generator(self.seeds[0]))
        error = self._error(model, self.seeds[0]).value
        if self.task is None:
            return error, None
        return error, self.task.score(model, self.seeds[0], error)

    def _error(self, model: Approximation, seed: int) -> ErrorEstimate:
        exact = self.rows.shape[0] <= ALL_PAIRS
        return relative_error(model, self.rows, exact=exact, random_state=seed)

    def _codes(self) -> Any:
        return None if self.task is None else self.task.codes


def _reason(error: Exception) -> str:
    said = str(error).strip() or type(error).__name__
    expected = isinstance(error, ValueError | TypeError | config.MemoryBudgetError)
    return said if expected else f"{type(error).__name__}: {said}"
