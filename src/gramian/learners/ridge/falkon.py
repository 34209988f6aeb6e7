"""Ridge on the features Z of many rows without ZᵀZ: conjugate gradients over blocks of rows.

After FALKON (Rudi, Carratino and Rosasco, 2017): the preconditioner is ZᵀZ of a sample of rows.
If Z = C P with kernel values C, a product with Z is computed as C (P v), and only C is cached or
computed: multiplying each row with P would cost as much as ZᵀZ itself. Everything is in float64
except C, which has the dtype of the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import numpy as np

from gramian.backend import array_ops, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.ridge.factored import (
    Factored,
    Sums,
    left_out_bytes,
    mean_square,
    sample_weights,
    shifted_norms,
    targets_bytes,
)
from gramian.learners.ridge.systems import Solution, System, Watch
from gramian.learners.strategy import Strategy, keeping, room_left
from gramian.matrices.factors import Factors, keepable, projected, unprojected
from gramian.matrices.normal_equations import inner_products
from gramian.rows import ArrayRows, FeatureRows

MOST_ITERATIONS = 150  # with solver="auto"; a direct solution follows if they do not converge

# Costs in units of one operation of a float32 matrix product, about 0.01 ns on one core.
KERNEL_VALUE = 200  # computing one kernel value, or another feature
PASS = 40  # one iteration over one entry of C, which is read from memory
PASS_TARGET = 4  # the same, for each target
DOUBLE = 2  # float64 relative to float32
MOST_TIMES = 60  # rows of the preconditioner, as a multiple of the features
ITERATIONS, EXPONENT = 120, 0.7  # for a preconditioner of r rows; fewer by this power of its rows


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
            iteration_pays(system.factors, system.n_targets, room, precise=precise)
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
        passes = C.parts[0].walk_bytes(8 * m, 8 * m * t)
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
        alphas = system.alphas
        inner = _preconditioner(system)
        precondition = _inverse(inner, alphas)
        with one_blas_thread():
            products = _Products(system, room)
            (right, e), *of_held_out = products.with_targets(system.Y)
            mean = e / system.weight if system.intercept else np.zeros_like(e)
            watch = Watch(None)
            if of_held_out:
                held_out = _HeldOut(system, *of_held_out[0], mean)
                watch = Watch(held_out.error)

            # (Z - 1 meanᵀ)ᵀ W (Z - 1 meanᵀ): were the mean taken out of ZᵀWZ instead, rounding
            # could leave negative eigenvalues.
            def apply(V: np.ndarray) -> np.ndarray:
                shift = mean.T @ V
                (image, total), *other = products.with_features(V, shift)
                if other:
                    held_out.look_at(other[0][0], shift)
                return image - mean * total + alphas * V

            tol = max(system.tol, 50 * array_ops.eps(products.dtype))  # products are rounded
            theta, _, left = linalg.conjugate_gradients(
                apply, right, precondition, tol=tol, max_iter=max_iter, watch=watch
            )
        solution = watch.solution(theta, left, tol)
        found = solution.coefficients
        b = -(mean.T @ found)[0] if system.intercept else None
        left_out = None
        if system.sampled is not None and not system.validates:
            left_out = _left_out(system, found, 0.0 if b is None else b, mean[:, 0], inner)
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


def streams(factors: Factors) -> bool:
    """Whether the factors are features in one part, without a core."""
    return len(factors.parts) == 1 and factors.core is None


def iteration_pays(factors: Factors, n_targets: int, room: int, *, precise: bool) -> bool:
    """Whether iterating over C should cost less than ZᵀZ and its Cholesky factor.

    ``room`` is the memory that C may take.
    """
    if not streams(factors):
        return False
    n, r, C = factors.shape[0], factors.rank, projected(factors) or factors
    m = C.rank
    factor = DOUBLE if precise or array_ops.itemsize(factors.dtype) == 8 else 1
    make, row = _row_costs(factors, factor)
    times, iterations = _preconditioning(factors)
    cached = keepable(C, room, partly=True)  # other rows of C are recomputed in every pass
    made = make * (n + (n - cached) * iterations)
    passes = iterations * factor * n * m * (PASS + PASS_TARGET * n_targets)
    return times * r * row + made + passes < n * row


def _row_costs(factors: Factors, factor: int = 1) -> tuple[float, float]:
    """Return the costs of a row of C, and of a row in the normal equations, C included."""
    r, values = factors.rank, projected(factors)
    C = values or factors
    make = KERNEL_VALUE * C.rank if isinstance(C.parts[0], FeatureRows) else 0
    project = 0 if values is None else C.rank * r  # P is a triangle
    return make, make + factor * (project + r * r)


def _preconditioning(factors: Factors) -> tuple[float, float]:
    """Return the rows of the preconditioner as a multiple of r, and the expected iterations.

    More rows save iterations, roughly as 1 / times^0.7; the multiple is where both together cost
    least. On a GPU iterations cost little.
    """
    n, r = factors.shape[0], factors.rank
    width = (projected(factors) or factors).rank
    saved = n * width * (PASS + PASS_TARGET) / (r * _row_costs(factors)[1])
    times = (EXPONENT * ITERATIONS * saved) ** (1 / (1 + EXPONENT))
    times = max(min(times, MOST_TIMES, n / r / 4), 4.0)
    most = 2.0 if array_ops.is_on_gpu(factors.parts.example()) else n / r
    times = min(times, most, n / r)
    return times, ITERATIONS / times**EXPONENT


class _Values:
    """A block of C, the kernel values."""

    def __init__(self, c: Array) -> None:
        self.c = c  # (rows, m)

    def times(self, U: Array) -> Array:
        """Multiply with U (m, c); shape (rows, c)."""
        return array_ops.matmul(self.c, U)

    def transposed_times(self, W: Array) -> Array:
        """Multiply the transpose with W (rows, c); shape (m, c)."""
        return array_ops.transposed_matmul(self.c, W)


class _FusedValues:
    """A block of C that is not stored: a GPU program computes products with it from the rows x.

    If float64 is needed, the values are computed after all, some rows at a time, and multiplied in
    the dtype of the other matrix, as the GPU program does.
    """

    def __init__(self, source: FeatureRows, x: Array) -> None:
        self.source, self.x = source, x

    def times(self, U: Array) -> Array:
        product = self.source.fused.times(self.x, U)
        if product is not None:
            return product

        def part(c: Array, out: Array) -> Array:
            return array_ops.matmul(array_ops.astype(c, U.dtype), U, out)

        made, columns = self._made(), U.shape[1]
        return made.map(part, width=columns, dtype=U.dtype, row_bytes=self._spare + 8 * columns)

    def transposed_times(self, W: Array) -> Array:
        product = self.source.fused.transposed_times(self.x, W)
        if product is not None:
            return product
        xp = self.source.xp

        def part(c: Array, w: Array) -> Array:
            return xp.matrix_transpose(array_ops.astype(c, w.dtype)) @ w

        return self._made().sum(part, W, row_bytes=self._spare)

    def _made(self) -> FeatureRows:
        return self.source.on(ArrayRows(self.x))

    @property
    def _spare(self) -> int:
        """Memory per row: values in float64, and those of a tile while it is computed."""
        return 2 * 8 * self.source.shape[1]


class _Products:
    """Sums over all rows: [Z, 1]ᵀW F for F = [Y, 1] or Z V - 1 shift.

    Each is summed with the weights of the rows, and with those of held-out rows if there are any.
    """

    def __init__(self, system: System, room: int) -> None:
        factors = system.factors
        rows, self._P = unprojected(factors)
        self.dtype = factors.xp.float64 if system.precise else factors.dtype
        source: Any = rows.parts[0]
        self._fused = None if getattr(source, "fused", None) is None else source
        self._C = rows if self._fused is not None else rows.persist(room, partly=True)
        weights = (system.weights, system.held_out)
        self._weights = [self._C.arrange(w)[:, None] for w in weights if w is not None]

    def with_targets(self, Y: Array) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return ZᵀWY (r, n_targets) and ZᵀW1 (r, 1) for each kind of weights."""

        def beside_one(values: Any, y: Array) -> Array:
            xp = array_ops.namespace(y)
            return xp.concat((y, xp.ones_like(y[:, :1])), axis=1)

        sums = self._sum(beside_one, Y.shape[1] + 1, self._C.arrange(Y))
        return [(each[:, :-1], each[:, -1:]) for each, _ in sums]

    def with_features(
        self, V: np.ndarray, shift: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return ZᵀWF (r, c) and 1ᵀWF (1, c) for each kind of weights, with F = Z V - 1 shift.

        V has shape (r, c), ``shift`` (1, c).
        """
        xp, example = self._C.xp, self._C.parts.example()
        U, s = (array_ops.like(each, example, xp.float64) for each in (V, shift))
        U = array_ops.astype(U if self._P is None else self._P @ U, self.dtype)
        s = array_ops.astype(s, self.dtype)
        return self._sum(lambda values: values.times(U) - s, U.shape[1])

    def _sum(
        self, function: Callable[..., Array], columns: int, *targets: Array
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return ZᵀWF and 1ᵀWF for each kind of weights; ``function`` makes the rows of F."""
        xp, P, dtype, count = self._C.xp, self._P, self.dtype, len(targets)

        def part(values: _Values | _FusedValues, *aligned: Array) -> tuple[Array, Array]:
            F = array_ops.astype(function(values, *aligned[:count]), dtype)
            if aligned[count:]:
                weights = (array_ops.astype(w, dtype) for w in aligned[count:])
                F = xp.concat([F * w for w in weights], axis=1)
            return values.transposed_times(F), xp.sum(F, axis=0, keepdims=True, dtype=xp.float64)

        kinds = max(len(self._weights), 1)
        result = 8 * (self._C.rank + 1) * columns * kinds
        image, total = self._walk(part, result, *targets, *self._weights)
        image = image if P is None else xp.matrix_transpose(P) @ image
        images, totals = (
            np.split(array_ops.to_numpy(each), kinds, axis=1) for each in (image, total)
        )
        return list(zip(images, totals, strict=True))

    def _walk(
        self, part: Callable[..., Any], result_bytes: int, *aligned: Array
    ) -> tuple[Array, Array]:
        source, dtype = self._fused, self.dtype
        if source is not None:
            return source.rows.sum(
                lambda x, *a: part(_FusedValues(source, x), *a),
                *aligned,
                result_bytes=result_bytes,
                label="ridge",
            )

        def dense(c: Array, *a: Array) -> tuple[Array, Array]:
            return part(_Values(array_ops.astype(c, dtype)), *a)

        spare = 0 if dtype == self._C.dtype else 8 * self._C.rank  # C in float64
        (total,) = self._C.sum(
            lambda _: dense, *aligned, row_bytes=spare, result_bytes=result_bytes
        )
        return total


class _HeldOut:
    """The error on held-out rows, from their ZᵀWZ times each direction of the iteration."""

    def __init__(self, system: System, right: np.ndarray, e: np.ndarray, mean: np.ndarray) -> None:
        self._sums = Sums.without_features(system.Y, system.held_out)._replace(
            right=right, features=e[:, 0]
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


def _preconditioner(system: System) -> Array:
    """Return ZᵀWZ (r, r), estimated from a sample of rows and the landmarks."""
    factors = system.factors
    n, r = factors.shape[0], factors.rank
    size = min(ceil(_preconditioning(factors)[0] * r), n)
    mass = float(n)
    if system.weights is None:
        numbers = system.rng.choice(n, size, replace=False)
    else:  # rows drawn in proportion to their weights count equally
        weights = np.asarray(array_ops.to_numpy(factors.arrange(system.weights)))
        mass = float(weights.sum())
        numbers = system.rng.choice(n, size, p=weights / mass)
    sample = Factors(factors.parts[0].choose(np.sort(numbers)))
    precise = system.precise
    late = precise and system.late
    inner, e = (
        array_ops.astype(each, factors.xp.float64)
        for each in inner_products(sample, precise=precise and not late, late=late, ones=True)[0]
    )
    if system.intercept:
        inner -= (e / size) @ factors.xp.matrix_transpose(e)
    inner *= mass / size
    P = unprojected(factors)[1]
    if P is not None:
        # Some features may be nonzero only for a landmark far from all other rows. Since
        # P Pᵀ = W⁺, the features of the landmarks have the inner products (PᵀP)⁻¹.
        inner += (mass / n) * array_ops.like(linalg.inverse_inner(P), inner)
    return inner


def _inverse(inner: Array, alphas: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return (ZᵀWZ + alpha I)⁻¹ as a function, for one alpha per column."""
    apply = linalg.shifted_inverse(inner, alphas)
    return lambda B: array_ops.to_numpy(apply(array_ops.like(B, inner)))
