"""Kernel-JL and its theory, against dense formulas in float64 and over seeds."""

from math import exp, sqrt

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian
from gramian import (
    RBF,
    ApproximationWarning,
    FunctionKernel,
    KernelJL,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Linear,
    Nystroem,
    Polynomial,
    relative_error,
)
from gramian.testing import check_kernel, check_learner
from gramian.testing.comparing import LIBRARIES
from gramian.theory import (
    jl_bound,
    jl_distance_bound,
    jl_means_bound,
    jl_separation_bound,
    jl_sizes_needed,
)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def centred(kernel, S):
    """The kernel centred on the rows S, as kernel PCA does."""

    def values(A, B):
        own = kernel(A, S).mean(axis=1)[:, None], kernel(S, B).mean(axis=0)
        return kernel(A, B) - own[0] - own[1] + kernel(S).mean()

    return values


def kernel_on(model, kernel, S):
    return centred(kernel, S) if model.centred else kernel


def gaussian(seed, n, s, r):
    """The rows and the matrix G that a fit with this seed draws."""
    rng = np.random.default_rng(seed)
    rng.integers(2**63)  # the kernel's own
    return np.sort(rng.choice(n, size=s, replace=False)), rng.standard_normal((r, s))


def dense_features(model, kernel, X, new, seed):
    """G K k(x) / (s √(s r)), as 004 writes it."""
    s, r = len(model.sample_), model.n_components_
    chosen, G = gaussian(seed, len(X), s, r)
    k = kernel_on(model, kernel, X[chosen])
    return (G @ k(X[chosen], X[chosen]) @ k(X[chosen], new)).T / (s * sqrt(s * r))


def dense_target(model, kernel, S, A, B=None):
    """k(x)ᵀ K² k(y) / s³."""
    k = kernel_on(model, kernel, S)
    K = k(S, S)
    return k(A, S) @ K @ K @ k(S, A if B is None else B) / len(S) ** 3


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


@pytest.mark.slow
@parametrize_with_checks(
    [
        KernelJL(n_components=10),
        KernelJL(n_components=10, centred=False),
        KernelPCA(kernel=KernelJL(n_components=10)),  # for other learners see test_nystroem.py
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


class TestFeatures:
    @pytest.mark.parametrize("kernel", [RBF(0.05), Laplacian(0.02), Polynomial(2, 0.05)])
    @pytest.mark.parametrize("centre", [True, False])
    def test_are_those_of_the_paper(self, digits, kernel, centre):
        X, new = digits[0][:400], digits[0][400:450]
        model = KernelJL(kernel, 30, n_samples=90, centred=centre, random_state=5).fit(X)
        for rows in (X, new):
            expected = dense_features(model, kernel, X, rows, 5)
            assert_allclose(model.transform(rows), expected, atol=1e-10 * np.abs(expected).max())
        assert model.n_components_ == 30
        assert_allclose(model.sample_.points, X[model.sample_.indices])

    @pytest.mark.parametrize("centre", [True, False])
    def test_of_more_rows_than_a_tile(self, rng, centre):
        X = rng.standard_normal((1500, 3))
        model = KernelJL(RBF(0.3), 8, n_samples=1300, centred=centre, random_state=1).fit(X)
        expected = dense_features(model, RBF(0.3), X, X, 1)
        assert_allclose(model.transform(X), expected, atol=1e-10 * np.abs(expected).max())

    def test_size_of_the_subsample(self, rng):
        for n, s in ((120, 120), (300, 200), (20_001, 201), (30_000, 300)):
            model = KernelJL(RBF(1.0), 2, random_state=0).fit(rng.standard_normal((n, 1)))
            assert len(model.sample_) == s
            assert len(np.unique(model.sample_.indices)) == s

    def test_rows_of_every_kind(self, digits):
        X, new = digits[0][:300], digits[0][300:350]
        model = KernelJL(RBF(0.05), 20, n_samples=80, random_state=0)
        dense = clone(model).fit(X)
        expected = dense.transform(new)
        close = {"atol": 1e-10 * np.abs(expected).max()}
        csr = scipy.sparse.csr_array
        assert_allclose(clone(model).fit(csr(X)).transform(csr(new)), expected, **close)
        given = clone(model).set_params(kernel="precomputed").fit(RBF(0.05)(X))
        assert_allclose(given.transform(RBF(0.05)(new, X)), expected, **close)
        function = clone(model).set_params(kernel=FunctionKernel(RBF(0.05))).fit(X)
        assert_allclose(function.transform(new), expected, **close)
        single = clone(model).fit(X.astype(np.float32)).transform(new.astype(np.float32))
        assert single.dtype == np.float32
        assert_allclose(single, expected, atol=1e-5 * np.abs(expected).max())

    def test_nothing_is_decomposed(self, digits, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("a decomposition")

        for module in (np.linalg, scipy.linalg):
            for name in ("eigh", "eigvalsh", "svd", "cholesky", "qr", "inv", "solve", "pinv"):
                monkeypatch.setattr(module, name, refuse)
        Z = KernelJL(RBF(0.05), 10, random_state=0).fit_transform(digits[0])
        assert Z.shape == (len(digits[0]), 10)

    def test_the_matrix_of_the_subsample_is_not_stored(self, rng):
        X = rng.standard_normal((3000, 2))
        model = KernelJL(RBF(0.3), 5, n_samples=3000, random_state=0)
        with gramian.config_context(memory_budget="20MB"):  # the matrix would take 72
            Z = model.fit(X).transform(X)
            with pytest.raises(gramian.MemoryBudgetError, match="3000"):
                relative_error(model, X)
        assert_allclose(Z, clone(model).fit_transform(X), atol=1e-12)

    def test_a_constant_kernel_has_nothing_left_when_centred(self):
        X = np.arange(20.0)[:, None]
        ones = FunctionKernel(lambda x, y: np.ones((len(x), len(y))))
        assert np.abs(KernelJL(ones, 3, random_state=0).fit_transform(X)).max() < 1e-14


class TestWhatIsPreserved:
    @pytest.mark.parametrize("centre", [True, False])
    def test_exact_kernel(self, digits, centre):
        X, new = digits[0][:300], digits[0][300:340]
        model = KernelJL(RBF(0.05), 20, n_samples=70, centred=centre, random_state=0).fit(X)
        S = model.sample_.points
        exact = model.exact_kernel_
        expected = dense_target(model, RBF(0.05), S, X)
        size = expected.max()
        assert_allclose(exact(X), expected, atol=1e-10 * size)
        assert_allclose(exact(new, X), dense_target(model, RBF(0.05), S, new, X), atol=1e-10 * size)
        assert_allclose(exact.diag(X), np.diagonal(expected), atol=1e-10 * size)
        V = np.ones((300, 2))
        assert_allclose(gramian.Gram(exact, X).matmul(V), expected @ V, atol=1e-8 * size)

    @pytest.mark.parametrize("centre", [True, False])
    def test_exact_kernel_obeys_the_laws_of_kernels(self, rng, centre):
        X = rng.standard_normal((90, 5))
        model = KernelJL(RBF(0.1), 5, n_samples=40, centred=centre, random_state=0).fit(X)
        check_kernel(model.exact_kernel_, X)

    def test_exact_kernel_of_a_given_matrix(self, digits):
        X, new = digits[0][:200], digits[0][200:230]
        K, model = RBF(0.05)(X), KernelJL(RBF(0.05), 20, n_samples=70, random_state=0)
        given = clone(model).set_params(kernel="precomputed").fit(K)
        expected = model.fit(X).exact_kernel_(X)
        assert_allclose(given.exact_kernel_(K), expected, atol=1e-12)
        assert_allclose(
            given.exact_kernel_.diag(RBF(0.05)(new, X)), model.exact_kernel_.diag(new), atol=1e-12
        )
        assert float(relative_error(given, K)) == pytest.approx(float(relative_error(model, X)))

    def test_of_other_approximations_it_is_their_kernel(self, digits):
        model = Nystroem(RBF(0.05), 10, random_state=0).fit(digits[0][:100])
        assert model.exact_kernel_ is model.kernel_

    @pytest.mark.parametrize("centre", [True, False])
    def test_relative_error(self, digits, centre, monkeypatch):
        X = digits[0][:500]
        model = KernelJL(RBF(0.05), 40, n_samples=100, centred=centre, random_state=0).fit(X)
        K = dense_target(model, RBF(0.05), model.sample_.points, X)
        difference = K - model(X)
        error = relative_error(model, X)
        assert float(error) == pytest.approx(np.linalg.norm(difference) / np.linalg.norm(K))
        spectral = np.linalg.norm(difference, 2) / np.linalg.norm(K, 2)
        assert float(relative_error(model, X, "spectral")) == pytest.approx(spectral, rel=1e-3)
        monkeypatch.setattr(gramian.analysis.accuracy, "SAMPLED_ROWS", 300)
        sampled = relative_error(model, X, exact=False)
        assert sampled.low < float(error) < sampled.high
        with pytest.raises(ValueError, match="KernelJL does not guarantee that"):
            relative_error(model, X, norm="trace")

    @pytest.mark.parametrize("library", LIBRARIES)
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_relative_error_on_other_arrays(self, rng, library, dtype):
        xp = pytest.importorskip(library)
        X = rng.standard_normal((150, 3)).astype(dtype)
        model = KernelJL(RBF(0.2), 20, n_samples=60, random_state=0)
        theirs = clone(model).fit(xp.asarray(X))
        for norm in ("fro", "spectral"):
            error = float(relative_error(theirs, xp.asarray(X), norm))
            assert error == pytest.approx(float(relative_error(model.fit(X), X, norm)), rel=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("centre", [True, False])
    def test_is_unbiased(self, rng, centre):
        X, kernel = rng.standard_normal((30, 3)), Polynomial(2, 0.3)
        seeds, r = 240, 150  # n_samples is n, so that G alone is random
        model = KernelJL(kernel, r, n_samples=30, centred=centre)
        draws = np.array([clone(model).set_params(random_state=i).fit(X)(X) for i in range(seeds)])
        expected = dense_target(model, kernel, X, X)
        spread = draws.std(axis=0)
        z = (draws.mean(axis=0) - expected) / (spread / sqrt(seeds))
        assert np.abs(z).max() < 4.5
        # the variance of a Wishart matrix
        own = np.diagonal(expected)
        assert_allclose(spread**2, (expected**2 + np.outer(own, own)) / r, rtol=0.5)

    @pytest.mark.slow
    def test_error_falls_with_the_root_of_the_features(self, rng):
        X = rng.standard_normal((150, 3))
        sizes = [8, 32, 128, 512]
        errors = [
            np.mean(
                [
                    float(relative_error(KernelJL(RBF(0.2), r, random_state=i).fit(X), X))
                    for i in range(20)
                ]
            )
            for r in sizes
        ]
        assert slope(sizes, errors) == pytest.approx(-0.5, abs=0.1)

    @pytest.mark.slow
    @pytest.mark.parametrize("centre", [True, False])
    def test_error_falls_with_the_root_of_the_subsample(self, rng, centre):
        X, some = rng.standard_normal((2000, 2)), rng.standard_normal((40, 2))
        K, cross = RBF(0.1)(X), RBF(0.1)(some, X)
        if centre:
            means = K.mean(axis=0)
            cross = cross - cross.mean(axis=1)[:, None] - means + means.mean()
            K = K - means - means[:, None] + means.mean()
        W = cross @ K / 2000**1.5
        expected = W @ W.T  # of all rows

        def error(s, seed, r=None):
            model = KernelJL(RBF(0.1), r or 1, n_samples=s, centred=centre, random_state=seed)
            values = model.fit(X).exact_kernel_(some) if r is None else model.fit(X)(some)
            return np.linalg.norm(values - expected) / np.linalg.norm(expected)

        sizes = [30, 60, 120, 240]
        errors = [np.mean([error(s, seed) for seed in range(40)]) for s in sizes]
        assert slope(sizes, errors) == pytest.approx(-0.5, abs=0.1)
        # many features err no more than the limit of infinitely many
        assert np.mean([error(30, seed, 4000) for seed in range(20)]) < 1.2 * errors[0]


@pytest.fixture(scope="module")
def case(digits):
    """Rows, targets, new rows, a fitted approximation, and K̃ of the rows."""
    X, y, new = digits[0][:400], digits[1][:400].astype(float), digits[0][400:450]
    model = KernelJL(RBF(0.05), 50, n_samples=150, random_state=0).fit(X)
    return X, y, new, model, model(X)


class TestLearners:
    """Each on KernelJL, against the dense formulas on K̃."""

    def test_ridge(self, case):
        X, y, new, approximation, K = case
        alpha = 1e-3 * np.diagonal(K).max()
        for target, w in ((y, None), (np.column_stack((y, y**2)), np.linspace(0.5, 2, 400))):
            model = KernelRidge(alpha, kernel=approximation, fit_intercept=False).fit(
                X, target, sample_weight=w
            )
            W = np.ones(400) if w is None else w
            dual = np.linalg.solve(W[:, None] * K + alpha * np.eye(400), (W * target.T).T)
            expected = approximation(new, X) @ dual
            assert_allclose(model.predict(new), expected, atol=1e-7 * np.abs(expected).max())

    def test_classifier(self, case):
        X, y, _, approximation, K = case
        alpha = 1e-3 * np.diagonal(K).max()
        model = KernelRidgeClassifier(alpha, kernel=approximation, fit_intercept=False).fit(X, y)
        T = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
        expected = K @ np.linalg.solve(K + alpha * np.eye(400), T)
        assert_allclose(model.decision_function(X), expected, atol=1e-7)
        assert model.score(X, y) > 0.9

    def test_kmeans(self, case):
        X, _, _, approximation, K = case
        model = KernelKMeans(5, kernel=approximation, init=np.arange(5), tol=0).fit(X)
        dense = KernelKMeans(5, kernel="precomputed", init=np.arange(5), tol=0).fit(K)
        assert (model.labels_ == dense.labels_).all()
        assert_allclose(model.inertia_, dense.inertia_, rtol=1e-8)
        scale = np.sqrt(np.diagonal(K).max())
        assert_allclose(model.transform(X), dense.transform(K), atol=1e-6 * scale)

    def test_risk_is_that_of_the_preserved_kernel(self, case):
        X, _, _, approximation, _ = case
        model = KernelKMeans(5, kernel=approximation, random_state=0).fit(X)
        assert model.risk(X) == pytest.approx(model.inertia_ / 400)
        K = approximation.exact_kernel_(X)
        V = np.eye(5)[model.labels_] / np.bincount(model.labels_)
        inside = np.diagonal(K).mean() - np.trace((V.T @ K @ V) * np.bincount(model.labels_)) / 400
        assert model.risk(X) == pytest.approx(inside, rel=0.3)
        assert inside < 0.01, "far below k(x, x) = 1"

    def test_pca(self, case):
        X, _, new, approximation, K = case
        model = KernelPCA(6, kernel=approximation).fit(X)
        dense = KernelPCA(6, kernel="precomputed", solver="direct").fit(K)
        assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-8)
        expected = dense.transform(approximation(new, X))
        close = {"atol": 1e-7 * np.sqrt(dense.eigenvalues_[0])}
        assert_allclose(model.transform(new), expected, **close)

    @pytest.mark.parametrize(
        "learner",
        [
            KernelRidge(1e-4, kernel=KernelJL("rbf", 20)),
            KernelRidgeClassifier(1e-4, kernel=KernelJL("rbf", 20, n_samples=30)),
            KernelKMeans(3, kernel=KernelJL("rbf", 20)),
            KernelPCA(2, kernel=KernelJL("rbf", 20, centred=False)),
        ],
        ids=lambda learner: type(learner).__name__,
    )
    def test_laws(self, learner):
        check_learner(learner)
        for library in LIBRARIES:
            pytest.importorskip(library)
            check_learner(learner, library=library)

    def test_grid_search_reaches_the_inner_kernel(self, digits):
        X, y = digits[0][:300], digits[1][:300]
        model = KernelRidgeClassifier(1e-6, kernel=KernelJL("rbf", 50, random_state=0))
        grid = {"kernel__kernel__gamma": [10.0, 0.05], "kernel__n_components": [3, 50]}
        search = GridSearchCV(model, grid, cv=3).fit(X, y)
        assert search.best_params_ == {"kernel__kernel__gamma": 0.05, "kernel__n_components": 50}

    def test_given_matrix(self, digits):
        X, y, new = digits[0][:300], digits[1][:300], digits[0][300:350]
        K, cross = RBF(0.05)(X), RBF(0.05)(new, X)
        approximation = KernelJL("precomputed", 30, random_state=0)
        for learner in (KernelRidge(1e-4), KernelKMeans(4, random_state=0), KernelPCA(2)):
            by_matrix = clone(learner).set_params(kernel=approximation).fit(K, y)
            on_rows = clone(approximation).set_params(kernel=RBF(0.05))
            by_rows = clone(learner).set_params(kernel=on_rows).fit(X, y)
            method = "transform" if isinstance(learner, KernelPCA) else "predict"
            results = getattr(by_matrix, method)(cross), getattr(by_rows, method)(new)
            assert_allclose(*results, atol=1e-8 * np.abs(results[0]).max())


class TestBadInput:
    def test_more_samples_than_rows(self, digits):
        X = digits[0][:50]
        with pytest.warns(ApproximationWarning, match=r"n_samples=80 exceeds.*all 50 are used"):
            model = KernelJL(RBF(0.05), 10, n_samples=80).fit(X)
        assert len(model.sample_) == 50

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (KernelJL(n_components=0), "n_components of KernelJL must be a positive integer"),
            (KernelJL(n_components=2.5), "n_components of KernelJL must be a positive .* got 2.5"),
            (KernelJL(n_samples=1), "n_samples of KernelJL must be an integer of at least 2.* 1"),
            (KernelJL(n_samples=True), "n_samples of KernelJL must be an integer.*got True"),
            (KernelJL(n_samples=50.0), "n_samples of KernelJL must be an integer.*got 50.0"),
            (KernelJL(n_samples="sqrt"), "n_samples of KernelJL must be an integer.*got 'sqrt'"),
            (KernelJL(centred="yes"), "centred of KernelJL must be True or False; got 'yes'"),
            (KernelJL("rfb"), "Did you mean 'rbf'"),
        ],
    )
    def test_errors(self, digits, model, message):
        with pytest.raises(ValueError, match=message):
            model.fit(digits[0][:100])

    def test_types(self, digits):
        with pytest.raises(TypeError, match="a name such as 'rbf'"):
            KernelJL(3).fit(digits[0][:100])
        with pytest.raises(ValueError, match="is not fitted"):
            KernelJL().transform(digits[0])


def polar(radius, angle):
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


def cluster_in_cluster(rng, n=2000):
    inner = np.arange(n) % 2 == 0
    radius = np.where(inner, rng.uniform(0.6, 1.4, n), rng.uniform(4.83, 5.17, n))
    return polar(radius, rng.uniform(0, 2 * np.pi, n)), inner


def crescent_full_moon(rng, n=2000):
    moon = np.arange(n) % 4 == 0
    root = np.sqrt(rng.uniform(size=n))
    radius, angle = np.where(moon, 5 * root, 10 + 5 * root), rng.uniform(0, 1, n)
    return polar(radius, np.where(moon, 2 * np.pi * angle, np.pi * (1 + angle))), moon


@pytest.mark.parametrize("toy", [cluster_in_cluster, crescent_full_moon])
def test_sets_that_no_line_parts_are_parted_after_the_map(rng, toy):
    """Figure 1 of 004, with its subsample of 100 rows."""
    X, y = toy(rng)
    line = make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=1000))
    assert line.fit(X, y).score(X, y) < 0.9
    for seed in range(5):
        model = KernelJL(RBF(("percentile", 25)), 5, n_samples=100, random_state=seed)
        Z = model.fit_transform(X)
        assert line.fit(Z, y).score(Z, y) == 1.0
        if seed == 0:  # two features, as in the figure
            Z = KernelJL(RBF(("percentile", 25)), 2, n_samples=100, random_state=1).fit_transform(X)
            assert line.fit(Z, y).score(Z, y) > 0.99


TAU = 4.0
ALLOWED = 5 * exp(-TAU)  # the probability with which theorem 1 may fail


def sketches(X, s, r, seeds=100):
    """Operators of z, of shape (columns, r), for the linear kernel and rows drawn from X."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        S = X[rng.integers(len(X), size=s)]
        model = KernelJL(Linear(), r, n_samples=s, centred=False, random_state=rng).fit(S)
        yield model.transform(np.eye(X.shape[1]))


class TestTheory:
    @pytest.fixture
    def X(self):  # noqa: N802
        """A population in the plane, nearly on a line."""
        angles = np.linspace(-0.2, 0.2, 50)
        return np.concatenate((polar(1.0, angles), -polar(1.0, angles)))

    @pytest.mark.slow
    def test_theorem_1_holds_and_a_smaller_constant_breaks_it(self, X):
        sigma = X.T @ X / len(X)
        third = sigma @ sigma @ sigma
        s, r = 500, 50
        errors = np.array([np.linalg.norm(A @ A.T - third, 2) for A in sketches(X, s, r)])
        assert np.mean(errors > jl_bound(Linear(), s, r, TAU, X=X)) <= ALLOWED
        # of r alone, as if s were larger still: 3 holds, and a tenth of it does not
        assert np.mean(errors > jl_bound(Linear(), 10**12, r, TAU, X=X)) <= ALLOWED
        assert np.mean(errors > jl_bound(Linear(), 10**12, r, TAU, 0.1, X=X)) > ALLOWED

    def test_theorem_1_of_the_subsample_alone(self):
        # Few large rows among small ones: Σ of a subsample varies.
        X = np.repeat([[1.0], [0.1]], [10, 90], axis=0)
        third = np.mean(X**2) ** 3
        rng = np.random.default_rng(0)
        s, r = 500, 10**12
        drawn = [np.mean(X[rng.integers(100, size=s)] ** 2) ** 3 for _ in range(500)]
        errors = np.abs(np.array(drawn) - third)
        bound = jl_bound(Linear(), s, r, TAU, X=X)
        assert np.mean(errors > bound) <= ALLOWED
        assert np.mean(errors > bound / 28) > ALLOWED

    def test_theorem_1_in_its_parts(self):
        values = np.array([0.6, 0.3])
        K = np.diag(2 * values)
        s3, s1 = (1 + 0.5**3), 1.5
        first = 3 * 2.0 * 0.6**3 * (sqrt(2 * s3) + sqrt(TAU)) / sqrt(70)
        second = 28 * 0.6**2.5 * sqrt(2 * 1.2 * s1 * TAU) / sqrt(900)
        assert jl_bound(K, 900, 70, TAU, 2.0) == pytest.approx(first + second)
        rows = 6272 * 1.2 * s1**5 * TAU / 0.6
        assert jl_sizes_needed(K, TAU) == (int(np.ceil(rows)), 5)
        assert jl_sizes_needed(K, 1.0)[1] == 5  # 4 s, not τ
        assert jl_sizes_needed(K, 7.5)[1] == 8

    def test_theorem_1_scales_as_the_cube(self, X):
        small, large = (jl_bound(c * Linear(), 100, 10, X=X) for c in (1.0, 7.0))
        assert large == pytest.approx(7**3 * small)
        assert jl_sizes_needed(7.0 * Linear(), X=X) == jl_sizes_needed(Linear(), X=X)

    def test_separation_and_that_the_printed_2_must_be_4(self):
        # Rows that differ outside the leading direction alone: Δ = 4ε, and next to nothing is left.
        e = 0.05
        X = np.array([[a * sqrt(1 - e), b * sqrt(e)] for a in (1, -1) for b in (1, -1)])
        model = KernelJL(Linear(), 5, n_samples=4, centred=False).fit(X)
        difference = X[0] - X[1]
        delta = difference @ difference
        assert delta == pytest.approx(4 * e)
        left = difference @ model.exact_kernel_(np.eye(2)) @ difference
        bound = jl_separation_bound(Linear(), 1, delta, 10**15, 10**15, X=X)
        assert bound <= left
        printed = (1 - e) ** 3 * (delta - 2 * e)
        assert left < printed
        assert bound == pytest.approx((1 - e) ** 3 * (delta - 4 * e), abs=1e-3)

    @pytest.mark.slow
    def test_separation_and_distance_hold_and_need_their_last_term(self, X):
        """(11) and (12), on all pairs of rows that are Δ apart."""
        s, r = 300, 10
        gaps = ((X[:, None] - X) ** 2).sum(axis=2)
        delta = 3.0
        low = jl_separation_bound(Linear(), 1, delta, s, r, TAU, X=X)
        limit = jl_separation_bound(Linear(), 1, delta, 10**15, 10**15, TAU, X=X)
        assert limit > 0.5 * (X.T @ X / 100)[0, 0] ** 3 * delta  # it says something
        largest = jl_distance_bound(Linear(), gaps.max(), s, r, TAU, X=X)
        largest_limit = jl_distance_bound(Linear(), gaps.max(), 10**15, 10**15, TAU, X=X)
        broken = np.zeros(4)  # (11), and without its last term; (12), and without
        for A in sketches(X, s, r):
            Z = X @ A
            after = ((Z[:, None] - Z) ** 2).sum(axis=2)
            nearest = after[gaps >= delta].min()
            broken[:2] += [nearest < low, nearest < limit]
            broken[2:] += [after.max() > largest, after.max() > largest_limit]
        assert broken[0] <= 100 * ALLOWED < broken[1]
        assert broken[2] <= 100 * ALLOWED < broken[3]

    def test_distance_is_reached_along_the_leading_direction(self, X):
        sigma = X.T @ X / len(X)
        exact = KernelJL(Linear(), 5, n_samples=100, centred=False).fit(X).exact_kernel_
        leading = np.linalg.eigh(sigma)[1][:, 1]
        left = float(exact(leading[None])[0, 0])
        bound = jl_distance_bound(Linear(), 1.0, 10**15, 10**15, X=X)
        assert left == pytest.approx(bound, rel=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("share", [0.5, 0.2])
    def test_means_of_clusters(self, rng, share):
        n = 400
        labels = np.arange(n) < share * n
        X = np.where(labels[:, None], [1 - share, 0.0], [-share, 0.0])
        X = 3 * X + 0.1 * rng.standard_normal((n, 2))
        X -= X.mean(axis=0)
        between = X[labels].mean(axis=0) - X[~labels].mean(axis=0)
        exact = KernelJL(Linear(), 5, n_samples=n, centred=False).fit(X).exact_kernel_
        left = between @ exact(np.eye(2)) @ between
        limit = jl_means_bound(Linear(), labels, 10**15, 10**15, X=X + 5.0)  # it centres
        assert 0.9 * left < limit <= left
        # with the printed μ₂ = γ μ₁ the means would be nearer by ((1 - γ) / (1 + γ))²
        gamma = share / (1 - share)
        assert limit > left * ((1 - gamma) / (1 + gamma)) ** 2
        broken = 0
        bound = jl_means_bound(Linear(), labels, 300, 30, TAU, X=X)
        for A in sketches(X, 300, 30, seeds=50):
            broken += np.sum((between @ A) ** 2) < bound
        assert broken / 50 <= ALLOWED

    def test_means_of_clusters_that_spread_more_than_they_are_apart(self):
        X = np.array([[a, b] for a in (0.5, -0.5) for b in (2.0, -2.0)])  # λ = 4 and 1/4, σ = 4
        exact = KernelJL(Linear(), 5, n_samples=4, centred=False).fit(X).exact_kernel_
        left = exact([[1.0, 0.0]])[0, 0]
        bound = jl_means_bound(Linear(), X[:, 0] > 0, 10**15, 10**15, X=X)
        assert bound == pytest.approx(4**3 * (1 - 4 / (1 / 2) ** 2), rel=1e-3)
        assert bound < left < 4**3 * 1.0  # without σ it would be broken

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda K: jl_bound(K, 0, 5), "n_samples of jl_bound must be .* got 0"),
            (lambda K: jl_bound(K, 5, 2.0), "n_components of jl_bound must be .* got 2.0"),
            (
                lambda K: jl_bound(K, 5, 5, 0.5),
                "tau of jl_bound must be .* at least 1; got 0.5",
            ),
            (lambda K: jl_bound(K, 5, 5, 2.0, -1), "constant of jl_bound .* got -1"),
            (lambda K: jl_bound(0 * K, 5, 5), "must not be zero"),
            (lambda K: jl_bound("rbf", 5, 5), "without X"),
            (lambda K: jl_sizes_needed(K, 0.0), "tau of jl_sizes_needed .* got 0.0"),
            (lambda K: jl_separation_bound(K, 4, 1.0, 5, 5), "k of .* got k=4, 3 rows"),
            (lambda K: jl_separation_bound(K, 1, 0.0, 5, 5), "separation .* got 0.0"),
            (lambda K: jl_distance_bound(K, -1.0, 5, 5), "distance .* got -1.0"),
            (lambda K: jl_means_bound(K, [0, 1, 2], 5, 5), "two clusters.*3 distinct"),
            (lambda K: jl_means_bound(K, [0, 1], 5, 5), r"each of the 3 rows; got shape \(2,\)"),
        ],
    )
    def test_bad_input_is_named(self, call, message):
        with pytest.raises(ValueError, match=message):
            call(np.eye(3))
