"""Base class of kernels of a distance: gamma or bandwidth, and the scales of columns."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from math import sqrt
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.exceptions import NotFittedError

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, is_real, positive
from gramian.backend.wording import counted
from gramian.kernels import learning, pairings
from gramian.kernels.base import KernelWarning
from gramian.kernels.gamma import SAMPLE_ROWS, Gamma, GammaKernel
from gramian.kernels.gpu_form import GpuForm
from gramian.kernels.pairings import Tile
from gramian.rows import FeatureRows, Rows

Scales: TypeAlias = Array | Literal["learn", "metric"] | None

FLAT_ROWS = 500  # of the sampled rows, used to decide whether to warn about gamma
FEW_ROWS = 40  # of these, looked at first
# If the kernel value at the mean distance is between these, nearly all values are neither 0 nor 1.
MODERATE = 1e-3, 0.99


class DistanceKernel(GammaKernel):
    """Base class of kernels of the distance of two rows that decrease from 1 at distance 0.

    Set ``gamma`` or ``bandwidth``, not both. Further rules for gamma measure a length σ on a sample
    of rows: ``"median"`` (σ is the median distance), ``"mean"`` (σ² is the mean squared distance)
    and ``("percentile", q)``. A bandwidth σ means gamma = 1 / (2σ²) in kernels of the squared
    distance and 1 / σ in kernels of the distance; the percentile rule uses 1 / σ² and 1 / σ.

    ``scales`` multiply the columns of all rows before the distance: one number for each column, or
    a matrix for a linear map of the rows. ``"learn"`` and ``"metric"`` learn them from a target.
    Rules for gamma see the rows after that. Learned scales have mean 1; gamma, unless it is set, is
    then learned with them.
    """

    squared: ClassVar[bool] = True  # whether gamma multiplies the squared distance
    scales: Scales

    def __init__(
        self,
        gamma: Gamma = None,
        *,
        bandwidth: float | Literal["loo"] | None = None,
        scales: Scales = None,
    ) -> None:
        self.gamma = gamma
        self.bandwidth = bandwidth
        self.scales = scales

    def _given(self) -> float | None:
        if self.bandwidth is None or (self.bandwidth == "loo" and self.gamma is None):
            return super()._given()
        if self.gamma is not None:
            raise ValueError(
                f"{type(self).__name__} takes gamma or bandwidth, not both; got "
                f"gamma={self.gamma!r} and bandwidth={self.bandwidth!r}. Leave one of them out."
            )
        return self._from_length(positive(self, "bandwidth", self.bandwidth))

    # The scales of columns.

    def _learn(
        self, rows: Rows, rng: np.random.Generator, weights: Array | None, y: Array | None
    ) -> learning.Learned:
        if isinstance(self.scales, str):
            choice(self, "scales", self.scales, ("learn", "metric"))
        learned = super()._learn(rows, rng, weights, y)
        if learned.importances is not None:
            self.scales_ = learned.trial.kernel.scales
            self.feature_importances_ = learned.importances
        return learned

    def column_scales(self) -> np.ndarray | None:
        """Return the scales in use, shape (d,) or (d, d), in float64; None if there are none."""
        if self.scales is None:
            return None
        if isinstance(self.scales, str):
            try:
                return self.scales_
            except AttributeError:
                raise NotFittedError(
                    f"{type(self).__name__} has scales={self.scales!r}, which are learned from a "
                    "target: call kernel.fit(X, y) first."
                ) from None
        scales = array_ops.host_float64(self.scales)
        square = scales.ndim == 2 and scales.shape[0] == scales.shape[1]
        if not (scales.ndim == 1 or square) or not np.isfinite(scales).all():
            raise ValueError(
                f"scales of {type(self).__name__} must be 'learn', 'metric', one number for each "
                f"column, or a square matrix; got shape {scales.shape}."
            )
        return scales

    def against(self, points: Array) -> Tile:
        scales = self.column_scales()
        if scales is None:
            return super().against(points)
        if len(scales) != points.shape[1]:
            raise ValueError(
                f"scales of {type(self).__name__} are for {counted(len(scales), 'column')}, but "
                f"the rows have {points.shape[1]}."
            )
        tile = super().against(scaled(points, scales))
        return lambda x, out=None: tile(scaled(x, scales), out)

    def _seen(self, X: Array) -> Array:
        """Return rows as the pairing sees them."""
        scales = self.column_scales()
        return X if scales is None else scaled(X, scales)

    def pairings(self, X: np.ndarray) -> np.ndarray:
        return super().pairings(self._seen(X))

    def gpu_form(self) -> GpuForm | None:
        return super().gpu_form() if self.scales is None else None

    def _mapped(self, rows: Rows) -> Rows:
        if self.scales is None:
            return rows
        return FeatureRows(rows, lambda x, out=None: self._seen(x), rows.shape[1], rows.dtype)

    # The rules for gamma.

    def diagonal(self, rows: Rows) -> Array:
        # k(x, x) is the same for all rows, so only the first one is read.
        first = self._diagonal(rows.take([0]))
        return array_ops.take_rows(first, np.zeros(rows.shape[0], dtype=np.intp))

    def _diagonal(self, x: Array) -> Array:
        return array_ops.like(np.ones(x.shape[0]), x, dtype=x.dtype)

    def check_values(self, rows: Rows) -> None:
        """Do nothing: k(x, x) is the same for all rows."""

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
        pairs = squareform(
            self._distances(self._seen(sample)), checks=False
        )  # entries above the diagonal
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
        if self.learned_parameters():
            return super().fit_bytes(rows)
        by_distance = self._given() is None and self._rule() != "scale"
        compared = min(rows.shape[0], SAMPLE_ROWS if by_distance else FLAT_ROWS)
        # All distances, and two copies of those above the diagonal.
        return super().fit_bytes(rows) + 2 * 8 * compared**2

    def _warn_if_flat(self, some: Callable[[int], Array]) -> None:
        # A few rows tell of most kernels that they are not flat.
        few = some(FEW_ROWS)
        if few.shape[0] < 10 or self._is_moderate(few) or self._flatness(few) is None:
            return
        sample = some(FLAT_ROWS)
        said = self._flatness(sample)
        if said is None:
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

    def _is_moderate(self, sample: Array) -> bool:
        """Whether a glance at the rows tells that ``_flatness`` finds nothing wrong."""
        return False

    def _flatness(self, sample: Array) -> str | None:
        """Return what is wrong with nearly all kernel values between the rows, if anything is."""
        n = sample.shape[0]
        K = self.against(sample)(sample)
        np.fill_diagonal(K, 0.0)
        if 2 * np.count_nonzero(K.max(axis=1) < 1e-7) > n:  # each row's nearest other row
            return "nearly all kernel values between different rows are 0; K is near the identity"
        if np.count_nonzero(K > 0.999) > 0.99 * n * (n - 1):
            return "nearly all kernel values are 1; K is near a constant matrix"
        return None


class EuclideanKernel(DistanceKernel):
    """Base class of kernels of the Euclidean distance."""

    pairing = staticmethod(pairings.squared_euclidean)
    stationary = True

    def _distances(self, sample: Array) -> np.ndarray:
        return np.sqrt(pairings.squared_euclidean(sample, 1.0, 0.0)(sample))

    def _is_moderate(self, sample: Array) -> bool:
        # Twice the variance of the columns is the mean squared distance.
        if array_ops.issparse(sample):
            return False
        sample, n = self._seen(sample), sample.shape[0]
        with np.errstate(over="ignore", invalid="ignore"):
            centred = sample - np.add.reduce(sample, axis=0) / n
            squares = 2.0 * float(np.vdot(centred, centred)) / (n - 1)
            value = self._profile(np.full((1, 1), self._scale() * squares))
        return MODERATE[0] < float(value[0, 0]) < MODERATE[1]


def scaled(x: Array, scales: np.ndarray) -> Array:
    """Return a block of rows with scaled columns, or times the matrix of a linear map."""
    if array_ops.issparse(x):
        product = x.multiply(scales[None, :]) if scales.ndim == 1 else x @ scales
        return product.tocsr() if array_ops.issparse(product) else product
    scales = array_ops.like(scales, x, x.dtype)
    return x * scales if scales.ndim == 1 else x @ scales
