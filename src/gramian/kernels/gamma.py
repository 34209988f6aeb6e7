"""The parameter gamma of kernels: a number, a bandwidth, or a rule that depends on the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt
from typing import ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.checks import positive
from gramian.backend.threads import one_blas_thread
from gramian.kernels import learning, refining
from gramian.kernels.base import ProfileKernel
from gramian.kernels.leave_one_out import draw as draw_with_targets
from gramian.rows import Rows

Gamma: TypeAlias = float | str | tuple[str, float] | None  # a number or a rule

SAMPLE_ROWS = 1000  # rows sampled for rules that need distances: half a million pairs
LEARNT_ROWS = 2000  # rows sampled for parameters that are learned from a target
SQUARES = 8  # matrices of these rows by these rows in memory at once


class GammaKernel(ProfileKernel):
    """Base class of profile kernels with a parameter ``gamma``: a positive number or a rule.

    The rule ``"scale"`` means 1 / (n_features * X.var()), as in scikit-learn's SVC. The rule
    ``"loo"`` needs a target: the gamma with the smallest leave-one-out error of kernel ridge.
    """

    gamma: Gamma
    default_rule: ClassVar[str] = "scale"
    # Values to choose from where another parameter is "loo".
    candidates: ClassVar[dict[str, tuple[float, ...]]] = {}

    @property
    def _gamma(self) -> float:
        """gamma as a number."""
        number = self._given()
        if number is not None:
            return number
        try:
            return self.gamma_
        except AttributeError:
            name, rule = type(self).__name__, self._rule()
            raise NotFittedError(
                f"{name} has gamma={rule!r}, a rule that needs data. Call kernel.fit(X) first, or "
                f"give a number, such as {name}(gamma=0.1)."
            ) from None

    def fit_rows(
        self,
        rows: Rows,
        rng: np.random.Generator,
        weights: Array | None = None,
        y: Array | None = None,
    ) -> GammaKernel:
        if self.learned_parameters():
            self._learn(rows, rng, weights, y)
        else:
            self._fit_gamma(rows, rng, weights)
        return self

    @one_blas_thread()  # for so few rows, threads of BLAS take longer
    def _fit_gamma(self, rows: Rows, rng: np.random.Generator, weights: Array | None) -> None:
        gamma = self._given()
        some: Callable[[int], Array] = partial(draw, rows, rng, weights)
        if gamma is None:
            if self._rule() == "scale":
                gamma = self._from_spread(rows.shape[1], variance(self._mapped(rows), weights))
            else:
                sample = some(SAMPLE_ROWS)
                gamma = self._from_rule(self._rule(), sample)
                some = lambda most: sample[:most]  # noqa: E731
        self.gamma_ = gamma
        self._warn_if_flat(some)

    def learned_parameters(self) -> list[str]:
        """Return the names of the parameters that are learned from a target."""
        return [
            name
            for name, value in self.get_params(deep=False).items()
            if isinstance(value, str) and (value == "loo" or name == "scales")
        ]

    def _words(self) -> dict[str, str]:
        """Return the parameters that are words."""
        return {k: v for k, v in self.get_params(deep=False).items() if isinstance(v, str)}

    def variants(self) -> list[Self]:
        """Return this kernel with each candidate for the parameters that are "loo", save gamma."""
        found = [self]
        for name, values in self.candidates.items():
            if getattr(self, name) == "loo":
                found = [clone(one).set_params(**{name: v}) for one in found for v in values]
        return found

    def _chosen(self, name: str) -> float:
        """Return a parameter that has candidates: the number given, or the one that was learned."""
        value = getattr(self, name)
        if not isinstance(value, str) or value != "loo":
            return value
        if not hasattr(self, f"{name}_"):
            raise NotFittedError(
                f"{type(self).__name__} has {name}='loo', which needs a target: call "
                "kernel.fit(X, y) first."
            )
        return getattr(self, f"{name}_")

    def _learn(
        self, rows: Rows, rng: np.random.Generator, weights: Array | None, y: Array | None
    ) -> learning.Learned:
        if y is None:
            given = ", ".join(f"{name}={word!r}" for name, word in self._words().items())
            raise ValueError(
                f"{type(self).__name__} with {given} learns from a target: use a learner that has "
                "one, such as KernelRidge, or call kernel.fit(X, y)."
            )
        sample = draw_with_targets(rows, y, weights, rng, self._learnt_rows(rows))
        learned = learning.learn(self, sample)
        if learned.importances is not None:
            learned = self._refined(learned, rows, rng, weights, y)
        self.gamma_ = float(learned.trial.kernel.gamma)
        for name in self.candidates:
            if getattr(self, name) == "loo":
                setattr(self, f"{name}_", getattr(learned.trial.kernel, name))
        return learned

    def _refined(
        self,
        learned: learning.Learned,
        rows: Rows,
        rng: np.random.Generator,
        weights: Array | None,
        y: Array,
    ) -> learning.Learned:
        """Return what more rows say about the scales, if there are many."""
        count = self._refining_rows(rows)
        if not count:
            return learned
        bench = refining.Bench(draw_with_targets(rows, y, weights, rng, count))

        def rule(scales: np.ndarray) -> float | None:
            return learning.set_gamma(clone(self).set_params(scales=scales), bench.landmarks)

        kernel, fit = learned.trial
        metric = self._words()["scales"] == "metric"
        found = refining.refine(kernel, fit.alpha, bench, metric, rule)
        shares = learning.shares_of(bench.squares(found, metric=False), bench.landmarks)
        return learning.Learned(learning.Trial(found.kernel, fit), shares)

    def _refining_rows(self, rows: Rows) -> int:
        return refining.affordable(*rows.shape, config.memory_budget() // 2)

    def _learnt_rows(self, rows: Rows) -> int:
        """Return how many rows to learn from: what they take is within the memory budget."""
        room = config.memory_budget() // 4
        most = min(isqrt(room // (8 * SQUARES)), room // (8 * rows.shape[1]))
        return max(min(rows.shape[0], LEARNT_ROWS, most), 2)

    def pairings(self, X: np.ndarray) -> np.ndarray:
        """Return the pairings of some rows with each other, without gamma, in float64."""
        return type(self).pairing(X, 1.0, 0.0)(X)

    def _mapped(self, rows: Rows) -> Rows:
        """Return the rows as the pairing sees them."""
        return rows

    def fit_bytes(self, rows: Rows) -> int:
        learned, count = self.learned_parameters(), SAMPLE_ROWS
        squares = refined = 0
        if learned:
            count = self._learnt_rows(rows)
            squares = 8 * SQUARES * count**2
        if "scales" in learned:
            refined = refining.nbytes(self._refining_rows(rows), rows.shape[1])
        sample = min(rows.shape[0], count) * rows.row_bytes
        sample *= 1 + 2 * 8 // array_ops.itemsize(rows.dtype)  # and in float64
        return max(squares + sample, refined)

    def _warn_if_flat(self, some: Callable[[int], Array]) -> None:
        """Warn if gamma makes all rows look alike, or no two rows look alike.

        ``some(most)`` returns a sample of at most ``most`` rows.
        """

    def _given(self) -> float | None:
        """Return gamma if it is a number, else None."""
        if self.gamma is None or isinstance(self.gamma, str | tuple | list):
            return None
        return positive(self, "gamma", self.gamma)

    def _rule(self) -> Gamma:
        return self.default_rule if self.gamma is None else self.gamma

    def _from_rule(self, rule: Gamma, sample: Array) -> float:
        raise ValueError(
            f"gamma of {type(self).__name__} must be a positive number or 'scale'; got {rule!r}."
        )

    def _from_spread(self, d: int, variance: float) -> float:
        return 1.0 / (d * variance) if variance > 0 else 1.0


def draw(rows: Rows, rng: np.random.Generator, weights: Array | None, count: int) -> Array:
    """Draw a sample of at most ``count`` rows, in float64 on the host."""
    n = rows.shape[0]
    chances = None
    if weights is not None:
        chances = array_ops.to_numpy(weights / array_ops.namespace(weights).sum(weights))
    most = n if chances is None else int(np.count_nonzero(chances))
    chosen = rng.choice(n, size=min(most, count), replace=False, p=chances)
    sample = rows.take(np.sort(chosen))
    sample = sample if array_ops.issparse(sample) else array_ops.to_numpy(sample)
    return sample.astype(np.float64)


def variance(rows: Rows, weights: Array | None = None) -> float:
    """Return the variance of all entries of the rows, in one pass."""
    xp = rows.xp
    first = rows.take([0])
    sparse = array_ops.issparse(first)
    shift = 0.0 if sparse else float(xp.mean(first))  # near the mean, to avoid cancellation

    def moments(x: Array, w: Array | None = None) -> np.ndarray:
        values = x if sparse else array_ops.astype(x, xp.float64) - shift
        sums = values.sum(axis=1) if sparse else xp.sum(values, axis=1), array_ops.row_norms(values)
        parts = [np.asarray(array_ops.to_numpy(s), dtype=np.float64).ravel() for s in sums]
        w = np.ones(x.shape[0]) if w is None else array_ops.to_numpy(w)
        return np.asarray([w @ parts[0], w @ parts[1], w.sum() * x.shape[1]])

    total, squares, count = rows.sum(moments, *(() if weights is None else (weights,)))
    return max(float(squares / count - (total / count) ** 2), 0.0)
