"""Jobs on approximations: Nyström at equal size and at equal error, the embedding, MEKA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn.kernel_approximation

import gramian
from benchmarks.peers.data import TITLES, Scale, rows
from benchmarks.peers.job import OURS, Call, Contender, Goal, Inputs, Job, Quality, Work

THEIRS = "scikit-learn Nystroem"
SIZES = [("mnist", 245), ("mnist", 500), ("covtype", 300)]
AT_EQUAL_ERROR = [("mnist", 500), ("covtype", 300)]
EQUAL_SIZE_GOALS = {"float32": 1.6, "float64": 1.4}
# In seconds and in memory. Fewer landmarks make features of covtype half as wide, those of MNIST
# by a third: on MNIST products alone leave 4 and 3, and features alone 3.7 times less memory.
EQUAL_ERROR_GOALS = {
    ("mnist", "float32"): (2.0, 3.0),
    ("mnist", "float64"): (1.8, 2.9),
    ("covtype", "float32"): (3.5, 3.8),
    ("covtype", "float64"): (5.0, 3.8),
}
CHECKED = 3000  # rows between which errors are taken
SEEDS = range(3)


def jobs(scale: Scale) -> list[Job]:
    found = [_equal_size(name, m, dtype, scale) for name, m in SIZES for dtype in EQUAL_SIZE_GOALS]
    found += [
        _equal_error(name, m, dtype, scale)
        for name, m in AT_EQUAL_ERROR
        for dtype in EQUAL_SIZE_GOALS
    ]
    return [*found, _embedding(scale), _meka(scale)]


def ours(gamma: float, m: int, landmarks: Any, seed: int) -> gramian.Nystroem:
    return gramian.Nystroem(gramian.RBF(gamma), m, landmarks=landmarks, random_state=seed)


def theirs(gamma: float, m: int, seed: int) -> Any:
    return sklearn.kernel_approximation.Nystroem(gamma=gamma, n_components=m, random_state=seed)


def error_of(features: np.ndarray, K: np.ndarray) -> float:
    """The relative Frobenius error of the inner products of some features."""
    Z = features.astype(np.float64)
    return float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K))


def _checked(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """The rows on which errors are taken, and their exact matrix."""
    X = inputs["X"][inputs["sample"][:CHECKED]]
    return X, gramian.RBF(inputs["gamma"])(X.astype(np.float64))


def _error(inputs: Inputs) -> Callable[[np.ndarray], float]:
    _, K = _checked(inputs)
    return lambda Z: error_of(Z[inputs["sample"][:CHECKED]], K)


def _equal_size(name: str, m: int, dtype: str, scale: Scale) -> Job:
    count = scale.few(m)
    return Job(
        f"Nyström, {TITLES[name]}, m = {m}, {dtype}",
        rows(name, dtype, scale),
        (
            Contender(OURS, partial(_our_features_of_their_rows, count), "gramian"),
            Contender(THEIRS, partial(_their_features, count)),
        ),
        Quality("error", _error, slack=0.01),
        (
            Goal(THEIRS, EQUAL_SIZE_GOALS[dtype]),
            Goal(THEIRS, 2.0, of="memory"),
        ),
        partial(_features_work, 0),
        brief=(name, m, dtype) in (("mnist", 500, "float32"), ("covtype", 300, "float32")),
    )


def _our_features_of_their_rows(m: int, inputs: Inputs) -> Call:
    """With the landmarks that scikit-learn draws from the same seed."""
    X, gamma = inputs["X"], inputs["gamma"]

    def features(seed: int) -> np.ndarray:
        numbers = np.random.RandomState(seed).permutation(len(X))[:m]
        return ours(gamma, m, numbers, seed).fit_transform(X)

    return features


def _our_features(inputs: Inputs) -> Call:
    import sklearn.cluster  # noqa: F401  gramian would do so at its first use

    X, gamma, m = inputs["X"], inputs["gamma"], inputs["fewer"]
    return lambda seed: ours(gamma, m, "auto", seed).fit_transform(X)


def _their_features(m: int, inputs: Inputs) -> Call:
    X, gamma = inputs["X"], inputs["gamma"]
    return lambda seed: theirs(gamma, m, seed).fit_transform(X)


def _features_work(centres: int, inputs: Inputs, Z: np.ndarray) -> Work:
    """Kernel values and their product with a triangular matrix; ``centres``: rows for each."""
    X = inputs["X"]
    (n, d), m = X.shape, Z.shape[1]
    landmarks = 2 * (centres * m) * m * d * 4  # k-means on a sample
    flops = 2 * n * m * (d + 2) + n * m * m + m**3 / 3 + landmarks
    return Work(flops, X.nbytes + Z.nbytes, str(Z.dtype), n * m)


def _equal_error(name: str, m: int, dtype: str, scale: Scale) -> Job:
    m = scale.few(m)
    seconds, memory = EQUAL_ERROR_GOALS[name, dtype]
    return Job(
        f"Nyström at equal error, {TITLES[name]}, {dtype}",
        rows(name, dtype, scale),
        (
            Contender(OURS, _our_features, "gramian"),
            Contender(THEIRS, partial(_their_features, m)),
        ),
        Quality("error", _error, slack=0.02),  # m was chosen on the mean of some seeds
        (
            Goal(THEIRS, seconds),
            Goal(THEIRS, memory, of="memory"),
        ),
        partial(_features_work, 15),
        find=partial(_fewest, m),
        brief=name == "covtype" and dtype == "float32",
    )


def _fewest(m: int, inputs: Inputs) -> Inputs:
    """The fewest default landmarks, in steps of 5 %, with no more error than scikit-learn's m."""
    X, gamma = inputs["X"], inputs["gamma"]
    sample, K = _checked(inputs)

    def error(model: Callable[[int], Any]) -> float:
        return float(np.mean([error_of(model(s).fit(X).transform(sample), K) for s in SEEDS]))

    target = error(lambda seed: theirs(gamma, m, seed))
    steps = sorted({max(2, round(m * 0.95**i)) for i in range(60)})
    low, high = 0, len(steps) - 1  # the answer is between these; the error falls with m
    while low < high:
        middle = (low + high) // 2
        tried = steps[middle]
        if error(lambda seed, tried=tried: ours(gamma, tried, "auto", seed)) <= target:
            high = middle
        else:
            low = middle + 1
    return {"fewer": steps[low]}


def _embedding(scale: Scale) -> Job:
    limit, m = "its matrix products", scale.few(500)
    return Job(
        "embedding alone, MNIST, m = 500, float32",
        rows("mnist", "float32", scale),
        (
            Contender(OURS, partial(_transform, m), "gramian"),
            Contender(limit, partial(_products_alone, m), "numpy", is_limit=True),
        ),
        Quality("error", _error),
        (Goal(limit, 0.9),),
        partial(_features_work, 0),
    )


def _transform(m: int, inputs: Inputs) -> Call:
    X = inputs["X"]
    model = ours(inputs["gamma"], m, "uniform", 0).fit(X)
    return lambda _: model.transform(X)


def _products_alone(m: int, inputs: Inputs) -> Call:
    """X Lᵀ and C P, in BLAS's own threads, into memory that is there."""
    X = inputs["X"]
    right, P = np.ascontiguousarray(X[:m].T), np.ones((m, m), dtype=X.dtype)
    C, Z = (np.ones((len(X), m), dtype=X.dtype) for _ in range(2))

    def products(_: int) -> np.ndarray:
        np.matmul(X, right, out=C)
        return np.matmul(C, P, out=Z)

    return products


def _meka(scale: Scale) -> Job:
    m, rank = scale.few(550), scale.few(450)  # still a larger error than that of the blocks
    blocks = rank * 80 // 450
    return Job(
        "MEKA, covtype, rank 450, 80 blocks, float32",
        rows("covtype", "float32", scale),
        (
            Contender(OURS, partial(_our_blocks, rank, blocks), "gramian"),
            Contender(THEIRS, partial(_their_features, m)),
        ),
        Quality("error", _block_error, slack=0.0),
        (
            Goal(THEIRS, 6.0),
            Goal(THEIRS, 45.0, of="size"),
        ),
        _blocks_work,
        has_size=True,
        brief=True,
    )


def _our_blocks(rank: int, blocks: int, inputs: Inputs) -> Call:
    import sklearn.cluster  # noqa: F401

    X, kernel = inputs["X"], gramian.RBF(inputs["gamma"])

    def factors(seed: int) -> gramian.Factors:
        data = gramian.as_rows(X)
        model = gramian.MEKA(kernel, rank, n_blocks=blocks, random_state=seed).fit(data)
        return model.factor(data).persist()

    return factors


def _block_error(inputs: Inputs) -> Callable[[Any], float]:
    """The error of all rows, estimated on some: the diagonal weighs more among fewer rows."""
    numbers = inputs["sample"][:CHECKED]
    _, K = _checked(inputs)
    n = len(inputs["X"])

    def norm(M: np.ndarray) -> float:
        on = float((M.diagonal() ** 2).sum())
        return float(np.sqrt((float((M**2).sum()) - on) * (n - 1) / (len(M) - 1) + on))

    def error(result: Any) -> float:
        if isinstance(result, gramian.Factors):
            approximated = result.take(numbers).dense()
        else:
            Z = result[numbers].astype(np.float64)
            approximated = Z @ Z.T
        return norm(K - approximated) / norm(K)

    return error


def _blocks_work(inputs: Inputs, factors: gramian.Factors) -> Work:
    """The nearest centre of each row, its kernel values with its block's landmarks, its features.

    A block has three landmarks for each rank, and ten more.
    """
    X = inputs["X"]
    n, d = X.shape
    flops, values = 2 * n * d * len(factors.parts), 0
    for part in factors.parts:
        size, rank = part.shape
        values += size * (3 * rank + 10)
        flops += 2 * size * (3 * rank + 10) * (d + 2 + rank)
    moved = 2 * X.nbytes + factors.nbytes
    return Work(flops, moved, str(X.dtype), values)
