"""Products with kernel matrices against torch without fusion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.gpu.timing import seconds
from benchmarks.harness import table
from gramian import RBF, Gram

ROWS, POINTS = 1_000_000, 10_000
# Columns, right-hand sides, and the ratios asked for as exact as float32, and in TF32.
PRODUCTS = [(16, 16, 6.0, 15.0), (64, 16, 4.0, 12.0), (64, 128, 1.9, 4.0)]
PRODUCTS += [(256, 16, 1.0, 1.0), (784, 16, 1.0, 1.0)]


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


def main(torch: Any) -> None:
    lines = [line for d, t, *asked in PRODUCTS for line in product(torch, d, t, asked)]
    print(f"K(X, Y) V of an RBF kernel, n = {ROWS:,}, m = {POINTS:,}, t right-hand sides, against")
    print("torch without fusion, by chunks of rows, in float32. Error: relative to float64. Peak:")
    print("of device memory beside the data.\n")
    header = ["d", "t", "precision", "gramian ms", "torch ms", "ratio", "asked", "error", "peak MB"]
    print(table(header, lines), "\n")
