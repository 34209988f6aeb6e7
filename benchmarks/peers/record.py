"""What a run measured: plain data, to and from JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness import write_whole
from benchmarks.peers.job import Work


@dataclass
class Entry:
    """One contender in one job."""

    contender: str
    problem: str = ""  # "not installed", or why it failed
    seconds: list[float] = field(default_factory=list)
    qualities: list[float] = field(default_factory=list)
    memory: int | None = None
    size: int | None = None
    work: Work | None = None

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.percentile(self.seconds, [25, 75])
        return float(low), float(high)

    @property
    def quality(self) -> float | None:
        return float(np.mean(self.qualities)) if self.qualities else None


@dataclass
class Verdict:
    """A goal, what was reached of it with an interval, and what follows."""

    goal: str
    by: str
    against: str
    of: str
    reached: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = ""

    @property
    def is_clear(self) -> bool:
        return not self.verdict.endswith("?")


@dataclass
class JobRecord:
    """One job: its contenders and the verdicts on its goals."""

    name: str
    quality: str
    entries: list[Entry]
    verdicts: list[Verdict] = field(default_factory=list)
    disagreement: str = ""  # whose result is not good enough to be compared
    others: float | None = None  # the share of the cores that other processes took

    def entry(self, contender: str) -> Entry:
        return next(each for each in self.entries if each.contender == contender)


@dataclass
class RunRecord:
    """A whole run. Rates are in operations, or bytes, a second."""

    scale: str
    circumstances: str
    contenders: dict[str, str]  # versions of their packages
    rates: dict[str, float]
    jobs: list[JobRecord]
    seconds: float = 0.0

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls, path: Path) -> RunRecord:
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**fields, "jobs": [_job(each) for each in fields["jobs"]]})


def _job(fields: dict[str, Any]) -> JobRecord:
    entries = [
        Entry(**{**each, "work": each["work"] and Work(**each["work"])})
        for each in fields["entries"]
    ]
    verdicts = [Verdict(**each) for each in fields["verdicts"]]
    return JobRecord(**{**fields, "entries": entries, "verdicts": verdicts})
