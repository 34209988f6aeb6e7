"""compare: measure approximations of a kernel on your own data."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from numbers import Integral
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import gramian
from gramian.analysis.accuracy import ErrorEstimate, relative_error
from gramian.analysis.comparison import baselines as baselines_
from gramian.analysis.comparison import catalogue, data
from gramian.analysis.comparison.catalogue import Method
from gramian.analysis.comparison.data import Sample
from gramian.analysis.comparison.gamma import choose
from gramian.analysis.comparison.measurements import (
    EXACT,
    Baseline,
    Failure,
    Measurement,
    evaluations,
    reason,
)
from gramian.analysis.comparison.result import Comparison
from gramian.analysis.comparison.structure import fixed, look
from gramian.analysis.comparison.tasks import Predictions, Score, Task, task_for
from gramian.approximations import Approximation, Exact, Nystroem
from gramian.approximations.base import warnings_as_notes
from gramian.backend import array_ops, config
from gramian.backend.checks import positive, positive_integer
from gramian.backend.progress import progress
from gramian.backend.wording import counted
from gramian.estimators.base import generator
from gramian.kernels import Kernel
from gramian.matrices.factors import Factors
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
    time: float | None = None,
    approximations: Any = None,
    sizes: Iterable[int] | None = None,
    learner: Any = None,
    n_clusters: int | None = None,
    repeats: int = 3,
    max_rows: int = 4000,
    random_state: Any = None,
    max_error: float = 0.05,
    baselines: bool = True,
    callback: Callable[[Measurement], Any] | None = None,
) -> Comparison:
    """Compare approximations of a kernel on your data: error, time, memory and score.

    The recommendation is the fastest within the memory budget whose score on held-out rows is
    within one standard error of the best; without a target, the fastest below ``max_error``.

    Parameters
    ----------
    X : array-like, path or Rows
        The rows, of any kind that gramian accepts.
    y : array-like, optional
        The target. If given, a quarter of the rows is held out, and each approximation is scored
        by a learner that uses it.
    kernel : str, Kernel or callable, default="rbf"
        With a target, a quick cross-validation on the training rows chooses gamma if it is not
        given. ``"tune"`` takes longer, and chooses family, scales of columns and gamma from these
        rows as :func:`tune` does, if they are dense. Rules such as ``gamma="median"`` are evaluated
        once, and ``"loo"`` and ``scales="learn"`` learned once, on all rows that are not held out.
    time : float, optional
        Seconds for the search of ``kernel="tune"``, at most; by default 30.
    approximations : list of str or Approximation, dict of Approximation, optional
        By default, those of the following that support the kernel: Nyström uniform, Nyström
        k-means, Nyström RPCholesky, MEKA, BKA, Random Fourier, TensorSketch, CRAFT, Random
        Maclaurin, Local (if there is more than one block of 1,000 rows). If you pass an
        Approximation, its kernel, n_components and random_state are set by the comparison.
    sizes : list of int, optional
        Numbers of features. By default up to five of 10, 20, 50, ..., 1000, at most half the rows.
    learner : estimator, optional
        The learner that is scored on the held-out rows: a classifier or regressor with a parameter
        ``kernel``. By default, KernelRidgeClassifier if the target is text or whole numbers with
        at most 20 distinct values, else KernelRidge, with alpha chosen by leave-one-out.
    n_clusters : int, optional
        Without a target: the score is the share of the variance in feature space that this many
        clusters of kernel k-means explain.
    repeats : int, default=3
        Number of fits of each approximation, with consecutive seeds; the middle one is scored.
    max_rows : int, default=4000
        If there are more rows, a random sample of this size is measured.
    random_state : int, Generator or None, default=None
        Pass an int for reproducible results (except times).
    max_error : float, default=0.05
        Without a target: the largest relative error of the recommendation.
    baselines : bool, default=True
        Whether to score models without a kernel too: gradient boosting, a linear model, and a
        dummy that looks only at the target.
    callback : callable, optional
        Called with each :class:`Measurement` as soon as it is taken.

    Returns
    -------
    Comparison
        Approximations that do not support this data are in its ``failures``.

    See Also
    --------
    relative_error : the error of one approximation.
    tune : choose the transform of columns and the approximation, too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare(X, y, approximations=["nystroem k-means", "random fourier"],
    ...                      sizes=[10, 40], repeats=1, random_state=0)
    >>> comparison.score_name, comparison.best.score > 0.9
    ('accuracy', True)
    >>> exec(comparison.code)  # uses X and y  # doctest: +ELLIPSIS
    accuracy: ...
    """
    repeats = positive_integer("compare", "repeats", repeats)
    max_rows = positive_integer("compare", "max_rows", max_rows)
    max_error = positive("compare", "max_error", max_error)
    first = _first_seed(random_state)
    bare, given, said = data.begin(kernel, time, X, y, max_rows, first)
    rows = given.rows
    bare.fit_rows(given.known(bare), np.random.default_rng(first), None, given.known_target())
    start = fixed(bare)
    sample = data.draw(start, given)
    task = task_for(sample, start, learner, n_clusters, first)
    gamma = choose(bare, start, task, first, said)
    methods = catalogue.chosen(approximations, gamma.kernel, sample.rows)
    counts = _sizes(sizes, sample.rows.shape[0])
    bench = _Bench(gamma.kernel, sample, rows.shape[0], task, range(first, first + repeats))
    kinds = baselines_.NAMES if baselines and baselines_.can_be_measured(start, task) else ()
    with progress("compare", len(counts) * len(methods) + 1 + len(kinds)) as step:
        bench.run(methods, counts, callback, step)
        others = bench.baselines(kinds, step)
    probe_size = max(1, min(PROBE_SIZE, sample.rows.shape[0] // 4))
    with warnings_as_notes([]):
        structure = look(
            gamma.kernel,
            sample.rows,
            first,
            lambda k: bench.probe(k, probe_size),
            probe_size,
            gamma.score,
        )
    return Comparison(
        results=bench.results,
        failures=bench.failures,
        kernel=gamma.kernel,
        score_name=None if task is None else task.score_name,
        data=data.facts(X, rows, sample),
        structure=structure,
        learner=None if task is None else task.learner,
        baselines=others,
        settings={
            "gamma": gamma.said,
            "sizes": counts,
            "repeats": repeats,
            "seed": first,
            "max error": max_error,
            "bytes per kernel value": array_ops.itemsize(sample.rows.dtype),
            "memory budget": config.memory_budget(),
            "threads": config.n_threads(),
            "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "versions": _versions(),
        },
    )


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
        self.n_all, self.growth = n_all, n_all / sample.rows.shape[0]
        self.task = task
        self.seeds = seeds
        self.results: list[Measurement] = []
        self._nearest: tuple[float, Any] = (np.inf, None)  # the least error, and its fitted model
        self._refused: dict[tuple[str, str], list[int]] = {}

    @property
    def failures(self) -> list[Failure]:
        return [Failure(name, tuple(n), reason) for (name, reason), n in self._refused.items()]

    def run(
        self,
        methods: list[Method],
        sizes: list[int],
        callback: Callable[[Measurement], Any] | None,
        step: Callable[[], None],
    ) -> None:
        def take(name: str, size: int, measure: Callable[[], Measurement]) -> None:
            result = self._tried(name, (size,), measure)
            step()
            if result is None:
                return
            self.results.append(result)
            if callback is not None:
                callback(result)

        for size in sizes:
            for method in methods:
                take(method.name, size, lambda m=method, s=size: self.measure(m, s))  # type: ignore[misc]
        if not self.results:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self._refused)
            raise ValueError(f"No approximation could be measured on this data. {reasons}")
        take(EXACT, self.rows.shape[0], self.exact)

    def baselines(self, names: Iterable[str], step: Callable[[], None]) -> list[Baseline]:
        """Measure models without a kernel."""
        found = []
        for name in names:
            assert isinstance(self.task, Predictions)
            measure = partial(baselines_.measure, name, self.task, self.growth)
            with warnings_as_notes([]):
                result = self._tried(name, (), measure)
            step()
            if result is not None:
                found.append(result)
        return found

    def _tried(self, name: str, sizes: tuple[int, ...], measure: Callable[[], Any]) -> Any:
        try:
            return measure()
        except Exception as error:  # whatever it is, continue with the others
            self._refused.setdefault((name, reason(error)), []).extend(sizes)
            return None

    def measure(self, method: Method, size: int) -> Measurement:
        """Measure all repeats of one approximation at one size."""
        notes: list[str] = []
        with warnings_as_notes(notes):
            runs = [self._run(method.sized(self.kernel, size, seed), seed) for seed in self.seeds]
            # The repeat in the middle stands for all: its seed is in the code, its score is given.
            runs.sort(key=lambda run: (run.score.value, -run.error.value))
            middle = runs[len(runs) // 2]
            fitted, factors = self._walked(middle.fitted)
        core = 0 if factors.core is None else factors.core.nbytes
        by_row = (fitted.nbytes_ - core) / self.rows.shape[0]
        seconds = min(run.seconds for run in runs)
        return Measurement(
            name=method.name,
            size=size,
            error=float(np.mean([run.error.value for run in runs])),
            error_low=min(run.error.low for run in runs),
            error_high=max(run.error.high for run in runs),
            seconds=seconds,
            seconds_all=seconds * self.growth,
            nbytes=int(fitted.nbytes_),
            nbytes_all=round(by_row * self.n_all) + core,
            kernel_evaluations=fitted.evaluations_ + evaluations(factors),
            score=None if self.task is None else middle.score.value,
            standard_error=middle.score.standard_error,
            note=" ".join(dict.fromkeys(notes)),
            approximation=method.sized(self.kernel, size, middle.seed),
            model=self._model(method.sized(self.kernel, size, middle.seed), middle.seed),
        )

    def _run(self, approximation: Approximation, seed: int) -> _Run:
        """Fit and score as the code to paste does."""
        task = self.task
        start = perf_counter()
        if task is None:
            approximation.fit_rows(self.rows, generator(seed))
            self._walked(approximation)
            seconds, score = perf_counter() - start, Score(0.0)
        else:
            if task.fits_first:
                approximation.fit_rows(self.rows, generator(seed), task.codes)
            model = task.model(approximation, seed)
            score = task.score(model)
            seconds = perf_counter() - start
            if not task.fits_first:
                approximation = model.approximation_
        error = self._error(approximation, seed)
        if task is not None and error.value < self._nearest[0]:
            self._nearest = error.value, model
        return _Run(seed, seconds, error, score, approximation)

    def _model(self, kernel: Any, seed: int) -> Any:
        return None if self.task is None else self.task.model(kernel, seed)

    def _walked(self, approximation: Approximation) -> tuple[Approximation, Factors]:
        """Compute all features and blocks, and store none of them."""
        factors = approximation.factor_rows(self.rows)
        factors.map(lambda columns: lambda z, out: z[:, 0])  # one number per row
        local = factors.local
        if local is not None:
            local.each(lambda b: local.block(b).shape)
        return approximation, factors

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
        seconds_all, score, model = seconds * self.growth**2, None, None
        if self.task is not None:
            model = self.task.exact_model(Exact(self.kernel), self._nearest[1])
            start = perf_counter()
            with warnings_as_notes([]):
                score = self.task.score(clone(model))
            learning = max(perf_counter() - start - seconds, 0.0)
            # The matrix grows with the square of the rows, solving a system with the cube.
            seconds_all += learning * self.growth ** (
                3 if isinstance(self.task, Predictions) else 2
            )
            seconds += learning
        return Measurement(
            name=EXACT,
            size=n,
            error=0.0,
            error_low=0.0,
            error_high=0.0,
            seconds=seconds,
            seconds_all=seconds_all,
            nbytes=gram.nbytes,
            nbytes_all=gram.nbytes // n**2 * self.n_all**2,
            kernel_evaluations=gram.evaluations,
            score=None if score is None else score.value,
            standard_error=None if score is None else score.standard_error,
            model=model,
        )

    def probe(self, kernel: Kernel, size: int) -> float:
        """Return the error of one approximation with another kernel."""
        model = Nystroem(kernel, size, random_state=self.seeds[0])
        model.fit_rows(self.rows, generator(self.seeds[0]))
        return self._error(model, self.seeds[0]).value

    def _error(self, model: Approximation, seed: int) -> ErrorEstimate:
        exact = self.rows.shape[0] <= ALL_PAIRS
        return relative_error(model, self.rows, exact=exact, random_state=seed)


class _Run(NamedTuple):
    """One fit of one approximation."""

    seed: int
    seconds: float
    error: ErrorEstimate
    score: Score
    fitted: Approximation
