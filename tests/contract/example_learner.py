"""A learner from outside the package, as CONTRIBUTING says to write one."""

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from gramian import Factors, Nystroem
from gramian.backend import array_ops
from gramian.estimators.base import all_or_nothing, generator
from gramian.learners.base import KernelLearner


class NoveltyDetector(OutlierMixin, KernelLearner):
    """Rows whose mean kernel value with the training rows is small are novel."""

    def __init__(self, kernel="rbf", *, contamination=0.1, random_state=None):
        self.kernel = kernel
        self.contamination = contamination
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y=None):
        training = self._training(X, generator(self.random_state))
        matrix, mean = training.matrix, training.rows.constant(1.0 / training.rows.shape[0])
        if isinstance(matrix, Factors):
            self.mean_ = matrix.core_matmul(matrix.rmatmul(mean[:, None]))
            scores = matrix.features_matmul(self.mean_)
        else:
            self.mean_ = mean[:, None]
            scores = matrix.matmul(self.mean_)
        self.offset_ = float(np.quantile(array_ops.to_numpy(scores), self.contamination))
        return self

    def score_samples(self, X):
        check_is_fitted(self)
        new = self._new_rows(X, self.mean_)
        return new.rows.answer(array_ops.astype(new.product[:, 0], new.dtype))

    def decision_function(self, X):
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        known = self.decision_function(X) >= 0
        known = array_ops.astype(known, array_ops.namespace(known).int64)
        return array_ops.look_up(np.array([-1, 1]), known)

    def _default_approximation(self, kernel, n):
        return Nystroem(kernel, min(n, 500))

    def _exact_steps(self, gram, n_targets):
        kept = gram.nbytes if gram.fits() else 0
        return [{"kernel matrix": kept, "scores": 4 * 8 * gram.shape[0]}]

    def _factored_steps(self, plan, n_targets):
        return [{"scores": 4 * 8 * plan.factors.shape[0]}]
