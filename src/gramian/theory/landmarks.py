"""How many landmarks are needed: leverage scores and effective dimension (003)."""

from __future__ import annotations

import warnings
from math import ceil, log, sqrt
from typing import Any, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive, positive_integer
from gramian.backend.threads import one_blas_thread
from gramian.backend.typing import ArrayLike, Indices, RandomState
from gramian.backend.wording import counted
from gramian.kernels import Kernel, Precomputed
from gramian.kernels.base import KernelLike
from gramian.matrices.gram import Gram
from gramian.samplers.pivoted import pivoted_cholesky
from gramian.theory.sketching import _host, _share

__all__ = [
    "effective_dimension",
    "is_preserving",
    "landmarks_needed",
    "ridge_leverage_scores",
]

CG_TOLERANCE, CG_ITERATIONS = 1e-4, 500

# A Gram, a kernel (together with rows X), or a symmetric matrix of shape (n, n).
GramLike: TypeAlias = "Gram | KernelLike | ArrayLike"


def ridge_leverage_scores(gram: GramLike, X: ArrayLike = None, *, ridge: float) -> np.ndarray:
    """Exact ridge leverage scores τ_i(γ) = [K (K + γI)⁻¹]_ii, from 0 to 1 (003, definition 3).

    Parameters
    ----------
    gram : Gram, kernel or matrix
        The whole matrix is computed and decomposed in O(n³) time, which is an error beyond the
        memory budget. In that case use a sample of s rows with the ridge γ s/n: its scores are
        about n/s times the scores of these rows.
    X : array-like, optional
        The rows, if ``gram`` is a kernel.
    ridge : float
        γ, on the scale of K's eigenvalues (003 uses √n).

    See Also
    --------
    effective_dimension : their sum.
    gramian.LeverageScores : draws landmarks by them.

    References
    ----------
    - Calandriello and Rosasco, Trade-offs in kernel k-means, NeurIPS 2018 (003).

    Examples
    --------
    >>> from gramian.theory import ridge_leverage_scores
    >>> ridge_leverage_scores("linear", [[1.0], [1.0], [2.0]], ridge=2.0)
    array([0.125, 0.125, 0.5  ])
    """
    ridge = positive("ridge_leverage_scores", "ridge", ridge)
    gram = _as_gram(gram, X)
    eigenvalues, vectors = np.linalg.eigh(_host(gram.dense()))
    eigenvalues = _not_negative(eigenvalues, gram)
    return np.asarray(vectors**2 @ (eigenvalues / (eigenvalues + ridge)))


def effective_dimension(
    gram: GramLike,
    X: ArrayLike = None,
    *,
    ridge: float,
    return_std: bool = False,
    probes: int = 32,
    rng: RandomState = None,
) -> Any:
    """d_eff(γ) = tr K (K + γI)⁻¹, the sum of the ridge leverage scores (003, definition 3).

    It is at most min(rank K, tr K / γ). It is exact if K is small enough to keep (``Gram.fits``).
    Otherwise K is never stored: a pivoted Cholesky factor gives most of the trace, and Hutchinson's
    estimator gives an unbiased estimate of the rest, from conjugate gradients on random signs. The
    standard error is measured; without the factor it would be at most √(2 d_eff / probes), with the
    factor it is often far smaller. Stopping the iteration adds less than 1e-8 n.

    Parameters
    ----------
    gram : Gram, kernel or matrix
    X : array-like, optional
        The rows, if ``gram`` is a kernel.
    ridge : float
        γ.
    return_std : bool, default=False
        Whether to also return the standard error; it is 0 if the value is exact.
    probes : int, default=32
        Number of vectors of random signs, at least 2.
    rng : Generator, int or None
        Draws the signs and the pivots of the factor.

    See Also
    --------
    ridge_leverage_scores : the scores that it sums.
    landmarks_needed : the number of landmarks that follows.

    References
    ----------
    - Calandriello and Rosasco, Trade-offs in kernel k-means, NeurIPS 2018 (003).

    Examples
    --------
    >>> from gramian.theory import effective_dimension
    >>> effective_dimension([[3.0, 0.0], [0.0, 1.0]], ridge=1.0, return_std=True)
    (1.25, 0.0)
    """
    ridge = positive("effective_dimension", "ridge", ridge)
    if positive_integer("effective_dimension", "probes", probes) < 2:
        raise ValueError(f"probes of effective_dimension must be at least 2; got {probes!r}.")
    gram = _as_gram(gram, X)
    if gram.fits():
        eigenvalues = _not_negative(np.linalg.eigvalsh(_host(gram.dense())), gram)
        value, std = float(np.sum(eigenvalues / (eigenvalues + ridge))), 0.0
    else:
        value, std = _hutchinson(gram, ridge, probes, np.random.default_rng(rng))
    return (value, std) if return_std else value


@one_blas_thread()
def _hutchinson(
    gram: Gram, ridge: float, probes: int, rng: np.random.Generator
) -> tuple[float, float]:
    xp, n = gram.rows.xp, gram.shape[0]
    room = config.memory_budget() // 4 // (8 * n)
    rank = max(min(int(10 * n**0.5), 2000, room), 1)
    F = pivoted_cholesky(gram, rank, rng, tol=1e-10, dtype=gram.rows.xp.float64).factor
    # Q diag(known) Qᵀ approximates K (K + γI)⁻¹: its trace is known, only the rest is sampled.
    Q, eigenvalues = linalg.orthonormal_columns(F)
    known = eigenvalues / (eigenvalues + ridge)
    Z = array_ops.like(rng.choice([-1.0, 1.0], size=(n, probes)), Q, dtype=xp.float64)

    def stand_in(V: Array) -> Array:
        return Q @ (known[:, None] * (xp.matrix_transpose(Q) @ V))

    try:
        solution, iterations, left = linalg.conjugate_gradients(
            lambda V: gram.matmul(V) + ridge * V,
            Z,
            lambda V: (V - stand_in(V)) / ridge,
            tol=CG_TOLERANCE,
            max_iter=CG_ITERATIONS,
        )
    except linalg.NotPositiveDefiniteError as error:
        raise _indefinite(gram) from error
    if left > CG_TOLERANCE:
        warnings.warn(
            f"effective_dimension stopped after {counted(iterations, 'iteration')} at a relative "
            f"residual of {left:.1e}; requested {CG_TOLERANCE:.1e}. The result is too large by "
            f"up to {left**2 * n:.2g}; a larger ridge needs fewer iterations.",
            ConvergenceWarning,
            stacklevel=4,
        )
    # K (K + γI)⁻¹ = I - γ (K + γI)⁻¹. Iterates are optimal, so γ zᵀx is off by ‖residual‖² at most.
    rest = array_ops.to_numpy(xp.sum(Z * (Z - ridge * solution - stand_in(Z)), axis=0))
    return float(xp.sum(known)) + float(rest.mean()), float(rest.std(ddof=1) / sqrt(probes))


def landmarks_needed(
    n: int,
    *,
    ridge: float,
    kappa: float = 1.0,
    epsilon: float = 0.5,
    delta: float = 0.05,
    effective_dimension: float | None = None,
) -> int:
    """Number of landmarks m for a γ-preserving dictionary with probability 1 - δ (003).

    For landmarks drawn uniformly with replacement, lemma 1: m ≥ 12 κ² (n/γ) log(n/δ) / ε². With an
    effective dimension, for landmarks drawn in proportion to ridge leverage scores, lemma 3:
    12 κ² d_eff(γ) log(n/δ) / ε², where κ² counts as at least 1: scores do not change when K and γ
    are scaled, so m must not either. The constant is generous; a number above n means that the
    lemma guarantees nothing for fewer rows.

    Parameters
    ----------
    n : int
        Number of rows.
    ridge : float
        γ.
    kappa : float, default=1.0
        κ, the square root of the largest k(x, x).
    epsilon, delta : float
        ε in (0, 1] of :func:`is_preserving`, and the failure probability δ.
    effective_dimension : float, optional
        d_eff(γ) for the same ridge; see :func:`effective_dimension`.

    See Also
    --------
    effective_dimension : makes the number smaller.
    is_preserving : whether given landmarks do.

    References
    ----------
    - Calandriello and Rosasco, Trade-offs in kernel k-means, NeurIPS 2018 (003).

    Examples
    --------
    >>> from gramian.theory import landmarks_needed
    >>> landmarks_needed(10**6, ridge=10**3)
    806940
    >>> landmarks_needed(10**6, ridge=10**3, effective_dimension=25.0)
    20174
    """
    owner = "landmarks_needed"
    rows, square = positive_integer(owner, "n", n), positive(owner, "kappa", kappa) ** 2
    size = square * rows / positive(owner, "ridge", ridge)
    if effective_dimension is not None:
        size = max(square, 1.0) * positive(owner, "effective_dimension", effective_dimension)
    epsilon, delta = _share(owner, "epsilon", epsilon), _share(owner, "delta", delta, below=True)
    return max(1, ceil(12 * size * log(rows / delta) / epsilon**2))


def is_preserving(
    gram: GramLike, indices: Indices, ridge: float, epsilon: float = 0.5, *, X: ArrayLike = None
) -> bool:
    """Whether these rows are a γ-preserving dictionary (003, definition 2).

    This means Π_n - Π_m ≼ γ/(1-ε) (Φ Φᵀ + γ Π_n)⁻¹, where Π_n and Π_m project on the span of all
    rows and of the landmarks. On the range of P = Π_n - Π_m it says P Φ Φᵀ P + γ P ≼ γ/(1-ε), and
    P Φ Φᵀ P has the eigenvalues of Nyström's residual. So the definition is equivalent to
    ‖K - K_nm K_mm⁺ K_mn‖₂ ≤ γ ε/(1-ε), which is computed here with dense matrices.

    Parameters
    ----------
    gram : Gram, kernel or matrix
    indices : array of int
        Row numbers of the landmarks; duplicates have no effect.
    ridge, epsilon : float
        γ > 0, and ε in (0, 1).
    X : array-like, optional
        The rows, if ``gram`` is a kernel.

    See Also
    --------
    landmarks_needed : the number of landmarks that is enough.

    References
    ----------
    - Calandriello and Rosasco, Trade-offs in kernel k-means, NeurIPS 2018 (003).

    Examples
    --------
    >>> from gramian import Gram, RBF
    >>> from gramian.theory import is_preserving
    >>> gram = Gram(RBF(1.0), [[0.0], [0.1], [5.0], [5.1]])
    >>> is_preserving(gram, [0, 2], ridge=0.5), is_preserving(gram, [0, 1], ridge=0.5)
    (True, False)
    """
    ridge = positive("is_preserving", "ridge", ridge)
    epsilon = _share("is_preserving", "epsilon", epsilon, below=True)
    gram = _as_gram(gram, X)
    chosen = np.unique(array_ops.to_numpy(indices))
    C = _host(gram.columns(chosen))
    eigenvalues, vectors = np.linalg.eigh(C[chosen])
    kept = eigenvalues > linalg.cutoff(eigenvalues, len(chosen), gram.dtype)
    Z = C @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    residual = _host(gram.dense()) - Z @ Z.T
    return bool(np.linalg.eigvalsh(residual)[-1] <= ridge * epsilon / (1 - epsilon))


def _as_gram(source: GramLike, X: ArrayLike) -> Gram:
    if isinstance(source, Gram) and source.symmetric and X is None:
        return source
    is_kernel = isinstance(source, str | Kernel) or callable(source)
    if isinstance(source, Gram) or is_kernel != (X is not None):
        raise ValueError(
            "Expected a Gram of rows with themselves, a kernel together with rows X, or a "
            f"symmetric matrix; got {source!r:.100} {'without' if X is None else 'and'} X."
        )
    return Gram(source, X) if is_kernel else Gram(Precomputed().fit(source), source)


def _not_negative(eigenvalues: np.ndarray, gram: Gram) -> np.ndarray:
    """Return the eigenvalues of K with rounding errors set to 0; raise an error if K is not PSD."""
    if eigenvalues.min() < -sqrt(array_ops.eps(gram.dtype)) * np.abs(eigenvalues).max():
        raise _indefinite(gram)
    rounding = linalg.cutoff(eigenvalues, len(eigenvalues))
    return np.where(eigenvalues > rounding, eigenvalues, 0.0)


def _indefinite(gram: Gram) -> ValueError:
    return ValueError(
        f"K must be positive semi-definite; {gram.kernel!r} is indefinite on these rows. Use a "
        "positive semi-definite kernel such as RBF."
    )
