"""The rows that jobs work on, in three sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import _data
from benchmarks.peers.job import Data, Inputs
from gramian import datasets

SAMPLE = 5000  # rows on which errors and objectives are taken
GAMMAS = {"mnist": 0.0048, "covtype": 2.0, "digits": 0.05}  # mnist: of the mean squared distance
TITLES = {"mnist": "MNIST", "covtype": "covtype", "digits": "digits"}


@dataclass(frozen=True)
class Scale:
    """How large the jobs are."""

    name: str
    part: float = 1.0  # of all rows
    most: int | None = None  # landmarks, points, components
    stand_in: str | None = None  # a data set in place of all others

    def rows(self, n: int) -> int:
        return min(n, max(int(self.part * n), 200))

    def few(self, m: int) -> int:
        return m if self.most is None else min(m, self.most)

    def data_set(self, name: str) -> str:
        return self.stand_in or name


SCALES = {
    scale.name: scale
    for scale in (
        Scale("full"),
        Scale("quick", part=0.1),
        Scale("tiny", part=0.002, most=40, stand_in="digits"),  # ships with scikit-learn
    )
}


def random_part(n: int, size: int) -> Any:
    """Numbers of ``size`` random rows of n; all of them in their order where that is n."""
    return np.random.default_rng(0).permutation(n)[:size] if size < n else slice(None)


def rows(name: str, dtype: str, scale: Scale, most: int | None = None) -> Data:
    """X, and the numbers of some rows to measure on; at most so many rows, if that is given."""
    name = scale.data_set(name)

    def make() -> Inputs:
        X = _data.rows(name, dtype)
        X = X[random_part(len(X), scale.rows(min(len(X), most or len(X))))]
        sample = np.random.default_rng(1).permutation(len(X))[:SAMPLE]
        return {"X": np.ascontiguousarray(X), "sample": np.sort(sample), "gamma": GAMMAS[name]}

    return Data(f"{name} {dtype} {most or 'all'}", make)


def points(n: int, m: int, d: int, dtype: str, scale: Scale) -> Data:
    """Normal rows X and points Y, and gamma = 1/d."""
    n, m = scale.rows(n), scale.few(m)

    def make() -> Inputs:
        rng = np.random.default_rng(0)
        X, Y = (rng.standard_normal((size, d), dtype=np.dtype(dtype)) for size in (n, m))
        return {"X": X, "Y": Y, "gamma": 1 / d}

    return Data(f"normal {n} {m} {d} {dtype}", make)


def two_classes(name: str, label: int, test: int, dtype: str, scale: Scale) -> Data:
    """One class against the rest as 1 and -1, with test rows."""
    name, test = scale.data_set(name), scale.rows(test)

    def make() -> Inputs:
        X, y = _data.rows(name, dtype), np.where(datasets.load(name).y == label, 1, -1)
        order = np.random.default_rng(0).permutation(len(X))[: test + scale.rows(len(X) - test)]
        inputs: Inputs = {"gamma": 5.0 if name == "covtype" else GAMMAS[name]}
        for suffix, part in (("_test", order[:test]), ("", order[test:])):
            inputs |= {f"X{suffix}": X[part], f"y{suffix}": y[part]}
        return inputs

    return Data(f"{name} {dtype} class {label}", make)
