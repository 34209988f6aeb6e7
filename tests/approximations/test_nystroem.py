"""Nyström, its certificates, and the learners on it, against dense formulas in float64."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.kernel_approximation
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian
from gramian import (
    RBF,
    ApproximationWarning,
    Exact,
    FunctionKernel,
    Gram,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Linear,
    Nystroem,
    Polynomial,
    Probabilities,
    RPCholesky,
    Sigmoid,
    Uniform,
    relative_error,
)
from gramian.backend import array_ops


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def relative(K, approximate):
    return np.linalg.norm(K - approximate) / np.linalg.norm(K)


@pytest.mark.slow
@parametrize_with_checks(
    [
        Nystroem(n_components=10, landmarks="rpcholesky"),
        Nystroem(n_components="sqrt"),
        KernelRidge(0.01, kernel=Nystroem(n_components=12)),
        KernelRidgeClassifier(kernel=Nystroem(n_components="sqrt")),
        KernelPCA(kernel=Nystroem(n_components="sqrt")),
    ],
    expected_failed_checks=lambda e: {
        name: "landmarks are drawn at random, so weighted and repeated rows give different ones"
        for name in (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        )
        if hasattr(e, "alpha")
    },
)
@pytest.mark.filterwarnings("ignore::gramian.ApproximationWarning")  # of tiny data sets
def test_estimator_checks(estimator, check):
    check(estimator)


class TestAgainstSklearn:
    def test_same_landmarks_same_matrix(self, digits):
        X = digits[0]
        theirs = sklearn.kernel_approximation.Nystroem(gamma=0.1, n_components=150, random_state=0)
        Z = theirs.fit_transform(X[:1200])
        ours = Nystroem(RBF(0.1), 150, landmarks=theirs.components_).fit(X[:1200])
        by_number = Nystroem(RBF(0.1), 150, landmarks=theirs.component_indices_).fit(X[:1200])
        assert_allclose(ours(X[:1200]), Z @ Z.T, atol=1e-6)
        assert_allclose(by_number(X[:1200]), Z @ Z.T, atol=1e-6)
        assert_allclose(ours(X[1200:], X[:1200]), theirs.transform(X[1200:]) @ Z.T, atol=1e-6)

    @pytest.mark.parametrize("gamma", [0.01, 0.1, 1.0, 10.0])
    def test_iris_over_gamma_and_rank(self, gamma):
        X = load_iris().data
        K = RBF(gamma)(X)
        last = np.inf
        for m in (5, 15, 40, 100):
            theirs = sklearn.kernel_approximation.Nystroem(
                gamma=gamma, n_components=m, random_state=0
            ).fit(X)
            Z = theirs.transform(X)
            ours = Nystroem(RBF(gamma), m, landmarks=theirs.component_indices_).fit(X)
            errors = relative(K, ours(X)), relative(K, Z @ Z.T)
            assert errors[0] == pytest.approx(errors[1], abs=1e-6)
            assert errors[0] <= last + 1e-6
            last = errors[0]


class TestDecomposition:
    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::gramian.ApproximationWarning")  # of less rank than rows
    def test_full_rank_is_exact(self, digits):
        X = digits[0][:300]
        for kernel in (RBF(0.1), Laplacian(0.1), Polynomial(3, 0.05), Linear()):
            K = kernel(X)
            for landmarks in (np.arange(300), "rpcholesky"):
                model = Nystroem(kernel, 300, landmarks=landmarks, random_state=0).fit(X)
                assert_allclose(model(X), K, atol=1e-6 * K.max())

    def test_truncations(self, digits):
        X = digits[0][:500]
        K, idx = RBF(0.1)(X), np.arange(0, 500, 5)
        C, W = K[:, idx], K[np.ix_(idx, idx)]
        whole = C @ np.linalg.pinv(W) @ C.T
        values, vectors = np.linalg.eigh(whole)
        best = (vectors[:, -12:] * values[-12:]) @ vectors[:, -12:].T
        values, vectors = np.linalg.eigh(W)
        core = C @ (vectors[:, -12:] / values[-12:]) @ vectors[:, -12:].T @ C.T
        model = Nystroem(RBF(0.1), 100, landmarks=idx, rank=12)
        assert_allclose(model.fit(X)(X), best, atol=1e-8)
        assert_allclose(model.set_params(truncation="core").fit(X)(X), core, atol=1e-8)
        assert relative(K, best) < relative(K, core)
        assert model.n_components_ == 12

    @pytest.mark.slow
    def test_randomized_core_for_many_landmarks(self, digits):
        X = digits[0]
        idx = np.arange(0, 1797, 1)[:1200]
        model = Nystroem(RBF(0.05), 1200, landmarks=idx, rank=50, truncation="core").fit(X)
        W = RBF(0.05)(X[idx])
        values, vectors = np.linalg.eigh(W)
        C = RBF(0.05)(X, X[idx])
        expected = C @ (vectors[:, -50:] / values[-50:]) @ vectors[:, -50:].T @ C.T
        assert relative(expected, model(X)) < 1e-3

    def test_probabilities_weigh_the_core(self, digits):
        """C W_k⁺ Cᵀ with C = K[:, S] D and W = D K[S, S] D (Drineas and Mahoney)."""
        X = digits[0][:200]
        p = np.linspace(1, 3, 200)
        p /= p.sum()
        model = Nystroem(
            RBF(0.1), 60, landmarks=Probabilities(p), rank=10, truncation="core", random_state=0
        ).fit(X)
        S = model.landmarks_.indices
        assert len(np.unique(S)) < 60, "drawn with replacement"
        K, D = RBF(0.1)(X), 1 / np.sqrt(60 * p[S])
        C, W = K[:, S] * D, K[np.ix_(S, S)] * D * D[:, None]
        values, vectors = np.linalg.eigh(W)
        expected = C @ (vectors[:, -10:] / values[-10:]) @ vectors[:, -10:].T @ C.T
        assert_allclose(model(X), expected, atol=1e-9)

    def test_duplicates_cost_rank_not_an_error(self, digits):
        X = digits[0][:300]
        idx = np.arange(0, 300, 10)
        once = Nystroem(RBF(0.1), 30, landmarks=idx).fit(X)
        thrice = Nystroem(RBF(0.1), 90, landmarks=np.tile(idx, 3)).fit(X)
        assert thrice.n_components_ == 30
        assert_allclose(thrice(X), once(X), atol=1e-8)

    def test_nearly_singular_core(self, rng):
        X = rng.standard_normal((200, 2)) * 1e-4 + 5.0
        for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-4)):
            rows = X.astype(dtype)
            model = Nystroem(Polynomial(2, 1.0), 50, landmarks="uniform", random_state=0).fit(rows)
            K = Polynomial(2, 1.0)(rows.astype(float))
            assert relative(K, model(rows).astype(float)) < tolerance

    def test_scikit_learns_absolute_cutoff_is_not_ours(self, digits):
        """A kernel scaled down by 1e-13 keeps its approximation."""
        X = digits[0][:300]
        small = Nystroem(1e-13 * RBF(0.1), 50, landmarks=np.arange(50)).fit(X)
        usual = Nystroem(RBF(0.1), 50, landmarks=np.arange(50)).fit(X)
        assert_allclose(1e13 * small(X), usual(X), atol=1e-8)

    def test_rows_of_every_kind(self, digits):
        X = digits[0][:200]
        model = Nystroem(RBF(0.1), 30, landmarks="rpcholesky", random_state=0)
        dense = clone(model).fit(X)
        sparse = clone(model).fit(scipy.sparse.csr_array(X))
        assert_allclose(sparse(scipy.sparse.csr_array(X)), dense(X), atol=1e-8)
        K = RBF(0.1)(X)
        given = Nystroem("precomputed", 30, random_state=0).fit(K)
        assert_allclose(given(K), dense(X), atol=1e-8)
        integers = clone(model).set_params(kernel=RBF(0.1 / 256)).fit((16 * X).astype(np.int16))
        assert integers.transform((16 * X).astype(np.int16)).dtype == np.float64

    @pytest.mark.slow
    @pytest.mark.parametrize("kernel", [RBF(0.1), Laplacian(0.1), Linear()])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_automatic_landmarks_of_sparse_rows(self, kernel, dtype, rng):
        """They are those of the same rows as a dense array, also where many rows coincide."""
        X = rng.integers(0, 2, (400, 6)).astype(dtype)
        model = Nystroem(kernel, 20, random_state=0)
        dense, sparse = clone(model).fit(X), clone(model).fit(scipy.sparse.csr_array(X))
        points = array_ops.dense(sparse.landmarks_.points)
        assert_array_equal(points, dense.landmarks_.points)
        tolerance = 1e-9 if dtype == np.float64 else 1e-3
        assert_allclose(sparse(scipy.sparse.csr_array(X)), dense(X), atol=tolerance)

    def test_a_large_sample_of_sparse_rows_stays_sparse(self, digits, monkeypatch):
        X = digits[0]
        dense = Nystroem(RBF(0.1), 20, random_state=0).fit(X)
        monkeypatch.setattr(gramian.samplers.centroids, "DENSE_BYTES", 0)
        long_indices = scipy.sparse.csr_array(X)
        long_indices.indices = long_indices.indices.astype(np.int64)
        long_indices.indptr = long_indices.indptr.astype(np.int64)
        sparse = Nystroem(RBF(0.1), 20, random_state=0).fit(long_indices)
        assert_allclose(sparse.landmarks_.points, dense.landmarks_.points, atol=1e-9)

    def test_a_function_of_sparse_rows_gets_sparse_landmarks(self, digits):
        X = scipy.sparse.csr_array(digits[0][:200])
        kernel = FunctionKernel(lambda x, y: (x @ y.T).toarray())
        dense = Nystroem("linear", 10, random_state=0).fit(X)
        assert_allclose(Nystroem(kernel, 10, random_state=0).fit(X)(X), dense(X), atol=1e-8)

    def test_more_landmarks_than_a_tile(self, rng, monkeypatch):
        monkeypatch.setattr(gramian.kernels.tiles, "TILE_COLUMNS", 200)
        X = rng.standard_normal((300, 5))
        model = Nystroem(RBF(0.3), 260, landmarks=np.arange(260)).fit(X)
        C = RBF(0.3)(X, X[:260])
        expected = C @ np.linalg.pinv(RBF(0.3)(X[:260]), hermitian=True) @ C.T
        assert relative(expected, model(X)) < 1e-6


class TestCertificates:
    def test_exact_errors(self, digits):
        X = digits[0][:700]
        K = RBF(0.1)(X)
        model = Nystroem(RBF(0.1), 60, random_state=0).fit(X)
        difference = K - model(X)
        error = relative_error(model, X)
        assert float(error) == pytest.approx(np.linalg.norm(difference) / np.linalg.norm(K))
        assert error.low == error.high == error.value
        assert error.evaluations >= 700**2
        trace = relative_error(model, X, norm="trace")
        assert float(trace) == pytest.approx(np.trace(difference) / np.trace(K))
        spectral = relative_error(model, X, norm="spectral")
        expected = np.linalg.norm(difference, 2) / np.linalg.norm(K, 2)
        assert float(spectral) == pytest.approx(expected, rel=1e-3)

    @pytest.mark.slow
    def test_the_interval_covers(self, digits, monkeypatch):
        X = digits[0]
        monkeypatch.setattr(gramian.analysis.accuracy, "SAMPLED_ROWS", 400)
        model = Nystroem(RBF(0.1), 100, random_state=0).fit(X)
        exact = float(relative_error(model, X, exact=True))
        estimates = [
            relative_error(model, X, exact=False, random_state=seed) for seed in range(100)
        ]
        covered = sum(e.low <= exact <= e.high for e in estimates)
        assert 90 <= covered <= 99, covered
        assert all(e.evaluations < 2 * 400**2 + 2 * len(X) for e in estimates)
        assert np.mean([float(e) for e in estimates]) == pytest.approx(exact, rel=0.02)

    def test_new_rows(self, digits):
        X = digits[0]
        model = Nystroem(RBF(0.1), 100, random_state=0).fit(X[:1000])
        new = X[1000:]
        K = RBF(0.1)(new)
        assert float(relative_error(model, new)) == pytest.approx(relative(K, model(new)))
        assert str(relative_error(model, new, exact=True)).count("[") == 0

    @pytest.mark.slow
    @pytest.mark.parametrize("landmarks", ["auto", "rpcholesky", "greedy", "uniform"])
    def test_tolerance_is_met(self, landmarks):
        sets = [load_iris, load_wine, load_breast_cancer, load_diabetes, load_digits]
        for load in sets:
            X = load().data
            X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
            gamma = 0.1 / X.shape[1]
            model = Nystroem(RBF(gamma), 5, tol=0.01, landmarks=landmarks, random_state=0).fit(X)
            K = RBF(gamma)(X)
            assert np.trace(K - model(X)) / np.trace(K) <= 0.01
            assert len(model.landmarks_) < len(X)

    @pytest.mark.slow
    def test_growth_needs_few_landmarks(self, digits):
        X = digits[0]
        model = Nystroem(RBF(0.02), 5, tol=0.05, landmarks="rpcholesky", random_state=0).fit(X)
        values = np.linalg.eigvalsh(RBF(0.02)(X))[::-1].cumsum()
        best = int(np.argmax(values >= 0.95 * values[-1]))
        assert best < len(model.landmarks_) < 8 * best
        assert float(relative_error(model, X, norm="trace")) > 0.04, "no more than are needed"

    def test_the_budget_ends_the_growth(self, digits):
        X = digits[0]
        model = Nystroem(RBF(1.0), 10, tol=0.001, landmarks="rpcholesky", random_state=0)
        tight = gramian.config_context(memory_budget=2 * 1797 * 8 * 40)
        with tight, pytest.warns(ApproximationWarning, match=r"error of .* with 40 landmarks"):
            model.fit(X)
        assert len(model.landmarks_) == 40


@pytest.fixture(scope="module")
def case(digits):
    """Rows, targets, a fitted approximation, and K̃."""
    X, y = digits[0][:400], digits[1][:400]
    model = Nystroem(RBF(0.1), 50, landmarks=np.arange(0, 400, 8)).fit(X)
    return X, y.astype(float), model, model(X)


class TestLearners:
    """The same classes on Nystroem, against the dense formulas on K̃."""

    def test_ridge(self, case):
        X, y, approximation, K = case
        Y, weights = np.column_stack((y, y**2)), np.linspace(0.5, 2, 400)
        new = digits_new()
        cross = approximation(new, X)
        for target, alpha, w in ((y, 0.1, None), (Y, [0.1, 2.0], None), (Y, [0.1, 2.0], weights)):
            model = KernelRidge(alpha, kernel=approximation, fit_intercept=False).fit(
                X, target, sample_weight=w
            )
            columns = np.atleast_2d(target.T)
            W = np.ones(400) if w is None else w
            expected = [
                cross @ np.linalg.solve(np.diag(W) @ K + a * np.eye(400), W * column)
                for a, column in zip(np.atleast_1d(alpha), columns, strict=True)
            ]
            got = np.atleast_2d(model.predict(new).T)
            assert_allclose(got, expected, atol=1e-8 * np.abs(expected).max())
            assert model.coef_.shape[0] == 50
            assert not hasattr(model, "dual_coef_")

    def test_classifier(self, case):
        X, y, approximation, K = case
        model = KernelRidgeClassifier(0.1, kernel=approximation, fit_intercept=False).fit(X, y)
        T = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
        expected = K @ np.linalg.solve(K + 0.1 * np.eye(400), T)
        assert_allclose(model.decision_function(X), expected, atol=1e-8)

    def test_kmeans(self, case):
        X, _, approximation, K = case
        for init in (X[:5], np.arange(5), "k-means++"):
            model = KernelKMeans(5, kernel=approximation, init=init, tol=0, random_state=0).fit(X)
            dense = KernelKMeans(5, kernel="precomputed", init=np.arange(5), tol=0).fit(K)
            if not isinstance(init, str):
                assert (model.labels_ == dense.labels_).all()
                assert_allclose(model.inertia_, dense.inertia_, rtol=1e-8)
                assert_allclose(model.transform(X), dense.transform(K), atol=1e-7)
            assert (np.diff(model.inertia_history_) <= 1e-9).all()
            assert (model.predict(X) == model.labels_).all()
        squared = model.transform(X) ** 2
        left = 1.0 - np.diagonal(K)
        assert_allclose(model.risk(X), (squared.min(axis=1) + left).mean())

    def test_kmeans_restarts_and_weights(self, case):
        X, _, approximation, _ = case
        counts = np.random.default_rng(0).integers(0, 4, 400)
        model = KernelKMeans(4, kernel=approximation, init=X[:4], tol=0)
        weighted = clone(model, safe=False).fit(X, sample_weight=counts)
        repeated = KernelKMeans(4, kernel=approximation, init=X[:4], tol=0)
        repeated.fit(np.repeat(X, counts, axis=0))
        assert_allclose(weighted.inertia_, repeated.inertia_)
        runs = [
            KernelKMeans(6, kernel=approximation, n_init=n, random_state=3).fit(X).inertia_
            for n in (1, 4)
        ]
        assert runs[1] <= runs[0] * (1 + 1e-12)

    def test_rows_without_weight_are_no_centres(self, rng):
        X = rng.standard_normal((400, 2))
        X[30:] += 6.0  # far from the rows that count
        approximation = Nystroem(RBF(0.3), 60, random_state=0).fit(X)
        nowhere = np.full((2, 2), -50.0)
        model = KernelKMeans(5, kernel=approximation, init=np.concatenate((X[:3], nowhere)), tol=0)
        model.fit(X, sample_weight=np.where(np.arange(400) < 30, 1.0, 0.0))
        assert len(np.unique(model.labels_[:30])) == 5
        assert model.n_iter_ < 100

    def test_kmeans_fills_empty_clusters(self, rng):
        X = rng.standard_normal((300, 2))
        approximation = Nystroem(RBF(0.5), 50, random_state=0).fit(X)
        far = np.concatenate((X[:2], [[50.0, 50.0], [51.0, 50.0]]))
        model = KernelKMeans(4, kernel=approximation, init=far, tol=0).fit(X)
        assert len(np.unique(model.labels_)) == 4

    def test_pca(self, case):
        X, _, approximation, K = case
        model = KernelPCA(6, kernel=approximation).fit(X)
        dense = KernelPCA(6, kernel="precomputed", solver="direct").fit(K)
        assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-8)
        scale = np.sqrt(dense.eigenvalues_[0])
        assert_allclose(model.fit_transform(X), dense.transform(K), atol=1e-8 * scale)
        assert_allclose(model.transform(X), dense.transform(K), atol=1e-8 * scale)
        # Of the trace of the kernel itself, which K̃ does not reach; the mean is K̃'s.
        total = approximation.kernel_.diag(X).sum() - K.mean() * len(X)
        assert_allclose(model.explained_variance_ratio_, dense.eigenvalues_ / total)
        assert total > dense.eigenvalues_[0] / dense.explained_variance_ratio_[0]
        new = digits_new()
        assert_allclose(
            model.transform(new), dense.transform(approximation(new, X)), atol=1e-8 * scale
        )

    def test_features_that_do_not_fit_are_computed_anew(self, case):
        X, _, approximation, _ = case
        with gramian.config_context(memory_budget="200kB"):
            assert approximation.factor(X).persist().parts[0].shape == (400, 50)
            assert not isinstance(approximation.factor(X).persist().parts[0], gramian.ArrayRows)
            small = KernelKMeans(5, kernel=approximation, init=X[:5]).fit(X)
            pca = KernelPCA(3, kernel=approximation).fit(X)
        assert (
            small.labels_ == KernelKMeans(5, kernel=approximation, init=X[:5]).fit(X).labels_
        ).all()
        assert_allclose(pca.eigenvalues_, KernelPCA(3, kernel=approximation).fit(X).eigenvalues_)

    @pytest.mark.slow
    def test_grid_search_reaches_the_inner_kernel(self, digits):
        X, y = digits[0][:300], digits[1][:300]
        model = KernelRidgeClassifier(0.01, kernel=Nystroem("rbf", 50, random_state=0))
        grid = {"kernel__kernel__gamma": [1.0, 0.05], "kernel__n_components": [3, 50]}
        search = GridSearchCV(model, grid, cv=3).fit(X, y)
        assert search.best_params_["kernel__kernel__gamma"] == 0.05
        assert search.best_estimator_.approximation_.n_components_ == 50
        twice = [clone(model).fit(X, y).decision_function(X) for _ in range(2)]
        assert_allclose(*twice, err_msg="the approximation's own seed counts")


def digits_new():
    return load_digits().data[400:450] / 16.0


class TestBareKernel:
    """A bare kernel: exact while its matrix is small, beyond through an approximation."""

    @pytest.mark.slow
    def test_rule(self, digits, monkeypatch):
        X, y = digits[0][:800], digits[1][:800]
        monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 8 * 500**2)
        for model, m in [
            (KernelKMeans(3), 29),
            (KernelRidge(), 2 * int(800**0.5 * np.log(800))),
            (KernelPCA(2), 120),
            (KernelPCA(50), 600),
        ]:
            assert model.fit(X[:450], y[:450]).approximation_ is None
            approximation = model.fit(X, y).approximation_
            assert isinstance(approximation, Nystroem)
            assert len(approximation.landmarks_) == m
            exact = clone(model).set_params(kernel=Exact("rbf")).fit(X, y)
            assert exact.approximation_ is None
        assert KernelRidge(solver="iterative").fit(X, y).approximation_ is None
        assert KernelRidge(kernel="precomputed").fit(RBF(0.1)(X), y).approximation_ is None

    @pytest.mark.slow
    def test_the_default_is_good(self, digits, monkeypatch):
        X, y = digits
        monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 8 * 1000**2)
        train, test = slice(0, 1400), slice(1400, None)
        scores = [
            KernelRidgeClassifier(0.01, kernel=kernel, random_state=0)
            .fit(X[train], y[train])
            .score(X[test], y[test])
            for kernel in ("rbf", Exact("rbf"))
        ]
        assert scores[0] > scores[1] - 0.02


class TestBadInput:
    def test_more_landmarks_than_rows(self, digits):
        X = digits[0][:50]
        with pytest.warns(ApproximationWarning, match=r"n_components=80 exceeds.*50 landmarks are"):
            model = Nystroem(RBF(0.1), 80, landmarks="uniform").fit(X)
        assert model.n_components_ == 50

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (Nystroem(rank=200), "rank=200 exceeds the 100 landmarks"),
            (Nystroem(rank=0), "rank of Nystroem must be a positive integer"),
            (Nystroem(n_components=0), "n_components of Nystroem must be a positive integer"),
            (Nystroem(n_components="many"), "positive integer or 'sqrt'; got 'many'"),
            (Nystroem(n_components=2.5), "positive integer or 'sqrt'; got 2.5"),
            (
                Nystroem(truncation="svd"),
                "truncation of Nystroem must be one of 'embedding', 'core'",
            ),
            (Nystroem(tol=2.0), "tol of Nystroem must be a number between 0 and 1; got 2.0"),
            (Nystroem(landmarks="rpcholeski"), "Unknown landmarks.*Did you mean 'rpcholesky'"),
            (Nystroem(landmarks=np.zeros((5, 3))), "as many columns as the rows, 64; got 3"),
            (Nystroem(landmarks=[0, 300]), "from 0 to 199; got 0 to 300"),
            (Nystroem(landmarks=[0.5, 1.5]), "must be integers"),
            (Nystroem(landmarks=np.full((5, 64), np.nan)), "landmarks contains NaN"),
            (Nystroem(landmarks=Probabilities([0.5, 0.4])), "one number for each of the 200 rows"),
            (Nystroem(landmarks=Probabilities(np.full(200, 0.004))), "sum to 1; they sum to 0.8"),
            (Nystroem(landmarks="csi"), r"CSI selects landmarks by the target: call fit\(X, y\)"),
            (Nystroem(Sigmoid(1.0, -2.0), 50), "needs a positive semi-definite kernel; Sigmoid"),
            (Nystroem(lambda x, y: -(x @ y.T), 50), "needs a positive semi-definite kernel"),
            (Nystroem("rfb"), "Did you mean 'rbf'"),
        ],
    )
    def test_errors(self, digits, model, message):
        with pytest.raises(ValueError, match=message):
            model.fit(digits[0][:200])

    def test_types(self, digits):
        with pytest.raises(TypeError, match=r"write RPCholesky\(\)"):
            Nystroem(landmarks=RPCholesky).fit(digits[0][:200])
        with pytest.raises(TypeError, match="a name such as 'kmeans'"):
            Nystroem(landmarks=3.5).fit(digits[0][:200])

    def test_precomputed_and_centres(self, digits):
        K = RBF(0.1)(digits[0][:100])
        with pytest.raises(ValueError, match="need rows that are vectors"):
            Nystroem("precomputed", 10, landmarks="kmeans").fit(K)
        with pytest.raises(ValueError, match="given as row numbers, not as points"):
            Nystroem("precomputed", 10, landmarks=K[:5]).fit(K)

    def test_a_solver_with_an_approximation(self, digits):
        X = digits[0]
        with pytest.raises(ValueError, match=r"is for the exact matrix.*kernel=Exact"):
            KernelPCA(kernel=Nystroem(), solver="direct").fit(X)

    def test_a_trace_error_that_means_nothing(self, digits):
        class Doubled(Nystroem):
            below = False

        model = Doubled(RBF(0.1), 20, random_state=0).fit(digits[0][:100])
        with pytest.raises(ValueError, match="Use norm='fro'"):
            relative_error(model, digits[0][:100], norm="trace")


def test_features_of_too_many_rows(digits):
    X = digits[0]
    model = Nystroem(RBF(0.1), 50, random_state=0).fit(X)
    with gramian.config_context(memory_budget="100kB"):
        with pytest.raises(gramian.MemoryBudgetError, match=r"50 features of 1797 rows.*factor"):
            model.transform(X)
        V = np.ones(len(X))
        product = model.factor(X).matmul(V)
    assert_allclose(product, model(X) @ V, rtol=1e-8)


def test_uniform_without_replacement_is_distinct(digits):
    gram = Gram(RBF(0.1), digits[0][:50])
    chosen = Uniform().select(gram, 50, np.random.default_rng(0)).indices
    assert sorted(chosen) == list(range(50))
