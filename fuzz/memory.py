"""Do fits to files keep the memory budget? The peak of each learner, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import limited

BUDGETS = {"50MB": 50, "200MB": 200, "1GB": 1000}
SHAPES = {"few": (500_000, 10), "many": (50_000, 500)}  # rows at scale 1, and columns
GROUPS = {"few": 50_000, "many": 1_000}  # rows of a row group that 50 MB can read
LEARNERS = ("kmeans", "ridge", "pca", "meka", "fourier")
SECONDS = 600


def run(scale: float, seed: int) -> list[limited.Failure]:
    """Print a table of peaks; a line over budget + 10 % + 30 MB is a failure."""
    failures = []
    print("| learner | budget | file | peak MB | allowed MB | outcome |")
    print("| ------- | -----: | ---- | ------: | ---------: | ------- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        files = _files(Path(folder), min(scale, 1.0), seed)
        for i, (learner, budget, file) in enumerate(product(LEARNERS, BUDGETS, files)):
            most = 1.1 * BUDGETS[budget] + 30
            peak, outcome = _measured(learner, budget, file)
            fits = peak is not None and peak <= most
            shown = "" if peak is None else f"{peak:.0f}"
            line = f"| {learner} | {budget} | {file.name} | {shown} | {most:.0f} | {outcome} |"
            print(line, flush=True)
            if not fits:
                failures.append(limited.Failure(i, f"FAILED: {line}"))
    return failures


def _files(folder: Path, scale: float, seed: int) -> list[Path]:
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(seed)
    made = []
    for name, (n, d) in SHAPES.items():
        X = rng.standard_normal((int(n * scale), d), dtype=np.float32)
        np.save(folder / f"{name}.npy", X)
        table = pyarrow.table({str(i): column for i, column in enumerate(X.T)})
        pyarrow.parquet.write_table(
            table, folder / f"{name}.parquet", row_group_size=GROUPS[name], compression="none"
        )
        pyarrow.parquet.write_table(table, folder / f"{name}-one.parquet", row_group_size=len(X))
        made += [folder / f"{name}{end}" for end in (".npy", ".parquet", "-one.parquet")]
    return made


def _measured(learner: str, budget: str, file: Path) -> tuple[float | None, str]:
    """Return the peak in MB, unknown where a fit takes too long; and what happened."""
    command = [sys.executable, "-m", __name__, learner, budget, str(file)]
    options: dict[str, Any] = {"cwd": limited.ROOT, "env": limited.environment()}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=True, **options
        )
    except subprocess.TimeoutExpired:
        return None, f"longer than {SECONDS} s"
    peak, _, outcome = done.stdout.strip().partition(" ")
    return float(peak), outcome


def _resident(name: str) -> float:
    """Return VmRSS or VmHWM, what is resident now or was at most, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1000
    raise OSError(f"/proc/self/status has no {name}")


def main(arguments: list[str]) -> None:
    learner, budget, file = arguments
    warnings.simplefilter("ignore")
    import pyarrow.parquet  # noqa: F401

    import gramian
    from gramian import (
        MEKA,
        RBF,
        KernelKMeans,
        KernelPCA,
        KernelRidge,
        MemoryBudgetError,
        Nystroem,
        RandomFourier,
    )

    nystroem = Nystroem(RBF(0.05), 50, random_state=0)
    model = {
        "kmeans": KernelKMeans(8, kernel=nystroem, random_state=0, max_iter=3, n_init=1),
        "ridge": KernelRidge(0.1, kernel=nystroem),
        "pca": KernelPCA(5, kernel=nystroem),
        "meka": KernelRidge(0.1, kernel=MEKA(RBF(0.05), 60, n_blocks=4, random_state=0)),
        "fourier": KernelRidge(0.1, kernel=RandomFourier(RBF(0.05), 100, random_state=0)),
    }[learner]
    warm = np.random.default_rng(0).standard_normal((300, 4))
    KernelRidge(0.1, kernel=Nystroem(RBF(0.1), 20)).fit(warm, warm[:, 0])  # loads what it needs
    gramian.set_config(memory_budget=budget)
    rows = gramian.open_rows(file)
    targets = np.arange(rows.shape[0], dtype=np.float32) % 2
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    before = _resident("VmRSS")
    try:
        model.fit(rows, targets)
        outcome = "fitted"
    except MemoryBudgetError:
        outcome = "refused"
    print(f"{_resident('VmHWM') - before:.0f} {outcome}")


if __name__ == "__main__":
    main(sys.argv[1:])
