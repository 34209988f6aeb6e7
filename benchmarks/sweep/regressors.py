"""Jobs of the sweep for regression with other losses than squares, and for components."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import decomposition, linear_model, svm
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_poisson_deviance
from sklearn.pipeline import make_pipeline

from benchmarks.sweep.jobs import (
    Data,
    Job,
    Side,
    same_features,
    smooth,
    their_features,
)
from gramian import (
    RBF,
    Exact,
    KernelHuberRegressor,
    KernelPCA,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelSVR,
)

LEVEL = 0.9  # of the quantile
OUTLIERS = 0.05  # part of the targets of Huber's regression that are far off


def counts(data: Data) -> np.ndarray:
    return np.random.default_rng(3).poisson(np.exp(smooth(data.X)))


def disturbed(data: Data) -> np.ndarray:
    draw = np.random.default_rng(4)
    return data.number + 10.0 * (draw.random(len(data.X)) < OUTLIERS)


def on_features(data: Data, y: np.ndarray, ours: Any, name: str, theirs: Any) -> dict[str, Side]:
    """Fit both sides over Nyström features of the same landmarks."""

    def our_side(seed: int) -> Any:
        return ours(same_features(data, seed), seed).fit(data.X, y)

    def their_side(seed: int) -> Any:
        return make_pipeline(their_features(data, seed), theirs()).fit(data.X, y)

    return {"gramian": our_side, name: their_side}


def huber(data: Data) -> dict[str, Side]:
    return on_features(
        data,
        disturbed(data),
        lambda kernel, seed: KernelHuberRegressor(0.1, kernel, random_state=seed),
        "HuberRegressor",
        lambda: linear_model.HuberRegressor(alpha=0.1, max_iter=1000),
    )


def quantile(data: Data) -> dict[str, Side]:
    """Both penalties are too small to matter: theirs is that of the lasso."""
    return on_features(
        data,
        data.number,
        lambda kernel, seed: KernelQuantileRegressor(
            0.01, kernel, quantile=LEVEL, random_state=seed
        ),
        "QuantileRegressor",
        lambda: linear_model.QuantileRegressor(quantile=LEVEL, alpha=1e-6),
    )


def poisson(data: Data) -> dict[str, Side]:
    n = len(data.X)
    return on_features(
        data,
        counts(data),
        lambda kernel, seed: KernelPoissonRegressor(0.1, kernel, random_state=seed),
        "PoissonRegressor",
        lambda: linear_model.PoissonRegressor(
            alpha=0.1 / n, solver="newton-cholesky", max_iter=1000
        ),
    )


def support_vectors(data: Data) -> dict[str, Side]:
    y, kernel = data.number, Exact(RBF(data.gamma))
    return {
        "gramian": lambda seed: KernelSVR(0.1, kernel, random_state=seed).fit(data.X, y),
        "SVR": lambda seed: svm.SVR(C=10.0, gamma=data.gamma).fit(data.X, y),
    }


def components(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        return KernelPCA(20, same_features(data, seed), random_state=seed).fit(data.X).eigenvalues_

    def theirs(seed: int) -> Any:
        steps = make_pipeline(
            their_features(data, seed), decomposition.PCA(20, svd_solver="covariance_eigh")
        )
        return steps.fit(data.X)[-1].explained_variance_ * (len(data.X) - 1)

    return {"gramian": ours, "PCA": theirs}


def unexplained(data: Data, eigenvalues: Any) -> float:
    return 1.0 - float(np.sum(np.asarray(eigenvalues, dtype=float))) / len(data.X)


def absolute_error(data: Data, model: Any) -> float:
    return float(mean_absolute_error(smooth(data.T), model.predict(data.T)))


def pinball(data: Data, model: Any) -> float:
    truth = smooth(data.T) + 0.1 * np.random.default_rng(5).standard_normal(len(data.T))
    predicted = np.asarray(model.predict(data.T)).reshape(len(data.T))
    return float(mean_pinball_loss(truth, predicted, alpha=LEVEL))


def deviance(data: Data, model: Any) -> float:
    truth = np.random.default_rng(6).poisson(np.exp(smooth(data.T)))
    return float(mean_poisson_deviance(truth, np.maximum(model.predict(data.T), 1e-9)))


JOBS = [
    Job("Huber's regression", huber, absolute_error, most=100_000, slack=0.02),
    Job("quantile regression", quantile, pinball, most=3000, slack=0.02),
    Job("Poisson regression", poisson, deviance, most=100_000, slack=0.02),
    Job("exact SVR", support_vectors, absolute_error, most=10_000, slack=0.02),
    Job("PCA, 20 components", components, unexplained, slack=1e-4),
]
