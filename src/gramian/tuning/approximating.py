"""Choose the number of landmarks, and between ``Nystroem`` and ``Local``, on many rows.

A part of the rows is put aside. Landmarks are doubled while that lowers the error there, and while
the next fit should end in time and fit the memory budget; ``Local`` is tried with the best number.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from time import perf_counter
from typing import NamedTuple, TypeAlias

import numpy as np

from gramian.approximations import Local, Nystroem
from gramian.approximations.base import warnings_as_notes
from gramian.backend import config
from gramian.backend.config import MemoryBudgetError
from gramian.kernels import Kernel
from gramian.learners import KernelRidge, KernelRidgeClassifier
from gramian.rows import ArrayRows, Rows

EXACT_ROWS = 10_000  # fits to more rows use landmarks
FIRST = 500  # landmarks, or fewer if the memory budget is small
LEAST = 50
MOST = 8000
VALIDATED = 5  # one row in five judges
MOST_VALIDATED = 5000  # rows
KEPT = 8  # rows are kept in memory if they take at most this part of the budget
GAIN = 0.005  # of the error, that twice the landmarks must bring
GROWTH = 3.0  # twice the landmarks take about so much longer
OF_LOCAL = 15.0  # and the blocks of Local, at most


class Tried(NamedTuple):
    """An approximation, and how its fit did on the rows that were put aside."""

    approximation: Nystroem | Local
    alpha: float
    error: float  # 1 - R², or the part of rows whose class is missed
    seconds: float


Trials: TypeAlias = Generator[Tried, None, Tried | None]  # yields each, and returns the best


def needed(n: int) -> bool:
    """Whether n rows are too many for the exact kernel."""
    return n > EXACT_ROWS or 8 * 3 * n**2 > config.memory_budget()


def learner(classes: bool) -> type[KernelRidge | KernelRidgeClassifier]:
    return KernelRidgeClassifier if classes else KernelRidge


class Approximating:
    """Fits to some of the rows, judged by the others.

    Rows that take little of the memory budget are kept in memory.
    """

    def __init__(
        self, X: Rows, y: np.ndarray, classes: bool, left: Callable[[], float], seed: int
    ) -> None:
        n = len(y)
        order = np.random.default_rng(seed).permutation(n)
        count = min(n // VALIDATED, MOST_VALIDATED)
        new, old = np.sort(order[:count]), np.sort(order[count:])
        self._X, self._y = X.choose(old), y[old]
        if len(old) * X.row_bytes <= config.memory_budget() // KEPT:
            self._X = self._X.persist()
        self._new_X, self._new_y = ArrayRows(X.take(new)), y[new]
        self._classes, self._left, self._seed = classes, left, seed
        self._refused = MemoryBudgetError()  # of the last fit that would not fit the budget

    @property
    def most(self) -> int:
        """How many approximations are tried at most."""
        return 1 + max(1, (min(MOST, len(self._y) // 2) // FIRST).bit_length())

    def _kept_bytes(self) -> int:
        return len(self._y) * self._X.row_bytes if isinstance(self._X, ArrayRows) else 0

    def tried(self, kernel: Kernel) -> Iterator[Tried]:
        """Yield one approximation after the other, as long as there is time and room."""
        best = yield from self._landmarks(kernel)
        if best is None:
            raise self._refused
        if OF_LOCAL * best.seconds > self._left():
            return
        yield from self._one(Local(best.approximation))

    def _landmarks(self, kernel: Kernel) -> Trials:
        most = max(min(MOST, len(self._y) // 2), 1)
        best, size = None, min(FIRST, most)
        while size <= most:
            found = yield from self._one(Nystroem(kernel, size))
            if found is None and best is None and size > LEAST:
                size = most = size // 2
                continue
            if found is None or (best is not None and found.error > (1 - GAIN) * best.error):
                break
            best, size = found, 2 * size
            if 2 * GROWTH * found.seconds > self._left():
                break
        return best

    def _one(self, approximation: Nystroem | Local) -> Trials:
        model = learner(self._classes)("loo", kernel=approximation, random_state=self._seed)
        start = perf_counter()
        try:
            # A trial that is not taken needs no warning.
            with config.one_budget(), warnings_as_notes([]):
                config.hold(self._kept_bytes())
                model.fit(self._X, self._y)
        except MemoryBudgetError as error:  # before the fit starts
            self._refused = error
            return None
        score = model.score(self._new_X, self._new_y)
        seconds = perf_counter() - start
        found = Tried(approximation, float(model.alpha_), 1.0 - float(score), seconds)
        yield found
        return found
