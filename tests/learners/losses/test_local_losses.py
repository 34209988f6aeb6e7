"""Losses over a matrix that is exact inside blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from gramian import (
    RBF,
    Exact,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelOneClass,
    KernelQuantileRegressor,
    KernelSVC,
    KernelSVR,
    Local,
    Nystroem,
)
from gramian.backend.config import config_context
from gramian.learners.losses.exact import ExactNewton
from gramian.learners.losses.local import LocalNewton


@pytest.mark.parametrize(
    ("learner", "output"),
    [
        (KernelSVR, "predict"),
        (KernelHuberRegressor, "predict"),
        (KernelOneClass, "score_samples"),
        (KernelLogisticRegression, "predict_proba"),
    ],
)
def test_one_block_is_the_exact_kernel(learner, output, rng):
    X, new = rng.standard_normal((80, 3)), rng.standard_normal((9, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(float)
    found = [
        getattr(learner(kernel=kernel).fit(X, y), output)(new)
        for kernel in (Local(RBF(0.5), 1), Exact(RBF(0.5)))
    ]
    assert_allclose(*found, atol=1e-8 * np.abs(found[1]).max())


LEARNERS = [
    KernelSVC(0.3, tol=1e-6),
    KernelSVC(0.3, loss="squared_hinge"),
    KernelLogisticRegression(0.3),
    KernelQuantileRegressor(0.3, quantile=[0.2, 0.7], tol=1e-5),
    KernelHuberRegressor(0.3),
    KernelOneClass(),
]


def by_exact_steps(learner):
    """The same learner with Newton steps over the whole matrix."""
    cls = type(learner)
    exact = type(cls.__name__, (cls,), {"strategies": (ExactNewton(),)})
    return exact(**learner.get_params(deep=False))


@pytest.mark.parametrize("between", [RBF(0.5), Nystroem(RBF(0.5), 10, random_state=0)])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)
def test_blocks_are_solved_as_the_whole_matrix(learner, between, rng):
    X = rng.standard_normal((150, 3))
    score = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.standard_normal(150)
    y = np.digitize(score, [0.5, 1.5]) if hasattr(learner, "class_weight") else score
    weights = rng.uniform(0.5, 2.0, 150)
    found = []
    for model in (clone(learner), by_exact_steps(learner)):
        model.set_params(kernel=Local(between, 4, random_state=0))
        found.append(model.fit(X, y, sample_weight=weights))
    if not isinstance(learner, KernelOneClass):
        objectives = [np.sum(model.objective_) for model in found]
        assert_allclose(*objectives, rtol=2 * learner.tol)
    name = "score_samples" if isinstance(learner, KernelOneClass) else "predict"
    agree = [np.asarray(getattr(model, name)(X), dtype=float) for model in found]
    assert_allclose(*agree, atol=0.02 * np.abs(agree[1]).max())


def test_blocks_have_a_strategy_of_their_own_unless_they_are_too_large(rng):
    X = rng.standard_normal((600, 3))
    y = (X[:, 0] > 0).astype(int)
    model = KernelSVC(1.0, Local(RBF(0.5), 2, random_state=0), loss="squared_hinge")
    found = []
    for budget in ("1GB", "5MB"):
        with config_context(memory_budget=budget):
            problem = model._problem(X, np.random.RandomState(0), None, y)
            found.append(type(model._choose(problem)))
    assert found == [LocalNewton, ExactNewton]
