"""Where passes over all rows start: restarts on few rows, swaps on more, passes on a sample.

The fewer rows, the less a step costs; the better the centres, the fewer passes remain on more rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.kmeans.clustering import Clustering, drawn, init_features, with_weight
from gramian.learners.kmeans.lloyd import best_run, means, raced
from gramian.learners.kmeans.passes import FeaturedRun
from gramian.learners.kmeans.sketch import sketched
from gramian.learners.kmeans.swaps import COARSE, swapped_run
from gramian.matrices.factors import Factors
from gramian.samplers.plus_plus import POOL, Whole

MORE = 4  # times as many starts as restarts, at most
COLUMNS = 40  # centres of all starts in one pass, if that affords more starts
MUCH = 1.5  # times as many rows at least, of which few are taken


def sample_size(k: int) -> int:
    """Return how many rows are sampled: many for each cluster, even a small one."""
    return 2000 + 400 * k


def swapping_size(size: int, k: int) -> int:
    """Return on how many of the sampled rows swaps are made: on few of many."""
    few = 2000 + 100 * k
    return few if size > MUCH * few else size


def seeding_size(size: int, k: int) -> int:
    """Return from how many of the sampled rows first centres are drawn: from few of many.

    With fewer rows for each cluster, the objective would end higher; more do not lower it.
    """
    few = max(5 * POOL // 2, 25 * k)
    return few if size > MUCH * few else size


class Sample(NamedTuple):
    """Some rows: their factors, None if they are all rows, and their weights."""

    factors: Factors | None
    weights: np.ndarray  # (sampled rows,)

    @classmethod
    def draw(cls, problem: Clustering, factors: Factors, single: bool = False) -> Sample:
        """Draw rows that have weight; all rows if there are few, unless ``single``."""
        n, weights = factors.shape[0], problem.weights
        usable = with_weight(weights)
        most = n if usable is None else len(usable)
        size = min(most, sample_size(problem.k))
        numbers = most if usable is None else usable
        chosen = np.sort(problem.rng.choice(numbers, size=size, replace=False))
        sampled = np.asarray(array_ops.to_numpy(array_ops.take_rows(weights, chosen)))
        whole = size == n and not single
        return cls(None if whole else factors.take(chosen), sampled)


class Start(NamedTuple):
    """First centres, one set for each restart that continues, and rows for empty clusters."""

    centres: list[Array]  # each (k, r)
    masses: Array  # the total weight of the rows averaged in each, (k,)
    sample: Factors
    swapped: bool = False  # whether swaps have improved them


def first_centres(problem: Clustering, drawn_rows: Sample, factors: Factors) -> Start:
    """Return the centres from which passes over all rows start.

    For large data they are one set, the best of the restarts, run on the sample until passes gain
    little: passes over all rows would change what finer ones gain.
    """
    k, n, init = problem.k, problem.rows.shape[0], problem.init
    whole, weights = drawn_rows.factors is None, drawn_rows.weights
    sample, size = drawn_rows.factors or factors, len(weights)
    nothing = array_ops.like(np.zeros(k), factors.parts.example(), problem.rows.xp.float64)
    if not isinstance(init, str):
        assert problem.approximation is not None
        first = init_features(init, k, problem.rows, problem.approximation)
        return Start([first], nothing, sample)
    sketch = sketched(sample, k, problem.rng)
    of_sketch = SomeRows(sketch, weights)
    starts = _starts(problem, 0 if whole else n // (4 * size))
    few = of_sketch.some(seeding_size(size, k), problem.rng)
    centres = _seeds(problem, few, starts)
    coarse = max(problem.tol, COARSE)
    options: Any = {"max_iter": problem.max_iter, "tol": coarse}
    if few is not of_sketch:
        centres = [raced(few.factors, few.counts(), centres, **options)]
    more = of_sketch.some(swapping_size(size, k), problem.rng)
    swapped = more is not of_sketch
    if swapped:
        best = _swapped(problem, more, centres, coarse)
        centres = [best.next_centres]
    if whole and sketch is sample:
        return Start(centres, nothing, sample, swapped)
    if swapped:
        best = best_run(sketch, of_sketch.counts(), centres, sketch, **options)
    else:
        best = _swapped(problem, of_sketch, centres, problem.tol)
    centre = best.next_centres
    if sketch is not sample:
        centre = means(sample, of_sketch.counts(), best.labels, k)
    return Start([centre], best.masses, sample, swapped=True)


class SomeRows(NamedTuple):
    """Rows in memory, on which restarts run."""

    factors: Factors
    weights: np.ndarray  # (rows,)

    def some(self, size: int, rng: np.random.Generator) -> SomeRows:
        """Return some of these rows, drawn at random; these themselves if they are all of them."""
        n = len(self.weights)
        if size == n:
            return self
        chosen = np.sort(rng.choice(n, size=size, replace=False))
        return SomeRows(self.factors.take(chosen), self.weights[chosen])

    def counts(self) -> Array:
        """Return the weights where the factors are."""
        factors = self.factors
        return array_ops.like(self.weights, factors.parts.example(), factors.xp.float64)


def _swapped(problem: Clustering, rows: SomeRows, centres: list[Array], tol: float) -> FeaturedRun:
    return swapped_run(
        rows.factors, rows.counts(), centres, problem.rng, sample=rows.factors,
        max_iter=problem.max_iter, tol=tol,
    )  # fmt: skip


def _starts(problem: Clustering, affordable: int) -> int:
    """Return how many first centres are drawn.

    There are more than restarts, up to four times as many, if there are few clusters, since a pass
    then costs little for all starts together, or if a pass over all rows costs far more than one
    over the sample.
    """
    return max(
        problem.restarts, min(MORE * problem.restarts, max(COLUMNS // problem.k, affordable))
    )


def _seeds(problem: Clustering, rows: SomeRows, starts: int) -> list[Array]:
    """Draw the first centres (k, r) of each start."""
    k, size, init = problem.k, len(rows.weights), problem.init
    matrix = Whole(rows.factors, size) if Whole.pays(size, k, starts) else rows.factors
    assert isinstance(init, str)
    found = (drawn(matrix, k, init, rows.weights, problem.rng) for _ in range(starts))
    return [rows.factors.coordinates(each) for each in found]
