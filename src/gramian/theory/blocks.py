"""Why rows that are close together form good blocks, and what MEKA guarantees (002; 000, B)."""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, positive, positive_integer
from gramian.backend.threads import one_blas_thread
from gramian.backend.typing import ArrayLike, RandomState
from gramian.backend.wording import counted
from gramian.kernels import RBF, Kernel, as_kernel
from gramian.kernels.base import KernelLike
from gramian.matrices.gram import Gram
from gramian.rows import Rows, as_rows, even_spans
from gramian.theory.landmarks import _not_negative
from gramian.theory.sketching import _host, _share

__all__ = ["block_rank_bound", "d_kernel", "d_kernel_bound", "d_kmeans", "meka_bound"]

LEAST_SAMPLE = 3  # rows of a block: the jackknife needs at least three


def d_kernel(
    kernel: KernelLike,
    X: ArrayLike,
    labels: ArrayLike,
    *,
    max_rows: int | None = 2000,
    return_std: bool = False,
    rng: RandomState = None,
) -> Any:
    """D_kernel = Σ_s 1/|V_s| Σ_{i,j in V_s} k(x_i, x_j)²: how much of K the blocks V_s hold.

    The larger it is, the less BKA drops; see :func:`d_kernel_bound`. (002, section 6.1; 000,
    notation 11.) Blocks with up to ``max_rows`` rows are summed exactly. For larger blocks, the
    diagonal is summed and the rest is estimated without bias from the pairs among ``max_rows``
    rows. This takes at most n + Σ_s min(|V_s|, max_rows)² kernel values.

    Parameters
    ----------
    kernel : Kernel, str or callable
        With numbers as parameters, or fitted.
    X : array-like of n rows
    labels : array of shape (n,)
        The block of each row.
    max_rows : int or None, default=2000
        At least 3; None uses all pairs in each block.
    return_std : bool, default=False
        Whether to also return the standard error; it is 0 if the value is exact.
    rng : Generator, int or None
        Samples the rows of large blocks.

    See Also
    --------
    d_kernel_bound : a lower bound.

    References
    ----------
    - Drineas and Mahoney, On the Nyström method for approximating a Gram matrix, 2005 (000).
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from gramian import RBF
    >>> from gramian.theory import d_kernel
    >>> X = [[0.0], [0.1], [5.0], [5.1]]
    >>> round(d_kernel(RBF(1.0), X, [0, 0, 1, 1]), 2), round(d_kernel(RBF(1.0), X, [0, 1, 0, 1]), 2)
    (3.96, 2.0)
    """
    if max_rows is not None and positive_integer("d_kernel", "max_rows", max_rows) < LEAST_SAMPLE:
        raise ValueError(
            f"max_rows of d_kernel must be at least {LEAST_SAMPLE}, or None; got {max_rows!r}."
        )
    gram, generator = Gram(kernel, X), np.random.default_rng(rng)
    value = variance = 0.0
    for numbers in members("d_kernel", labels, gram.shape[0]):
        if max_rows is None or len(numbers) <= max_rows:
            value += _mean_of_squares(gram, numbers)
            continue
        sample = np.sort(generator.choice(numbers, size=max_rows, replace=False))
        estimate, spread = _sampled_mean_of_squares(gram, numbers, sample)
        value, variance = value + estimate, variance + spread
    return (value, sqrt(variance)) if return_std else value


def _mean_of_squares(gram: Gram, numbers: np.ndarray) -> float:
    n = len(numbers)
    room = config.memory_budget() // 4 // (16 * n)
    spans = even_spans(0, n, max(1, min(n, room)))
    squares = (_host(gram.block(numbers[i:j], numbers)) ** 2 for i, j in spans)
    return float(sum(block.sum() for block in squares)) / n


def _sampled_mean_of_squares(
    gram: Gram, numbers: np.ndarray, sample: np.ndarray
) -> tuple[float, float]:
    """Estimate the value of a block from some of its rows, with a jackknife variance.

    Pairs share rows, so the jackknife leaves out one row at a time.
    """
    n, s = len(numbers), len(sample)
    K = _host(gram.block(sample, sample))
    by_row = (K**2).sum(axis=1) - K.diagonal() ** 2
    total = by_row.sum()
    without = (total - 2 * by_row) / ((s - 1) * (s - 2))
    spread = (s - 1) / s * ((without - without.mean()) ** 2).sum() * (1 - s / n)
    on_diagonal = (_host(array_ops.take_rows(gram.diag(), numbers)) ** 2).mean()
    return float(on_diagonal + (n - 1) * total / (s * (s - 1))), float((n - 1) ** 2 * spread)


def d_kmeans(X: ArrayLike, labels: ArrayLike) -> float:
    """D_kmeans = Σ_s Σ_{i in V_s} ‖x_i - m_s‖², the k-means objective, with block means m_s.

    Takes two passes over the rows. (002, theorem 1; 000, theorem 12.)

    Parameters
    ----------
    X : array-like of shape (n, d)
    labels : array-like of shape (n,)
        The block of each row.

    See Also
    --------
    d_kernel_bound : the bound in which it enters.

    References
    ----------
    - Drineas and Mahoney, On the Nyström method for approximating a Gram matrix, 2005 (000).
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from gramian.theory import d_kmeans
    >>> d_kmeans([[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1])
    4.0
    """
    rows = as_rows(X)
    blocks = members("d_kmeans", labels, rows.shape[0])
    return float(sum(_from_the_mean(rows, numbers).sum() for numbers in blocks))


def d_kernel_bound(
    kernel: KernelLike, X: ArrayLike, labels: ArrayLike, *, lipschitz: float | None = None
) -> float:
    """Lower bound n f(0)²/2 - 2 (ηR)² D_kmeans on D_kernel (002, theorem 1; 000, theorem 12).

    k-means makes :func:`d_kmeans` small, so its blocks hold much of K. The bound applies to kernels
    k(x, y) = f(η(x - y)), where R is the largest slope of f in any direction: ηR is the Lipschitz
    constant of k in the distance ‖x - y‖₂, and f(0) = k(x, x). The papers omit the factor 2, but
    the proof needs it: Σ_{i,j in V_s} ‖x_i - x_j‖² / |V_s| is *twice* the sum of squares about the
    mean.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A stationary kernel, with numbers as parameters or fitted.
    X : array-like of n rows
    labels : array of shape (n,)
        The block of each row.
    lipschitz : float, optional
        ηR. Optional for RBF: with f(u) = exp(-‖u‖²) and η = √γ it is √(2γ/e). Required for other
        kernels: γ for Exponential, γ√d for Laplacian with d features.

    See Also
    --------
    d_kernel : the quantity that it bounds.
    d_kmeans : enters the bound.

    References
    ----------
    - Drineas and Mahoney, On the Nyström method for approximating a Gram matrix, 2005 (000).
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from gramian import RBF
    >>> from gramian.theory import d_kernel, d_kernel_bound
    >>> X, labels = [[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 1]
    >>> round(d_kernel(RBF(1.0), X, labels), 2), round(d_kernel_bound(RBF(1.0), X, labels), 2)
    (3.96, 1.99)
    """
    kernel = as_kernel(kernel)
    slope = _lipschitz("d_kernel_bound", kernel, lipschitz)
    rows = kernel.read(X)
    at_zero = float(_host(kernel.diag(rows.take([0])))[0])
    return rows.shape[0] * at_zero**2 / 2 - 2 * slope**2 * d_kmeans(rows, labels)


def block_rank_bound(
    kernel: KernelLike,
    X: ArrayLike,
    labels: ArrayLike,
    rank: int,
    *,
    lipschitz: float | None = None,
) -> np.ndarray:
    """Bounds 4 C r^(-1/d) √(n_s n_t) min(ρ_s, ρ_t) on the best rank-r error of blocks (002, thm 2).

    Entry (s, t) bounds ‖K_st - (K_st)_r‖_F, where n_s is the number of rows of block s and ρ_s the
    radius of a ball around their mean that contains them. Blocks of tight clusters have low rank,
    both within and between clusters. With d the number of features, the bound says little in more
    than a few dimensions.

    Parameters
    ----------
    kernel, X, labels, lipschitz
        As in :func:`d_kernel_bound`; C is ``lipschitz``.
    rank : int
        r.

    Returns
    -------
    array of shape (blocks, blocks)
        In the order of the sorted labels.

    See Also
    --------
    gramian.diagnostics.block_ranks : the ranks themselves.

    References
    ----------
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from gramian import Exponential
    >>> from gramian.theory import block_rank_bound
    >>> X, labels = [[0.0], [2.0], [5.0], [9.0]], [0, 0, 1, 1]
    >>> block_rank_bound(Exponential(0.5), X, labels, rank=2, lipschitz=0.5)
    array([[2., 2.],
           [2., 4.]])
    """
    rank = positive_integer("block_rank_bound", "rank", rank)
    kernel = as_kernel(kernel)
    slope = _lipschitz("block_rank_bound", kernel, lipschitz)
    rows = kernel.read(X)
    blocks = members("block_rank_bound", labels, rows.shape[0])
    sizes = np.array([len(numbers) for numbers in blocks], dtype=float)
    radii = np.sqrt([_from_the_mean(rows, numbers).max() for numbers in blocks])
    factor = 4 * slope * rank ** (-1 / rows.shape[1])
    return factor * np.sqrt(np.outer(sizes, sizes)) * np.minimum.outer(radii, radii)


@one_blas_thread()
def meka_bound(
    kernel: KernelLike,
    X: ArrayLike,
    labels: ArrayLike,
    rank: int,
    landmarks: int,
    *,
    delta: float = 0.05,
    norm: str = "fro",
) -> float:
    """Bound on MEKA's error ‖K - K̃‖ that holds with probability 1 - δ (002, theorem 3).

    With c blocks, total rank ck = ``rank`` and cm = ``landmarks`` in total, it is

    - ‖K - K_ck‖_F + (64k/m)^¼ n K_max √(1 + θ) + 2 ‖Δ‖_F in the Frobenius norm,
    - ‖K - K_ck‖₂ + 2n/√(cm) K_max (1 + θ) + 2 ‖Δ‖₂ in the spectral norm,

    where K_ck is the best approximation of that rank, Δ is K without its diagonal blocks, and
    θ = √((n - m)/(n - ½) · log(1/δ)/β(m, n)) d_max/√K_max with β(m, n) = 1 - 1/(2 max(m, n - m)),
    K_max = max K_ii and d_max² = max_ij (K_ii + K_jj - 2 K_ij). The root covers the whole product,
    as in its source, Kumar, Mohri and Talwalkar (2009).

    It assumes that landmarks are drawn uniformly without replacement from all rows and serve their
    block; that ranks go to the largest eigenvalues of all blocks' landmark matrices together; and
    that links are dropped, or fitted by least squares on all pairs of rows of two blocks.
    :class:`gramian.MEKA` fits links on samples, so the bound applies to it only roughly. In the
    spectral norm, the proof assumes ‖Δ - Δ̃‖₂ ≤ ‖Δ‖₂; least squares guarantees this in the Frobenius
    norm, and 2/√3 times it in the spectral norm.

    Parameters
    ----------
    kernel : Kernel, str or callable
        With numbers as parameters, or fitted.
    X : array-like of n rows
        K is computed and decomposed in O(n³), so use few rows.
    labels : array of shape (n,)
        The block of each row.
    rank, landmarks : int
        rank ≤ landmarks ≤ n.
    delta : float, default=0.05
    norm : {"fro", "spectral"}, default="fro"

    See Also
    --------
    nystrom_bound : the bound for Nyström's method.
    gramian.MEKA : the approximation.

    References
    ----------
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF
    >>> from gramian.theory import meka_bound
    >>> X, labels = np.repeat([[0.0], [9.0]], 200, axis=0), np.repeat([0, 1], 200)
    >>> round(meka_bound(RBF(1.0), X, labels, rank=2, landmarks=200, norm="spectral"), 1)
    176.7
    """
    choice("meka_bound", "norm", norm, ("fro", "spectral"))
    rank = positive_integer("meka_bound", "rank", rank)
    sampled = positive_integer("meka_bound", "landmarks", landmarks)
    gram = Gram(kernel, X)
    n = gram.shape[0]
    if not rank <= sampled <= n:
        raise ValueError(
            f"landmarks of meka_bound must lie between rank and number of rows; got {rank=}, "
            f"{landmarks=} and {counted(n, 'row')}."
        )
    blocks = members("meka_bound", labels, n)
    k, m = rank / len(blocks), sampled / len(blocks)
    K = _host(gram.dense())
    tail = np.sort(_not_negative(np.linalg.eigvalsh(K), gram))[: n - rank]
    diagonal = K.diagonal().copy()
    largest = diagonal.max()
    distance = sqrt((diagonal[:, None] + diagonal - 2 * K).max())
    spread = (n - m) / (n - 0.5) / (1 - 1 / (2 * max(m, n - m)))
    failing = log(1 / _share("meka_bound", "delta", delta, below=True))
    scale = largest + sqrt(spread * failing * largest) * distance  # K_max (1 + θ)
    for numbers in blocks:  # K becomes Δ
        K[np.ix_(numbers, numbers)] = 0.0
    if norm == "fro":
        sampling = (64 * k / m) ** 0.25 * n * sqrt(largest * scale)
        return float(np.linalg.norm(tail) + sampling + 2 * np.linalg.norm(K))
    sampling = 2 * n / sqrt(sampled) * scale
    return float(tail.max(initial=0.0) + sampling + 2 * np.abs(np.linalg.eigvalsh(K)).max())


def members(owner: str, labels: ArrayLike, n: int) -> list[np.ndarray]:
    """Return the row numbers of each block, in the order of the sorted labels."""
    labels = np.asarray(array_ops.to_numpy(labels))
    if labels.shape != (n,):
        raise ValueError(
            f"labels of {owner} must give the block of each of the {counted(n, 'row')}; got shape "
            f"{labels.shape}."
        )
    numbers = np.unique(labels, return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1])


def _from_the_mean(rows: Rows, numbers: np.ndarray) -> np.ndarray:
    """Return the squared distance of each row from the mean."""
    part, xp = rows.choose(numbers), rows.xp
    row_bytes = 3 * 8 * rows.shape[1]

    def wide(x: Array) -> Array:
        return array_ops.astype(array_ops.dense(x), xp.float64)

    mean = part.sum(lambda x: xp.sum(wide(x), axis=0), row_bytes=row_bytes) / len(numbers)
    squares = part.map(
        lambda x, out: array_ops.row_norms(wide(x) - mean), dtype=xp.float64, row_bytes=row_bytes
    )
    return _host(squares)


def _lipschitz(owner: str, kernel: Kernel, given: float | None) -> float:
    """Return the Lipschitz constant of a stationary kernel in the distance of two rows."""
    if not kernel.stationary:
        raise ValueError(
            f"{owner} needs a stationary kernel, such as RBF or Laplacian; {kernel!r} is not."
        )
    if given is not None:
        return positive(owner, "lipschitz", given)
    if not isinstance(kernel, RBF):
        raise ValueError(
            f"{owner} knows only the Lipschitz constant of RBF; got {kernel!r}. Pass lipschitz=, "
            "the largest slope of the kernel as a function of the distance."
        )
    return sqrt(2 * kernel._gamma / e)
