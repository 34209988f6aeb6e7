"""Data sets in two parts, in float32: rows to learn from, and rows to test on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from gramian import datasets

OUT = Path(__file__).parents[2] / "out" / "benchmarks" / "local"  # what is measured, to be merged
TEST_SHARE = 0.2
# Every set at hand with 7,000 to 50,000 rows, and that many of larger ones; how columns are scaled.
SCALES = {
    "covtype": "minmax",
    "avila": "standard",
    "skin": "minmax",
    "ijcnn1": "none",
    "cod_rna": "standard",
    "pendigits": "minmax",
    "a9a": "none",
    "w8a": "none",
    "cadata": "standard",
    "cpusmall": "standard",
}
REGRESSION = ("cadata", "cpusmall")
MOST_ROWS = 50_000


class Options(NamedTuple):
    """What a part measures."""

    full: bool  # five splits, and up to 50,000 rows
    only: list[str]  # names of sets; none means all
    cpu: bool  # show CPU seconds
    splits: list[int]  # of covtype; none means all
    until: float = float("inf")  # time.monotonic() after which nothing more is begun

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until


class Split(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def divided(X: np.ndarray, y: np.ndarray, seed: int, share: float = TEST_SHARE) -> Split:
    order = np.random.default_rng(seed).permutation(len(X))
    count = round((1 - share) * len(X))
    train, test = order[:count], order[count:]
    return Split(X[train], y[train], X[test], y[test])


def sampled(name: str, most: int, seed: int = 0) -> Split:
    """At most so many rows of a set; targets of regression in standard deviations."""
    data = datasets.load(name)
    X, y = data.X, data.y
    if name != "ijcnn1" and data.X_test is not None and data.y_test is not None:
        X, y = np.concatenate((X, data.X_test)), np.concatenate((y, data.y_test))
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[: min(most, MOST_ROWS)])
    X, y = X[chosen], y[chosen]
    if SCALES[name] == "minmax":
        X = datasets.scaled(X, np.float32)
    elif SCALES[name] == "standard":
        X = StandardScaler().fit_transform(X.astype(np.float64))
    if name in REGRESSION:
        y = (y - y.mean()) / y.std()
    return divided(X.astype(np.float32), y, seed)


def covtype(seed: int, classes: int) -> Split:
    """All of covtype, columns in [0, 1]: class 2 against the rest, or all seven classes."""
    data = datasets.load("covtype")
    y = (data.y == 2).astype(int) if classes == 2 else data.y.astype(int)
    return divided(datasets.scaled(data.X, np.float32), y, seed)
