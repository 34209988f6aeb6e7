"""Kernel ridge with the exact matrix: by a Cholesky factor, or by iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import log

import numpy as np

from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts, MemoryEstimate
from gramian.backend.threads import one_blas_thread
from gramian.kernels.tiles import tile_columns
from gramian.learners.ridge.systems import Mean, Solution, System, Watch
from gramian.learners.strategy import Strategy, room_left
from gramian.matrices.gram import Gram
from gramian.samplers.pivoted import factor_bytes, pivoted_cholesky

# On a GPU, iterating over the kept matrix takes less time than a factor of more rows.
MOST_FACTORISED = 30_000
# An iteration for so many rows: together they cost about half of a factor, if kernel values of rows
# with few columns are computed again in each. Each column adds to that.
ROWS_PER_ITERATION = 1000
GPU_ROWS_PER_ITERATION = 500  # on an H200, with the matrix kept
FEW_COLUMNS = 75


class ExactDirect(Strategy[System]):
    """Factorise K + alpha I in place, once for each distinct alpha."""

    def serves(self, system: System) -> bool:
        if not system.is_exact or system.rule is not None or system.iterates:
            return False
        return system.solver == "direct" or self._pays(system)

    def _pays(self, system: System) -> bool:
        """Whether it should take less time than to see first if an iteration is quick."""
        gram = system.gram
        if system.is_local or not _on_gpu(system):
            return gram.fits()
        return gram.shape[0] <= MOST_FACTORISED

    def memory(self, system: System) -> Sequence[Amounts]:
        n, item = system.gram.shape[0], array_ops.itemsize(system.gram.dtype)
        in_float32 = 4 * n**2 if item == 4 else 0
        factor = 8 * n**2 if array_ops.is_foreign(system.gram.rows.place.reference) else 0  # a copy
        units = 4 * 8 * n * system.sample_size
        own = {"kernel matrix": 8 * n**2 + in_float32, "factor": factor, "left-out rows": units}
        return [{**other_memory(system), **own}]

    def solve(self, system: System) -> Solution:
        gram, alphas = system.gram, system.alphas
        K, B = weighted_matrix(system), system.weighted(system.Y)
        xp = array_ops.namespace(K)
        diagonal = array_ops.copy(xp.linalg.diagonal(K))
        out, intercepts = xp.zeros_like(B), np.zeros(len(alphas))
        extra = _extra_columns(system, B)
        count = 0 if system.sampled is None else len(system.sampled)
        freedom = np.zeros((count, len(alphas)))
        with blas_threads(gram.shape[0]):
            for alpha in np.unique(alphas):
                more = bool(alpha < alphas.max())  # then K is needed again
                where = np.flatnonzero(alphas == alpha)
                A = array_ops.set_diagonal(K, diagonal + float(alpha))
                right = xp.concat((array_ops.take_columns(B, where), *extra), axis=1)
                part = _solved(A, right, float(alpha), restore=more)
                if system.intercept:
                    part, b = without_mean(system, part)
                    intercepts[where] = b[: len(where)]
                for i, column in enumerate(where):
                    out[:, int(column)] = part[:, i]
                if count:
                    units = system.of_sample(part[:, len(where) :])
                    freedom[:, where] = units.diagonal()[:, None]
        a, kept = system.weighted(out), intercepts if system.intercept else None
        left_out = left_out_rows(system, a, freedom) if count else None
        return Solution(a, kept, left_out=left_out)


def blas_threads(n: int) -> AbstractContextManager[None]:
    """Use one thread for matrices of so few rows that threads wait longer than they work.

    Also if more could crash: OpenBLAS's Cholesky on larger matrices (issue 2562).
    """
    return nullcontext() if 1000 < n <= 10_000 else one_blas_thread()


def _solved(A: Array, right: Array, alpha: float, *, restore: bool) -> Array:
    """Solve A x = right; a singular A is an error that says what to do."""
    try:
        return array_ops.solve_symmetric(A, right, restore=restore)
    except (np.linalg.LinAlgError, RuntimeError) as error:  # the second is torch's
        raise np.linalg.LinAlgError(
            f"K + alpha I is singular for alpha={alpha:.3g}, up to rounding: rows may "
            "be repeated, or the kernel is indefinite. Use a larger alpha."
        ) from error


def _extra_columns(system: System, B: Array) -> list[Array]:
    """Return further targets: unit vectors of sampled rows, whose solutions tell what each row has
    to itself, and q, whose solution is what a constant changes."""
    extra = []
    if system.sampled is not None:
        units = np.zeros((B.shape[0], len(system.sampled)))
        units[system.sampled, np.arange(len(system.sampled))] = 1.0
        extra.append(array_ops.like(units, B))
    return [*extra, system.q] if system.intercept else extra


def without_mean(system: System, found: Array) -> tuple[Array, np.ndarray]:
    """Return d (n, c) orthogonal to q, and the intercepts, from solutions with q as last target."""
    xp, d, constant = array_ops.namespace(found), found[:, :-1], found[:, -1:]
    turned = xp.matrix_transpose(system.q)
    b = (turned @ d) / (turned @ constant)
    return d - constant * b, array_ops.host_float64(b)[0] / system.weight**0.5


def left_out_rows(system: System, a: Array, freedom: np.ndarray) -> np.ndarray:
    """Return scores of sampled rows as if they were left out.

    ``freedom`` (rows, n_targets) has entries of the diagonal of (Π W^½ K W^½ Π + alpha I)⁻¹ Π; a
    fit without row i misses its weighted target by d_i divided by its entry. ``a`` are the
    coefficients W^½ d.
    """
    missed = system.of_sample(a) / np.maximum(freedom, np.finfo(float).tiny)
    if system.weights is not None:
        missed = missed / system.of_sample(system.weights[:, None])
    return system.of_sample(system.Y) - missed


class ExactIterative(Strategy[System]):
    """Conjugate gradients on ``gram.matmul``, preconditioned by a part of K of low rank.

    The matrix is kept where it is small, and on a GPU wherever the memory budget allows. With
    solver="auto", it is factorised after all if iterations would cost more than a part of that, and
    the budget allows it: n³/3 operations are enough whatever alpha is.
    """

    def serves(self, system: System) -> bool:
        return system.is_exact and system.rule is None and system.solver != "direct"

    def memory(self, system: System) -> Sequence[Amounts]:
        kept = _kept_bytes(system)
        steps: list[Amounts] = [{**step, "kernel matrix": kept} for step in self._steps(system)]
        return [*steps, *ExactDirect().memory(system)] if _may_factorise(system) else steps

    def _steps(self, system: System) -> list[Amounts]:
        """Return the memory of each step, in addition to the matrix."""
        rows, n = system.gram.rows, system.gram.shape[0]
        other, rank = other_memory(system), _rank(system)
        factor, inner = 8 * n * rank, 3 * 8 * rank**2
        # Columns, and what becomes of them; or a copy, while it is weighted, then projected.
        made = 3 * factor if _on_gpu(system) else factor_bytes(rows, rank, np.float64) + factor
        return [
            {**other, "preconditioner": made + inner},
            {**other, "preconditioner": factor + inner, "iteration": 8 * 8 * n * system.n_targets},
        ]

    def solve(self, system: System) -> Solution:
        if not _may_factorise(system):
            return self._iterate(system, system.max_iter, patient=True)
        most = min(_iterations_that_pay(system), system.max_iter)
        if most:
            solution = self._iterate(system, most, patient=False)
            if solution.met:
                return solution
        return ExactDirect().solve(system)

    @one_blas_thread()
    def _iterate(self, system: System, max_iter: int, *, patient: bool) -> Solution:
        gram = system.gram.stored() if _kept_bytes(system) else system.gram
        B, rank = system.weighted(system.Y), _rank(system)
        F = _low_rank(gram, rank, system)
        precondition = _preconditioner(system.projected(F, overwrite=True), system.alphas)
        shift, mean = array_ops.like(system.alphas, B), Mean(None)
        if system.intercept:
            image = system.weighted(gram.matmul(system.weighted(system.q)))
            mean = Mean(image / system.weight**0.5)
        held_out = _HeldOutRows(system, mean)

        def apply(V: Array) -> Array:
            image = gram.matmul(system.weighted(V))
            held_out.look_at(image)
            return system.projected(system.weighted(image)) + shift * V

        watch = Watch(None if system.held_out is None else held_out.error)
        if not patient:
            watch = _Impatient(system.tol, max_iter)
        try:
            dual, _, left = linalg.conjugate_gradients(
                apply, B, precondition, tol=system.tol, max_iter=max_iter, watch=watch
            )
        except linalg.NotPositiveDefiniteError as error:
            raise ValueError(
                f"K + alpha I is not positive definite: {gram.kernel!r} is indefinite on these "
                "rows. Use a larger alpha, a positive semi-definite kernel such as RBF, or "
                "solver='direct'."
            ) from error
        solution = watch.solution(dual, left, system.tol)
        found = system.projected(solution.coefficients)
        return solution._replace(
            coefficients=system.weighted(found),
            intercepts=array_ops.host_float64(mean.intercepts(found)) if system.intercept else None,
        )


def _iterations_that_pay(system: System) -> int:
    """Return how many iterations together cost about half of a factor."""
    gram = system.gram
    n, columns = gram.shape[0], 0 if gram.kernel.is_matrix else gram.rows.shape[1]
    recomputed = not (gram.is_kept or _kept_bytes(system))
    cost = max(columns / FEW_COLUMNS, 1.0) if recomputed else 1.0
    rows = GPU_ROWS_PER_ITERATION if _on_gpu(system) and not recomputed else ROWS_PER_ITERATION
    return int(n / (rows * cost))


class _Impatient(Watch):
    """Stops an iteration that is not going to meet the tolerance in time."""

    def __init__(self, tol: float, most: int) -> None:
        super().__init__(None)
        self._tol, self._most = tol, most

    def __call__(self, X: Array, length: Array, left: float) -> bool:
        super().__call__(X, length, left)
        count = len(self.residuals)
        if count < max(3, self._most // 4) or left <= self._tol:
            return False
        # If each iteration goes on to reduce the residual as those before did, on average.
        return left >= 1 or count * log(self._tol) / log(left) > 1.5 * self._most


def _may_factorise(system: System) -> bool:
    """Whether a factor may follow an iteration that takes too long."""
    if system.is_local or system.solver != "auto" or system.iterates:
        return False
    return MemoryEstimate.peak(ExactDirect().memory(system)).fits()


def _on_gpu(system: System) -> bool:
    return bool(array_ops.is_on_gpu(system.gram.rows.place.reference))


def _kept_bytes(system: System) -> int:
    """Return the memory of the matrix if an iteration keeps it, else 0."""
    gram = system.gram
    if system.is_local or gram.is_kept or not (_on_gpu(system) or gram.fits()):
        return 0
    room = min(room_left(step) for step in ExactIterative()._steps(system))
    return gram.nbytes if gram.nbytes <= room else 0


def _rank(system: System) -> int:
    """Return the rank of the preconditioner.

    Its cost grows as n·rank², that of an iteration as n². If iterations become fewer as
    1 / rank^0.7, both together are least where rank^2.7 is proportional to n. On a GPU the constant
    is that of an H200.
    """
    n = system.gram.shape[0]
    if not _on_gpu(system):
        return preconditioner_rank(n)
    return preconditioner_rank(n, most=min(int((1.5e5 * n) ** (1 / 2.7)), max(n // 2, 1)))


def _low_rank(gram: Gram, rank: int, system: System) -> Array:
    """Return F (n, rank), in float64, with F Fᵀ ≈ W^½ K W^½.

    On a GPU its columns are drawn uniformly, since drawing by what others leave unexplained waits
    for the host.
    """
    xp, n = gram.rows.xp, gram.shape[0]
    if not _on_gpu(system):
        factor = pivoted_cholesky(gram, rank, system.rng, tol=1e-10, dtype=xp.float64).factor
        return system.weighted(factor)
    numbers = np.sort(system.rng.choice(n, rank, replace=False))
    return system.weighted(nystroem_factor(gram, numbers))


def nystroem_factor(gram: Gram, numbers: np.ndarray) -> Array:
    """Return F (n, rank), in float64, with F Fᵀ = C W⁻¹ Cᵀ for these columns C of K.

    W has a small multiple of the identity added to it, above rounding.
    """
    xp = gram.rows.xp
    C = array_ops.astype(gram.columns(numbers), xp.float64)
    W = array_ops.take_rows(C, numbers)
    diagonal = xp.linalg.diagonal(W)
    size = len(numbers) * array_ops.eps(gram.dtype) * float(xp.max(xp.abs(diagonal)))
    for _ in range(6):
        array_ops.set_diagonal(W, diagonal + size)
        try:
            L = linalg.lower_factor(array_ops.copy(W))
        except linalg.NotPositiveDefiniteError:
            size *= 10
            continue
        turned = xp.matrix_transpose(C)
        return xp.matrix_transpose(linalg.solve_lower(L, turned))
    raise linalg.NotPositiveDefiniteError("the kernel is indefinite on these rows")


def _preconditioner(F: Array, alphas: np.ndarray) -> Callable[[Array], Array]:
    """Return (F Fᵀ + αI)⁻¹ = (I - F (FᵀF + αI)⁻¹ Fᵀ) / α, for one alpha per column."""
    xp = array_ops.namespace(F)
    turned = xp.matrix_transpose(F)
    inner = turned @ F
    shifts = np.maximum(alphas, 1e-12 * float(xp.sum(xp.linalg.diagonal(inner))))
    solve, divided = linalg.shifted_inverse(inner, shifts), array_ops.like(1.0 / shifts, F)
    return lambda V: (V - F @ solve(turned @ V)) * divided


def other_memory(system: System) -> Amounts:
    """Return the memory of every exact solution: targets, and blocks of kernel values."""
    gram, t = system.gram, system.n_targets
    n, item = gram.shape[0], array_ops.itemsize(gram.dtype)
    columns = min(n, tile_columns(gram.rows.place.reference))
    return {
        "targets": 4 * 8 * n * (t + 3),
        "blocks": gram.rows.walk_bytes(item * (columns + 4 * t)),
    }


def weighted_matrix(system: System) -> Array:
    """Return W^½ K W^½, stored, shape (n, n)."""
    return weigh(array_ops.astype(system.gram.dense(), system.gram.rows.xp.float64), system)


def weigh(K: Array, system: System) -> Array:
    """Turn K into W^½ K W^½, in place."""
    root = system.root
    if root is not None:
        K *= root
        K *= array_ops.namespace(K).matrix_transpose(root)
    return K


def preconditioner_rank(n: int, most: int | None = None) -> int:
    """Return the number of pivots: the factor takes at most a quarter of the memory budget."""
    room = config.memory_budget() // 4 // (8 * n)
    return max(min(most or min(int(10 * n**0.5), 2000), room), 1)


class _HeldOutRows:
    """The error on held-out rows, whose weight is 0.

    K times a direction has values for these rows too, so their predictions need no further kernel
    values.
    """

    def __init__(self, system: System, mean: Mean) -> None:
        self._mean = mean
        if system.held_out is None:
            self._numbers = np.empty(0, dtype=int)
            return
        self._numbers = np.flatnonzero(array_ops.to_numpy(system.held_out))
        self._left = array_ops.take_rows(system.Y, self._numbers)
        weights = array_ops.take_rows(system.held_out, self._numbers)[:, None]
        self._xp = array_ops.namespace(weights)
        self._weights = weights / (float(self._xp.sum(weights)) * self._left.shape[1])

    def look_at(self, image: Array) -> None:
        if len(self._numbers):
            self._image = array_ops.take_rows(image, self._numbers)

    def error(self, X: Array, length: Array) -> float:
        self._left = self._left - length * self._image
        missed = self._left - self._mean.intercepts(X)
        return float(self._xp.sum(self._weights * missed**2))
