"""Jobs of learners: kernel k-means, its step on given features, kernel ridge, kernel PCA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.metrics import pairwise_distances_chunked
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches

import gramian
from benchmarks.peers.data import TITLES, Scale, rows, two_classes
from benchmarks.peers.features import ours, theirs
from benchmarks.peers.job import OURS, Call, Contender, Data, Goal, Inputs, Job, Quality, Work
from gramian import RBF, Factors, KernelKMeans, KernelPCA, KernelRidgeClassifier, Linear

# Data, landmarks, clusters, the goals in float32 and float64.
CLUSTERINGS = [
    ("covtype", 300, 7, {"float32": 3.5, "float64": 6.0}),
    ("mnist", 245, 10, {"float32": 1.9, "float64": 3.0}),
]
N_INIT, MAX_ITER = 3, 300  # on all sides; tolerances are each library's default
MINI_BATCHES = "scikit-learn Nystroem + MiniBatchKMeans"
LLOYD = "scikit-learn Nystroem + KMeans"
RIDGE = "scikit-learn Nystroem + Ridge"
ARPACK = "scikit-learn KernelPCA, arpack"
PENALTY = 1e-6  # of ridge, for each row


def jobs(scale: Scale) -> list[Job]:
    found = []
    for name, m, k, goals in CLUSTERINGS:
        found += [_clustering(name, m, k, dtype, goal, scale) for dtype, goal in goals.items()]
        found.append(_lloyd(name, m, k, scale))
    return [*found, _exact_clustering(scale), _ridge(scale), _pca(scale)]


# Kernel k-means on Nyström features.


def _clustering(name: str, m: int, k: int, dtype: str, goal: float, scale: Scale) -> Job:
    count = scale.few(m)
    contenders = [
        Contender(OURS, partial(_our_clusters, count, k), "gramian"),
        Contender(LLOYD, partial(_their_clusters, count, k, "KMeans")),
    ]
    goals = [Goal(LLOYD, goal)]
    if name == "mnist" and dtype == "float32":
        call = partial(_their_clusters, count, k, "MiniBatchKMeans")
        contenders.append(Contender(MINI_BATCHES, call))
        goals.append(Goal(MINI_BATCHES, 1.0, slack=0.0))  # faster, and not worse
    return Job(
        f"kernel k-means, {TITLES[name]}, m = {m}, k = {k}, {dtype}",
        rows(name, dtype, scale),
        tuple(contenders),
        Quality("objective", _sampled_objective, slack=0.005),
        tuple(goals),
        partial(_clusters_work, count),
        brief=dtype == "float32",
    )


def _our_clusters(m: int, k: int, inputs: Inputs) -> Call:
    X, gamma = inputs["X"], inputs["gamma"]

    def fit(seed: int) -> KernelKMeans:
        kernel = ours(gamma, m, "uniform", seed)
        options: Any = {"n_init": N_INIT, "max_iter": MAX_ITER, "random_state": seed}
        return KernelKMeans(k, kernel=kernel, **options).fit(X)

    return fit


def _their_clusters(m: int, k: int, method: str, inputs: Inputs) -> Call:
    import sklearn.cluster

    X, gamma = inputs["X"], inputs["gamma"]
    make = getattr(sklearn.cluster, method)

    def fit(seed: int) -> Any:
        Z = theirs(gamma, m, seed).fit_transform(X)
        return make(k, n_init=N_INIT, max_iter=MAX_ITER, random_state=seed).fit(Z)

    return fit


def objective(K: np.ndarray, labels: np.ndarray) -> float:
    """The mean squared distance of rows to the mean of their cluster, with the exact kernel."""
    members = (labels == np.unique(labels)[:, None]).astype(np.float64)
    within = np.einsum("ji,ji->j", members, members @ K) / members.sum(axis=1)
    return float((np.trace(K) - within.sum()) / len(K))


def _sampled_objective(inputs: Inputs) -> Callable[[Any], float]:
    numbers = inputs["sample"]
    K = RBF(inputs["gamma"])(inputs["X"][numbers].astype(np.float64))
    return lambda model: objective(K, model.labels_[numbers])


def _clusters_work(m: int, inputs: Inputs, model: KernelKMeans) -> Work:
    X = inputs["X"]
    n, d = X.shape
    embedded = 2 * n * m * (d + 2) + n * m * m
    step = 2 * n * m * model.n_clusters
    size = X.itemsize * n * m  # written once, read in each pass
    return Work(
        embedded,
        X.nbytes + size,
        str(X.dtype),
        n * m,
        pass_flops=model.n_iter_ * step,
        pass_bytes=model.n_iter_ * size,
    )


# The k-means step alone: centres of features that are given.


class GivenFeatures(gramian.Approximation):
    """Rows that are features already."""

    def __init__(self, kernel: Any = None, random_state: Any = None) -> None:
        self.kernel = Linear() if kernel is None else kernel
        self.random_state = random_state

    def _fit(self, gram: gramian.Gram, rng: np.random.Generator, y: Any, plan: Any) -> int:
        return gram.rows.shape[1]

    def factor_rows(self, rows: gramian.Rows) -> Factors:
        return Factors(rows)


def _lloyd(name: str, m: int, k: int, scale: Scale) -> Job:
    count, base = scale.few(m), rows(name, "float32", scale)

    def make() -> Inputs:
        inputs = base.make()
        return {"X": ours(inputs["gamma"], count, "uniform", 0).fit_transform(inputs["X"])}

    return Job(
        f"k-means step on the same features, {TITLES[name]}, m = {m}, k = {k}, float32",
        Data(f"features of {base.key}", make),
        (
            Contender(OURS, partial(our_centres, k), "gramian"),
            Contender("scikit-learn KMeans", partial(their_centres, k, "sklearn.cluster")),
            Contender(
                "scikit-learn-intelex KMeans",
                partial(their_centres, k, "sklearnex.cluster"),
                "sklearnex",
            ),
            Contender("faiss Kmeans", partial(_faiss_centres, k), "faiss"),
        ),
        Quality("objective", mean_squared_distance),
        work=lloyd_work,
        brief=name == "mnist",
    )


def our_centres(k: int, inputs: Inputs, n_init: int = N_INIT) -> Call:
    Z = inputs["X"]
    options: Any = {"n_init": n_init, "max_iter": MAX_ITER}
    return lambda seed: KernelKMeans(k, kernel=GivenFeatures(), random_state=seed, **options).fit(Z)


def their_centres(k: int, module: str, inputs: Inputs, n_init: int = N_INIT) -> Call:
    from importlib import import_module

    make, Z = import_module(module).KMeans, inputs["X"]
    options: Any = {"n_init": n_init, "max_iter": MAX_ITER}
    return lambda seed: make(k, random_state=seed, **options).fit(Z)


def _faiss_centres(k: int, inputs: Inputs) -> Call:
    import faiss

    Z = inputs["X"]

    def train(seed: int) -> Any:
        # Its default of 25 iterations, but on all rows.
        options: Any = {"nredo": N_INIT, "seed": seed + 1, "max_points_per_centroid": len(Z)}
        model = faiss.Kmeans(Z.shape[1], k, **options)
        model.train(Z)
        return model

    return train


def _centres(model: Any) -> np.ndarray:
    for name in ("centres_", "cluster_centers_", "centroids"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name))
    raise TypeError(f"{type(model).__name__} has no centres")


def mean_squared_distance(inputs: Inputs) -> Callable[[Any], float]:
    Z = inputs["X"]

    def mean(model: Any) -> float:
        squared = pairwise_distances_chunked(
            Z,
            _centres(model).astype(Z.dtype),
            reduce_func=lambda D, start: D.min(axis=1),
            metric="sqeuclidean",
        )
        return float(np.concatenate(list(squared)).mean(dtype=np.float64))

    return mean


def lloyd_work(inputs: Inputs, model: KernelKMeans) -> Work:
    Z = inputs["X"]
    return Work(
        model.n_iter_ * 2 * Z.size * model.n_clusters, model.n_iter_ * Z.nbytes, str(Z.dtype)
    )


# Exact kernel k-means.


def _exact_clustering(scale: Scale) -> Job:
    return Job(
        "exact kernel k-means, MNIST, 5,000 rows, k = 10, float32",
        rows("mnist", "float32", scale, most=5000),
        (
            Contender(OURS, partial(_our_exact_clusters, 10), "gramian"),
            Contender("tslearn KernelKMeans", partial(_tslearn_clusters, 10), "tslearn"),
        ),
        Quality("objective", _sampled_objective, slack=0.005),
        (Goal("tslearn KernelKMeans", 15.0),),
        _exact_work,
    )


def _our_exact_clusters(k: int, inputs: Inputs) -> Call:
    X, kernel = inputs["X"], gramian.Exact(RBF(inputs["gamma"]))
    return lambda seed: KernelKMeans(
        k, kernel=kernel, n_init=1, max_iter=MAX_ITER, random_state=seed
    ).fit(X)


def _tslearn_clusters(k: int, inputs: Inputs) -> Call:
    from tslearn.clustering import KernelKMeans as SeriesKMeans

    series = inputs["X"][:, :, None]  # of one column
    options: Any = {"kernel": "rbf", "kernel_params": {"gamma": inputs["gamma"]}}
    return lambda seed: SeriesKMeans(
        k, n_init=1, max_iter=MAX_ITER, random_state=seed, **options
    ).fit(series)


def _exact_work(inputs: Inputs, model: KernelKMeans) -> Work:
    X = inputs["X"]
    n, d = X.shape
    size = X.itemsize * n * n
    return Work(
        n * n * (d + 2),
        X.nbytes + size,
        str(X.dtype),
        n * n / 2,
        pass_flops=model.n_iter_ * 2 * n * n * model.n_clusters,
        pass_bytes=model.n_iter_ * size,
    )


# Kernel ridge.


def _ridge(scale: Scale) -> Job:
    m = scale.few(1000)
    return Job(
        "kernel ridge, covtype class 2 against the rest, m = 1,000, float32",
        two_classes("covtype", 2, 20_000, "float32", scale),
        (
            Contender(OURS, partial(_our_ridge, m), "gramian"),
            Contender(RIDGE, partial(_their_ridge, m)),
        ),
        Quality("accuracy", _accuracy, more_is_better=True, slack=0.003),
        (Goal(RIDGE, 6.0),),
        partial(_ridge_work, m),
        brief=True,
    )


def _our_ridge(m: int, inputs: Inputs) -> Call:
    X, y, gamma = inputs["X"], inputs["y"], inputs["gamma"]

    def fit(seed: int) -> KernelRidgeClassifier:
        kernel = ours(gamma, m, "uniform", seed)
        # A tolerance as of scikit-learn's own iterative ridge solvers.
        options: Any = {"fit_intercept": False, "tol": 1e-4, "random_state": seed}
        return KernelRidgeClassifier(PENALTY * len(X), kernel=kernel, **options).fit(X, y)

    return fit


def _their_ridge(m: int, inputs: Inputs) -> Call:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    X, y, gamma = inputs["X"], inputs["y"], inputs["gamma"]

    def fit(seed: int) -> Any:
        # No intercept on either side; the sign of a regression on -1 and 1, as gramian's.
        ridge = Ridge(PENALTY * len(X), fit_intercept=False)
        return make_pipeline(theirs(gamma, m, seed), ridge).fit(X, y)

    return fit


def _accuracy(inputs: Inputs) -> Callable[[Any], float]:
    X, y = inputs["X_test"], inputs["y_test"]
    return lambda model: float(np.mean((np.asarray(model.predict(X)) > 0) == (y > 0)))


def _ridge_work(m: int, inputs: Inputs, model: KernelRidgeClassifier) -> Work:
    X = inputs["X"]
    n, d = X.shape
    size = X.itemsize * n * m
    return Work(
        2 * n * m * (d + 2) + 4 * n * m,  # and the right-hand side
        X.nbytes + size,
        str(X.dtype),
        n * m,
        pass_flops=model.n_iter_ * 4 * n * m,
        pass_bytes=model.n_iter_ * size,
    )


# Kernel PCA.


def _pca(scale: Scale) -> Job:
    k = scale.few(20)
    return Job(
        "kernel PCA, MNIST, 10,000 rows, 20 components, float32",
        rows("mnist", "float32", scale, most=10_000),
        (
            Contender(OURS, partial(_our_components, k), "gramian"),
            Contender("gramian, Exact", partial(_our_exact_components, k), "gramian"),
            Contender(ARPACK, partial(_their_components, k)),
        ),
        Quality("explained", _explained, more_is_better=True, slack=0.001),
        (Goal(ARPACK, 10.0),),
        _pca_work,
        brief=True,
    )


def _our_components(k: int, inputs: Inputs) -> Call:
    import sklearn.cluster  # noqa: F401  gramian would do so at its first use

    X, kernel = inputs["X"], RBF(inputs["gamma"])
    return lambda seed: KernelPCA(k, kernel=kernel, random_state=seed).fit(X)


def _our_exact_components(k: int, inputs: Inputs) -> Call:
    X, kernel = inputs["X"], gramian.Exact(RBF(inputs["gamma"]))
    return lambda seed: KernelPCA(k, kernel=kernel, random_state=seed).fit(X)


def _their_components(k: int, inputs: Inputs) -> Call:
    from sklearn.decomposition import KernelPCA as TheirPCA

    X, gamma = inputs["X"], inputs["gamma"]
    options: Any = {"kernel": "rbf", "gamma": gamma, "eigen_solver": "arpack"}
    return lambda seed: TheirPCA(k, random_state=seed, **options).fit(X)


def _explained(inputs: Inputs) -> Callable[[Any], float]:
    """The part of the exact matrix's variance that lies in the span of the components."""
    X, gamma = inputs["X"], inputs["gamma"]
    n = len(X)

    def part(model: Any) -> float:
        V = scipy.linalg.orth(np.asarray(model.eigenvectors_, dtype=np.float64))
        V = scipy.linalg.orth(V - V.mean(axis=0)).astype(X.dtype)
        inside, total = 0.0, 0.0
        for batch in gen_batches(n, 1000):
            K = rbf_kernel(X[batch], X, gamma)
            inside += float(np.sum(V[batch] * (K @ V), dtype=np.float64))
            total += float(K.sum(dtype=np.float64))
        return inside / (n - total / n)  # the trace of the centred matrix

    return part


def _pca_work(inputs: Inputs, model: KernelPCA) -> Work:
    """Nyström features, their ZᵀZ, and its eigenvectors (some 10 m³)."""
    X = inputs["X"]
    n, d = X.shape
    m = n if model.approximation_ is None else model.approximation_.n_components_
    flops = 2 * n * m * (d + 2) + 2 * n * m * m + 10 * m**3
    size = X.itemsize * n * m
    return Work(flops, X.nbytes + 3 * size, str(X.dtype), n * m)
