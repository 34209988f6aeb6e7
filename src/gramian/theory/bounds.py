"""What landmarks, columns and first centres guarantee (000, theorem 10; 003)."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from gramian.backend.checks import positive, positive_integer
from gramian.backend.typing import ArrayLike
from gramian.theory.landmarks import GramLike, _as_gram, _not_negative
from gramian.theory.sketching import _eta, _host, _rank_and_sample, _share

__all__ = ["clustering_bound", "columns_needed", "kmeans_plus_plus_factor", "nystrom_bound"]


def clustering_bound(
    n: int, k: int, *, ridge: float, effective_dimension: float, epsilon: float = 0.5
) -> float:
    """Bound min(k, d_eff(γ)) γ / ((1 - ε) n) on what landmarks cost a clustering (003, lemma 2).

    W(C) is the mean squared distance of the n rows to their nearest of k centres. The best centres
    in the span of a γ-preserving dictionary have a W that exceeds that of the best centres of all
    by at most this. :func:`is_preserving` and :func:`landmarks_needed` say which dictionaries are
    preserving.

    Parameters
    ----------
    n, k : int
        Numbers of rows and of clusters.
    ridge : float
        γ.
    effective_dimension : float
        d_eff(γ) for the same ridge; see :func:`effective_dimension`.
    epsilon : float, default=0.5
        ε in (0, 1) of :func:`is_preserving`.

    See Also
    --------
    landmarks_needed : how many landmarks make a dictionary preserving.

    References
    ----------
    - D. Calandriello and L. Rosasco, Statistical and computational trade-offs in kernel k-means,
      NeurIPS 2018, lemma 2.

    Examples
    --------
    >>> from gramian.theory import clustering_bound
    >>> clustering_bound(1000, 10, ridge=5.0, effective_dimension=40.0)
    0.1
    """
    owner = "clustering_bound"
    n, k = positive_integer(owner, "n", n), positive_integer(owner, "k", k)
    ridge = positive(owner, "ridge", ridge)
    least = min(k, positive(owner, "effective_dimension", effective_dimension))
    return least * ridge / ((1 - _share(owner, "epsilon", epsilon, below=True)) * n)


def columns_needed(k: int, epsilon: float, delta: float | None = None) -> int:
    """Number of columns c ≥ 64 k η² / ε⁴ that Nyström needs for 000, theorem 10.

    In expectation, η = 1; with ``delta``, with probability 1 - δ, η = 1 + √(8 log(1/δ)).

    Parameters
    ----------
    k : int
    epsilon : float
    delta : float, optional

    See Also
    --------
    nystrom_bound : the guarantee.

    References
    ----------
    - Drineas and Mahoney, On the Nyström method for approximating a Gram matrix, 2005 (000).

    Examples
    --------
    >>> from gramian.theory import columns_needed
    >>> columns_needed(k=2, epsilon=0.5), columns_needed(k=2, epsilon=0.5, delta=0.1)
    (2048, 57354)
    """
    k = positive_integer("columns_needed", "k", k)
    epsilon = _share("columns_needed", "epsilon", epsilon)
    return ceil(64 * k * _eta("columns_needed", delta) ** 2 / epsilon**4)


def nystrom_bound(
    gram: GramLike, k: int, c: int, delta: float | None = None, *, X: ArrayLike = None
) -> float:
    """Bound ‖K - K_k‖_F + ε tr K on Nyström's error ‖K - C W_k⁺ Cᵀ‖_F (000, theorem 10).

    c columns are drawn with replacement, with probabilities p_i = K_ii / tr K, and scaled by
    1/√(c p_i). This gives ε = (64 k η² / c)^¼: in expectation, or with probability 1 - ``delta``,
    as in :func:`columns_needed`. The report prints ε Σ K_ii² instead of ε Σ K_ii. Its proof gives
    the latter (theorem 1 and lemma 2 for K = XᵀX, where ‖X‖_F² = tr K), and the former is
    impossible, because it does not scale like K. If k(x, x) = 1 they are equal.

    Parameters
    ----------
    gram : Gram, kernel or matrix
        All eigenvalues of K are computed, in O(n³).
    k, c : int
        The rank, and the number of columns: k ≤ c.
    delta : float, optional
    X : array-like, optional
        The rows, if ``gram`` is a kernel.

    See Also
    --------
    columns_needed : the number of columns for a given error.
    gramian.relative_error : the error itself.

    References
    ----------
    - Drineas and Mahoney, On the Nyström method for approximating a Gram matrix, 2005 (000).

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
    """8 (log k + 2): the expected cost of k-means++ is at most this times the best clustering's.

    Arthur and Vassilvitskii (2007), cited as proposition 3 of 003 (Calandriello and Rosasco, 2018);
    for the seeding alone, before any iteration.

    Parameters
    ----------
    k : int
        The number of clusters.

    See Also
    --------
    gramian.KernelKMeans : starts with k-means++.

    Examples
    --------
    >>> from gramian.theory import kmeans_plus_plus_factor
    >>> round(kmeans_plus_plus_factor(10), 2)
    34.42
    """
    return 8 * (log(positive_integer("kmeans_plus_plus_factor", "k", k)) + 2)
