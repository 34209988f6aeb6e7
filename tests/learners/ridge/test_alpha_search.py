"""The search for alpha by Cholesky factors, against the path of all eigenvectors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_friedman1

import gramian
from gramian import RBF, Exact, KernelRidge, KernelRidgeClassifier, Sigmoid
from gramian.backend import array_ops
from gramian.backend.array_ops import to_numpy
from gramian.learners.ridge import alpha_search, alpha_steps
from gramian.learners.ridge.alpha_search import _Tries, solved
from gramian.learners.ridge.alpha_steps import descend, follow

KERNEL = RBF(0.5)
STEP = 10**0.25  # of the default grid


@pytest.fixture
def search(monkeypatch):
    """Search even if rows are few."""
    monkeypatch.setattr(alpha_search, "LEAST_ROWS", 40)
    monkeypatch.setattr(alpha_search, "LEAST_FEWER", 20)
    return monkeypatch


def table(n, copies=1):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((n // copies, 3)), copies, axis=0)
    Y = np.column_stack((np.sin(2 * X[:, 0]), X[:, 1] ** 2))
    return X, Y + [0.3, 0.8] * rng.standard_normal(Y.shape)


def test_solved_with_the_factor_in_place(rng):
    F = rng.standard_normal((30, 40))
    K, right = F @ F.T, rng.standard_normal((30, 2))
    before, diagonal = K.copy(), K.diagonal() + 2.0
    probes = rng.standard_normal((30, 3))
    found, freedom, again = solved(K, diagonal, right, 12, probes)
    inverse = np.linalg.inv(before + 2.0 * np.eye(30))
    assert_allclose(found, inverse @ right, atol=1e-12)
    assert_allclose(again, inverse @ np.hstack((found, probes)), atol=1e-12)
    assert_allclose(freedom, inverse.diagonal()[12:], atol=1e-12)
    off = ~np.eye(30, dtype=bool)
    assert_allclose(K[off], before[off], atol=1e-12)
    with pytest.raises(gramian.backend.linalg.NotPositiveDefiniteError):
        solved(K, np.full(30, -1.0), right, 12, probes)
    assert_allclose(K[off], before[off], atol=1e-12)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", ["loo", "gcv"])
def test_errors_are_those_of_eigenvectors(search, rule, weighted, intercept, copies):
    search.setattr(alpha_search, "LEFT_OUT", 1.0)
    X, Y = table(120, copies)
    weights = np.random.default_rng(1).exponential(1.0, 120) if weighted else None
    if weighted:
        weights[:5] = 0.0
    model = KernelRidge(rule, KERNEL, fit_intercept=intercept).fit(X, Y, weights)
    path = KernelRidge((rule, model.path_.alphas), KERNEL, fit_intercept=intercept)
    path.fit(X, Y, weights)
    assert 3 <= len(model.path_.alphas) < 20
    exact = model.path_.alphas > 1e-6  # equal rows and rounding: no less
    assert_allclose(model.path_.errors[exact], path.path_.errors[exact], rtol=1e-5)
    assert_allclose(model.alpha_, path.alpha_)
    assert_allclose(model.intercept_, path.intercept_, atol=1e-9)
    assert_allclose(model.predict(X), path.predict(X), atol=1e-7)


@pytest.mark.parametrize(("rule", "noise"), [("loo", 0.3), ("gcv", 1.0), ("loo", 30.0)])
def test_the_alpha_is_at_most_a_step_from_the_best(monkeypatch, noise, rule):
    X, y = make_friedman1(1000, noise=noise, random_state=0)
    found = KernelRidge(rule, Exact("rbf")).fit(X, y)
    assert len(found.path_.alphas) < 8
    monkeypatch.setattr(alpha_search, "LEAST_ROWS", 2000)
    path = KernelRidge(rule, Exact("rbf")).fit(X, y)
    assert len(path.path_.alphas) == 49
    assert 0.99 / STEP <= found.alpha_ / path.alpha_ <= 1.01 * STEP
    assert found.path_.errors.min() == pytest.approx(path.path_.errors.min(), rel=0.2)


def test_coefficients_are_in_the_order_of_the_rows(search):
    X, Y = table(200)
    order = np.argsort(Y[:, 1])
    model = KernelRidge("loo", KERNEL).fit(X[order], Y[order])
    again = KernelRidge(model.alpha_, KERNEL).fit(X[order], Y[order])
    assert_allclose(model.dual_coef_, again.dual_coef_, atol=1e-9)


@pytest.mark.parametrize("as_matrix", [False, True])
def test_classes_share_an_alpha_and_are_calibrated(search, as_matrix):
    X, Y = table(150)
    y = (Y[:, 0] > 0.3).astype(int) + (Y[:, 0] > -0.3)
    rows, kernel = (KERNEL(X), "precomputed") if as_matrix else (X, KERNEL)
    model = KernelRidgeClassifier("loo", kernel).fit(rows, y)
    again = KernelRidgeClassifier(model.alpha_, kernel).fit(rows, y)
    assert_allclose(model.predict_proba(rows), again.predict_proba(rows), atol=1e-6)


def test_an_indefinite_kernel(search):
    X, Y = table(100)
    kernel = Sigmoid(2.0, coef0=-1.0)
    least = -np.linalg.eigvalsh(kernel(X))[0]
    model = KernelRidge("loo", kernel, fit_intercept=False).fit(X, Y)
    assert (model.alpha_ > least).all() and np.isfinite(model.path_.errors).any()


def test_a_target_without_noise_has_the_smallest_alpha(search):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    model = KernelRidge("loo", RBF(0.5)).fit(X, np.sin(3 * X[:, 0]))  # and no warning
    assert model.alpha_ == model.path_.alphas.min() < 1e-7


def test_many_targets_share_what_was_tried(search):
    X, Y = table(200)
    many = np.column_stack([Y[:, :1] + s * np.random.default_rng(2).standard_normal((200, 3))
                            for s in (0, 1, 30)])  # fmt: skip
    model = KernelRidge("loo", KERNEL).fit(X, many)
    assert len(model.path_.alphas) <= alpha_steps.MOST
    assert (model.alpha_[6:] > model.alpha_[:3]).all()
    again = KernelRidge(model.alpha_, KERNEL).fit(X, many)
    assert_allclose(model.dual_coef_, again.dual_coef_, atol=1e-9)


def test_rows_without_weight_are_left_out_of_the_search(search):
    X, Y = table(200)
    weights = np.zeros(200)
    weights[:60] = 1.0
    model = KernelRidge("loo", KERNEL).fit(X, Y[:, 0], weights)
    alone = KernelRidge(model.alpha_, KERNEL).fit(X[:60], Y[:60, 0])
    assert_allclose(model.dual_coef_[60:], 0.0)
    assert_allclose(model.predict(X), alone.predict(X), atol=1e-8)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_on_other_arrays(search, library):
    xp = pytest.importorskip(library)
    X, Y = table(80)
    model = KernelRidge("loo", KERNEL).fit(X, Y)
    other = KernelRidge("loo", KERNEL).fit(xp.asarray(X), xp.asarray(Y))
    assert_allclose(other.alpha_, model.alpha_, rtol=1e-6)
    assert_allclose(to_numpy(other.dual_coef_), model.dual_coef_, atol=1e-8)


def test_on_a_gpu(search):
    torch = pytest.importorskip("torch")
    X, Y = table(80)
    model = KernelRidge("loo", KERNEL).fit(X, Y)
    search.setattr(array_ops, "is_on_gpu", lambda x: isinstance(x, torch.Tensor))
    other = KernelRidge("loo", KERNEL).fit(torch.as_tensor(X), torch.as_tensor(Y))
    assert_allclose(other.path_.errors, model.path_.errors, rtol=1e-6)
    assert_allclose(to_numpy(other.dual_coef_), model.dual_coef_, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rule", ["loo", "gcv"])
def test_slopes_are_those_of_errors(monkeypatch, rule, intercept):
    X, Y = table(600)
    seen = []
    original = _Tries.__init__

    def kept(self, *given):
        seen.append(self)
        original(self, *given)

    monkeypatch.setattr(_Tries, "__init__", kept)
    KernelRidge(rule, KERNEL, fit_intercept=intercept).fit(X, Y[:, 0])
    tries = next(each for each in seen if len(each.K) == 600)
    for alpha in (0.01, 0.3, 3.0, 100.0):
        here, above = tries.at(alpha), tries.at(alpha * 1.01)
        slope = (above.errors - here.errors) / np.log(1.01)
        assert_allclose(here.slopes, slope, atol=0.02 * here.errors[0])


class TestFollow:
    @pytest.mark.parametrize("lowest", [0, 1, 7.3, 20, 38, 39.6, 40])
    @pytest.mark.parametrize("start", [0, 5, 20, 37, 40])
    def test_a_parabola(self, lowest, start):
        tried = []

        def error(i):
            tried.append(i)
            return 1 + 0.01 * (i - lowest) ** 2, 0.02 * (i - lowest)

        assert abs(follow(error, start, 41) - lowest) <= 1
        assert len(tried) == len(set(tried)) <= 13

    def test_one_number_where_the_error_is_flat(self):
        tried = []
        assert follow(lambda i: tried.append(i) or (2.0, 0.003), 12, 41) == 12
        assert tried == [12]

    def test_two_numbers_tell_the_lowest(self):
        tried = []
        error = lambda i: tried.append(i) or (1 + 0.02 * (i - 14) ** 2, 0.04 * (i - 14))  # noqa: E731
        assert follow(error, 12, 41) == 14
        assert tried[:2] == [12, 16] and len(tried) == 3

    def test_numbers_that_are_too_large(self):
        def error(i):
            return (np.inf, np.nan) if i > 10 else (20.0 - i, -1.0)

        assert follow(error, 30, 41) == 10
        assert follow(lambda i: (np.inf, np.nan), 30, 41) == 0


class TestDescend:
    @pytest.mark.parametrize("lowest", [0, 1, 7.3, 20, 38, 39.6, 40])
    @pytest.mark.parametrize("start", [0, 5, 20, 37, 40])
    def test_a_parabola(self, lowest, start):
        tried = []
        found = descend(lambda i: tried.append(i) or 1 + 0.01 * (i - lowest) ** 2, start, 41)
        assert abs(found - lowest) <= 1
        assert len(set(tried)) <= 13

    def test_few_numbers_from_a_good_start(self):
        tried = set()
        assert descend(lambda i: tried.add(i) or 1 + (i - 12) ** 2, 12, 41) == 12
        assert tried == {10, 12, 14}

    def test_numbers_that_are_too_large(self):
        assert descend(lambda i: np.inf if i > 10 else -i, 30, 41) == 10
        assert descend(lambda i: np.inf, 30, 41) == 0
