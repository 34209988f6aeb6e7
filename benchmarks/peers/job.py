"""What a job is made of: data, contenders, the quality of their results, goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

OURS = "gramian"

Inputs = dict[str, Any]  # the arrays of a job, and the numbers that it worked out from them
Call = Callable[[int], Any]  # one run, with a seed; what it returns is looked at outside the clock


@dataclass(frozen=True)
class Data:
    """Arrays that are made once and kept in a folder while any job needs them."""

    key: str
    make: Callable[[], Inputs]


@dataclass(frozen=True)
class Contender:
    """One way to do a job.

    ``prepare(inputs)`` gives the call that is measured. What belongs outside the clock, such as
    imports and compiling, happens in ``prepare``.
    """

    name: str
    prepare: Callable[[Inputs], Call]
    package: str = "sklearn"
    is_limit: bool = False  # whether it is only a part of the job, whose result is of no use

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None


@dataclass(frozen=True)
class Quality:
    """How good a result is, by one number; ``prepare(inputs)`` gives the function of a result."""

    name: str
    prepare: Callable[[Inputs], Callable[[Any], float]]
    more_is_better: bool = False
    limit: float | None = None  # what every contender must keep to
    slack: float | None = None  # by which part gramian may be worse than a contender

    def meets_limit(self, value: float) -> bool:
        return self.limit is None or self.no_worse(value, self.limit, 0.0)

    def no_worse(self, ours: float, theirs: float, slack: float) -> bool:
        """Whether ours is not worse than theirs by more than ``slack`` times theirs."""
        sign = -1.0 if self.more_is_better else 1.0
        return sign * (ours - theirs) <= slack * abs(theirs)


@dataclass(frozen=True)
class Goal:
    """What one contender should be at least, measured against another.

    ``of`` says in what: theirs / ours in "seconds", "memory" or "size" is at least ``bound``, or
    ours - theirs in "added seconds" at most.
    """

    against: str
    bound: float
    of: str = "seconds"
    by: str = OURS
    slack: float | None = None  # in place of the quality's own

    @property
    def is_difference(self) -> bool:
        return self.of == "added seconds"

    def __str__(self) -> str:
        unit = "" if self.of == "seconds" else f" {self.of.split()[-1]}"
        return f"≤ +{self.bound:g} s" if self.is_difference else f"≥ {self.bound:g}{unit}"


@dataclass(frozen=True)
class Work:
    """What a job takes at least: operations of matrix products, bytes read and written.

    ``values`` are kernel values that need an exponential each. Passes over a result can begin only
    when it is complete; what they take is counted apart.
    """

    flops: float
    bytes: float
    dtype: str
    values: float = 0.0
    pass_flops: float = 0.0
    pass_bytes: float = 0.0


@dataclass(frozen=True)
class Job:
    """One problem, and who solves it. The first contender is gramian; ratios are taken to it."""

    name: str
    data: Data
    contenders: tuple[Contender, ...]
    quality: Quality | None = None
    goals: tuple[Goal, ...] = ()
    work: Callable[[Inputs, Any], Work] | None = None  # of inputs and gramian's result
    find: Callable[[Inputs], Inputs] | None = None  # numbers to be worked out before anyone starts
    has_size: bool = False  # whether ``nbytes`` of the results is compared
    has_memory: bool = True
    brief: bool = False  # whether it is part of the quick run

    def contender(self, name: str) -> Contender:
        return next(each for each in self.contenders if each.name == name)
