"""Support vectors: the minima of the other methods, which share no code with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.svm import SVC, SVR, OneClassSVM

from gramian import (
    BKA,
    MEKA,
    RBF,
    KernelOneClass,
    KernelSVC,
    KernelSVR,
    Local,
    Nystroem,
    config_context,
)
from gramian.learners.losses import support_vectors
from gramian.learners.losses.columns import Computed
from gramian.learners.losses.exact import ExactNewton
from gramian.learners.losses.support_vectors import SupportVectors

N = 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
THREE = np.digitize(X[:, 0] * X[:, 1] + 0.4 * RNG.standard_normal(N), [-0.6, 0.6])
REAL = 100.0 * (X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * RNG.standard_t(2, N))
WEIGHTS = RNG.integers(0, 3, N) * RNG.uniform(0.2, 2.0, N)  # a third of them 0
KERNEL = RBF(0.5)
KERNELS = [
    KERNEL,
    Nystroem(KERNEL, 40, random_state=0),
    MEKA(KERNEL, 60, n_blocks=3, random_state=0),
    BKA(KERNEL, 60, n_blocks=3, random_state=0),
    Local(Nystroem(KERNEL, 20, random_state=0), random_state=0),
]
MODELS = [
    KernelSVC(0.3, tol=1e-6),
    KernelSVC(0.3, tol=1e-6, class_weight={0: 5.0, 1: 0.2, 2: 1.0}),
    KernelSVR(0.3, epsilon=10.0, tol=1e-6),
    KernelOneClass(0.3, tol=1e-6),
]


def fitted(model, kernel, weights=None):
    y = THREE if isinstance(model, KernelSVC) else REAL
    return clone(model).set_params(kernel=kernel, random_state=0).fit(X, y, sample_weight=weights)


@pytest.fixture
def used(monkeypatch):
    """The problems that pairs of dual variables solved."""
    problems, solved = [], SupportVectors._solved

    def recorded(self, problem):
        problems.append(problem)
        return solved(self, problem)

    monkeypatch.setattr(SupportVectors, "_solved", recorded)
    return problems


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """The loop that numba compiles also takes the few rows of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support_vectors, "LEAST_COMPILED", 100)
        yield


@pytest.mark.parametrize(
    "weights",
    [pytest.param(None, id="alike"), pytest.param(WEIGHTS, id="weighted", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("model", MODELS)
def test_the_minimum_of_the_other_methods(model, kernel, weights, used, monkeypatch):
    found = fitted(model, kernel, weights)
    assert len(used) == 1 and found.accuracy_ <= 1e-6
    monkeypatch.setattr(SupportVectors, "serves", lambda self, problem: False)
    other = fitted(model, kernel, weights)
    assert len(used) == 1
    if isinstance(model, KernelOneClass):
        assert found.offset_ == pytest.approx(other.offset_, rel=1e-3)
        size = np.abs(other.score_samples(X)).max()
        assert_allclose(found.score_samples(X), other.score_samples(X), atol=2e-3 * size)
    else:
        assert_allclose(found.objective_, other.objective_, rtol=3e-6)
        scores = [m.decision_function(X) if hasattr(m, "classes_") else m.predict(X)
                  for m in (found, other)]  # fmt: skip
        assert_allclose(*scores, atol=1e-2 * np.abs(scores[1]).max())


def test_scikit_learn_with_its_own_kernel():
    """Not the matrix that both are given: rows and gamma."""
    svc = SVC(C=4.0, gamma=0.5, tol=1e-8).fit(X, THREE > 0, WEIGHTS)
    ours = KernelSVC(0.25, KERNEL, tol=1e-6).fit(X, THREE > 0, WEIGHTS)
    assert_allclose(ours.decision_function(X), svc.decision_function(X), atol=2e-3)
    svr = SVR(C=4.0, gamma=0.5, epsilon=10.0, tol=1e-6).fit(X, REAL, WEIGHTS)
    ours = KernelSVR(0.25, KERNEL, epsilon=10.0, tol=1e-6).fit(X, REAL, WEIGHTS)
    assert_allclose(ours.predict(X), svr.predict(X), atol=0.05)
    one = OneClassSVM(nu=0.2, gamma=0.5, tol=1e-8).fit(X, sample_weight=WEIGHTS)
    ours = KernelOneClass(0.2, KERNEL, tol=1e-6).fit(X, sample_weight=WEIGHTS)
    assert_allclose(ours.score_samples(X), one.score_samples(X), rtol=2e-3)
    assert ours.offset_ == pytest.approx(one.offset_[0], rel=2e-3)


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_it_is_as_accurate_as_it_says(tol, used):
    best = KernelSVC(0.3, KERNEL, tol=1e-6).fit(X, THREE).objective_
    model = KernelSVC(0.3, KERNEL, tol=tol).fit(X, THREE)
    assert len(used) == 2
    assert model.accuracy_ <= tol
    assert (model.objective_ <= best * (1 + model.accuracy_)).all()
    assert (model.objective_ >= best * (1 - 1e-6)).all()
    # The objective is that of the predictions.
    f, K = model.decision_function(X), KERNEL(X)
    signs = np.where(THREE[:, None] == np.arange(3), 1, -1)
    norms = (model.dual_coef_ * (K @ model.dual_coef_)).sum(axis=0)
    assert_allclose(model.objective_, np.maximum(0, 1 - signs * f).sum(axis=0) + 0.15 * norms)


@pytest.mark.parametrize("kept", [0, 1 / 8])
def test_rows_without_weight_where_columns_are_computed(used, monkeypatch, kept):
    monkeypatch.setattr(support_vectors, "KEPT", kept)
    monkeypatch.setattr(ExactNewton, "solve", None)  # it is not needed
    model = KernelOneClass(0.2, KERNEL, tol=1e-6).fit(X, sample_weight=WEIGHTS)
    assert len(used) == 1 and model.accuracy_ <= 1e-6
    some = WEIGHTS > 0
    other = KernelOneClass(0.2, KERNEL, tol=1e-6).fit(X[some], sample_weight=WEIGHTS[some])
    assert model.offset_ == pytest.approx(other.offset_, rel=1e-5)
    assert not model.dual_coef_[~some].any()


@pytest.mark.parametrize("room", [N, 20, 0])
def test_few_columns_are_computed_and_each_once(used, monkeypatch, room):
    computed, fill = [], Computed._fill

    def recorded(self, numbers, out):
        computed.extend(numbers)
        fill(self, numbers, out)

    monkeypatch.setattr(Computed, "_fill", recorded)
    monkeypatch.setattr(Computed, "keepable", lambda gram, bytes_: room)
    model = KernelOneClass(0.1, KERNEL, tol=1e-6).fit(X)
    assert len(used) == 1 and model.accuracy_ <= 1e-6
    assert len(computed) == len(set(computed)) == min(room, len(computed)) < 0.7 * N
    assert (room > 0) == (len(computed) > 0)
    f = KERNEL(X) @ model.dual_coef_
    assert_allclose(model.score_samples(X), f, rtol=1e-10)
    # The rows below the threshold have the largest coefficient, and those above have none.
    assert_allclose(model.dual_coef_[f < model.offset_ - 1e-4 * f.max()], model.dual_coef_.max())
    assert not model.dual_coef_[f > model.offset_ + 1e-4 * f.max()].any()
    del computed[:]
    KernelOneClass(0.5, KERNEL).fit(X)
    assert not computed  # half of the columns take as long as the symmetric matrix


def test_a_class_without_weight_and_separable_classes(used):
    weights = np.where(THREE == 2, 0.0, 1.0)
    model = KernelSVC(0.3, KERNEL).fit(X, THREE, weights)
    assert len(used) == 1
    assert model.objective_[2] == 0.0
    assert_allclose(model.decision_function(X)[:, 2], -1.0)
    apart = np.sign(X[:, 0])
    model = KernelSVC(1e-4, KERNEL).fit(X[np.abs(X[:, 0]) > 0.3], apart[np.abs(X[:, 0]) > 0.3])
    assert model.score(X[np.abs(X[:, 0]) > 0.3], apart[np.abs(X[:, 0]) > 0.3]) == 1.0


@pytest.mark.slow
def test_another_method_takes_over(used, monkeypatch):
    """Where libsvm takes too many steps, and where its columns in float32 round too much."""
    best = KernelSVC(1e-3, KERNEL, tol=1e-6).fit(X, THREE)
    monkeypatch.setattr(support_vectors, "MOST_STEPS", 1)
    for kernel in (KERNEL, KERNELS[1]):
        model = KernelSVC(1e-3, kernel, tol=1e-6).fit(X, THREE)
        assert model.accuracy_ <= 1e-6
        if kernel is KERNEL:
            assert_allclose(model.objective_, best.objective_, rtol=3e-6)
    assert len(used) == 3
    KernelSVC(0.3, KERNEL, tol=1e-7).fit(X, THREE)
    assert len(used) == 3


@pytest.mark.slow
def test_it_serves_what_it_can(used, monkeypatch):
    KernelSVC(0.3, KERNEL, fit_intercept=False).fit(X, THREE)
    KernelSVC(("loo", [0.1, 1.0]), KERNEL).fit(X, THREE)
    KernelSVC(0.3, KERNEL, loss="squared_hinge").fit(X, THREE)
    KernelSVC(0.3, KERNEL).fit(X[:50], THREE[:50])
    with config_context(memory_budget="2MB"):  # the matrix has 0.7 MB
        KernelSVC(0.3, Local(KERNEL, random_state=0), random_state=0).fit(X, THREE)
    monkeypatch.setattr(support_vectors, "MANY_ROWS", 200)
    KernelSVC(0.3, KERNELS[1]).fit(X, THREE)  # narrow
    assert not used
    KernelSVC(0.3, Nystroem(KERNEL, 80, random_state=0)).fit(X, THREE)
    assert len(used) == 1


def test_few_rows_do_not_wait_for_numba(monkeypatch):
    monkeypatch.setattr(support_vectors, "LEAST_COMPILED", len(X) + 1)
    monkeypatch.setattr(support_vectors, "Pairs", None)  # it would be called
    assert fitted(MODELS[0], KERNEL).accuracy_ <= 1e-6


def test_threads_change_nothing():
    with config_context(n_threads=1):
        one = fitted(MODELS[0], KERNELS[1])
    with config_context(n_threads=3):
        three = fitted(MODELS[0], KERNELS[1])
    assert_array_equal(one.coef_, three.coef_)


@pytest.mark.parametrize("model", MODELS[:1] + MODELS[2:])
def test_columns_as_they_are_needed(model, used, monkeypatch):
    """Without the matrix in memory, and with few rows at a time."""
    stored = fitted(model, KERNEL, WEIGHTS)
    monkeypatch.setattr(support_vectors, "is_available", lambda: False)
    without = fitted(model, KERNEL, WEIGHTS)  # numba
    monkeypatch.undo()
    assert without.accuracy_ <= 1e-6
    found = [without]
    if support_vectors.is_available():
        monkeypatch.setattr(support_vectors, "_stores", lambda problem: False)
        monkeypatch.setattr(support_vectors, "MOST_ROWS", 60)
        found += [fitted(model, KERNEL, WEIGHTS)]
        assert found[-1].accuracy_ <= 1e-6
        if isinstance(model, KernelOneClass):
            wide = Nystroem(KERNEL, 80, random_state=0)
            products = fitted(model, wide, WEIGHTS)
            monkeypatch.undo()
            other = fitted(model, wide, WEIGHTS)
            assert products.offset_ == pytest.approx(other.offset_, rel=1e-3)
    for each in found:
        if isinstance(model, KernelOneClass):
            assert each.offset_ == pytest.approx(stored.offset_, rel=1e-3)
        else:
            assert_allclose(each.objective_, stored.objective_, rtol=3e-6)
