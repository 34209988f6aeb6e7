"""The problem of k-means, and one restart of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gramian.approximations import Approximation
from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.learners.strategy import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class Clustering(Problem):
    """Divide rows into k clusters."""

    k: int
    init: str | Array
    restarts: int
    max_iter: int
    tol: float
    batch_size: int | None
    half: bool  # whether features are cached in half precision
    approximation: Approximation | None = None  # the one in use, fitted


@dataclass(eq=False)
class Run:
    """One restart on n rows with k clusters."""

    labels: Array  # (n,)
    centres: Array = None  # features of the centres that the labels refer to, (k, r)
    # Kernel values or features times ``dual`` are inner products with the centres: it has weights
    # of rows, (n, k), or for factors S centresᵀ, (r, k).
    dual: Array = None
    norms: Array = None  # squared norms of the centres, (k,)
    masses: Array = None  # the total weight of each cluster's rows, (k,)
    trace: float = 0.0  # of the weighted rows: rounding in the objective is relative to it
    history: list[float] = field(default_factory=list)  # the objective after each pass
    done: bool = False

    @property
    def inertia(self) -> float:
        return self.history[-1]

    def record(self, inertia: float, unchanged: bool, tol: float) -> None:
        """Record the objective; the run is done if no label changed or it hardly fell."""
        self.history.append(max(inertia, 0.0))
        if len(self.history) > 1:
            before, now = self.history[-2:]
            unchanged = unchanged or (tol > 0 and before - now <= tol * before)
        self.done = unchanged


R = TypeVar("R", bound=Run)


def best_of(runs: Sequence[R], dtype: DType) -> R:
    """Return the run with the smallest objective; the first if they differ only by rounding.

    ``dtype`` is that of the kernel values or features.
    """
    return best_few(runs, 1, dtype)[0]


def best_few(runs: Sequence[R], count: int, dtype: DType) -> list[R]:
    """Return so many runs with the smallest objectives, in their order.

    Of runs that differ only by rounding the first count, so that the same rows in another form
    lead to the same clusters with the same numbers.
    """
    last = sorted(run.inertia for run in runs)[min(count, len(runs)) - 1]
    slack = max(1e-10, 10 * array_ops.eps(dtype)) * runs[0].trace
    better = [run for run in runs if run.inertia < last - slack]
    level = [run for run in runs if abs(run.inertia - last) <= slack]
    chosen = better + level[: count - len(better)]
    return [run for run in runs if run in chosen]
