"""The laws that every kernel, sampler, approximation, learner and kind of rows must obey.

Each ``check_`` function raises an ``AssertionError`` that says which law is broken. The package's
own tests run them over all that it exports; a class of your own is tested the same way:

>>> from gramian import RBF
>>> from gramian.testing import check_kernel
>>> check_kernel(RBF(gamma="median"))
"""

from __future__ import annotations

import gc
import importlib
import inspect
import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

import gramian
from gramian.approximations import Approximation
from gramian.backend import array_ops
from gramian.backend.config import format_bytes
from gramian.backend.threads import one_blas_thread
from gramian.kernels import RBF, Kernel, Linear, Precomputed, tiles
from gramian.learners.base import KernelLearner
from gramian.matrices.gram import Gram
from gramian.matrices.normal_equations import inner
from gramian.rows import Rows, walks
from gramian.samplers import Sampler

__all__ = [
    "check_approximation",
    "check_kernel",
    "check_learner",
    "check_memory",
    "check_rows",
    "check_sampler",
    "example",
]

LIBRARIES = ("array_api_strict", "torch")


def _squared_products(x: Any, y: Any) -> Any:
    return (x @ y.T + 1.0) ** 2


# What stands for arguments without a default, so that any exported class can be made.
_ARGUMENTS = {
    "left": RBF(gamma=0.3),
    "right": Linear(),
    "kernel": RBF(gamma=0.3),
    "factor": 2.0,
    "function": _squared_products,
    "indices": [3, 1, 60, 7, 33, 11, 50, 21],
    "points": np.random.default_rng(0).standard_normal((8, 5)),
    "probabilities": np.full(200, 1 / 200),
}


def example(cls: type) -> Any:
    """An object of an exported class, made with its defaults."""
    required = [
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is parameter.empty
    ]
    return cls(**{name: _ARGUMENTS[name] for name in required})


def example_rows(n: int = 90, d: int = 5, *, positive: bool = False, seed: int = 0) -> np.ndarray:
    """Rows in three clouds, away from the origin."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.standard_normal((3, d))
    X = centres[np.arange(n) % 3] + 0.5 * rng.standard_normal((n, d))
    return np.abs(X) if positive else X


def check_kernel(kernel: Kernel, X: Any = None, *, library: str | None = None) -> None:
    """Check a kernel on rows X (by default, rows that suit it), or on objects that it takes.

    Its matrices are symmetric and positive semi-definite unless it says otherwise, their diagonal
    is ``diag``, every way to ask for entries gives the same, whatever the blocks and threads;
    float32 stays and is close; sparse rows give what dense ones do; its Maclaurin coefficients, if
    it has any, add up to it. With ``library``, instead: the named array library gives what NumPy
    does.
    """
    if X is None:
        X = example_rows(positive=not kernel.takes_negative)
        X = Linear()(X) if isinstance(kernel, Precomputed) else X
    objects = kernel.read(X).are_objects
    X = X if objects else np.asarray(X, dtype=np.float64)
    _check_parameters(kernel)
    kernel = clone(kernel).fit(X)
    K = kernel(X)
    size = float(np.abs(K).max())
    if library is not None:
        convert = _converter(library)
        theirs = clone(kernel).fit(convert(X))
        _same_library(theirs(convert(X)), convert(X))
        _close("NumPy and " + library, theirs(convert(X)), K, 1e-10 * size)
        V = np.random.default_rng(0).standard_normal((len(X), 3))
        product = Gram(theirs, convert(X)).matmul(convert(V))
        _close(f"matmul on {library}", product, K @ V, 1e-9 * size * len(X))
        return
    _close("symmetry", K, K.T, 0.0)
    _close("diag is the diagonal", kernel.diag(X), np.diagonal(K), 0.0)
    if kernel.psd:
        smallest = float(np.linalg.eigvalsh(K).min())
        assert smallest > -1e-10 * size * len(K), f"PSD: smallest eigenvalue is {smallest:.1e}"
    coefficients = kernel.maclaurin(512)
    if coefficients is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            series = np.polynomial.polynomial.polyval(Linear()(X), coefficients)
        _close("the Maclaurin series is the kernel", series, K, 1e-7 * size)
    _check_gram(kernel, X, K, 1e-11 * size * len(K))
    _check_blocks_and_threads(lambda: kernel(X), 1e-12 * size)
    _close("pickled", pickle.loads(pickle.dumps(kernel))(X), K, 0.0)
    if not objects:
        _check_kinds_of_numbers(kernel, X, K, size)
    if not isinstance(kernel, Precomputed):
        _close("blocks of K(X, Y)", kernel(X[:7], X[7:20]), K[:7, 7:20], 1e-11 * size)
    _close("k + k = 2 k", (kernel + kernel)(X), (kernel * 2.0)(X), 1e-12 * size)


def _check_kinds_of_numbers(kernel: Kernel, X: np.ndarray, K: np.ndarray, size: float) -> None:
    single = X.astype(np.float32)
    assert kernel(single).dtype == np.float32, "float32 rows give a float32 matrix"
    _close("float32 is close to float64", kernel(single), kernel(single.astype(float)), 1e-4 * size)
    if kernel.takes_sparse and not kernel.serial:
        _close("sparse rows", kernel(scipy.sparse.csr_array(X)), K, 1e-10 * size)
    elif not kernel.takes_sparse:
        _refuses(lambda: kernel(scipy.sparse.csr_array(X)), "sparse rows")


def check_sampler(sampler: Sampler, *, library: str | None = None) -> None:
    """Check a landmark sampler.

    It gives at most m landmarks, rows by their numbers where it says so, the same for the same
    seed whether the matrix comes from rows or is given, within n·m evaluations and some (unless it
    states more); many landmarks leave less error than few; m = n explains the matrix. With
    ``library``, instead: the named array library gives the landmarks that NumPy does.
    """
    X = example_rows(200)
    y = X[:, 0] + (np.arange(200) % 3)
    kernel = RBF(gamma=0.1)

    def select(m: int, gram: Gram, seed: int = 0) -> Any:
        return sampler.select(gram, m, np.random.default_rng(seed), y[: gram.shape[0]])

    reference = select(12, Gram(kernel, X))
    if library is not None:
        convert = _converter(library)
        theirs = select(12, Gram(kernel, convert(X)))
        _same_library(theirs.points, convert(X))
        _close(f"NumPy and {library}", theirs.points, reference.points, 1e-8)
        return
    n = len(X)
    assert 1 <= len(reference) <= 12, f"at most m landmarks; got {len(reference)}"
    _close("same seed, same landmarks", select(12, Gram(kernel, X)).points, reference.points, 0.0)
    if reference.indices is not None:
        _close("points are rows", reference.points, X[reference.indices], 0.0)
        gram = Gram("precomputed", kernel(X))
        _close("a given matrix", select(12, gram).indices, reference.indices, 0.0)
    if reference.probabilities is not None:
        p = reference.probabilities
        assert p.shape == (len(reference),), "one probability for each landmark"
        assert ((p > 0) & (p <= 1)).all(), "probabilities of what was drawn"
    counted = Gram(kernel, X)
    select(12, counted)
    most = sampler.most_evaluations(n, 12)
    assert counted.evaluations <= most, f"{counted.evaluations} evaluations; it states {most}"
    K = kernel(X)

    def left(m: int) -> float:
        runs = [select(m, Gram(kernel, X), seed) for seed in range(5)]
        return float(np.mean([_trace_left(kernel, X, K, run.points) for run in runs]))

    few, many = left(5), left(40)
    assert many < 0.7 * few, f"error falls with more landmarks: {few:.2g}, {many:.2g}"
    same = np.repeat(X[:4], 5, axis=0)
    repeated = select(12, Gram(kernel, same))
    _close("duplicates", _trace_left(kernel, same, kernel(same), repeated.points), 0.0, 1.0)


def _trace_left(kernel: Kernel, X: np.ndarray, K: np.ndarray, points: np.ndarray) -> float:
    C = kernel(X, points)
    return float(np.trace(K) - np.trace(C @ np.linalg.pinv(kernel(points), hermitian=True) @ C.T))


def check_approximation(approximation: Approximation, *, library: str | None = None) -> None:
    """Check an approximation of the kernel matrix.

    ``transform``, ``factor``, ``__call__`` and ``diag`` agree; K̃ is positive semi-definite, and
    below K where it says so; the same seed gives the same, whatever the blocks and threads; float32
    stays and is close; a fit that fails leaves the state before it. With ``library``, instead: the
    named array library gives what NumPy does.
    """
    approximation = clone(approximation).set_params(random_state=0)
    X = example_rows(120)
    y = X[:, 0] + (np.arange(120) % 3)
    new = example_rows(seed=1)[:20]
    fitted = clone(approximation).fit(X, y)
    K = fitted.exact_kernel_(X)
    approximate = fitted(X)
    size = float(np.abs(K).max())
    if library is not None:
        convert = _converter(library)
        theirs = clone(approximation).fit(convert(X), y)
        _same_library(theirs(convert(X)), convert(X))
        _close(f"NumPy and {library}", theirs(convert(X)), approximate, 1e-6 * size)
        _close(f"new rows on {library}", theirs.transform(convert(new)) @ theirs.transform(
            convert(X)).T, fitted(new, X), 1e-6 * size)  # fmt: skip
        return
    Z = fitted.transform(X)
    tolerance = 1e-9 * size * len(X)
    assert Z.shape == (len(X), fitted.n_components_), "as many features as n_components_"
    _close("K̃ = Z Zᵀ", approximate, Z @ Z.T, tolerance)
    _close("diag", fitted.diag(X), np.diagonal(approximate), tolerance)
    factors = fitted.factor(X)
    V = np.random.default_rng(0).standard_normal((len(X), 3))
    _close("Factors.matmul", factors.matmul(V), approximate @ V, 10 * tolerance)
    expanded = factors.coordinates(np.arange(len(X)))
    core = np.eye(factors.rank) if factors.core is None else factors.core.dense()
    _close("K̃ = Z S Zᵀ", expanded @ core @ expanded.T, approximate, tolerance)
    _close("inner", inner(factors), expanded.T @ expanded, 10 * tolerance)
    _close("Factors.rmatmul", factors.rmatmul(V), expanded.T @ V, 10 * tolerance)
    _close("Factors.dense", factors.dense(), approximate, tolerance)
    _close("Factors.columns", factors.columns([5, 3]), approximate[:, [5, 3]], tolerance)
    some = np.arange(0, len(X), 7)
    part = approximate[np.ix_(some, some)]
    _close("Factors.take", factors.take(some).dense(), part, tolerance)
    _close("kept factors", factors.persist().matmul(V), approximate @ V, 10 * tolerance)
    parts = sum(part.collect().nbytes for part in factors.parts)
    small = factors.parts.order_nbytes() + (0 if factors.core is None else factors.core.nbytes)
    assert fitted.nbytes_ == factors.nbytes == parts + small, "nbytes is what the factors take"
    _close("K̃(X, Y)", fitted(new, X), fitted.transform(new) @ Z.T, tolerance)
    if fitted.below:
        smallest = float(np.linalg.eigvalsh(K - approximate).min())
        assert smallest > -1e-7 * size * len(X), f"K̃ ≤ K: an eigenvalue of {smallest:.1e}"
    _close("same seed, same result", clone(approximation).fit(X, y)(X), approximate, 0.0)
    _check_blocks_and_threads(lambda: clone(approximation).fit(X, y)(X), 1e-8 * size)
    single = clone(approximation).fit(X.astype(np.float32), y)
    assert single.transform(new.astype(np.float32)).dtype == np.float32, "float32 stays"
    _close("float32 is close", single(X.astype(np.float32)), approximate, 2e-2 * size)
    names = list(fitted.get_feature_names_out())
    assert len(names) == fitted.n_components_, "a name for each feature"
    before = dict(vars(fitted))
    _refuses(lambda: fitted.fit(np.full_like(X, np.nan), y), "NaN")
    assert all(vars(fitted)[k] is v for k, v in before.items()), "a failed fit changes nothing"
    again = pickle.loads(pickle.dumps(fitted))
    _close("pickled", again.transform(new), fitted.transform(new), 0.0)


def check_rows(rows: Rows, expected: Any) -> None:
    """Check that rows give what the dense array ``expected`` says, by every way of reading them."""
    expected = np.asarray(expected)
    n, d = expected.shape
    xp = rows.xp
    assert rows.shape == (n, d), f"shape: {rows.shape} is not {(n, d)}"
    wanted = array_ops.float_dtype(expected)
    assert array_ops.eps(rows.dtype) == np.finfo(wanted).eps, f"dtype: {rows.dtype}"
    exact = expected.astype(wanted)
    tolerance = 100 * float(np.finfo(wanted).eps) * max(float(np.abs(exact).max()), 1.0) * n * d
    _close("collect", rows.collect(), exact, 0.0)
    order = np.random.default_rng(0).permutation(n)[: max(1, n // 2)]
    _close("take", rows.take(order), exact[order], 0.0)
    _close("persist", rows.persist().collect(), exact, 0.0)
    for numbers in (order, np.sort(order)):
        _close("choose", rows.choose(numbers).collect(), exact[numbers], 0.0)
    weights = array_ops.like(np.arange(n, dtype=float), rows.collect())

    def weighted(x: Any, w: Any, out: Any = None) -> Any:
        return array_ops.row_norms(x) * array_ops.astype(w, x.dtype)

    squares = (exact.astype(float) ** 2).sum(axis=1) * np.arange(n)
    for blocks in (nullcontext, _small_blocks):
        with blocks():
            _close("map", rows.map(weighted, weights), squares, tolerance * n)
            total = rows.sum(lambda x, w: xp.sum(weighted(x, w)), weights)
            _close("sum", total, squares.sum(), tolerance * n * n)
            late = rows.sum(lambda x, w: xp.sum(weighted(x, w)), weights, start=n // 3)
            _close("sum from a row on", late, squares[n // 3 :].sum(), tolerance * n * n)


def check_learner(learner: KernelLearner, *, library: str | None = None) -> None:
    """Check a learner on clouds of rows with a target.

    The same seed gives the same result, whatever the blocks and threads; float32 stays and is
    close; sparse rows give what dense ones do; a fit that fails leaves the state before it. With
    ``library``, instead: the named array library gives what NumPy does, and its own arrays.
    """
    learner = clone(learner)
    if "random_state" in learner.get_params():
        learner.set_params(random_state=0)
    X = example_rows()
    y = np.arange(len(X)) % 3
    new = example_rows(seed=1)[:20]

    def outputs(convert: Any = np.asarray) -> dict[str, Any]:
        fitted = clone(learner).fit(convert(X), y)
        names = ("predict", "transform", "decision_function")
        return {
            name: getattr(fitted, name)(convert(new)) for name in names if hasattr(fitted, name)
        }

    reference = outputs()
    assert reference, "a learner predicts or transforms"
    if library is not None:
        convert = _converter(library)
        for name, values in outputs(convert).items():
            _same_library(values, convert(X))
            _close(f"{name}: NumPy and {library}", values, reference[name], 1e-6)
        return
    _all_close("same seed, same result", outputs(), reference, 0.0)
    _check_blocks_and_threads(outputs, 1e-7)
    single = outputs(lambda a: np.asarray(a, dtype=np.float32))
    _all_close("float32 is close to float64", single, reference, 2e-2)
    for name, values in single.items():
        if reference[name].dtype == np.float64 and not _is_label(values):
            assert values.dtype == np.float32, f"{name}: float32 rows give float32"
    _all_close("sparse rows", outputs(scipy.sparse.csr_array), reference, 1e-6)
    fitted = clone(learner).fit(X, y)
    before = dict(vars(fitted))
    _refuses(lambda: fitted.fit(np.full_like(X, np.nan), y), "NaN")
    assert vars(fitted) == before or all(vars(fitted)[k] is v for k, v in before.items()), (
        "a fit that fails leaves the state before it"
    )
    again = pickle.loads(pickle.dumps(fitted))
    for name in reference:
        _close(f"{name}: pickled", getattr(again, name)(new), getattr(fitted, name)(new), 0.0)


@one_blas_thread()  # many small matrices
def check_memory(
    estimator: Approximation | KernelLearner,
    sizes: tuple[int, ...] = (500, 1500),
    budgets: tuple[str, ...] = ("1GB", "24MB"),
) -> None:
    """Check that ``estimate_memory`` of a learner or an approximation says what a fit takes.

    What NumPy's arrays grow by, at the peak of a fit, is at most a tenth and a megabyte more, and
    at least a quarter of it, but for a few megabytes. A fit whose estimate is within the memory
    budget is not refused, and one beyond it is. Every size is tried with the first budget, the
    largest with all of them.
    """
    if "random_state" in estimator.get_params():
        estimator = clone(estimator).set_params(random_state=0)
    d, law = 20, f"{type(estimator).__name__}.estimate_memory"
    cases = [(n, budgets[0]) for n in sizes] + [(max(sizes), budget) for budget in budgets[1:]]
    for n, budget in cases:
        X, y = _with_target(n, d)
        fresh = clone(estimator)
        with gramian.config_context(memory_budget=budget):
            need = fresh.estimate_memory(n, d)
            fits, most = need.fits(), 1.1 * need + 2**20
            try:
                taken = _growth(lambda fresh=fresh, X=X, y=y: fresh.fit(X, y))
                if taken > most:  # what a first fit imports is no part of it: look again
                    taken = _growth(lambda fresh=fresh, X=X, y=y: fresh.fit(X, y))
            except gramian.MemoryBudgetError as error:
                assert not fits, f"{law}({n}, {d}) = {need}, yet it is refused: {error}"
                continue
        said = f"{law}({n}, {d}) = {need} of {budget}; the fit took {format_bytes(taken)}"
        assert fits, f"not refused: {said}"
        assert taken <= most, f"too little: {said}"
        assert need <= 4 * taken + 2**23, f"too much: {said}"


def _with_target(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    return example_rows(n, d), np.arange(n) % 3


def _growth(call: Any) -> int:
    """The bytes of arrays and objects at the peak of a call, beyond those before it."""
    gc.collect()
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not running:
            tracemalloc.stop()


def _check_parameters(kernel: Kernel) -> None:
    params = kernel.get_params(deep=False)
    copy = clone(kernel)
    assert type(copy) is type(kernel), "clone keeps the class"
    assert repr(copy) == repr(kernel), "clone keeps the parameters"
    assert set(params) == set(inspect.signature(type(kernel)).parameters), "get_params"


def _check_gram(kernel: Kernel, X: np.ndarray, K: np.ndarray, tolerance: float) -> None:
    gram = Gram(kernel, X)
    n = len(K)
    some, others = np.arange(0, n, 7), np.arange(0, n, 5)
    V = np.random.default_rng(0).standard_normal((n, 3))
    _close("Gram.diag", gram.diag(), np.diagonal(K), 0.0)
    _close("Gram.columns", gram.columns(some), K[:, some], tolerance)
    _close("Gram.block", gram.block(some, others), K[np.ix_(some, others)], tolerance)
    _close("Gram.dense", gram.dense(), K, tolerance)
    _close("Gram.trace", gram.trace(), np.trace(K), tolerance)
    for blocks in (nullcontext, _small_blocks):
        with blocks():
            _close("Gram.matmul", gram.matmul(V), K @ V, 10 * tolerance)
            sides = Gram(kernel, X, kernel.points(gram.rows))
            _close("matmul of two sides", sides.matmul(V), sides.dense() @ V, 10 * tolerance)


def _check_blocks_and_threads(compute: Callable[[], Any], tolerance: float) -> None:
    """Check what a function computes, an array or several by name, in other blocks and threads."""
    with gramian.config_context(n_threads=1):
        reference = _named(compute())
    with _small_blocks():
        for threads in (1, 3):
            with gramian.config_context(n_threads=threads):
                law = f"small blocks in {threads} threads change nothing but rounding"
                _all_close(law, _named(compute()), reference, tolerance)


def _named(result: Any) -> dict[str, Any]:
    return result if isinstance(result, dict) else {"result": result}


@contextmanager
def _small_blocks() -> Iterator[None]:
    """Cut even small examples into many blocks and tiles."""
    places = [(walks, "CACHE_BYTES", 1), (walks, "LEAST_ROWS", 7)]
    places += [(tiles, "TILE_COLUMNS", 11)]
    before = [getattr(module, name) for module, name, _ in places]
    for module, name, value in places:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(places, before, strict=True):
            setattr(module, name, value)


def _converter(library: str) -> Any:
    return importlib.import_module(library).asarray


def _close(law: str, actual: Any, expected: Any, tolerance: float) -> None:
    actual, expected = (
        np.asarray(array_ops.to_numpy(actual)),
        np.asarray(array_ops.to_numpy(expected)),
    )
    assert actual.shape == expected.shape, f"{law}: shape {actual.shape}, not {expected.shape}"
    if actual.dtype.kind not in "fiub":
        assert (actual == expected).all(), law
        return
    difference = float(np.max(np.abs(actual.astype(float) - expected.astype(float)), initial=0.0))
    assert difference <= tolerance, f"{law}: differs by {difference:.1e}, allowed {tolerance:.1e}"


def _all_close(
    law: str, actual: dict[str, Any], expected: dict[str, Any], tolerance: float
) -> None:
    for name, values in expected.items():
        _close(f"{name}: {law}", actual[name], values, tolerance)


def _same_library(actual: Any, expected: Any) -> None:
    assert type(actual) is type(expected), f"{type(expected)} in, {type(actual)} out"


def _refuses(call: Any, what: str) -> None:
    try:
        call()
    except ValueError:
        return
    raise AssertionError(f"{what}: expected a ValueError")


def _is_label(values: Any) -> bool:
    return np.asarray(values).dtype.kind not in "f"
