"""Ridge on the features Z of many rows without ZᵀZ: conjugate gradients over blocks of rows.

After FALKON (Rudi, Carratino and Rosasco, 2017): the preconditioner is ZᵀZ of a sample of rows, and
the iteration starts from the solution for these rows. If Z = C P with kernel values C, a product
with Z is computed as C (P v), and only C is cached or computed: multiplying each row with P would
cost as much as ZᵀZ itself. Everything is in float64 except C, which has the dtype of the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.ridge.costs import Costs, iteration_pays, streams
from gramian.learners.ridge.factored import (
    Factored,
    Sums,
    left_out_bytes,
    mean_square,
    sample_weights,
    shifted_norms,
    targets_bytes,
)
from gramian.learners.ridge.passes import Products
from gramian.learners.ridge.rounding import single_may_do, sums_allow
from gramian.learners.ridge.systems import Solution, System, Watch
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors, projected, unprojected
from gramian.matrices.normal_equations import inner_products

MOST_ITERATIONS = 150  # with solver="auto"; a direct solution follows if they do not converge

# Rounding may change the preconditioner by this part of itself: iterations then remain as many.
ROUGH, MEASURED, POWER_STEPS = 0.3, 500, 4


class Streamed(Strategy[System]):
    """Conjugate gradients for (ZᵀWZ + alpha I) θ = ZᵀWY, in passes over C.

    With solver="auto", it is used if it should cost less than the sums, and a direct solution
    follows if it does not converge.
    """

    def serves(self, system: System) -> bool:
        if system.is_exact or system.rule is not None or system.solver == "direct":
            return False
        return streams(system.factors) and (system.iterates or self._pays(system))

    def _pays(self, system: System) -> bool:
        """Whether it costs less than the sums; before the targets are known, whether it may."""
        room = room_left(self._other_memory(system))
        single, double = (
            iteration_pays(system.factors, system.n_targets, room, precise=precise, tol=system.tol)
            for precise in (False, True)
        )
        if system.Y is None or single == double:  # measuring the rounding takes a while
            return single or double
        return double if system.precise else single

    def memory(self, system: System) -> Sequence[Amounts]:
        C = projected(system.factors) or system.factors
        step = keeping(C, self._other_memory(system), partly=True, name="kernel values")
        return [step] if system.iterates else [step, *Factored().memory(system)]

    def _other_memory(self, system: System) -> Amounts:
        """Return the memory of passes over the rows of C, in addition to C; Z = C P."""
        factors, t = system.factors, system.n_targets
        n, r, C = factors.shape[0], factors.rank, projected(factors) or factors
        m = C.rank
        sampled = factors.parts[0].walk_bytes(8 * (m + r), 8 * r**2)
        passes = C.parts[0].walk_bytes(8 * m, 8 * m * (2 * t + 1))
        # The preconditioner and a copy; P, its decomposition, and inner products of landmarks.
        small = 2 * 8 * r**2 if C is factors else 8 * (4 * m * r + 5 * r**2)
        return {
            **targets_bytes(system),
            "preconditioner": small + 8 * n,
            "left-out rows": left_out_bytes(system),
            "blocks": max(sampled, passes),
        }

    def solve(self, system: System) -> Solution:
        room = room_left(self._other_memory(system))  # for C
        if system.iterates:
            return self._iterate(system, system.max_iter, room)
        solution = self._iterate(system, min(system.max_iter, MOST_ITERATIONS), room)
        return solution if solution.met else Factored().solve(system)

    def _iterate(self, system: System, max_iter: int, room: int) -> Solution:
        alphas, t = system.alphas, system.n_targets
        sample, precondition = _preconditioned(system)
        # Early stopping regularises, but the sample's solution already has its noise.
        start = np.zeros_like(sample.right) if system.validates else precondition(sample.right)
        with one_blas_thread():
            products = Products(system, room)
            (image, total), *of_held_out = products.with_targets(
                system.Y, start, sample.mean.T @ start
            )
            right, e = image[:, :t], image[:, t : t + 1]
            mean = e / system.weight if system.intercept else np.zeros_like(e)
            started = total[:, t + 1 :]
            error = None
            if of_held_out:
                held_out = _HeldOut(system, of_held_out[0][0], mean)
                error = held_out.error
            watch = _Watch(error, started + system.weight * (sample.mean - mean).T @ start)

            # (Z - 1 meanᵀ)ᵀ W (Z - 1 meanᵀ): were the mean taken out of ZᵀWZ instead, rounding
            # could leave negative eigenvalues.
            def apply(V: np.ndarray) -> np.ndarray:
                shift = mean.T @ V
                (image, total), *other = products.with_features(V, shift)
                watch.total = total
                if other:
                    held_out.look_at(other[0][0], shift)
                return image - mean * total + alphas * V

            done = image[:, t + 1 :] - mean * started + alphas * start
            tol = max(system.tol, 50 * array_ops.eps(products.dtype))  # products are rounded
            theta, _, left = linalg.conjugate_gradients(
                apply, right, precondition, tol=tol, max_iter=max_iter, watch=watch,
                start=(start, right - done),
            )  # fmt: skip
        solution = watch.solution(theta, left, tol)
        found = solution.coefficients
        b = -(mean.T @ found + watch.sum / system.weight)[0] if system.intercept else None
        left_out = None
        if system.sampled is not None and not system.validates:
            left_out = _left_out(system, found, 0.0 if b is None else b, mean[:, 0], sample.inner)
        return solution._replace(coefficients=system.local(found), intercepts=b, left_out=left_out)


def _left_out(
    system: System, theta: np.ndarray, b: np.ndarray | float, mean: np.ndarray, inner: Array
) -> np.ndarray:
    """Return scores of sampled rows as if they were left out.

    Their leverage is that of the preconditioner, whose ZᵀWZ is ``inner``. It is small, since rows
    are many more than features, so that an estimate is enough.
    """
    assert system.sampled is not None
    Z = array_ops.host_float64(system.factors.coordinates(system.sampled))
    leverage = np.empty((len(Z), len(system.alphas)))
    for alpha in np.unique(system.alphas):
        norms = shifted_norms(inner, float(alpha), Z - mean)
        leverage[:, system.alphas == alpha] = norms[:, None]
    leverage = sample_weights(system) * (leverage + system.intercept / system.weight)
    return system.left_out(Z @ theta + b, leverage)


class _Watch(Watch):
    """Follows 1ᵀW(Z θ - 1 meanᵀθ) too, which rounding of the mean leaves for the intercept."""

    def __init__(self, error: Callable[[Array, Array], float] | None, started: np.ndarray) -> None:
        super().__init__(error)
        self.sum = self._last = started  # of the solution so far, and of the last X
        self.total = np.zeros_like(started)  # of the last direction

    def __call__(self, X: Array, length: Array, left: float) -> bool:
        self._last = self._last + length * self.total
        stops = super().__call__(X, length, left)
        if self._error is None or self.best is X:
            self.sum = self._last
        return stops


class _HeldOut:
    """The error on held-out rows, from their ZᵀWZ times each direction of the iteration."""

    def __init__(self, system: System, image: np.ndarray, mean: np.ndarray) -> None:
        t = system.n_targets
        right, features = image[:, :t], image[:, t]
        self._sums = Sums.without_features(system.Y, system.held_out)._replace(
            right=right, features=features
        )
        self._mean = mean  # of the features of the other rows, which gives the intercept
        self._image = np.zeros_like(right)
        self._total = np.zeros_like(right)

    def look_at(self, image: np.ndarray, shift: np.ndarray) -> None:
        """Keep ZᵀWZ V, from ZᵀW(Z V - 1 shift)."""
        self._image = image + self._sums.features[:, None] * shift

    def error(self, theta: np.ndarray, length: np.ndarray) -> float:
        self._total = self._total + length * self._image
        return mean_square(self._sums, theta, self._total, -(self._mean.T @ theta)[0])


class _Sample(NamedTuple):
    """Sums over a sample of the rows, scaled to the weight of all: estimates of theirs."""

    inner: Array  # ZᵀWZ (r, r), also from the landmarks; centred if there is an intercept
    right: np.ndarray  # ZᵀWY (r, n_targets), centred as well
    mean: np.ndarray  # of the features, (r, 1); 0 without an intercept

    @classmethod
    def of(cls, system: System, numbers: np.ndarray, mass: float, *, rough: bool) -> _Sample:
        """Sum over these rows, which stand for rows of weight ``mass``.

        If ``rough``, C is summed in its dtype and multiplied with P afterwards.
        """
        factors, xp = system.factors, system.factors.xp
        n, size = factors.shape[0], len(numbers)
        sample = Factors(factors.parts[0].choose(numbers))
        y = array_ops.host_float64(array_ops.take_rows(factors.arrange(system.Y), numbers))
        Y = sample.parts.place.align(y, xp.float64)
        inner, right = _products(system, sample, Y, rough=rough)
        e = right[:, -1:]
        right = array_ops.to_numpy(right)
        right, mean = right[:, :-1], system.intercept * right[:, -1:] / size
        if system.intercept:
            inner -= (e / size) @ xp.matrix_transpose(e)
            right = right - mean * y.sum(axis=0)
        inner *= mass / size
        P = unprojected(factors)[1]
        if P is not None:
            # Some features may be nonzero only for a landmark far from all other rows. Since
            # P Pᵀ = W⁺, the features of the landmarks have the inner products (PᵀP)⁻¹.
            inner += (mass / n) * array_ops.like(linalg.inverse_inner(P), inner)
        return cls(inner, right * (mass / size), mean)


def _preconditioned(
    system: System,
) -> tuple[_Sample, Callable[[np.ndarray], np.ndarray]]:
    """Return sums over sampled rows, and (ZᵀWZ + alpha I)⁻¹ of these rows.

    Sums of C in float32, which P multiplies afterwards, take the least time, but P enlarges their
    rounding. It often hardly matters here, which is measured; if it does, float64 is used.
    """
    rough = not system.precise
    rough = rough and single_may_do(system.factors, system.least_alpha, system.weights)
    numbers, mass = _drawn(system, rough=rough)
    if rough:
        sample = _Sample.of(system, numbers, mass, rough=True)
        try:
            precondition = _inverse(sample.inner, system.alphas, definite=True)
            if _roughness(system, numbers, mass, precondition) <= ROUGH:
                return sample, precondition
        except linalg.NotPositiveDefiniteError:
            pass
    sample = _Sample.of(system, numbers, mass, rough=False)
    return sample, _inverse(sample.inner, system.alphas)


def _roughness(
    system: System,
    numbers: np.ndarray,
    mass: float,
    precondition: Callable[[np.ndarray], np.ndarray],
) -> float:
    """Return by what part rounding of CᵀC changes the preconditioner where it changes most.

    It is the largest eigenvalue of (ZᵀWZ + alpha I)⁻¹ PᵀEP, by a few steps of the power method,
    with E of some of the rows. E of all of them grows as the root of their number.
    """
    C, P = unprojected(system.factors)
    xp = system.factors.xp
    some = numbers[:: max(len(numbers) // MEASURED, 1)]
    single = C.take(some).parts[0].collect()
    double = array_ops.astype(single, xp.float64)
    turned, own = xp.matrix_transpose(double), xp.matrix_transpose(single)
    E = (array_ops.astype(own @ single, xp.float64) - turned @ double) * (
        mass / (len(numbers) * len(some)) ** 0.5
    )
    v = np.random.default_rng(0).standard_normal((system.factors.rank, len(system.alphas)))
    for _ in range(POWER_STEPS):
        v = v / np.maximum(np.linalg.norm(v, axis=0), np.finfo(float).tiny)
        image = xp.matrix_transpose(P) @ (E @ (P @ system.local(v)))
        v = precondition(array_ops.to_numpy(image))
    return float(np.linalg.norm(v, axis=0).max())


def _products(system: System, sample: Factors, Y: Array, *, rough: bool) -> tuple[Array, Array]:
    """Return ZᵀZ and Zᵀ[Y, 1] of the sample, in float64."""
    xp = sample.xp
    if rough:
        C, P = unprojected(sample)
        assert P is not None
        inner, right = (
            array_ops.astype(each, xp.float64) for each in inner_products(C, Y, ones=True)[0]
        )
        turned = xp.matrix_transpose(P)
        return turned @ (inner @ P), turned @ right
    late = array_ops.itemsize(system.factors.dtype) == 4
    late = late and sums_allow(system.factors, system.least_alpha, system.weights)
    precise = system.precise and not late
    inner, right = inner_products(sample, Y, precise=precise, late=late, ones=True)[0]
    return array_ops.astype(inner, xp.float64), array_ops.astype(right, xp.float64)


def _drawn(system: System, *, rough: bool) -> tuple[np.ndarray, float]:
    """Return the numbers of sampled rows, in the order of the parts, and the weight of all."""
    factors = system.factors
    n = factors.shape[0]
    costs = Costs.of(factors, system.n_targets, precise=not rough)
    size = min(ceil(costs.preconditioning(n, system.tol)[0] * factors.rank), n)
    if system.weights is None:
        return np.sort(system.rng.choice(n, size, replace=False)), float(n)
    # Rows drawn in proportion to their weights count equally.
    weights = np.asarray(array_ops.to_numpy(factors.arrange(system.weights)))
    mass = float(weights.sum())
    return np.sort(system.rng.choice(n, size, p=weights / mass)), mass


def _inverse(
    inner: Array, alphas: np.ndarray, *, definite: bool = False
) -> Callable[[np.ndarray], np.ndarray]:
    """Return (ZᵀWZ + alpha I)⁻¹ as a function, for one alpha per column."""
    apply = linalg.shifted_inverse(inner, alphas, definite=definite)
    return lambda B: array_ops.to_numpy(apply(array_ops.like(B, inner)))
