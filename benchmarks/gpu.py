"""On a GPU: products with kernel matrices, and whole fits of kernel k-means and ridge."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

import gramian
from benchmarks.harness import command_line, table
from gramian import RBF, Gram, KernelKMeans, KernelRidge, Nystroem, datasets

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


def k_means(torch: Any, n: int) -> None:
    X, digits = deformed_digits(torch, n)
    gamma = 0.0048 / 255**2  # of the mean squared distance
    kernel = Nystroem(RBF(gamma), 400, landmarks="uniform", random_state=0)

    def fit(X: Any, passes: int = 100, tol: float = 1e-6) -> KernelKMeans:
        model = KernelKMeans(10, kernel=kernel, n_init=1, max_iter=passes, tol=tol, random_state=0)
        return model.fit(X)

    fit(X[:200_000])  # compiles
    lines = []
    for budget in (None, "8GB"):
        gramian.set_config(memory_budget=budget)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        embedding = seconds(torch, lambda: kernel.fit(X).factor(X).persist(), 3)
        few, many = (seconds(torch, partial(fit, X, p, 0.0), 1) for p in (3, 13))
        torch.cuda.synchronize()
        start = time.perf_counter()
        model = fit(X)
        torch.cuda.synchronize()
        whole = time.perf_counter() - start
        peak = torch.cuda.max_memory_allocated() - before
        score = normalized_mutual_info_score(digits, model.labels_.cpu().numpy())
        row = [budget or "default", f"{embedding:.3f}", f"{(many - few) * 100:.1f}"]
        lines.append([*row, f"{whole:.2f}", model.n_iter_, f"{score:.3f}", f"{peak / 1e9:.1f}"])
        del model
    gramian.set_config(memory_budget=None)
    print(
        f"Kernel k-means of {n:,} deformed digits (bytes on the device), m = 400, k = 10, at most"
    )
    print(
        "100 passes. Fit and embedding alone (where they fit the budget, else the fit); one pass;"
    )
    print("the whole fit. Peak: of device memory beside the data.\n")
    header = ["budget", "embedding s", "ms a pass", "whole s", "passes", "NMI", "peak GB"]
    print(table(header, lines), "\n")


def ridge(torch: Any, n: int, d: int, m: int) -> None:
    torch.manual_seed(0)
    X = torch.randn(n + 20_000, d, device="cuda")
    directions = torch.randn(d, 8, device="cuda") / d**0.5
    y = torch.sin(X @ directions).sum(1) + 0.1 * torch.randn(len(X), device="cuda")
    kernel = Nystroem(RBF(0.2 / d), m, landmarks="uniform", random_state=0)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    start = time.perf_counter()
    kernel.fit(X[:n])
    torch.cuda.synchronize()
    landmarks = time.perf_counter() - start
    model = KernelRidge(1e-7 * n, kernel=kernel, solver="iterative", tol=1e-3, random_state=0)
    start = time.perf_counter()
    model.fit(X[:n], y[:n])
    torch.cuda.synchronize()
    taken = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() - before
    left = model.predict(X[n:]) - y[n:]
    error = float((left.square().mean() / y[n:].var()).sqrt())
    print(f"Kernel ridge, n = {n:,}, d = {d}, m = {m:,}: landmarks {landmarks:.1f} s, the fit on")
    print(f"them {taken:.1f} s, {model.n_iter_} iterations, error {error:.4f} of the target's")
    print(f"deviation on 20,000 other rows, peak of device memory beside the data {peak / 1e9:.1f}")
    print(f"GB; n x m in float32 would take {4e-9 * n * m:.0f} GB.")


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
    k_means(torch, IMAGES if full else IMAGES // 10)
    with gramian.config_context(memory_budget="60GB"):  # matrices of m x m take most of it
        ridge(torch, 5_000_000 if full else 500_000, 32, 20_000 if full else 5_000)


if __name__ == "__main__":
    command_line(main, __doc__)
