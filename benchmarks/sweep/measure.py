"""What the sweep measures: both sides of each job in turns, at one size."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.harness import keep_memory
from benchmarks.sweep import jobs, regressors
from benchmarks.sweep.jobs import Data, Job, load

JOBS = [*jobs.JOBS, *regressors.JOBS]
LEAST_SECONDS, LEAST_ROUNDS, MOST_ROUNDS = 2.0, 3, 15  # of a side
LONG = 10.0  # seconds: a call that takes longer needs no call before it, and is made twice
REST = 0.15  # seconds before each call: OpenBLAS's threads wait for work in a loop for up to 0.1


class Line(NamedTuple):
    job: str
    data: str
    n: int
    seconds: dict[str, float]  # median of each side
    losses: dict[str, float]  # mean of each side
    slack: float

    def ratio(self, other: str) -> float:
        return self.seconds[other] / self.seconds["gramian"]

    def counts(self, other: str) -> bool:
        """Whether gramian's loss is no worse."""
        return self.losses["gramian"] <= self.losses[other] * (1 + self.slack) + 1e-12

    def shown(self, other: str) -> str:
        ratio = self.ratio(other)
        text = f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"
        return text if self.counts(other) else f"({text})"

    @property
    def others(self) -> list[str]:
        return [name for name in self.seconds if name != "gramian"]

    def __str__(self) -> str:
        ratios = ", ".join(f"{name} {self.shown(name)}" for name in self.others)
        losses = ", ".join(f"{loss:.4g}" for loss in self.losses.values())
        seconds = f"{self.seconds['gramian']:.3g} s"
        return " | ".join([self.job, self.data, f"{self.n:,}", seconds, ratios, losses])


def measured(job: Job, data: Data) -> Line:
    """Run all sides in turns, once to warm up, then in rounds with a seed each."""
    sides = job.sides(data)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    losses: dict[str, list[float]] = {name: [] for name in sides}
    for seed in range(1 + MOST_ROUNDS):
        for name, side in sides.items():
            time.sleep(REST)
            start = time.perf_counter()
            result = side(seed)
            seconds[name].append(time.perf_counter() - start)
            losses[name].append(job.loss(data, result))
        first = 0 if max(each[0] for each in seconds.values()) > LONG else 1
        spent = sum(sum(each[first:]) for each in seconds.values())
        enough = seed >= LEAST_ROUNDS if first else seed >= 1
        if enough and spent > LEAST_SECONDS * len(sides):
            break
    medians = {name: float(np.median(each[first:])) for name, each in seconds.items()}
    means = {name: float(np.mean(each)) for name, each in losses.items()}
    return Line(job.name, data.name, len(data.X), medians, means, job.slack)


def lines(name: str, n: int, only: str) -> Iterator[Line]:
    data = load(name, n)
    for job in JOBS if data is not None else ():
        if re.search(only, job.name) and len(data.X) <= job.most:
            yield measured(job, data)


def part(name: str, n: int, only: str) -> list[Line]:
    """Measure at one size, and print each line as soon as it is known."""
    keep_memory("benchmarks.sweep")
    warnings.simplefilter("ignore")  # of convergence, of either side
    found = []
    for line in lines(name, n, only):
        found.append(line)
        print(line, flush=True)
    return found
