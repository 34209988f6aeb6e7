"""The papers' formulas, dense and in float64: what the experiments compare gramian with.

Nothing here uses gramian. Each function is the formula as its paper prints it (with the corrections
of the experiments' notes), for matrices that fit in memory.
"""

from __future__ import annotations

from math import ceil, e, log, sqrt

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

Array = np.ndarray
PRECISION = 1e-10  # eigenvalues below this part of the largest are left out, as rounding errors


def rbf(X: Array, Y: Array, gamma: float) -> Array:
    return np.exp(-gamma * cdist(_double(X), _double(Y), "sqeuclidean"))


def laplacian(X: Array, Y: Array, gamma: float) -> Array:
    return np.exp(-gamma * cdist(_double(X), _double(Y), "cityblock"))


def _double(X: Array) -> Array:
    return np.asarray(X, dtype=np.float64)


def inverse(W: Array, rank: int | None = None) -> Array:
    """W⁺, or W_k⁺ of the best approximation of rank k."""
    values, vectors = np.linalg.eigh(W)
    kept = values > PRECISION * values[-1]
    if rank is not None:
        kept &= np.arange(len(values)) >= len(values) - rank
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


def root(W: Array) -> Array:
    """R with R Rᵀ = W⁺: the features of Nyström are k(x, landmarks) R."""
    values, vectors = np.linalg.eigh(W)
    kept = values > PRECISION * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def nystroem(C: Array, W: Array, rank: int | None = None) -> Array:
    """K̃ = C W⁺ Cᵀ, or C W_k⁺ Cᵀ (000, section 2)."""
    return C @ inverse(W, rank) @ C.T


def of_rank(K: Array, rank: int) -> Array:
    """The best approximation of this rank of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(K)
    return (vectors[:, -rank:] * np.maximum(values[-rank:], 0)) @ vectors[:, -rank:].T


def tail(K: Array, k: int) -> float:
    """‖K - K_k‖_F."""
    return float(np.linalg.norm(np.linalg.svd(K, compute_uv=False)[k:]))


def rank(K: Array, delta: float) -> int:
    """The number of singular values above max(rows, columns) ‖K‖₂ δ (002, tables 5 and 6)."""
    values = np.linalg.svd(K, compute_uv=False)
    return int(np.count_nonzero(values > max(K.shape) * values[0] * delta))


def cosines(own: Array, other: Array, count: int) -> Array:
    """Cosines of the principal angles between leading left singular vectors (002, figure 6)."""
    U, V = (
        np.linalg.svd(K)[0][:, : min(count, rank(K, np.finfo(float).eps))] for K in (own, other)
    )
    return np.linalg.svd(U.T @ V, compute_uv=False)


def linked(K: Array, bases: list[Array], members: list[Array], links: Array) -> Array:
    """MEKA's K̃ (002, section 4): U_s U_sᵀ on the diagonal, U_s L_st U_tᵀ where s and t are linked.

    L_st is the least-squares fit of K_st on all pairs of rows of the two blocks. K̃ is then made
    positive semi-definite, by leaving out its negative eigenvalues.
    """
    found = np.zeros_like(K)
    onto = [U @ np.linalg.pinv(U) for U in bases]
    for s, rows in enumerate(members):
        for t, columns in enumerate(members):
            if s == t:
                found[np.ix_(rows, rows)] = bases[s] @ bases[s].T
            elif links[s, t]:
                block = K[np.ix_(rows, columns)]
                found[np.ix_(rows, columns)] = onto[s] @ block @ onto[t].T
    values, vectors = np.linalg.eigh((found + found.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


# k-means, in the input space (the rows) or in feature space (their features).


def means(Z: Array, labels: Array) -> Array:
    """The mean of each cluster, in the order of the sorted labels."""
    members = labels == np.unique(labels)[:, None]
    return members @ Z / members.sum(axis=1)[:, None]


def objective(Z: Array, centres: Array) -> float:
    """Σ_i min_j ‖z_i - c_j‖²."""
    return float(cdist(Z, centres, "sqeuclidean").min(axis=1).sum())


def further_pass(Z: Array, labels: Array) -> float:
    """By which part one more pass of Lloyd's lowers the objective of these labels; 0 at the end."""
    found = np.unique(labels, return_inverse=True)[1]
    centres = means(Z, found)
    now = float(np.sum((Z - centres[found]) ** 2))
    return 1 - objective(Z, centres) / now if now > 0 else 0.0


def kernel_objective(K: Array, labels: Array) -> float:
    """tr K - Σ_s 1/|V_s| Σ_{i,j in V_s} K_ij: the objective of kernel k-means (001)."""
    members = (labels == np.unique(labels)[:, None]).astype(float)
    return float(np.trace(K) - np.sum(np.sum(members * (members @ K), 1) / members.sum(1)))


def kernel_distances(K: Array, across: Array, diagonal: Array, labels: Array) -> Array:
    """‖φ(x) - c_j‖² = k(x, x) - 2/|C| Σ k(x, x_s) + 1/|C|² ΣΣ k(x_s, x_t), for each x and j (001).

    ``across`` has the kernel values of the x with the rows of K.
    """
    members = (labels == np.unique(labels)[:, None]).astype(float)
    members /= members.sum(axis=1)[:, None]
    within = np.sum(members * (members @ K), axis=1)
    return diagonal[:, None] - 2 * across @ members.T + within


def plus_plus(K: Array, k: int, rng: np.random.Generator) -> Array:
    """Row numbers of the seeds of k-means++ (003, proposition 3)."""
    chosen = [int(rng.integers(len(K)))]
    for _ in range(k - 1):
        far = K.diagonal()[:, None] + K.diagonal()[chosen] - 2 * K[:, chosen]
        least = np.maximum(far.min(axis=1), 0.0)
        chosen.append(int(rng.choice(len(K), p=least / least.sum())))
    return np.array(chosen)


# Ridge regression and principal components (001).


def ridge(K: Array, y: Array, penalty: float) -> Array:
    """α = (K + λI)⁻¹ y."""
    return np.asarray(np.linalg.solve(K + penalty * np.eye(len(K)), y))


def centred(K: Array) -> Array:
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def components(K: Array, count: int) -> Array:
    """The leading components of the centred matrix, √λ u."""
    values, vectors = np.linalg.eigh(centred(K))
    return (vectors[:, -count:] * np.sqrt(np.maximum(values[-count:], 0)))[:, ::-1]


# Kernel-JL (004, equation 5): z(x) = G K k(x) / (s √(s r)), with G Gaussian.


def sketched(K: Array, across: Array, is_centred: bool) -> Array:
    """A with z(x) = A(x) Gᵀ / √r: kernel values with the subsample times K / s^1.5."""
    if is_centred:
        across = across - K.mean(axis=0)
        across = across - across.mean(axis=1)[:, None]
        K = centred(K)
    return across @ K / len(K) ** 1.5


# Sampled products and decompositions (000, appendix A): columns drawn by a law, divided by √(c p).


def sampled(A: Array, law: Array, c: int, seed: int) -> Array:
    """C, of c columns of A."""
    drawn = np.random.default_rng(seed).choice(A.shape[1], size=c, p=law)
    return np.asarray(A[:, drawn] / np.sqrt(c * law[drawn]))


def product_variance(A: Array, law: Array, c: int) -> float:
    """E‖AAᵀ - CCᵀ‖_F² = (Σ ‖A_i‖⁴ / p_i - ‖AAᵀ‖_F²) / c, from the proof of theorem 1."""
    norms = np.sum(A**2, axis=0)
    return float((np.sum(norms**2 / law) - np.sum((A @ A.T) ** 2)) / c)


# Bounds of 000 (appendices A and B).


def eta(delta: float | None) -> float:
    return 1.0 if delta is None else 1 + sqrt(8 * log(1 / delta))


def product_bound(A: Array, c: int, delta: float | None = None) -> float:
    """Theorem 1: η ‖A‖_F² / √c."""
    return float(eta(delta) * np.sum(A**2) / sqrt(c))


def svd_bound(A: Array, k: int, c: int, delta: float | None = None) -> float:
    """Theorem 3, with theorem 1: ‖A - A_k‖_F² + 2√k η ‖A‖_F² / √c."""
    return tail(A, k) ** 2 + 2 * sqrt(k) * product_bound(A, c, delta)


def nystrom_bound(K: Array, k: int, c: int, delta: float | None = None) -> float:
    """Theorem 10: ‖K - K_k‖_F + ε tr K with c = 64 k η² / ε⁴."""
    return tail(K, k) + float((64 * k * eta(delta) ** 2 / c) ** 0.25 * np.trace(K))


def d_kernel(K: Array, labels: Array) -> float:
    return float(
        sum(np.mean(K[np.ix_(own, own)] ** 2) * own.sum() for own in labels == _each(labels))
    )


def d_kmeans(X: Array, labels: Array) -> float:
    return float(
        sum(np.sum((X[own] - X[own].mean(axis=0)) ** 2) for own in labels == _each(labels))
    )


def d_kernel_bound(X: Array, labels: Array, gamma: float) -> float:
    """Theorem 12 for the Gaussian kernel: n/2 - 2 η²R² D_kmeans, with η²R² = 2γ/e."""
    return len(X) / 2 - 2 * (2 * gamma / e) * d_kmeans(X, labels)


def _each(labels: Array) -> Array:
    return np.unique(labels)[:, None]


# Bounds of 002.


def block_rank_bound(X: Array, labels: Array, gamma: float, rank: int) -> Array:
    """Theorem 2: 4 C r^(-1/d) √(n_s n_t) min(radius_s, radius_t), with C² = 2γ/e."""
    sizes, radii = [], []
    for own in labels == _each(labels):
        sizes.append(own.sum())
        radii.append(np.linalg.norm(X[own] - X[own].mean(axis=0), axis=1).max())
    factor = 4 * sqrt(2 * gamma / e) * rank ** (-1 / X.shape[1])
    return np.array(
        [
            [factor * sqrt(n * m) * min(a, b) for m, b in zip(sizes, radii, strict=True)]
            for n, a in zip(sizes, radii, strict=True)
        ]
    )


def meka_bound(
    K: Array, labels: Array, rank: int, landmarks: int, delta: float, spectral: bool = False
) -> float:
    """Theorem 3, in the Frobenius norm or the 2-norm."""
    n, count = len(K), len(np.unique(labels))
    k, m = rank / count, landmarks / count
    off = K * (labels[:, None] != labels)
    largest = K.diagonal().max()
    farthest = sqrt(np.max(K.diagonal()[:, None] + K.diagonal() - 2 * K))
    beta = 1 - 1 / (2 * max(m, n - m))
    theta = sqrt((n - m) / (n - 0.5) * log(1 / delta) / beta) * farthest / sqrt(largest)
    values = np.sort(np.abs(np.linalg.eigvalsh(K)))[::-1]
    if spectral:
        sampling = 2 * n / sqrt(landmarks) * largest * (1 + theta)
        return float(values[rank] + sampling + 2 * np.linalg.norm(off, 2))
    sampling = (64 * k / m) ** 0.25 * n * largest * sqrt(1 + theta)
    return float(np.linalg.norm(values[rank:]) + sampling + 2 * np.linalg.norm(off))


# Landmarks that depend on each other (000, proposals).


def by_residuals(K: Array, m: int, rng: np.random.Generator) -> Array:
    """Randomly pivoted Cholesky: each row in proportion to the diagonal that is left over."""
    left, chosen = K.diagonal().copy(), np.zeros(0, dtype=int)
    columns = np.zeros((len(K), 0))
    for _ in range(m):
        i = rng.choice(len(K), p=left / left.sum())
        column = (K[:, i] - columns @ columns[i]) / sqrt(left[i])
        columns, chosen = np.column_stack((columns, column)), np.append(chosen, i)
        left = np.where(left > PRECISION, np.maximum(left - column**2, 0.0), 0.0)
        left[chosen] = 0.0
    return chosen


def by_volume(K: Array, m: int, rng: np.random.Generator) -> Array:
    """A k-DPP: P(S) ∝ det K[S, S] (Kulesza and Taskar, 2012, algorithms 1 and 8)."""
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0) / values[-1]
    table = np.zeros((m + 1, len(K) + 1))  # elementary symmetric polynomials of the first values
    table[0] = 1.0
    for n, value in enumerate(values, start=1):
        table[1:, n] = table[1:, n - 1] + value * table[:-1, n - 1]
    kept, left = [], m
    for n in range(len(K), 0, -1):
        if left and rng.random() < values[n - 1] * table[left - 1, n - 1] / table[left, n]:
            kept.append(n - 1)
            left -= 1
    V, chosen = vectors[:, kept], []
    while V.shape[1]:
        chances = np.sum(V**2, axis=1)
        i = rng.choice(len(K), p=chances / chances.sum())
        chosen.append(i)
        j = int(np.argmax(np.abs(V[i])))
        V = np.delete(V - np.outer(V[:, j], V[i] / V[i, j]), j, axis=1)
        V = np.linalg.qr(V)[0] if V.shape[1] else V
    return np.array(chosen)


# Numbers of landmarks (003).


def leverage(K: Array, gamma: float) -> Array:
    """τ_i(γ) = [K (K + γI)⁻¹]_ii."""
    return np.linalg.solve(K + gamma * np.eye(len(K)), K).diagonal()


def leverage_of(K: Array, dimension: float) -> Array:
    """Leverage scores with the γ at which they sum to this dimension."""
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        wide = np.sum(values / (values + np.exp(middle))) > dimension
        low, high = (middle, high) if wide else (low, middle)
    return np.asarray(vectors**2 @ (values / (values + np.exp(low))))


def landmarks_needed(n: int, size: float, epsilon: float, delta: float) -> int:
    """Lemmas 1 and 3: 12 · size · log(n/δ) / ε², with size n/γ or d_eff(γ)."""
    return ceil(12 * size * log(n / delta) / epsilon**2)


def is_preserving(K: Array, chosen: Array, gamma: float, epsilon: float) -> bool:
    """Definition 2: Π_n - Π_m ≼ γ/(1-ε) (ΦΦᵀ + γΠ_n)⁻¹, on a root Φ of K."""
    values, vectors = np.linalg.eigh(K)
    kept = values > PRECISION * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])  # rows are φ(x_i)
    onto = scipy.linalg.orth(features[chosen].T, rcond=1e-7)
    size = features.shape[1]
    left = np.eye(size) - onto @ onto.T
    right = np.linalg.inv(features.T @ features + gamma * np.eye(size))
    least = np.linalg.eigvalsh(gamma / (1 - epsilon) * right - left)[0]
    return bool(least >= -1e-7)


# Kernel-JL's bounds (004). Σ = K / n, s_A = tr A / ‖A‖, κ = max k(x, x).


def jl_rates(K: Array, s: int, r: int, tau: float) -> tuple[float, float]:
    """The two terms of theorem 1, with its open constant as 1."""
    values = np.maximum(np.linalg.eigvalsh(K), 0.0) / len(K)
    norm, kappa = values[-1], K.diagonal().max()
    cubes, sums = np.sum(values**3) / norm**3, np.sum(values) / norm
    sketch = 3 * norm**3 * (sqrt(2 * cubes) + sqrt(tau)) / sqrt(r)
    return float(sketch), float(28 * norm**2.5 * sqrt(2 * kappa * sums * tau) / sqrt(s))


def jl_sizes(K: Array, tau: float) -> tuple[int, int]:
    """How many rows and features theorem 1 asks for: 6272 κ s_Σ⁵ τ / ‖Σ‖, and max(4 s_Σ³, τ)."""
    values = np.maximum(np.linalg.eigvalsh(K), 0.0) / len(K)
    norm, kappa = values[-1], K.diagonal().max()
    rows = 6272 * kappa * (np.sum(values) / norm) ** 5 * tau / norm
    features = max(4 * np.sum(values**3) / norm**3, tau)
    return ceil(rows * (1 - 1e-12)), ceil(features * (1 - 1e-12))


def outside(K: Array, k: int) -> float:
    """ε of assumption 1: the largest part of a row's squared norm beyond k eigenvectors."""
    values, vectors = np.linalg.eigh(K)
    parts = vectors**2 * np.maximum(values, 0.0)
    return float(np.max(parts[:, :-k].sum(axis=1) / parts.sum(axis=1)))


def jl_distance_bound(K: Array, distance: float, s: int, r: int, tau: float) -> float:
    """(12): λ_1³ ‖f - g‖² and the error of theorem 1."""
    return float((np.linalg.norm(K, 2) / len(K)) ** 3 + sum(jl_rates(K, s, r, tau))) * distance


def jl_separation_bound(K: Array, k: int, apart: float, s: int, r: int, tau: float) -> float:
    """(11): λ_k³ (Δ - 4εκ), less the error of theorem 1 times 4κ."""
    kappa, value = K.diagonal().max(), np.linalg.eigvalsh(K)[-k] / len(K)
    kept = value**3 * (apart - 4 * outside(K, k) * kappa)
    return float(kept - 4 * kappa * sum(jl_rates(K, s, r, tau)))


def jl_means_bound(K: Array, labels: Array, s: int, r: int, tau: float) -> float:
    """(13): λ_1³ (‖μ_1 - μ_2‖² - σ/(π_1 π_2)), less the error of theorem 1 times ‖μ_1 - μ_2‖²."""
    K = centred(K)
    own = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    weights = np.zeros(len(K))
    weights[own[0]], weights[own[1]] = 1 / len(own[0]), -1 / len(own[1])
    between = weights @ K @ weights
    inside = max(np.linalg.norm(centred(K[np.ix_(i, i)]), 2) / len(i) for i in own)
    shares = len(own[0]) * len(own[1]) / len(K) ** 2
    largest = np.linalg.norm(K, 2) / len(K)
    return float(largest**3 * (between - inside / shares) - sum(jl_rates(K, s, r, tau)) * between)
