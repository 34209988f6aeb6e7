"""Compare what an experiment fitted with the papers' formulas, and state the result.

An audit takes a fitted object and the rows it was fitted on, and returns numbers by name. The names
are those of ``STANDARDS``, which says how much is allowed. ``measure`` of an experiment returns the
numbers of its audits next to its own; the base class turns them into checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans

from gramian.approximations import BKA, MEKA, Nystroem
from gramian.backend import array_ops
from gramian.backend.typing import ArrayLike
from gramian.experiments import reference
from gramian.experiments.base import Check
from gramian.experiments.results import Results
from gramian.samplers import Landmarks

Numbers = dict[str, list[float]]
DRAWS = 30  # of the reference, for the mean of a law
MOST_ROWS = 400  # of large data sets, so many rows are compared
FEATURES_OF = 100_000  # clusters are judged by the features of at most this many rows


def joined(audits: Iterable[dict[str, float]]) -> Numbers:
    """Collect the numbers of several runs, by name."""
    found: Numbers = {}
    for audit in audits:
        for name, value in audit.items():
            found.setdefault(name, []).append(float(value))
    return found


def kernel_of(model: BaseEstimator) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The reference's function for the kernel of a fitted approximation or learner."""
    kernel = model.kernel_
    function = {"RBF": reference.rbf, "Laplacian": reference.laplacian}[type(kernel).__name__]
    return lambda X, Y: function(X, Y, kernel.gamma_)


def off(found: np.ndarray, wanted: np.ndarray) -> float:
    """The relative difference of two arrays."""
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def some_of(X: np.ndarray, most: int = MOST_ROWS) -> np.ndarray:
    """Numbers of the rows that are compared: all of a small data set."""
    if len(X) <= most:
        return np.arange(len(X))
    return np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))


# Landmarks: as many as asked for, and drawn by the paper's law.


def drawn(indices: np.ndarray, n: int, law: np.ndarray | None = None) -> float:
    """How far the mean position of draws is from its law's, in standard deviations.

    Without a ``law`` the draws are uniform and without replacement.
    """
    position = (np.arange(n) + 0.5) / n
    p = np.full(n, 1 / n) if law is None else law
    mean = float(p @ position)
    variance = float(p @ (position - mean) ** 2) / len(indices)
    if law is None:
        variance *= (n - len(indices)) / max(n - 1, 1)
    return float(position[indices].mean() - mean) / sqrt(variance) if variance > 1e-12 else 0.0


def landmarks(
    chosen: Landmarks, n: int, wanted: int, law: np.ndarray | None = None
) -> dict[str, float]:
    """Audit landmarks that are rows; with a ``law``, draws with replacement."""
    indices = np.asarray(chosen.indices)
    count = len(indices) if law is not None else len(np.unique(indices))
    return {"landmarks missing": abs(wanted - count), "draws off": drawn(indices, n, law)}


# Approximations.


def approximation(model: BaseEstimator, X: np.ndarray, **known: Any) -> dict[str, float]:
    """Audit a fitted Nystroem, BKA or MEKA."""
    if isinstance(model, Nystroem):
        return nystroem(model, X, **known)
    assert isinstance(model, BKA | MEKA)
    return blocks(model, X, **known)


def nystroem(
    model: BaseEstimator, X: np.ndarray, law: np.ndarray | None = None, is_uniform: bool = True
) -> dict[str, float]:
    """Compare K̃ with C W⁺ Cᵀ, and its landmarks with their law."""
    kernel, chosen, some = kernel_of(model), model.landmarks_, some_of(X)
    wanted = min(int(model.n_components), len(X))
    points = array_ops.to_numpy(chosen.points)
    C, W = kernel(X[some], points), kernel(points, points)
    if law is not None:  # draws are scaled by 1 / √(c p)
        scale = 1 / np.sqrt(len(points) * law[chosen.indices])
        C, W = C * scale, scale[:, None] * W * scale
    core = model.rank if model.truncation == "core" else None
    found: dict[str, float] = {"landmarks missing": wanted - len(np.unique(points, axis=0))}
    if is_uniform or law is not None:
        found = landmarks(chosen, len(X), wanted, law)
    expected = reference.nystroem(C, W, core)
    if model.rank is not None and core is None:
        if len(some) < len(X):
            return found
        expected = reference.of_rank(expected, model.rank)
    Z = np.asarray(model.transform(X[some]), dtype=np.float64)
    return {"off the formula": off(Z @ Z.T, expected), **found}


def blocks(model: BKA | MEKA, X: np.ndarray, count: int | None = None) -> dict[str, float]:
    """Compare blocks, their bases and their links with the paper's.

    A block has three times as many landmarks as its rank and ten more, but at most ``count``.
    """
    kernel, labels = kernel_of(model), np.asarray(model.labels_)
    members = [np.flatnonzero(labels == s) for s in range(len(model.ranks_))]
    found: list[dict[str, float]] = []
    bases = []
    for rows, basis, rank in zip(members, model._bases, model.ranks_, strict=True):
        wanted = min(len(rows), 3 * int(rank) + 10, len(rows) if count is None else count)
        some = rows[some_of(rows)]
        points, P = np.asarray(basis.landmarks.points), np.asarray(basis.map.projection)
        C, W = kernel(X[some], points), kernel(points, points)
        Z = np.asarray(basis.map.features(X[some]), dtype=np.float64)
        best = np.linalg.eigvalsh(reference.nystroem(C, W))[-int(rank) :].sum()
        bases.append(Z)
        found.append(
            {
                "off the formula": off(Z, C @ P),
                "not orthonormal": float(np.abs(P.T @ W @ P - np.eye(len(P.T))).max()),
                "basis misses": 1 - float(np.sum(Z**2)) / best,
                **landmarks(basis.landmarks, len(rows), wanted),
            }
        )
    worst = {name: max(values, key=abs) for name, values in joined(found).items()}
    worst["draws off"] = float(np.sum([each["draws off"] for each in found]) / sqrt(len(found)))
    worst["basis misses"] = float(np.mean([each["basis misses"] for each in found]))
    if len(X) <= MOST_ROWS:
        K = kernel(X, X)
        links = getattr(model, "links_", np.zeros((len(members),) * 2, dtype=bool))
        expected = reference.linked(K, bases, members, links)
        approximate = np.asarray(model.factor(X).dense())
        worst["links off"] = float(np.linalg.norm(approximate - expected) / np.linalg.norm(K))
    return {**worst, **partition(model, X)}


def partition(model: BKA | MEKA, X: np.ndarray) -> dict[str, float]:
    """Compare blocks by k-means with Lloyd's algorithm."""
    if not isinstance(model.partition, str) or model.partition != "kmeans":
        return {}
    labels, centres = np.asarray(model.labels_), np.asarray(model.centres_)
    some = some_of(X)
    nearest = cdist(np.asarray(X[some], dtype=float), centres).argmin(axis=1)
    return {
        "rows astray": float(np.mean(nearest != labels[some])),
        "passes left": reference.further_pass(np.asarray(X, dtype=float), labels),
    }


def reported_error(model: BaseEstimator, X: np.ndarray, error: float) -> dict[str, float]:
    """Compare an error ‖K - K̃‖ / ‖K‖ with that of the dense matrices."""
    if len(X) > MOST_ROWS:
        return {}
    K = kernel_of(model)(X, X)
    approximate = np.asarray(model.factor(X).dense(), dtype=np.float64)
    wanted = float(np.linalg.norm(K - approximate) / np.linalg.norm(K))
    return {"error off": abs(error - wanted) / max(wanted, 1e-9)}


# Bounds.


def bound(found: ArrayLike, wanted: ArrayLike) -> dict[str, float]:
    """Compare bounds with their closed form."""
    a, b = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    return {"bound off": float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-300)))}


# Samplers.


def short_of(drawn_mean: float, law_mean: float, uniform_mean: float) -> dict[str, float]:
    """How far draws are on the way from their law (0) to uniform ones (1), by a mean over them."""
    return {"draws short": 1 - (drawn_mean - uniform_mean) / (law_mean - uniform_mean)}


def by_scores(indices: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Audit distinct rows that are drawn in proportion to scores."""
    chances = np.minimum(1.0, len(indices) * scores / scores.sum())
    law = float(chances @ scores / chances.sum())
    return short_of(float(scores[indices].mean()), law, float(scores.mean()))


def by_determinant(
    K: np.ndarray, m: int, law: Callable[..., np.ndarray]
) -> Callable[[Landmarks], dict[str, float]]:
    """Return an audit of m rows by log det K[S, S], against sets that the reference draws.

    The laws it serves prefer rows that are far from each other; uniform draws do not.
    """
    rng = np.random.default_rng(0)

    def size(chosen: np.ndarray) -> float:
        block = K[np.ix_(chosen, chosen)]
        return float(np.linalg.slogdet(block + 1e-10 * np.eye(len(chosen)))[1])

    wanted = float(np.mean([size(law(K, m, rng)) for _ in range(DRAWS)]))
    uniform = [size(rng.choice(len(K), m, replace=False)) for _ in range(DRAWS)]
    middle = float(np.mean(uniform))
    return lambda chosen: short_of(size(np.asarray(chosen.indices)), wanted, middle)


def centres(points: np.ndarray, X: np.ndarray) -> dict[str, float]:
    """Compare the k-means objective of landmarks with that of scikit-learn's centres."""
    best = KMeans(len(points), n_init=1, random_state=0).fit(X).inertia_
    return {"centres worse": reference.objective(X, points) / best - 1}


# Learners.


def clusters(model: BaseEstimator, X: np.ndarray, X_test: np.ndarray) -> dict[str, float]:
    """Compare kernel k-means over Nyström with Lloyd's algorithm and the risk of dense features."""
    kernel, approximation, some = kernel_of(model), model.approximation_, some_of(X, FEATURES_OF)
    points = array_ops.to_numpy(approximation.landmarks_.points)
    root = reference.root(kernel(points, points))
    spans = np.array_split(some, -(-len(some) // 5000))
    Z = np.concatenate([(kernel(X[i], points) @ root).astype(np.float32) for i in spans])
    if approximation.rank is not None:
        leading = np.linalg.eigh(Z.T @ Z.astype(float))[1][:, -approximation.rank :]
        Z, root = Z @ leading.astype(np.float32), root @ leading
    labels, test = array_ops.to_numpy(model.labels_)[some], X_test[:MOST_ROWS]
    middles = reference.means(Z, labels).astype(float)
    z = kernel(test, points) @ root
    outside = 1 - np.sum(z**2, axis=1)  # k(x, x) = 1
    risk = float(np.mean(cdist(z, middles, "sqeuclidean").min(axis=1) + outside))
    found = {
        "risk off": abs(float(model.risk(test)) / risk - 1),
        "passes left": reference.further_pass(Z, labels),
    }
    if approximation.rank is not None and len(some) == len(X):
        features = np.asarray(approximation.transform(test), dtype=np.float64)
        found["off the formula"] = off(features @ features.T, z @ z.T)
    return found


def ridge(
    model: BaseEstimator, train: np.ndarray, y: np.ndarray, test: np.ndarray, penalty: float
) -> dict[str, float]:
    """Compare predictions of ridge regression on features with the normal equations."""
    Z, z = (np.asarray(model.approximation_.transform(X), dtype=np.float64) for X in (train, test))
    w = np.linalg.solve(Z.T @ Z + penalty * np.eye(Z.shape[1]), Z.T @ y)
    return {"predictions off": off(np.asarray(model.predict(test)), z @ w)}


# Kernel-JL and kernel PCA of a subsample.


def sketch(model: BaseEstimator, X: np.ndarray) -> dict[str, float]:
    """Compare Kernel-JL with its formula: G, found from the features, is Gaussian."""
    kernel, points, some = kernel_of(model), np.asarray(model.sample_.points), some_of(X)
    A = reference.sketched(kernel(points, points), kernel(X[some], points), model.centred)
    Z = np.asarray(model.transform(X[some]), dtype=np.float64)
    left, values, _ = np.linalg.svd(A, full_matrices=False)
    kept = values > 1e-6 * values[0]
    seen = left[:, kept].T @ Z
    G = (seen[:10] / values[kept][:10, None]) * sqrt(Z.shape[1])
    gaps = cdist(Z.T, Z.T) + np.eye(Z.shape[1]) * np.abs(Z).max()
    return {
        "off the formula": off(left[:, kept] @ seen, Z),
        "sketch off": (float(np.mean(G**2)) - 1) * sqrt(G.size / 2),
        "sketch repeats": float(np.sum(gaps.min(axis=0) < 1e-9 * np.abs(Z).max())),
        **landmarks(model.sample_, len(X), min(model.n_samples, len(X))),
    }


def subsampled_components(model: BaseEstimator, X: np.ndarray) -> dict[str, float]:
    """Compare kernel PCA of a subsample with the eigenvectors of its centred matrix."""
    kernel, points, some = kernel_of(model), np.asarray(model._projected.points), some_of(X)
    values, vectors = np.linalg.eigh(reference.centred(kernel(points, points)))
    count = model.n_components
    P = vectors[:, -count:] / np.sqrt(np.maximum(values[-count:], 1e-12 * values[-1]))
    wanted = kernel(X[some], points) @ P
    Z = np.asarray(model.transform(X[some]), dtype=np.float64)
    return {
        "off the formula": off(Z @ Z.T, wanted @ wanted.T),
        "landmarks missing": model.s - len(np.unique(model.sample_.indices)),
    }


# What is allowed.


@dataclass(frozen=True)
class Standard:
    """How the numbers of one name are judged: the largest is at most ``most``."""

    most: float
    text: str

    def judge(self, units: list[np.ndarray]) -> Check:
        """Judge the numbers of all runs, one array for each unit."""
        worst = max(self._worst(values) for values in units)
        return Check(worst <= self.most, self.text.format(worst, self.most))

    def _worst(self, values: np.ndarray) -> float:
        return float(np.abs(values).max())


class Pooled(Standard):
    """Standard normal numbers, of which the sum over the runs of a unit is judged."""

    def _worst(self, values: np.ndarray) -> float:
        return float(abs(values.sum())) / sqrt(len(values))


class Mostly(Standard):
    """Numbers of which nine of ten, or all of fewer, are at most ``most``."""

    def _worst(self, values: np.ndarray) -> float:
        return float(np.quantile(np.abs(values), 0.9, method="higher"))


class Mean(Standard):
    """Numbers of which the mean over the runs of a unit is judged."""

    def _worst(self, values: np.ndarray) -> float:
        return float(abs(values.mean()))


STANDARDS: dict[str, Standard] = {
    "off the formula": Standard(
        1e-4, "What is computed agrees with the dense formula to {:.0e} (allowed: {:g})."
    ),
    "not orthonormal": Standard(1e-4, "The blocks' bases are orthonormal to {:.0e} ({:g})."),
    "basis misses": Standard(
        0.25, "Bases miss at most {:.1%} of what the best of their rank hold ({:.0%})."
    ),
    "links off": Standard(
        0.05, "Links are off least squares on all pairs by at most {:.1%} of ‖K‖ ({:.0%})."
    ),
    "links missing": Standard(0, "Links are those that the threshold keeps."),
    "landmarks missing": Standard(0, "Landmarks are as many as stated, and distinct."),
    "draws off": Pooled(
        4.0, "Landmarks' places are {:.1f} standard deviations from their law ({:g})."
    ),
    "rows astray": Standard(0.0, "Every row is in the block of its nearest centre."),
    "passes left": Mostly(
        0.002, "One more pass of Lloyd's would lower its objective by {:.2%} ({:.1%})."
    ),
    "centres worse": Mean(
        0.5, "The objective of centres is at most {:.0%} above that of scikit-learn's ({:.0%})."
    ),
    "draws short": Mean(
        0.75, "Draws are at most {:.0%} of the way from their law to uniform ones ({:.0%})."
    ),
    "risk off": Standard(1e-3, "The risk agrees with that of dense features to {:.0e} ({:g})."),
    "predictions off": Standard(
        1e-4, "Predictions agree with the normal equations to {:.0e} ({:g})."
    ),
    "sketch off": Pooled(
        4.0, "The sketch's variance is {:.1f} standard deviations from its law ({:g})."
    ),
    "sketch repeats": Standard(0, "No feature of the sketch repeats another."),
    "bound off": Standard(1e-6, "Bounds agree with their closed form to {:.0e} ({:g})."),
    "judged wrong": Standard(0, "Dictionaries are judged as the definition does."),
    "ranks off": Standard(0, "Ranks of the blocks are those of a dense decomposition."),
    "cosines off": Standard(1e-4, "Cosines agree with a dense decomposition to {:.0e} ({:g})."),
    "error off": Standard(1e-6, "The error agrees with that of dense matrices to {:.0e} ({:g})."),
}


def agreement(results: Results) -> list[Check]:
    """Return a check for each kind of audited numbers, in the order of ``STANDARDS``."""
    found = []
    for name, standard in STANDARDS.items():
        own = [unit[name] for unit in results if unit.get(name) is not None]
        units = [np.atleast_1d(np.array(values, dtype=float)) for values in own]
        if units:
            found.append(standard.judge(units))
    return found
