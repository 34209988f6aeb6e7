"""A learner from outside the package, as CONTRIBUTING says to write one."""

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from gramian import Nystroem
from gramian.backend import array_ops
from gramian.estimators.base import all_or_nothing, generator
from gramian.learners.base import KernelLearner
from gramian.learners.strategy import Strategy


class ExactMean(Strategy):
    """The mean of the rows by the exact kernel matrix."""

    def serves(self, problem):
        return problem.is_exact

    def memory(self, problem):
        kept = problem.gram.nbytes if problem.gram.fits() else 0
        return [{"kernel matrix": kept, "scores": 4 * 8 * problem.rows.shape[0]}]

    def solve(self, problem):
        mean = problem.rows.place.constant(1.0 / problem.rows.shape[0])[:, None]
        return mean, problem.gram.matmul(mean)


class MeanFeatures(Strategy):
    """The mean of the rows by the features of an approximation."""

    def serves(self, problem):
        return not problem.is_exact

    def memory(self, problem):
        return [{"scores": 4 * 8 * problem.rows.shape[0]}]

    def solve(self, problem):
        factors, mean = problem.factors, problem.rows.place.constant(1.0 / problem.rows.shape[0])
        mean = factors.core_matmul(factors.rmatmul(mean[:, None]))
        return mean, factors.features_matmul(mean)


class NoveltyDetector(OutlierMixin, KernelLearner):
    """Rows whose mean kernel value with the training rows is small are novel."""

    strategies = (ExactMean(), MeanFeatures())

    def __init__(self, kernel="rbf", *, contamination=0.1, random_state=None):
        self.kernel = kernel
        self.contamination = contamination
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y=None):
        problem = self._problem(X, generator(self.random_state))
        self.mean_, scores = self._choose(problem).solve(problem)
        self.offset_ = float(np.quantile(array_ops.to_numpy(scores), self.contamination))
        return self

    def score_samples(self, X):
        check_is_fitted(self)
        new = self._new_rows(X, self.mean_)
        return new.rows.place.hand_back(array_ops.astype(new.product[:, 0], new.dtype))

    def decision_function(self, X):
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        known = self.decision_function(X) >= 0
        known = array_ops.astype(known, array_ops.namespace(known).int64)
        return array_ops.look_up(np.array([-1, 1]), known)

    def _default_approximation(self, kernel, n):
        return Nystroem(kernel, min(n, 500))
