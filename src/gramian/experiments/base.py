"""The base class of experiments: units to measure, checks of the numbers, and figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from gramian.analysis.report.figures import Figure
from gramian.experiments.results import Results

if TYPE_CHECKING:
    from gramian.experiments.breaks import Break

Unit = dict[str, Any]
Numbers: TypeAlias = Mapping[str, object]  # what a unit measured, as JSON values

# A claim holds if it is seen in this share of the replicates, and does not hold if in less than
# half of them and not in all runs together. Between the two it is open.
ENOUGH, HALF = 0.9, 0.5


@dataclass(frozen=True)
class Settings:
    """How much to measure.

    Attributes
    ----------
    quick : bool
        Use data that ships with scikit-learn, and few runs.
    rows : int or None
        Number of rows, for experiments that generate their data.
    """

    quick: bool = False
    rows: int | None = None


class Check(NamedTuple):
    """One comparison of measured numbers: whether it holds, and a sentence about it.

    ``rate`` is the share of the replicates in which it holds, None if it is judged only once.
    ``is_time`` marks comparisons of times, which depend on what else the machine does.
    ``is_spread`` marks comparisons of the spread over runs. A replicate of one run has none, so
    they are judged on all runs but those of each replicate.
    """

    holds: bool
    text: str
    rate: float | None = None
    is_time: bool = False
    is_spread: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the runs do not decide it."""
        if self.rate is None:
            return False
        return self.rate < ENOUGH if self.holds else self.rate > HALF

    @property
    def is_passed(self) -> bool:
        return self.holds and not self.is_open


class Verdict(NamedTuple):
    """What the checks say together: "reproduced", "differs" or "inconclusive".

    ``rate`` is the share of the replicates in which every claim holds. ``checks`` are in the order
    of the experiment, ``text`` has their sentences, failed ones first.
    """

    word: str
    text: str
    checks: list[Check]
    rate: float | None = None


class Experiment(ABC):
    """A figure, table or theorem of a paper.

    ``units`` lists what to measure, as plain JSON values. ``measure`` depends on nothing else, so a
    unit that was measured once by the same code need not be measured again. ``checks`` compares the
    numbers with the paper's claim, and ``figures`` draws them.

    Attributes
    ----------
    name : str
        The number of the paper and the item, such as ``"003/figure-1"``.
    title : str
    claim : str
        What the paper says, in one sentence.
    note : str
        What the paper leaves open, and how this experiment differs from it.
    per_run : tuple of str
        The numbers of which a unit has one for each of its ``runs``.
    breaks : tuple of Break
        The ways to break a method that the verdict must notice.
    takes_device : bool
        Whether it also runs on a GPU; others compare with dense matrices on the CPU.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]
    note: ClassVar[str] = ""
    per_run: ClassVar[tuple[str, ...]] = ("error",)
    breaks: ClassVar[tuple[Break, ...]] = ()
    takes_device: ClassVar[bool] = False

    @abstractmethod
    def units(self, settings: Settings) -> list[Unit]:
        """Return what to measure: keyword arguments of :meth:`measure`."""

    def trial(self) -> list[Unit]:
        """Return the units on which breaks are tried; by default those of the quick run."""
        return self.units(Settings(quick=True))

    @abstractmethod
    def measure(self, *_: Any, **unit: Any) -> Numbers:
        """Measure one unit; return numbers by name, as JSON values."""

    @abstractmethod
    def checks(self, results: Results) -> list[Check]:
        """Compare the numbers with the claim; each check can fail."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the figures for the reader."""

    def verdict(self, results: Results) -> Verdict:
        """Judge the claims on all runs and on each replicate, and what was audited."""
        from gramian.experiments.audits import agreement

        claims = [Check(bool(check[0]), *check[1:]) for check in self.checks(results)]
        held, rate = self._held(results), None
        if held:
            claims = [
                check._replace(rate=sum(row[i] for row in held) / len(held))
                for i, check in enumerate(claims)
            ]
            rate = sum(map(all, held)) / len(held)
        found = [*claims, *agreement(results)]
        word = "reproduced" if all(check.is_passed for check in found) else "inconclusive"
        if any(not check.holds and not check.is_open for check in found):
            word = "differs"
        ordered = sorted(found, key=lambda check: (check.is_passed, check.is_open))
        return Verdict(word, " ".join(map(said, ordered)), found, rate)

    def _held(self, results: Results) -> list[list[bool]]:
        """Return, for each of several replicates, which of the claims hold."""
        parts = results.replicates(self.per_run)
        if len(parts) < 2:
            return []
        found = [self.checks(part) for part in parts]
        if any(check.is_spread for check in found[0]):
            rest = [self.checks(part) for part in results.replicates(self.per_run, others=True)]
            pairs = (zip(*both, strict=True) for both in zip(found, rest, strict=True))
            found = [[b if a.is_spread else a for a, b in each] for each in pairs]
        return [[bool(check.holds) for check in checks] for checks in found]


def said(check: Check) -> str:
    """Return the sentence of a check, with what became of it."""
    if check.is_open:
        return f"Open, in {check.rate:.0%} of the replicates: {check.text}"
    return check.text if check.holds else f"Differs: {check.text}"


def crossed(**values: object) -> list[Unit]:
    """Return every combination of the values in lists and ranges; other values are fixed."""
    units: list[Unit] = [{}]
    for name, each in values.items():
        choices = list(each) if isinstance(each, list | range | tuple) else [each]
        units = [{**unit, name: value} for unit in units for value in choices]
    return units
