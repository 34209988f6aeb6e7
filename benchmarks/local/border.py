"""Predictions where two blocks meet: how far they jump, and whether an average of two is better."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import table
from benchmarks.local.data import REGRESSION, Options, Split, sampled
from gramian import RBF, KernelRidge, Local, Nystroem

# Data, gamma, alpha.
SETS = {
    "covtype": (60.0, 0.03),
    "avila": (1.0, 0.03),
    "cadata": (0.25, 0.3),
    "pendigits": (4.0, 0.03),
    "ijcnn1": (4.0, 0.03),
    "cpusmall": (0.1, 0.03),
}
ROWS_A_BLOCK, LANDMARKS = 500, 300
POWERS = (1, 4)  # of inverse squared distances, as weights of the two blocks
NEAR = 0.25  # share of the test rows, those closest to a border


class Two(NamedTuple):
    """The two nearest blocks of each row, and the squared distances to their centres."""

    first: np.ndarray
    second: np.ndarray
    near: np.ndarray
    far: np.ndarray

    @property
    def closeness(self) -> np.ndarray:
        """1 on the border of two blocks, 0 in the centre of one."""
        return np.sqrt(self.near / self.far)

    def average(self, first: np.ndarray, second: np.ndarray, power: int) -> np.ndarray:
        """Of the values of both blocks: half of each on the border, the nearest in its centre."""
        weight = 1 / (1 + (self.near / self.far) ** power)[:, None]
        return weight * first + (1 - weight) * second


def two_nearest(X: np.ndarray, centres: np.ndarray) -> Two:
    d = (X.astype(float) ** 2).sum(1)[:, None] + (centres**2).sum(1) - 2 * X @ centres.T
    order = np.argpartition(d, 1, axis=1)[:, :2]
    values = np.maximum(np.take_along_axis(d, order, axis=1), 1e-12)
    turned = values[:, 0] > values[:, 1]
    order[turned], values[turned] = order[turned, ::-1], values[turned, ::-1]
    return Two(order[:, 0], order[:, 1], values[:, 0], values[:, 1])


def targets(name: str, y: np.ndarray) -> np.ndarray:
    """One column of -1 and 1 for each class; the values themselves of regression."""
    if name in REGRESSION:
        return y[:, None]
    return np.where(y[:, None] == np.unique(y), 1.0, -1.0)


def score(name: str, values: np.ndarray, Y: np.ndarray) -> float:
    if name in REGRESSION:
        return float(1 - ((values - Y) ** 2).sum() / ((Y - Y.mean()) ** 2).sum())
    return float(np.mean(values.argmax(axis=1) == Y.argmax(axis=1)))


def measured(name: str, split: Split, m: int) -> list[Any]:
    gamma, alpha = SETS[name]
    everything = targets(name, np.concatenate((split.y, split.y_test)))
    Y, wanted = everything[: len(split.y)], everything[len(split.y) :]
    kernel: Any = Nystroem(RBF(gamma), m, landmarks="uniform") if m else RBF(gamma)
    model = KernelRidge(alpha, Local(kernel, len(Y) // ROWS_A_BLOCK), random_state=0)
    model.fit(split.X, Y)
    approximation = model.approximation_
    assert isinstance(approximation, Local)
    function = approximation.expressed(model.dual_coef_.reshape(Y.shape))
    local = approximation._diagonal_of(approximation._groups)
    two = two_nearest(split.X_test, np.asarray(approximation.centres_))
    start = time.process_time()
    first = function.at(local, split.X_test, two.first)
    once = time.process_time() - start
    second = function.at(local, split.X_test, two.second)
    twice = time.process_time() - start
    averages = [two.average(first, second, power) for power in POWERS]
    near = two.closeness >= np.quantile(two.closeness, 1 - NEAR)
    jump = np.abs(first - second).mean(axis=1)
    found = [first, *averages]
    scores = [score(name, values, wanted) for values in found]
    scores += [score(name, values[near], wanted[near]) for values in found]
    jumps = [f"{jump[near].mean():.3f}", f"{jump[~near].mean():.3f}"]
    return [name, m, *jumps, *(f"{each:.4f}" for each in scores), f"{twice / once:.1f}"]


def main(options: Options) -> None:
    most = 50_000 if options.full else 10_000
    lines = []
    for name in options.only or SETS:
        split = sampled(name, most)
        lines += [measured(name, split, m) for m in (0, LANDMARKS)]
    print(f"Ridge on {ROWS_A_BLOCK} rows a block, with and without Nyström between them; at most")
    print(f"{most:,} rows, of them 80 % for training. Jump: mean of |f_b(x) - f_b'(x)| over test")
    print("rows x, for the nearest and the second nearest block; targets are -1 and 1, or have a")
    print(
        f"standard deviation of 1. Near: the {NEAR:.0%} of the rows closest to a border. Average:"
    )
    print("of both blocks, weighted by inverse squared distances to their centres, or by their")
    print(
        "fourth powers (sharp). Time: CPU seconds for values of both blocks, over those of one.\n"
    )
    header = ["set", "m", "jump, near", "others", "nearest", "average", "sharp"]
    print(table([*header, "near: nearest", "average ", "sharp ", "time"], lines))
