"""Automatic landmarks against the better of k-means centres and pivots, in 126 cases.

Fourteen sets of rows, three widths of the kernel and three numbers of landmarks. The error is
``‖K - K̃‖ / ‖K‖`` in the Frobenius norm, in dense float64 matrices; its median over five seeds.
"""

from __future__ import annotations

import os
import warnings
from itertools import product

import numpy as np

from benchmarks.harness import command_line, table
from gramian import RBF, Gram, KMeansCentres, RobustCentres, RPCholesky, Sampler, datasets
from gramian.backend.threads import one_blas_thread

ROWS, SEEDS = 1200, 5
REAL = "abalone", "cadata", "covtype", "cpusmall", "ijcnn1", "mnist", "pendigits", "skin"
MADE = "normal", "normal, 20 columns", "far rows", "a far clump", "outliers", "heavy tails"
WIDTHS = 0.3, 1.0, 4.0  # gamma times the mean squared distance
COUNTS = 30, 80, 200
ALLOWED = 1.5


def rows(kind: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if kind in REAL:
        X = datasets.load(kind).X
        X = X[np.sort(rng.choice(len(X), ROWS, replace=False))]
        return datasets.scaled(X.reshape(ROWS, -1), "float64")
    X = rng.standard_normal((ROWS, 20 if "20" in kind else 4))
    if kind == "far rows":
        X[:15] = 30 * rng.standard_normal((15, 4))
    elif kind == "a far clump":
        X[:12] = 6 + 0.3 * rng.standard_normal((12, 4))
    elif kind == "outliers":
        X[:6] *= 8
    elif kind == "heavy tails":
        X = rng.standard_t(2, (ROWS, 4))
    return X


def error(kernel: RBF, X: np.ndarray, K: np.ndarray, sampler: Sampler, m: int) -> float:
    """The median error of a sampler's landmarks."""
    found = []
    for seed in range(SEEDS):
        points = sampler.select(Gram(kernel, X), m, np.random.default_rng(seed)).points
        C, (values, vectors) = kernel(X, points), np.linalg.eigh(kernel(points))
        kept = values > 1e-12 * values[-1]
        Z = C @ (vectors[:, kept] / np.sqrt(values[kept]))
        found.append(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))
    return float(np.median(found))


def main(full: bool = False) -> None:
    kinds = (*REAL, *MADE) if os.environ.get("GRAMIAN_DATA") else MADE
    lines, ratios = [], []
    for kind in kinds:
        X = rows(kind)
        apart = 2 * float(np.var(X, axis=0).sum())
        for width, m in product(WIDTHS, COUNTS):
            kernel = RBF(width / apart).fit(X)
            K = kernel(X)
            with warnings.catch_warnings(), one_blas_thread():
                warnings.simplefilter("ignore")
                auto, centres, pivots = (
                    error(kernel, X, K, sampler, m)
                    for sampler in (RobustCentres(), KMeansCentres(), RPCholesky())
                )
            ratios.append(auto / min(centres, pivots))
            cells = [kind, f"{width:g}", str(m), *(f"{e:.3g}" for e in (auto, centres, pivots))]
            lines.append([*cells, f"{ratios[-1]:.2f}"])
    above = sum(ratio > ALLOWED for ratio in ratios)
    print(f"{len(ratios)} cases of {ROWS:,} rows. Automatic landmarks have at most")
    print(f"{max(ratios):.2f} times the error of the better of k-means centres and pivots")
    print(f"(median {np.median(ratios):.2f}); {above} are above {ALLOWED}. Width: gamma times")
    print(f"the mean squared distance. Medians of {SEEDS} seeds.\n")
    header = ["rows", "width", "m", "automatic", "centres", "pivots", "of the better"]
    print(table(header, lines))


if __name__ == "__main__":
    command_line(main, __doc__)
