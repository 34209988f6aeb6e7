"""Base class of learners whose clusters have centres in feature space."""

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
from gramian.estimators.parameters import RowsLike
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner, NewRows, as_weights
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows


class KernelCentres(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, KernelLearner):
    """Base of learners whose clusters have centres; a fit ends with ``_place``."""

    # Kernel values (n, m) or features (n, r) of new rows times this are products with the centres.
    _learned: Array  # (m, k) or (r, k)
    _norms: Array  # squared norms of the centres, (k,)

    def _place(self, dual: Array, norms: Array, centres: Array | None) -> None:
        """Store the centres: their features (k, r), and coefficients of kernel values."""
        self._learned, self._norms = self._function(self._finite(dual)), norms
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
        """Like ``_place``, from centres (k, r) and any factors of the approximation in use."""
        xp = array_ops.namespace(centres)
        turned = xp.matrix_transpose(centres)
        dual = factors.core_matmul(turned)
        self._place(dual, xp.sum(turned * dual, axis=0), centres)

    def _problem(self, *arguments: Any) -> Any:
        """Pose the problem of any learner, with weights of 1 by default."""
        problem = super()._problem(*arguments)
        return replace(problem, weights=_full(problem.weights, problem.rows))

    def _first_batch(
        self, X: RowsLike, rng: np.random.Generator, sample_weight: Array | None, y: Array | None
    ) -> Any:
        """Pose the problem of a stream's first rows, which determine the features."""
        with warnings.catch_warnings():
            if not isinstance(self.kernel, Approximation):  # the user did not set the landmarks
                warnings.simplefilter("ignore", ApproximationWarning)
            return self._problem(X, rng, sample_weight, y, for_stream)

    def _next_batch(self, X: RowsLike, sample_weight: Array | None) -> Any:
        """Pose the problem of later rows of the stream, in the features of the first."""
        batch = self._batch(X, None, first=False, sample_weight=sample_weight)
        return replace(batch, weights=_full(batch.weights, batch.rows))

    def _settled_labels(self, labels: Array, rows: Rows) -> Array:
        labels = array_ops.astype(labels, array_ops.namespace(labels).int32)
        return rows.place.hand_back_kept(labels)

    def predict(self, X: RowsLike) -> Array:
        """Return the number of the nearest centre for each row of X."""
        check_is_fitted(self, "_learned")
        if isinstance(self.approximation_, Nystroem):  # kernel values suffice, without features
            rows = self._read(X, reset=False)
            landmarks = ArrayRows(self.approximation_.landmarks_.points)
            product = Gram(self.kernel_, rows, landmarks).matmul(self.centre_coefficients_)
            squared = array_ops.beside(self._norms, product) - 2.0 * product
        else:
            new, squared = self._distances_less_diagonal(X)
            rows = new.rows
        xp = array_ops.namespace(squared)
        return rows.place.hand_back(array_ops.astype(xp.argmin(squared, axis=1), xp.int32))

    def transform(self, X: RowsLike) -> Array:
        """Return the distance in feature space from each row of X to each centre."""
        new, squared = self._squared_distances(X)
        distances = array_ops.astype(array_ops.inplace("sqrt", squared), new.dtype)
        return new.rows.place.hand_back(distances)

    def fit_transform(
        self, X: RowsLike, y: Array | None = None, sample_weight: Array | None = None
    ) -> Array:
        """Fit to X, and return the distance of each row to each centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(
        self, X: RowsLike, y: Array | None = None, sample_weight: Array | None = None
    ) -> float:
        """Return minus the sum of squared distances of the rows of X to their nearest centre."""
        new, squared = self._squared_distances(X)
        xp = array_ops.namespace(squared)
        nearest = xp.min(squared, axis=1)
        weights = as_weights(sample_weight, new.rows)
        return -float(xp.sum(nearest if weights is None else nearest * weights))

    def risk(self, X: RowsLike) -> float:
        """Return the mean squared distance of the rows of X to their nearest centre, W(C, μ).

        Distances are those of the exact kernel: the part of k(x, x) that an approximation leaves
        out counts too. An unbiased approximation, such as KernelJL, leaves nothing out; then the
        approximate distances are used, which are more accurate than a difference of large
        estimates.
        """
        squared = self._squared_distances(X, exactly=True)[1]
        xp = array_ops.namespace(squared)
        return float(xp.mean(xp.min(squared, axis=1)))

    def _distances_less_diagonal(self, X: RowsLike) -> tuple[NewRows, Array]:
        """Return squared distances (n, k) of new rows to each centre, minus k(x, x)."""
        check_is_fitted(self, "_learned")
        new = self._new_rows(X, self._learned)
        return new, array_ops.beside(self._norms, new.product) - 2.0 * new.product

    def _squared_distances(self, X: RowsLike, exactly: bool = False) -> tuple[NewRows, Array]:
        new, squared = self._distances_less_diagonal(X)
        if new.factors is None or (exactly and not self._is_unbiased()):
            diagonal = self.kernel_.diagonal(new.rows)
            diagonal = array_ops.astype(diagonal, array_ops.namespace(diagonal).float64)
        else:
            diagonal = new.factors.diagonal()
        return new, array_ops.clip(squared + diagonal[:, None], low=0.0)

    def _is_unbiased(self) -> bool:
        return self.approximation_ is not None and self.approximation_.unbiased


def for_stream(kernel: Kernel, n: int) -> Approximation:
    """Return the approximation of a plain kernel for a stream whose first batch has n rows."""
    # √n landmarks would be too few for the rows that follow.
    return Nystroem(kernel, min(n, max(100, int(np.ceil(n**0.5)))))


def _full(weights: Array | None, rows: Rows) -> Array:
    return rows.place.constant(1.0) if weights is None else weights
