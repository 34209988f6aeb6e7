"""Comparisons that the laws are written with; each raises an ``AssertionError``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

import gramian
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.kernels import base, tiles
from gramian.rows import arrays

LIBRARIES = ("array_api_strict", "torch")


def converter(library: str) -> Callable[[np.ndarray], Array]:
    """Return the function that converts NumPy arrays to a library."""
    return importlib.import_module(library).asarray


def close(law: str, actual: Array, expected: Array, tolerance: float) -> None:
    """Check that two arrays have the same shape and differ by at most ``tolerance``."""
    actual, expected = (np.asarray(array_ops.to_numpy(each)) for each in (actual, expected))
    assert actual.shape == expected.shape, f"{law}: shape {actual.shape}, not {expected.shape}"
    if actual.dtype.kind not in "fiub":
        assert (actual == expected).all(), law
        return
    difference = float(np.max(np.abs(actual.astype(float) - expected.astype(float)), initial=0.0))
    assert difference <= tolerance, f"{law}: differs by {difference:.1e}, allowed {tolerance:.1e}"


def all_close(
    law: str, actual: Mapping[str, Array], expected: Mapping[str, Array], tolerance: float
) -> None:
    """Check several arrays by name."""
    for name, array in expected.items():
        close(f"{name}: {law}", actual[name], array, tolerance)


def same_library(actual: Array, expected: Array) -> None:
    """Check that a result is an array of the library that came in."""
    assert type(actual) is type(expected), f"{type(expected)} in, {type(actual)} out"


def refuses(call: Callable[[], object], what: str) -> None:
    """Check that a call raises a ``ValueError``."""
    try:
        call()
    except ValueError:
        return
    raise AssertionError(f"{what}: expected a ValueError")


def failed_fit_changes_nothing(fitted: object, fit: Callable[[], object]) -> None:
    """Check that a fit to NaN is refused and leaves a fitted estimator as it was."""
    before = dict(vars(fitted))
    refuses(fit, "NaN")
    after = vars(fitted)
    assert set(after) == set(before), "a failed fit changes nothing"
    assert all(after[name] is value for name, value in before.items()), (
        "a failed fit changes nothing"
    )


def unchanged_by_blocks_and_threads(
    compute: Callable[[], Array | dict[str, Array]], tolerance: float
) -> None:
    """Check that a function returns the same array or arrays in other blocks and threads."""
    with gramian.config_context(n_threads=1):
        reference = _named(compute())
    with small_blocks():
        for threads in (1, 3):
            with gramian.config_context(n_threads=threads):
                law = f"small blocks in {threads} threads change nothing but rounding"
                all_close(law, _named(compute()), reference, tolerance)


def _named(result: Array | dict[str, Array]) -> dict[str, Array]:
    return result if isinstance(result, dict) else {"result": result}


@contextmanager
def small_blocks() -> Iterator[None]:
    """Cut even small examples into many blocks and tiles."""
    places: list[tuple[Any, str, int]] = [
        (arrays, "CACHE_BYTES", 1),
        (arrays, "LEAST_ROWS", 7),
        (tiles, "TILE_COLUMNS", 11),
        (base, "FINISHED", 100),
    ]
    before = [getattr(module, name) for module, name, _ in places]
    for module, name, value in places:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(places, before, strict=True):
            setattr(module, name, value)
