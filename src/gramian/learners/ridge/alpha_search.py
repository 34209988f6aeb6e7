"""The best alpha of many rows on the exact matrix, by a few Cholesky factors.

With A = W^½ K W^½ + alpha I and d = A⁻¹ W^½ y, a fit without row i misses its weighted target by
d_i / (A⁻¹)_ii. All eigenvectors of K would take the time of about twenty-five factors. Instead, the
same search on a third of the rows, at 1/27 of the cost, tells where on the grid the smallest error
should be, and factors look for it from there. Rows are in random order: A⁻¹ of the last s rows
follows from the last s columns of the factor, so half of the rows are left out at an eighth of the
cost of all. A⁻² times a vector is cheap, so each factor also gives the slope of the error, which
leads to the next alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.ridge.alpha_path import ROUNDED, ExactPath
from gramian.learners.ridge.alpha_steps import bend_of, follow, numbers_of, start_of, try_near
from gramian.learners.ridge.exact import (
    ExactDirect,
    blas_threads,
    left_out_rows,
    other_memory,
    weigh,
    without_mean,
)
from gramian.learners.ridge.factored import Sums
from gramian.learners.ridge.repeats import Repeats, repeats_bytes
from gramian.learners.ridge.systems import AlphaPath, Solution, System, indefinite
from gramian.learners.strategy import Strategy
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows

LEAST_ROWS = 300  # of fewer, all eigenvectors take hardly longer
FEWER = 3  # one row in three shows where to begin
LEAST_FEWER = 50  # rows
LEFT_OUT = 0.5  # share of the rows
LEAST_BEND = 0.002  # where slopes tell enough
PROBES = 32  # vectors of random signs, from which the diagonal of A⁻² is estimated
APART = 1e-4  # part of alpha to the next, whose error tells the slope
USUAL = 8  # alphas that are tried, at most as a rule


class ExactSearch(Strategy[System]):
    """Search the default grid of alphas along the slope of the error, with one factor for each."""

    def serves(self, system: System) -> bool:
        if not system.is_exact or system.is_local or system.rule is None or system.iterates:
            return False
        if system.rule.grid is not None or system.gram.shape[0] < LEAST_ROWS:
            return False
        return ExactDirect().serves(system.settled())

    def memory(self, system: System) -> Sequence[Amounts]:
        gram, t = system.gram, system.n_targets
        n, rows = gram.shape[0], gram.rows
        factor = 2 * 8 * n**2 if array_ops.is_foreign(rows.place.reference) else 0  # of a copy
        own = {
            **other_memory(system),
            "equal rows": repeats_bytes(system),
            "rows in random order": 2 * n * rows.row_bytes,
            "kernel matrix": 8 * n**2 + (4 * n**2 if array_ops.itemsize(gram.dtype) == 4 else 0),
            "solutions": (USUAL * (t + 1) + 3 * (PROBES + t + 2)) * 8 * n,
        }
        # A third of the rows at first; then half are left out: their part of the factor, its
        # inverse, and squares.
        few = min(n, LEAST_ROWS)
        return [
            {**own, "fewer rows": factor // FEWER**2 + 3 * 8 * (n // FEWER) ** 2 + 4 * 8 * few**2},
            {**own, "factor": factor + 3 * 2 * n**2},
        ]

    def solve(self, system: System) -> Solution:
        rule = system.rule
        assert rule is not None
        order = _order(system)
        shuffled = _shuffled(system, order)
        K = array_ops.astype(shuffled.gram.dense(), shuffled.gram.rows.xp.float64)
        K = weigh(K, shuffled)
        grid = rule.alphas(_largest(K), system.gram.dtype)
        tries = _searched(shuffled, K, grid)
        path = tries.path()
        chosen = rule.choose(path.alphas, path.errors)
        solution = _in_order(tries.solution(chosen), system, order)
        return solution._replace(alphas=chosen, path=path)


def _order(system: System) -> np.ndarray:
    """Return the rows that have a weight in random order, with sampled ones in the last half."""
    order = np.random.default_rng(0).permutation(system.gram.shape[0])
    if system.weights is not None:
        order = order[array_ops.host_float64(system.weights)[order] > 0]
    if system.sampled is None:
        return order
    wanted = np.isin(order, system.sampled)
    return np.concatenate((order[~wanted], order[wanted]))


def _shuffled(system: System, order: np.ndarray) -> System:
    """Return the system of these rows, in this order."""
    gram, rows = system.gram, system.rows
    taken = gram.rows.take(order)
    if gram.kernel.is_matrix:
        taken = array_ops.take_columns(array_ops.dense(taken), order)
    same = rows is gram.rows
    matrix = Gram(gram.kernel, ArrayRows(taken))
    weights = None if system.weights is None else array_ops.take_rows(system.weights, order)
    place = np.zeros(gram.shape[0], dtype=int)
    place[order] = np.arange(len(order))
    return replace(
        system,
        matrix=matrix,
        rows=matrix.rows if same else ArrayRows(rows.take(order)),
        Y=array_ops.take_rows(system.Y, order),
        weights=weights,
        sampled=None if system.sampled is None else place[system.sampled],
    )


def _in_order(solution: Solution, system: System, order: np.ndarray) -> Solution:
    """Return the solution of all rows; those without a weight have coefficients of 0."""
    found, n = solution.coefficients, system.gram.shape[0]
    if len(order) < n:
        xp = array_ops.namespace(found)
        missing = array_ops.empty((n - len(order), found.shape[1]), found, found.dtype)
        missing[...] = 0.0
        found = xp.concat((found, missing), axis=0)
        order = np.concatenate((order, np.setdiff1d(np.arange(n), order)))
    return solution._replace(coefficients=array_ops.take_rows(found, np.argsort(order)))


@one_blas_thread()
def _largest(K: Array) -> float:
    """About the largest eigenvalue, as the first rows tell."""
    few = min(K.shape[0], LEAST_ROWS)
    some = array_ops.host_float64(K[:few, :few])
    return float(np.linalg.eigvalsh(some)[-1]) * K.shape[0] / few


def _searched(system: System, K: Array, grid: np.ndarray, *, thorough: bool = False) -> _Tries:
    """Try alphas of the grid near the best of fewer rows.

    A ``thorough`` search compares neighbours, as for several targets and where errors of fewer rows
    are flat; else slopes tell enough.
    """
    assert system.rule is not None
    known, tries = _of_fewer(system, K, grid), _Tries(system, K, Repeats.of(system))
    numbers, errors = numbers_of(known, grid), known.errors.mean(axis=1)
    shared = system.rule.shared
    several = known.errors.shape[1] > 1 and not shared
    if thorough or several or bend_of(numbers, errors) < LEAST_BEND:
        try_near(known, grid, lambda i: tries.at(float(grid[i])).errors, shared=shared)
        return tries
    step = float(np.log(grid[1] / grid[0]))

    def error(i: int) -> tuple[float, float]:
        found = tries.at(float(grid[i]))
        return float(found.errors.mean()), step * float(found.slopes.mean())

    follow(error, start_of(numbers, errors), len(grid))
    return tries


def _of_fewer(system: System, K: Array, grid: np.ndarray) -> AlphaPath:
    """Return the errors of alphas of the grid for the first rows."""
    count = max(K.shape[0] // FEWER, min(K.shape[0], LEAST_FEWER))
    some = _shuffled(replace(system, sampled=None), np.arange(count)).centred()[0]
    if LEAST_ROWS <= count < K.shape[0]:
        return _searched(some, array_ops.copy(K[:count, :count]), grid, thorough=True).path()
    assert system.rule is not None
    path = ExactPath().solve(replace(some, rule=system.rule._replace(grid=grid))).path
    assert path is not None
    return path


class _Try(NamedTuple):
    """What one alpha gives; entries of the diagonal of the inverse are of the last rows."""

    errors: np.ndarray  # (n_targets,); infinite if there is no factor
    d: Array = None  # (n, n_targets)
    intercepts: np.ndarray | None = None
    freedom: np.ndarray | None = None  # (s,)
    slopes: np.ndarray = np.zeros(1)  # of the errors, by log(alpha)


class _Tries:
    """Factors of W^½ K W^½ + alpha I, one after the other, in the memory of K."""

    def __init__(self, system: System, K: Array, repeats: Repeats | None) -> None:
        self.system, self.K, self.repeats = system, K, repeats
        xp, n = array_ops.namespace(K), K.shape[0]
        self.diagonal = array_ops.copy(xp.linalg.diagonal(K))
        wanted = 0 if system.sampled is None else len(system.sampled)
        self.last = n - max(round(LEFT_OUT * n), wanted)  # the first row that is left out
        columns = [system.weighted(system.Y)]
        if repeats is not None:
            columns.append(system.weighted(repeats.means))
        if system.intercept:
            columns.append(system.q)
        self.right = xp.concat(columns, axis=1)
        signs = np.random.default_rng(1).choice([-1.0, 1.0], (n, PROBES))
        self.probes = array_ops.like(signs, K)
        self.tried: dict[float, _Try] = {}

    def at(self, alpha: float) -> _Try:
        if alpha not in self.tried:
            try:
                self.tried[alpha] = self._try(alpha)
            except linalg.NotPositiveDefiniteError:
                self.tried[alpha] = _Try(np.full(self.system.n_targets, np.inf))
        return self.tried[alpha]

    def _try(self, alpha: float) -> _Try:
        with blas_threads(self.K.shape[0]):
            found, freedom, again = solved(
                self.K, self.diagonal + alpha, self.right, self.last, self.probes
            )
        columns, h = found.shape[1], APART * alpha
        g = array_ops.host_float64(freedom)
        here = self._with(alpha, found, g)
        # To first order, A⁻¹ of the next alpha is A⁻¹ - h A⁻². An entry of the diagonal of A⁻² is a
        # sum of squares of a row of A⁻¹. Without g_i², it is estimated by random signs.
        signs, image = (
            array_ops.host_float64(a[self.last :, :]) for a in (self.probes, again[:, columns:])
        )
        squares = g**2 + ((image - g[:, None] * signs) ** 2).mean(axis=1)
        other = self._with(alpha + h, found - h * again[:, :columns], g - h * squares)
        return here._replace(slopes=(other.errors - here.errors) / APART)

    def _with(self, alpha: float, found: Array, g: np.ndarray) -> _Try:
        """Return what A⁻¹ times the right-hand sides, and the diagonal of A⁻¹, tell."""
        system, t, b = self.system, self.system.n_targets, None
        if system.intercept:
            xp, constant = array_ops.namespace(found), found[:, -1:]
            size = float((xp.matrix_transpose(system.q) @ constant)[0, 0])
            g = g - array_ops.host_float64(constant[self.last :, 0]) ** 2 / size
            found, b = without_mean(system, found)
        errors = self._errors(alpha, found[:, -t:], g)
        return _Try(errors, found[:, :t], None if b is None else b[:t], g)

    def _errors(self, alpha: float, d: Array, g: np.ndarray) -> np.ndarray:
        """Return the error of each target, with d (n, n_targets) of the means of equal rows."""
        system, repeats, d = self.system, self.repeats, array_ops.host_float64(d)
        assert system.rule is not None
        if system.rule.error == "gcv":
            n, sums = len(d), Sums.without_features(system.Y, system.weights)
            rows = sums.rows if repeats is None else repeats.distinct
            mean = 1.0 - n / rows + alpha * n * float(g.mean()) / rows
            return ((alpha * d) ** 2).sum(axis=0) / system.weight / max(mean, ROUNDED) ** 2
        free, mass, within = alpha * g, float(len(g)), np.zeros(d.shape[1])
        if repeats is not None:
            shares = array_ops.host_float64(repeats.shares)[self.last :, 0]
            free, within = 1.0 - shares * (1.0 - free), repeats.within / system.weight
        if system.weights is not None:
            mass = float(array_ops.host_float64(system.weights)[self.last :].sum())
        missed = alpha * d[self.last :] / np.maximum(free, np.finfo(float).eps)[:, None]
        return (missed**2).sum(axis=0) / max(mass, np.finfo(float).tiny) + within

    def path(self) -> AlphaPath:
        alphas = np.array(sorted(self.tried, reverse=True))
        return AlphaPath(alphas, np.array([self.tried[alpha].errors for alpha in alphas]))

    def solution(self, alphas: np.ndarray) -> Solution:
        """Return the solution, in the order of the rows here, for one alpha per target."""
        system = self.system
        xp, chosen = array_ops.namespace(self.K), [self.at(float(alpha)) for alpha in alphas]
        if any(each.d is None for each in chosen):
            indefinite("negative eigenvalues larger than each alpha")
        d = xp.stack([each.d[:, i] for i, each in enumerate(chosen)], axis=1)
        a, left_out, b = system.weighted(d), None, None
        if system.intercept:
            b = np.array([each.intercepts[i] for i, each in enumerate(chosen)])  # type: ignore[index]
        if system.sampled is not None:
            freedom = [each.freedom[system.sampled - self.last] for each in chosen]  # type: ignore[index]
            left_out = left_out_rows(system, a, np.stack(freedom, axis=1))
        return Solution(a, b, left_out=left_out)


def solved(
    K: Array, diagonal: Array, right: Array, last: int, probes: Array
) -> tuple[Array, Array, Array]:
    """Return A⁻¹ right, the diagonal of A⁻¹ from row ``last`` on, and A⁻¹ [A⁻¹ right, probes].

    A is K with another diagonal. It is factorised in place, and K is restored up to its diagonal.
    """
    xp = array_ops.namespace(K)
    if array_ops.is_foreign(K):
        L = linalg.lower_factor(array_ops.set_diagonal(array_ops.copy(K), diagonal))

        def solve(B: Array) -> Array:
            return linalg.solve_lower(L, linalg.solve_lower(L, B), transposed=True)

        found = solve(right)
        again, corner = solve(xp.concat((found, probes), axis=1)), L[last:, last:]
        if not array_ops.is_on_gpu(L):
            return found, linalg.diagonal_of_inverse(corner), again
        return found, xp.sum(linalg.inverse_triangle(corner) ** 2, axis=0), again
    array_ops.set_diagonal(K, diagonal)
    try:
        # The upper triangle of K becomes the factor; the lower one restores it.
        factor = scipy.linalg.cho_factor(K.T, lower=True, overwrite_a=True, check_finite=False)
        found = scipy.linalg.cho_solve(factor, right, check_finite=False)
        both = np.asfortranarray(np.concatenate((found, probes), axis=1))
        again = scipy.linalg.cho_solve(factor, both, overwrite_b=True, check_finite=False)
        corner = np.asfortranarray(np.tril(factor[0][last:, last:]))
        return found, linalg.diagonal_of_inverse(corner), again
    except scipy.linalg.LinAlgError as error:
        raise linalg.NotPositiveDefiniteError(str(error)) from error
    finally:
        array_ops.mirror_lower(K)
