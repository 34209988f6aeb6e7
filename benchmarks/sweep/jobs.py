"""The jobs of the sweep: what gramian and its peers compute, and the loss that judges them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn import cluster, decomposition, kernel_approximation, kernel_ridge, linear_model, svm
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks._data import rows
from gramian import (
    RBF,
    Exact,
    KernelKMeans,
    KernelLogisticRegression,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    Nystroem,
    Polynomial,
    RandomFourier,
    TensorSketch,
    datasets,
)

JUDGED = 2000  # rows, of those to test on

Side = Callable[[int], Any]  # fits with this seed


class Data(NamedTuple):
    name: str
    X: np.ndarray  # float32, in random order
    y: np.ndarray  # classes
    T: np.ndarray  # rows to test on
    u: np.ndarray
    usual: np.ndarray  # rows of the commonest class, as many as X or all there are
    commonest: Any
    gamma: float

    @property
    def m(self) -> int:
        """Landmarks: a usual choice, 10 √n up to 500."""
        return min(int(10 * len(self.X) ** 0.5), 500, len(self.X) // 2)

    @property
    def number(self) -> np.ndarray:
        """A target for regression: a smooth function of the rows, with noise."""
        f = smooth(self.X)
        return f + 0.1 * np.random.default_rng(2).standard_normal(len(f))


def smooth(X: np.ndarray) -> np.ndarray:
    w = np.random.default_rng(1).standard_normal(X.shape[1])
    return np.sin(6.0 * (X @ w) / np.linalg.norm(w))


def load(name: str, n: int) -> Data | None:
    """At most all rows but those to test on; None if there are far fewer than n."""
    X, y = rows(name, "float32"), np.asarray(datasets.load(name).y)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    if len(X) - JUDGED < 0.9 * n:
        return None
    T, u, X, y = X[:JUDGED], y[:JUDGED], X[JUDGED:], y[JUDGED:]
    values, counts = np.unique(y, return_counts=True)
    commonest = values[counts.argmax()]
    usual = X[y == commonest][:n]
    X, y = X[:n], y[:n]
    some = X[:500]
    squared = np.square(some[:, None, :] - some[None, :250, :]).sum(axis=2)
    return Data(name, X, y, T, u, usual, commonest, float(1.0 / squared.mean()))


@dataclass(frozen=True)
class Job:
    """Sides return what ``loss`` judges; the first is gramian."""

    name: str
    sides: Callable[[Data], dict[str, Side]]
    loss: Callable[[Data, Any], float]
    most: int = 10**9  # rows
    slack: float = 0.0  # of the loss


def objective(data: Data, labels: np.ndarray) -> float:
    """k-means' objective with the exact kernel, on some rows, per row."""
    labels = np.asarray(labels)[:JUDGED]
    K = RBF(data.gamma)(data.X[:JUDGED])
    groups = [K[np.ix_(labels == c, labels == c)] for c in np.unique(labels)]
    return 1.0 - sum(float(group.sum()) / len(group) for group in groups) / len(labels)


def k_means(k: int) -> Callable[[Data], dict[str, Side]]:
    def sides(data: Data) -> dict[str, Side]:
        def ours(seed: int) -> Any:
            model = KernelKMeans(k, our_features(data, seed), n_init=3, random_state=seed)
            return model.fit(data.X).labels_

        def theirs(seed: int) -> Any:
            means = cluster.KMeans(k, n_init=3, random_state=seed)
            return make_pipeline(their_features(data, seed), means).fit(data.X)[-1].labels_

        def in_batches(seed: int) -> Any:
            means = cluster.MiniBatchKMeans(k, n_init=3, random_state=seed)
            return make_pipeline(their_features(data, seed), means).fit(data.X)[-1].labels_

        return {"gramian": ours, "KMeans": theirs, "MiniBatchKMeans": in_batches}

    return sides


def our_features(data: Data, seed: int) -> Nystroem:
    return Nystroem(RBF(data.gamma), data.m, landmarks="uniform", random_state=seed)


def their_features(data: Data, seed: int) -> Any:
    return kernel_approximation.Nystroem(gamma=data.gamma, n_components=data.m, random_state=seed)


def same_features(data: Data, seed: int) -> Nystroem:
    """Features with the landmarks that scikit-learn draws, so that draws do not decide a loss."""
    drawn = np.random.RandomState(seed).permutation(len(data.X))[: data.m]
    return Nystroem(RBF(data.gamma), data.m, landmarks=drawn, random_state=seed)


def ridge(data: Data) -> dict[str, Side]:
    y = data.number

    def ours(seed: int) -> Any:
        return KernelRidge(0.1, same_features(data, seed), random_state=seed).fit(data.X, y)

    def theirs(seed: int) -> Any:
        return make_pipeline(their_features(data, seed), linear_model.Ridge(0.1)).fit(data.X, y)

    return {"gramian": ours, "Ridge": theirs}


def exact_ridge(data: Data) -> dict[str, Side]:
    y, X = data.number, data.X.astype(np.float64)
    kernel = Exact(RBF(data.gamma))
    theirs = kernel_ridge.KernelRidge(alpha=0.1, kernel="rbf", gamma=data.gamma)
    return {
        "gramian": lambda seed: KernelRidge(0.1, kernel, random_state=seed).fit(X, y),
        "KernelRidge": lambda seed: theirs.fit(X, y),
    }


def exact_path(data: Data) -> dict[str, Side]:
    y, X = data.number, data.X.astype(np.float64)
    kernel = Exact(RBF(data.gamma))
    theirs = kernel_ridge.KernelRidge(kernel="rbf", gamma=data.gamma)
    search = GridSearchCV(theirs, {"alpha": np.logspace(-3, 2, 6)}, cv=5)
    return {
        "gramian": lambda seed: KernelRidge("loo", kernel, random_state=seed).fit(X, y),
        "GridSearchCV": lambda seed: search.fit(X, y),
    }


def regression_loss(data: Data, model: Any) -> float:
    return 1.0 - r2_score(smooth(data.T), model.predict(data.T))


def classifiers(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        model = KernelRidgeClassifier(0.1, same_features(data, seed), random_state=seed)
        return model.fit(data.X, data.y)

    def theirs(seed: int) -> Any:
        model = make_pipeline(their_features(data, seed), linear_model.RidgeClassifier(0.1))
        return model.fit(data.X, data.y)

    return {"gramian": ours, "RidgeClassifier": theirs}


def logistic(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        model = KernelLogisticRegression(0.1, our_features(data, seed), random_state=seed)
        return model.fit(data.X, data.y)

    def theirs(seed: int) -> Any:
        last = linear_model.LogisticRegression(C=10.0, max_iter=1000)
        return make_pipeline(their_features(data, seed), last).fit(data.X, data.y)

    return {"gramian": ours, "LogisticRegression": theirs}


def their_support_vectors(data: Data) -> Side:
    return lambda seed: svm.SVC(C=10.0, gamma=data.gamma).fit(data.X, data.y)


def support_vectors(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        model = KernelSVC(0.1, our_features(data, seed), random_state=seed)
        return model.fit(data.X, data.y)

    return {"gramian": ours, "SVC": their_support_vectors(data)}


def exact_support_vectors(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        return KernelSVC(0.1, Exact(RBF(data.gamma)), random_state=seed).fit(data.X, data.y)

    return {"gramian": ours, "SVC": their_support_vectors(data)}


def test_error(data: Data, model: Any) -> float:
    return float(np.mean(model.predict(data.T) != data.u))


def components(data: Data) -> dict[str, Side]:
    def theirs(solver: str) -> Side:
        return lambda seed: decomposition.KernelPCA(
            20, kernel="rbf", gamma=data.gamma, eigen_solver=solver, random_state=seed
        ).fit(data.X)

    kernel = Exact(RBF(data.gamma))
    return {
        "gramian": lambda seed: KernelPCA(20, kernel, random_state=seed).fit(data.X),
        "arpack": theirs("arpack"),
        "randomized": theirs("randomized"),
    }


def unexplained(data: Data, model: Any) -> float:
    """Minus the share of the trace in the components; both sides scale it alike."""
    return 1.0 - float(np.sum(np.asarray(model.eigenvalues_, dtype=float))) / len(data.X)


def features(data: Data) -> dict[str, Side]:
    return {
        "gramian": lambda seed: same_features(data, seed).fit_transform(data.X),
        "Nystroem": lambda seed: their_features(data, seed).fit_transform(data.X),
    }


def fourier(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        return RandomFourier(RBF(data.gamma), data.m, random_state=seed).fit_transform(data.X)

    def theirs(seed: int) -> Any:
        sampler = kernel_approximation.RBFSampler(
            gamma=data.gamma, n_components=data.m, random_state=seed
        )
        return sampler.fit_transform(data.X)

    return {"gramian": ours, "RBFSampler": theirs}


def features_error(data: Data, Z: np.ndarray) -> float:
    return error_of(Z, RBF(data.gamma)(data.X[:JUDGED]))


def error_of(Z: np.ndarray, K: np.ndarray) -> float:
    some = np.asarray(Z[:JUDGED], dtype=float)
    return float(np.linalg.norm(some @ some.T - K) / np.linalg.norm(K))


def sketches(data: Data) -> dict[str, Side]:
    def ours(seed: int) -> Any:
        return TensorSketch(squares(data), data.m, random_state=seed).fit_transform(data.X)

    def theirs(seed: int) -> Any:
        sketch = kernel_approximation.PolynomialCountSketch(
            gamma=data.gamma, degree=2, coef0=1.0, n_components=data.m, random_state=seed
        )
        return sketch.fit_transform(data.X)

    return {"gramian": ours, "PolynomialCountSketch": theirs}


def squares(data: Data) -> Polynomial:
    return Polynomial(2, gamma=data.gamma, coef0=1.0)


def sketch_error(data: Data, Z: np.ndarray) -> float:
    return error_of(Z, squares(data)(data.X[:JUDGED]))


def one_class(data: Data) -> dict[str, Side]:
    X = data.usual

    def ours(seed: int) -> Any:
        return KernelOneClass(0.1, Exact(RBF(data.gamma)), random_state=seed).fit(X)

    def theirs(seed: int) -> Any:
        return svm.OneClassSVM(gamma=data.gamma, nu=0.1).fit(X)

    return {"gramian": ours, "OneClassSVM": theirs}


def not_found(data: Data, model: Any) -> float:
    """How badly rows of other classes are told from rows of the class that was fitted."""
    return 1.0 - float(roc_auc_score(data.u == data.commonest, model.score_samples(data.T)))


JOBS = [
    Job("k-means, k = 10", k_means(10), objective, slack=0.002),
    Job("k-means, k = 100", k_means(100), objective, most=100_000, slack=0.002),
    Job("ridge", ridge, regression_loss, slack=0.02),
    Job("exact ridge", exact_ridge, regression_loss, most=10_000, slack=0.02),
    Job("exact ridge, alpha='loo'", exact_path, regression_loss, most=3000, slack=0.02),
    Job("ridge classifier", classifiers, test_error, slack=0.05),
    Job("logistic regression", logistic, test_error, most=30_000, slack=0.05),
    Job("SVM", support_vectors, test_error, most=10_000, slack=0.05),
    Job("exact SVM", exact_support_vectors, test_error, most=10_000, slack=0.05),
    Job("exact PCA, 20 components", components, unexplained, most=10_000, slack=1e-4),
    Job("one class", one_class, not_found, most=30_000, slack=0.02),
    Job("Nyström features", features, features_error, slack=0.1),
    Job("random Fourier features", fourier, features_error, slack=0.1),
    Job("TensorSketch", sketches, sketch_error, slack=0.1),
]
