"""gramian against scikit-learn at every size, from a thousand rows up.

Each job runs on samples of covtype (54 columns) and MNIST (784 columns), both sides in turns in one
process, with the same kernel, landmarks and restarts, each round with another seed. A ratio is
theirs over ours: above 1, gramian takes less time. It counts only if gramian's loss (objective,
test error or error of the features), averaged over the seeds, is no worse than the other's beyond
the slack of the job; otherwise it is in brackets.

``python -m benchmarks.sweep`` goes up to 10,000 rows, ``--full`` up to all rows; ``--only PATTERN``
runs some jobs.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn import cluster, decomposition, kernel_approximation, kernel_ridge, linear_model, svm
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks._data import rows
from benchmarks.harness import table
from gramian import (
    RBF,
    Exact,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    Nystroem,
    RandomFourier,
    datasets,
)

SIZES = (1000, 3000, 10_000)
MORE = (30_000, 100_000, 581_012)
JUDGED = 2000  # rows, of those to test on
LEAST_SECONDS, LEAST_ROUNDS, MOST_ROUNDS = 2.0, 3, 15  # of a side
REST = 0.05  # seconds before each call, in which threads of the last one stop waiting for work

Side = Callable[[int], Any]  # fits with this seed


class Data(NamedTuple):
    name: str
    X: np.ndarray  # float32, in random order
    y: np.ndarray  # classes
    T: np.ndarray  # rows to test on
    u: np.ndarray
    gamma: float

    @property
    def m(self) -> int:
        """Landmarks: a usual choice, 10 √n up to 500."""
        return min(int(10 * len(self.X) ** 0.5), 500, len(self.X) // 2)

    @property
    def number(self) -> np.ndarray:
        """A target for regression: a smooth function of the rows, with noise."""
        w = np.random.default_rng(1).standard_normal(self.X.shape[1])
        f = np.sin(6.0 * (self.X @ w) / np.linalg.norm(w))
        return f + 0.1 * np.random.default_rng(2).standard_normal(len(f))


def load(name: str, n: int) -> Data | None:
    """At most all rows but those to test on; None if there are far fewer than n."""
    X, y = rows(name, "float32"), np.asarray(datasets.load(name).y)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    if len(X) - JUDGED < 0.9 * n:
        return None
    T, u, X, y = X[:JUDGED], y[:JUDGED], X[JUDGED:][:n], y[JUDGED:][:n]
    some = X[:500]
    squared = np.square(some[:, None, :] - some[None, :250, :]).sum(axis=2)
    return Data(name, X, y, T, u, float(1.0 / squared.mean()))


@dataclass(frozen=True)
class Job:
    """Sides return what ``loss`` judges; the first is gramian."""

    name: str
    sides: Callable[[Data], dict[str, Side]]
    loss: Callable[[Data, Any], float]
    most: int = 10**9  # rows
    slack: float = 0.0  # of the loss


def objective(data: Data, labels: np.ndarray) -> float:
    """k-means' objective with the exact kernel, on some rows, per row."""
    labels = np.asarray(labels)[:JUDGED]
    K = RBF(data.gamma)(data.X[:JUDGED])
    groups = [K[np.ix_(labels == c, labels == c)] for c in np.unique(labels)]
    return 1.0 - sum(float(group.sum()) / len(group) for group in groups) / len(labels)


def k_means(k: int) -> Callable[[Data], dict[str, Side]]:
    def sides(data: Data) -> dict[str, Side]:
        def ours(seed: int) -> Any:
            model = KernelKMeans(k, our_features(data, seed), n_init=3, random_state=seed)
            return model.fit(data.X).labels_

        def theirs(seed: int) -> Any:
            means = cluster.KMeans(k, n_init=3, random_state=seed)
            return make_pipeline(their_features(data, seed), means).fit(data.X)[-1].labels_

        def in_batches(seed: int) -> Any:
            means = cluster.MiniBatchKMeans(k, n_init=3, random_state=seed)
            return make_pipeline(their_features(data, seed), means).fit(data.X)[-1].labels_

        return {"gramian": ours, "KMeans": theirs, "MiniBatchKMeans": in_batches}

    return sides


def our_features(data: Data, seed: int) -> Nystroem:
    return Nystroem(RBF(data.gamma), data.m, landmarks="uniform", random_state=seed)


def their_features(data: Data, seed: int) -> Any:
    return kernel_approximation.Nystroem(gamma=data.gamma, n_components=data.m, random_state=seed)


def ridge(data: Data) -> dict[str, Side]:
    y = data.number

    def ours(seed: int) -> Any:
        return KernelRidge(0.1, our_features(data, seed), random_state=seed).fit(data.X, y)

    def theirs(seed: int) -> Any:
        return make_pipeline(their_features(data, seed), linear_model.Ridge(0.1)).fit(data.X, y)

    return {"gramian": ours, "Ridge": theirs}


def exact_ridge(data: Data) -> dict[str, Side]:
    y, X = data.number, data.X.astype(np.float64)
    kernel = Exact(RBF(data.gamma))
    theirs = kernel_ridge.KernelRidge(alpha=0.1, kernel="rbf", gamma=data.gamma)
    return {
        "gramian": lambda seed: KernelRidge(0.1, kernel, random_state=seed).fit(X, y),
        "KernelRidge": lambda seed: theirs.fit(X, y),
    }


def exact_path(data: Data) -> dict[str, Side]:
    y, X = data.number, data.X.astype(np.float64)
    kernel = Exact(RBF(data.gamma))
    theirs = kernel_ridge.KernelRidge(kernel="rbf", gamma=data.gamma)
    search = GridSearchCV(theirs, {"alpha": np.logspace(-3, 2, 6)}, cv=5)
    return {
        "gramian": lambda seed: KernelRidge("loo", kernel, random_state=seed).fit(X, y),
        "GridSearchCV": lambda seed: search.fit(X, y),
    }


def regression_loss(data: Data, model: Any) -> float:
    w = np.random.default_rng(1).standard_normal(data.X.shape[1])
    truth = np.sin(6.0 * (data.T @ w) / np.linalg.norm(w))
    return 1.0 - r2_score(truth, model.predict(data.T))


def classifiers(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        model = KernelRidgeClassifier(0.1, our_features(data, seed), random_state=seed)
        return model.fit(data.X, data.y)

    def theirs(seed: int) -> Any:
        model = make_pipeline(their_features(data, seed), linear_model.RidgeClassifier(0.1))
        return model.fit(data.X, data.y)

    return {"gramian": ours, "RidgeClassifier": theirs}


def logistic(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        model = KernelLogisticRegression(0.1, our_features(data, seed), random_state=seed)
        return model.fit(data.X, data.y)

    def theirs(seed: int) -> Any:
        last = linear_model.LogisticRegression(C=10.0, max_iter=1000)
        return make_pipeline(their_features(data, seed), last).fit(data.X, data.y)

    return {"gramian": ours, "LogisticRegression": theirs}


def their_support_vectors(data: Data) -> Side:
    return lambda seed: svm.SVC(C=10.0, gamma=data.gamma).fit(data.X, data.y)


def support_vectors(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        model = KernelSVC(0.1, our_features(data, seed), random_state=seed)
        return model.fit(data.X, data.y)

    return {"gramian": ours, "SVC": their_support_vectors(data)}


def exact_support_vectors(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        return KernelSVC(0.1, RBF(data.gamma), random_state=seed).fit(data.X, data.y)

    return {"gramian": ours, "SVC": their_support_vectors(data)}


def test_error(data: Data, model: Any) -> float:
    return float(np.mean(model.predict(data.T) != data.u))


def components(data: Data) -> dict[str, Side]:
    def theirs(solver: str) -> Side:
        return lambda seed: decomposition.KernelPCA(
            20, kernel="rbf", gamma=data.gamma, eigen_solver=solver, random_state=seed
        ).fit(data.X)

    kernel = Exact(RBF(data.gamma))
    return {
        "gramian": lambda seed: KernelPCA(20, kernel, random_state=seed).fit(data.X),
        "arpack": theirs("arpack"),
        "randomized": theirs("randomized"),
    }


def unexplained(data: Data, model: Any) -> float:
    """Minus the share of the trace in the components; both sides scale it alike."""
    return 1.0 - float(np.sum(np.asarray(model.eigenvalues_, dtype=float))) / len(data.X)


def features(data: Data) -> dict[str, Side]:
    return {
        "gramian": lambda seed: our_features(data, seed).fit_transform(data.X),
        "Nystroem": lambda seed: their_features(data, seed).fit_transform(data.X),
    }


def fourier(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        return RandomFourier(RBF(data.gamma), data.m, random_state=seed).fit_transform(data.X)

    def theirs(seed: int) -> Any:
        sampler = kernel_approximation.RBFSampler(
            gamma=data.gamma, n_components=data.m, random_state=seed
        )
        return sampler.fit_transform(data.X)

    return {"gramian": ours, "RBFSampler": theirs}


def features_error(data: Data, Z: np.ndarray) -> float:
    some = np.asarray(Z[:JUDGED], dtype=float)
    K = RBF(data.gamma)(data.X[:JUDGED])
    return float(np.linalg.norm(some @ some.T - K) / np.linalg.norm(K))


JOBS = [
    Job("k-means, k = 10", k_means(10), objective, slack=0.002),
    Job("k-means, k = 100", k_means(100), objective, most=100_000, slack=0.002),
    Job("ridge", ridge, regression_loss, slack=0.02),
    Job("exact ridge", exact_ridge, regression_loss, most=10_000, slack=0.02),
    Job("exact ridge, alpha='loo'", exact_path, regression_loss, most=3000, slack=0.02),
    Job("ridge classifier", classifiers, test_error, slack=0.05),
    Job("logistic regression", logistic, test_error, most=30_000, slack=0.05),
    Job("SVM", support_vectors, test_error, most=10_000, slack=0.05),
    Job("exact SVM", exact_support_vectors, test_error, most=10_000, slack=0.05),
    Job("exact PCA, 20 components", components, unexplained, most=10_000, slack=1e-4),
    Job("Nyström features", features, features_error, slack=0.1),
    Job("random Fourier features", fourier, features_error, slack=0.1),
]


class Line(NamedTuple):
    job: str
    data: str
    n: int
    seconds: dict[str, float]  # median of each side
    losses: dict[str, float]  # mean of each side
    slack: float

    def ratio(self, other: str) -> float:
        return self.seconds[other] / self.seconds["gramian"]

    def counts(self, other: str) -> bool:
        """Whether gramian's loss is no worse."""
        return self.losses["gramian"] <= self.losses[other] * (1 + self.slack) + 1e-12

    def shown(self, other: str) -> str:
        ratio = self.ratio(other)
        text = f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"
        return text if self.counts(other) else f"({text})"

    @property
    def others(self) -> list[str]:
        return [name for name in self.seconds if name != "gramian"]

    def __str__(self) -> str:
        ratios = ", ".join(f"{name} {self.shown(name)}" for name in self.others)
        losses = ", ".join(f"{loss:.4g}" for loss in self.losses.values())
        seconds = f"{self.seconds['gramian']:.3g} s"
        return " | ".join([self.job, self.data, f"{self.n:,}", seconds, ratios, losses])


def measured(job: Job, data: Data) -> Line:
    """Run all sides in turns, once to warm up, then in rounds with a seed each."""
    sides = job.sides(data)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    losses: dict[str, list[float]] = {name: [] for name in sides}
    for seed in range(1 + MOST_ROUNDS):
        for name, side in sides.items():
            time.sleep(REST)
            start = time.perf_counter()
            result = side(seed)
            seconds[name].append(time.perf_counter() - start)
            losses[name].append(job.loss(data, result))
        spent = sum(sum(each[1:]) for each in seconds.values())
        if seed >= LEAST_ROUNDS and spent > LEAST_SECONDS * len(sides):
            break
    medians = {name: float(np.median(each[1:])) for name, each in seconds.items()}
    means = {name: float(np.mean(each)) for name, each in losses.items()}
    return Line(job.name, data.name, len(data.X), medians, means, job.slack)


def lines(sizes: tuple[int, ...], only: str) -> Iterator[Line]:
    for name in ("covtype", "mnist"):
        for n in sizes:
            data = load(name, n)
            if data is None:
                continue
            for job in JOBS:
                if re.search(only, job.name) and len(data.X) <= job.most:
                    yield measured(job, data)


def curves(found: list[Line]) -> str:
    """A table of ratios by job and data, from few rows to many."""
    names = list(dict.fromkeys(line.data for line in found))
    pairs = dict.fromkeys((line.job, other) for line in found for other in line.others)
    body = [
        [job, other]
        + [
            " / ".join(line.shown(other) for line in found if line.job == job and line.data == name)
            for name in names
        ]
        for job, other in pairs
    ]
    return table(["job", "against", *names], body)


def main(full: bool, only: str) -> None:
    warnings.simplefilter("ignore")  # of convergence, of either side
    found = []
    for line in lines(SIZES + MORE if full else SIZES, only):
        found.append(line)
        print(line, flush=True)
    pairs = [(line, other) for line in found for other in line.others]
    ratios = [line.ratio(other) for line, other in pairs if line.counts(other)]
    below = sum(ratio < 1 for ratio in ratios)
    print(f"\nRatios that count: {len(ratios)}, median {np.median(ratios):.1f}, {below} below 1.")
    print(f"Ratios in brackets, where gramian's loss is worse: {len(pairs) - len(ratios)}.\n")
    print(curves(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="up to all rows")
    parser.add_argument("--only", metavar="PATTERN", default="", help="jobs that match")
    main(**vars(parser.parse_args()))
