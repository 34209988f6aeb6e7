"""float32 rows give what the same rows in float64 give, in every learner and approximation."""

import numpy as np
import pytest
from sklearn.base import clone

from gramian import (
    BKA,
    MEKA,
    RBF,
    Exact,
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelJL,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    Local,
    Nystroem,
    RandomFourier,
)

APPROXIMATIONS = {
    "Exact": Exact(RBF(5.0)),
    "Nystroem": Nystroem(RBF(5.0), 40, random_state=0),
    "BKA": BKA(RBF(5.0), 40, n_blocks=3, random_state=0),
    "MEKA": MEKA(RBF(5.0), 40, n_blocks=3, random_state=0),
    "RandomFourier": RandomFourier(RBF(5.0), 60, random_state=0),
    "KernelJL": KernelJL(RBF(5.0), 40, random_state=0),
    "Local": Local(RBF(5.0), 3, random_state=0),
    "Local, Nystroem": Local(Nystroem(RBF(5.0), 30), 3, random_state=0),
}
LEARNERS = {
    "ridge": KernelRidge(1e-3),
    "PCA": KernelPCA(2, random_state=0),
    "k-means": KernelKMeans(3, random_state=0),
    "logistic": KernelLogisticRegression(0.1),
    "SVC": KernelSVC(0.1),
    "SVR": KernelSVR(0.1),
    "Huber": KernelHuberRegressor(0.1),
    "expectile": KernelExpectileRegressor(0.1),
    "quantile": KernelQuantileRegressor(0.1),
    "Poisson": KernelPoissonRegressor(0.1),
}
OF_EACH = ("ridge", "PCA", "k-means")  # with every approximation; the losses with some


def curved(n=200):
    """Rows on a surface in five columns, in [0, 1], as float32; and targets."""
    rng = np.random.default_rng(0)
    t = rng.random((n, 2))
    X = np.sin(2 * t @ rng.standard_normal((2, 5)) + rng.random(5))
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return X.astype(np.float32), np.sin(9 * t[:, 0]) * np.cos(7 * t[:, 1])


def said(model, X, y):
    """What a model says about rows that it was not fitted to: numbers of one size."""
    model = clone(model).fit(X[:140], y[:140])
    if isinstance(model, KernelPCA):  # the sign of a component is free
        return np.abs(model.transform(X[140:]))
    if isinstance(model, KernelKMeans):
        return np.append(np.sort(model.transform(X[140:]), axis=1), model.inertia_)
    use = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, use)(X[140:])


def target(name, y):
    return {"logistic": y > 0, "SVC": y > 0, "Poisson": np.round(2 + 2 * y)}.get(name, y)


CASES = [(learner, kernel) for kernel in APPROXIMATIONS for learner in OF_EACH] + [
    pytest.param(learner, kernel, marks=pytest.mark.slow)
    for learner in LEARNERS
    for kernel in ("Exact", "Nystroem", "Local")
    if learner not in OF_EACH
]


@pytest.mark.parametrize(("learner", "kernel"), CASES)
def test_float32_within_one_percent(learner, kernel):
    X, y = curved()
    model = clone(LEARNERS[learner]).set_params(kernel=APPROXIMATIONS[kernel])
    single = said(model, X, target(learner, y))
    double = said(model, X.astype(np.float64), target(learner, y))
    assert np.linalg.norm(single - double) < 0.01 * np.linalg.norm(double)
