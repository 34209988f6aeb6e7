"""On a GPU: products with kernel matrices, and whole fits of kernel k-means and ridge."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

import gramian
from benchmarks.harness import command_line, table
from gramian import RBF, Gram, KernelKMeans, KernelRidge, Nystroem, datasets
from gramian.learners.kmeans import lloyd

ROWS, POINTS = 1_000_000, 10_000
# Columns, right-hand sides, and the ratios asked for as exact as float32, and in TF32.
PRODUCTS = [(16, 16, 6.0, 15.0), (64, 16, 4.0, 12.0), (64, 128, 1.9, 4.0)]
PRODUCTS += [(256, 16, 1.0, 1.0), (784, 16, 1.0, 1.0)]
IMAGES = 8_100_000


def seconds(torch: Any, call: Callable[[], Any], repeats: int = 5) -> float:
    """The median of some runs, after one that compiles."""
    call()
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
        del result
    return float(np.median(taken))


def unfused(torch: Any, X: Any, Y: Any, V: Any, gamma: float, chunk: int) -> Any:
    """The product as one writes it in torch: kernel values of a chunk of rows, then times V."""
    out = torch.empty((len(X), V.shape[1]), device=X.device)
    norms, scaled = -gamma * Y.square().sum(1), (2.0 * gamma * Y).T.contiguous()
    for start in range(0, len(X), chunk):
        x = X[start : start + chunk]
        values = torch.addmm(norms[None, :], x, scaled)
        values -= gamma * x.square().sum(1)[:, None]
        torch.matmul(values.clamp_(max=0).exp_(), V, out=out[start : start + chunk])
    return out


def product(torch: Any, d: int, t: int, asked: Sequence[float]) -> list[list[Any]]:
    torch.manual_seed(0)
    X, Y = (torch.randn(n, d, device="cuda") for n in (ROWS, POINTS))
    V = torch.randn(POINTS, t, device="cuda")
    gamma = 1.0 / d
    gram = Gram(RBF(gamma), X, Y)
    some = slice(0, 2000)
    K = torch.exp(-gamma * torch.cdist(X[some].double(), Y.double()).square())
    exact = K @ V.double()
    chunks = 10_000, 50_000
    theirs = min(seconds(torch, partial(unfused, torch, X, Y, V, gamma, c)) for c in chunks)
    lines = []
    for name, wanted in zip(("float32", "TF32"), asked, strict=True):
        torch.set_float32_matmul_precision("highest" if name == "float32" else "high")
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        ours = seconds(torch, partial(gram.matmul, V))
        peak = torch.cuda.max_memory_allocated() - before
        error = float((gram.matmul(V)[some] - exact).norm() / exact.norm())
        row = [d, t, name, f"{ours * 1e3:.1f}", f"{theirs * 1e3:.1f}"]
        row += [f"{theirs / ours:.1f}", f"{wanted:g}", f"{error:.1e}", f"{peak / 1e6:.0f}"]
        lines.append(row)
    torch.set_float32_matmul_precision("highest")
    return lines


def products(torch: Any) -> None:
    lines = [line for d, t, *asked in PRODUCTS for line in product(torch, d, t, asked)]
    print(f"K(X, Y) V of an RBF kernel, n = {ROWS:,}, m = {POINTS:,}, t right-hand sides, against")
    print("torch without fusion, by chunks of rows, in float32. Error: relative to float64. Peak:")
    print("of device memory beside the data.\n")
    header = ["d", "t", "precision", "gramian ms", "torch ms", "ratio", "asked", "error", "peak MB"]
    print(table(header, lines), "\n")


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


def main(full: bool = False) -> None:
    try:
        import torch
    except ImportError:
        print("torch is not installed.")
        return
    if not torch.cuda.is_available():
        print("There is no GPU.")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    products(torch)
    X, digits = deformed_digits(torch, IMAGES if full else IMAGES // 10)
    k_means(torch, X, digits)
    some = X[: IMAGES // 4].cpu().numpy()
    del X
    streaming(torch, some)
    with gramian.config_context(memory_budget="60GB"):  # matrices of m x m take most of it
        ridge(torch, 5_000_000 if full else 500_000, 32, 20_000 if full else 5_000)


if __name__ == "__main__":
    command_line(main, __doc__)
