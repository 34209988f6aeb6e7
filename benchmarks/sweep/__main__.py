"""gramian against scikit-learn at every size, from a thousand rows up.

Each job runs on samples of covtype (54 columns) and MNIST (784 columns), both sides in turns in one
process, with the same kernel, landmarks and restarts, each round with another seed. A ratio is
theirs over ours: above 1, gramian takes less time. It counts only if gramian's loss (objective,
test error or error of the features), averaged over the seeds, is no worse than the other's beyond
the slack of the job; otherwise it is in brackets.

``python -m benchmarks.sweep`` goes up to 10,000 rows, ``--full`` up to all rows; ``--only PATTERN``
runs some jobs, ``--data NAME`` and ``--rows N`` one set and size. ``--save FILE`` keeps what was
measured, and ``--show FILE [FILE ...]`` prints it again and draws it into docs/sweep.svg.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.chart import Point, chart
from benchmarks.harness import circumstances, keep_memory, table, write_whole
from benchmarks.sweep import jobs, regressors
from benchmarks.sweep.jobs import Data, Job, load

JOBS = [*jobs.JOBS, *regressors.JOBS]
SIZES = (1000, 3000, 10_000)
MORE = (30_000, 100_000, 581_012)
LEAST_SECONDS, LEAST_ROUNDS, MOST_ROUNDS = 2.0, 3, 15  # of a side
LONG = 10.0  # seconds: a call that takes longer needs no call before it, and is made twice
REST = 0.15  # seconds before each call: OpenBLAS's threads wait for work in a loop for up to 0.1
PICTURE = Path(__file__).parents[2] / "docs" / "sweep.svg"


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


def lines(names: list[str], sizes: list[int], only: str) -> Iterator[Line]:
    for name in names:
        for n in sizes:
            data = load(name, n)
            if data is None:
                continue
            for job in JOBS:
                if re.search(only, job.name) and len(data.X) <= job.most:
                    yield measured(job, data)


def apart(name: str, n: int, only: str, path: Path | None) -> list[Line]:
    """Measure at one size in a process of its own: processes keep the memory that they free."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.json"
        command = [sys.executable, "-m", "benchmarks.sweep", "--data", name, "--rows", str(n)]
        subprocess.run([*command, "--only", only, "--save", str(part)], check=True)
        found = loaded(part) if part.exists() else []
    if path is not None:
        save([*(loaded(path) if path.exists() else []), *found], path)
    return found


def loaded(path: Path) -> list[Line]:
    return [Line(*line) for line in json.loads(path.read_text())]


def save(found: list[Line], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(found))


def curves(found: list[Line]) -> str:
    """A table of ratios by job and data, from few rows to many."""
    names = list(dict.fromkeys(line.data for line in found))
    pairs = dict.fromkeys((line.job, other) for line in found for other in line.others)
    body = [
        [job, other]
        + [
            " / ".join(line.shown(other) for line in found if line.job == job and line.data == name)
            for name in names
        ]
        for job, other in pairs
    ]
    return table(["job", "against", *names], body)


def drawn(found: list[Line]) -> str:
    """Return a picture of the ratios: a panel for each job, a line for each peer and data set."""
    panels: dict[str, dict[str, list[Point]]] = {}
    for line in found:
        panel = panels.setdefault(line.job, {})
        for i, other in enumerate(line.others):
            tip = f"{line.n:,} rows of {line.data}: {line.shown(other)} times {other}'s speed"
            series = f"{line.data}, {('first', 'second')[i]} peer"
            panel.setdefault(series, []).append(Point(line.n, line.ratio(other), tip))
    return chart(
        panels,
        title="How many times as fast as its peers gramian is, by the number of rows",
        said="across: rows; up: the peer's time over gramian's, above the line gramian is faster",
        even=1.0,
    )


def show(found: list[Line]) -> None:
    pairs = [(line, other) for line in found for other in line.others]
    ratios = [line.ratio(other) for line, other in pairs if line.counts(other)]
    below = sum(ratio < 1 for ratio in ratios)
    print(f"\nRatios that count: {len(ratios)}, median {np.median(ratios):.1f}, {below} below 1.")
    print(f"Ratios in brackets, where gramian's loss is worse: {len(pairs) - len(ratios)}.\n")
    body = [str(line).split(" | ") for line in found]
    print(table(["job", "data", "rows", "s", "ratios", "losses, gramian's first"], body), "\n")
    print(curves(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="up to all rows")
    parser.add_argument("--only", metavar="PATTERN", default="", help="jobs that match")
    parser.add_argument("--data", nargs="+", default=["covtype", "mnist"], help="sets")
    parser.add_argument("--rows", nargs="+", type=int, help="sizes")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep what is measured")
    parser.add_argument("--show", nargs="+", type=Path, metavar="FILE", help="what was kept")
    options = parser.parse_args()
    if options.show:
        kept = [line for path in options.show for line in loaded(path)]
        order = [job.name for job in JOBS]
        found = sorted(kept, key=lambda x: (x.data, x.n, order.index(x.job)))
        show(found)
        write_whole(PICTURE, drawn(found))
        return
    keep_memory("benchmarks.sweep")
    warnings.simplefilter("ignore")  # of convergence, of either side
    sizes = options.rows or [*SIZES, *(MORE if options.full else ())]
    if len(options.data) > 1 or len(sizes) > 1:
        print(circumstances(), "\n")
        found = [
            line
            for name in options.data
            for n in sizes
            for line in apart(name, n, options.only, options.save)
        ]
        show(found)
        return
    found = []
    for line in lines(options.data, sizes, options.only):
        found.append(line)
        print(line, flush=True)
        if options.save:
            save(found, options.save)


if __name__ == "__main__":
    main()
