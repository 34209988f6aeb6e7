"""Does a result depend on what it must not? Generated models, fitted to generated data."""

from __future__ import annotations

import pickle
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import gramian
from fuzz import limited
from fuzz.generated import Case, case
from gramian.rows import arrays

ATTEMPTS = 1700  # at scale 1: of three to five fits each


def run(scale: float, seed: int) -> list[limited.Failure]:
    """Compare fits that should agree."""
    outcomes, failures = limited.campaign(__name__, seed, range(int(ATTEMPTS * scale)))
    print(f"generated fits: {dict(outcomes)}")
    return failures


def results(model: Any, X: Any) -> dict[str, np.ndarray]:
    """What a fitted model says about rows, without what does not matter.

    That is the sign of a component, and the numbers that clusters have.
    """
    clusters = isinstance(model, gramian.KernelKMeans)
    found = {}
    for name in ("predict", "decision_function", "transform"):
        if hasattr(model, name):
            values = np.asarray(getattr(model, name)(X))
            if name == "transform":
                values = np.sort(np.abs(values), axis=1)
            elif clusters:  # numbered as they occur
                _, first, labels = np.unique(values, return_index=True, return_inverse=True)
                values = np.argsort(np.argsort(first))[labels]
            found[name] = values
    return found


def differences(law: str, first: Any, second: Any, tolerance: float) -> list[str]:
    """Return what differs by more than the tolerance, relative to the largest value."""
    found = []
    for name, values in first.items():
        other = second[name]
        if values.dtype.kind in "iub":  # of labels, a few may be in doubt
            wrong = float(np.mean(values != other))
            if wrong > (0.0 if tolerance == 0 else 0.05):
                found.append(f"{law}: {name} differs in {wrong:.0%} of the rows")
            continue
        finite = values[np.isfinite(values)]  # the distance to an empty cluster is infinite
        scale = max(float(np.abs(finite).max(initial=0)), 1e-3)
        apart = np.where(values == other, 0.0, values) - np.where(values == other, 0.0, other)
        wrong = float(np.abs(apart).max(initial=0)) / scale
        if not wrong <= tolerance:
            found.append(f"{law}: {name} differs by {wrong:.1e}")
    return found


def threads(one: Case, model: Any) -> tuple[Any, float]:
    with gramian.config_context(n_threads=5):
        return clone(model).fit(one.X, one.y), 0.0


def blocks(one: Case, model: Any) -> tuple[Any, float]:
    sizes = arrays.CACHE_BYTES, arrays.LEAST_ROWS
    arrays.CACHE_BYTES, arrays.LEAST_ROWS = 1024, 7
    try:
        return clone(model).fit(one.X, one.y), _close(one)
    finally:
        arrays.CACHE_BYTES, arrays.LEAST_ROWS = sizes


def budget(one: Case, model: Any) -> tuple[Any, float]:
    with gramian.config_context(memory_budget="20MB"):
        return clone(model).fit(one.X, one.y), _close(one)


def copies(one: Case, model: Any) -> tuple[Any, float]:
    return pickle.loads(pickle.dumps(clone(model).fit(one.X, one.y))), 0.0


def files(one: Case, model: Any) -> tuple[Any, float]:
    with tempfile.TemporaryDirectory() as folder:
        gramian.save(clone(model).fit(one.X, one.y), Path(folder) / "model")
        return gramian.load(Path(folder) / "model"), 0.0


def rows_of_a_file(one: Case, model: Any) -> tuple[Any, float]:
    path = Path(_folder().name) / "rows.npy"  # an exact model goes on reading it
    np.save(path, one.X)
    return clone(model).fit(gramian.open_rows(path), one.y), 0.0


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def parameters(one: Case, model: Any) -> tuple[Any, float]:
    """Parameters that are set after a fit change nothing until the next."""
    fitted = clone(model).fit(one.X, one.y)
    return fitted.set_params(kernel=gramian.Linear()), 0.0


def chunks(one: Case, model: Any) -> tuple[Any, float]:
    import dask
    import dask.array as da

    with dask.config.set(scheduler="synchronous"):
        rows = da.from_array(one.X, chunks=(max(len(one.X) // 3, 1), -1))
        fitted = clone(model).fit(rows, one.y)
    return fitted, _close(one)


def order(one: Case, model: Any) -> tuple[Any, float]:
    if not one.exact or isinstance(model, gramian.KernelKMeans):
        return copies(one, model)
    new = np.random.default_rng(0).permutation(len(one.X))
    return clone(model).fit(one.X[new], one.y[new]), _close(one)


def weights(one: Case, model: Any) -> tuple[Any, float]:
    """Compare a fit to weighted rows with one to repeated rows."""
    if not one.exact or not isinstance(model, gramian.KernelRidge) or model.alpha == "loo":
        return copies(one, model)
    if isinstance(model.kernel, gramian.RBF) and model.kernel.gamma == "median":
        return copies(one, model)
    twice = np.concatenate((one.X, one.X))
    repeated = clone(model).fit(twice, np.concatenate((one.y, one.y)))
    weighted = clone(model).fit(one.X, one.y, sample_weight=np.full(len(one.X), 2.0))
    wrong = differences("", results(repeated, one.X), results(weighted, one.X), _close(one))
    assert not wrong, f"weights and repeated rows{wrong[0]}"
    return clone(model).fit(one.X, one.y, sample_weight=np.ones(len(one.X))), _close(one)


def batches(one: Case, model: Any) -> tuple[Any, float]:
    """Compare ``partial_fit`` on an approximation that is fitted with ``fit``."""
    approximate = isinstance(model.kernel, gramian.Nystroem | gramian.RandomFourier)
    if not approximate or not isinstance(model, gramian.KernelRidge) or model.alpha == "loo":
        return copies(one, model)
    fixed = clone(model.kernel).fit(one.X)
    whole = gramian.KernelRidge(model.alpha, kernel=fixed).fit(one.X, one.y)
    parts = gramian.KernelRidge(model.alpha, kernel=fixed)
    for start in range(0, len(one.X), 20):
        parts.partial_fit(one.X[start : start + 20], one.y[start : start + 20])
    wrong = differences("", results(whole, one.X), results(parts, one.X), _close(one))
    assert not wrong, f"partial_fit and fit{wrong[0]}"
    return copies(one, model)


LAWS: tuple[Callable[[Case, Any], tuple[Any, float]], ...] = (
    threads, blocks, budget, copies, files, rows_of_a_file, parameters, chunks, order, weights,
    batches,
)  # fmt: skip


def _close(one: Case) -> float:
    return 1e-5 if one.X.dtype == np.float64 else 5e-2


def attempt(seed: int, number: int) -> str:
    pick = random.Random(f"laws {seed}/{number}")
    one = case(pick)
    try:
        first = results(clone(one.model).fit(one.X, one.y), one.X)
    except (ValueError, MemoryError) as error:
        return f"refused: {error}".replace("\n", " ")[:80]
    except Exception as error:
        return f"FAILED: {type(error).__name__}: {error}; {one}".replace("\n", " ")
    for law in pick.sample(LAWS, 2):
        try:
            model, tolerance = law(one, one.model)
            wrong = differences(law.__name__, first, results(model, one.X), tolerance)
        except Exception as error:
            wrong = [f"{law.__name__}: {type(error).__name__}: {error}"]
        if wrong:
            return f"FAILED: {wrong[0]}; {one}".replace("\n", " ")
    return "the same"


def main(arguments: list[str]) -> None:
    seed, first, last = map(int, arguments)
    warnings.simplefilter("ignore")
    for dtype in (np.float64, np.float32):  # compiles loops, outside the limits
        gramian.Laplacian(0.1)(np.ones((600, 5), dtype))
    limited.serve(lambda number: attempt(seed, number), first, last, seconds=60)


if __name__ == "__main__":
    main(sys.argv[1:])
