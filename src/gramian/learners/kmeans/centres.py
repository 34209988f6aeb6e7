"""What learners share whose clusters are centres in the kernel's space."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, ApproximationWarning, Nystroem
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner, NewRows, as_weights
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows


class KernelCentres(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, KernelLearner):
    """Base of the learners whose clusters are centres; a fit ends with ``_place``."""

    _learned: Array  # what kernel values or features of new rows are multiplied with
    _norms: Array  # of the centres, squared

    def _place(self, dual: Array, norms: Array, centres: Array | None) -> None:
        """Keep the centres, by their features and by kernel values."""
        self._learned, self._norms = self._function(dual), norms
        self._n_features_out = int(norms.shape[0])
        for name in ("centres_", "centre_coefficients_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if centres is None:
            self.centre_coefficients_ = dual
            return
        self.centres_ = centres
        if isinstance(self.approximation_, Nystroem):
            self.centre_coefficients_ = self.approximation_.on_landmarks(centres)

    def _place_at(self, centres: Array, factors: Factors) -> None:
        """The same from centres alone; ``factors`` are any of the approximation in use."""
        xp = array_ops.namespace(centres)
        turned = xp.matrix_transpose(centres)
        dual = factors.core_matmul(turned)
        self._place(dual, xp.sum(turned * dual, axis=0), centres)

    def _problem(self, *arguments: Any) -> Any:
        """As of any learner, with weights of 1 where none are given."""
        problem = super()._problem(*arguments)
        return replace(problem, weights=_full(problem.weights, problem.rows))

    def _first_batch(self, X: Any, rng: np.random.Generator, sample_weight: Any, y: Any) -> Any:
        """The first rows of a stream, from which all is learned that later ones do not change."""
        with warnings.catch_warnings():
            if not isinstance(self.kernel, Approximation):  # landmarks that nobody asked for
                warnings.simplefilter("ignore", ApproximationWarning)
            return self._problem(X, rng, sample_weight, y, of_a_stream)

    def _next_batch(self, X: Any, sample_weight: Any) -> Any:
        """Later rows of the stream, in the features that the first gave."""
        batch = self._batch(X, None, first=False, sample_weight=sample_weight)
        return replace(batch, weights=_full(batch.weights, batch.rows))

    def _settled_labels(self, labels: Array, rows: Rows) -> Array:
        labels = array_ops.astype(labels, array_ops.namespace(labels).int32)
        return rows.place.hand_back_kept(labels)

    def predict(self, X: Any) -> Array:
        """The nearest centre of each row of X."""
        check_is_fitted(self, "_learned")
        if isinstance(self.approximation_, Nystroem):  # needs no features of the rows
            rows = self._read(X, reset=False)
            landmarks = ArrayRows(self.approximation_.landmarks_.points)
            product = Gram(self.kernel_, rows, landmarks).matmul(self.centre_coefficients_)
            squared = array_ops.beside(self._norms, product) - 2.0 * product
        else:
            new, squared = self._distances_less_diagonal(X)
            rows = new.rows
        xp = array_ops.namespace(squared)
        return rows.place.hand_back(array_ops.astype(xp.argmin(squared, axis=1), xp.int32))

    def transform(self, X: Any) -> Array:
        """The distance, in the kernel's space, from each row of X to each centre."""
        new, squared = self._squared_distances(X)
        distances = array_ops.astype(array_ops.inplace("sqrt", squared), new.dtype)
        return new.rows.place.hand_back(distances)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then the distance of each training row to each centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances of the rows of X to their nearest centre."""
        new, squared = self._squared_distances(X)
        xp = array_ops.namespace(squared)
        nearest = xp.min(squared, axis=1)
        weights = as_weights(sample_weight, new.rows)
        return -float(xp.sum(nearest if weights is None else nearest * weights))

    def risk(self, X: Any) -> float:
        """The mean squared distance of the rows of X to their nearest centre: W(C, μ).

        Distances are those of the kernel itself: with an approximation, what it leaves out of
        k(x, x) counts too. One that is unbiased, such as KernelJL, leaves nothing out: its own
        distances are taken, since they are closer than a difference of large estimates.
        """
        squared = self._squared_distances(X, exactly=True)[1]
        xp = array_ops.namespace(squared)
        return float(xp.mean(xp.min(squared, axis=1)))

    def _distances_less_diagonal(self, X: Any) -> tuple[NewRows, Array]:
        """Squared distances of new rows to each centre, less k(x, x)."""
        check_is_fitted(self, "_learned")
        new = self._new_rows(X, self._learned)
        return new, array_ops.beside(self._norms, new.product) - 2.0 * new.product

    def _squared_distances(self, X: Any, exactly: bool = False) -> tuple[NewRows, Array]:
        new, squared = self._distances_less_diagonal(X)
        if new.factors is None or (exactly and not self._is_unbiased()):
            own = self.kernel_.diagonal(new.rows)
            own = array_ops.astype(own, array_ops.namespace(own).float64)
        else:
            own = new.factors.diagonal()
        return new, array_ops.clip(squared + own[:, None], low=0.0)

    def _is_unbiased(self) -> bool:
        return self.approximation_ is not None and self.approximation_.unbiased


def of_a_stream(kernel: Kernel, n: int) -> Approximation:
    """What stands for a bare kernel where more rows will come than the n that are there."""
    # The square root of a batch would be too few for all that follows it.
    return Nystroem(kernel, min(n, max(100, int(np.ceil(n**0.5)))))


def _full(weights: Array | None, rows: Rows) -> Array:
    return rows.place.constant(1.0) if weights is None else weights
