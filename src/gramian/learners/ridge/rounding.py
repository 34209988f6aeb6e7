"""What rounding in float32 does to the solutions of kernel ridge, measured on some rows.

Three things are rounded: kernel values and P, features C P, and sums over rows. Float64 is used for
the first two only where measurements on some rows say that solutions would change, and for sums
wherever their rounding could reach a tenth of alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.backend.threads import one_blas_thread
from gramian.matrices.factors import Factors, unprojected
from gramian.matrices.gram import Gram
from gramian.matrices.normal_equations import late_rounding
from gramian.rows import ArrayRows, Rows

if TYPE_CHECKING:
    from gramian.learners.ridge.systems import System

SAMPLED = 64  # rows on which rounding is measured
# What rounding may change of a solution along the direction that changes most, as estimated from
# below. Predictions change by a sixth of it or less (root mean square; four data sets).
SHOWS = 0.005
POWER_STEPS = 12
HOPELESS = 1e4  # times alpha: a bound of what rounding does, in practice 30 or more times as much
MEASURED = 32  # rows that tell the size of the features


@one_blas_thread()
def rounds_too_much(
    factors: Factors, alpha: float | None, weights: Array | None, *, seen: int = 0
) -> bool:
    """Whether float32 features would change eigenvalues by more than a tenth of alpha.

    If P is large, features C P are small differences of kernel values: rounding changes K̃ by E, and
    the solution by at most ‖E‖ / alpha of itself. ‖E‖ is measured on a sample of s rows, where it
    is n / s times smaller; ``seen`` is the number of rows of earlier batches. If alpha is None, it
    is the smallest of the default path, which is relative to the largest eigenvalue.
    """
    C, P = unprojected(factors)
    if P is None or array_ops.itemsize(factors.dtype) == 8:
        return False
    n = factors.shape[0]
    numbers = _some_rows(n, SAMPLED)
    rounded, values = (
        array_ops.astype(rows.take(numbers).parts[0].collect(), factors.xp.float64)
        for rows in (factors, C)
    )
    K, other = _products(values @ P, rounded)
    if alpha is None:
        alpha = 10 * array_ops.eps(factors.dtype) * np.linalg.eigvalsh(K)[-1]
        return _norm_exceeds(other - K, 0.1 * alpha)
    return _norm_exceeds(other - K, 0.1 * alpha * len(numbers) / (_mean(weights) * (n + seen)))


def _products(*features: Array) -> list[np.ndarray]:
    """Return Z Zᵀ of the same rows with several features, on the host."""
    xp = array_ops.namespace(features[0])
    return [array_ops.to_numpy(z @ xp.matrix_transpose(z)) for z in features]


@one_blas_thread()
def sums_allow(
    factors: Factors, alpha: float | None, weights: Array | None, *, seen: int = 0
) -> bool:
    """Whether Pᵀ(CᵀWC)P, in float64, is exact to a tenth of alpha for features of float32.

    For features of float64 it has to be as much more exact as these are.
    """
    C, P = unprojected(factors)
    if P is None:
        return False
    n = factors.shape[0]
    numbers, weight = _some_rows(n, MEASURED), _mean(weights) * (n + seen)
    eps = array_ops.eps(factors.dtype)
    if alpha is None:  # the largest eigenvalue is at least that along the mean
        values = array_ops.astype(C.take(numbers).parts[0].collect(), factors.xp.float64)
        mean = factors.xp.mean(values, axis=0) @ P
        alpha = 10 * eps * weight * float(mean @ mean)
    return late_rounding(factors, numbers, weight) <= 1e6 * eps * alpha


@one_blas_thread()
def single_may_do(factors: Factors, alpha: float | None, weights: Array | None) -> bool:
    """Whether Pᵀ(CᵀWC)P, summed in float32, may be exact enough for a preconditioner.

    The bound is far above what rounding does, so that a thousand alphas are no reason to doubt.
    """
    single = array_ops.itemsize(factors.dtype) == 4
    if alpha is None or not single or unprojected(factors)[1] is None:
        return False
    n, xp = factors.shape[0], factors.xp
    bound = late_rounding(factors, _some_rows(n, MEASURED), _mean(weights) * n)
    return bound * array_ops.eps(xp.float32) / array_ops.eps(xp.float64) <= HOPELESS * alpha


def _some_rows(n: int, count: int) -> np.ndarray:
    """Return the numbers of ``count`` rows, at equal distances, or of all."""
    return np.linspace(0, n - 1, min(n, count)).astype(int)


def _norm_exceeds(A: np.ndarray, limit: float) -> bool:
    """Whether the spectral norm of a symmetric matrix exceeds a limit.

    It is at least the norm of each column and at most the root of the sum of all squares; only in
    between are eigenvalues needed.
    """
    squares = np.square(A).sum(axis=0)
    if squares.sum() <= limit**2:
        return False
    if squares.max() > limit**2:
        return True
    return bool(np.abs(np.linalg.eigvalsh(A)).max() > limit)


@one_blas_thread()
def may_round_too_much(system: System) -> bool:
    """Whether float32 could change eigenvalues of K̃ by more than a tenth of alpha, at worst."""
    alpha = system.least_alpha
    if alpha is None:  # a path on features tells by where it ends; blocks need float64 all along
        return system.is_local
    n, local = system.rows.shape[0], system.factors.local
    sample = system.factors.take(_some_rows(n, MEASURED))
    largest = float(np.max(array_ops.to_numpy(sample.diagonal())))
    size = n if local is None else 10 * local.largest  # rows that one factor is of
    rounding = array_ops.eps(system.factors.dtype) * size * largest * _mean(system.weights)
    return rounding > 0.1 * alpha


@one_blas_thread()
def rounding_shows(system: System, precise: Callable[[Rows], Factors]) -> bool:
    """Whether features in float64 change solutions, compared with the best of float32.

    ``precise(rows)`` gives factors with features in float64. On a few rows the norm of the
    difference E of both K̃ tells if it is at most a tenth of alpha. If not, as many rows as
    features show all directions, and what E changes there.
    """
    n, alpha = system.rows.shape[0], system.least_alpha
    assert alpha is not None
    per_row = alpha / (_mean(system.weights) * n)
    exact, values, P = _features(system, precise, _some_rows(n, SAMPLED))
    K, other = _products(exact, values if P is None else values @ P)
    if not _norm_exceeds(other - K, 0.1 * per_row * len(K)):
        return False
    some = _some_rows(n, max(SAMPLED, system.factors.rank))
    exact, values, P = _features(system, precise, some)
    return _change(exact, values, per_row * exact.shape[0], P) > SHOWS


def _features(
    system: System, precise: Callable[[Rows], Factors], numbers: np.ndarray
) -> tuple[Array, Array, Array | None]:
    """Return features of some rows: in float64, and C and P of the best of float32, as float64."""
    C, P = unprojected(system.factors)
    exact = precise(ArrayRows(system.rows.take(numbers))).parts[0].collect()
    xp = array_ops.namespace(exact)  # the products are taken where it is
    values = array_ops.like(C.take(numbers).parts[0].collect(), exact, xp.float64)
    P = None if P is None else array_ops.like(P, exact, xp.float64)
    return array_ops.astype(exact, xp.float64), values, P


def _change(Z: Array, C: Array, alpha: float, P: Array | None = None) -> float:
    """Return what the change E of K = Z Zᵀ to that of rounded features C P does to solutions.

    It is about the largest eigenvalue η of (K + alpha I)⁻¹ E, by a few steps of the power method:
    K + E + alpha I is within η of K + alpha I along any direction, and so are solutions, in the
    norm of K + alpha I. An E that couples a large direction of K with noise counts for little here,
    though its norm may exceed alpha.
    """
    xp = array_ops.namespace(Z)
    turned, other = xp.matrix_transpose(Z), xp.matrix_transpose(C)
    solve = linalg.shifted_inverse(turned @ Z, np.array([alpha]))
    v = array_ops.like(np.random.default_rng(0).standard_normal((Z.shape[0], 1)), Z, Z.dtype)
    for _ in range(POWER_STEPS):
        v = v / xp.linalg.vector_norm(v)
        image = other @ v
        image = image if P is None else P @ (xp.matrix_transpose(P) @ image)
        v = C @ image - Z @ (turned @ v)
        v = (v - Z @ solve(turned @ v)) / alpha
    return float(xp.linalg.vector_norm(v))


def in_double(system: System) -> System:
    """Return a system on the exact matrix with rows in float64, if alpha needs it."""
    gram, alpha = system.gram, system.least_alpha
    if gram.kernel.is_matrix or gram.rows.are_objects:
        return system
    if alpha is not None:
        largest = float(np.max(array_ops.to_numpy(gram.diag())))
        rounding = array_ops.eps(gram.dtype) * gram.shape[0] * largest * _mean(system.weights)
        if rounding <= 0.1 * alpha:
            return system
    rows = ArrayRows(array_ops.astype(gram.rows.collect(), gram.rows.xp.float64))
    return replace(system, matrix=Gram(gram.kernel, rows), rows=rows)


def _mean(weights: Array | None) -> float:
    return 1.0 if weights is None else float(array_ops.namespace(weights).mean(weights))
