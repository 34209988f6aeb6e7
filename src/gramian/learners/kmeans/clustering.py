"""The problem of k-means, and one restart of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gramian.backend.array_ops import Array
from gramian.learners.strategy import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class Clustering(Problem):
    """Rows that are to be put into k clusters."""

    k: int
    init: Any
    restarts: int
    max_iter: int
    tol: float
    batch_size: int | None
    half: bool  # whether features are kept in half precision
    approximation: Any = None  # the one in use, fitted


@dataclass(eq=False)
class Run:
    """One restart, of n rows and k clusters."""

    labels: Array  # of shape (n,)
    centres: Array = None  # those that the labels refer to, of shape (k, r), by r features
    # What a row's kernel values or features are multiplied with to give its products with the
    # centres: weights of the rows, of shape (n, k), or on factors S centresᵀ, of shape (r, k).
    dual: Array = None
    norms: Array = None  # of the centres, squared, of shape (k,)
    masses: Array = None  # the weight of each cluster's rows, of shape (k,)
    trace: float = 0.0  # of the weighted rows: rounding in the objective is relative to it
    history: list[float] = field(default_factory=list)  # the objective after each pass
    done: bool = False

    @property
    def inertia(self) -> float:
        return self.history[-1]

    def record(self, inertia: float, unchanged: bool, tol: float) -> None:
        """Note the objective; done when no label changed or it hardly fell."""
        self.history.append(max(inertia, 0.0))
        if len(self.history) > 1:
            before, now = self.history[-2:]
            unchanged = unchanged or (tol > 0 and before - now <= tol * before)
        self.done = unchanged


def best_of(runs: list[Any]) -> Any:
    """The run of the least objective; of several that differ by rounding alone, the first."""
    least = min(run.inertia for run in runs)
    return next(run for run in runs if run.inertia <= least + 1e-10 * run.trace)
