"""The data sets of the papers, prepared as they describe."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from sklearn.preprocessing import StandardScaler

from gramian import datasets
from gramian.datasets.deformations import deformed

Labelled = tuple[np.ndarray, np.ndarray]
IMAGES = {"mnist": (28, 28), "digits": (8, 8)}


@lru_cache(maxsize=2)
def rows(name: str, scale: str = "minmax", dtype: str = "float64") -> Labelled:
    """Return all rows of a data set, training rows before test rows, and their targets.

    ``scale``: "minmax" scales columns to [0, 1], "standard" standardises them, "pixels" divides by
    the largest value, "none" leaves them unchanged.
    """
    data = datasets.load(name)
    X, y = data.X.reshape(len(data.X), -1), data.y
    if data.X_test is not None and data.y_test is not None:
        X = np.concatenate((X, data.X_test.reshape(len(data.X_test), -1)))
        y = np.concatenate((y, data.y_test))
    if scale == "minmax":
        return datasets.scaled(X, dtype), y
    if scale == "standard":
        return StandardScaler().fit_transform(X.astype(np.float64)).astype(dtype), y
    if scale == "pixels":
        return np.asarray(X / X.max(), dtype=dtype), y
    return X.astype(dtype), y


def some(
    name: str, n: int | None, scale: str = "minmax", dtype: str = "float64", seed: int = 0
) -> Labelled:
    """Return a random sample of the rows."""
    X, y = rows(name, scale, dtype)
    if n is None or n >= len(X):
        return X, y
    drawn = np.random.default_rng(seed).choice(len(X), n, replace=False)
    return X[drawn], y[drawn]


def divided(X: np.ndarray, y: np.ndarray, n: int, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Return n random rows, and the others."""
    order = np.random.default_rng(seed).permutation(len(X))
    return (X[order[:n]], y[order[:n]]), (X[order[n:]], y[order[n:]])


@lru_cache(maxsize=1)
def images(name: str, n: int, n_test: int) -> tuple[Labelled, Labelled]:
    """Return n deformed images and n_test of other originals, as bytes, so millions fit in RAM."""
    X, y = rows(name, "none", "uint8")
    (X, y), (X_test, y_test) = divided(X, y, len(X) * 6 // 7)

    def made(of: np.ndarray, labels: np.ndarray, count: int, seed: int) -> Labelled:
        rows = deformed(of, count, shape=IMAGES[name], random_state=seed)
        return rows, labels[np.arange(count) % len(labels)]

    return made(X, y, n, 0), made(X_test, y_test, n_test, 1)


def clumps(n: int) -> Labelled:
    """Return rows of which nine tenths are in one cluster and the others in 40 small ones."""
    rng = np.random.default_rng(0)
    places = np.vstack((np.zeros(10), rng.normal(0, 3, (40, 10))))
    labels = np.where(rng.random(n) < 0.9, 0, rng.integers(1, 41, n))
    return places[labels] + 0.1 * rng.normal(size=(n, 10)), labels


def clustered(name: str, n: int) -> tuple[Labelled, Labelled]:
    """Return n training rows for kernel k-means, and the others; MNIST has its own test set."""
    if name == "clumps":
        return divided(*clumps(n + 400), n)
    X, y = rows(name, "pixels", "float32")
    if name == "mnist":
        if n >= 60_000:
            return (X[:60_000], y[:60_000]), (X[60_000:], y[60_000:])
        X, y = X[:60_000], y[:60_000]
    return divided(X, y, n)


# The toy data sets of 004.


def polar(radius: np.ndarray, angle: np.ndarray) -> np.ndarray:
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


def cluster_in_cluster(rng: np.random.Generator, n: int) -> Labelled:
    """Half of the points in a ring of radius 1 and width 0.8, half in one of radius 5, width "
    "1/3."""
    inner = np.arange(n) % 2 == 0
    radius = np.where(inner, 1 + 0.8 * rng.uniform(-0.5, 0.5, n), 5 + rng.uniform(-0.5, 0.5, n) / 3)
    return polar(radius, rng.uniform(0, 2 * np.pi, n)), inner


def crescent_full_moon(rng: np.random.Generator, n: int) -> Labelled:
    """A quarter of the points in a disc of radius 5, the others below it at radius 10 to 15."""
    moon, root = np.arange(n) % 4 == 0, np.sqrt(rng.uniform(size=n))
    angle = np.pi * rng.uniform(0, 1, n)
    radius = np.where(moon, 5 * root, 10 + 5 * root)
    return polar(radius, np.where(moon, 2, 1) * angle + np.pi), moon


TOYS: dict[str, Callable[[np.random.Generator, int], Labelled]] = {
    "cluster in cluster": cluster_in_cluster,
    "crescent full moon": crescent_full_moon,
}
