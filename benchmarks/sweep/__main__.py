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
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.chart import Point, chart
from benchmarks.harness import circumstances, keep_memory, table, write_whole
from benchmarks.sweep.measure import JOBS, Line, part

SIZES = (1000, 3000, 10_000)
MORE = (30_000, 100_000, 581_012)
PICTURE = Path(__file__).parents[2] / "docs" / "sweep.svg"


def apart(name: str, n: int, only: str) -> list[Line]:
    """Measure at one size in a process of its own, which keeps the memory that it frees."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(part, name, n, only).result()


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
        kept = [line for path in options.show for line in json.loads(path.read_text())]
        order = [job.name for job in JOBS]
        found = sorted(
            (Line(*line) for line in kept), key=lambda x: (x.data, x.n, order.index(x.job))
        )
        show(found)
        write_whole(PICTURE, drawn(found))
        return
    keep_memory("benchmarks.sweep")
    print(circumstances(), "\n")
    found: list[Line] = []
    for name in options.data:
        for n in options.rows or [*SIZES, *(MORE if options.full else ())]:
            found += apart(name, n, options.only)
            if options.save:
                options.save.parent.mkdir(parents=True, exist_ok=True)
                write_whole(options.save, json.dumps(found))
    show(found)


if __name__ == "__main__":
    main()
