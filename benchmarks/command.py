"""How long the command takes: ``python -m benchmarks command``.

``python -m benchmarks.command OTHER/src`` also times another state of the source.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

HERE = str(Path(__file__).parents[1] / "src")
ROWS, COLUMNS = 500_000, 54
JOBS = {
    "gramian --help": ["--help"],
    "gramian cluster, 1,000 rows": ["cluster", "small.csv", "--force"],
    f"gramian cluster, {ROWS:,} by {COLUMNS}": ["cluster", "large.csv", "--force"],
}


def main(sources: list[str] | None = None) -> str:
    """Return a table of seconds, seconds of all cores, and peak memory."""
    lines = [
        "| command | source | seconds | seconds of all cores | peak MB |",
        "|---|---|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        for job, arguments in JOBS.items():
            for source in sources or [HERE]:
                runs = [
                    _run(source, arguments, folder)
                    for _ in range(1 if "large.csv" in arguments else 5)
                ]
                seconds, used, peak = (min(values) for values in zip(*runs, strict=True))
                name = "now" if source == HERE else "before"
                lines.append(f"| {job} | {name} | {seconds:.2f} | {used:.2f} | {peak:.0f} |")
    return "\n".join(lines)


def _write(folder: Path) -> None:
    """Write blobs of rows with four digits after the point."""
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.standard_normal((7, COLUMNS))
    header = ",".join(f"c{i}" for i in range(COLUMNS)) + "\n"
    line = ",".join(["%.4f"] * COLUMNS) + "\n"
    with open(folder / "large.csv", "w") as large, open(folder / "small.csv", "w") as small:
        large.write(header)
        small.write(header)
        for block in range(ROWS // 1000):
            rows = centres[rng.integers(7, size=1000)] + rng.standard_normal((1000, COLUMNS))
            text = "".join(line % tuple(row) for row in rows)
            large.write(text)
            if block == 0:
                small.write(text)


def _run(source: str, arguments: list[str], folder: str) -> tuple[float, float, float]:
    environment = {**os.environ, "PYTHONPATH": source}
    start = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "gramian", *arguments],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = perf_counter() - start
    if status:
        raise RuntimeError(f"gramian {' '.join(arguments)} ended with status {status}")
    return seconds, _total(used), used.ru_maxrss / 1024


def _total(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    others = [str(Path(one).absolute()) for one in sys.argv[1:] if not one.startswith("--")]
    print(main([*others, HERE]))
