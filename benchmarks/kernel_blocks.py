"""Blocks of kernel values, K(X, Y) into fresh memory, against scikit-learn."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import gramian
from benchmarks.harness import Timing, command_line, interleaved, table

POINTS = 500
SIDES = {
    "RBF": (gramian.RBF, rbf_kernel),
    "Laplacian": (gramian.Laplacian, laplacian_kernel),
}
CASES = [("RBF", 100_000, d) for d in (4, 16, 54, 784)]
CASES += [("Laplacian", 20_000, d) for d in (16, 54)]
LIMITS = {"float32": 1e-4, "float64": 1e-10}  # the largest difference that passes


def measure(
    kernel: str, n: int, d: int, dtype: str, repeats: int
) -> tuple[dict[str, Timing], float]:
    """Timings of both sides, and how far gramian is from scikit-learn in float64."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.dtype(dtype))
    Y = rng.standard_normal((POINTS, d), dtype=np.dtype(dtype))
    gamma = 1 / d
    ours, theirs = SIDES[kernel]
    some = slice(None, None, 97)  # rows from all over the block
    exact = theirs(X[some].astype(np.float64), Y.astype(np.float64), gamma)
    difference = float(np.abs(ours(gamma)(X, Y)[some] - exact).max())
    sides = {
        "gramian": lambda: ours(gamma)(X, Y),
        "scikit-learn": lambda: theirs(X, Y, gamma),
    }
    return interleaved(sides, repeats), difference


def main(full: bool = False) -> None:
    repeats = 21 if full else 7
    rows: list[list[Any]] = []
    wrong = []
    for kernel, n, d in CASES:
        for dtype, limit in LIMITS.items():
            times, difference = measure(kernel, n, d, dtype, repeats)
            ours, theirs = times["gramian"], times["scikit-learn"]
            ratio = f"{theirs.median / ours.median:.2f}"
            shown = [ours.milliseconds(), theirs.milliseconds(), ratio, f"{difference:.1e}"]
            rows.append([kernel, f"{n:,}", dtype, d, *shown])
            if not difference <= limit:
                wrong.append(f"{kernel} {dtype} d={d}: {difference:.1e} > {limit:g}")
    header = [
        "kernel",
        "rows",
        "dtype",
        "d",
        "gramian ms",
        "scikit-learn ms",
        "ratio",
        "difference",
    ]
    print(f"Rows against {POINTS} points, gamma = 1/d, all cores as both libraries come.")
    print(f"Milliseconds: median (quartiles) of {repeats} interleaved runs.")
    print("Ratio: scikit-learn / gramian. Difference: largest, from scikit-learn in float64.\n")
    print(table(header, rows))
    if wrong:
        sys.exit("The results differ: " + "; ".join(wrong))


if __name__ == "__main__":
    command_line(main, __doc__)
