"""Random Fourier features: unbiased, of the right error, and the learners on them."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from scipy.stats import qmc
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris

import gramian
from gramian import (
    RBF,
    Cauchy,
    Chi2,
    Cosine,
    Exponential,
    ExponentialDot,
    Gram,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Linear,
    Matern,
    MemoryBudgetError,
    Polynomial,
    RandomFourier,
    RationalQuadratic,
    Sigmoid,
    relative_error,
)
from gramian.backend.array_ops import cosines_and_sines

KINDS = ("iid", "orthogonal", "halton", "sobol")
KERNELS = [
    RBF(0.7),
    Laplacian(0.5),
    Exponential(0.8),
    Matern(0.5, nu=0.5),
    Matern(0.4, nu=1.5),
    Matern(0.4, nu=3.3),
    Cauchy(0.8),
    RationalQuadratic(0.8, alpha=0.6),
    RationalQuadratic(0.8, alpha=3.0),
]
COMPOSED = [
    2.5 * RBF(0.5),
    RBF(0.3) * Exponential(0.4) * Cauchy(0.3),
    3.0 * Exponential(0.3) + 0.2 * RBF(3.0),
    (RBF(0.3) + 2.0 * Cauchy(2.0)) * (Matern(0.4) + 0.3 * Exponential(0.2)),
]
WITH_LAPLACIAN = [
    Laplacian(0.3) * RBF(0.3) * Laplacian(0.2),
    2.0 * (Laplacian(0.3) + Matern(0.2, nu=2.5)) * RBF(0.2) + Cauchy(0.3),
]


def cases(kernels):
    """Kernels with all kinds of frequencies that serve them."""
    return [
        pytest.param(kernel, kind, id=f"{type(kernel).__name__}-{kind}")
        for kernel in kernels
        for kind in KINDS
        if kind != "orthogonal" or "Laplacian" not in repr(kernel)
    ]


@pytest.fixture(scope="module")
def rows():
    return 0.6 * np.random.default_rng(0).standard_normal((6, 3))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def draws(kernel, n, kind, X, seeds):
    """K̃ off its diagonal, for each seed."""
    pairs = np.triu_indices(len(X), 1)
    runs = (RandomFourier(kernel, n, frequencies=kind, random_state=s) for s in range(seeds))
    return np.array([run.fit(X)(X)[pairs] for run in runs])


def errors_of_the_mean(values, K):
    """How many standard errors the mean over seeds is away from K, for each pair of rows."""
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.abs(values.mean(axis=0) - K[np.triu_indices(len(K), 1)]) / spread


def mean_error(kernel, n, kind, X, seeds=10):
    K = kernel(X)
    runs = [RandomFourier(kernel, n, frequencies=kind, random_state=s) for s in range(seeds)]
    return np.mean([np.linalg.norm(K - run.fit(X)(X)) for run in runs]) / np.linalg.norm(K)


class TestUnbiased:
    @pytest.mark.slow
    @pytest.mark.parametrize(("kernel", "kind"), cases(KERNELS))
    def test_kernels(self, rows, kernel, kind):
        values = draws(kernel, 240, kind, rows, 30)
        assert errors_of_the_mean(values, kernel(rows)).max() < 4
        for factor in (0.5, 0.5**0.5, 2**0.5, 2.0):  # another convention of gamma would show
            other = clone(kernel).set_params(gamma=factor * kernel.gamma)
            assert errors_of_the_mean(values, other(rows)).max() > 5

    @pytest.mark.slow
    @pytest.mark.parametrize(("kernel", "kind"), cases(COMPOSED + WITH_LAPLACIAN))
    def test_composed_kernels(self, rows, kernel, kind):
        values = draws(kernel, 161, kind, rows, 30)
        assert errors_of_the_mean(values, kernel(rows)).max() < 4

    @pytest.mark.slow
    @pytest.mark.parametrize(("kernel", "kind"), cases([COMPOSED[-1], WITH_LAPLACIAN[-1]]))
    def test_few_features(self, rows, kernel, kind):
        """An odd number, and fewer frequencies than the sum has terms."""
        values = draws(kernel, 3, kind, rows[:4], 40)
        assert errors_of_the_mean(values, kernel(rows[:4])).max() < 4

    @pytest.mark.parametrize("kernel", KERNELS + COMPOSED + WITH_LAPLACIAN)
    def test_pairs_have_an_exact_diagonal(self, rows, kernel):
        for n in (20, 64):
            model = RandomFourier(kernel, n, random_state=0).fit(rows)
            assert_allclose(np.diagonal(model(rows)), kernel.diag(rows), rtol=1e-12)
            assert_allclose(model.diag(rows), kernel.diag(rows), rtol=1e-12)

    @pytest.mark.slow
    def test_an_odd_feature_costs_no_more_than_its_share(self, rows):
        """All features of one kernel have the same length: the error is that of n, not of n - 1."""
        for n in (2, 5, 40, 41):
            Z = RandomFourier(RBF(0.5), n, random_state=0).fit_transform(np.tile(rows, (500, 1)))
            assert Z.shape == (3000, n)
            assert np.abs(Z).max() <= np.sqrt(2 / n) * (1 + 1e-12)
        several = [draws(RBF(0.7), n, "iid", rows, 100).var(axis=0).mean() for n in (8, 9, 10)]
        assert several[0] > several[1] > several[2]


class TestErrors:
    @pytest.mark.slow
    def test_slope(self, digits):
        X, kernel = digits[0][:120], RBF(0.02)
        sizes = 2 ** np.arange(4, 11, 2)
        errors = [mean_error(kernel, n, "iid", X, seeds=20) for n in sizes]
        assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(-0.5, abs=0.1)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("load", "ratios"),
        # columns: 4, 10, 64; of the error of independent frequencies, at most so much
        [
            (load_iris, {"orthogonal": 0.9, "halton": 0.6, "sobol": 0.6}),
            (load_diabetes, {"orthogonal": 0.7, "halton": 0.8, "sobol": 0.7}),
            (load_digits, {"orthogonal": 0.5, "sobol": 0.95}),
        ],
    )
    def test_better_frequencies(self, load, ratios):
        X = load().data[::3][:150]
        X = X / X.std()
        kernel = RBF("median").fit(X)
        independent = mean_error(kernel, 256, "iid", X, seeds=20)
        for kind, ratio in ratios.items():
            assert mean_error(kernel, 256, kind, X, seeds=20) < ratio * independent

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["orthogonal", "halton", "sobol"])
    def test_better_frequencies_of_other_kernels(self, kind):
        X = load_diabetes().data[:150] * 20
        for kernel in (Matern("median"), RationalQuadratic("median"), RBF(0.02) * Cauchy(0.02)):
            kernel = kernel.fit(X)
            assert mean_error(kernel, 256, kind, X) < 0.9 * mean_error(kernel, 256, "iid", X)

    def test_directions_are_orthogonal(self, rng):
        X = rng.standard_normal((20, 5))
        for kernel in (RBF(0.2), Matern(0.2) * Cauchy(0.1)):
            model = RandomFourier(kernel, 24, frequencies="orthogonal", random_state=0).fit(X)
            W = model.frequencies_ / np.linalg.norm(model.frequencies_, axis=0)
            for block in (W[:, :5], W[:, 5:10], W[:, 10:]):
                assert_allclose(block.T @ block, np.eye(block.shape[1]), atol=1e-12)
            assert abs(W[:, 0] @ W[:, 5]) > 1e-3

    def test_a_sum_gives_each_part_its_share(self, rng):
        X = rng.standard_normal((5, 3))
        kernel = RBF(1e-6) + 3.0 * RBF(1e6)
        W = RandomFourier(kernel, 400, random_state=0).fit(X).frequencies_
        assert abs((np.linalg.norm(W, axis=0) < 1).sum() - 50) <= 1

    def test_relative_error_and_no_kernel_values(self, digits):
        X = digits[0][:300]
        model = RandomFourier(RBF(0.05), 500, random_state=0).fit(X)
        K = RBF(0.05)(X)
        expected = np.linalg.norm(K - model(X)) / np.linalg.norm(K)
        assert float(relative_error(model, X)) == pytest.approx(expected)
        gram = Gram(RBF(0.05), X)
        clone(model)._fit(gram, np.random.default_rng(0), None, model.plan(gram.rows))
        assert gram.evaluations == 0


class TestPrecision:
    @pytest.mark.parametrize("alike", [True, False])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_cosines_and_sines(self, rng, dtype, alike):
        x = np.concatenate((rng.standard_normal(995) * 1e3, np.pi * np.array([0, 0.5, 1, 2, 3])))
        x = x.astype(dtype).reshape(100, 10)
        scale = np.full(10, 0.7, dtype) if alike else rng.random(10).astype(dtype)
        expected = np.concatenate((np.cos(x.astype(float)), np.sin(x.astype(float))[:, :9]), axis=1)
        expected *= np.concatenate((scale, scale[:9]))
        out = np.empty((100, 19), dtype)
        cosines_and_sines(x, np.empty_like(x), scale, out)
        assert_allclose(out, expected, atol=4 * np.finfo(dtype).eps)

    @pytest.mark.slow
    @pytest.mark.parametrize("kernel", [RBF(2.0), Matern(1.0), Laplacian(1.0)])
    def test_float32_far_from_the_origin(self, rng, kernel):
        X = (rng.random((300, 20)) / 5 + 1000.0).astype(np.float32)
        model = RandomFourier(kernel, 200, random_state=0).fit(X)
        assert model.transform(X).dtype == np.float32
        W = model.frequencies_.astype(np.float64)
        moved = X.astype(np.float64) - 1000.0
        phases = (moved[:, None] - moved[None]) @ W
        assert_allclose(model(X), np.cos(phases).mean(axis=2), atol=2e-5)

    @pytest.mark.parametrize("n", [40, 41])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_sparse_is_dense(self, digits, n, dtype):
        X = (16 * digits[0][:200] + 50.0 * (digits[0][:200] > 0)).astype(dtype)
        tolerance = 1e-3 if dtype == np.float32 else 1e-11
        sparse = scipy.sparse.csr_array(X)
        for kernel in (RBF(1e-4), Laplacian(1e-4)):
            model = RandomFourier(kernel, n, random_state=0).fit(X)
            expected = model.transform(X)
            assert expected.dtype == dtype
            assert_allclose(model.transform(sparse), expected, atol=tolerance)
            assert_allclose(clone(model).fit(sparse).transform(X), expected, atol=tolerance)
            assert_allclose(clone(model).fit(sparse)(sparse), model(X), atol=tolerance)

    def test_integers_and_rows_of_another_dtype(self, digits):
        X = (16 * digits[0][:100]).astype(np.int16)
        model = RandomFourier(RBF(1e-3), 30, random_state=0).fit(X)
        assert model.transform(X).dtype == np.float64
        single = clone(model).fit(X.astype(np.float32))
        assert single.transform(X).dtype == np.float32
        assert_allclose(single(X), model(X), atol=1e-5)

    @pytest.mark.parametrize("kind", KINDS)
    def test_heavy_tails_stay_finite(self, rows, kind):
        for kernel in (Matern(0.5, nu=0.01), RationalQuadratic(1.0, alpha=0.01), Matern(0.5, 500)):
            for dtype in (np.float32, np.float64):
                model = RandomFourier(kernel, 1000, frequencies=kind, random_state=0)
                Z = model.fit(rows.astype(dtype)).transform(rows.astype(dtype))
                assert np.isfinite(Z).all()
                assert np.isfinite(model.frequencies_).all()

    @pytest.mark.parametrize("corner", [0.0, 1.0])
    @pytest.mark.parametrize("name", ["Halton", "Sobol"])
    def test_points_on_the_border(self, rows, monkeypatch, name, corner):
        class Corners(getattr(qmc, name)):
            def random(self, n):
                return np.full((n, self.d), corner)

        monkeypatch.setattr(qmc, name, Corners)
        for kernel in (RBF(0.5), Laplacian(0.5), Exponential(0.5), RationalQuadratic(0.5, 2.0)):
            model = RandomFourier(kernel, 16, frequencies=name.lower(), random_state=0).fit(rows)
            assert np.isfinite(model.frequencies_).all()

    def test_older_scipy_calls_it_seed(self, rows, monkeypatch):
        class Older(qmc.Sobol):
            def __init__(self, d, *, scramble=True, bits=None, seed=None, optimization=None):
                super().__init__(d, scramble=scramble, rng=seed)

        model = RandomFourier(RBF(0.5), 20, frequencies="sobol", random_state=0)
        expected = clone(model).fit(rows).frequencies_
        monkeypatch.setattr(qmc, "Sobol", Older)
        assert_allclose(model.fit(rows).frequencies_, expected)


@pytest.fixture(scope="module")
def case(digits):
    """Rows, targets, a fitted approximation, and K̃."""
    X, y = digits[0][:400], digits[1][:400]
    model = RandomFourier(RBF(0.05), 101, frequencies="orthogonal", random_state=0).fit(X)
    return X, y.astype(float), model, model(X)


class TestLearners:
    """The same classes on random features, against the dense formulas on K̃."""

    def test_ridge(self, case, digits):
        X, y, approximation, K = case
        new = digits[0][400:450]
        model = KernelRidge(0.1, kernel=approximation, fit_intercept=False).fit(X, y)
        expected = approximation(new, X) @ np.linalg.solve(K + 0.1 * np.eye(400), y)
        assert_allclose(model.predict(new), expected, atol=1e-8 * np.abs(expected).max())

    def test_classifier(self, case, digits):
        X, y, approximation, K = case
        model = KernelRidgeClassifier(0.1, kernel=approximation, fit_intercept=False).fit(X, y)
        T = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
        expected = K @ np.linalg.solve(K + 0.1 * np.eye(400), T)
        assert_allclose(model.decision_function(X), expected, atol=1e-8)
        assert model.score(digits[0][400:800], digits[1][400:800]) > 0.8

    def test_kmeans(self, case):
        X, _, approximation, K = case
        model = KernelKMeans(5, kernel=approximation, init=np.arange(5), tol=0).fit(X)
        dense = KernelKMeans(5, kernel="precomputed", init=np.arange(5), tol=0).fit(K)
        assert (model.labels_ == dense.labels_).all()
        assert_allclose(model.inertia_, dense.inertia_, rtol=1e-8)

    def test_pca(self, case):
        X, _, approximation, K = case
        model = KernelPCA(6, kernel=approximation).fit(X)
        dense = KernelPCA(6, kernel="precomputed", solver="direct").fit(K)
        assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-8)
        scale = np.sqrt(dense.eigenvalues_[0])
        assert_allclose(model.transform(X), dense.transform(K), atol=1e-8 * scale)

    def test_unfitted_with_the_learners_seed(self, case):
        X, y, *_ = case
        for kind in KINDS:
            kernel = RandomFourier("rbf", 60, frequencies=kind)
            twice = [KernelRidge(0.1, kernel=kernel, random_state=3).fit(X, y) for _ in range(2)]
            assert_allclose(*(model.predict(X) for model in twice))


class TestBadInput:
    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (
                RandomFourier(Polynomial(degree=3, gamma=0.1)),
                r"RandomFourier needs a shift-invariant kernel; got Polynomial\(gamma=0.1\)\. "
                r"Use Nystroem, RandomMaclaurin or TensorSketch\.",
            ),
            (RandomFourier(Linear()), r"got Linear\(\)\. Use Nystroem or RandomMaclaurin\."),
            (RandomFourier(ExponentialDot()), r"Use Nystroem or RandomMaclaurin\."),
            (RandomFourier(Cosine()), r"got Cosine\(\)\. Use Nystroem\."),
            (RandomFourier(Chi2()), r"got Chi2\(\)\. Use Nystroem\."),
            (RandomFourier(lambda x, y: x @ y.T), r"got FunctionKernel.*Use Nystroem\."),
            (RandomFourier("precomputed"), r"got Precomputed\(\)\. Use Nystroem\."),
            (RandomFourier(Sigmoid(0.1)), r"got Sigmoid.*kernel=Exact"),
            (
                RandomFourier(RBF(0.1) * (RBF(0.2) + Linear())),
                r"got Product\((.|\n)*, of which Linear\(\) is not\. Use Nystroem\.",
            ),
            (RandomFourier(n_components=0), "n_components of RandomFourier must be a positive int"),
            (RandomFourier(n_components="sqrt"), "must be a positive integer; got 'sqrt'"),
            (RandomFourier(n_components=2.5), "must be a positive integer; got 2.5"),
            (
                RandomFourier(frequencies="qmc"),
                "must be one of 'iid', 'orthogonal', 'halton', 'sobol'; got 'qmc'",
            ),
            (
                RandomFourier(Laplacian(0.1), frequencies="orthogonal"),
                r"needs kernels of the Euclidean distance;(.|\n)*Use 'iid', 'halton' or 'sobol'\.",
            ),
            (
                RandomFourier(RBF(0.1) * Laplacian(0.1) + RBF(0.2), frequencies="orthogonal"),
                "needs kernels of the Euclidean distance",
            ),
            (RandomFourier(Matern(0.1, nu=-1.0)), "nu of Matern must be a positive number"),
            (RandomFourier(RationalQuadratic(0.1, alpha=0)), "alpha of RationalQuadratic must be"),
            (RandomFourier(-2.0 * RBF(0.1)), "factor of Scaled must be a positive number"),
            (RandomFourier("rfb"), "Did you mean 'rbf'"),
        ],
    )
    def test_errors(self, rng, model, message):
        X = rng.random((20, 20))
        with pytest.raises(ValueError, match=message):
            model.fit(X @ X.T)

    def test_more_columns_than_a_sequence_has(self, rng):
        X = scipy.sparse.random_array((10, 30_000), density=0.001, rng=rng, format="csr")
        with pytest.raises(ValueError, match=r"at most 21201 coordinates.*need 30000\. Use"):
            RandomFourier(RBF(1.0), 4, frequencies="sobol").fit(X)
        few = gramian.config_context(memory_budget="1GB")
        with few, pytest.raises(MemoryBudgetError, match=r"Halton sequence of 30000.*Use freq"):
            RandomFourier(RBF(1.0), 4, frequencies="halton").fit(X)
        for kind in ("iid", "orthogonal"):
            assert RandomFourier(RBF(1.0), 4, frequencies=kind).fit_transform(X).shape == (10, 4)

    def test_no_trace_error(self, rows):
        with pytest.raises(ValueError, match="Use norm='fro'"):
            relative_error(RandomFourier().fit(rows), rows, norm="trace")

    def test_phases_that_overflow(self, rng):
        X = rng.standard_normal((50, 3)).astype(np.float32)
        model = RandomFourier(RBF(1.0), 100, random_state=0).fit(X)
        # Squares of these phases overflow, the phases do not.
        assert np.isfinite(model.transform(X * np.float32(1e25))).all()
        with pytest.raises(ValueError, match="not finite"), np.errstate(over="ignore"):
            model.transform(X * np.float32(1e38))
