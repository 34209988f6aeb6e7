"""MEKA with exact diagonal blocks: its error, and whether it stays positive semi-definite."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import table
from benchmarks.local.data import Options, sampled
from gramian import MEKA, RBF, Local, Nystroem

# Data, gammas: where the kernel is smooth, and where it is local.
SETS = {
    "covtype": (2.0, 10.0, 60.0),
    "avila": (0.1, 1.0),
    "cadata": (0.1, 1.0),
    "pendigits": (0.5, 4.0),
}
ROWS, BLOCKS, RANK = 1_500, 5, 100


def with_exact_blocks(K_: np.ndarray, K: np.ndarray, labels: np.ndarray) -> np.ndarray:
    same = labels[:, None] == labels
    return np.where(same, K, K_)


def line(name: str, gamma: float, method: str, K_: np.ndarray, K: np.ndarray) -> list[Any]:
    values = np.linalg.eigvalsh((K_ + K_.T) / 2)
    error = np.linalg.norm(K - K_) / np.linalg.norm(K)
    return [name, f"{gamma:g}", method, f"{error:.4f}", f"{values[0]:+.1e}", f"{values[-1]:.1f}"]


def measured(name: str, gamma: float) -> list[list[Any]]:
    X = sampled(name, 10_000).X[:ROWS].astype(np.float64)
    kernel = RBF(gamma)
    K = np.asarray(kernel(X))
    meka = MEKA(kernel, RANK, n_blocks=BLOCKS, random_state=0).fit(X)
    labels = np.asarray(meka.labels_)
    options: Any = {"partition": labels, "random_state": 0}
    m = max(round(meka.nbytes_ / (8 * ROWS)), 1)  # landmarks that take the memory of MEKA
    nystroem = Nystroem(kernel, m, random_state=0).fit(X)
    low_rank = np.asarray(meka(X))
    matrices = {
        "MEKA": low_rank,
        "MEKA, exact blocks": with_exact_blocks(low_rank, K, labels),
        f"Nyström, m = {m}": np.asarray(nystroem(X)),
        f"Local(Nyström, m = {m})": np.asarray(Local(nystroem, **options).fit(X)(X)),
        "Local(RBF)": np.asarray(Local(kernel, **options).fit(X)(X)),
    }
    return [line(name, gamma, method, K_, K) for method, K_ in matrices.items()]


def main(options: Options) -> None:
    lines = [
        each
        for name in options.only or SETS
        for gamma in SETS[name]
        for each in measured(name, gamma)
    ]
    print(f"{ROWS:,} rows, {BLOCKS} blocks by k-means, MEKA with rank {RANK} in all; as many")
    print(
        "landmarks as take the memory of MEKA. Error: relative, in the Frobenius norm. A negative"
    )
    print(
        "smallest eigenvalue beyond rounding means that the matrix is not positive semi-definite,"
    )
    print("and ridge with an alpha below it has no solution.\n")
    header = ["set", "gamma", "matrix", "error", "smallest eigenvalue", "largest"]
    print(table(header, lines))
