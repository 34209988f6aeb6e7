"""Strategies: each is one way to solve a learner's problem, and states the memory it takes.

A learner lists its strategies in order of preference. The first that serves the problem and fits
the memory budget runs; ``estimate_memory`` shows the cost of that one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from gramian.backend import config
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.matrices.block_gram import BlockGram
from gramian.matrices.factors import Factors, keepable
from gramian.matrices.gram import Gram
from gramian.rows import Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """What a learner has to solve.

    While a fit is planned, only the sizes of rows and matrix are known, and nothing after
    ``n_targets``. Learners add their parameters.
    """

    matrix: Gram | Factors
    rows: Rows  # the rows of the matrix
    n_targets: int = 1
    input_rows: Rows | None = (
        None  # the user's rows; for an exact matrix, ``rows`` are in this process
    )
    weights: Array | None = None  # (n,)
    rng: Any = None
    too_large: frozenset[Hashable] = frozenset()  # strategies that exceed the memory budget

    @property
    def is_local(self) -> bool:
        """Whether the matrix is exact inside blocks, and has features between them at most."""
        return isinstance(self.matrix, Factors) and self.matrix.local is not None

    @property
    def is_exact(self) -> bool:
        """Whether the matrix is used by products with it, not by features of the rows."""
        return isinstance(self.matrix, Gram) or self.is_local

    @cached_property
    def gram(self) -> Gram:
        if isinstance(self.matrix, Gram):
            return self.matrix
        return BlockGram(self.matrix, self.rows.place.here(self.rows))

    @property
    def factors(self) -> Factors:
        assert isinstance(self.matrix, Factors)
        return self.matrix


P = TypeVar("P", bound=Problem)


class Strategy(ABC, Generic[P]):
    """One way to solve a problem: whether it applies, what it costs, and the work itself."""

    @abstractmethod
    def serves(self, problem: P) -> bool:
        """Whether this strategy can solve a problem with these sizes and parameters."""

    @abstractmethod
    def memory(self, problem: P) -> Sequence[Amounts]:
        """Return the memory of each step of ``solve``, by name."""

    @abstractmethod
    def solve(self, problem: P) -> Any:
        """Return the solution, which the learner stores."""


def room_left(other: Amounts) -> int:
    """Return the memory that the budget leaves for features."""
    return max(config.memory_budget() - sum(other.values()), 0)


def keeping(
    factors: Factors, other: Amounts, *, partly: bool = False, half: bool = False,
    name: str = "features",
) -> Amounts:  # fmt: skip
    """Return ``other`` plus the features that the fit will cache."""
    count = keepable(factors, room_left(other), partly=partly, half=half)
    n = factors.shape[0]
    name = name if count == n else f"{name} of {100 * count // n} % of the rows"
    return {name: factors.parts.kept_bytes(count, half=half), **other}
