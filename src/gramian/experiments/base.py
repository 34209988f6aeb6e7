"""The base class of experiments: units to measure, checks of the numbers, and figures."""

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
    """One comparison of measured numbers: whether it holds, and a sentence about it."""

    holds: bool
    text: str


class Verdict(NamedTuple):
    """Whether all checks hold, and their sentences, failed ones first."""

    reproduced: bool
    text: str
    checks: list[Check]


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
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]
    note: ClassVar[str] = ""

    @abstractmethod
    def units(self, settings: Settings) -> list[Unit]:
        """Return what to measure: keyword arguments of :meth:`measure`."""

    @abstractmethod
    def measure(self, *_: Any, **unit: Any) -> dict[str, Any]:
        """Measure one unit; return numbers by name, as JSON values."""

    @abstractmethod
    def checks(self, results: Results) -> list[Check]:
        """Compare the numbers with the claim; each check can fail."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the figures for the reader."""

    def verdict(self, results: Results) -> Verdict:
        """Return the verdict: reproduced if every check holds."""
        found = [Check(bool(holds), text) for holds, text in self.checks(results)]
        found.sort(key=lambda check: check.holds)
        text = " ".join(("" if each.holds else "Differs: ") + each.text for each in found)
        return Verdict(all(each.holds for each in found), text, found)


def crossed(**values: Any) -> list[Unit]:
    """Return every combination of the values in lists and ranges; other values are fixed."""
    units: list[Unit] = [{}]
    for name, each in values.items():
        choices = list(each) if isinstance(each, list | range | tuple) else [each]
        units = [{**unit, name: value} for unit in units for value in choices]
    return units
