"""What Kernel-JL preserves: inner products and distances (004)."""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.checks import is_real, not_negative, positive, positive_integer
from gramian.backend.typing import ArrayLike
from gramian.backend.wording import counted
from gramian.theory.landmarks import GramLike, _as_gram, _not_negative
from gramian.theory.sketching import _host

__all__ = [
    "jl_bound",
    "jl_distance_bound",
    "jl_means_bound",
    "jl_separation_bound",
    "jl_sizes_needed",
]


class _Spectrum(NamedTuple):
    """Eigenvalues λ of Σ = K / n and eigenvectors of K, descending; κ = max k(x, x)."""

    values: np.ndarray
    vectors: np.ndarray
    kappa: float

    @property
    def norm(self) -> float:
        return float(self.values[0])

    def dimension(self, power: int = 1) -> float:
        """Return s_A = tr A / ‖A‖ for Σ or a power of it."""
        return float(np.sum((self.values / self.norm) ** power))


def jl_bound(
    gram: GramLike,
    n_samples: int,
    n_components: int,
    tau: float = 4.0,
    constant: float = 1.0,
    *,
    X: ArrayLike = None,
) -> float:
    """Bound on |⟨z(f), z(g)⟩ - ⟨f, Σ³g⟩| / (‖f‖ ‖g‖) for all f and g (004, theorem 1).

    3 𝔠 ‖Σ‖³ (√(2 s_Σ³) + √τ) / √r + 28 ‖Σ‖^{5/2} √(2 κ s_Σ τ) / √s, with r features from a
    subsample of s rows, s_A = tr A / ‖A‖ and κ = max k(x, x). It holds with probability at least
    1 - 5e^{-τ} if s and r are at least those of :func:`jl_sizes_needed`. Σ is the covariance
    of the rows, not centred; for the centred version, pass the centred matrix.

    Parameters
    ----------
    gram : Gram, kernel or matrix
        All eigenvalues of K are computed, in O(n³).
    n_samples, n_components : int
        s and r.
    tau : float, default=4.0
        τ ≥ 1.
    constant : float, default=1.0
        The universal constant 𝔠, which the paper leaves open.
    X : array-like, optional
        The rows, if ``gram`` is a kernel.

    See Also
    --------
    jl_sizes_needed : when it holds.
    gramian.KernelJL : the map.

    References
    ----------
    - Kpotufe and Sriperumbudur, Gaussian sketching yields a J-L lemma in RKHS, 2020 (004).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import jl_bound
    >>> round(jl_bound(np.ones((10, 10)), n_samples=80_000, n_components=10_000), 3)
    0.382
    """
    spectrum = _spectrum(gram, X)
    return _rate(spectrum, "jl_bound", n_samples, n_components, tau, constant)


def jl_sizes_needed(gram: GramLike, tau: float = 4.0, *, X: ArrayLike = None) -> tuple[int, int]:
    """Number of rows s ≥ 6272 κ s_Σ⁵ τ / ‖Σ‖ and features r that 004, theorem 1, requires.

    The theorem states s; its proof uses r ≥ max(4 s_Σ³, τ). Both are generous.

    Parameters
    ----------
    gram : Gram, kernel or matrix
    tau : float, default=4.0
        τ ≥ 1 of :func:`jl_bound`.
    X : array-like, optional
        The rows, if ``gram`` is a kernel.

    Returns
    -------
    n_samples, n_components : int

    See Also
    --------
    jl_bound : the bound that holds with these sizes.

    References
    ----------
    - Kpotufe and Sriperumbudur, Gaussian sketching yields a J-L lemma in RKHS, 2020 (004).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import jl_sizes_needed
    >>> jl_sizes_needed(np.ones((10, 10)), tau=3.0)
    (18816, 4)
    """
    tau = _tau("jl_sizes_needed", tau)
    spectrum = _spectrum(gram, X)
    rows = 6272 * spectrum.kappa * spectrum.dimension() ** 5 * tau / spectrum.norm
    features = max(4 * spectrum.dimension(3), tau)
    # Rounding must not add one.
    return ceil(rows * (1 - 1e-12)), ceil(features * (1 - 1e-12))


def jl_separation_bound(
    gram: GramLike,
    k: int,
    separation: float,
    n_samples: int,
    n_components: int,
    tau: float = 4.0,
    constant: float = 1.0,
    *,
    X: ArrayLike = None,
) -> float:
    """Smallest squared distance, after the map, of rows that were apart (004, example 1, (11)).

    Two rows f and g with ‖f - g‖² ≥ Δ in feature space have ‖z(f) - z(g)‖² of at least
    λ_k³ (Δ - 4εκ), minus the error of theorem 1. ε is the largest fraction of a row's squared norm
    outside the span of the leading k eigenvectors (assumption 1 of 004, for all rows).

    The paper prints 2εκ. Its proof has 2 (‖P⊥f‖² + ‖P⊥g‖²), which can be 4εκ, and rows that differ
    only in P⊥ violate the printed form. In place of its last term, C₂ √(τ / (s ∧ r)) with an open
    constant, this uses the term from the proof: :func:`jl_bound` times ‖f - g‖² ≤ 4κ.

    Parameters
    ----------
    gram : Gram, kernel or matrix
        All eigenvalues of K are computed, in O(n³).
    k : int
        Number of leading eigenvectors.
    separation : float
        Δ.
    n_samples, n_components, tau, constant
        As in :func:`jl_bound`.
    X : array-like, optional
        The rows, if ``gram`` is a kernel.

    See Also
    --------
    jl_distance_bound : for rows that were close.
    jl_bound : the error that enters.

    References
    ----------
    - Kpotufe and Sriperumbudur, Gaussian sketching yields a J-L lemma in RKHS, 2020 (004).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import jl_separation_bound
    >>> signs = np.repeat([1.0, -1.0], 5)
    >>> K = np.outer(signs, signs)
    >>> round(jl_separation_bound(K, 1, 4.0, n_samples=10**9, n_components=10**9), 2)
    3.99
    """
    owner = "jl_separation_bound"
    spectrum = _spectrum(gram, X)
    k, n = positive_integer(owner, "k", k), len(spectrum.values)
    if k > n:
        got = f"k={k}, {counted(n, 'row')}"
        raise ValueError(f"k of {owner} must be at most the number of rows; got {got}.")
    separation = positive(owner, "separation", separation)
    error = _rate(spectrum, owner, n_samples, n_components, tau, constant)
    parts = spectrum.vectors**2 * (n * spectrum.values)  # of each row's squared norm
    whole, outside = parts.sum(axis=1), parts[:, k:].sum(axis=1)
    epsilon = float(np.max(outside[whole > 0] / whole[whole > 0]))
    kept = spectrum.values[k - 1] ** 3 * (separation - 4 * epsilon * spectrum.kappa)
    return float(kept - 4 * spectrum.kappa * error)


def jl_distance_bound(
    gram: GramLike,
    distance: float,
    n_samples: int,
    n_components: int,
    tau: float = 4.0,
    constant: float = 1.0,
    *,
    X: ArrayLike = None,
) -> float:
    """Largest squared distance, after the map, of rows that were close (004, example 1, (12)).

    ‖z(f) - z(g)‖² is at most λ_1³ ‖f - g‖² plus the error of theorem 1: :func:`jl_bound` times
    ‖f - g‖², in place of C₂ √(τ / (s ∧ r)) with an open constant.

    Parameters
    ----------
    gram : Gram, kernel or matrix
        All eigenvalues of K are computed, in O(n³).
    distance : float
        ‖f - g‖², the *squared* distance in feature space.
    n_samples, n_components, tau, constant
        As in :func:`jl_bound`.
    X : array-like, optional
        The rows, if ``gram`` is a kernel.

    See Also
    --------
    jl_separation_bound : for rows that were apart.
    jl_bound : the error that enters.

    References
    ----------
    - Kpotufe and Sriperumbudur, Gaussian sketching yields a J-L lemma in RKHS, 2020 (004).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import jl_distance_bound
    >>> round(jl_distance_bound(np.ones((10, 10)), 2.0, n_samples=10**9, n_components=10**9), 2)
    2.01
    """
    owner = "jl_distance_bound"
    spectrum = _spectrum(gram, X)
    distance = not_negative(owner, "distance", distance)
    error = _rate(spectrum, owner, n_samples, n_components, tau, constant)
    return float((spectrum.norm**3 + error) * distance)


def jl_means_bound(
    gram: GramLike,
    labels: ArrayLike,
    n_samples: int,
    n_components: int,
    tau: float = 4.0,
    constant: float = 1.0,
    *,
    X: ArrayLike = None,
) -> float:
    """Smallest squared distance between the means of two clusters (004, example 2, (13)).

    If the clusters have fractions π_1 and π_2 of the rows and covariances of norm at most σ, the
    squared distance of their means after the map is at least
    λ_1³ (‖μ_1 - μ_2‖² - σ / (π_1 π_2)), minus the error of theorem 1: :func:`jl_bound` times
    ‖μ_1 - μ_2‖².

    The means are those of centred rows, π_1 μ_1 + π_2 μ_2 = 0, so μ_2 = -(π_1/π_2) μ_1. The paper
    prints μ_2 = (π_1/π_2) μ_1 but continues with the right sign. This function centres the matrix.

    Parameters
    ----------
    gram : Gram, kernel or matrix
        All eigenvalues of K are computed, in O(n³).
    labels : array of shape (n,)
        The cluster of each row; there must be two clusters.
    n_samples, n_components, tau, constant
        As in :func:`jl_bound`.
    X : array-like, optional
        The rows, if ``gram`` is a kernel.

    See Also
    --------
    jl_separation_bound : for single rows.
    jl_bound : the error that enters.

    References
    ----------
    - Kpotufe and Sriperumbudur, Gaussian sketching yields a J-L lemma in RKHS, 2020 (004).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import jl_means_bound
    >>> signs = np.repeat([1.0, -1.0], 5)
    >>> K = np.outer(signs, signs)
    >>> round(jl_means_bound(K, signs, n_samples=10**9, n_components=10**9), 2)
    3.99
    """
    owner = "jl_means_bound"
    gram = _as_gram(gram, X)
    members, n = _two_clusters(owner, labels, gram.shape[0]), gram.shape[0]
    K = _host(gram.dense())
    K = K - K.mean(axis=0)
    K = K - K.mean(axis=1)[:, None]
    spectrum = _spectrum((K + K.T) / 2, None)
    sizes = members.sum(axis=1)
    between = members[0] / sizes[0] - members[1] / sizes[1]
    separation = float(between @ K @ between)
    inside = max(_inner_norm(K, own) for own in members)
    shares = np.prod(sizes / n)
    error = _rate(spectrum, owner, n_samples, n_components, tau, constant)
    return float(spectrum.norm**3 * (separation - inside / shares) - error * separation)


def _rate(
    spectrum: _Spectrum, owner: str, n_samples: int, n_components: int, tau: float, constant: float
) -> float:
    s = positive_integer(owner, "n_samples", n_samples)
    r = positive_integer(owner, "n_components", n_components)
    tau, constant = _tau(owner, tau), positive(owner, "constant", constant)
    norm, kappa = spectrum.norm, spectrum.kappa
    sketch = 3 * constant * norm**3 * (sqrt(2 * spectrum.dimension(3)) + sqrt(tau)) / sqrt(r)
    return sketch + 28 * norm**2.5 * sqrt(2 * kappa * spectrum.dimension() * tau / s)


def _spectrum(source: GramLike, X: ArrayLike) -> _Spectrum:
    gram = _as_gram(source, X)
    values, vectors = np.linalg.eigh(_host(gram.dense()))
    values = _not_negative(values, gram)[::-1] / gram.shape[0]
    if values[0] <= 0:
        raise ValueError("K must not be zero: Kernel-JL's bounds are relative to its norm.")
    return _Spectrum(values, vectors[:, ::-1], float(_host(gram.diag()).max()))


def _inner_norm(K: np.ndarray, members: np.ndarray) -> float:
    """Return the norm of the covariance of some rows, centred on their mean."""
    own = np.flatnonzero(members)
    K = K[np.ix_(own, own)]
    K = K - K.mean(axis=0)
    K = K - K.mean(axis=1)[:, None]
    return max(float(np.linalg.eigvalsh(K)[-1]), 0.0) / len(own)


def _two_clusters(owner: str, labels: ArrayLike, n: int) -> np.ndarray:
    """Return two rows of 0 and 1 that mark the members of each cluster."""
    labels = np.asarray(array_ops.to_numpy(labels))
    found = np.unique(labels)
    if labels.shape != (n,) or len(found) != 2:
        raise ValueError(
            f"labels of {owner} must name two clusters, one label for each of the "
            f"{counted(n, 'row')}; got shape {labels.shape} with "
            f"{counted(len(found), 'distinct label')}."
        )
    return np.asarray(labels == found[:, None], dtype=np.float64)


def _tau(owner: str, tau: float) -> float:
    if not is_real(tau) or tau < 1:
        raise ValueError(f"tau of {owner} must be a number, at least 1; got {tau!r}.")
    return float(tau)
