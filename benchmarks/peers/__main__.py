"""``python -m benchmarks.peers [--quick] [--only PATTERN]``: the report on stdout, JSON in out/."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import datetime
from pathlib import Path

from benchmarks.peers.catalogue import jobs
from benchmarks.peers.data import SCALES
from benchmarks.peers.job import OURS
from benchmarks.peers.record import JobRecord
from benchmarks.peers.report import report
from benchmarks.peers.run import run

OUT = Path(__file__).parents[2] / "out" / "benchmarks"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, no goals")
    parser.add_argument("--only", metavar="PATTERN", help="jobs whose names match")
    options = parser.parse_args()
    scale = SCALES["quick" if options.quick else "full"]
    chosen = [job for job in jobs(scale) if re.search(options.only or "", job.name, re.IGNORECASE)]
    if not chosen:
        names = "\n".join(job.name for job in jobs(scale))
        parser.error(f"no job matches {options.only!r}; there are:\n{names}")
    path = OUT / f"peers-{scale.name}-{datetime.now():%Y%m%d-%H%M%S}.json"
    record = run(chosen, scale, lambda record: record.save(path))
    print(report(record))
    print(f"\nKept in {path}", file=sys.stderr)
    return 1 if any(_failed(job) for job in record.jobs) else 0


def _failed(job: JobRecord) -> bool:
    """Whether gramian itself failed, or results differ; a peer that fails is only told."""
    ours = [entry for entry in job.entries if entry.contender.startswith(OURS)]
    return bool(job.disagreement) or any(entry.problem for entry in ours)


if __name__ == "__main__":
    sys.exit(main())
