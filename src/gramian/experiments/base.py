"""What an experiment is: units to measure, checks of the numbers, figures of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from gramian.analysis.report.figures import Figure
from gramian.experiments.results import Results

Unit = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Attributes
    ----------
    quick : bool
        On data that ships with scikit-learn, in few runs.
    rows : int or None
        How many rows are made, where an experiment makes as many as one likes.
    """

    quick: bool = False
    rows: int | None = None


class Check(NamedTuple):
    """One comparison of measured numbers: whether it holds, and a sentence with the numbers."""

    holds: bool
    text: str


class Verdict(NamedTuple):
    """Whether all that a paper says was seen, and the checks, failed ones first."""

    reproduced: bool
    text: str
    checks: list[Check]


class Experiment(ABC):
    """A figure, table or theorem of a paper.

    A subclass says in ``units`` what is measured, as plain JSON values that are all that
    ``measure`` looks at: so a unit that was measured once, by the same code, need not be measured
    again. ``checks`` compares the numbers with what the paper says, and ``figures`` draws them.

    Attributes
    ----------
    name : str
        The paper's number and what it is, such as ``"003/figure-1"``.
    title : str
    claim : str
        What the paper says is to be seen, in a sentence.
    note : str
        What the paper leaves unsaid, and where this differs from it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]
    note: ClassVar[str] = ""

    @abstractmethod
    def units(self, settings: Settings) -> list[Unit]:
        """What is measured: keyword arguments of :meth:`measure`."""

    @abstractmethod
    def measure(self, *_: Any, **unit: Any) -> dict[str, Any]:
        """The numbers of one unit, given by its names, as JSON holds them."""

    @abstractmethod
    def checks(self, results: Results) -> list[Check]:
        """What must be seen in the numbers, each as a comparison that could fail."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure]:
        """What a reader is shown."""

    def verdict(self, results: Results) -> Verdict:
        """Reproduced where every check holds."""
        found = [Check(bool(holds), text) for holds, text in self.checks(results)]
        found.sort(key=lambda check: check.holds)
        text = " ".join(("" if each.holds else "Differs: ") + each.text for each in found)
        return Verdict(all(each.holds for each in found), text, found)


def crossed(**values: Any) -> list[Unit]:
    """Every combination of the values of lists; what is no list or range is the same in all."""
    units: list[Unit] = [{}]
    for name, each in values.items():
        choices = list(each) if isinstance(each, list | range | tuple) else [each]
        units = [{**unit, name: value} for unit in units for value in choices]
    return units
