"""Covtype: class 2 against the rest, and all seven classes; blocks, Nyström, and both together."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.harness import measure_growth, table, write_whole
from benchmarks.local.data import OUT, Options, covtype
from gramian import RBF, KernelRidgeClassifier, Local, Nystroem

SPLITS = 5
MARK, END = "<!-- the table of covtype -->", "<!-- the end of the table of covtype -->"

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


def stored(seed: int) -> Path:
    return OUT / f"covtype-split-{seed}.json"


def kept(seed: int) -> list[dict[str, Any]]:
    return json.loads(stored(seed).read_text()) if stored(seed).exists() else []


def measure(seed: int, options: Options) -> None:
    """Measure what is not stored yet of a split."""
    found = kept(seed)
    if found:
        where = stored(seed).relative_to(OUT.parents[2])
        print(f"{len(found)} results are from before; delete {where} to measure again",
              file=sys.stderr)  # fmt: skip
    done = {(each["name"], each["classes"]) for each in found}
    for classes, name in product((2, 7), CONTENDERS):
        if (name, classes) in done:
            continue
        if options.is_over:
            print(f"split {seed}: {name} is left for another time", file=sys.stderr)
            return
        run = measure_growth(fit, name, seed, classes)
        found.append(
            {"name": name, "classes": classes, "memory": run.largest, **json.loads(run.remark)}
        )
        print(f"split {seed}: {found[-1]}", file=sys.stderr, flush=True)
        write_whole(stored(seed), json.dumps(found, indent=1))


def line(runs: list[dict[str, Any]]) -> list[str]:
    scores = [each["accuracy"] for each in runs]
    columns = zip(*(each["seconds"] for each in runs), strict=True)
    return [
        runs[0]["name"],
        str(runs[0]["classes"]),
        str(len(runs)),
        f"{mean(scores):.4f}",
        f"{min(scores):.4f}",
        *(f"{mean(column):.1f}" for column in columns),
        f"{max(each['memory'] for each in runs) / 1e6:,.0f}",
    ]


def main(options: Options) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for seed in options.splits or range(SPLITS if options.full else 1):
        measure(seed, options)
    results = [each for seed in range(SPLITS) for each in kept(seed)]
    by_line = [
        [each for each in results if (each["classes"], each["name"]) == key]
        for key in product((2, 7), CONTENDERS)
    ]
    print("Covtype, columns in [0, 1], float32: 464,810 rows to learn from, 116,202 to test on;")
    print("mean and least accuracy of the splits, mean seconds, largest growth of memory in fresh")
    print("processes. CPU: seconds of all cores, for fit and prediction.\n")
    header = ["model", "classes", "splits", "accuracy", "least", "fit s", "predict s", "CPU s",
              "memory MB"]  # fmt: skip
    print(f"{MARK}\n\n{table(header, [line(runs) for runs in by_line if runs])}\n\n{END}")
