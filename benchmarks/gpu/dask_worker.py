"""Fits on dask whose worker process computes on the GPU, next to the same fits without dask."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import table
from gramian import RBF, KernelKMeans, KernelPCA, KernelRidge, Nystroem

D, CLUSTERS, COMPONENTS = 16, 10, 5


def made(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in clusters, and a smooth target with noise."""
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.standard_normal((CLUSTERS, D))
    X = centres[rng.integers(CLUSTERS, size=n)] + rng.standard_normal((n, D))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    return X.astype(np.float32), y


def landmarks(m: int) -> Nystroem:
    return Nystroem(RBF(0.02), m, landmarks="uniform", random_state=0)


def ridge(m: int, X: Any, y: Any) -> np.ndarray:
    model = KernelRidge(1.0, landmarks(m), solver="direct", random_state=0).fit(X, y)
    return numbers(model.predict(X))


def k_means(m: int, X: Any, y: Any) -> np.ndarray:
    return numbers(KernelKMeans(CLUSTERS, landmarks(m), random_state=0).fit(X).labels_)


def pca(m: int, X: Any, y: Any) -> np.ndarray:
    return numbers(KernelPCA(COMPONENTS, landmarks(m), random_state=0).fit(X).eigenvalues_)


def numbers(values: Any) -> np.ndarray:
    values = values.compute() if hasattr(values, "dask") else values
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values, dtype=np.float64)


def apart(found: np.ndarray, expected: np.ndarray) -> str:
    """The largest difference of numbers, relative to the largest of them; or unequal labels."""
    if np.array_equal(expected, expected.astype(int)):
        return f"{100 * np.mean(found != expected):.3f} % of the labels"
    return f"{np.max(np.abs(found - expected)) / np.max(np.abs(expected)):.1e}"


def seconds(call: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """The time of the second call, and its result."""
    call()
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def main(torch: Any, full: bool, device: str) -> None:
    try:
        import dask.array as da
        import distributed
    except ImportError as missing:
        print(f"{missing}: the part of dask is left out.\n")
        return
    from gramian.rows.dask.rows import DaskRows

    n, m, pieces = (2_000_000, 400, 8) if full else (20_000, 50, 4)
    X, y = made(n)
    lines = []
    with (
        distributed.LocalCluster(
            n_workers=1, processes=True, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        lazy, target = (da.from_array(a, chunks=(n // pieces, *a.shape[1:])) for a in (X, y))
        lazy, target = client.persist([lazy, target])
        on_worker = DaskRows(lazy, device=device)
        there = torch.as_tensor(X, device=device)
        for name, fit in (("ridge, and predict", ridge), ("k-means", k_means), ("PCA", pca)):
            taken, found = seconds(lambda fit=fit: fit(m, on_worker, target))
            alone, expected = seconds(lambda fit=fit: fit(m, there, y))
            line = [name, f"{taken:.2f}", f"{alone:.2f}", apart(found, expected)]
            lines.append(line)
            print(" | ".join(line), flush=True)
    print(
        f"\n{n:,} rows, {D} columns, {m} landmarks, in {pieces} chunks of dask arrays on one worker"
    )
    print(
        f"process that computes on {device}, and the same rows as a tensor on {device}. Seconds of"
    )
    print("the second call.\n")
    print(table(["fit", "dask s", "without s", "difference"], lines), "\n")
