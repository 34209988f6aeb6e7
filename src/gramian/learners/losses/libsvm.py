"""libsvm, through scikit-learn, for support vector machines where numba is not installed."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context

from gramian.learners.losses.classification import Hinge, Novelty
from gramian.learners.losses.problem import LossProblem
from gramian.learners.losses.regression import EpsilonInsensitive

CACHE = 100 * 2**20  # bytes, for columns in float32
FIRST = 2.0  # times the accuracy: libsvm's tolerance, relative to the predictions
SOME = 512  # rows whose kernel values tell their size
TINY = np.finfo(float).tiny


class _Machine(NamedTuple):
    """One of scikit-learn's models, which minimises the loss of one output."""

    model: Any
    targets: np.ndarray  # (n,)
    size: float  # of its predictions
    unit: float = 1.0  # of its coefficients, in ours
    is_constant: bool = False  # whether all rows are of one class


def _classifier(problem: LossProblem, y: np.ndarray, K: np.ndarray) -> _Machine:
    from sklearn.svm import SVC  # takes long to import

    assert isinstance(problem.loss, Hinge)
    signs = problem.loss.signs(y, y)[:, 0]
    same = bool((signs == signs[0]).all())
    return _Machine(SVC(C=1.0 / problem.alpha), signs, 1.0, is_constant=same)


def _regressor(problem: LossProblem, y: np.ndarray, K: np.ndarray) -> _Machine:
    from sklearn.svm import SVR

    assert isinstance(problem.loss, EpsilonInsensitive)
    model = SVR(C=1.0 / problem.alpha, epsilon=problem.loss.epsilon)
    return _Machine(model, y[:, 0], max(float(y.std()), TINY))


def _detector(problem: LossProblem, y: np.ndarray, K: np.ndarray) -> _Machine:
    from sklearn.svm import OneClassSVM

    # Its dual variables have the sum nu Σ w; ours have the sum of the linear term.
    model = OneClassSVM(nu=min(problem.tilt / problem.weight, 1.0))
    size = problem.tilt * float(np.mean(K[:: ceil(len(K) / SOME)]))
    return _Machine(model, y[:, 0], max(size, TINY), 1.0 / problem.alpha)


MACHINES: dict[type, Callable[[LossProblem, np.ndarray, np.ndarray], _Machine]] = {
    Hinge: _classifier,
    EpsilonInsensitive: _regressor,
    Novelty: _detector,
}


class LibSVM:
    """Dual variables ``a`` of one output, their f = Ka, and the intercept b.

    libsvm starts each descent from the beginning.
    """

    def __init__(self, problem: LossProblem, y: np.ndarray, w: np.ndarray, K: np.ndarray) -> None:
        self.K, self._w = K, w
        self._machine = MACHINES[type(problem.loss)](problem, y, K)
        self.a, self.f = np.zeros(len(K)), np.zeros(len(K))
        self.b = float(self._machine.targets[0])  # if there is but one class, which libsvm refuses

    def descend(self, tol: float, least: float, most: int) -> int:
        """Take up to ``most`` steps, until ``tol`` is about reached; return their number."""
        machine = self._machine
        if machine.is_constant:
            return 0
        model = machine.model
        model.kernel, model.cache_size = "precomputed", min(4 * self.K.size, CACHE) / 2**20
        model.tol, model.max_iter = FIRST * tol * machine.size, most
        with config_context(assume_finite=True, skip_parameter_validation=True):
            model.fit(self.K, machine.targets, sample_weight=self._w)
        self.a[:] = 0.0
        self.a[model.support_] = machine.unit * model.dual_coef_[0]
        self.f, self.b = self.K @ self.a, machine.unit * float(model.intercept_[0])
        return int(np.sum(model.n_iter_))
