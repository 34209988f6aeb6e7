"""Say what a long fit will take before it starts."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator

from gramian.approximations import Approximation
from gramian.backend import config, progress
from gramian.backend.wording import counted
from gramian.command.screen import Screen
from gramian.kernels import learning
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows

LONG = 20_000  # rows; fewer take seconds
BLOCK = 2000  # rows that are timed
WORK = 3.0  # a fit takes about this many times as long as its features


def show(screen: Screen, model: BaseEstimator, rows: Rows) -> None:
    """Print the rows, landmarks, memory and expected time of a fit that may take long."""
    n, d = rows.shape
    if n < LONG or not isinstance(rows.place.reference, np.ndarray):
        return
    count = landmarks(model, rows)
    memory = model.estimate_memory(n, d, dtype=np.dtype(rows.dtype).name)
    seconds = WORK * n / BLOCK * _block_seconds(model, rows, min(count, BLOCK))
    seconds *= max(count / BLOCK, 1.0)
    progress.expect(seconds)
    sizes = f"{counted(n, 'row', ',')}, {counted(count, 'landmark', ',')}"
    size = config.format_bytes(int(memory))
    screen.line("expected", f"{sizes}, {size} of memory, about {_time(seconds)}")


def landmarks(model: BaseEstimator, rows: Rows) -> int:
    """Return the number of landmarks or features that a fit on these rows uses."""
    if isinstance(model, Approximation):
        planned = model.plan(rows)
    else:
        planned = model._planned(rows, model._fits_features())
    if isinstance(planned, Gram):
        return rows.shape[0]
    return sum(part.shape[1] for part in planned.factors.parts)


def _block_seconds(model: BaseEstimator, rows: Rows, count: int) -> float:
    """Time the features of a block of rows: kernel values, and a product with a square matrix."""
    block = rows.take(np.arange(BLOCK))
    kernel = learning.unlearned(model._bare_kernel())
    kernel.fit_rows(ArrayRows(block), np.random.default_rng(0))
    times = []
    for _ in range(2):  # the first call also loads code
        start = perf_counter()
        values = kernel(block, block[:count])
        values @ values[:count]
        times.append(perf_counter() - start)
    return min(times)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
