"""Interior points with more features than are factorised: conjugate gradients find the steps."""

import numpy as np
import pytest
from sklearn.svm import SVC

from gramian import RBF, KernelSVC, Nystroem, config_context
from gramian.learners.losses import kinks
from gramian.learners.losses.interior import NARROW

pytestmark = pytest.mark.usefixtures("without_libsvm")


def test_wide_features_give_the_minimum_of_another_solver():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    s = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(400) > 0.8, 1, -1)  # unbalanced
    kernel = Nystroem(RBF(1.0), 2 * NARROW, random_state=0).fit(X)
    model = KernelSVC(0.5, kernel, tol=1e-6).fit(X, s)
    Z = kernel.transform(X)
    assert Z.shape[1] > NARROW
    other = SVC(C=2.0, kernel="linear", tol=1e-6).fit(Z, s)
    theta = other.coef_[0]
    f = Z @ theta + other.intercept_[0]
    reference = np.maximum(0, 1 - s * f).sum() + 0.25 * theta @ theta
    np.testing.assert_allclose(model.objective_[0], reference, rtol=2e-6)
    assert model.accuracy_ <= 1e-6


def test_products_that_round_too_much(monkeypatch):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, 20))
    y = rng.integers(0, 40, 1000)
    X = (centres[y] + 0.5 * rng.standard_normal((1000, 20))).astype(np.float32)
    kernel = Nystroem(RBF(0.05), 30, landmarks="uniform", random_state=0).fit(X)
    model = KernelSVC(1.0, kernel)
    y = np.minimum(y, 8)
    direct = model.fit(X, y).objective_
    monkeypatch.setattr("gramian.learners.losses.interior.NARROW", 0)
    np.testing.assert_allclose(model.fit(X, y).objective_, direct, rtol=2e-4)


def test_groups_of_outputs_on_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(200), [-1, -0.5, 0, 0.5, 1])
    model = KernelSVC(0.5, Nystroem(RBF(1.0), 20, random_state=0).fit(X), tol=1e-6)
    together = model.fit(X, y).objective_
    monkeypatch.setattr(kinks, "LARGE", 0)
    monkeypatch.setattr(kinks, "TOGETHER", 1)
    with config_context(n_threads=2):
        apart = model.fit(X, y).objective_
    np.testing.assert_allclose(apart, together, rtol=2e-6)
    monkeypatch.setattr(kinks, "TOGETHER", 6)
    with config_context(memory_budget="1MB"):  # too little for six outputs
        small = model.fit(X, y).objective_
    np.testing.assert_allclose(small, together, rtol=2e-6)
