"""Kernel k-means on Nyström features: the figures of its paper.

Calandriello and Rosasco, "Statistical and computational trade-offs in kernel k-means" (2018).
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

import gramian
from benchmarks._data import rows
from benchmarks.harness import command_line, table
from gramian import datasets
from gramian.experiments.results import interval

GAMMA, CLUSTERS = 0.0048, 10  # of MNIST; gamma is that of the mean squared distance
LANDMARKS = (10, 20, 50, 100, 245, 500, 1000)
CLAIM = [("mnist", 10), ("pendigits", 10), ("covtype", 7)]  # with their clusters


def nystroem(gamma: float, m: int, landmarks: str, seed: int) -> gramian.Nystroem:
    return gramian.Nystroem(gramian.RBF(gamma), m, landmarks=landmarks, random_state=seed)


def band(values: list[float]) -> str:
    """The mean, and a 95 % interval for it."""
    mean, half = interval(np.array(values))
    return f"{mean:.4f} ± {half:.4f}"


def figures_of_the_paper(full: bool) -> None:
    n, runs, sizes = (60_000, 10, LANDMARKS) if full else (10_000, 3, LANDMARKS[:5])
    data = datasets.load("mnist")
    X, y = rows("mnist", "float32")[:n], data.y[:n]
    test = np.asarray(data.X_test.reshape(len(data.X_test), -1) / 255.0, dtype="float32")
    gamma, k = GAMMA, CLUSTERS
    lines = []
    for m in sizes:
        risks, agreement = [], []
        for seed in range(runs):
            kernel = nystroem(gamma, m, "uniform", seed)
            model = gramian.KernelKMeans(k, kernel=kernel, n_init=1, random_state=seed).fit(X)
            risks.append(model.risk(test))
            agreement.append(normalized_mutual_info_score(y, model.labels_))
        lines.append([m, band(risks), band(agreement)])
    print(f"MNIST, {n:,} rows, k = {k}, n_init=1, uniform landmarks: means of {runs} runs and 95 %")
    print(f"intervals. √n is {sqrt(n):.0f}. W: the risk on the {len(test):,} test images.\n")
    print(table(["m", "W", "NMI with the digits"], lines), "\n")


def root_of_n(full: bool) -> None:
    n, runs = (10_000, 3) if full else (1500, 3)
    lines = []
    for name, k in CLAIM:
        if name == "pendigits":
            data = datasets.load(name)
            X = np.concatenate((data.X, data.X_test)) / 100.0
        else:
            X = rows(name, "float64")
        X = X[np.random.default_rng(0).permutation(len(X))]
        size = min(n, len(X) * 3 // 4)
        train, test = X[:size], X[size : 2 * size]
        gamma, m = gramian.RBF("mean").fit(train).gamma_, ceil(sqrt(size))
        risks: dict[str, list[float]] = {"exact": [], "uniform": [], "kmeans": []}
        for method, found in risks.items():
            for seed in range(runs):
                kernel: Any = gramian.Exact(gramian.RBF(gamma))
                if method != "exact":
                    kernel = nystroem(gamma, m, method, seed)
                model = gramian.KernelKMeans(k, kernel=kernel, random_state=seed).fit(train)
                found.append(model.risk(test))
        exact, uniform, centres = (float(np.mean(found)) for found in risks.values())
        row = [name, f"{size:,}", m, k, f"{gamma:.3g}", f"{exact:.4f}"]
        lines.append([*row, *(f"{100 * (w / exact - 1):+.2f}" for w in (uniform, centres))])
    print(
        f"√n landmarks against the exact matrix: risk on other rows, means of {runs} runs, and what"
    )
    print(
        "landmarks add to it, in % of it: uniform ones, and k-means centres, the default. Asked for"
    )
    print("is 2 % at most.\n")
    header = ["data", "rows", "m", "k", "gamma", "exact W", "uniform %", "k-means centres %"]
    print(table(header, lines))


def main(full: bool = False) -> None:
    figures_of_the_paper(full)
    root_of_n(full)


if __name__ == "__main__":
    command_line(main, __doc__)
