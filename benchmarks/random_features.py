"""Random features: fit and transform against scikit-learn, and the error of each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn.kernel_approximation

import gramian
from benchmarks._data import rows
from benchmarks.harness import command_line, interleaved, table

# Data set, the rows that are taken, and the number of features.
CASES = [("covtype", 100_000, 500), ("mnist", 20_000, 1000)]
DTYPES = ("float32", "float64")

ERROR_SETS = ("cadata", "pendigits", "covtype", "mnist")
ERROR_SIZES = (128, 512, 2048)
FREQUENCIES = ("iid", "orthogonal", "halton", "sobol")


@dataclass(frozen=True)
class Pair:
    """The same features by both libraries, as functions of gamma and the number of features."""

    ours: Callable[[float, int], Any]
    theirs: Callable[[float, int], Any]


PAIRS = [
    Pair(
        lambda gamma, m: gramian.RandomFourier(gramian.RBF(gamma), m, random_state=0),
        lambda gamma, m: sklearn.kernel_approximation.RBFSampler(
            gamma=gamma, n_components=m, random_state=0
        ),
    ),
]


def main(full: bool = False) -> None:
    repeats = 15 if full else 5
    print("Fit and transform of all rows, at equal numbers of features. Seconds: medians of")
    print(f"{repeats} interleaved runs.\n")
    header = ["features", "data", "rows", "m", "dtype", "gramian s", "scikit-learn s", "ratio"]
    print(table([*header, "compared with"], speed(repeats)))
    n = 3000 if full else 1000
    print(f"\nRelative Frobenius error on {n:,} rows, float64, RBF with gamma 'median', means over")
    print("10 seeds; in brackets, as part of the error of independent frequencies.\n")
    print(table(["data", "columns", "m", *FREQUENCIES], errors(n)))


def speed(repeats: int) -> list[Sequence[Any]]:
    lines = []
    for pair in PAIRS:
        for name, n, m in CASES:
            for dtype in DTYPES:
                X = rows(name, dtype)[:n]
                gamma = gramian.RBF("median").fit(X).gamma_
                ours, theirs = pair.ours(gamma, m), pair.theirs(gamma, m)
                sides = {
                    "gramian": lambda X=X, model=ours: model.fit(X).transform(X),
                    "scikit-learn": lambda X=X, model=theirs: model.fit(X).transform(X),
                }
                times = interleaved(sides, repeats)
                a, b = times["gramian"].median, times["scikit-learn"].median
                names = type(ours).__name__, type(theirs).__name__
                line = [names[0], name, f"{n:,}", m, dtype, f"{a:.3f}", f"{b:.3f}", f"{b / a:.2f}"]
                lines.append([*line, names[1]])
    return lines


def errors(n: int, seeds: int = 10) -> list[Sequence[Any]]:
    lines = []
    for name in ERROR_SETS:
        X = rows(name, "float64")
        X = X[np.random.default_rng(0).choice(len(X), n, replace=False)]
        kernel = gramian.RBF("median").fit(X)
        K = kernel(X)

        def error(m: int, kind: str, X: Any = X, K: Any = K, gamma: float = kernel.gamma_) -> float:
            models = (
                gramian.RandomFourier(gramian.RBF(gamma), m, frequencies=kind, random_state=seed)
                for seed in range(seeds)
            )
            each = [np.linalg.norm(K - model.fit(X)(X)) for model in models]
            return float(np.mean(each) / np.linalg.norm(K))

        for m in ERROR_SIZES:
            found = [error(m, kind) for kind in FREQUENCIES]
            cells = [f"{e:.4f} ({e / found[0]:.2f})" for e in found[1:]]
            lines.append([name, X.shape[1], m, f"{found[0]:.4f}", *cells])
    return lines


if __name__ == "__main__":
    command_line(main, __doc__)
