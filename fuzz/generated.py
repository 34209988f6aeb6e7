"""Estimators, parameters and data that a number stands for."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

import gramian


class Case(NamedTuple):
    """A model that is not fitted, and what it is fitted to."""

    model: Any
    X: np.ndarray
    y: np.ndarray
    exact: bool  # whether the model has no random part that depends on the order of the rows

    def __str__(self) -> str:
        model = " ".join(repr(self.model).split())
        return f"{model} on {self.X.dtype} {self.X.shape}"


def case(pick: random.Random) -> Case:
    """Return a case; the same state of ``pick`` gives the same."""
    n, d = pick.choice((12, 40, 90, 300)), pick.choice((1, 2, 5, 9))
    rng = np.random.default_rng(pick.randrange(2**32))
    X = rng.standard_normal((n, d))
    shape = pick.randrange(6)
    if shape == 0:
        X = np.round(X)  # many rows coincide
    elif shape == 1:
        X[:, 0] = 3.0  # a column says nothing
    elif shape == 2:
        X += 50.0
    elif shape == 3:
        X[:3] *= 20.0  # outliers
    X = X.astype(pick.choice((np.float64, np.float64, np.float32)))
    kernel = _kernel(pick)
    approximation = _approximation(kernel, n, pick)
    exact = approximation is kernel
    model, y = _learner(approximation, np.sin(X[:, 0].astype(float)), pick)
    return Case(model, X, y, exact)


def _kernel(pick: random.Random) -> Any:
    gamma = pick.choice((0.01, 0.1, 1.0))
    return pick.choice(
        (
            gramian.RBF(gamma),
            gramian.RBF("median"),
            gramian.Laplacian(gamma),
            gramian.Matern(bandwidth=2.0),
            gramian.Polynomial(degree=2, gamma=0.1),
            gramian.Linear(),
            0.5 * gramian.RBF(gamma) + gramian.Linear(),
        )
    )


def _approximation(kernel: Any, n: int, pick: random.Random) -> Any:
    size = min(n // 2, pick.choice((4, 10, 25)))
    kind = pick.randrange(8)
    seed = {"random_state": pick.randrange(1000)}
    if kind < 2:
        return kernel
    if kind == 2:
        landmarks = pick.choice(("kmeans", "uniform", "rpcholesky", "kmeans++"))
        return gramian.Nystroem(kernel, size, landmarks=landmarks, **seed)
    if kind == 3:
        return gramian.BKA(kernel, max(size, 4), n_blocks=2, **seed)
    if kind == 4:
        return gramian.MEKA(kernel, max(size, 4), n_blocks=2, **seed)
    if kind == 5:
        return gramian.RandomFourier(gramian.RBF(0.1), size, **seed)
    if kind == 6:
        inner = pick.choice((kernel, gramian.Nystroem(kernel, size, **seed)))
        return gramian.Local(inner, pick.choice((2, 3)), **seed)
    return gramian.KernelJL(kernel, size, **seed)


def _learner(kernel: Any, y: np.ndarray, pick: random.Random) -> tuple[Any, np.ndarray]:
    alpha = pick.choice((0.01, 1.0, "loo"))
    kind = pick.randrange(6)
    classes = (y > 0) + (y > 0.7) * 1
    if kind == 0:
        return gramian.KernelRidge(alpha, kernel=kernel), y
    if kind == 1:
        return gramian.KernelRidgeClassifier(alpha, kernel=kernel), classes
    if kind == 2:
        return gramian.KernelPCA(1, kernel=kernel, random_state=0), y
    if kind == 3:
        return _loss_learner(kernel, y, classes, pick)
    return gramian.KernelKMeans(3, kernel=kernel, n_init=1, random_state=0), y


def _loss_learner(
    kernel: Any, y: np.ndarray, classes: np.ndarray, pick: random.Random
) -> tuple[Any, np.ndarray]:
    """A learner with another loss, solved so far that two paths to the optimum agree."""
    options: Any = {"kernel": kernel, "tol": 1e-10, "max_iter": 1000, "random_state": 0}
    alpha = pick.choice((0.1, 1.0))
    kind = pick.randrange(4)
    if kind == 0:
        return gramian.KernelLogisticRegression(alpha, **options), classes
    if kind == 1:
        return gramian.KernelHuberRegressor(alpha, **options), y
    if kind == 2:
        return gramian.KernelExpectileRegressor(alpha, **options), y
    return gramian.KernelSVC(alpha, loss="squared_hinge", **options), classes
