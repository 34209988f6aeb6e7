"""The structure of a kernel matrix: its spectrum, its blocks, and the effect of gamma."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from gramian.backend import array_ops
from gramian.backend.threads import one_blas_thread
from gramian.kernels import Kernel, KernelWarning
from gramian.learners import KernelKMeans
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows

LOOKED_AT = 1000  # rows of the spectrum and of the blocks
PICTURE_ROWS, SMALL_ROWS = 280, 120  # size of the picture, and of the pictures for each gamma
BLOCKS = 10
RIDGE = 1e-3  # of the trace: what the effective dimension counts as noise
POWERS = (-2, -1, 0, 1, 2)  # of two: the gammas that are shown, as multiples of the one in use


@dataclass(frozen=True, eq=False)
class GammaView:
    """The kernel matrix at another gamma.

    Attributes
    ----------
    gamma, factor : float
        gamma, and its ratio to the current gamma.
    error : float
        Of a Nyström approximation with ``size`` landmarks chosen by k-means or, if the rows are
        not dense vectors, by randomly pivoted Cholesky.
    size : int
    score : float or None
        The cross-validated score of the learner on the training rows, if there is a target.
    effective_dimension, within : float
    picture : array
        As in :class:`Structure`.
    """

    gamma: float
    factor: float
    error: float
    size: int
    score: float | None
    effective_dimension: float
    within: float
    picture: np.ndarray


@dataclass(frozen=True, eq=False)
class Structure:
    """The kernel matrix K of a sample of the rows.

    Attributes
    ----------
    rows : int
        Number of rows in the sample.
    eigenvalues : array
        Eigenvalues of K as fractions of its trace, largest first.
    effective_dimension : float
        Σ λ / (λ + ridge): the number of directions that rise above the ridge.
    ridge : float
        As a fraction of the trace.
    blocks : array of int
        Number of rows of the picture in each cluster of kernel k-means.
    within : float
        The fraction of ‖K‖² inside these clusters.
    by_chance : float
        The same for random groups of these sizes, off the diagonal.
    picture : array
        k(x, y) / √(k(x, x) k(y, y)), with rows sorted by cluster.
    gammas : list of GammaView
        If the kernel has a gamma.
    """

    rows: int
    eigenvalues: np.ndarray
    effective_dimension: float
    ridge: float
    blocks: np.ndarray
    within: float
    by_chance: float
    picture: np.ndarray
    gammas: list[GammaView]


# The error of a fixed approximation, for a kernel; the score at a power of two times gamma.
Probe = Callable[[Kernel], float]
Scores = Callable[[int], float | None]


@one_blas_thread()
def look(
    kernel: Kernel, rows: ArrayRows, seed: int, probe: Probe, size: int, scores: Scores
) -> Structure:
    """Analyse the matrix of a sample; ``probe`` measures an approximation at each gamma."""
    rng = np.random.default_rng(seed)
    n = rows.shape[0]
    some = np.sort(rng.choice(n, size=min(n, LOOKED_AT), replace=False))
    rows = _chosen(kernel, rows, some)
    K = _matrix(kernel, rows)
    labels = _clusters(kernel, K, seed)
    order = _in_blocks(K, labels)
    shown = order[_evenly(len(order), PICTURE_ROWS)]
    eigenvalues = scipy.linalg.eigvalsh(K, check_finite=False)[::-1]
    trace = max(float(np.trace(K)), np.finfo(float).tiny)
    sizes = np.bincount(labels)
    return Structure(
        rows=len(K),
        eigenvalues=eigenvalues / trace,
        effective_dimension=_effective_dimension(eigenvalues),
        ridge=RIDGE,
        blocks=_runs(labels[shown]),
        within=_within(K, labels),
        by_chance=_by_chance(K, sizes),
        picture=_cosines(K, shown),
        gammas=_over_gamma(kernel, rows, labels, order, probe, size, scores),
    )


def _over_gamma(
    kernel: Kernel,
    rows: ArrayRows,
    labels: np.ndarray,
    order: np.ndarray,
    probe: Probe,
    size: int,
    scores: Scores,
) -> list[GammaView]:
    """Return views of the same rows, in the same order, at other gammas."""
    gamma = kernel.get_params(deep=False).get("gamma")
    if gamma is None:
        return []
    views = []
    small = order[_evenly(len(order), SMALL_ROWS)]
    for power in POWERS:
        factor = 2.0**power
        other = clone(kernel).set_params(gamma=factor * gamma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWarning)  # a gamma too far is what is shown
            error = probe(other)
            K = _matrix(other, rows)
        views.append(
            GammaView(
                gamma=factor * gamma,
                factor=factor,
                error=error,
                size=size,
                score=scores(power),
                effective_dimension=_effective_dimension(
                    scipy.linalg.eigvalsh(K, check_finite=False)
                ),
                within=_within(K, labels),
                picture=_cosines(K, small),
            )
        )
    return views


def _chosen(kernel: Kernel, rows: ArrayRows, numbers: np.ndarray) -> ArrayRows:
    taken = rows.take(numbers)
    return ArrayRows(array_ops.take_columns(taken, numbers) if kernel.is_matrix else taken)


def _matrix(kernel: Kernel, rows: ArrayRows) -> np.ndarray:
    return np.asarray(array_ops.to_numpy(Gram(kernel, rows).dense()), dtype=np.float64)


def _effective_dimension(eigenvalues: np.ndarray) -> float:
    positive = np.maximum(eigenvalues, 0.0)
    ridge = RIDGE * positive.sum()
    return float(np.sum(positive / (positive + ridge))) if ridge > 0 else 0.0


def _clusters(kernel: Kernel, K: np.ndarray, seed: int) -> np.ndarray:
    count = min(BLOCKS, max(len(K) // 2, 1))
    if count == 1 or not kernel.psd:
        return np.zeros(len(K), dtype=int)
    model = KernelKMeans(count, kernel="precomputed", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer clusters do as well
        return np.unique(model.fit(K).labels_, return_inverse=True)[1]


def _in_blocks(K: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Sort rows by cluster: similar clusters next to each other, central rows first."""
    count = int(labels.max()) + 1
    members = (labels[:, None] == np.arange(count)).astype(np.float64)
    means = members / members.sum(axis=0)
    between = means.T @ K @ means
    # Start from the largest cluster and go on to the most similar one each time.
    place = [int(members.sum(axis=0).argmax())]
    while len(place) < count:
        left = [c for c in range(count) if c not in place]
        place.append(max(left, key=lambda c: float(between[place[-1], c])))
    rank = np.argsort(place)
    closeness = (K @ means)[np.arange(len(K)), labels]
    return np.lexsort((-closeness, rank[labels]))


def _runs(labels: np.ndarray) -> np.ndarray:
    """Return the length of each run of equal labels."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    return np.diff(np.concatenate(([0], edges, [len(labels)])))


def _within(K: np.ndarray, labels: np.ndarray) -> float:
    total = float(np.sum(K**2))
    own = float(np.sum(K[labels[:, None] == labels] ** 2))
    return own / total if total > 0 else 1.0


def _by_chance(K: np.ndarray, sizes: np.ndarray) -> float:
    n = len(K)
    total, diagonal = float(np.sum(K**2)), float(np.sum(np.diag(K) ** 2))
    if total == 0 or n < 2:
        return 1.0
    pairs = float(np.sum(sizes * (sizes - 1))) / (n * (n - 1))
    return (diagonal + pairs * (total - diagonal)) / total


def _evenly(n: int, count: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(int))


def _cosines(K: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(np.maximum(np.abs(np.diag(K)), np.finfo(float).tiny))[numbers]
    return np.clip(K[np.ix_(numbers, numbers)] / lengths[:, None] / lengths, -1.0, 1.0)


def fixed(kernel: Kernel) -> Kernel:
    """Return a fitted kernel with numbers of six digits in place of rules."""
    numbers: dict[str, Any] = {}
    for path, part in {"": kernel, **kernel.get_params(deep=True)}.items():
        if isinstance(part, Kernel) and "gamma_" in vars(part):
            prefix = f"{path}__" if path else ""
            given = part._given()
            numbers[f"{prefix}gamma"] = float(f"{part.gamma_:.6g}") if given is None else given
            if "bandwidth" in part.get_params(deep=False):
                numbers[f"{prefix}bandwidth"] = None
            for name in getattr(part, "learned_parameters", tuple)():
                if name not in ("gamma", "bandwidth"):
                    numbers[f"{prefix}{name}"] = _digits(getattr(part, f"{name}_"))
    return clone(kernel).set_params(**numbers)


def _digits(value: Any) -> Any:
    return np.vectorize(lambda x: float(f"{x:.6g}"))(value) if np.ndim(value) else value
