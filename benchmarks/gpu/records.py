"""Whole fits of kernel k-means and ridge on millions of rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

import gramian
from benchmarks.gpu.timing import seconds
from benchmarks.harness import table
from gramian import RBF, KernelKMeans, KernelRidge, Nystroem, datasets
from gramian.learners.kmeans import lloyd

IMAGES = 8_100_000


def deformed_digits(torch: Any, n: int) -> tuple[Any, np.ndarray]:
    """Deformed images on the device, as bytes, and the digits that they show."""
    data = datasets.load("mnist")
    X = torch.as_tensor(datasets.deformed(data.X.reshape(len(data.X), 28, 28), n))
    return X.cuda(), data.y[np.arange(n) % len(data.y)]


def pass_seconds(torch: Any, n: int, fit: Callable[[], Any]) -> float:
    """The median of a fit's passes over all n rows, but for the first, which also measures."""
    taken, one = [], lloyd.assign

    def timed(factors: Any, *arguments: Any) -> Any:
        torch.cuda.synchronize()
        start = time.perf_counter()
        told = one(factors, *arguments)
        torch.cuda.synchronize()
        if factors.shape[0] == n:
            taken.append(time.perf_counter() - start)
        return told

    with patch.object(lloyd, "assign", timed):
        fit()
    return float(np.median(taken[1:]))


def k_means(torch: Any, X: Any, digits: np.ndarray) -> None:
    gamma = 0.0048 / 255**2  # of the mean squared distance
    kernel = Nystroem(RBF(gamma), 400, landmarks="uniform", random_state=0)

    def fit(X: Any, half: bool, passes: int = 100, tol: float = 1e-6) -> KernelKMeans:
        model = KernelKMeans(
            10, kernel=kernel, n_init=1, max_iter=passes, tol=tol, half_precision=half,
            random_state=0,
        )  # fmt: skip
        return model.fit(X)

    lines = []
    for budget, half in ((None, False), (None, True), ("8GB", False)):
        fit(X[:200_000], half)  # compiles
        gramian.set_config(memory_budget=budget)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        embedding = seconds(torch, lambda half=half: kernel.fit(X).factor(X).persist(half=half), 3)
        one = pass_seconds(torch, len(X), partial(fit, X, half, 13, 0.0))
        torch.cuda.synchronize()
        start = time.perf_counter()
        model = fit(X, half)
        torch.cuda.synchronize()
        whole = time.perf_counter() - start
        peak = torch.cuda.max_memory_allocated() - before
        score = normalized_mutual_info_score(digits, model.labels_.cpu().numpy())
        kept = "half" if half else "float32"
        row = [budget or "default", kept, f"{embedding:.3f}", f"{1e3 * one:.1f}"]
        lines.append([*row, f"{whole:.2f}", model.n_iter_, f"{score:.3f}", f"{peak / 1e9:.1f}"])
        del model
    gramian.set_config(memory_budget=None)
    print(
        f"Kernel k-means of {len(X):,} deformed digits (bytes on the device), m = 400, k = 10, at"
    )
    print("most 100 passes. Features kept in float32 or half precision. Fit and embedding alone")
    print("(where they fit the budget, else the fit); one pass; the whole fit. Peak: of device")
    print("memory beside the data.\n")
    header = [
        "budget",
        "features",
        "embedding s",
        "ms a pass",
        "whole s",
        "passes",
        "NMI",
        "peak GB",
    ]
    print(table(header, lines), "\n")


def streaming(torch: Any, X: np.ndarray) -> None:
    """The same data in the host's memory."""
    kernel = Nystroem(RBF(0.0048 / 255**2), 400, landmarks="uniform", random_state=0)

    def fit(X: Any) -> KernelKMeans:
        return KernelKMeans(10, kernel=kernel, n_init=1, random_state=0).fit(X)

    there = torch.as_tensor(X).cuda()
    reference = fit(there).labels_.cpu().numpy()
    lines = [
        ["on the device", "default", f"{seconds(torch, partial(fit, there), 3):.2f}", "", "", ""]
    ]
    del there
    for budget in (None, "1GB"):
        with gramian.config_context(device="cuda", memory_budget=budget):
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            taken = seconds(torch, partial(fit, X), 3)
            model = fit(X)
            peak = torch.cuda.max_memory_allocated() - before
            predicting = seconds(torch, partial(model.predict, X), 3)
            same = float(np.mean(model.labels_ == reference))
        row = ["in NumPy", budget or "default", f"{taken:.2f}", f"{predicting:.2f}"]
        lines.append([*row, f"{100 * same:.2f}", f"{peak / 1e9:.2f}"])
    print(
        f"The same, {len(X):,} images, with device='cuda' and the data in the host's memory: moved"
    )
    print("once where half of the budget has room, else streamed in each walk over the rows. Equal")
    print("labels: with those of the fit on the device. Peak: of device memory, data included.\n")
    header = ["data", "budget", "fit s", "predict s", "equal labels %", "peak GB"]
    print(table(header, lines), "\n")


def rate(torch: Any, dtype: Any, precision: str) -> float:
    """Operations of a matrix product in a second."""
    torch.set_float32_matmul_precision(precision)
    A = torch.randn(8192, 8192, device="cuda", dtype=dtype)
    taken = seconds(torch, lambda: A @ A)
    torch.set_float32_matmul_precision("highest")
    return 2 * 8192**3 / taken


def ridge(torch: Any, n: int, d: int, m: int) -> None:
    torch.manual_seed(0)
    X = torch.randn(n + 20_000, d, device="cuda")
    directions = torch.randn(d, 8, device="cuda") / d**0.5
    y = torch.sin(X @ directions).sum(1) + 0.1 * torch.randn(len(X), device="cuda")
    kernel = Nystroem(RBF(0.2 / d), m, landmarks="uniform", random_state=0)
    model = KernelRidge(1e-7 * n, kernel=kernel, solver="iterative", tol=1e-3, random_state=0)
    model.fit(X[:50_000], y[:50_000])  # compiles
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.cuda.synchronize()
    start = time.perf_counter()
    kernel.fit(X[:n])
    torch.cuda.synchronize()
    landmarks = time.perf_counter() - start
    start = time.perf_counter()
    model.fit(X[:n], y[:n])
    torch.cuda.synchronize()
    taken = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() - before
    left = model.predict(X[n:]) - y[n:]
    error = float((left.square().mean() / y[n:].var()).sqrt())
    tf32 = rate(torch, torch.float32, "high")
    single, double = rate(torch, torch.float32, "highest"), rate(torch, torch.float64, "highest")
    # Three TF32 products for each of float32, and sums of 16 targets (a tile's least) in float64.
    products = (2 * model.n_iter_ + 1) * n * m * (3 * 2 * d / tf32 + 2 * 16 / double)
    least = products + 2 * m * 4 * m**2 / single + 4 * m**3 / double
    print(f"Kernel ridge, n = {n:,}, d = {d}, m = {m:,}: landmarks {landmarks:.1f} s, the fit on")
    print(f"them {taken:.1f} s, {model.n_iter_} iterations, error {error:.4f} of the target's")
    print("deviation on 20,000 other rows (the noise alone is 0.05), peak of device memory beside")
    print(f"the data {peak / 1e9:.1f} GB; n x m in float32 would take {4e-9 * n * m:.0f} GB.")
    print(f"At the rates of matrix products here ({tf32 / 1e12:.0f}, {single / 1e12:.0f} and")
    print(f"{double / 1e12:.0f} Tflop/s in TF32, float32 and float64) its products take at least")
    print(f"{least:.1f} s: {100 * least / taken:.0f} % of the time.")


def main(torch: Any, full: bool) -> None:
    X, digits = deformed_digits(torch, IMAGES if full else IMAGES // 10)
    k_means(torch, X, digits)
    some = X[: IMAGES // 4].cpu().numpy()
    del X
    streaming(torch, some)
    with gramian.config_context(memory_budget="60GB"):  # matrices of m x m take most of it
        ridge(torch, 5_000_000 if full else 500_000, 32, 20_000 if full else 5_000)
