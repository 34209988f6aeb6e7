"""What the machine can do at most, all cores at work: matrix products, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

GEMM = 3000  # rows and columns
COPIED = 200_000_000  # bytes


def rates(repeats: int = 5) -> dict[str, float]:
    """Operations, or bytes, a second, in the fastest of some runs: nothing exceeds a limit."""
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores) as pool:
        tasks = {
            "GEMM float32": (2 * GEMM**3, _product("float32")),
            "GEMM float64": (2 * GEMM**3, _product("float64")),
            "copy": (2 * COPIED, _copy(pool, cores)),  # read, and written
            "fresh memory": (COPIED, _fresh(pool, cores)),
        }
        return {name: amount / _fastest(call, repeats) for name, (amount, call) in tasks.items()}


def best(*measured: dict[str, float]) -> dict[str, float]:
    """The best of several measurements."""
    return {name: max(each[name] for each in measured) for name in measured[0]}


def _fastest(call: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats + 1):  # the first pays for threads and memory
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _product(dtype: str) -> Callable[[], Any]:
    A, B, C = (np.ones((GEMM, GEMM), dtype=dtype) for _ in range(3))
    return lambda: np.matmul(A, B, out=C)


def _copy(pool: ThreadPoolExecutor, cores: int) -> Callable[[], Any]:
    sources, targets = (np.array_split(np.ones(COPIED // 8), cores) for _ in range(2))
    return lambda: list(pool.map(np.copyto, targets, sources))


def _fresh(pool: ThreadPoolExecutor, cores: int) -> Callable[[], Any]:
    """Memory that the process did not have before, written once."""

    def write() -> Any:
        parts = np.array_split(np.empty(COPIED // 8), cores)
        return list(pool.map(lambda part: part.fill(1.0), parts))

    return write
