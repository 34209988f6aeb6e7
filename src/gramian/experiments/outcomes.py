"""The outcomes of experiments, with numbers and verdicts, and their files."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import scipy
import sklearn

import gramian
from gramian.analysis.report.figures import Figure
from gramian.backend.typing import PathLike
from gramian.backend.writing import whole_file
from gramian.experiments.base import Check, Settings
from gramian.experiments.catalogue import FULL_ROWS, FULL_SIZE, MISSING, PAPERS
from gramian.experiments.results import Results


@dataclass(frozen=True, eq=False)
class Outcome:
    """An experiment with its numbers and verdict.

    ``word`` is "reproduced", "differs", "inconclusive", or "not run" for the ``reason``. ``rate``
    is the share of the ``replicates`` in which every claim holds.
    """

    name: str
    title: str
    claim: str
    note: str
    settings: Mapping[str, object]
    word: str
    verdict: str
    checks: list[Check] = field(default_factory=list)
    rate: float | None = None
    replicates: int = 0
    results: Results = field(default_factory=Results)
    figures: list[Figure] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    machines: list[str] = field(default_factory=list)
    measured: str = ""  # the day of the last unit
    reason: str = ""
    notes: list[str] = field(default_factory=list)  # what approximations warned of

    @property
    def reproduced(self) -> bool | None:
        """Whether the verdict is "reproduced"; None if it was not run."""
        return None if self.word == "not run" else self.word == "reproduced"

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "title": self.title,
            "claim": self.claim,
            "note": self.note,
            "verdict": self.word,
            "rate": self.rate,
            "replicates": self.replicates,
            "checks": [check._asdict() for check in self.checks],
            "reason": self.reason,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "machines": self.machines,
            "measured": self.measured,
            "results": list(self.results),
        }


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The outcomes of experiments, in the order of the papers.

    Attributes
    ----------
    settings : Settings
    outcomes : list of Outcome
    """

    settings: Settings
    outcomes: list[Outcome]

    @property
    def measured(self) -> str:
        """The day of the last measurement; today if there is none."""
        return max((each.measured for each in self.outcomes), default="") or str(date.today())

    @property
    def papers(self) -> dict[str, list[Outcome]]:
        """The outcomes, grouped by paper."""
        found: dict[str, list[Outcome]] = {}
        for each in self.outcomes:
            number = each.name.partition("/")[0]
            found.setdefault(f"{number}: {PAPERS.get(number, 'others')}", []).append(each)
        return found

    @property
    def missing(self) -> dict[str, str]:
        """What these papers show and no experiment measures, and why."""
        papers = {each.name.partition("/")[0] for each in self.outcomes}
        found = {name: why for name, why in MISSING.items() if name.partition("/")[0] in papers}
        if (self.settings.rows or 0) >= FULL_ROWS:
            found.pop(FULL_SIZE, None)
        return found

    @property
    def machines(self) -> list[str]:
        """The machines that measured."""
        return list(dict.fromkeys(one for each in self.outcomes for one in each.machines))

    @property
    def version(self) -> str:
        return str(gramian.__version__)

    @property
    def versions(self) -> str:
        return (
            f"gramian {self.version}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
            f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}"
        )

    def report(self, path: PathLike) -> Path:
        """Write the report as one HTML page, and the numbers next to it as JSON.

        Returns the path of the page. A failure leaves no partial file.
        """
        from gramian.analysis.report.reproduction import page

        target = Path(path).expanduser()
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as html, whole_file(numbers_beside(target)) as numbers:
            html.write(page(self).encode("utf-8"))
            numbers.write(json.dumps(self.to_json(), indent=1).encode("utf-8"))
        return target

    def summary(self) -> str:
        """Return the verdicts as Markdown."""
        from gramian.analysis.report.summary import summary

        return summary(self)

    def to_json(self) -> dict[str, object]:
        """Return all settings, numbers and verdicts as JSON values."""
        return {
            "measured": self.measured,
            "versions": self.versions,
            "settings": asdict(self.settings),
            "experiments": [each.to_json() for each in self.outcomes],
        }


def numbers_beside(path: Path) -> Path:
    """Return the path of a report's numbers."""
    return path.with_suffix(".json")
