"""Learn gamma and the scales of columns from a target (AGOP, recursive feature machines).

Kernel ridge f is fitted with gamma and alpha chosen by leave-one-out. The mean over the rows of
(∂f/∂x_c)² says how much column c matters; its root becomes the column's scale, and the next round
begins. The full form is the matrix of the mean of ∇f ∇fᵀ, and its root a linear map of the rows.

Scales have seen every target, so the leave-one-out error with them is too good. The number of
rounds is therefore chosen across two halves: those learned on one half are judged by the
leave-one-out error of the other. Where no round helps there, as with a target of noise, all columns
keep their scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gramian.kernels import pairings
from gramian.kernels.leave_one_out import (
    ALPHA_STEP,
    LEAST,
    MOST,
    Fit,
    TargetSample,
    best_alpha,
    error_of,
    fit,
)

ROUNDS = 5  # of learning scales, at most
GAIN = 0.002  # a round must lower the error by this fraction
STEP = 2.0  # between neighbouring gammas
LEVEL = 0.001  # errors that differ by less are level
SPAN = 100.0  # gammas are searched within this factor of the usual one
MOST_MOVES = 30  # between the gamma and alpha at which a search begins and those that it finds
FEW = 500  # rows whose median distance gives the gamma to begin with
GRADIENTS = 500  # rows whose gradients are averaged
NUMBERS = 1 << 27  # rows with gradients, times points, times columns, at most
NUDGE = 1e-4  # relative, of the difference quotient of a profile

Kernel = Any  # a GammaKernel; one with scales is a Kernel


class Trial(NamedTuple):
    """A kernel with numbers for its parameters, and the ridge fitted with it."""

    kernel: Kernel
    fit: Fit

    @property
    def error(self) -> float:
        return self.fit.error


class Learned(NamedTuple):
    """What was learned from a sample."""

    trial: Trial
    importances: np.ndarray | None  # (d,), of sum 1; None if no scales were asked for


def learn(kernel: Kernel, sample: TargetSample) -> Learned:
    """Learn those parameters of a kernel that are "loo", "learn" or "metric"."""
    scales = getattr(kernel, "scales", None)
    learns_scales, metric = isinstance(scales, str), isinstance(scales, str) and scales == "metric"
    if learns_scales:
        _check_gradients(kernel, metric)
        kernel = clone(kernel).set_params(scales=None)
        scales = None
    variants = kernel.variants()
    if len(variants) > 1 or not learns_scales:
        trials = [search(one, sample, scales) for one in variants]
        best = min(range(len(trials)), key=lambda i: trials[i].error)
        if not learns_scales:
            return Learned(trials[best], None)
        kernel = variants[best]
    return _with_scales(kernel, sample, metric)


def _with_scales(kernel: Kernel, sample: TargetSample, metric: bool) -> Learned:
    rounds = _rounds(kernel, sample, metric)
    trial = next(trial for i, trial in enumerate(path(kernel, sample, metric)) if i == rounds)
    return Learned(trial, importances(trial, sample))


def importances(trial: Trial, sample: TargetSample) -> np.ndarray:
    """Return the share of each column in the squared changes of f, shape (d,), of sum 1."""
    return shares_of(squared_gradients(trial, sample, metric=False), sample.X)


def shares_of(squares: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return importances (d,) from squared gradients (d,) and the spread of the columns."""
    shares = squares * X.var(axis=0)
    total = float(shares.sum())
    return shares / total if total > 0 else np.full(len(shares), 1 / len(shares))


def path(kernel: Kernel, sample: TargetSample, metric: bool) -> Iterator[Trial]:
    """Yield the fit with equal scales, and then one for each round."""
    scales = np.ones(sample.X.shape[1])
    trial = None
    while True:
        trial = search(kernel, sample, scales, trial)
        yield trial
        scales = next_scales(trial, sample, metric)


def _rounds(kernel: Kernel, sample: TargetSample, metric: bool) -> int:
    """Return how many rounds of scales lower the error of rows that they were not learned from."""
    n = len(sample.X)
    if n < 8 or not sample.Y.any():
        return 0
    order = np.random.default_rng(0).permutation(n)
    halves = [sample.take(np.sort(part)) for part in (order[: n // 2], order[n // 2 :])]
    paths = [path(kernel, half, metric) for half in halves]
    judged: list[Trial | None] = [None, None]
    errors: list[float] = []
    for _ in range(ROUNDS + 1):
        trials = [next(each) for each in paths]
        judged = [
            search(kernel, half, trial.kernel.scales, before or trial)
            for half, trial, before in zip(reversed(halves), trials, judged, strict=True)
        ]
        errors.append(sum(trial.error for trial in judged if trial is not None))
        if len(errors) > 1 and errors[-1] > (1 - GAIN) * errors[-2]:
            return len(errors) - 2
    return ROUNDS


def search(
    kernel: Kernel,
    sample: TargetSample,
    scales: np.ndarray | None = None,
    near: Trial | None = None,
) -> Trial:
    """Return the best gamma and alpha for these scales, beginning near those of another trial."""
    kernel = kernel if scales is None else clone(kernel).set_params(scales=scales)
    U = kernel.pairings(sample.X)
    if kernel.stationary:
        np.fill_diagonal(U, 0.0)
    gamma, usual = set_gamma(kernel, sample.X), _usual_gamma(kernel, sample.X, U)
    if gamma is not None or near is None:
        first = _tried(kernel, gamma or usual)
        trial = Trial(first, best_alpha(_matrix(first, U), sample, near and near.fit.alpha))
        if gamma is not None:
            return trial
        near = trial
    start_gamma, start_alpha = near.kernel.gamma, near.fit.alpha
    size = float(np.mean(np.diagonal(_matrix(near.kernel, U))))

    @lru_cache(maxsize=2)
    def kernel_matrix(step: int) -> np.ndarray:
        return _matrix(_tried(kernel, start_gamma * STEP**step), U)

    @cache
    def fitted(steps: tuple[int, int]) -> Fit | None:
        gamma, alpha = start_gamma * STEP ** steps[0], start_alpha * ALPHA_STEP ** steps[1]
        near_usual = 1 / SPAN < gamma / usual < SPAN and LEAST * size < alpha < MOST * size
        if steps != (0, 0) and not near_usual:
            return None
        return fit(kernel_matrix(steps[0]), sample, alpha)

    steps = walk(lambda at: error_of(fitted(at)))
    best = fitted(steps)
    assert best is not None
    return Trial(_tried(kernel, start_gamma * STEP ** steps[0]), best)


# With a larger gamma most kernels need a larger alpha, so both change together.
MOVES = ((0, 1), (0, -1), (1, 1), (-1, -1), (1, 0), (-1, 0))


def walk(error: Callable[[tuple[int, int]], float]) -> tuple[int, int]:
    """Return the point of the grid, near the origin, at which no move lowers the error."""
    best, moves = (0, 0), list(MOVES)
    for _ in range(MOST_MOVES):
        better = next((m for m in moves if error(_plus(best, m)) < (1 - LEVEL) * error(best)), None)
        if better is None:
            break
        best = _plus(best, better)
        moves.sort(key=lambda m: m != better)  # what helped may help again
    return best


def _plus(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] + b[0], a[1] + b[1]


def _tried(kernel: Kernel, gamma: float) -> Kernel:
    others = {"bandwidth": None} if hasattr(kernel, "bandwidth") else {}
    return clone(kernel).set_params(gamma=float(gamma), **others)


def _matrix(kernel: Kernel, U: np.ndarray) -> np.ndarray:
    return kernel._profile(kernel._scale() * U)


def set_gamma(kernel: Kernel, X: np.ndarray) -> float | None:
    """Return gamma on these rows if it is a number or a rule; None if it is to be searched."""
    given = kernel._given()
    if given is not None or kernel.gamma is None or kernel.gamma == "loo":
        return given
    if kernel.gamma == "scale":
        seen = kernel._seen(X) if hasattr(kernel, "scales") else X
        return kernel._from_spread(X.shape[1], float(seen.var()))
    return kernel._from_rule(kernel.gamma, X)


def _usual_gamma(kernel: Kernel, X: np.ndarray, U: np.ndarray) -> float:
    """Return the gamma around which to search: that of the median distance, if there are any."""
    if not kernel.stationary:
        return kernel._from_spread(X.shape[1], float(X.var()))
    some = U[:FEW, :FEW]
    some = some[some > 0]
    if not len(some):  # all rows are the same
        return 1.0
    length = float(np.median(some))
    euclidean = type(kernel).pairing is pairings.squared_euclidean
    return kernel._from_length(length**0.5 if euclidean else length)


def next_scales(trial: Trial, sample: TargetSample, metric: bool) -> np.ndarray:
    """Return scales (d,), or a metric (d, d), from the gradients of a fit; their mean is 1."""
    return root_of(squared_gradients(trial, sample, metric))


def root_of(squares: np.ndarray) -> np.ndarray:
    """Return the root of squared gradients, (d,) or (d, d), with mean 1; ones if all are 0."""
    if squares.ndim == 2:
        values, vectors = np.linalg.eigh(squares)
        scales = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        size = np.trace(scales) / len(scales)
    else:
        scales = np.sqrt(squares)
        size = scales.mean()
    return scales / size if size > 0 else np.ones(len(squares))


def squared_gradients(trial: Trial, sample: TargetSample, metric: bool) -> np.ndarray:
    """Return the mean of (∂f/∂x_c)² by columns c, shape (d,), or of ∇f ∇fᵀ, shape (d, d)."""
    scales = trial.kernel.scales
    Z = sample.X if scales is None else mapped(sample.X, scales)
    n, d = Z.shape
    count = max(min(n, GRADIENTS, NUMBERS // (n * d)), 1)
    rows = np.linspace(0, n - 1, count).astype(int)
    total = np.zeros((d, d) if metric else d)
    for G in gradients(trial.kernel, Z[rows], Z, trial.fit.coefficients):
        G = G if scales is None else mapped(G, scales)  # by the chain rule; a metric is symmetric
        total += G.T @ G if metric else np.einsum("ij,ij->j", G, G)
    return total / count


def gradients(
    kernel: Kernel, x: np.ndarray, Z: np.ndarray, coefficients: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield, for each target, the gradients of Σ a_i k(·, z_i) at the rows x, shape (rows, d)."""
    D = _slopes(kernel, type(kernel).pairing(Z, 1.0, 0.0)(x))
    if type(kernel).pairing is pairings.squared_euclidean:
        for a in coefficients.T:
            weighted = D * a
            yield 2.0 * (x * weighted.sum(axis=1)[:, None] - weighted @ Z)
        return
    by_column = np.empty((coefficients.shape[1], *x.shape))
    for c in range(x.shape[1]):  # the distance changes by the sign of x_c - z_c
        signed = D * np.sign(x[:, c, None] - Z[None, :, c])
        by_column[:, :, c] = (signed @ coefficients).T
    yield from by_column


def _slopes(kernel: Kernel, U: np.ndarray) -> np.ndarray:
    """Return the derivative of the kernel by its pairing, 0 where that is 0."""
    u = kernel._scale() * U
    change = kernel._profile(u * (1 + NUDGE)) - kernel._profile(u * (1 - NUDGE))
    return np.divide(change, 2 * NUDGE * U, out=np.zeros_like(U), where=U > 0)


def unlearned(kernel: Kernel) -> Kernel:
    """Return a copy with defaults in place of parameters that would be learned from a target."""
    usual = {}
    for path, part in {"": kernel, **kernel.get_params(deep=True)}.items():
        for name in getattr(part, "learned_parameters", tuple)():
            default = signature(type(part)).parameters[name].default
            usual[f"{path}__{name}" if path else name] = default
    return clone(kernel).set_params(**usual)


def _check_gradients(kernel: Kernel, metric: bool) -> None:
    euclidean = type(kernel).pairing is pairings.squared_euclidean
    if not euclidean and (metric or type(kernel).pairing is not pairings.cityblock):
        word, also = ("metric", "") if metric else ("learn", ", or Laplacian")
        raise ValueError(
            f"scales={word!r} is for kernels of the Euclidean distance, such as RBF or Matern"
            f"{also}; got {type(kernel).__name__}."
        )


def mapped(X: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the rows with scaled columns, or times the matrix of a metric."""
    return X * scales if scales.ndim == 1 else X @ scales
