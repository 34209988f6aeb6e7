"""Kernel k-means on Nyström features: the figures of its paper, and objectives of scikit-learn.

Calandriello and Rosasco, "Statistical and computational trade-offs in kernel k-means" (2018).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import normalized_mutual_info_score

import gramian
from benchmarks._data import rows
from benchmarks.harness import command_line, table
from gramian import datasets
from gramian.experiments.results import interval

GAMMA, CLUSTERS = 0.0048, 10  # of MNIST; gamma is that of the mean squared distance
LANDMARKS = (10, 20, 50, 100, 245, 500, 1000)
CLAIM = [("mnist", 10), ("pendigits", 10), ("covtype", 7)]  # with their clusters
# Rows of samples on which objectives are compared, and numbers of clusters.
COMPARED = [
    ("covtype", 1000), ("covtype", 3000), ("covtype", 10_000), ("mnist", 1000), ("mnist", 3000),
    ("mnist", 10_000), ("pendigits", 3000), ("satimage", 4000), ("digits", 1797), ("blobs", 5000),
    ("few blobs", 20_000),
]  # fmt: skip
QUICK = [("covtype", 3000), ("mnist", 3000), ("digits", 1797), ("blobs", 5000)]
BLOBS = {"blobs": (16, 60, 1.5), "few blobs": (32, 10, 1.0)}  # columns, centres and their spread
SEEDS = range(200, 210)
SMALL = ("satimage", 2300, 7)  # rows and clusters, for the exact matrix with default settings
EQUAL = 0.01  # per cent of the objective


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


def sample(name: str, n: int) -> np.ndarray:
    if name in BLOBS:
        columns, centres, spread = BLOBS[name]
        X = make_blobs(n, columns, centers=centres, cluster_std=spread, random_state=0)[0]
        return np.asarray(X, dtype="float32")
    X = rows(name, "float32")
    return X[np.random.default_rng(0).permutation(len(X))[:n]]


def objectives(fit: Callable[[int], Any]) -> tuple[np.ndarray, float]:
    """The objective for each seed, and the mean CPU time of a fit."""
    start = time.process_time()
    found = [fit(seed).inertia_ for seed in SEEDS]
    return np.asarray(found, dtype=float), (time.process_time() - start) / len(SEEDS)


def compared(
    X: np.ndarray, kernel: gramian.Nystroem, k: int, restarts: int
) -> tuple[float, list[str]]:
    """By how many per cent the objective is above that of KMeans, and the end of a line."""
    Z = kernel.transform(X)
    ours, our_time = objectives(
        lambda seed: gramian.KernelKMeans(k, kernel, n_init=restarts, random_state=seed).fit(X)
    )
    theirs, their_time = objectives(
        lambda seed: KMeans(k, n_init=restarts, random_state=seed).fit(Z)
    )
    above = 100 * (ours.mean() / theirs.mean() - 1)
    error = 100 * sqrt((ours.var() + theirs.var()) / len(SEEDS)) / theirs.mean()
    ratio = their_time / our_time
    worse = int(np.count_nonzero(ours > (1 + EQUAL / 100) * theirs))
    return above, [f"{above:+.2f} ± {error:.2f}", f"{worse}", f"{our_time:.3g}", f"{ratio:.1f}"]


def against_scikit_learn(full: bool) -> None:
    lines, worse = [], 0
    clusters, restarts = ((5, 10, 30, 100) if full else (5, 10, 30)), (1, 3)
    for name, n in COMPARED if full else QUICK:
        X = sample(name, n)
        gamma = gramian.RBF("mean").fit(X).gamma_
        kernel = nystroem(gamma, min(200, n // 5), "uniform", 0).fit(X)
        for k in clusters:
            for count in restarts:
                above, ending = compared(X, kernel, k, count)
                worse += above > EQUAL
                lines.append([name, f"{n:,}", k, count, *ending])
    print(
        f"The objective against that of KMeans on the same features, means of {len(SEEDS)} seeds,"
    )
    print(f"in % with a standard error; above {EQUAL} % in {worse} of {len(lines)}. Seeds: in how")
    print("many the objective is higher. CPU time of a fit in seconds, with the features, and that")
    print("of KMeans without them as a multiple of it.\n")
    print(table(["data", "rows", "k", "n_init", "above by %", "seeds", "s", "ratio"], lines), "\n")


def defaults_on_few_rows() -> None:
    """The exact matrix with default settings, against ten restarts on scikit-learn's features."""
    name, n, k = SMALL
    X = sample(name, n)
    gamma = gramian.RBF("mean").fit(X).gamma_
    K = np.asarray(gramian.RBF(gamma)(X), dtype=float)

    def objective(labels: np.ndarray) -> float:
        members = (labels[:, None] == np.arange(k)).astype(float)
        sizes = np.maximum(members.sum(axis=0), 1.0)
        return float(np.trace(K) - (np.sum(members * (K @ members), axis=0) / sizes).sum())

    ours, theirs = [], []
    for seed in SEEDS:
        model = gramian.KernelKMeans(k, gramian.RBF(gamma), random_state=seed)
        ours.append(objective(model.fit(X).labels_))
        features = Nystroem(gamma=gamma, n_components=ceil(10 * sqrt(n)), random_state=seed)
        Z = features.fit_transform(X)
        theirs.append(objective(KMeans(k, n_init=10, random_state=seed).fit(Z).labels_))
    above = 100 * (np.mean(ours) / np.mean(theirs) - 1)
    worse = np.count_nonzero(np.asarray(ours) > (1 + EQUAL / 100) * np.asarray(theirs))
    print(f"Defaults on {n:,} rows of {name}, k = {k}: the exact objective is {above:+.3f} % above")
    print(f"that of Nystroem and KMeans with n_init=10, higher in {worse} of {len(SEEDS)} seeds.\n")


def main(full: bool = False) -> None:
    against_scikit_learn(full)
    defaults_on_few_rows()
    figures_of_the_paper(full)
    root_of_n(full)


if __name__ == "__main__":
    command_line(main, __doc__)
