"""Minima, against independent solvers on the same features or the same kernel matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
)
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

from gramian import (
    MEKA,
    RBF,
    Exact,
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelOneClass,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelSVC,
    KernelSVR,
    Linear,
    Nystroem,
    config_context,
)
from gramian.learners.losses import iterated

# Its optima are in test_support_vectors.py: here is what does not use their solver.
pytestmark = pytest.mark.usefixtures("without_libsvm")

N, D = 300, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
TWO = (X[:, 0] * X[:, 1] + 0.5 * RNG.standard_normal(N) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.3 * RNG.standard_normal(N), [-0.5, 0.8])
REAL = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * RNG.standard_t(2, N)
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0]))
WEIGHTS = RNG.uniform(0.2, 2.0, N)
KERNEL = RBF(0.3)
K = KERNEL(X)
FEATURES = Nystroem(KERNEL, 40, random_state=0).fit(X)
Z = FEATURES.transform(X)

WAYS = ["summed", "iterated", "exact"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """The kernel of a way to solve, and the features for the independent solver."""
    if request.param == "exact":
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-12
        return KERNEL, vectors[:, kept] * np.sqrt(values[kept])
    iterates = request.param == "iterated"
    monkeypatch.setattr(
        iterated.Iterated, "serves", lambda self, p: not p.is_exact and (iterates or p.loss.coupled)
    )
    return FEATURES, Z


def objective(loss, features, coef, intercept, alpha, weights=1.0):
    f = features @ coef + intercept
    return (weights * loss(f)).sum() + 0.5 * alpha * (np.asarray(coef) ** 2).sum()


def no_worse(model, theirs, tol=1e-6):
    """Our minimum is theirs, up to the tolerance; the objective is the one we state."""
    ours = np.sum(model.objective_)
    assert ours <= theirs * (1 + tol)
    assert ours >= theirs * (1 - max(tol, 1e-4)), "their solver may stop early, but not far away"


def log_loss(y):
    return lambda f: np.logaddexp(0, -np.where(y == 1, 1, -1) * f)


class TestClassification:
    @pytest.mark.parametrize("weights", [None, WEIGHTS])
    def test_logistic(self, way, weights):
        kernel, features = way
        model = KernelLogisticRegression(0.5, kernel, tol=1e-9).fit(X, TWO, weights)
        theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=5000).fit(features, TWO, weights)
        w = 1.0 if weights is None else weights
        value = objective(log_loss(TWO), features, theirs.coef_[0], theirs.intercept_, 0.5, w)
        no_worse(model, value)
        assert model.objective_[0] >= value * (1 - 1e-7)
        assert_allclose(model.predict_proba(X), theirs.predict_proba(features), atol=1e-3)
        scores = model.decision_function(X)
        assert_allclose(1 / (1 + np.exp(-scores)), model.predict_proba(X)[:, 1])

    @pytest.mark.parametrize("weights", [None, WEIGHTS])
    def test_multinomial(self, way, weights):
        kernel, features = way
        model = KernelLogisticRegression(0.5, kernel, tol=1e-9).fit(X, THREE, weights)
        theirs = LogisticRegression(C=2.0, tol=1e-9, max_iter=5000).fit(features, THREE, weights)
        p = theirs.predict_proba(features)
        assert_allclose(model.predict_proba(X), p, atol=2e-4)
        w = np.ones(N) if weights is None else weights
        value = -(w * np.log(p[np.arange(N), THREE])).sum() + 0.25 * (theirs.coef_**2).sum()
        no_worse(model, value)
        assert model.objective_[0] >= value * (1 - 1e-6)

    def test_squared_hinge(self, way):
        kernel, features = way
        model = KernelSVC(0.5, kernel, loss="squared_hinge", fit_intercept=False, tol=1e-9)
        model.fit(X, THREE)
        for k in range(3):  # their intercept is penalised, so neither has one
            y = np.where(k == THREE, 1, -1)
            theirs = LinearSVC(C=2.0, fit_intercept=False, dual=False, tol=1e-9, max_iter=10_000)
            coef = theirs.fit(features, y).coef_[0]
            value = objective(lambda f, y=y: np.maximum(0, 1 - y * f) ** 2, features, coef, 0, 0.5)
            assert_allclose(model.objective_[k], value, rtol=1e-6)

    @pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
    def test_hinge_is_as_accurate_as_it_says(self, way, tol):
        kernel, features = way
        kernel_matrix = features @ features.T
        model = KernelSVC(0.5, kernel, tol=tol).fit(X, TWO)
        theirs = SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(kernel_matrix, TWO)
        f = theirs.decision_function(kernel_matrix)
        dual = theirs.dual_coef_[0]
        norm = dual @ kernel_matrix[np.ix_(theirs.support_, theirs.support_)] @ dual
        y = np.where(TWO == 1, 1, -1)
        # Theirs is C Σ loss + ½ norm, with C = 2; ours is half of it.
        value = np.maximum(0, 1 - y * f).sum() + 0.25 * norm
        assert model.objective_[0] <= value * (1 + 2 * tol)
        assert model.objective_[0] >= value * (1 - 1e-6)
        assert model.accuracy_ <= 2 * tol
        if tol == 1e-6:
            assert_allclose(model.decision_function(X), f, atol=1e-2)


class TestRegression:
    # On as many features as rows, their solver does not converge.
    @pytest.mark.parametrize("way", WAYS[:2], indirect=True)
    def test_huber(self, way):
        kernel, features = way
        model = KernelHuberRegressor(0.5, kernel, tol=1e-10).fit(X, REAL, WEIGHTS)
        theirs = HuberRegressor(alpha=0.5, max_iter=20_000, tol=1e-9).fit(features, REAL, WEIGHTS)
        r, s = np.abs(REAL - theirs.predict(features)) / theirs.scale_, theirs.scale_
        each = s + s * np.where(r < 1.35, r**2, 2 * 1.35 * r - 1.35**2)
        value = (0.5 * WEIGHTS * each).sum() + 0.5 * 0.5 * (theirs.coef_**2).sum()
        assert_allclose(model.objective_, value, rtol=1e-6)
        assert model.scale_ == pytest.approx(theirs.scale_, rel=1e-3)

    def test_poisson(self, way):
        kernel, features = way
        model = KernelPoissonRegressor(0.6, kernel, tol=1e-10).fit(X, COUNTS)
        theirs = PoissonRegressor(alpha=0.6 / N, tol=1e-9, max_iter=5000).fit(features, COUNTS)
        assert_allclose(model.predict(X), theirs.predict(features), rtol=2e-3)
        assert model.score(X, COUNTS) == pytest.approx(theirs.score(features, COUNTS), abs=1e-4)
        mu = theirs.predict(features)
        deviance = mu - COUNTS + COUNTS * np.log(np.maximum(COUNTS, 1e-300) / mu)
        value = deviance.sum() + 0.3 * (theirs.coef_**2).sum()
        assert value * (1 - 1e-5) <= model.objective_ <= value * (1 + 1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("epsilon", [0.0, 0.2])
    def test_epsilon_insensitive(self, way, epsilon):
        kernel, features = way
        kernel_matrix = features @ features.T
        model = KernelSVR(0.5, kernel, epsilon=epsilon, tol=1e-6).fit(X, REAL, WEIGHTS)
        theirs = SVR(C=2.0, kernel="precomputed", epsilon=epsilon, tol=1e-9)
        theirs.fit(kernel_matrix, REAL, WEIGHTS)
        f, dual = theirs.predict(kernel_matrix), theirs.dual_coef_[0]
        norm = dual @ kernel_matrix[np.ix_(theirs.support_, theirs.support_)] @ dual
        loss = np.maximum(0, np.abs(REAL - f) - epsilon)
        value = (WEIGHTS * loss).sum() + 0.25 * norm
        assert_allclose(model.objective_, value, rtol=2e-6)

    @pytest.mark.slow
    def test_quantiles(self, way):
        """At 0.5 it is SVR without a margin."""
        kernel, features = way
        taus = [0.1, 0.5, 0.9]
        model = KernelQuantileRegressor(0.5, kernel, quantile=taus, tol=1e-6).fit(X, REAL)
        half = SVR(C=1.0, kernel="precomputed", epsilon=0.0, tol=1e-9)
        matrix = features @ features.T
        f, dual = half.fit(matrix, REAL).predict(matrix), half.dual_coef_[0]
        norm = dual @ matrix[np.ix_(half.support_, half.support_)] @ dual
        # SVR's C = 1 with |r| is ours with ½ |r| and alpha = ½.
        value = 0.5 * np.abs(REAL - f).sum() + 0.25 * norm
        assert_allclose(model.objective_[1], value, rtol=2e-6)
        exact = KernelQuantileRegressor(0.5, "precomputed", quantile=taus, tol=1e-6)
        assert_allclose(model.objective_, exact.fit(matrix, REAL).objective_, rtol=3e-6)

    @pytest.mark.slow
    def test_quantiles_have_a_dual_that_proves_them(self):
        """Any β in [τ - 1, τ] with sum 0 bounds the minimum: yᵀβ - βᵀKβ / 2 alpha."""
        taus = np.array([0.1, 0.5, 0.9])
        model = KernelQuantileRegressor(0.5, KERNEL, quantile=taus, tol=1e-6).fit(X, REAL)
        beta = 0.5 * model.dual_coef_
        assert (beta > taus - 1 - 1e-6).all() and (beta < taus + 1e-6).all()
        assert_allclose(beta.sum(axis=0), 0.0, atol=1e-6)
        bound = REAL @ beta - (beta * (K @ beta)).sum(axis=0) / (2 * 0.5)
        assert_allclose(model.objective_, bound, rtol=3e-6)
        f = model.predict(X)
        loss = np.maximum(taus * (REAL[:, None] - f), (taus - 1) * (REAL[:, None] - f)).sum(axis=0)
        norm = (model.dual_coef_ * (K @ model.dual_coef_)).sum(axis=0)
        assert_allclose(model.objective_, loss + 0.25 * norm, rtol=1e-6)

    def test_a_quantile_without_penalty_is_a_linear_program(self):
        model = KernelQuantileRegressor(1e-7, Nystroem(Linear(), D), quantile=0.8, tol=1e-7)
        model.fit(X, REAL)
        theirs = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, REAL)
        r = REAL - theirs.predict(X)
        assert_allclose(model.objective_, np.maximum(0.8 * r, -0.2 * r).sum(), rtol=1e-6)

    def test_expectiles(self, way):
        kernel, features = way
        model = KernelExpectileRegressor(0.5, kernel, level=[0.2, 0.9]).fit(X, REAL)
        for k, tau in enumerate((0.2, 0.9)):

            def both(p, tau=tau):
                r = REAL - features @ p[:-1] - p[-1]
                c = np.where(r > 0, tau, 1 - tau)
                g = np.append(-features.T @ (c * r) + 0.5 * p[:-1], -(c * r).sum())
                return 0.5 * (c * r**2).sum() + 0.25 * (p[:-1] ** 2).sum(), g

            found = minimize(
                both,
                np.zeros(features.shape[1] + 1),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
            )
            assert_allclose(model.objective_[k], found.fun, rtol=1e-7)


class TestNovelty:
    @pytest.mark.parametrize("nu", [0.1, 0.5])
    def test_one_class(self, way, nu):
        kernel, features = way
        matrix = features @ features.T
        model = KernelOneClass(nu, kernel, tol=1e-7).fit(X)
        theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9).fit(matrix)
        size = np.abs(theirs.score_samples(matrix)).max()
        assert_allclose(
            model.decision_function(X), theirs.decision_function(matrix), atol=2e-3 * size
        )
        assert_allclose(model.score_samples(X), theirs.score_samples(matrix), atol=2e-3 * size)
        assert (model.decision_function(X) < -1e-3 * size).mean() <= nu


class TestOtherWays:
    @pytest.mark.slow
    def test_exact_without_the_matrix(self):
        kept = KernelLogisticRegression(0.5, KERNEL).fit(X, THREE)
        svc = KernelSVC(0.5, KERNEL).fit(X, TWO)
        with config_context(memory_budget="1.5MB"):  # 0.7 MB are too much for a quarter
            free = KernelLogisticRegression(0.5, Exact(KERNEL), random_state=0).fit(X, THREE)
            free_svc = KernelSVC(0.5, Exact(KERNEL), random_state=0).fit(X, TWO)
        assert_allclose(free.predict_proba(X), kept.predict_proba(X), atol=1e-5)
        assert_allclose(free_svc.objective_, svc.objective_, rtol=2e-4)

    def test_a_core_with_links(self):
        meka = MEKA(KERNEL, 60, n_blocks=3, random_state=0).fit(X)
        approximate = meka.factor(X).dense()
        model = KernelLogisticRegression(0.5, meka, tol=1e-10).fit(X, TWO)
        exact = KernelLogisticRegression(0.5, "precomputed", tol=1e-10).fit(approximate, TWO)
        assert_allclose(model.objective_, exact.objective_, rtol=1e-7)
        assert_allclose(model.predict_proba(X), exact.predict_proba(approximate), atol=1e-5)


def test_the_minimum_of_a_sample_is_a_better_start(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2, 2, (1500, 2))
    noisy = np.sin(2 * rows[:, 0]) + rows[:, 1] + 0.5 * rng.standard_normal(1500)
    labels = np.digitize(noisy, [-0.5, 0.5])
    kernel = Nystroem(RBF(0.5), 20, random_state=0).fit(rows)
    model = KernelLogisticRegression(1.0, kernel, tol=1e-8, random_state=0)
    warm = model.fit(rows, labels)
    value, steps = warm.objective_, warm.n_iter_
    monkeypatch.setattr(iterated, "FEWER", np.inf)
    cold = model.fit(rows, labels)
    assert_allclose(cold.objective_, value, rtol=1e-8)
    assert steps < cold.n_iter_
