"""Resident memory of exact fits at 20,000 rows, where the kernel matrix would take 3.2 GB."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import sklearn.kernel_ridge
from sklearn.datasets import make_blobs

import gramian
from benchmarks.harness import ChildFailedError, command_line, measure_growth, table
from gramian import datasets

ROWS = 20_000
FEWER_ROWS = 5_000  # for scikit-learn, which holds the matrix three times over
GAMMA = 2.0


def sample(n: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Rows scaled to [0, 1], their classes, and where they come from."""
    try:
        data = datasets.load("covtype")
    except OSError:  # neither in the folder nor to be downloaded
        X, y = make_blobs(n, n_features=54, centers=7, random_state=0)
        return datasets.scaled(X), y, "Gaussian blobs, as covtype is not available"
    chosen = np.random.default_rng(0).choice(len(data.X), n, replace=False)
    return datasets.scaled(data.X[chosen]), data.y[chosen], "covtype"


# Each of these runs in a fresh process: it loads the data and returns the fit to be measured.


def kernel_kmeans(n: int) -> Callable[[], str]:
    X, _, source = sample(n)
    model = gramian.KernelKMeans(
        7, kernel=gramian.Exact(gramian.RBF(GAMMA)), n_init=1, random_state=0
    )
    return lambda: f"{source}; {model.fit(X).n_iter_} iterations"


def kernel_ridge(n: int) -> Callable[[], str]:
    X, y, source = sample(n)
    target = np.where(y == 2, 1.0, -1.0)
    model = gramian.KernelRidge(1.0, kernel=gramian.Exact(gramian.RBF(GAMMA)), random_state=0)
    return lambda: f"{source}; {model.fit(X, target).n_iter_} iterations"


def scikit_learn_ridge(n: int) -> Callable[[], str]:
    X, y, source = sample(n)
    target = np.where(y == 2, 1.0, -1.0)
    model = sklearn.kernel_ridge.KernelRidge(alpha=1.0, kernel="rbf", gamma=GAMMA)

    def fit() -> str:
        model.fit(X, target)
        return source

    return fit


def line(name: str, prepare: Callable[[int], Callable[[], str]], n: int) -> list[str]:
    """One line of the table."""
    matrix = 8 * n**2
    try:
        growth = measure_growth(prepare, n)
    except ChildFailedError as error:  # too little memory, or a fault in a library
        return [name, f"{n:,}", "-", "-", "-", f"{matrix / 1e6:,.0f}", "-", str(error)]
    sizes = (f"{size / 1e6:,.0f}" for size in (growth.sampled, growth.counted, matrix))
    ratio = f"{matrix / growth.largest:.1f}"
    return [name, f"{n:,}", f"{growth.seconds:.1f}", *sizes, ratio, growth.remark]


def main(full: bool = False) -> None:
    rows = [
        line("gramian KernelKMeans", kernel_kmeans, ROWS),
        line("gramian KernelRidge", kernel_ridge, ROWS),
        line("scikit-learn KernelRidge", scikit_learn_ridge, FEWER_ROWS),
    ]
    if full:
        rows.append(line("scikit-learn KernelRidge", scikit_learn_ridge, ROWS))
    print(f"Exact fits in float64, RBF with gamma {GAMMA:g}, each in a fresh process.")
    print("Growth: highest resident memory during the fit less that before it, in MB, from samples")
    print("every 5 ms and from the kernel's own count (VmHWM). Matrix: n x n in float64, in MB.")
    print("Ratio: matrix / the larger growth.\n")
    header = ["fit", "rows", "seconds", "sampled", "VmHWM", "matrix", "ratio", "data"]
    print(table(header, rows))
    if any(row[2] == "-" for row in rows if row[0].startswith("gramian")):
        sys.exit("A fit of gramian failed.")


if __name__ == "__main__":
    command_line(main, __doc__)
