"""Kernel ridge against scikit-learn: the exact method, and Nyström features with linear ridge."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sklearn.kernel_approximation
import sklearn.kernel_ridge
import sklearn.linear_model
from sklearn.pipeline import make_pipeline

import gramian
from benchmarks.harness import command_line, interleaved, measure_growth, table
from gramian import RBF, Exact, KernelRidge, KernelRidgeClassifier, Nystroem, datasets

EXACT_ROWS = 10_000
LANDMARKS = 500
TEST_ROWS = 20_000
GAMMA = 5.0
PENALTY = 1e-6  # for each row
SMALL_BUDGET = "500MB"


class Split(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def cadata() -> Split:
    """House prices: columns and target in units of standard deviations, in float64."""
    data = datasets.load("cadata")
    X, y = ((a - a.mean(axis=0)) / a.std(axis=0) for a in (data.X.astype(float), data.y))
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:EXACT_ROWS], order[EXACT_ROWS:]
    return Split(X[train], y[train], X[test], y[test])


def covtype(n: int) -> Split:
    """Class 2 against the rest: columns in [0, 1], in float32."""
    data = datasets.load("covtype")
    X, y = datasets.scaled(data.X, "float32"), np.where(data.y == 2, 1, -1)
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[:TEST_ROWS], order[TEST_ROWS : TEST_ROWS + n]
    return Split(X[train], y[train], X[test], y[test])


# The contenders.


def our_regression() -> Any:
    return KernelRidge(1.0, kernel=Nystroem(RBF(0.1), LANDMARKS), random_state=0)


def their_regression() -> Any:
    return sklearn.kernel_ridge.KernelRidge(alpha=1.0, kernel="rbf", gamma=0.1)


def our_classifier(n: int, m: int, landmarks: str) -> Any:
    kernel = Nystroem(RBF(GAMMA), m, landmarks=landmarks)
    # A tolerance as of scikit-learn's own iterative ridge solvers.
    return KernelRidgeClassifier(PENALTY * n, kernel=kernel, tol=1e-4, random_state=0)


def their_classifier(n: int, m: int) -> Any:
    features = sklearn.kernel_approximation.Nystroem(gamma=GAMMA, n_components=m, random_state=0)
    # No intercept on either side; the sign of a regression on -1 and 1, as gramian's classifier.
    ridge = sklearn.linear_model.Ridge(PENALTY * n, fit_intercept=False)
    return make_pipeline(features, ridge)


# Run in a fresh process: what is returned is the call whose memory is measured.


def regression_memory(which: str) -> Callable[[], str]:
    split = cadata()
    model = our_regression() if which == "gramian" else their_regression()
    return lambda: str(len(model.fit(split.X, split.y).predict(split.X[:10])))


def our_memory(n: int, m: int, landmarks: str, budget: str | None) -> Callable[[], str]:
    split = covtype(n)
    gramian.set_config(memory_budget=budget)
    return lambda: str(our_classifier(n, m, landmarks).fit(split.X, split.y).n_iter_)


def their_memory(n: int, m: int) -> Callable[[], str]:
    split = covtype(n)
    return lambda: str(len(their_classifier(n, m).fit(split.X, split.y)))


def against_the_exact_method(repeats: int) -> None:
    split = cadata()
    sides = {"gramian": our_regression, "scikit-learn": their_regression}
    times = interleaved(
        {name: lambda make=make: make().fit(split.X, split.y) for name, make in sides.items()},
        repeats,
    )
    lines = []
    for name, make in sides.items():
        predicted = make().fit(split.X, split.y).predict(split.X_test)
        error = float(np.sqrt(np.mean((predicted - split.y_test) ** 2)))
        grown = measure_growth(regression_memory, name).largest
        lines.append([name, error, times[name].median, grown])
    a, b = lines
    print(f"House prices (cadata), {EXACT_ROWS:,} rows of float64, RBF with gamma 0.1, alpha 1:")
    print(f"gramian with {LANDMARKS} landmarks, scikit-learn's KernelRidge. Error: root mean")
    print(f"square on {len(split.y_test):,} other rows, in standard deviations of the price.\n")
    rows = [[name, f"{e:.4f}", f"{s:.3f}", f"{g / 1e6:.0f}"] for name, e, s, g in lines]
    rows.append(["ratio", f"{a[1] / b[1]:.4f}", f"{b[2] / a[2]:.1f}", f"{b[3] / a[3]:.1f}"])
    print(table(["", "test error", "fit s", "memory MB"], rows), "\n")


def processor_seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return a fit's seconds of all cores, which other processes change less than the clock's."""
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def of_the_exact_matrix(n: int, sizes: tuple[int, ...]) -> None:
    """Factors against iterations and scikit-learn, and the search for alpha against one alpha."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 16))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    kernel, lines = Exact(RBF(0.03)), []
    for alpha in (1.0, 0.01):
        theirs = sklearn.kernel_ridge.KernelRidge(alpha=alpha, kernel="rbf", gamma=0.03)
        models = [KernelRidge(alpha, kernel), KernelRidge(alpha, kernel, solver="direct"), theirs]
        lines.append([f"{alpha:g}", *(f"{processor_seconds(m, X, y):.2f}" for m in models)])
    print(f"Exact ridge, {n:,} rows of 16 columns, float64. Seconds of all cores.\n")
    print(table(["alpha", "auto", "direct", "scikit-learn"], lines), "\n")
    lines = []
    for size in sizes:
        one, path = (KernelRidge(alpha, kernel) for alpha in (1.0, "loo"))
        a, b = (processor_seconds(m, X[:size], y[:size]) for m in (one, path))
        lines.append([size, f"{a:.2f}", f"{b:.2f}", f"{b / a:.1f}", len(path.path_.alphas)])
    print("The same with one alpha, and with one chosen by leaving out rows.\n")
    print(table(["rows", "alpha = 1", "loo", "ratio", "alphas tried"], lines), "\n")


def against_features_and_ridge(n: int, sizes: tuple[int, ...], repeats: int) -> None:
    split = covtype(n)

    def accuracy(model: Any) -> float:
        predicted = np.asarray(model.predict(split.X_test))
        return float(np.mean((predicted > 0) == (split.y_test > 0)))

    lines = []
    for m in sizes:
        sides: dict[str, Callable[[], Any]] = {
            "uniform": lambda m=m: our_classifier(n, m, "uniform"),
            "auto": lambda m=m: our_classifier(n, m, "auto"),
            "scikit-learn": lambda m=m: their_classifier(n, m),
        }
        times = interleaved(
            {name: lambda make=make: make().fit(split.X, split.y) for name, make in sides.items()},
            repeats,
        )
        theirs = times["scikit-learn"].median
        grown = measure_growth(their_memory, n, m).largest
        fitted = sides["scikit-learn"]().fit(split.X, split.y)
        line = ["scikit-learn", m, f"{accuracy(fitted):.4f}", f"{theirs:.2f}", "", ""]
        lines.append([*line, f"{grown / 1e6:.0f}", ""])
        for landmarks in ("uniform", "auto"):
            model = sides[landmarks]().fit(split.X, split.y)
            seconds = times[landmarks].median
            kept = measure_growth(our_memory, n, m, landmarks, None)
            small = measure_growth(our_memory, n, m, landmarks, SMALL_BUDGET)
            line = [f"gramian, {landmarks}", m, f"{accuracy(model):.4f}", f"{seconds:.2f}"]
            line += [f"{theirs / seconds:.1f}", model.n_iter_, f"{kept.largest / 1e6:.0f}"]
            lines.append([*line, f"{small.largest / 1e6:.0f} ({small.seconds:.1f} s)"])
    print(f"covtype, class 2 against the rest, {n:,} rows of float32, RBF with gamma {GAMMA:g},")
    print(f"alpha {PENALTY:g} n: KernelRidgeClassifier on Nyström features by the landmarks named,")
    print("scikit-learn's Nystroem and Ridge. Accuracy on 20,000 other rows. The last column: with")
    print(f"a memory budget of {SMALL_BUDGET}, and its seconds in that fresh process.\n")
    header = ["", "m", "accuracy", "fit s", "ratio", "iterations", "memory MB", "small budget MB"]
    print(table(header, lines))


def main(full: bool = False) -> None:
    repeats = 5 if full else 3
    print(f"Seconds: medians of {repeats} interleaved fits. Memory: growth of resident memory in")
    print("fresh processes.\n")
    against_the_exact_method(repeats)
    of_the_exact_matrix(EXACT_ROWS if full else 6000, (2000, 5000) if full else (2000, 3000))
    n = 561_012 if full else 60_000
    against_features_and_ridge(n, (1000, 2000) if full else (1000,), 3 if full else 1)


if __name__ == "__main__":
    command_line(main, __doc__)
