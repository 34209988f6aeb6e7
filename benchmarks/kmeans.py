"""Kernel k-means on Nyström features: against scikit-learn, and the figures of its paper.

Calandriello and Rosasco, "Statistical and computational trade-offs in kernel k-means" (2018).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, sqrt
from typing import Any

import numpy as np
import sklearn.kernel_approximation
from scipy.stats import t as student
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

import gramian
from benchmarks.harness import command_line, interleaved, measure_growth, table
from benchmarks.nystroem import rows
from gramian import datasets

# Data set, gamma, landmarks, clusters, and the ratios asked for in float32 and float64. MNIST's
# gamma is that of the mean squared distance.
CASES = [("mnist", 0.0048, 245, 10, (1.8, 3.0)), ("covtype", 2.0, 300, 7, (3.0, 5.0))]
DTYPES = ("float32", "float64")
N_INIT, MAX_ITER = 3, 300
# Each one's default: gramian's is of the objective, scikit-learn's of the centres' movement.
OUR_TOL, THEIR_TOL = 1e-6, 1e-4
SAMPLE = 5000  # rows on which the objective is taken, with the exact kernel

LANDMARKS = (10, 20, 50, 100, 245, 500, 1000)
CLAIM = [("mnist", 10), ("pendigits", 10), ("covtype", 7)]  # with their clusters


def ours(X: np.ndarray, gamma: float, m: int, k: int, seed: int) -> np.ndarray:
    model = gramian.KernelKMeans(
        k,
        kernel=nystroem(gamma, m, "uniform", seed),
        n_init=N_INIT,
        max_iter=MAX_ITER,
        tol=OUR_TOL,
        random_state=seed,
    )
    return model.fit(X).labels_


def nystroem(gamma: float, m: int, landmarks: str, seed: int) -> gramian.Nystroem:
    return gramian.Nystroem(gramian.RBF(gamma), m, landmarks=landmarks, random_state=seed)


def theirs(X: np.ndarray, gamma: float, m: int, k: int, seed: int) -> np.ndarray:
    features = sklearn.kernel_approximation.Nystroem(gamma=gamma, n_components=m, random_state=seed)
    model = KMeans(k, n_init=N_INIT, max_iter=MAX_ITER, tol=THEIR_TOL, random_state=seed)
    return model.fit(features.fit_transform(X)).labels_


METHODS = {"gramian": ours, "scikit-learn": theirs}


# Run in a fresh process: what is returned is the call whose memory is measured.


def memory(
    method: str, name: str, dtype: str, n: int, gamma: float, m: int, k: int
) -> Callable[[], str]:
    X = rows(name, dtype)[:n]
    return lambda: str(METHODS[method](X, gamma, m, k, 0).shape)


def objective(K: np.ndarray, labels: np.ndarray) -> float:
    """The mean squared distance of rows to the mean of their cluster, with the exact kernel."""
    members = (labels == np.unique(labels)[:, None]).astype(np.float64)
    within = np.einsum("ji,ji->j", members, members @ K) / members.sum(axis=1)
    return float((np.trace(K) - within.sum()) / len(K))


class Labels:
    """A method as something to be timed; it keeps the labels of the sampled rows of each call."""

    def __init__(self, method: Callable[..., np.ndarray], *arguments: Any) -> None:
        self.run = partial(method, *arguments)
        self.found: list[np.ndarray] = []

    def __call__(self) -> None:
        seed = len(self.found)  # each call has its own, the same for all methods
        self.found.append(self.run(seed)[:SAMPLE].copy())


def against_scikit_learn(full: bool) -> None:
    repeats, part = (7, 1.0) if full else (3, 0.1)
    lines = []
    for name, gamma, m, k, asked in CASES:
        for dtype, wanted in zip(DTYPES, asked, strict=True):
            X = rows(name, dtype)
            X = X[np.random.default_rng(0).permutation(len(X))[: int(part * len(X))]]
            sides = {side: Labels(method, X, gamma, m, k) for side, method in METHODS.items()}
            times = interleaved(dict(sides), repeats)
            a, b = (times[method].median for method in METHODS)
            K = gramian.RBF(gamma)(X[:SAMPLE].astype(np.float64))
            reached = [np.mean([objective(K, each) for each in s.found]) for s in sides.values()]
            setting = name, dtype, len(X), gamma, m, k
            grown = [measure_growth(memory, method, *setting).counted for method in METHODS]
            row = [name, f"{len(X):,}", dtype, m, k]
            row += [f"{a:.2f}", f"{b:.2f}", f"{b / a:.2f}", f"{wanted:.1f}"]
            row += [f"{each:.5f}" for each in reached] + [f"{each / 1e6:,.0f}" for each in grown]
            lines.append([*row, f"{grown[0] / grown[1]:.2f}"])
    print(
        f"Embedding and clustering, uniform landmarks, n_init={N_INIT}, max_iter={MAX_ITER}, each"
    )
    print(
        f"library's default tol. Seconds: medians of {repeats} interleaved runs, each with a seed"
    )
    print(f"of its own. Objective: mean of the runs, on {SAMPLE:,} rows with the exact kernel.")
    print("Memory: growth of resident memory in MB, in fresh processes.\n")
    header = ["data", "rows", "dtype", "m", "k", "gramian s", "scikit-learn s", "ratio", "asked"]
    header += ["gramian objective", "scikit-learn objective", "gramian MB", "scikit-learn MB"]
    print(table([*header, "memory ratio"], lines), "\n")


def band(values: list[float]) -> str:
    """The mean, and a 95 % interval for it."""
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / sqrt(len(values))
    return f"{np.mean(values):.4f} ± {half:.4f}"


def figures_of_the_paper(full: bool) -> None:
    n, runs, sizes = (60_000, 10, LANDMARKS) if full else (10_000, 3, LANDMARKS[:5])
    data = datasets.load("mnist")
    X, y = rows("mnist", "float32")[:n], data.y[:n]
    test = np.asarray(data.X_test.reshape(len(data.X_test), -1) / 255.0, dtype="float32")
    gamma, k = CASES[0][1], CASES[0][3]
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
    against_scikit_learn(full)
    figures_of_the_paper(full)
    root_of_n(full)


if __name__ == "__main__":
    command_line(main, __doc__)
