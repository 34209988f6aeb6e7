"""What the machine can do at most, all cores at work: matrix products, exponentials, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.peers.job import Work

GEMM = 3000  # rows and columns
COPIED = 200_000_000  # bytes
TILE, TILES = 1 << 16, 64  # numbers whose exponentials are taken at once, in cache, and how often


def rates(repeats: int = 5) -> dict[str, float]:
    """Operations, or bytes, a second, in the fastest of some runs: nothing exceeds a limit."""
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores) as pool:
        tasks = {
            "GEMM float32": (2 * GEMM**3, _product("float32")),
            "GEMM float64": (2 * GEMM**3, _product("float64")),
            "exp float32": (cores * TILE * TILES, _exponentials(pool, cores, "float32")),
            "exp float64": (cores * TILE * TILES, _exponentials(pool, cores, "float64")),
            "copy": (2 * COPIED, _copy(pool, cores)),  # read, and written
        }
        return {name: amount / _fastest(call, repeats) for name, (amount, call) in tasks.items()}


def best(*measured: dict[str, float]) -> dict[str, float]:
    """The best of several measurements."""
    return {name: max(each[name] for each in measured) for name in measured[0]}


def least(work: Work, rates: dict[str, float]) -> tuple[float, str]:
    """Return the least seconds of a job, and whether most of them go into operations or bytes.

    A core computes a product or exponentials, one at a time; memory moves meanwhile. Passes over a
    result come after it.
    """
    products = rates[f"GEMM {work.dtype}"]
    computed = work.flops / products + work.values / rates[f"exp {work.dtype}"]
    moved = work.bytes / rates["copy"]
    steps = (
        (computed, moved),
        (work.pass_flops / products, work.pass_bytes / rates["copy"]),
    )
    operations = sum(first for first, second in steps if first >= second)
    total = sum(map(max, steps))
    return total, "operations" if operations >= total / 2 else "bytes"


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


def _exponentials(pool: ThreadPoolExecutor, cores: int, dtype: str) -> Callable[[], Any]:
    tiles = [np.linspace(-8.0, 0.0, TILE, dtype=dtype) for _ in range(cores)]
    results = [np.empty_like(tile) for tile in tiles]

    def often(tile: np.ndarray, out: np.ndarray) -> None:
        for _ in range(TILES):
            np.exp(tile, out=out)

    return lambda: list(pool.map(often, tiles, results))


def _copy(pool: ThreadPoolExecutor, cores: int) -> Callable[[], Any]:
    sources, targets = (np.array_split(np.ones(COPIED // 8), cores) for _ in range(2))
    return lambda: list(pool.map(np.copyto, targets, sources))
