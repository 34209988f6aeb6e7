"""Sampled matrix products and the linear-time SVD, with their bounds (000, appendix A)."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.backend.checks import is_real, positive_integer
from gramian.backend.typing import ArrayLike, RandomState

__all__ = [
    "approximate_product",
    "linear_time_svd",
    "product_bound",
    "svd_bound",
]


def approximate_product(
    A: ArrayLike, B: ArrayLike, c: int, probabilities: ArrayLike = None, *, rng: RandomState = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sample c columns C and rows R with E[C R] = A B (000, appendix A, approximate product).

    Parameters
    ----------
    A : array of shape (m, n)
    B : array of shape (n, p)
    c : int
        Number of columns of A and rows of B to draw with replacement; each is divided by √(c p_i).
        C R is unbiased if p_i > 0 for every term of the product.
    probabilities : array of shape (n,), optional
        By default p_i ∝ ‖A⁽ⁱ⁾‖ ‖B₍ᵢ₎‖, which minimises the expected squared error.
    rng : Generator, int or None

    See Also
    --------
    product_bound : bounds its error.

    References
    ----------
    - Drineas, Kannan and Mahoney, Fast Monte Carlo algorithms for matrices I and II, 2006 (000).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import approximate_product, product_bound
    >>> A = np.random.default_rng(0).normal(size=(5, 1000))
    >>> C, R = approximate_product(A, A.T, 200, rng=0)
    >>> C.shape, R.shape
    ((5, 200), (200, 5))
    >>> bool(np.linalg.norm(A @ A.T - C @ R) < product_bound(A, A.T, 200))
    True
    """
    A, B = _factors("approximate_product", A, B)
    c = positive_integer("approximate_product", "c", c)
    norms = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=1)
    drawn, scale = _draw("approximate_product", norms, c, probabilities, rng)
    return A[:, drawn] * scale, B[drawn] * scale[:, None]


def product_bound(
    A: ArrayLike, B: ArrayLike, c: int, beta: float = 1.0, delta: float | None = None
) -> float:
    """Bound η/√(β c) ‖A‖_F ‖B‖_F on ‖A B - C R‖_F (000, theorem 1).

    In expectation, η = 1; with ``delta``, with probability 1 - δ, η = 1 + √((8/β) log(1/δ)). It
    holds if each p_i is at least β times the default probability. 000 states it for B = Aᵀ and
    β = 1; this is the form of Drineas, Kannan and Mahoney.

    Parameters
    ----------
    A : array of shape (m, n)
    B : array of shape (n, p)
    c : int
        Number of columns and rows drawn.
    beta : float, default=1.0
    delta : float, optional

    See Also
    --------
    approximate_product : the product that it bounds.

    References
    ----------
    - Drineas, Kannan and Mahoney, Fast Monte Carlo algorithms for matrices I and II, 2006 (000).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import product_bound
    >>> product_bound(np.eye(4), np.eye(4), c=100)
    0.4
    """
    A, B = _factors("product_bound", A, B)
    c = positive_integer("product_bound", "c", c)
    beta = _share("product_bound", "beta", beta)
    size = np.linalg.norm(A) * np.linalg.norm(B)
    return float(_eta("product_bound", delta, beta) * size / sqrt(beta * c))


def linear_time_svd(
    A: ArrayLike, k: int, c: int, probabilities: ArrayLike = None, *, rng: RandomState = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute H_k and σ_1(C) ≥ ... ≥ σ_k(C) from c sampled columns (000, appendix A).

    H Hᵀ A approximates A; :func:`svd_bound` bounds the error. C itself is decomposed rather than
    CᵀC, which would lose small singular values to rounding. If C has a rank below k, H has fewer
    columns.

    Parameters
    ----------
    A : array of shape (m, n)
    k, c : int
        The rank, and the number of columns drawn with replacement: k ≤ c.
    probabilities : array of shape (n,), optional
        By default p_i = ‖A⁽ⁱ⁾‖² / ‖A‖_F².
    rng : Generator, int or None

    See Also
    --------
    svd_bound : bounds its error.

    References
    ----------
    - Drineas, Kannan and Mahoney, Fast Monte Carlo algorithms for matrices I and II, 2006 (000).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import linear_time_svd
    >>> A = np.outer([3.0, 4.0], np.ones(100))
    >>> H, sigma = linear_time_svd(A, k=1, c=10, rng=0)
    >>> abs(H).round(6).ravel(), sigma.round(6)
    (array([0.6, 0.8]), array([50.]))
    """
    A = _matrix("linear_time_svd", "A", A)
    k, c = _rank_and_sample("linear_time_svd", k, c)
    norms = np.linalg.norm(A, axis=0) ** 2
    drawn, scale = _draw("linear_time_svd", norms, c, probabilities, rng)
    H, sigma, _ = np.linalg.svd(A[:, drawn] * scale, full_matrices=False)
    kept = sigma[:k] > linalg.cutoff(sigma, max(A.shape[0], c))
    return H[:, :k][:, kept], sigma[:k][kept]


def svd_bound(A: ArrayLike, k: int, c: int, beta: float = 1.0, delta: float | None = None) -> float:
    """Bound on the *squared* error ‖A - H_k H_kᵀ A‖_F² (000, theorem 3).

    ‖A - A_k‖_F² + 2√k ‖AAᵀ - CCᵀ‖_F, where theorem 1 bounds the last norm: in expectation, or with
    probability 1 - ``delta``. ``beta`` is that of :func:`product_bound`, for B = Aᵀ.

    Parameters
    ----------
    A : array of shape (m, n)
    k, c : int
        The rank, and the number of columns drawn.
    beta : float, default=1.0
    delta : float, optional

    See Also
    --------
    linear_time_svd : the decomposition that it bounds.

    References
    ----------
    - Drineas, Kannan and Mahoney, Fast Monte Carlo algorithms for matrices I and II, 2006 (000).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import svd_bound
    >>> svd_bound(np.diag([3.0, 1.0]), k=1, c=400)
    2.0
    """
    A = _matrix("svd_bound", "A", A)
    k, c = _rank_and_sample("svd_bound", k, c)
    tail = np.sum(np.linalg.svd(A, compute_uv=False)[k:] ** 2)
    return float(tail + 2 * sqrt(k) * product_bound(A, A.T, c, beta, delta))


def _eta(owner: str, delta: float | None, beta: float = 1.0) -> float:
    """Return the factor η of the high-probability form of a bound."""
    if delta is None:
        return 1.0
    return 1 + sqrt(8 / beta * log(1 / _share(owner, "delta", delta, below=True)))


def _share(owner: str, name: str, value: float, *, below: bool = False) -> float:
    """Check that a value is in (0, 1], or in (0, 1)."""
    if not is_real(value) or not 0 < value <= 1 or (below and value == 1):
        interval = "(0, 1)" if below else "(0, 1]"
        raise ValueError(f"{name} of {owner} must be a number in {interval}; got {value!r}.")
    return float(value)


def _rank_and_sample(owner: str, k: int, c: int) -> tuple[int, int]:
    k, c = positive_integer(owner, "k", k), positive_integer(owner, "c", c)
    if k > c:
        raise ValueError(f"k of {owner} must be at most c, the sampled columns; got {k=} and {c=}.")
    return k, c


def _matrix(owner: str, name: str, A: ArrayLike) -> np.ndarray:
    A = _host(A)
    if A.ndim != 2 or not A.size or not np.isfinite(A).all():
        raise ValueError(
            f"{name} of {owner} must be a matrix of finite numbers; got shape {A.shape}"
            f"{'' if np.isfinite(A).all() else ' with NaN or infinity'}."
        )
    return A


def _factors(owner: str, A: ArrayLike, B: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    A, B = _matrix(owner, "A", A), _matrix(owner, "B", B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(
            f"B of {owner} must have a row for each column of A; got shapes {A.shape}, {B.shape}."
        )
    return A, B


def _draw(
    owner: str, sizes: np.ndarray, c: int, probabilities: ArrayLike, rng: RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw c indices with replacement, by default in proportion to ``sizes``, with 1/√(c p)."""
    n, total = len(sizes), sizes.sum()
    if probabilities is None:
        p = sizes / total if total > 0 else np.full(n, 1 / n)
    else:
        p = _host(probabilities)
        if p.shape != (n,):
            raise ValueError(f"probabilities of {owner} must have shape ({n},); got {p.shape}.")
        if not (p >= 0).all() or abs(p.sum() - 1) > 1e-8:
            raise ValueError(
                f"probabilities of {owner} must be non-negative and sum to 1; got numbers from "
                f"{p.min():.3g} that sum to {p.sum():.10g}."
            )
        p = p / p.sum()
    drawn = np.random.default_rng(rng).choice(n, size=c, p=p)
    return drawn, 1 / np.sqrt(c * p[drawn])


def _host(K: Array) -> np.ndarray:
    return np.asarray(array_ops.to_numpy(K), dtype=np.float64)
