"""Choose gamma: by cross-validation on the training rows, from a rule's value outwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from gramian.analysis.comparison.tasks import Predictions, Score, Task
from gramian.approximations import Nystroem
from gramian.approximations.base import warnings_as_notes
from gramian.backend.progress import progress
from gramian.kernels import Kernel, KernelWarning
from gramian.kernels.gamma import GammaKernel

REACH = 2  # powers of two to look at on either side of the best
FARTHEST = 12  # powers of two from the start, at most
LANDMARKS = 300  # of the Nyström approximation that is scored


class Gamma(NamedTuple):
    """The kernel in use, where its gamma comes from, and the scores at other gammas."""

    kernel: Kernel
    said: str
    score: Callable[[int], float | None]  # by the power of two that multiplies gamma


def choose(
    given: Kernel, kernel: Kernel, task: Task | None, seed: int, said: str = "as given"
) -> Gamma:
    """Choose gamma if the user left it open and there is a target.

    ``given`` is the kernel as the user gave it, ``kernel`` the same with numbers for rules;
    ``said`` says where a gamma that is a number comes from.
    """
    start = kernel.get_params(deep=False).get("gamma")
    if isinstance(given, GammaKernel) and given._given() is None:
        said = f"from the rule {given._rule()!r}"
    if start is None or not isinstance(task, Predictions):
        return Gamma(kernel, said, lambda power: None)
    score = validated(task, kernel, seed)
    if isinstance(given, GammaKernel) and given.learned_parameters():
        said = "learned from the training rows by leave-one-out"
    if (
        not isinstance(given, GammaKernel)
        or given._given() is not None
        or given.gamma is not None
        or given.learned_parameters()
    ):
        return Gamma(kernel, said, lambda power: score(start * 2.0**power).value)
    power, tried = search(start, score)
    chosen = clone(kernel).set_params(gamma=fixed_digits(start * 2.0**power))
    said = (
        f"chosen from {len(tried)} values by cross-validation on the training rows: the nearest to "
        f"the rule {given._rule()!r} within one standard error of the best"
    )
    return Gamma(chosen, said, lambda other: tried[power + other].value)


def fixed_digits(value: float) -> float:
    """Return a number that code can show in full."""
    return float(f"{value:.4g}")


def search(start: float, score: Callable[[float], Score]) -> tuple[int, dict[int, Score]]:
    """Return the power of two that multiplies ``start``, and the scores of all powers tried.

    It is the one nearest to 0 whose score is within one standard error of the best. The search goes
    on until no value on either side of it is better by more than that, so it ends on a plateau.
    """
    tried: dict[int, Score] = {}
    best = 0
    while True:
        new = [power for power in range(best - REACH, best + REACH + 1) if power not in tried]
        with progress("choosing gamma", len(new)) as step:
            for power in new:
                tried[power] = score(start * 2.0**power)
                step()
        nearest = max(-FARTHEST, min(_nearest(tried), FARTHEST))
        if nearest == best:
            return best, tried
        best = nearest


def _nearest(tried: dict[int, Score]) -> int:
    top = max(tried.values(), key=lambda score: score.value)
    least = top.value - (top.standard_error or 0.0)
    good = [power for power, score in tried.items() if score.value >= least]
    return min(good, key=lambda power: (abs(power), -tried[power].value))


def validated(task: Predictions, kernel: Kernel, seed: int) -> Callable[[float], Score]:
    """Return a function from gamma to the cross-validated score of the learner."""
    folds = task.folds(seed)

    def score(gamma: float) -> Score:
        own = clone(kernel).set_params(gamma=fixed_digits(gamma))
        with warnings.catch_warnings(), warnings_as_notes([]):
            warnings.simplefilter("ignore", KernelWarning)  # a gamma too far is worth a look
            try:
                return _mean([_score(fold, own, seed) for fold in folds])
            except (ValueError, np.linalg.LinAlgError):  # no model at all with this gamma
                return Score(-np.inf)

    return score


def _mean(scores: list[Score]) -> Score:
    """Return the mean of the scores of folds, whose errors are independent."""
    errors = [score.standard_error or 0.0 for score in scores]
    root = float(np.sqrt(np.sum(np.square(errors)))) / len(scores)
    return Score(float(np.mean([score.value for score in scores])), root)


def _score(fold: Predictions, kernel: Kernel, seed: int) -> Score:
    size = max(1, min(LANDMARKS, fold.sample.rows.shape[0] // 2))
    approximation = Nystroem(kernel, size, random_state=seed)
    if fold.fits_first:
        approximation.fit(fold.sample.rows)
    return fold.score(fold.model(approximation, seed))
