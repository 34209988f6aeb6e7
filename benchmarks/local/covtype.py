"""Covtype: class 2 against the rest, and all seven classes; blocks, Nyström, and both together."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import mean
from typing import Any

from benchmarks.harness import Growth, measure_growth, table
from benchmarks.local.data import Options, covtype
from gramian import RBF, KernelRidgeClassifier, Local, Nystroem

# Blocks, landmarks, gamma, alpha.
CONTENDERS = {
    "Local(RBF), 400 blocks": (400, 0, 60.0, 0.03),
    "Local(RBF), 300 blocks": (300, 0, 60.0, 0.03),
    "Local(RBF), 600 blocks": (600, 0, 60.0, 0.03),
    "Local(Nyström, m = 200), 400 blocks": (400, 200, 60.0, 0.03),
    "Nyström, m = 1000": (0, 1000, 10.0, 0.03),
}


def classifier(blocks: int, m: int, gamma: float, alpha: float) -> Any:
    kernel: Any = RBF(gamma)
    if m:
        kernel = Nystroem(kernel, m, landmarks="uniform")
    if blocks:
        kernel = Local(kernel, blocks)
    return KernelRidgeClassifier(alpha, kernel, random_state=0)


def fit(name: str, seed: int, classes: int) -> Callable[[], str]:
    """Run in a fresh process: what is returned is the call whose memory and time are measured."""
    split = covtype(seed, classes)
    model = classifier(*CONTENDERS[name])

    def call() -> str:
        start, begun = time.perf_counter(), time.process_time()
        model.fit(split.X, split.y)
        fitted = time.perf_counter()
        accuracy = float((model.predict(split.X_test) == split.y_test).mean())
        done, cpu = time.perf_counter(), time.process_time()
        seconds = [fitted - start, done - fitted, cpu - begun]
        return json.dumps({"accuracy": accuracy, "seconds": seconds})

    return call


def line(name: str, classes: int, runs: list[Growth]) -> list[str]:
    said = [json.loads(run.remark) for run in runs]
    scores = [each["accuracy"] for each in said]
    columns = zip(*(each["seconds"] for each in said), strict=True)
    largest = max(run.largest for run in runs)
    return [
        name,
        str(classes),
        f"{mean(scores):.4f}",
        f"{min(scores):.4f}",
        *(f"{mean(column):.1f}" for column in columns),
        f"{largest / 1e6:,.0f}",
    ]


def main(options: Options) -> None:
    splits = 5 if options.full else 1
    print("Covtype, columns in [0, 1], float32: 464,810 rows to learn from, 116,202 to test on;")
    print(f"mean and least accuracy of {splits} splits, mean seconds, largest growth of memory in")
    print("fresh processes. CPU: seconds of all cores, for fit and prediction.\n")
    lines = []
    for classes in (2, 7):
        for name in CONTENDERS:
            runs = [measure_growth(fit, name, seed, classes) for seed in range(splits)]
            lines.append(line(name, classes, runs))
            print(*lines[-1], file=sys.stderr, flush=True)
    header = ["", "classes", "accuracy", "least", "fit s", "predict s", "CPU s", "memory MB"]
    print(f"\n{table(header, lines)}")
