"""Nyström features, fit and transform, against scikit-learn: at equal size, and at equal error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.kernel_approximation

import gramian
from benchmarks.harness import command_line, interleaved, measure_growth, table
from gramian import datasets

# Data set, gamma, numbers of landmarks. MNIST's gamma is that of the mean squared distance.
CASES = [("mnist", 0.0048, (245, 500, 1000)), ("covtype", 2.0, (300,))]
AT_EQUAL_ERROR = {"mnist": 500, "covtype": 300}
DTYPES = ("float32", "float64")


def rows(name: str, dtype: str) -> np.ndarray:
    X = datasets.load(name).X
    if name == "mnist":
        return np.asarray(X.reshape(len(X), -1) / X.max(), dtype=dtype)
    return datasets.scaled(X, dtype)


def ours(gamma: float, m: int, landmarks: str) -> Any:
    return gramian.Nystroem(gramian.RBF(gamma), m, landmarks=landmarks, random_state=0)


def theirs(gamma: float, m: int) -> Any:
    return sklearn.kernel_approximation.Nystroem(gamma=gamma, n_components=m, random_state=0)


# Run in a fresh process: what is returned is the call whose memory is measured.


def our_memory(name: str, dtype: str, gamma: float, m: int, landmarks: str) -> Callable[[], str]:
    X = rows(name, dtype)
    return lambda: str(ours(gamma, m, landmarks).fit_transform(X).shape)


def their_memory(name: str, dtype: str, gamma: float, m: int) -> Callable[[], str]:
    X = rows(name, dtype)
    return lambda: str(theirs(gamma, m).fit_transform(X).shape)


def error(features: Callable[[np.ndarray], np.ndarray], K: np.ndarray, sample: np.ndarray) -> float:
    Z = features(sample).astype(np.float64)
    return float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))


def smallest_m(X: np.ndarray, gamma: float, m: int, target: float, check: tuple[Any, Any]) -> int:
    """The fewest default landmarks, in steps of 5 %, whose error is not above the target."""
    while m > 10:
        fewer = int(m * 0.95)
        if error(ours(gamma, fewer, "auto").fit(X).transform, *check) > target:
            return m
        m = fewer
    return m


def main(full: bool = False) -> None:
    repeats = 7 if full else 3
    equal_size, equal_error = [], []
    for name, gamma, sizes in CASES:
        for dtype in DTYPES:
            X = rows(name, dtype)
            chosen = np.random.default_rng(1).choice(len(X), 3000, replace=False)
            sample = X[chosen]
            check = gramian.RBF(gamma)(sample.astype(np.float64)), sample
            for m in sizes:
                runs = {
                    "gramian": lambda X=X, m=m, g=gamma: ours(g, m, "uniform").fit_transform(X),
                    "scikit-learn": lambda X=X, m=m, g=gamma: theirs(g, m).fit_transform(X),
                }
                times = interleaved(runs, repeats)
                a, b = times["gramian"].median, times["scikit-learn"].median
                memory = (
                    measure_growth(our_memory, name, dtype, gamma, m, "uniform").counted,
                    measure_growth(their_memory, name, dtype, gamma, m).counted,
                )
                row = [f"{a:.2f}", f"{b:.2f}", f"{b / a:.2f}"]
                row += [f"{size / 1e6:,.0f}" for size in memory]
                equal_size.append([name, dtype, m, *row, f"{memory[0] / memory[1]:.2f}"])
                if m != AT_EQUAL_ERROR[name]:
                    continue
                target = error(theirs(gamma, m).fit(X).transform, *check)
                fewer = smallest_m(X, gamma, m, target, check)
                reached = error(ours(gamma, fewer, "auto").fit(X).transform, *check)
                runs["gramian"] = lambda X=X, m=fewer, g=gamma: ours(g, m, "auto").fit_transform(X)
                times = interleaved(runs, repeats)
                a, b = times["gramian"].median, times["scikit-learn"].median
                own = measure_growth(our_memory, name, dtype, gamma, fewer, "auto").counted
                row = [f"{reached:.4f}", f"{target:.4f}", f"{a:.2f}", f"{b:.2f}", f"{b / a:.2f}"]
                equal_error.append([name, dtype, fewer, m, *row, f"{own / memory[1]:.2f}"])
    print(f"Fit and transform of all rows. Seconds: medians of {repeats} interleaved runs. Memory:")
    print("growth of resident memory in MB, in fresh processes, the features included.\n")
    print("Equal number of landmarks m, uniform on both sides:\n")
    header = ["data", "dtype", "m", "gramian s", "scikit-learn s", "ratio", "gramian MB"]
    print(table([*header, "scikit-learn MB", "memory ratio"], equal_size))
    print("\nEqual relative Frobenius error (on 3,000 rows), gramian with its default landmarks:\n")
    header = ["data", "dtype", "gramian m", "scikit-learn m", "gramian error"]
    header += ["scikit-learn error", "gramian s", "scikit-learn s", "ratio", "memory ratio"]
    print(table(header, equal_error))


if __name__ == "__main__":
    command_line(main, __doc__)
