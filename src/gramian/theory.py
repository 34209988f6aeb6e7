"""The theory behind the approximations, as functions that can be called and checked.

Sources: "000" is the report on kernel approximation after Drineas and Mahoney (2005) and Drineas,
Kannan and Mahoney (2006), "003" is Calandriello and Rosasco, Statistical and computational
trade-offs in kernel k-means (2018). All but :func:`effective_dimension` is for small matrices, in
NumPy and float64. A "gram" is a :class:`gramian.Gram`, a kernel together with rows X, or the
symmetric matrix itself.
"""

from __future__ import annotations

import warnings
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian import _arrays, _linalg, _settings
from gramian._arrays import Array
from gramian._checks import is_real, positive, positive_integer
from gramian._threads import one_blas_thread
from gramian.gram import Gram
from gramian.kernels import Kernel, Precomputed
from gramian.samplers.pivoted import pivoted_cholesky

__all__ = [
    "approximate_product",
    "columns_needed",
    "effective_dimension",
    "is_preserving",
    "kmeans_plus_plus_factor",
    "landmarks_needed",
    "linear_time_svd",
    "nystrom_bound",
    "product_bound",
    "ridge_leverage_scores",
    "svd_bound",
]

CG_TOLERANCE, CG_ITERATIONS = 1e-4, 500


# ---- ridge leverage scores and dictionaries (003)


def ridge_leverage_scores(gram: Any, X: Any = None, *, ridge: float) -> np.ndarray:
    """The exact scores τ_i(γ) = [K (K + γI)⁻¹]_ii of 003, definition 3, from 0 to 1.

    Parameters
    ----------
    gram : Gram, kernel or matrix
        The whole matrix is computed and decomposed, in O(n³) time; beyond the memory budget that
        is refused. There, take a sample of s rows with the ridge γ s/n: its scores are about n/s
        times those rows' own.
    X : array-like, optional
        The rows, where a kernel is given.
    ridge : float
        γ, on the scale of K's eigenvalues (003 takes √n).

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
    gram: Any,
    X: Any = None,
    *,
    ridge: float,
    return_std: bool = False,
    probes: int = 32,
    rng: Any = None,
) -> Any:
    """d_eff(γ) = tr K (K + γI)⁻¹, the sum of the ridge leverage scores (003, definition 3).

    At most min(rank K, tr K / γ). Exact while K is small enough to be kept (``Gram.fits``).
    Beyond, K is never stored: a pivoted Cholesky factor gives most of the trace, and Hutchinson's
    estimator the rest, without bias, from conjugate gradients on random signs. Its standard error
    is measured; without the factor it would be at most √(2 d_eff / probes), with it it is often
    far less. Stopping the iteration adds less than 1e-8 n.

    Parameters
    ----------
    gram : Gram, kernel or matrix
    X : array-like, optional
        The rows, where a kernel is given.
    ridge : float
        γ.
    return_std : bool, default=False
        Whether to return the standard error too; it is 0 where the value is exact.
    probes : int, default=32
        How many vectors of random signs, at least 2.
    rng : Generator, int or None
        Draws the signs and the factor's pivots.

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
    room = _settings.memory_budget() // 4 // (8 * n)
    rank = max(min(int(10 * n**0.5), 2000, room), 1)
    F = pivoted_cholesky(gram, rank, rng, tol=1e-10, dtype=gram.rows.xp.float64).factor
    # Q diag(known) Qᵀ stands for K (K + γI)⁻¹: its trace is known, only the rest is sampled.
    Q, eigenvalues = _linalg.orthonormal_columns(F)
    known = eigenvalues / (eigenvalues + ridge)
    Z = _arrays.like(rng.choice([-1.0, 1.0], size=(n, probes)), Q, dtype=xp.float64)

    def stand_in(V: Array) -> Array:
        return Q @ (known[:, None] * (xp.matrix_transpose(Q) @ V))

    try:
        solution, iterations, left = _linalg.conjugate_gradients(
            lambda V: gram.matmul(V) + ridge * V,
            Z,
            lambda V: (V - stand_in(V)) / ridge,
            tol=CG_TOLERANCE,
            max_iter=CG_ITERATIONS,
        )
    except _linalg.NotPositiveDefiniteError as error:
        raise _indefinite(gram) from error
    if left > CG_TOLERANCE:
        warnings.warn(
            f"effective_dimension stopped after {iterations} iterations at a relative residual of "
            f"{left:.1e}; asked for was {CG_TOLERANCE:.1e}. Its value is too large by up to "
            f"{left**2 * n:.2g}; a larger ridge needs fewer iterations.",
            ConvergenceWarning,
            stacklevel=4,
        )
    # K (K + γI)⁻¹ = I - γ (K + γI)⁻¹. Iterates are optimal, so γ zᵀx is off by ‖residual‖² at most.
    rest = _arrays.to_numpy(xp.sum(Z * (Z - ridge * solution - stand_in(Z)), axis=0))
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
    """How many landmarks m make a γ-preserving dictionary with probability 1 - δ (003).

    Drawn uniformly with replacement, lemma 1: m ≥ 12 κ² (n/γ) log(n/δ) / ε². With an effective
    dimension, drawn in proportion to ridge leverage scores, lemma 3: 12 κ² d_eff(γ) log(n/δ) / ε²,
    where κ² counts as at least 1: scores do not change when K and γ are scaled, nor may m. The
    constant is generous; a number above n says that the lemma promises nothing for fewer rows.

    Parameters
    ----------
    n : int
        Rows.
    ridge : float
        γ.
    kappa : float, default=1.0
        κ, the root of the largest k(x, x).
    epsilon, delta : float
        ε in (0, 1] of :func:`is_preserving`, and the probability δ of failing.
    effective_dimension : float, optional
        d_eff(γ) for the same ridge; see :func:`effective_dimension`.

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
    gram: Any, indices: Any, ridge: float, epsilon: float = 0.5, *, X: Any = None
) -> bool:
    """Whether these rows are a γ-preserving dictionary (003, definition 2).

    That is Π_n - Π_m ≼ γ/(1-ε) (Φ Φᵀ + γ Π_n)⁻¹, with the projections Π_n and Π_m on the span of
    all rows and of the landmarks. On the range of P = Π_n - Π_m it says P Φ Φᵀ P + γ P ≼ γ/(1-ε),
    and P Φ Φᵀ P has the eigenvalues of Nyström's residual: the definition is the same as
    ‖K - K_nm K_mm⁺ K_mn‖₂ ≤ γ ε/(1-ε), which is what is computed here, densely.

    Parameters
    ----------
    gram : Gram, kernel or matrix
    indices : array of int
        The landmarks' row numbers; repetitions change nothing.
    ridge, epsilon : float
        γ > 0, and ε in (0, 1).
    X : array-like, optional
        The rows, where a kernel is given.

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
    chosen = np.unique(_arrays.to_numpy(indices))
    C = _host(gram.columns(chosen))
    eigenvalues, vectors = np.linalg.eigh(C[chosen])
    kept = eigenvalues > _linalg.cutoff(eigenvalues, len(chosen), gram.dtype)
    Z = C @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    residual = _host(gram.dense()) - Z @ Z.T
    return bool(np.linalg.eigvalsh(residual)[-1] <= ridge * epsilon / (1 - epsilon))


# ---- sampled products, singular vectors and Nyström (000, appendix A)


def approximate_product(
    A: Any, B: Any, c: int, probabilities: Any = None, *, rng: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """C and R of c columns and rows with E[C R] = A B (000, appendix A, approximate product).

    Parameters
    ----------
    A : array of shape (m, n)
    B : array of shape (n, p)
    c : int
        How many columns of A and rows of B are drawn, with replacement; each is divided by
        √(c p_i). C R is unbiased where no p_i is 0 that the product needs.
    probabilities : array of shape (n,), optional
        By default p_i ∝ ‖A⁽ⁱ⁾‖ ‖B₍ᵢ₎‖, which make the expected squared error the least.
    rng : Generator, int or None

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


def product_bound(A: Any, B: Any, c: int, beta: float = 1.0, delta: float | None = None) -> float:
    """The bound on ‖A B - C R‖_F of 000, theorem 1: η/√(β c) ‖A‖_F ‖B‖_F.

    In expectation η = 1; with ``delta``, with probability 1 - δ, η = 1 + √((8/β) log(1/δ)). It
    holds where each p_i is at least β times the default probability. 000 states it for B = Aᵀ and
    β = 1; this is the form of Drineas, Kannan and Mahoney.

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
    A: Any, k: int, c: int, probabilities: Any = None, *, rng: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """H_k and σ_1(C) ≥ ... ≥ σ_k(C) from c sampled columns (000, appendix A, approximate SVD).

    H Hᵀ A approximates A; :func:`svd_bound` says how well. C's own decomposition is taken in place
    of that of CᵀC, whose small singular values would be lost to rounding; where C has a rank below
    k, H has fewer columns.

    Parameters
    ----------
    A : array of shape (m, n)
    k, c : int
        The rank, and how many columns are drawn with replacement: k ≤ c.
    probabilities : array of shape (n,), optional
        By default p_i = ‖A⁽ⁱ⁾‖² / ‖A‖_F².
    rng : Generator, int or None

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
    kept = sigma[:k] > _linalg.cutoff(sigma, max(A.shape[0], c))
    return H[:, :k][:, kept], sigma[:k][kept]


def svd_bound(A: Any, k: int, c: int, beta: float = 1.0, delta: float | None = None) -> float:
    """The bound on the *squared* error ‖A - H_k H_kᵀ A‖_F² of 000, theorem 3.

    ‖A - A_k‖_F² + 2√k ‖AAᵀ - CCᵀ‖_F, the last norm bounded by theorem 1: in expectation, or with
    probability 1 - ``delta``. ``beta`` is that of :func:`product_bound`, for B = Aᵀ.

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


def columns_needed(k: int, epsilon: float, delta: float | None = None) -> int:
    """How many columns c Nyström needs for 000, theorem 10: c ≥ 64 k η² / ε⁴.

    In expectation η = 1; with ``delta``, with probability 1 - δ, η = 1 + √(8 log(1/δ)). See
    :func:`nystrom_bound` for what it promises.

    Examples
    --------
    >>> from gramian.theory import columns_needed
    >>> columns_needed(k=2, epsilon=0.5), columns_needed(k=2, epsilon=0.5, delta=0.1)
    (2048, 57354)
    """
    k = positive_integer("columns_needed", "k", k)
    epsilon = _share("columns_needed", "epsilon", epsilon)
    return ceil(64 * k * _eta("columns_needed", delta) ** 2 / epsilon**4)


def nystrom_bound(gram: Any, k: int, c: int, delta: float | None = None, *, X: Any = None) -> float:
    """The bound ‖K - K_k‖_F + ε tr K on Nyström's error ‖K - C W_k⁺ Cᵀ‖_F (000, theorem 10).

    c columns are drawn with replacement and p_i = K_ii / tr K, and scaled by 1/√(c p_i), which
    gives ε = (64 k η² / c)^¼: in expectation, or with probability 1 - ``delta``, as in
    :func:`columns_needed`. The text prints ε Σ K_ii² in place of ε Σ K_ii. Its proof gives the
    latter (theorem 1 and lemma 2 for K = XᵀX, where ‖X‖_F² = tr K), and the former cannot be: it
    does not scale as K does. Where k(x, x) = 1 they are the same.

    Parameters
    ----------
    gram : Gram, kernel or matrix
        All eigenvalues of K are computed, in O(n³).
    k, c : int
        The rank, and the number of columns: k ≤ c.
    delta : float, optional
    X : array-like, optional
        The rows, where a kernel is given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.theory import nystrom_bound
    >>> round(nystrom_bound(np.ones((10, 10)), k=1, c=1024), 6)
    5.0
    """
    k, c = _rank_and_sample("nystrom_bound", k, c)
    epsilon = (64 * k * _eta("nystrom_bound", delta) ** 2 / c) ** 0.25
    gram = _as_gram(gram, X)
    eigenvalues = _not_negative(np.linalg.eigvalsh(_host(gram.dense())), gram)
    tail = eigenvalues[: max(len(eigenvalues) - k, 0)]
    return float(np.linalg.norm(tail) + epsilon * gram.trace())


def kmeans_plus_plus_factor(k: int) -> float:
    """8 (log k + 2): k-means++ costs at most so many times the best clustering, in expectation.

    003, proposition 3, after Arthur and Vassilvitskii; of the seeding alone, before any step.

    Examples
    --------
    >>> from gramian.theory import kmeans_plus_plus_factor
    >>> round(kmeans_plus_plus_factor(10), 2)
    34.42
    """
    return 8 * (log(positive_integer("kmeans_plus_plus_factor", "k", k)) + 2)


# ---- what they share


def _as_gram(source: Any, X: Any) -> Gram:
    if isinstance(source, Gram) and source.symmetric and X is None:
        return source
    is_kernel = isinstance(source, str | Kernel) or callable(source)
    if isinstance(source, Gram) or is_kernel != (X is not None):
        raise ValueError(
            "Expected a Gram of rows with themselves, a kernel together with rows X, or a "
            f"symmetric matrix; got {source!r:.100} {'without' if X is None else 'and'} X."
        )
    return Gram(source, X) if is_kernel else Gram(Precomputed().fit(source), source)


def _host(K: Array) -> np.ndarray:
    return np.asarray(_arrays.to_numpy(K), dtype=np.float64)


def _not_negative(eigenvalues: np.ndarray, gram: Gram) -> np.ndarray:
    """Eigenvalues of K with 0 for rounding; an error where one is negative beyond it."""
    if eigenvalues.min() < -sqrt(_arrays.eps(gram.dtype)) * np.abs(eigenvalues).max():
        raise _indefinite(gram)
    rounding = _linalg.cutoff(eigenvalues, len(eigenvalues))
    return np.where(eigenvalues > rounding, eigenvalues, 0.0)


def _indefinite(gram: Gram) -> ValueError:
    return ValueError(
        f"K must be positive semi-definite; {gram.kernel!r} is indefinite on these rows. Use a "
        "positive semi-definite kernel such as RBF."
    )


def _share(owner: str, name: str, value: Any, *, below: bool = False) -> float:
    """value in (0, 1], or below 1."""
    if not is_real(value) or not 0 < value <= 1 or (below and value == 1):
        interval = "(0, 1)" if below else "(0, 1]"
        raise ValueError(f"{name} of {owner} must be a number in {interval}; got {value!r}.")
    return float(value)


def _eta(owner: str, delta: float | None, beta: float = 1.0) -> float:
    """What the high-probability form of a bound is larger by."""
    if delta is None:
        return 1.0
    return 1 + sqrt(8 / beta * log(1 / _share(owner, "delta", delta, below=True)))


def _rank_and_sample(owner: str, k: Any, c: Any) -> tuple[int, int]:
    k, c = positive_integer(owner, "k", k), positive_integer(owner, "c", c)
    if k > c:
        raise ValueError(f"k of {owner} must be at most c, the sampled columns; got {k=} and {c=}.")
    return k, c


def _matrix(owner: str, name: str, A: Any) -> np.ndarray:
    A = _host(A)
    if A.ndim != 2 or not A.size or not np.isfinite(A).all():
        raise ValueError(
            f"{name} of {owner} must be a matrix of finite numbers; got shape {A.shape}"
            f"{'' if np.isfinite(A).all() else ' with NaN or infinity'}."
        )
    return A


def _factors(owner: str, A: Any, B: Any) -> tuple[np.ndarray, np.ndarray]:
    A, B = _matrix(owner, "A", A), _matrix(owner, "B", B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(
            f"B of {owner} must have a row for each column of A; got shapes {A.shape}, {B.shape}."
        )
    return A, B


def _draw(
    owner: str, sizes: np.ndarray, c: int, probabilities: Any, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """c indices with replacement, by default in proportion to ``sizes``, and 1/√(c p) of each."""
    n, total = len(sizes), sizes.sum()
    if probabilities is None:
        p = sizes / total if total > 0 else np.full(n, 1 / n)
    else:
        p = _host(probabilities)
        if p.shape != (n,):
            raise ValueError(f"probabilities of {owner} must have shape ({n},); got {p.shape}.")
        if not (p >= 0).all() or abs(p.sum() - 1) > 1e-8:
            raise ValueError(
                f"probabilities of {owner} must be from 0 up and sum to 1; got numbers from "
                f"{p.min():.3g} that sum to {p.sum():.10g}."
            )
        p = p / p.sum()
    drawn = np.random.default_rng(rng).choice(n, size=c, p=p)
    return drawn, 1 / np.sqrt(c * p[drawn])
