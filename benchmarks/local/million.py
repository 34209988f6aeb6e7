"""A million rows in an NPY file, or on two dask workers, within a memory budget of 1 GB."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gramian
from benchmarks.harness import Growth, measure_growth, table
from benchmarks.local.data import Options, covtype
from gramian import RBF, KernelRidgeClassifier, Local, Nystroem

BUDGET = "1GB"
NOISE = 0.005  # standard deviation that copies of rows get in the columns of terrain, in [0, 1]
TERRAIN = 10
GAMMA, ALPHA, LANDMARKS = 50.0, 0.03, 200
CHUNKS = 20


def files_of(n: int) -> tuple[Path, Path]:
    """n rows of covtype's training part, with noise from the second time on, and their classes."""
    folder = Path(tempfile.gettempdir()) / "gramian-benchmarks"
    folder.mkdir(exist_ok=True)
    rows, classes = (folder / f"covtype-copies-{kind}-{n}.npy" for kind in ("rows", "classes"))
    if not rows.exists() or not classes.exists():
        split = covtype(0, 2)
        rng = np.random.default_rng(0)
        chosen = np.arange(n) % len(split.X)
        X = split.X[chosen]
        copies = slice(len(split.X), n)
        X[copies, :TERRAIN] += NOISE * rng.standard_normal(X[copies, :TERRAIN].shape, np.float32)
        np.save(rows, X[order := rng.permutation(n)])
        np.save(classes, split.y[chosen][order])
    return rows, classes


def classifier(n: int, m: int) -> Any:
    kernel: Any = Nystroem(RBF(GAMMA), m, landmarks="uniform") if m else RBF(GAMMA)
    return KernelRidgeClassifier(ALPHA, Local(kernel, n // 1000), random_state=0)


# Run in a fresh process: what is returned is the call whose memory and time are measured.


def from_file(n: int, m: int) -> Callable[[], str]:
    gramian.set_config(memory_budget=BUDGET)
    rows, classes = files_of(n)
    test = covtype(0, 2)
    X_test, y_test = test.X_test.copy(), test.y_test
    del test
    y = np.load(classes)
    model = classifier(n, m)
    need = int(model.estimate_memory(n, X_test.shape[1], dtype="float32", on_disk=True))

    def call() -> str:
        start = time.perf_counter()
        model.fit(gramian.open_rows(str(rows)), y)
        fitted = time.perf_counter() - start
        accuracy = float((model.predict(X_test) == y_test).mean())
        return json.dumps({"accuracy": accuracy, "fit": fitted, "estimate": need})

    return call


def on_dask(n: int, m: int) -> Callable[[], str]:
    import dask
    import dask.array as da
    import distributed

    gramian.set_config(memory_budget=BUDGET)
    rows, classes = files_of(n)
    test = covtype(0, 2)
    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    client = distributed.Client(distributed.LocalCluster(processes=True, **options))
    edges = range(0, n, n // CHUNKS)
    parts = [dask.delayed(_part)(rows, edge, n // CHUNKS) for edge in edges]
    shape = n // CHUNKS, test.X.shape[1]
    X = da.concatenate([da.from_delayed(part, shape, np.float32) for part in parts])
    y = da.from_array(np.load(classes), chunks=n // CHUNKS)

    def call() -> str:
        start = time.perf_counter()
        model = classifier(n, m).fit(X, y)
        fitted = time.perf_counter() - start
        predicted = np.asarray(model.predict(test.X_test))
        client.shutdown()
        accuracy = float((predicted == test.y_test).mean())
        return json.dumps({"accuracy": accuracy, "fit": fitted, "estimate": 0})

    return call


def _part(rows: Path, start: int, count: int) -> np.ndarray:
    """Read some rows, on a worker."""
    return np.array(np.load(rows, mmap_mode="r")[start : start + count])


def line(where: str, n: int, m: int, growth: Growth) -> list[str]:
    said = json.loads(growth.remark)
    return [
        where,
        f"{n:,}",
        str(m),
        f"{said['accuracy']:.4f}",
        f"{said['fit']:.1f}",
        f"{growth.seconds - said['fit']:.1f}",
        f"{growth.largest / 1e6:,.0f}",
        f"{said['estimate'] / 1e6:,.0f}" if said["estimate"] else "",
    ]


def main(options: Options) -> None:
    n = 1_000_000 if options.full else 200_000
    lines = []
    for where, run in (("NPY file", from_file), ("dask, two workers", on_dask)):
        for m in (0, LANDMARKS):
            lines.append(line(where, n, m, measure_growth(run, n, m)))
            print(*lines[-1], file=sys.stderr, flush=True)
    print(
        f"\nCovtype's training rows and copies with noise of {NOISE:g}, class 2 against the rest;"
    )
    print(
        f"RBF with gamma {GAMMA:g}, alpha {ALPHA:g}, 1,000 rows a block, budget {BUDGET}. Memory:"
    )
    print("growth of this process by fit and prediction, and the estimate. On dask it is that of")
    print("the client.\n")
    header = ["rows in", "rows", "m", "accuracy", "fit s", "predict s", "growth MB", "estimate MB"]
    print(table(header, lines))
