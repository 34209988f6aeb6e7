"""Jobs on kernel values: blocks of them, and the product of a block with a vector."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import gramian
from benchmarks.peers.data import Scale, points
from benchmarks.peers.job import OURS, Call, Contender, Goal, Inputs, Job, Quality, Work

DTYPES = ("float32", "float64")
INTO = "gramian, out="
# The largest difference from float64 that passes.
LIMITS = {"float32": 1e-4, "float64": 1e-10}
RBF_GOALS = {"float32": 2.3, "float64": 2.2}
WIDE_GOALS = {"float32": 1.3, "float64": 1.1}  # float64: the product alone leaves no more
LAPLACIAN_GOALS = {("float64", 16): 3.5}  # of 4.9 that the machine leaves; 6 for all others
ALONE = "its matrix product"
SOME = slice(None, None, 97)  # rows from all over the block, to compare


def jobs(scale: Scale) -> list[Job]:
    blocks = [_rbf(d, dtype, scale) for d in (4, 16, 54, 784) for dtype in DTYPES]
    blocks += [_laplacian(d, dtype, scale) for d in (16, 54, 784) for dtype in DTYPES]
    return [*blocks, _product(scale)]


def _rbf(d: int, dtype: str, scale: Scale) -> Job:
    goals = [Goal("scikit-learn", RBF_GOALS[dtype] if d <= 54 else WIDE_GOALS[dtype])]
    if d <= 54 and dtype == "float32":
        goals.append(Goal("scikit-learn", 4.0, by=INTO))
    return Job(
        f"RBF block 100,000 by 500, d = {d}, {dtype}",
        points(100_000, 500, d, dtype, scale),
        (
            Contender(OURS, partial(_ours, gramian.RBF), "gramian"),
            Contender(INTO, partial(_into, gramian.RBF), "gramian"),
            Contender("scikit-learn", partial(_theirs, rbf_kernel)),
            *([Contender(ALONE, _product_alone, "numpy", is_limit=True)] if d > 54 else []),
        ),
        _difference(rbf_kernel, dtype),
        tuple(goals),
        partial(_block_work, 2, 2),  # one product with two columns more, for the norms
        brief=d in (16, 784) and dtype == "float32",
    )


def _laplacian(d: int, dtype: str, scale: Scale) -> Job:
    return Job(
        f"Laplacian block 20,000 by 500, d = {d}, {dtype}",
        points(20_000, 500, d, dtype, scale),
        (
            Contender(OURS, partial(_ours, gramian.Laplacian), "gramian"),
            Contender("scikit-learn", partial(_theirs, laplacian_kernel)),
        ),
        _difference(laplacian_kernel, dtype),
        (Goal("scikit-learn", LAPLACIAN_GOALS.get((dtype, d), 6.0)),),
        partial(_block_work, 3, 0),  # no product: a difference, its size, a sum
        brief=d == 54 and dtype == "float32",
    )


def _ours(kernel: type, inputs: Inputs) -> Call:
    X, Y = inputs["X"], inputs["Y"]
    k = kernel(inputs["gamma"])
    k(X[:2000], Y)  # compiles what is to be compiled
    return lambda _: k(X, Y)


def _into(kernel: type, inputs: Inputs) -> Call:
    X, Y = inputs["X"], inputs["Y"]
    k, K = kernel(inputs["gamma"]), np.ones((len(X), len(Y)), dtype=X.dtype)
    return lambda _: k(X, Y, out=K)


def _product_alone(inputs: Inputs) -> Call:
    """X Yᵀ, in BLAS's own threads, into new memory."""
    X, right = inputs["X"], np.ascontiguousarray(inputs["Y"].T)
    return lambda _: np.matmul(X, right)


def _theirs(kernel: Callable[..., np.ndarray], inputs: Inputs) -> Call:
    X, Y, gamma = inputs["X"], inputs["Y"], inputs["gamma"]
    return lambda _: kernel(X, Y, gamma)


def _difference(kernel: Callable[..., np.ndarray], dtype: str) -> Quality:
    def prepare(inputs: Inputs) -> Callable[[np.ndarray], float]:
        X, Y = (inputs[name].astype(np.float64) for name in "XY")
        exact = kernel(X[SOME], Y, inputs["gamma"])
        return lambda K: float(np.abs(K[SOME] - exact).max())

    return Quality("difference", prepare, limit=LIMITS[dtype])


def _block_work(operations: int, further: int, inputs: Inputs, K: np.ndarray) -> Work:
    X, Y = inputs["X"], inputs["Y"]
    flops = operations * len(X) * len(Y) * (X.shape[1] + further)
    return Work(flops, X.nbytes + Y.nbytes + K.nbytes, str(K.dtype), K.size)


def _product(scale: Scale) -> Job:
    return Job(
        "kernel product 100,000 by 1,000, d = 54, float32",
        points(100_000, 1000, 54, "float32", scale),
        (
            Contender(OURS, _our_product, "gramian"),
            Contender("KeOps", _keops_product, "pykeops"),
        ),
        Quality("difference", _product_difference, limit=LIMITS["float32"]),
        (Goal("KeOps", 12.0),),  # of the 15 to 24 that products and exponentials leave
        _product_work,
        brief=True,
    )


def _vector(inputs: Inputs) -> np.ndarray:
    Y = inputs["Y"]
    return np.random.default_rng(2).random((len(Y), 1), dtype=Y.dtype)


def _our_product(inputs: Inputs) -> Call:
    X, Y, v, kernel = inputs["X"], inputs["Y"], _vector(inputs), gramian.RBF(inputs["gamma"])
    return lambda _: gramian.Gram(kernel, X, Y).matmul(v)


def _keops_product(inputs: Inputs) -> Call:
    from pykeops.numpy import LazyTensor

    Y, v, gamma = inputs["Y"], _vector(inputs), inputs["gamma"]

    def product(X: np.ndarray) -> Any:
        x, y = LazyTensor(X[:, None, :]), LazyTensor(Y[None, :, :])
        return (-gamma * ((x - y) ** 2).sum(-1)).exp() @ v

    product(inputs["X"][:10])  # compiles the formula
    return lambda _: product(inputs["X"])


def _product_difference(inputs: Inputs) -> Callable[[np.ndarray], float]:
    X, Y = (inputs[name].astype(np.float64) for name in "XY")
    exact = rbf_kernel(X[SOME], Y, inputs["gamma"]) @ _vector(inputs)
    return lambda product: float(np.abs(product[SOME] - exact).max() / np.abs(exact).max())


def _product_work(inputs: Inputs, product: np.ndarray) -> Work:
    X, Y = inputs["X"], inputs["Y"]
    flops = 2 * len(X) * len(Y) * (X.shape[1] + 2 + product.shape[1])
    moved = X.nbytes + Y.nbytes + product.nbytes
    return Work(flops, moved, str(X.dtype), len(X) * len(Y))
