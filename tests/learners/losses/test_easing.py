"""Squared hinges: small penalties, and curvatures that change with every step."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gramian import RBF, KernelSVC, Local, Nystroem
from gramian.learners.losses.iterated import IteratedSpace
from gramian.learners.losses.walks import Walks

KERNELS = [RBF("scale"), Nystroem(RBF("scale"), 300, random_state=0), Local(RBF("scale"), 2)]


def one_digit():
    X, y = load_digits(return_X_y=True)
    return X[:1000], y[:1000] == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_small_penalties_take_tens_of_steps(kernel):
    X, y = one_digit()
    model = KernelSVC(1e-6, kernel, loss="squared_hinge", tol=1e-6, max_iter=40, random_state=0)
    model.fit(X, y)  # a warning would be an error
    # Near its limit, the objective of rows that can be separated is proportional to alpha.
    smaller = KernelSVC(1e-8, kernel, loss="squared_hinge", max_iter=40, random_state=0).fit(X, y)
    assert smaller.objective_[0] == pytest.approx(1e-2 * model.objective_[0], rel=1e-3)
    assert model.n_iter_ > 5


@pytest.mark.parametrize("alpha", [1e-4, 1e-6])
def test_small_penalties_of_several_classes_take_tens_of_steps(alpha):
    X, y = load_digits(return_X_y=True)
    kernel = Nystroem(RBF(0.1), 100, random_state=0).fit(X / 16)
    options = {"loss": "squared_hinge", "random_state": 0}
    model = KernelSVC(alpha, kernel, max_iter=40, **options).fit(X / 16, y)
    alone = [KernelSVC(alpha, kernel, **options).fit(X / 16, y == k) for k in (5, 8)]
    assert model.objective_[[5, 8]] == pytest.approx([one.objective_[0] for one in alone], rel=1e-3)


def test_steps_with_larger_penalties_count():
    X, y = one_digit()
    model = KernelSVC(1e-6, KERNELS[0], loss="squared_hinge", max_iter=3)
    with pytest.warns(UserWarning, match="stopped after"):
        model.fit(X, y)
    assert model.n_iter_ >= 3


def test_a_preconditioner_follows_the_curvature(monkeypatch):
    """Where passes cost more than a preconditioner, a new one saves some of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(6000) > 0
    kernel = Nystroem(RBF(1.0), 60, random_state=0).fit(X)
    model = KernelSVC(1e-2, kernel, loss="squared_hinge", tol=1e-8, random_state=0)
    evaluate, passes = Walks.evaluate, []

    def counted(self, *args):
        passes.append(self.walked.shape[0])
        return evaluate(self, *args)

    monkeypatch.setattr(Walks, "evaluate", counted)
    monkeypatch.setattr("gramian.learners.losses.iterated.PASSES", 0)
    renewed = model.fit(X, y).objective_
    new = passes.count(6000)
    passes.clear()
    monkeypatch.setattr(IteratedSpace, "_costs", lambda self: (0.0, 1.0))
    once = model.fit(X, y).objective_
    assert renewed == pytest.approx(once, rel=1e-7)
    assert new < 0.8 * passes.count(6000)
