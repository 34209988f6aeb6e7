"""What the exact learners compute, against dense formulas in float64."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import gramian
from gramian import (
    RBF,
    Exact,
    Gram,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Linear,
    Sigmoid,
)
from gramian.learners.kmeans import exact
from gramian.samplers.pivoted import pivoted_cholesky


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


class TestRidge:
    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_iterations_reach_the_direct_solution(self, digits, dtype):
        X, y = digits[0][::2].astype(dtype), np.eye(10)[digits[1][::2]]
        weights = np.linspace(0.1, 3.0, len(X))
        alphas = np.geomspace(1e-3, 10, 10)
        for weight in (None, weights):
            direct = KernelRidge(alphas, kernel=RBF(0.1), solver="direct").fit(X, y, weight)
            iterative = KernelRidge(
                alphas, kernel=RBF(0.1), solver="iterative", tol=1e-10, random_state=0
            ).fit(X, y, weight)
            assert 1 < iterative.n_iter_ < 300
            tolerance = 1e-7 if dtype == np.float64 else 2e-2
            assert_allclose(iterative.predict(X), direct.predict(X), atol=tolerance)

    @pytest.mark.slow
    def test_the_matrix_is_not_stored_when_it_is_large(self, digits, monkeypatch):
        monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 1_000_000)
        monkeypatch.setattr(Gram, "dense", lambda self: pytest.fail("K was stored"))
        X, y = digits
        exactly = Exact("rbf")
        assert KernelRidge(0.1, kernel=exactly, solver="iterative").fit(X, y).n_iter_ > 1
        with gramian.config_context(memory_budget="50MB"):  # K takes more than a quarter of it
            assert KernelPCA(2, kernel=exactly).fit(X).n_iter_ > 1
        KernelKMeans(10, kernel=exactly, n_init=1).fit(X)

    def test_not_converged(self, digits):
        X, y = digits
        model = KernelRidge(1e-9, kernel=Laplacian(0.5), solver="iterative", max_iter=2)
        poor = gramian.config_context(memory_budget="2MB")  # for the preconditioner
        with poor, pytest.warns(ConvergenceWarning, match=r"2 iterations.*Increase max_iter"):
            model.fit(X, y)

    def test_indefinite_kernel(self, rng):
        X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
        kernel = Sigmoid(2.0, coef0=-1.0)
        model = KernelRidge(0.1, kernel=kernel, fit_intercept=False).fit(X, y)
        expected = np.linalg.solve(kernel(X) + 0.1 * np.eye(60), y)
        assert_allclose(model.dual_coef_, expected, rtol=1e-8)
        with pytest.raises(ValueError, match=r"not positive definite.*solver='direct'"):
            KernelRidge(1e-6, kernel=kernel, solver="iterative").fit(X, y)

    def test_classifier(self, digits):
        X, y = digits
        names = np.array([f"digit {i}" for i in range(10)])[y]
        model = KernelRidgeClassifier(0.01).fit(X[:1000], names[:1000])
        assert model.score(X[1000:], names[1000:]) > 0.95
        assert model.decision_function(X[:3]).shape == (3, 10)
        two = y < 2
        binary = KernelRidgeClassifier(0.01).fit(X[two], y[two])
        scores = binary.decision_function(X[two])
        assert scores.shape == (two.sum(),)
        assert ((scores > 0) == (binary.predict(X[two]) == 1)).all()

    def test_balanced_classes(self, rng):
        X = np.concatenate((rng.normal(0, 1, (300, 1)), rng.normal(1.5, 1, (15, 1))))
        y = np.repeat([0, 1], [300, 15])
        found = {
            weight: KernelRidgeClassifier(1.0, class_weight=weight).fit(X, y).predict(X)[y == 1]
            for weight in (None, "balanced")
        }
        assert found["balanced"].mean() > found[None].mean() + 0.2
        given = KernelRidgeClassifier(1.0, class_weight={0: 1.0, 1: 20.0}).fit(X, y)
        assert (given.predict(X)[y == 1] == found["balanced"]).mean() > 0.9


class TestKMeans:
    def test_rings_and_moons(self):
        for X, y, gamma in (
            (*make_circles(600, factor=0.3, noise=0.06, random_state=0), 5.0),
            (*make_moons(600, noise=0.05, random_state=0), 20.0),
        ):
            model = KernelKMeans(2, kernel=RBF(gamma), n_init=20, random_state=0).fit(X)
            if gamma == 5.0:
                assert adjusted_rand_score(y, model.labels_) == 1.0
            assert (model.predict(X) == model.labels_).all()

    @pytest.mark.parametrize("kernel", [RBF(0.05), Laplacian(0.1), Linear()])
    def test_the_objective_never_rises(self, digits, kernel):
        X = digits[0][:600]
        for seed in range(5):
            model = KernelKMeans(8, kernel=kernel, init="random", tol=0, random_state=seed).fit(X)
            history = np.asarray(model.inertia_history_)
            assert len(history) == model.n_iter_ > 2
            assert (np.diff(history) <= 1e-9 * history[0]).all()
            assert model.inertia_ == history[-1]

    def test_objective_and_distances_by_the_dense_formula(self, digits):
        X = digits[0][:300]
        weights = np.linspace(0.2, 2.0, 300)
        kernel = RBF(0.05)
        K = kernel(X)
        model = KernelKMeans(5, kernel=kernel, tol=0, random_state=0).fit(X, sample_weight=weights)
        squared = np.empty((300, 5))
        for j in range(5):
            v = weights * (model.labels_ == j)
            v /= v.sum()
            squared[:, j] = np.diagonal(K) - 2 * K @ v + v @ K @ v
        assert_allclose(model.transform(X), np.sqrt(squared), atol=1e-7)
        assert (squared.argmin(axis=1) == model.labels_).all(), "a fixed point of Lloyd's step"
        assert_allclose(model.inertia_, (weights * squared.min(axis=1)).sum())
        assert_allclose(model.score(X, sample_weight=weights), -model.inertia_)
        assert_allclose(model.risk(X), squared.min(axis=1).mean())

    def test_restarts_run_together_as_they_would_alone(self, digits, monkeypatch):
        X = digits[0][:500]
        model = KernelKMeans(6, kernel=Exact("rbf"), n_init=4, random_state=3)
        together = clone(model).fit(X)
        with monkeypatch.context() as patched:
            patched.setattr(exact, "_room", lambda problem: 2)  # two at a time
            apart = clone(model).fit(X)
        assert_allclose(apart.inertia_, together.inertia_)
        alone = clone(model).set_params(n_init=1).fit(X)
        assert together.inertia_ <= alone.inertia_ * (1 + 1e-12)

    def test_plus_plus_is_better_than_random_rows(self):
        rng = np.random.default_rng(0)
        X = np.repeat(20.0 * rng.standard_normal((12, 2)), 20, axis=0)
        X += 0.1 * rng.standard_normal(X.shape)
        inertia = {
            init: np.mean(
                [
                    KernelKMeans(12, "linear", init=init, n_init=1, random_state=s).fit(X).inertia_
                    for s in range(10)
                ]
            )
            for init in ("k-means++", "random")
        }
        assert inertia["k-means++"] < 0.2 * inertia["random"]

    def test_empty_clusters_are_filled(self, rng):
        X = rng.standard_normal((50, 2))
        far = np.concatenate((X[:2], [[500.0, 500.0], [501.0, 500.0]]))
        model = KernelKMeans(4, kernel="linear", init=far, tol=0).fit(X)
        assert len(np.unique(model.labels_)) == 4
        assert (np.diff(model.inertia_history_) <= 1e-12).all()

    def test_fewer_distinct_rows_than_clusters(self):
        X = np.repeat([[0.0], [1.0], [5.0]], 10, axis=0)
        with pytest.warns(ConvergenceWarning, match="Found only 3 distinct clusters.*n_clusters=5"):
            model = KernelKMeans(5, kernel=RBF(1.0), random_state=0).fit(X)
        assert model.inertia_ == pytest.approx(0.0, abs=1e-9)
        assert np.isin(model.predict(X), np.unique(model.labels_)).all()

    def test_kmeans_weights_count_rows(self, digits):
        X = digits[0][:200]
        counts = np.random.default_rng(0).integers(0, 4, 200)
        model = KernelKMeans(4, kernel="rbf", init=X[:4], tol=0)
        weighted = clone(model).fit(X, sample_weight=counts)
        repeated = clone(model).fit(np.repeat(X, counts, axis=0))
        assert_allclose(weighted.inertia_, repeated.inertia_)
        assert (weighted.predict(X) == repeated.predict(X)).all()

    def test_precomputed(self, digits):
        X = digits[0][:200]
        K = RBF(0.05)(X)
        by_rows = KernelKMeans(4, kernel=RBF(0.05), random_state=0).fit(X[:150])
        by_matrix = KernelKMeans(4, kernel="precomputed", random_state=0).fit(K[:150, :150])
        assert (by_rows.labels_ == by_matrix.labels_).all()
        assert (by_rows.predict(X[150:]) == by_matrix.predict(K[150:, :150])).all()
        with pytest.raises(ValueError, match="does not hold k"):
            by_matrix.transform(K[150:, :150])


class TestPCA:
    @pytest.mark.slow
    @given(seed=st.integers(0, 100))
    def test_components_of_the_centred_matrix(self, seed):
        X = np.random.default_rng(seed).standard_normal((40, 3))
        K = RBF(0.3)(X)
        H = np.eye(40) - 1 / 40
        values = np.linalg.eigvalsh(H @ K @ H)[::-1][:4]
        model = KernelPCA(4, kernel=RBF(0.3)).fit(X)
        assert_allclose(model.eigenvalues_, values)
        scores = model.transform(X)
        assert_allclose(scores, model.fit_transform(X), atol=1e-10)
        assert_allclose(scores.T @ scores, np.diag(values), atol=1e-9)
        assert_allclose(model.explained_variance_ratio_, values / np.trace(H @ K @ H))

    def test_signs_are_fixed(self, digits):
        X = digits[0][:300]
        scores = [KernelPCA(5, solver=s, random_state=0).fit_transform(X) for s in SOLVERS]
        assert_allclose(*scores, atol=1e-6)
        largest = np.abs(scores[0]).argmax(axis=0)
        assert (scores[0][largest, range(5)] > 0).all()

    @pytest.mark.slow
    def test_pre_images(self, digits):
        X = digits[0]
        noisy = X + 0.25 * np.random.default_rng(0).standard_normal(X.shape)
        model = KernelPCA(30, kernel=RBF("median"), fit_inverse_transform=True, random_state=0)
        model.fit(X[:1200])
        denoised = model.inverse_transform(model.transform(noisy[1200:]))
        before = ((noisy[1200:] - X[1200:]) ** 2).mean()
        after = ((denoised - X[1200:]) ** 2).mean()
        assert after < 0.5 * before
        sparse = clone(model).fit(scipy.sparse.csr_array(X[:200]))
        assert sparse.inverse_transform(np.zeros((2, 30))).shape == (2, 64)
        assert not hasattr(KernelPCA(), "inverse_transform")

    def test_more_components_than_the_data_has(self):
        X = np.repeat(np.eye(3), 5, axis=0)
        model = KernelPCA(6, kernel="linear").fit(X)
        assert_allclose(model.eigenvalues_[2:], 0.0)
        assert_allclose(model.transform(X)[:, 2:], 0.0)

    def test_not_converged(self, rng):
        X = rng.standard_normal((300, 20))
        with pytest.warns(ConvergenceWarning, match="2 passes.*max_iter"):
            KernelPCA(5, kernel=RBF(0.5), solver="iterative", max_iter=2).fit(X)


SOLVERS = ("direct", "iterative")


def test_pivoted_cholesky(digits):
    X = digits[0][:400]
    gram = Gram(RBF(0.05), X)
    K = gram.dense()
    left = []
    for rank in (20, 60, 180):
        F = pivoted_cholesky(gram, rank, np.random.default_rng(0)).factor
        assert F.shape == (400, rank)
        assert np.linalg.eigvalsh(K - F @ F.T).min() > -1e-9
        left.append(np.trace(K - F @ F.T))
    best = np.linalg.eigvalsh(K)[::-1].cumsum()
    assert left[0] > left[1] > left[2]
    assert left[1] < 3 * (np.trace(K) - best[59])
    linear = pivoted_cholesky(Gram(Linear(), X), 400, np.random.default_rng(0))
    assert len(linear.pivots) <= 64


@pytest.mark.parametrize("cls", [KernelRidge, KernelKMeans, KernelPCA, KernelRidgeClassifier])
def test_an_interrupted_fit_leaves_the_old_state(digits, cls, monkeypatch):
    X, y = digits[0][:200], digits[1][:200]
    model = cls().fit(X, y)
    before = dict(vars(model))

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(gramian.backend.array_ops, "mirror_lower", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:100, :30], y[:100])
    assert vars(model) is not before
    assert all(vars(model)[name] is value for name, value in before.items())
    assert set(vars(model)) == set(before)
    monkeypatch.undo()
    assert model.n_features_in_ == 64


def test_a_kernel_is_not_changed_by_a_fit(digits):
    kernel = RBF("median")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelKMeans(3, kernel=kernel).fit(digits[0][:100])
    assert not hasattr(kernel, "gamma_")


@pytest.mark.slow
def test_blocks_of_pivots_have_the_law_of_single_draws():
    """Two pivots: the first by the diagonal, the second by what the first leaves of it."""
    X = np.array([[0.0], [0.3], [0.5], [2.0], [2.2]])
    gram = Gram(RBF(1.0), X)
    K = gram.dense()
    expected = np.zeros((5, 5))
    for i in range(5):
        left = np.diagonal(K) - K[:, i] ** 2 / K[i, i]
        expected[i] = K[i, i] / np.trace(K) * left / left.sum()
    runs = 3000
    drawn = np.zeros((5, 5))
    for seed in range(runs):
        i, j = pivoted_cholesky(gram, 2, np.random.default_rng(seed)).pivots
        drawn[i, j] += 1 / runs
    spread = np.sqrt(expected * (1 - expected) / runs)
    assert (np.abs(drawn - expected) <= 4 * spread + 1e-12).all()
