"""How far are results from those in extended precision, of small dense cases?"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gramian
from fuzz import limited

ATTEMPTS = 600  # at scale 1
LONG = np.longdouble
# How close results must be, relative to the largest: of learners, and of kernel values.
CLOSE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}
SMALL = 1e-4
CLOSE_VALUES = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 1e-5}


def run(scale: float, seed: int) -> list[limited.Failure]:
    """Compare kernels, ridge, PCA and k-means with the reference."""
    outcomes, failures = limited.campaign(__name__, seed, range(int(ATTEMPTS * scale)))
    print(f"numerics: {dict(outcomes)}")
    return failures


# The reference: plain formulas in extended precision.


def squares(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return ((X[:, None] - Y) ** 2).sum(axis=2)


def distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.abs(X[:, None] - Y).sum(axis=2)


Reference = Callable[[np.ndarray, np.ndarray], np.ndarray]
KERNELS: list[tuple[Any, Reference]] = [
    (gramian.RBF(0.3), lambda X, Y: np.exp(-LONG(0.3) * squares(X, Y))),
    (gramian.Laplacian(0.2), lambda X, Y: np.exp(-LONG(0.2) * distances(X, Y))),
    (gramian.Exponential(bandwidth=2.0), lambda X, Y: np.exp(-np.sqrt(squares(X, Y)) / 2)),
    (gramian.Cauchy(bandwidth=2.0), lambda X, Y: 1 / (1 + squares(X, Y) / 8)),
    (gramian.Polynomial(degree=3, gamma=0.1), lambda X, Y: (LONG(0.1) * (X @ Y.T) + 1) ** 3),
    (gramian.Linear(), lambda X, Y: X @ Y.T),
]


def cholesky(A: np.ndarray) -> np.ndarray:
    """The lower factor, NaN where there is none. LAPACK has no extended precision."""
    L = np.zeros_like(A)
    for j in range(len(A)):
        rest = A[j, j] - (L[j, :j] ** 2).sum()
        L[j, j] = np.sqrt(rest) if rest > 0 else LONG("nan")
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


def solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    L = cholesky(A)
    x = np.array(b, dtype=LONG)
    for j in range(len(A)):
        x[j] = (x[j] - L[j, :j] @ x[:j]) / L[j, j]
    for j in reversed(range(len(A))):
        x[j] = (x[j] - L[j + 1 :, j] @ x[j + 1 :]) / L[j, j]
    return x


def largest(A: np.ndarray) -> Any:
    """The largest eigenvalue: the Rayleigh quotient of LAPACK's vector, whose error is squared."""
    if not np.isfinite(A).all():
        return LONG("nan")
    vector = np.linalg.eigh(A.astype(np.float64))[1][:, -1].astype(LONG)
    return vector @ A @ vector / (vector @ vector)


# What is compared. Each returns what gramian says, and a function that gives the reference. An
# error counts relative to the largest result, or what is given with it: the targets of ridge, whose
# size is 1, and a small part of what the variance and the objective are differences of.

Wanted = Callable[[Reference, np.ndarray], tuple[Any, Any]]  # a result, and what is large beside it
Compared = tuple[Any, Wanted]


def kernel(made: Any, X: np.ndarray, alpha: float) -> Compared:
    return made(X, X), lambda k, X: (k(X, X), 0)


def targets(X: np.ndarray) -> np.ndarray:
    return np.sin(np.arange(len(X)))


def some(X: np.ndarray) -> np.ndarray:
    """Landmarks, at most as many as a linear kernel has dimensions."""
    return X[: min(X.shape[1], 6)]


def nystroem(made: Any, X: np.ndarray) -> gramian.Nystroem:
    return gramian.Nystroem(made, len(some(X)), landmarks=some(X))


def ridge(made: Any, X: np.ndarray, alpha: float) -> Compared:
    def wanted(k: Reference, X: np.ndarray) -> tuple[Any, Any]:
        K = k(X, X)
        return K @ solve(K + alpha * np.eye(len(K), dtype=LONG), targets(X)), 1

    return gramian.KernelRidge(alpha, made, fit_intercept=False).fit(X, targets(X)).predict(
        X
    ), wanted


def nystroem_ridge(made: Any, X: np.ndarray, alpha: float) -> Compared:
    def wanted(k: Reference, X: np.ndarray) -> tuple[Any, Any]:
        C, W = k(X, some(X)), k(some(X), some(X))
        return C @ solve(C.T @ C + alpha * W, C.T @ targets(X)), 1

    model = gramian.KernelRidge(alpha, nystroem(made, X), fit_intercept=False)
    return model.fit(X, targets(X)).predict(X), wanted


def pca(made: Any, X: np.ndarray, alpha: float) -> Compared:
    def wanted(k: Reference, X: np.ndarray) -> tuple[Any, Any]:
        K = k(X, X)
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        return largest(centred), SMALL * np.trace(K)

    return gramian.KernelPCA(1, made, random_state=0).fit(X).eigenvalues_, wanted


def nystroem_pca(made: Any, X: np.ndarray, alpha: float) -> Compared:
    def wanted(k: Reference, X: np.ndarray) -> tuple[Any, Any]:
        Z, L = k(X, some(X)), cholesky(k(some(X), some(X)))
        for j in range(len(L)):  # Z L⁻ᵀ
            Z[:, j] = (Z[:, j] - Z[:, :j] @ L[j, :j]) / L[j, j]
        centred = Z - Z.mean(axis=0)
        return largest(centred.T @ centred), SMALL * (Z**2).sum()

    return gramian.KernelPCA(1, nystroem(made, X)).fit(X).eigenvalues_, wanted


def kmeans(made: Any, X: np.ndarray, alpha: float) -> Compared:
    model = gramian.KernelKMeans(3, made, n_init=1, random_state=0).fit(X)
    clusters = [np.flatnonzero(model.labels_ == each) for each in np.unique(model.labels_)]

    def wanted(k: Reference, X: np.ndarray) -> tuple[Any, Any]:
        K = k(X, X)
        inside = sum(K[np.ix_(rows, rows)].sum() / len(rows) for rows in clusters)
        return np.trace(K) - inside, SMALL * np.trace(K)

    return model.inertia_, wanted


KINDS = (kernel, kernel, ridge, nystroem_ridge, pca, nystroem_pca, kmeans)


def rows(pick: random.Random) -> np.ndarray:
    rng = np.random.default_rng(pick.randrange(2**32))
    X = rng.standard_normal((50, pick.choice((1, 3, 8))))
    shape = pick.randrange(5)
    if shape == 0:
        X += 30.0  # far from 0
    elif shape == 1:
        X[:5, 0] = 1e7  # a code for missing values
    elif shape == 2:
        X *= 1e-3
    elif shape == 3:
        X[25:] = X[:25]  # rows that coincide
    return X.astype(pick.choice((np.float32, np.float64)))


def attempt(seed: int, number: int) -> str:
    pick = random.Random(f"numerics {seed}/{number}")
    kind, (made, reference), X = pick.choice(KINDS), pick.choice(KERNELS), rows(pick)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found, wanted = kind(made, X, pick.choice((0.01, 1.0)))
        except ValueError as error:
            return f"refused: {error}".replace("\n", " ")
    wide = X.astype(LONG)
    right, scale = wanted(reference, wide)
    if not np.isfinite(right).all():
        return "the reference has no solution"
    if kind is kernel and np.abs(right).max() > np.finfo(X.dtype).max:
        return "values beyond what the dtype can hold"  # learners refuse them
    scale = max(np.abs(right).max(), scale)
    apart = float(np.abs(np.asarray(found, LONG) - right).max() / scale)
    close = CLOSE[X.dtype] if kind is not kernel else CLOSE_VALUES[X.dtype]
    if apart <= close:
        return f"{kind.__name__}, {X.dtype}"
    if said:
        return f"{kind.__name__}, with a warning"
    # Rows that are off by their last digit, and kernel values that are rounded to float64.
    off = wide * (1 + np.finfo(X.dtype).eps * np.random.default_rng(0).uniform(-1, 1, X.shape))
    others = wanted(reference, off)[0], wanted(rounded(reference), wide)[0]
    if not max(np.abs(other - right).max() / scale for other in others) < close / 10:
        return f"{kind.__name__}, where another rounding has another result"
    return f"FAILED: {kind.__name__}, {made!r}, {X.dtype} {X.shape}: {apart:.1e} apart"


def rounded(k: Reference) -> Reference:
    return lambda X, Y: k(X, Y).astype(np.float64).astype(LONG)


def main(arguments: list[str]) -> None:
    seed, first, last = map(int, arguments)
    warnings.simplefilter("ignore")
    limited.serve(lambda number: attempt(seed, number), first, last, seconds=20)


if __name__ == "__main__":
    main(sys.argv[1:])
