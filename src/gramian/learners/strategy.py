"""Strategies: each is one way to solve a learner's problem, and says what that takes in memory.

A learner lists its strategies in order of preference. The first that serves the problem and fits
the memory budget runs; ``estimate_memory`` shows the cost of that one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from gramian.backend import config
from gramian.backend.memory import Amounts
from gramian.matrices.block_gram import BlockGram
from gramian.matrices.factors import Factors, keepable
from gramian.matrices.gram import Gram
from gramian.rows import Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """What a learner is to solve.

    Where a fit is planned only the sizes of rows and matrix are known, and nothing that follows
    ``n_targets``. Learners add their parameters.
    """

    matrix: Gram | Factors
    rows: Rows  # those of the matrix
    n_targets: int = 1
    given: Any = None  # as they came: where the matrix is exact, ``rows`` are in this process
    weights: Any = None  # of shape (n,)
    rng: Any = None
    too_large: frozenset[Strategy[Any]] = frozenset()  # strategies that exceed the memory budget

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
    """One way to solve a problem: whether it serves, what it costs, and the work itself."""

    @abstractmethod
    def serves(self, problem: P) -> bool:
        """Whether this is a way to solve the problem, by its sizes and parameters."""

    @abstractmethod
    def memory(self, problem: P) -> Sequence[Amounts]:
        """What ``solve`` takes at each of its steps, by names."""

    @abstractmethod
    def solve(self, problem: P) -> Any:
        """The solution, which the learner keeps."""


def room_beside(beside: Amounts) -> int:
    """What is left of the memory budget for features."""
    return max(config.memory_budget() - sum(beside.values()), 0)


def keeping(
    factors: Factors, beside: Amounts, *, partly: bool = False, half: bool = False,
    name: str = "features",
) -> Amounts:  # fmt: skip
    """``beside``, and as much of Z as a fit then keeps."""
    count = keepable(factors, room_beside(beside), partly=partly, half=half)
    n = factors.shape[0]
    name = name if count == n else f"{name} of {100 * count // n} % of the rows"
    return {name: factors.parts.kept_bytes(count, half=half), **beside}
