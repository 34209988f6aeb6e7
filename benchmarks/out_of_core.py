"""Kernel k-means on deformed MNIST images in a file, with a memory budget that features exceed.

Time for each row should not grow where they do: features of as many rows as fit are kept, and of
the others only those computed again whose cluster is in doubt.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import gramian
from benchmarks.harness import Growth, command_line, measure_growth, table
from gramian import datasets
from gramian.approximations.projected import ProjectedKernel

GAMMA = 0.0048 / 255**2  # that of the mean squared distance, for images of whole numbers
LANDMARKS, CLUSTERS = 400, 10
FEW = 60_000
DTYPE = "float32"


def file_of(n: int) -> Path:
    """n deformed images; made where the file is not in the temporary folder yet."""
    folder = Path(tempfile.gettempdir()) / "gramian-benchmarks"
    folder.mkdir(exist_ok=True)
    path = folder / f"deformed-mnist-{n}.npy"
    if not path.exists():
        images = datasets.load("mnist").X
        datasets.write_deformed(path, images.reshape(-1, 28, 28), n)
    return path


# Run in a fresh process: what is returned is the call whose memory and time are measured.


def fit(path: str, budget: str) -> Callable[[], str]:
    gramian.set_config(memory_budget=budget)
    rows = gramian.open_rows(path, dtype=DTYPE)
    made = []
    features = ProjectedKernel.features

    def counted(self: ProjectedKernel, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        made.append(x.shape[0])
        return features(self, x, out)

    ProjectedKernel.features = counted  # type: ignore[method-assign]
    kernel = gramian.Nystroem(gramian.RBF(GAMMA), LANDMARKS, random_state=0)
    model = gramian.KernelKMeans(CLUSTERS, kernel=kernel, random_state=0)
    need = model.estimate_memory(*rows.shape, dtype=DTYPE, on_disk=True)
    small = np.random.default_rng(0).random((1000, 8), dtype=DTYPE)
    gramian.KernelKMeans(2, kernel=gramian.Nystroem("rbf", 10), random_state=0).fit(small)

    def call() -> str:
        made.clear()
        model.fit(rows)
        n = rows.shape[0]
        said = {
            "estimate": int(need),
            "passes": model.n_iter_,
            "features": sum(made) / n,
            "objective": model.inertia_ / n,
        }
        return json.dumps(said)

    return call


def line(n: int, budget: str, runs: list[Growth], per_row: float) -> list[str]:
    said = json.loads(runs[0].remark)
    seconds = median(run.seconds for run in runs)
    largest = max(run.largest for run in runs)
    sizes = (f"{size / 1e6:,.0f}" for size in (largest, said["estimate"]))
    return [
        f"{n:,}",
        f"{seconds:.1f}",
        f"{1e6 * seconds / n:.1f}",
        f"{seconds / n / per_row:.2f}",
        budget,
        *sizes,
        str(said["passes"]),
        f"{said['features']:.2f}",
        f"{said['objective']:.5f}",
    ]


def main(full: bool = False) -> None:
    many, budget, repeats = (1_000_000, "1GB", 3) if full else (200_000, "200MB", 3)
    sizes = (FEW, many)
    paths = {n: str(file_of(n)) for n in sizes}
    runs: dict[int, list[Growth]] = {n: [] for n in sizes}
    for _ in range(repeats):
        for n in sizes:  # in turns, so that whatever else the machine does meets both alike
            runs[n].append(measure_growth(fit, paths[n], budget))
    per_row = median(run.seconds for run in runs[FEW]) / FEW
    features = many * LANDMARKS * np.dtype(DTYPE).itemsize
    print(f"Deformed MNIST, 784 columns of whole numbers in an NPY file, read in {DTYPE}; Nyström")
    print(f"with m = {LANDMARKS}, k = {CLUSTERS}. Features of {many:,} rows would take")
    print(f"{features / 1e6:,.0f} MB. Medians of {repeats} runs in turns, in fresh processes.")
    print(f"Ratio: of the time for each row to that of {FEW:,} rows; asked for is 1.3 at most.")
    print("Memory in MB: growth of resident memory, and the estimate for a path, whose rows would")
    print("be read at once if they took less than half of the budget. Passes: over all rows.")
    print("Features: how many times those of a row were computed. Objective: for each row.\n")
    header = ["rows", "seconds", "µs a row", "ratio", "budget", "growth", "estimate", "passes"]
    lines = [line(n, budget, runs[n], per_row) for n in sizes]
    print(table([*header, "features", "objective"], lines))


if __name__ == "__main__":
    command_line(main, __doc__)
