"""A path of alphas from one decomposition, with the leave-one-out error of each.

Let T = V |λ|^½ for the eigenpairs of W^½ K̃ W^½. Then weighted fitted values are T c for each alpha,
and the leverage of row i is h_i = Σ_j ± T_ij² / (λ_j + alpha). A fit without row i, with all its
weight, has the residual (y_i - f_i) / (1 - h_i) there. Generalised cross-validation replaces each
h_i by their mean. With an intercept, K̃ is centred, and each row has its share in the weight as
further leverage. Equal rows are left out together (``repeats.py``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import one_blas_thread
from gramian.learners.ridge.blockwise import Blockwise
from gramian.learners.ridge.exact import ExactDirect, left_out_rows, other_memory, weighted_matrix
from gramian.learners.ridge.factored import (
    Decomposition,
    Sums,
    decomposed,
    from_sums,
    targets_bytes,
)
from gramian.learners.ridge.falkon import Streamed
from gramian.learners.ridge.repeats import Repeats, repeats_bytes
from gramian.learners.ridge.systems import STEPS, AlphaPath, Mean, Rule, Solution, System
from gramian.learners.strategy import Strategy
from gramian.matrices.block_core import BlockCore
from gramian.matrices.factors import Factors, projected, unprojected
from gramian.rows import ArrayRows

FLAT = 0.99  # of an error: what is above it is hardly larger
ROUNDED = 1e-12  # a sum of squares is known to this part of it


class PathWarning(UserWarning):
    """The chosen alpha is the smallest or the largest of those that were passed.

    See Also
    --------
    KernelRidge : chooses alpha with ``alpha="loo"`` or ``"gcv"``.

    Examples
    --------
    >>> import warnings
    >>> from gramian import KernelRidge, PathWarning
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 0.0, 1.0]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = KernelRidge(("loo", [1e-3, 1e-2])).fit(X, y)
    >>> caught[0].category is PathWarning
    True
    """


def warn_at_an_edge(solution: Solution, rule: Rule | None) -> None:
    """Warn if the error still falls by more than a hundredth where the user's alphas end.

    The default grid needs no warning: it begins where f vanishes and ends where rounding begins.
    """
    if rule is None or rule.grid is None or solution.path is None or solution.alphas is None:
        return
    order = np.argsort(solution.path.alphas)
    alphas, errors = solution.path.alphas[order], solution.path.errors[order]
    errors = errors.mean(axis=1, keepdims=True) if rule.shared else errors
    if len(alphas) == 1:
        return
    falls = FLAT * errors[[1, -2]] > errors[[0, -1]]
    small, large = (falls & (solution.alphas == alphas[[0, -1], None])).any(axis=1)
    if not (small or large):
        return
    end, value = ("smallest", alphas[0]) if small else ("largest", alphas[-1])
    warnings.warn(
        f"alpha={rule.error!r} chose the {end} alpha ({value:.2g}) of its path, where the error "
        f"still falls: try {'smaller' if small else 'larger'} ones.",
        PathWarning,
        stacklevel=6,
    )


class ExactPath(Strategy[System]):
    """Choose alpha from the eigenvectors of the exact matrix."""

    def serves(self, system: System) -> bool:
        if not system.is_exact or system.is_local or system.rule is None or system.iterates:
            return False
        return ExactDirect().serves(system.settled())

    def memory(self, system: System) -> Sequence[Amounts]:
        square = 8 * system.gram.shape[0] ** 2
        # Eigenvectors, also scaled.
        own = {"kernel matrix": square, "decomposition": 3 * square}
        return [{**other_memory(system), "equal rows": repeats_bytes(system), **own}]

    def solve(self, system: System) -> Solution:
        gram, rule = system.gram, system.rule
        assert rule is not None
        K, B = weighted_matrix(system), system.weighted(system.Y)
        xp, mean, taken = gram.rows.xp, Mean(None), 0.0
        if system.intercept:
            mean, taken = _centre(K, system)
        if array_ops.is_foreign(K):
            values, V = xp.linalg.eigh(K)
        else:
            # Its threads would wait for each other thousands of times: if another process takes
            # a core, they are many times slower than one.
            with one_blas_thread():
                values, V = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False)
        turned = xp.matrix_transpose(V) @ B
        roots = xp.sqrt(xp.abs(values))
        sums, repeats = Sums.without_features(system.Y, system.weights), Repeats.of(system)
        right = turned
        if repeats is not None:  # without what only rounding lets a matrix of equal rows explain
            right = xp.matrix_transpose(V) @ system.weighted(repeats.means)
        host = [np.asarray(array_ops.to_numpy(a)) for a in (values, roots[:, None] * right)]
        spectrum = Decomposition(host[0], np.empty(0), host[1])
        alphas = rule.alphas(max(spectrum.values.max(), taken), gram.dtype)
        if rule.error == "gcv":
            errors = gcv_errors(spectrum, sums, alphas, repeats, intercept=system.intercept)
        else:
            rows = Factors(ArrayRows(system.projected(V * roots)))
            errors = loo_errors(rows, None, spectrum, system, alphas, repeats, weighted=True)
        chosen = rule.choose(alphas, errors)
        dual = V @ (turned / (values[:, None] + array_ops.like(chosen, turned)))
        dual = system.projected(dual)  # of rounding along q, which small alphas enlarge
        a, left_out = system.weighted(dual), None
        if system.sampled is not None:
            some = system.of_sample(system.projected(V)) ** 2
            left_out = left_out_rows(system, a, some @ (1.0 / (host[0][:, None] + chosen)))
        return Solution(
            a,
            array_ops.host_float64(mean.intercepts(dual)) if system.intercept else None,
            left_out=left_out,
            alphas=chosen,
            path=AlphaPath(alphas, errors),
        )


def _centre(K: Array, system: System) -> tuple[Mean, float]:
    """Replace K by Π K Π, in place; return the mean, and the size qᵀKq of what that takes away."""
    xp, q = array_ops.namespace(K), system.q
    u = K @ q
    size = float((xp.matrix_transpose(q) @ u)[0, 0])
    half = u - 0.5 * size * q
    turned = xp.matrix_transpose(q)
    K -= half @ turned
    K -= q @ xp.matrix_transpose(half)
    return Mean(u / system.weight**0.5), size


class FactoredPath(Strategy[System]):
    """Choose alpha from the decomposition of ZᵀWZ; "loo" takes one more pass over the rows."""

    def serves(self, system: System) -> bool:
        if system.is_exact or system.rule is None or system.iterates:
            return False
        settled = system.settled()
        return not (Streamed().serves(settled) or Blockwise().serves(settled))

    def memory(self, system: System) -> Sequence[Amounts]:
        factors = system.factors
        r, C = factors.rank, projected(factors) or factors
        turned = 2 * 8 * C.rank * r  # from kernel values to directions
        spare = 8 * (2 * r + 3 * STEPS * (system.n_targets + 1))
        copies = 4 if factors.core is None else 7
        return [
            *from_sums(system, copies * 8 * r**2),
            {
                **targets_bytes(system),
                "equal rows": repeats_bytes(system),
                "sums": 8 * r**2,
                "decomposition": 2 * 8 * r**2 + turned,
                "blocks": max((Z.walk_bytes(spare) for Z in C.parts), default=0),
            },
        ]

    def solve(self, system: System) -> Solution:
        rule = system.rule
        assert rule is not None
        return factored_path(rule, Sums.of(system), system, Repeats.of(system))


def factored_path(
    rule: Rule, sums: Sums, system: System, repeats: Repeats | None = None
) -> Solution:
    """Return the solution for the best alphas; only "loo" walks the rows of the system."""
    factors, intercept = system.factors, system.intercept
    used = sums.centred() if intercept else sums
    spectrum = Decomposition.of(used, factors.core)
    taken = sums.features @ _times(factors.core, sums.features) / sums.weight if intercept else 0.0
    alphas = rule.alphas(max(spectrum.values.max(), taken), factors.dtype)
    if rule.error == "gcv":
        errors = gcv_errors(spectrum, used, alphas, repeats, intercept=intercept)
    else:
        rows, P = unprojected(factors)
        turn = system.local(spectrum.P)
        turn = turn if P is None else P @ turn
        mean = spectrum.turned((sums.features / sums.weight)[None, :])[0] if intercept else None
        errors = loo_errors(rows, turn, spectrum, system, alphas, repeats, mean=mean)
    chosen = rule.choose(alphas, errors)
    solution = decomposed(system, sums, spectrum, chosen)
    return solution._replace(alphas=chosen, path=AlphaPath(alphas, errors))


def _times(core: BlockCore | None, v: np.ndarray) -> np.ndarray:
    return v if core is None else core.matmul(v[:, None])[:, 0]


def gcv_errors(
    spectrum: Decomposition, sums: Sums, alphas: np.ndarray, repeats: Repeats | None, *,
    intercept: bool,
) -> np.ndarray:  # fmt: skip
    """Return generalised cross-validation errors (n_alphas, n_targets); only sums are needed.

    Where a fit nearly interpolates, what it misses and what it leaves free both vanish. Each is
    summed direction by direction, from α / (λ + α), so that rounding does not decide their ratio.
    """
    sums = sums if repeats is None else repeats.between(sums)
    errors = np.full((len(alphas), len(sums.squares)), np.inf)
    most = sums.rows - intercept  # directions that targets can have
    largest = np.argsort(-np.abs(spectrum.values), kind="stable")[:most]
    values, sizes = spectrum.values[largest], np.abs(spectrum.values[largest])[:, None]
    within = np.divide(
        spectrum.right[largest] ** 2,
        sizes,
        where=sizes > 0,
        out=np.zeros((len(sizes), len(errors.T))),
    )
    outside = np.zeros_like(sums.squares)
    if len(values) < most:
        outside = np.maximum(sums.squares - within.sum(axis=0), ROUNDED * sums.squares)
    for i in np.flatnonzero(spectrum.values.min() + alphas > 0):
        left = alphas[i] / (values + alphas[i])
        free = (most - len(values) + left.sum()) / sums.rows
        errors[i] = (outside + left**2 @ within) / sums.weight / max(free, ROUNDED) ** 2
    return errors


def loo_errors(
    rows: Factors, turn: Array | None, spectrum: Decomposition, system: System,
    alphas: np.ndarray, repeats: Repeats | None, *, mean: np.ndarray | None = None,
    weighted: bool = False,
) -> np.ndarray:  # fmt: skip
    """Return mean squared leave-one-out errors, shape (n_alphas, n_targets), in one pass.

    T of a block is its rows times ``turn`` (columns, r), minus ``mean`` (r,), times the roots of
    their weights unless it is ``weighted`` already.
    """
    B = system.weighted(system.Y if repeats is None else repeats.means)
    root, precise = (None, False) if weighted else (system.root, system.precise)
    xp, n_targets = rows.xp, B.shape[1]
    errors = np.full((len(alphas), n_targets), np.inf)
    usable = np.flatnonzero(spectrum.values.min() + alphas > 0)
    inverse = spectrum.signs[:, None] / (spectrum.values[:, None] + alphas[usable])
    if not len(usable):
        return errors
    dtype = xp.float64 if precise else rows.dtype
    least = array_ops.eps(dtype)
    fitted = inverse[:, :, None] * spectrum.right[:, None, :]
    onto_values = array_ops.like(fitted.reshape(len(fitted), -1), rows.parts.example(), dtype)
    onto_leverage = array_ops.like(inverse, rows.parts.example(), dtype)
    count = len(usable)
    turn = None if turn is None else array_ops.astype(turn, dtype)
    moved = None if mean is None else array_ops.like(mean, rows.parts.example(), dtype)
    share = system.share() if system.intercept else None
    groups = None if repeats is None else repeats.shares
    has = [a is not None for a in (root, share, groups)]  # a function for workers has no rows

    def prepare(columns: slice) -> Callable[..., Array]:
        part_turn = turn if turn is None else turn[columns, :]

        def part(c: Array, b: Array, *others: Array) -> Array:
            T = array_ops.astype(c, dtype)
            T = T if part_turn is None else T @ part_turn
            T = T if moved is None else T - moved
            given = iter(others)
            T = T * array_ops.astype(next(given), dtype) if has[0] else T
            values = array_ops.astype(T @ onto_values, xp.float64)
            leverage = array_ops.astype((T * T) @ onto_leverage, xp.float64)
            leverage = leverage + next(given) if has[1] else leverage
            free = 1.0 - (leverage * next(given) if has[2] else leverage)
            free = xp.where(free > least, free, xp.full_like(free, least))
            missed = b[:, None, :] - xp.reshape(values, (-1, count, n_targets))
            return xp.sum((missed / free[:, :, None]) ** 2, axis=0)

        return part

    aligned = [rows.arrange(a) for a in (B, root, share, groups) if a is not None]
    spare = 8 * (2 * len(inverse) + 3 * len(usable) * (n_targets + 1))
    parts = rows.sum(prepare, *aligned, row_bytes=spare, label="leaving out rows")
    total = sum(np.asarray(array_ops.to_numpy(part)) for part in parts)
    within = 0.0 if repeats is None else repeats.within
    errors[usable] = (total + within) / system.weight
    return errors
