"""The parameter gamma of kernels: a number, a bandwidth, or a rule that depends on the data."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from math import sqrt
from typing import ClassVar, TypeAlias

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.exceptions import NotFittedError

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import is_real, positive
from gramian.kernels.base import KernelWarning, ProfileKernel
from gramian.rows import Rows

Gamma: TypeAlias = float | str | tuple[str, float] | None  # a number or a rule

SAMPLE_ROWS = 1000  # rows sampled for rules that need distances: half a million pairs
FLAT_ROWS = 500  # of these, used to decide whether to warn about gamma


class GammaKernel(ProfileKernel):
    """Base class of profile kernels with a parameter ``gamma``: a positive number or a rule.

    The rule ``"scale"`` means 1 / (n_features * X.var()), as in scikit-learn's SVC.
    """

    gamma: Gamma
    default_rule: ClassVar[str] = "scale"

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
        self, rows: Rows, rng: np.random.Generator, weights: Array | None = None
    ) -> GammaKernel:
        gamma = self._given()
        sample = _draw(rows, rng, weights)
        if gamma is None:
            if self._rule() == "scale":
                gamma = self._from_spread(rows.shape[1], variance(rows, weights))
            else:
                gamma = self._from_rule(self._rule(), sample)
        self.gamma_ = gamma
        self._warn_if_flat(sample)
        return self

    def fit_bytes(self, rows: Rows) -> int:
        sample = min(rows.shape[0], SAMPLE_ROWS) * rows.row_bytes
        return sample * (1 + 2 * 8 // array_ops.itemsize(rows.dtype))  # and in float64

    def _warn_if_flat(self, sample: Array) -> None:
        """Warn if gamma makes all rows look alike, or no two rows look alike."""

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


class DistanceKernel(GammaKernel):
    """Base class of kernels of the distance of two rows that decrease from 1 at distance 0.

    Set ``gamma`` or ``bandwidth``, not both. Further rules for gamma measure a length σ on a sample
    of rows: ``"median"`` (σ is the median distance), ``"mean"`` (σ² is the mean squared distance)
    and ``("percentile", q)``. A bandwidth σ means gamma = 1 / (2σ²) in kernels of the squared
    distance and 1 / σ in kernels of the distance; the percentile rule uses 1 / σ² and 1 / σ.
    """

    squared: ClassVar[bool] = True  # whether gamma multiplies the squared distance

    def __init__(self, gamma: Gamma = None, *, bandwidth: float | None = None) -> None:
        self.gamma = gamma
        self.bandwidth = bandwidth

    def _given(self) -> float | None:
        if self.bandwidth is None:
            return super()._given()
        if self.gamma is not None:
            raise ValueError(
                f"{type(self).__name__} takes gamma or bandwidth, not both; got "
                f"gamma={self.gamma!r} and bandwidth={self.bandwidth!r}. Leave one of them out."
            )
        return self._from_length(positive(self, "bandwidth", self.bandwidth))

    def diagonal(self, rows: Rows) -> Array:
        # k(x, x) is the same for all rows, so only the first one is read.
        first = self._diagonal(rows.take([0]))
        return array_ops.take_rows(first, np.zeros(rows.shape[0], dtype=np.intp))

    def _diagonal(self, x: Array) -> Array:
        return array_ops.like(np.ones(x.shape[0]), x, dtype=x.dtype)

    def _from_rule(self, rule: Gamma, sample: Array) -> float:
        if rule == "median":
            return self._from_length(float(np.median(self._lengths(sample))))
        if rule == "mean":
            return self._from_length(sqrt(float(np.mean(self._lengths(sample) ** 2))))
        if isinstance(rule, tuple | list) and len(rule) == 2 and rule[0] == "percentile":
            if not is_real(rule[1]) or not 0 < rule[1] <= 100:
                raise ValueError(f"A percentile is a number in (0, 100]; got gamma={rule!r}.")
            length = float(np.percentile(self._lengths(sample), rule[1]))
            return 1.0 / length**2 if self.squared else 1.0 / length
        raise ValueError(
            f"gamma of {type(self).__name__} must be a positive number, 'scale', 'median', 'mean' "
            f"or ('percentile', q); got {rule!r}."
        )

    def _from_length(self, length: float) -> float:
        return 1.0 / (2.0 * length**2) if self.squared else 1.0 / length

    def _lengths(self, sample: Array) -> np.ndarray:
        """Return the distances between different rows of the sample, without zeros."""
        pairs = squareform(self._distances(sample), checks=False)  # entries above the diagonal
        pairs = pairs[pairs > 0]
        if not len(pairs):
            raise ValueError(
                f"gamma={self._rule()!r} needs rows that differ; all sampled rows are the same. "
                "Set gamma to a number."
            )
        return pairs

    @abstractmethod
    def _distances(self, sample: Array) -> np.ndarray:
        """Return the matrix of distances between the sampled rows, in float64."""

    def fit_bytes(self, rows: Rows) -> int:
        by_distance = self._given() is None and self._rule() != "scale"
        compared = min(rows.shape[0], SAMPLE_ROWS if by_distance else FLAT_ROWS)
        # All distances, and two copies of those above the diagonal.
        return super().fit_bytes(rows) + 2 * 8 * compared**2

    def _warn_if_flat(self, sample: Array) -> None:
        sample = sample[:FLAT_ROWS]
        n = sample.shape[0]
        if n < 10:
            return
        K = self.against(sample)(sample)
        np.fill_diagonal(K, 0.0)
        if np.median(K.max(axis=1)) < 1e-7:  # each row's nearest other row
            said = "nearly all kernel values between different rows are 0; K is near the identity"
        elif np.percentile(squareform(K, checks=False), 1) > 0.999:
            said = "nearly all kernel values are 1; K is near a constant matrix"
        else:
            return
        try:
            hint = f" Try gamma={self._from_rule('median', sample):.2g}."
        except ValueError:  # all sampled rows are the same: no gamma helps
            hint = ""
        warnings.warn(
            f"{type(self).__name__} with gamma={self._gamma:.3g} on these rows: {said}.{hint}",
            KernelWarning,
            stacklevel=2,
        )


def _draw(rows: Rows, rng: np.random.Generator, weights: Array | None) -> Array:
    """Draw a sample of rows, in float64 on the host."""
    n = rows.shape[0]
    chances = None
    if weights is not None:
        chances = array_ops.to_numpy(weights / array_ops.namespace(weights).sum(weights))
    most = n if chances is None else int(np.count_nonzero(chances))
    chosen = rng.choice(n, size=min(most, SAMPLE_ROWS), replace=False, p=chances)
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
