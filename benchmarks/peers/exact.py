"""Jobs of exact ridge regression: one alpha, and the choice among many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.data import Scale
from benchmarks.peers.job import OURS, Call, Contender, Data, Goal, Inputs, Job, Quality, Work
from gramian import RBF, Exact, KernelRidge

ROWS, CHOICES, COLUMNS, TEST = 10_000, (2000, 5000), 16, 2000
ALPHA = 0.1
THEIRS = "scikit-learn KernelRidge"
SEARCH = "scikit-learn GridSearchCV"
ONE = "gramian, one alpha"
GRID = np.logspace(-4, 2, 7)


def jobs(scale: Scale) -> list[Job]:
    return [_one_alpha(scale), *(_choice(n, scale) for n in CHOICES)]


def _rows(n: int, scale: Scale) -> Data:
    """Normal rows, and a smooth target with noise."""
    n, test = scale.rows(n), scale.rows(TEST)

    def make() -> Inputs:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n + test, COLUMNS))
        w = rng.standard_normal(COLUMNS) / COLUMNS**0.5
        f = np.sin(2.0 * (X @ w))
        y = f + 0.1 * rng.standard_normal(n + test)
        parts = {"X": X[:n], "y": y[:n], "X_test": X[n:], "f_test": f[n:]}
        return {**parts, "gamma": 0.5 / COLUMNS}

    return Data(f"normal rows and a target {n}", make)


def _one_alpha(scale: Scale) -> Job:
    return Job(
        f"exact ridge, {ROWS:,} rows, d = {COLUMNS}, one alpha, float64",
        _rows(ROWS, scale),
        (Contender(OURS, partial(_ours, ALPHA), "gramian"), Contender(THEIRS, _theirs)),
        Quality("error", _error, slack=1e-6),
        (Goal(THEIRS, 1.5),),
        partial(_work, 1),
    )


def _choice(n: int, scale: Scale) -> Job:
    """The choice of alpha takes at most four times what one alpha takes."""
    contenders = [
        Contender(OURS, partial(_ours, "loo"), "gramian"),
        Contender(ONE, partial(_ours, ALPHA), "gramian", is_limit=True),
    ]
    goals = [Goal(ONE, 0.25)]
    if n == min(CHOICES):
        contenders.append(Contender(SEARCH, _searched))
        goals.append(Goal(SEARCH, 5.0))
    return Job(
        f'exact ridge, {n:,} rows, d = {COLUMNS}, alpha="loo", float64',
        _rows(n, scale),
        tuple(contenders),
        Quality("error", _error, slack=0.05),
        tuple(goals),
        partial(_work, 2),
    )


def _ours(alpha: Any, inputs: Inputs) -> Call:
    X, y, kernel = inputs["X"], inputs["y"], Exact(RBF(inputs["gamma"]))
    options: Any = {"fit_intercept": False}
    return lambda seed: KernelRidge(alpha, kernel, random_state=seed, **options).fit(X, y)


def _theirs(inputs: Inputs) -> Call:
    from sklearn.kernel_ridge import KernelRidge as TheirRidge

    X, y, gamma = inputs["X"], inputs["y"], inputs["gamma"]
    return lambda seed: TheirRidge(alpha=ALPHA, kernel="rbf", gamma=gamma).fit(X, y)


def _searched(inputs: Inputs) -> Call:
    from sklearn.kernel_ridge import KernelRidge as TheirRidge
    from sklearn.model_selection import GridSearchCV

    X, y, gamma = inputs["X"], inputs["y"], inputs["gamma"]
    model = TheirRidge(kernel="rbf", gamma=gamma)
    return lambda seed: GridSearchCV(model, {"alpha": GRID}).fit(X, y)


def _error(inputs: Inputs) -> Callable[[Any], float]:
    """The mean squared error on other rows, without the noise of their targets."""
    X, f = inputs["X_test"], inputs["f_test"]
    return lambda model: float(np.mean((np.asarray(model.predict(X)) - f) ** 2))


def _work(times: int, inputs: Inputs, model: KernelRidge) -> Work:
    """The kernel matrix, by symmetry, and a Cholesky factor or, twice that, its inverse too."""
    X = inputs["X"]
    n, d = X.shape
    size = X.itemsize * n * n
    return Work(n * n * (d + 2) + times * n**3 / 3, X.nbytes + 3 * size, str(X.dtype), n * n / 2)
