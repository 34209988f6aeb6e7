"""How the total rank is divided between blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import scipy.linalg

from gramian.approximations.blocks.basis import in_float64
from gramian.backend import array_ops
from gramian.backend.threads import side_by_side
from gramian.kernels import tiles
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows

Result = TypeVar("Result")
LEAST_ORDER = 500  # of matrices whose decompositions threads share


def choose_ranks(
    rule: str, grams: list[Gram], sizes: np.ndarray, total: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the rank of each block, shape (blocks,), by a rule of ``BKA.ranks``."""
    if rule == "equal":
        return in_proportion(np.ones(len(sizes)), sizes, total)
    if rule == "size":
        return in_proportion(sizes, sizes, total)
    sample = sampled_rows(total, len(sizes))

    def spectrum(i: int, rng: np.random.Generator) -> np.ndarray:
        n = int(sizes[i])
        rows = rng.choice(n, size=min(n, sample), replace=False)
        points = in_float64(grams[i].rows.take(np.sort(rows)))
        K = tiles.dense(grams[i].kernel, ArrayRows(points))
        grams[i].evaluations += K.size
        values = scipy.linalg.eigvalsh(K, check_finite=False)[::-1]
        return np.maximum(values, 0.0) * (n / len(rows))

    return ranks_by_spectrum(each_block(spectrum, grams, rng, sample), sizes, total)


def sampled_rows(total: int, count: int) -> int:
    """Return how many rows of each of ``count`` blocks the spectrum is estimated from."""
    return max(4 * total // count, 100)


def each_block(
    function: Callable[[int, np.random.Generator], Result],
    grams: list[Gram],
    rng: np.random.Generator,
    order: int,
) -> list[Result]:
    """Call ``function(i, generator)`` for each block, each with its own generator.

    ``order`` is that of the matrices that it decomposes. If it is large, threads share the blocks.
    Many small calls would wait for the interpreter in threads.
    """
    generators = rng.spawn(len(grams))
    serial = order < LEAST_ORDER or grams[0].kernel.serial
    serial = serial or array_ops.is_foreign(grams[0].rows.place.reference)
    blocks = range(len(grams))
    return side_by_side(lambda i: function(i, generators[i]), blocks, "blocks", serial=serial)


def ranks_by_spectrum(spectra: list[np.ndarray], sizes: np.ndarray, total: int) -> np.ndarray:
    """Give the total rank to the largest eigenvalues of all blocks together, at least 1 to each.

    ``spectra`` has the falling eigenvalues of each block, ``sizes`` (blocks,) their numbers of
    rows. Returns the ranks, shape (blocks,).
    """
    pool = np.concatenate([values[1:] for values in spectra])
    owner = np.repeat(np.arange(len(sizes)), [len(values) - 1 for values in spectra])
    chosen = owner[np.argsort(-pool, kind="stable")[: total - len(sizes)]]
    ranks = 1 + np.bincount(chosen, minlength=len(sizes))
    # If the sampled spectra are too short, the rest goes to blocks that have rows left.
    return ranks + in_proportion(sizes, sizes - ranks, total - int(ranks.sum()), least=0)


def in_proportion(
    weights: np.ndarray, most: np.ndarray, total: int, *, least: int = 1
) -> np.ndarray:
    """Return integers in proportion to weights, between ``least`` and ``most``, with this total.

    ``weights``, ``most`` and the result have shape (blocks,).
    """
    total = min(total, int(most.sum()))
    low, high = 0.0, float(total + 1) * len(weights) / weights[weights > 0].min()
    for _ in range(100):  # the factor at which the clipped shares have the total
        middle = (low + high) / 2
        shares = np.clip(middle * weights, least, most)
        low, high = (middle, high) if shares.sum() < total else (low, middle)
    whole = np.floor(shares).astype(int)
    rest = np.argsort(-(shares - whole) * (whole < most), kind="stable")
    whole[rest[: max(total - int(whole.sum()), 0)]] += 1
    return whole
