"""Kernel ridge classification of many rows in a file, with equal and with learned scales.

Both sides have the same kernel (RBF, gamma by leave-one-out), the same landmarks and the same
memory budget of 1 GB, and each runs in a fresh process. Rows are deformed MNIST images, scored on
the official test images, or the forest of covtype (standardised), scored on 20,000 rows that are
held out. Memory is that beyond what the process held before the fit. Seconds are those of the
wall; CPU seconds are of all threads together.

``--full`` takes a million images and all of covtype; ``--rows`` and ``--sets`` choose otherwise.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np

import gramian
from benchmarks.harness import Growth, measure_growth, table
from benchmarks.out_of_core import file_of
from gramian import datasets

BUDGET = "1GB"
LANDMARKS = 1000
HELD_OUT = 20_000
SETS = ("covtype", "mnist")
QUICK, FULL = 30_000, 1_000_000
SIDES = {"equal": None, "learned": "learn"}


def prepared(name: str, n: int) -> tuple[Path, np.ndarray, np.ndarray, np.ndarray]:
    """Return a file of about n rows, their classes, and test rows with theirs."""
    stored = datasets.load(name)
    if name == "mnist":
        assert stored.X_test is not None and stored.y_test is not None
        labels = stored.y[np.arange(n) % len(stored.y)]
        return file_of(n), labels, stored.X_test.reshape(-1, 784), stored.y_test
    order = np.random.default_rng(0).permutation(len(stored.X))
    test, train = order[:HELD_OUT], order[HELD_OUT:][:n]
    X = stored.X[train].astype(np.float32)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    path = Path(tempfile.gettempdir()) / "gramian-benchmarks" / f"{name}-{len(train)}.npy"
    path.parent.mkdir(exist_ok=True)
    np.save(path, (X - mean) / spread)
    new = ((stored.X[test] - mean) / spread).astype(np.float32)
    return path, stored.y[train], new, stored.y[test]


# Run in a fresh process: what is returned is the call whose memory and time are measured.


def fit(name: str, n: int, scales: str | None) -> Callable[[], str]:
    gramian.set_config(memory_budget=BUDGET)
    path, y, new, truth = prepared(name, n)
    rows = gramian.open_rows(path, dtype="float32")
    kernel = gramian.Nystroem(gramian.RBF("loo", scales=scales), LANDMARKS, landmarks="uniform")  # type: ignore[arg-type]
    model = gramian.KernelRidgeClassifier("loo", kernel=kernel, random_state=0)

    def call() -> str:
        start = process_time()
        model.fit(rows, y)
        seconds = process_time() - start
        score = model.score(new.astype(np.float32), truth)
        return json.dumps({"rows": len(y), "score": score, "cpu": seconds})

    return call


def line(name: str, side: str, run: Growth) -> list[str]:
    said = json.loads(run.remark)
    return [
        name,
        f"{said['rows']:,}",
        side,
        f"{said['score']:.4f}",
        f"{run.seconds:.0f}",
        f"{said['cpu']:.0f}",
        f"{run.largest / 1e6:,.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a million rows")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    options = parser.parse_args()
    n = options.rows or (FULL if options.full else QUICK)
    lines = []
    for name in options.sets:
        for side, scales in SIDES.items():
            lines.append(line(name, side, measure_growth(fit, name, n, scales)))
    print(table(["set", "rows", "scales", "accuracy", "seconds", "CPU s", "memory, MB"], lines))


if __name__ == "__main__":
    main()
