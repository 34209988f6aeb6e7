"""The search of ``tune``: many candidates on few rows, then few candidates on more rows.

1. Each transform with each family, with equal scales, on a small sample.
2. The best of these learn scales, on a larger sample.
3. The best of these choose gamma and alpha again on all rows, as far as time and memory allow. With
   too many rows for the exact kernel, they refine their scales over landmarks instead.
4. With too many rows for the exact kernel, the best of these chooses its approximation.

Errors are leave-one-out errors, or those of rows that are put aside where landmarks stand for the
kernel. Equal rows are one row with their mean target: a copy that stays would predict the one that
is left out.

The first three steps read a sample of the rows once and keep it in memory; the last step walks over
all rows, wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import isqrt
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone

from gramian.backend import config
from gramian.backend.progress import progress
from gramian.kernels import learning, leave_one_out, refining
from gramian.kernels.gamma import SQUARES
from gramian.kernels.learning import Trial
from gramian.kernels.leave_one_out import TargetSample
from gramian.rows import Rows, as_rows
from gramian.tuning import approximating
from gramian.tuning.approximating import Approximating
from gramian.tuning.blocks import host, transformed
from gramian.tuning.candidates import FAMILIES, TRANSFORMS, Candidate

SCREENED = 800  # rows of the first step
LEARNED = 1500  # rows of the second
EXACT = 5000  # rows of the third, at most
LEAST = 200  # rows of each, even if they exceed the memory budget
LEARNERS = 3  # candidates that learn scales
FINALISTS = 2
FITS = 12  # of a finalist, about

Step: TypeAlias = Callable[..., None]  # advances the progress bar


class Search:
    """A search within a deadline; ``tried`` has all candidates in order."""

    def __init__(
        self,
        X: Rows | np.ndarray,
        Y: np.ndarray,
        classes: bool,
        seconds: float,
        rng: np.random.Generator,
        transforms: Iterable[str] = TRANSFORMS,
    ) -> None:
        self.rows, self.all_targets, self.classes, self.rng = as_rows(X), Y, classes, rng
        pool = self._pool()
        self.X, self.Y = host(self.rows, pool), Y[pool]
        self.transforms = tuple(transforms)
        self._transforms: dict[str, BaseEstimator] = {}  # fitted
        self.tried: list[Candidate] = []
        self._start = perf_counter()
        self._seconds = seconds

    def run(self) -> Candidate:
        """Return the best candidate that was found in time."""
        best = self.kernel()
        return self._approximated(best) if approximating.needed(self.rows.shape[0]) else best

    def kernel(self) -> Candidate:
        """Return the candidate with the best kernel, without its approximation."""
        steps = len(self.transforms) * len(FAMILIES) + LEARNERS + FINALISTS
        with progress("tuning", steps) as step:
            best = self._screened(step)
            best = self._learned(best, step)
            many = approximating.needed(self.rows.shape[0])
            return self._on_landmarks(best, step) if many else self._refined(best, step)

    def importances(self, best: Candidate) -> np.ndarray:
        """Return how much each column matters, shape (d,), of sum 1."""
        sample = self._sample(best.transform, self._few(LEARNED))
        kernel = best.trial.kernel
        trial = Trial(
            kernel, leave_one_out.best_alpha(kernel(sample.X), sample, best.trial.fit.alpha)
        )
        return learning.importances(trial, sample)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._start + self._seconds - perf_counter()

    def _screened(self, step: Step) -> list[Candidate]:
        rows = self._few(SCREENED)
        for transform in self.transforms:
            sample = self._sample(transform, rows)
            for family, kernel in FAMILIES.items():
                if self.tried and self.left < 0.7 * self._seconds:
                    break
                self._try(transform, family, sample, partial(learning.search, kernel, sample))
                step()
        return self._ranked(self.tried)

    def _learned(self, ranked: list[Candidate], step: Step) -> list[Candidate]:
        rows = self._few(LEARNED)
        found: list[Candidate] = []
        for each in ranked[:LEARNERS]:
            if found and self.left < 0.4 * self._seconds:
                break
            sample = self._sample(each.transform, rows)
            kernel = clone(FAMILIES[each.family]).set_params(scales="learn")
            find = partial(_with_scales, kernel, sample)
            found.append(self._try(each.transform, each.family, sample, find))
            step()
        return self._ranked(found)

    def _refined(self, ranked: list[Candidate], step: Step) -> Candidate:
        rows = self._few(self._affordable(ranked[0]))
        found: list[Candidate] = []
        for each in ranked[:FINALISTS]:
            if found and self.left < 0.25 * self._seconds:
                break
            sample = self._sample(each.transform, rows)
            kernel, scales = FAMILIES[each.family], each.trial.kernel.scales
            find = partial(learning.search, kernel, sample, scales, each.trial)
            found.append(self._try(each.transform, each.family, sample, find))
            step()
        best = self._ranked(found)[0]
        # The weights of the sample have mean 1; in a fit to all rows, each copy weighs 1.
        alpha = best.trial.fit.alpha * len(rows) / best.rows
        fit = best.trial.fit._replace(alpha=alpha)
        return best._replace(trial=best.trial._replace(fit=fit))

    def _on_landmarks(self, ranked: list[Candidate], step: Step) -> Candidate:
        """Refine the scales of the finalists on more rows."""
        n, d = self.rows.shape
        rows = self._some(refining.affordable(n, d, config.memory_budget() // 2))
        if not len(rows):
            return self._refined(ranked, step)
        found: list[Candidate] = []
        for each in self._of_each_family(ranked[0]):
            if found and self.left < 0.3 * self._seconds:
                break
            bench = refining.Bench(self._sample(each.transform, rows))
            found.append(self._refined_on(each, bench, reserve=0.4 / (1 + len(found))))
            step()
        return self._ranked(found)[0]

    def _of_each_family(self, best: Candidate) -> list[Candidate]:
        """Return the best candidate and, of each other family, the best of those with most rows.

        Few landmarks suit smooth kernels, whatever suits the exact matrix of few rows.
        """
        others = []
        for family in FAMILIES:
            same = [one for one in self.tried if one.family == family != best.family]
            others += sorted(same, key=lambda one: (-one.rows, one.merit))[:1]
        return [best, *self._ranked(others)]

    def _refined_on(self, each: Candidate, bench: refining.Bench, reserve: float) -> Candidate:
        """Refine a candidate; ``reserve`` is the part of the time that is left to others."""
        start = perf_counter()
        kernel, alpha = each.trial.kernel, each.trial.fit.alpha
        if kernel.scales is None:
            kernel = clone(kernel).set_params(scales=np.ones(self.X.shape[1]))
        enough = reserve * self._seconds
        solved = refining.refine(kernel, alpha, bench, more=lambda: self.left > enough)
        fit = leave_one_out.Fit(solved.alpha, solved.error, solved.coefficients, solved.missed)
        trial = Trial(solved.kernel, fit)
        rate = fit.error
        if self.classes:
            rate = missed_classes(trial, bench.sample.take(bench.judged))
        seconds, rows = perf_counter() - start, len(bench.sample.X)
        one = Candidate(
            each.transform, each.family, trial, rate, rows, seconds, None, self.classes, True
        )
        self.tried.append(one)
        return one

    def _approximated(self, best: Candidate) -> Candidate:
        """Choose the approximation of the kernel that was chosen."""
        Y = self.all_targets
        y = Y.argmax(axis=1) if self.classes else Y[:, 0]
        X = transformed(self._transform(best.transform), self.rows)
        seed = int(self.rng.integers(2**31))
        fits = Approximating(X, y, self.classes, lambda: self.left, seed)
        found = []
        with progress("choosing landmarks", fits.most) as step:
            for one in fits.tried(best.rounded()):
                fit = best.trial.fit._replace(alpha=one.alpha, error=one.error)
                found.append(
                    best._replace(
                        trial=best.trial._replace(fit=fit),
                        rate=one.error,
                        rows=len(y),
                        seconds=one.seconds,
                        approximation=one.approximation,
                        validated=True,
                    )
                )
                step()
        self.tried += found
        return self._ranked(found)[0]

    def _affordable(self, best: Candidate) -> int:
        """Return how many rows the third step can take in half of the time that is left."""
        sample = self._sample(best.transform, self._few(SCREENED))
        K = best.trial.kernel(sample.X)
        start = perf_counter()
        leave_one_out.fit(K, sample, best.trial.fit.alpha)
        one_fit = perf_counter() - start
        growth = max(self.left, 1.0) / 2 / (FITS * FINALISTS * one_fit)
        by_time = len(sample.X) * growth ** (1 / 3)
        return max(int(min(EXACT, by_time)), SCREENED)

    def _pool(self) -> np.ndarray:
        """Return the numbers of the rows that are kept in memory: all, unless they are many."""
        n, d = self.rows.shape
        budget = config.memory_budget()
        most = min(max(refining.affordable(n, d, budget // 2), EXACT), budget // (64 * d))
        if n <= max(most, LEARNED):
            return np.arange(n)
        return np.sort(self.rng.choice(n, max(most, LEARNED), replace=False))

    def _few(self, most: int) -> np.ndarray:
        """Return some rows whose exact matrices take at most half of the memory budget."""
        by_memory = isqrt(config.memory_budget() // 2 // (8 * SQUARES))
        return self._some(max(min(most, by_memory), LEAST))

    def _some(self, most: int) -> np.ndarray:
        n = len(self.X)
        return np.sort(self.rng.choice(n, min(n, most), replace=False))

    def _sample(self, transform: str, rows: np.ndarray) -> TargetSample:
        X = self._transform(transform).transform(self.X[rows])
        return leave_one_out.grouped(X, self.Y[rows], np.ones(len(rows)))

    def _transform(self, name: str) -> BaseEstimator:
        if name not in self._transforms:
            self._transforms[name] = TRANSFORMS[name](len(self.X)).fit(self.X)
        return self._transforms[name]

    def _try(
        self, transform: str, family: str, sample: TargetSample, find: Callable[[], Trial]
    ) -> Candidate:
        start = perf_counter()
        trial = find()
        rate = missed_classes(trial, sample) if self.classes else trial.error
        seconds = perf_counter() - start
        one = Candidate(
            transform, family, trial, rate, len(sample.X), seconds, classes=self.classes
        )
        self.tried.append(one)
        return one

    @staticmethod
    def _ranked(found: list[Candidate]) -> list[Candidate]:
        return sorted(found, key=lambda each: each.merit)


def _with_scales(kernel: Any, sample: TargetSample) -> Trial:
    return learning.learn(kernel, sample).trial


def missed_classes(trial: Trial, sample: TargetSample) -> float:
    """Return the part of the rows, by weight, whose class a fit without the row misses.

    The targets are one-hot columns minus their means.
    """
    values = sample.Y - trial.fit.missed - sample.Y.min(axis=0)  # the mean is added again
    missed = values.argmax(axis=1) != sample.Y.argmax(axis=1)
    return float(np.average(missed, weights=sample.weights))
