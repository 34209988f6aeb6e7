"""Kernel PCA against scikit-learn's: the leading components of 10,000 rows, and far more rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.decomposition

import gramian
from benchmarks.harness import command_line, interleaved, measure_growth, table
from gramian import RBF, KernelPCA, datasets

ROWS, COMPONENTS = 10_000, 20
NAMES = ("mnist", "covtype")
DTYPES = ("float32", "float64")
ASKED = 8.0  # the ratio of seconds, with an agreement above 0.99 and eigenvalues within 1 %
SMALL_BUDGET = "200MB"
TEST_ROWS = 10_000


def rows(name: str, n: int, dtype: str, test: bool = False) -> np.ndarray:
    """MNIST's grey values from 0 to 1; covtype's columns in units of standard deviations."""
    X = datasets.load(name).X
    order = np.random.default_rng(0).permutation(len(X))
    X = np.asarray(X).reshape(len(X), -1)
    if name == "mnist":
        X = X / 255.0
    else:
        deviations = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    return X[order[-TEST_ROWS:] if test else order[:n]].astype(dtype)


def mean_distance(name: str) -> float:
    """gamma: one over the mean squared distance of two rows."""
    return RBF("mean").fit(rows(name, ROWS, "float64")).gamma_


def ours(gamma: float, **options: Any) -> Any:
    return KernelPCA(COMPONENTS, kernel=RBF(gamma), random_state=0, **options)


def theirs(gamma: float) -> Any:
    return sklearn.decomposition.KernelPCA(
        COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver="arpack", random_state=0
    )


METHODS = {"gramian": ours, "scikit-learn": theirs}


# Run in a fresh process: what is returned is the call whose memory is measured.


def memory(method: str, name: str, dtype: str, gamma: float) -> Callable[[], str]:
    X = rows(name, ROWS, dtype)
    return lambda: str(METHODS[method](gamma).fit(X).eigenvalues_[0])


def on_many_rows(
    n: int, gamma: float, budget: str | None, way_back: bool, batches: int
) -> Callable[[], str]:
    """The share of the variance that is explained, and the error of the way back."""
    X, new = rows("covtype", n, "float32"), rows("covtype", n, "float32", test=True)
    gramian.set_config(memory_budget=budget)
    model = ours(gamma, fit_inverse_transform=way_back)

    def call() -> str:
        if batches == 1:
            model.fit(X)
        for batch in np.array_split(X, batches) if batches > 1 else ():
            model.partial_fit(batch)
        explained = f"{100 * float(np.sum(model.explained_variance_ratio_)):.2f}"
        if not way_back:
            return f"{explained},"
        missed = model.inverse_transform(model.transform(new)) - new
        return f"{explained},{100 * float(np.sum(missed**2) / np.sum(new**2)):.1f}"

    return call


def agreement(U: np.ndarray, V: np.ndarray) -> float:
    """The mean squared canonical correlation of the spaces that the columns span."""
    left, right = (np.linalg.qr(np.asarray(each, np.float64))[0] for each in (U, V))
    return float(np.sum((left.T @ right) ** 2) / U.shape[1])


def against_scikit_learn(repeats: int) -> None:
    lines = []
    for name in NAMES:
        gamma = mean_distance(name)
        exact = theirs(gamma).fit(rows(name, ROWS, "float64"))
        for dtype in DTYPES:
            X = rows(name, ROWS, dtype)
            sides = {
                side: lambda make=make, X=X, gamma=gamma: make(gamma).fit(X)
                for side, make in METHODS.items()
            }
            times = interleaved(sides, repeats)
            a, b = (times[side].median for side in METHODS)
            model = ours(gamma).fit(X)
            off = np.abs(model.eigenvalues_ - exact.eigenvalues_).max() / exact.eigenvalues_[0]
            grown = [measure_growth(memory, side, name, dtype, gamma).counted for side in METHODS]
            row = [name, dtype, len(model.approximation_.landmarks_)]
            row += [f"{a:.3f}", f"{b:.2f}", f"{b / a:.1f}", f"{ASKED:.0f}"]
            row += [f"{agreement(model.eigenvectors_, exact.eigenvectors_):.4f}"]
            row += [f"{100 * off:.2f}", *(f"{each / 1e6:,.0f}" for each in grown)]
            lines.append([*row, f"{grown[1] / grown[0]:.1f}"])
    print(f"{ROWS:,} rows, {COMPONENTS} components, RBF with gamma one over the mean squared")
    print("distance: KernelPCA's default and scikit-learn's with eigen_solver='arpack'. Seconds:")
    print(f"medians of {repeats} interleaved fits. Agreement: the mean squared canonical")
    print("correlation of the eigenvectors with scikit-learn's in float64, asked for 0.99; the")
    print("largest error of an eigenvalue in % of the largest one, asked for 1. Memory: growth of")
    print("resident memory in MB, in fresh processes.\n")
    header = ["data", "dtype", "m", "gramian s", "scikit-learn s", "ratio", "asked", "agreement"]
    header += ["eigenvalues off %", "gramian MB", "scikit-learn MB", "memory ratio"]
    print(table(header, lines), "\n")


def many_rows(n: int) -> None:
    gamma = mean_distance("covtype")
    lines = []
    for what, budget, way_back, batches in (
        ("fit", None, False, 1),
        ("fit", SMALL_BUDGET, False, 1),
        ("20 batches", SMALL_BUDGET, False, 20),
        ("fit and pre-images", SMALL_BUDGET, True, 1),
    ):
        grown = measure_growth(on_many_rows, n, gamma, budget, way_back, batches)
        explained, missed = grown.remark.split(",")
        line = [what, budget or "default", f"{grown.seconds:.1f}", f"{grown.largest / 1e6:,.0f}"]
        lines.append([*line, explained, missed])
    print(f"covtype, {n:,} rows of float32, {COMPONENTS} components. Memory: growth of resident")
    print("memory in fresh processes, beside the rows, with what libraries take when first used.")
    print("Explained: the share of the kernel's variance. Missed: the squared error of pre-images")
    print(f"of {TEST_ROWS:,} other rows, in % of their squared length.\n")
    header = ["", "memory budget", "seconds", "memory MB", "explained %", "missed %"]
    print(table(header, lines))


def main(full: bool = False) -> None:
    against_scikit_learn(7 if full else 3)
    many_rows(500_000 if full else 100_000)


if __name__ == "__main__":
    command_line(main, __doc__)
