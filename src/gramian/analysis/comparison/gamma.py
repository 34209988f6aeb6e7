"""Choose gamma: by cross-validation on the training rows, from a rule's value outwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from gramian.analysis.comparison.tasks import Predictions, Task
from gramian.approximations import Nystroem
from gramian.approximations.base import warnings_as_notes
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


def choose(given: Kernel, kernel: Kernel, task: Task | None, seed: int) -> Gamma:
    """Choose gamma if the user left it open and there is a target.

    ``given`` is the kernel as the user gave it, ``kernel`` the same with numbers for rules.
    """
    start = kernel.get_params(deep=False).get("gamma")
    said = "as given"
    if isinstance(given, GammaKernel) and given._given() is None:
        said = f"from the rule {given._rule()!r}"
    if start is None or not isinstance(task, Predictions):
        return Gamma(kernel, said, lambda power: None)
    score = validated(task, kernel, seed)
    if not isinstance(given, GammaKernel) or given._given() is not None or given.gamma is not None:
        return Gamma(kernel, said, lambda power: score(start * 2.0**power))
    power, tried = search(start, score)
    chosen = clone(kernel).set_params(gamma=fixed_digits(start * 2.0**power))
    said = f"the best of {len(tried)} values by cross-validation on the training rows"
    return Gamma(chosen, said, lambda other: tried.get(power + other))


def fixed_digits(value: float) -> float:
    """Return a number that code can show in full."""
    return float(f"{value:.4g}")


def search(start: float, score: Callable[[float], float]) -> tuple[int, dict[int, float]]:
    """Return the power of two, times ``start``, with the best score; and all scores by power.

    The search goes on until the values on both sides of the best one are worse.
    """
    tried: dict[int, float] = {}
    best = 0
    while True:
        for power in range(best - REACH, best + REACH + 1):
            if power not in tried:
                tried[power] = score(start * 2.0**power)
        top = max(tried, key=lambda power: (tried[power], -abs(power)))
        if top == best or abs(top) >= FARTHEST:
            return top, tried
        best = top


def validated(task: Predictions, kernel: Kernel, seed: int) -> Callable[[float], float]:
    """Return a function from gamma to the cross-validated score of the learner."""
    folds = task.folds(seed)

    def score(gamma: float) -> float:
        own = clone(kernel).set_params(gamma=fixed_digits(gamma))
        with warnings.catch_warnings(), warnings_as_notes([]):
            warnings.simplefilter("ignore", KernelWarning)  # a gamma too far is worth a look
            try:
                return float(np.mean([_score(fold, own, seed) for fold in folds]))
            except (ValueError, np.linalg.LinAlgError):  # no model at all with this gamma
                return -np.inf

    return score


def _score(fold: Predictions, kernel: Kernel, seed: int) -> float:
    size = max(1, min(LANDMARKS, fold.sample.rows.shape[0] // 2))
    approximation = Nystroem(kernel, size, random_state=seed)
    if fold.fits_first:
        approximation.fit(fold.sample.rows)
    return fold.score(fold.model(approximation, seed)).value
