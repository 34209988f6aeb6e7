"""Measurements that several experiments share; its digest is part of theirs."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import sklearn.kernel_approximation
from scipy.stats import entropy
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian.analysis.accuracy import relative_error
from gramian.approximations import BKA, MEKA, KernelJL, Nystroem
from gramian.approximations.base import Approximation
from gramian.backend.config import config_context
from gramian.backend.threads import one_blas_thread
from gramian.experiments import audits, reference
from gramian.experiments.fast_kpca import FastKPCA
from gramian.kernels import RBF
from gramian.matrices.gram import Gram
from gramian.samplers import Landmarks, Sampler, Uniform


def errors(make: Callable[[int], Approximation], X: np.ndarray, runs: int) -> list[float]:
    """Return relative Frobenius errors ‖K - K̃‖ / ‖K‖ of fits with the seeds 0, 1, ..."""
    return [float(relative_error(make(seed).fit(X), X, random_state=seed)) for seed in range(runs)]


def audited(
    make: Callable[[int], Approximation], X: np.ndarray, runs: int, **known: Any
) -> dict[str, Any]:
    """Return the errors of fits with the seeds 0, 1, ..., what they store, and their audits.

    ``known`` is passed to the audit of the approximation.
    """
    found, seen, kept = [], [], 0.0
    for seed in range(runs):
        model = make(seed).fit(X)
        found.append(float(relative_error(model, X, random_state=seed)))
        audit = audits.approximation(model, X, **known)
        seen.append({**audit, **audits.reported_error(model, X, found[-1])})
        kept = numbers_per_row(model, len(X))
    return {"error": found, "kept": kept, **audits.joined(seen)}


def numbers_per_row(model: BaseEstimator, n: int) -> float:
    """Return how many numbers a fitted approximation stores per row, links included."""
    return float(model.nbytes_ / (8 * n))


def blocks_or_nystroem(
    method: str,
    gamma: float,
    rank: int,
    blocks: int = 3,
    landmarks: int | None = None,
    distance: float | None = None,
) -> Callable[[int], Approximation]:
    """Return the methods of the report on Iris, by name, each a function of a seed.

    ``rank`` is the total rank, ``landmarks`` the total number of landmarks, drawn uniformly: each
    block has an equal share. By default Nyström has ``rank`` landmarks. ``distance`` is MEKA's
    threshold for links.
    """
    kernel = RBF(gamma)
    if method in ("BKA", "MEKA"):
        own: dict[str, Any] = {"n_blocks": blocks}
        if landmarks is not None:
            own["landmarks"] = AtMost(landmarks // blocks)
        if method == "BKA":
            return lambda seed: BKA(kernel, rank, random_state=seed, **own)
        return lambda seed: MEKA(kernel, rank, link_distance=distance, random_state=seed, **own)
    count = rank if landmarks is None else landmarks
    kept = rank if count > rank else None
    return lambda seed: Nystroem(kernel, count, landmarks="uniform", rank=kept, random_state=seed)


def scikit_learn_errors(X: np.ndarray, gamma: float, m: int, runs: int) -> dict[str, object]:
    """Return the same error for scikit-learn's Nystroem, and gramian's with its landmarks."""
    K = reference.rbf(X, X, gamma)
    found, ours = [], []
    for seed in range(runs):
        model = sklearn.kernel_approximation.Nystroem(
            gamma=gamma, n_components=m, random_state=seed
        )
        Z = model.fit_transform(X)
        found.append(float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)))
        same = Nystroem(RBF(gamma), m, landmarks=model.component_indices_).fit(X)
        ours.append(float(relative_error(same, X)))
    return {"error": found, "error of gramian": ours}


class AtMost(Sampler):
    """Uniform landmarks, at most ``count``; otherwise a block's basis chooses its own number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def select(self, gram: Gram, m: int, rng: np.random.Generator, y: object = None) -> Landmarks:
        return Uniform().select(gram, min(m, self.count), rng)


def least_seconds(call: Callable[[], object], times: int) -> float:
    """Return the least CPU time of several runs in one thread, the one with least interference."""
    found = []
    with config_context(n_threads=1), one_blas_thread():
        for _ in range(times):
            start = process_time()
            call()
            found.append(process_time() - start)
    return min(found)


# Kernel-JL and the methods that its paper compares it with.

PERCENTILE = ("percentile", 25)  # exp(-‖x - y‖²/σ²), σ the 25th percentile of distances


def kernel_jl_maps(X: np.ndarray, s: int, r: int) -> dict[str, Callable[[int], Approximation]]:
    """For each method, a function from a seed to a map: r features from a subsample of s rows."""
    kernel = RBF(RBF(PERCENTILE).fit(X).gamma_)
    kept = {"rank": r} if r < s else {}
    return {
        "Nyström": lambda seed: Nystroem(
            kernel, s, landmarks="uniform", truncation="core", random_state=seed, **kept
        ),
        "fast KPCA": lambda seed: FastKPCA(kernel, r, s, seed),
        "Kernel-JL": lambda seed: KernelJL(kernel, r, n_samples=s, random_state=seed),
    }


def mapped(
    make: Callable[[int], Approximation], X: np.ndarray, seed: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Return the features of one of the maps, and its audit."""
    model = make(seed).fit(X)
    Z = np.asarray(model.transform(X))
    if isinstance(model, KernelJL):
        return Z, audits.sketch(model, X)
    if isinstance(model, FastKPCA):
        return Z, audits.subsampled_components(model, X)
    return Z, audits.approximation(model, X)


def mutual_information(y: np.ndarray, labels: np.ndarray) -> float:
    """Return the normalised mutual information of two labellings, which start at 0.

    scikit-learn's function sorts all labels, which takes seconds for millions.
    """
    shape = int(y.max()) + 1, int(labels.max()) + 1
    pairs = np.ravel_multi_index((y.astype(np.int64), labels.astype(np.int64)), shape)
    joint = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape) / len(y)
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    apart = entropy(rows) + entropy(columns)
    return float(2 * (1 - entropy(joint.ravel()) / apart)) if apart > 0 else 1.0


def rand_index(Z: np.ndarray, y: np.ndarray, k: int, seed: int) -> float:
    return float(rand_score(y, KMeans(k, n_init=1, random_state=seed).fit_predict(Z)))


def line_accuracy(X: np.ndarray, y: np.ndarray) -> float:
    """Return the fraction of points that a line or plane classifies correctly."""
    line = make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=1000))
    return float(line.fit(X, y).score(X, y))
