"""Random Maclaurin, TensorSketch and CRAFT: their series, their law, their errors."""

from math import factorial

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import normalize

import gramian
from gramian import (
    CRAFT,
    RBF,
    Cosine,
    ExponentialDot,
    Gram,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    Linear,
    Polynomial,
    RandomMaclaurin,
    Sigmoid,
    TensorSketch,
    relative_error,
)
from gramian.approximations.dot_product_series import Series, series
from gramian.backend import array_ops
from gramian.kernels.dot_product import InnerKernel
from gramian.testing import check_approximation, check_kernel

MAPS = [RandomMaclaurin(), TensorSketch(), CRAFT()]
NAMES = [type(each).__name__ for each in MAPS]


class Geometric(InnerKernel):
    """1 / (1 - gamma xᵀy), as a user would write it: every coefficient counts."""

    def __init__(self, gamma=0.02):
        self.gamma = gamma

    def _profile(self, u):
        return 1.0 / (1.0 - u)

    def maclaurin(self, count):
        return self.gamma ** np.arange(count)


def relative(K, approximate):
    return np.linalg.norm(K - approximate) / np.linalg.norm(K)


@pytest.fixture(scope="module")
def few():
    """Six rows of norms from 0.8 to 1.6, at all angles."""
    X = np.random.default_rng(5).standard_normal((6, 4))
    return X / np.linalg.norm(X, axis=1)[:, None] * np.linspace(0.8, 1.6, 6)[:, None]


@pytest.fixture(scope="module")
def digits():
    return normalize(load_digits().data)


class TestSeries:
    @pytest.mark.parametrize(
        ("kernel", "function"),
        [
            (Linear(), lambda u: u),
            (Polynomial(3, 0.7, 0.4), lambda u: (0.7 * u + 0.4) ** 3),
            (Polynomial(20, 0.2, 1.0), lambda u: (0.2 * u + 1.0) ** 20),
            (Polynomial(5, 2.0, 0.0), lambda u: (2.0 * u) ** 5),
            (Polynomial(4, 0.5, -0.3), lambda u: (0.5 * u - 0.3) ** 4),
            (ExponentialDot(0.8), lambda u: np.exp(0.8 * u)),
            (2.5 * Linear() + ExponentialDot(1.3), lambda u: 2.5 * u + np.exp(1.3 * u)),
            (
                0.5 * (ExponentialDot(0.6) * Polynomial(3, 0.4)),
                lambda u: 0.5 * np.exp(0.6 * u) * (0.4 * u + 1.0) ** 3,
            ),
        ],
    )
    def test_coefficients_are_taylors(self, kernel, function):
        """Against Cauchy's integral over a circle, by a Fourier transform."""
        circle = np.exp(2j * np.pi * np.arange(128) / 128)
        expected = (np.fft.fft(function(circle)) / 128).real
        for count in (1, 2, 30):
            got = kernel.maclaurin(count)
            assert got.shape == (count,)
            assert_allclose(got, expected[:count], atol=1e-13 * np.abs(expected).max())

    def test_high_degrees_are_exact(self):
        got = Polynomial(20, 1.0, 1.0).maclaurin(64)
        exact = [factorial(20) // (factorial(p) * factorial(20 - p)) for p in range(21)]
        assert (got[:21] == exact).all()
        assert not got[21:].any()

    def test_no_series(self):
        for kernel in (RBF(), Cosine(), Sigmoid(), RBF() + Linear(), Linear() * RBF(), 2.0 * RBF()):
            assert kernel.maclaurin(5) is None

    def test_shares_are_those_of_the_trace(self, few):
        for kernel in (Polynomial(3, 0.7, 0.4), Polynomial(20, 0.5, 0.0), ExponentialDot(3.0)):
            found = series(None, Gram(kernel, few))
            norms = (few**2).sum(axis=1)
            terms = [a * (norms**p).mean() for p, a in enumerate(found.coefficients)]
            assert_allclose(found.shares, terms, rtol=1e-12)
            assert_allclose(found.shares.sum(), kernel.diag(few).mean(), rtol=1e-7)

    def test_counts_are_as_due_and_weights_make_up_for_chance(self, rng):
        """A degree due less than one feature comes with that chance, and weighs as much more."""
        coefficients = np.array([0.0, 3.0, 2.0, 0.5, 0.01, 1e-9, 0.0])
        shares = np.array([0.0, 0.7, 0.25, 0.04, 0.01, 1e-9, 0.0])
        sums, seen = np.zeros(7), np.zeros(7)
        for _ in range(4000):
            terms = Series(coefficients, shares).terms(20, rng)
            assert sum(term.count for term in terms) == 20
            for term in terms:
                sums[term.degree] += term.weight / 4000
                seen[term.degree] += 1
                due = 20 * shares[term.degree]
                assert max(np.floor(due), 1) <= term.count <= np.ceil(due)
        assert_allclose(sums[:5], coefficients[:5], rtol=0.2)
        assert_allclose(sums[1:3], coefficients[1:3], rtol=1e-7)
        assert seen[3] == pytest.approx(0.8 * 4000, rel=0.05)
        assert seen[4] == pytest.approx(0.2 * 4000, rel=0.1)

    @pytest.mark.slow
    def test_your_own_kernel(self, few):
        check_kernel(Geometric(0.01))
        check_approximation(TensorSketch(Geometric(0.01), 50))
        wrong = type("Wrong", (Geometric,), {"maclaurin": lambda self, n: np.full(n, 0.5)})
        with pytest.raises(AssertionError, match="the Maclaurin series is the kernel"):
            check_kernel(wrong(0.01))
        with pytest.raises(ValueError, match="do not add up to its value"):
            TensorSketch(wrong(0.3)).fit(few)


KERNELS = [
    Polynomial(3, 0.6, 1.0),
    Polynomial(2, 1.0, 0.0),
    ExponentialDot(0.7),
    0.5 * Linear() + 2.0 * Polynomial(2, 0.5) * ExponentialDot(0.3),
    Geometric(0.2),
]
VARIANTS = [*MAPS, RandomMaclaurin(keep_linear=True), CRAFT(up="maclaurin", expansion=2)]
CASES = [(model, kernel) for model in MAPS for kernel in KERNELS]
CASES += [(model, kernel) for model in VARIANTS[3:] for kernel in KERNELS[:3:2]]


class TestLaw:
    @pytest.mark.slow
    @pytest.mark.parametrize(("model", "kernel"), CASES)
    def test_unbiased(self, few, model, kernel):
        """The mean over seeds is K, within standard errors that are small themselves."""
        model = clone(model).set_params(kernel=kernel, n_components=2001)
        draws = np.array([model.set_params(random_state=seed).fit(few)(few) for seed in range(20)])
        K = kernel(few)
        deviation = np.abs(draws.mean(axis=0) - K)
        assert (deviation <= 4.5 * draws.std(axis=0) / np.sqrt(20) + 1e-7 * K.max()).all()
        assert relative(K, draws.mean(axis=0)) < 0.03

    @pytest.mark.slow
    @pytest.mark.parametrize("model", MAPS, ids=NAMES)
    def test_one_feature_is_unbiased(self, few, model):
        kernel = Polynomial(2, 0.5, 1.0)
        model = clone(model).set_params(kernel=kernel, n_components=1)
        draws = np.array([model.set_params(random_state=s).fit(few)(few) for s in range(300)])
        deviation = np.abs(draws.mean(axis=0) - kernel(few))
        assert (deviation <= 4 * draws.std(axis=0) / np.sqrt(300)).all()
        assert model.n_components_ == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("model", MAPS, ids=NAMES)
    def test_error_falls_with_the_root_of_the_size(self, digits, model):
        X = digits[:200]
        kernel = Polynomial(2, 1.0, 1.0)
        K, sizes = kernel(X), [64, 256, 1024]
        squares = [
            np.mean(
                [
                    relative(K, clone(model).set_params(
                        kernel=kernel, n_components=size, random_state=seed).fit(X)(X)) ** 2
                    for seed in range(8)
                ]
            )
            for size in sizes
        ]  # fmt: skip
        slope = np.polyfit(np.log(sizes), 0.5 * np.log(squares), 1)[0]
        assert -0.62 < slope < -0.38

    def test_a_constant_is_exact(self, few):
        for model in MAPS:
            model = clone(model).set_params(
                kernel=Polynomial(2, 1e-9, 3.0), n_components=2, random_state=0
            )
            assert_allclose(model.fit(few)(few), 9.0, rtol=1e-6)


class TestMaclaurin:
    def test_degrees_0_and_1_are_exact(self, digits):
        X = digits[:50]
        for kernel, features in ((Linear(), 64), (Polynomial(1, 2.0, 3.0), 65)):
            model = RandomMaclaurin(kernel, 100, keep_linear=True).fit(X)
            assert model.n_components_ == features
            assert_allclose(model(X), kernel(X), atol=1e-12)
        kernel = Polynomial(3, 0.5, 1.0)
        model = RandomMaclaurin(kernel, 200, keep_linear=True, random_state=0).fit(X)
        Z, a = model.transform(X), kernel.maclaurin(2)
        assert Z.shape == (50, 200)
        assert_allclose(Z[:, 135:] @ Z[:, 135:].T, a[0] + a[1] * X @ X.T, atol=1e-12)

    def test_features_are_products_of_projections(self, few):
        model = RandomMaclaurin(Polynomial(4, 0.6, 1.0), 60, random_state=0).fit(few)
        factors = [np.asarray(f) for f in model._random.factors]
        Z = model.transform(few)
        assert len(factors) == 4
        for column in range(59):
            own = [f[:, column] for f in factors if column < f.shape[1]]
            expected = np.prod([few @ f for f in own], axis=0)
            assert_allclose(Z[:, column], expected, rtol=1e-10, atol=1e-12)
            for f in own:  # signs, all of one size
                assert_allclose(np.abs(f), np.abs(f[0]))
        assert_allclose(Z[:, 59], 1.0)

    def test_many_columns_are_refused_in_words(self):
        X = scipy.sparse.random_array((5, 20_000), density=0.01, rng=0, format="csr")
        with (
            gramian.config_context(memory_budget="10MB"),
            pytest.raises(gramian.MemoryBudgetError, match=r"random vectors.*Use TensorSketch"),
        ):
            RandomMaclaurin(Polynomial(3, 1.0), 100).fit(X)
        TensorSketch(Polynomial(3, 1.0), 100).fit(X)


class TestTensorSketch:
    @pytest.mark.parametrize(
        ("kernel", "n"), [(Polynomial(3, 0.6, 1.0), 53), (Polynomial(4, 1.0, 0.0), 31)]
    )
    def test_is_the_convolution_of_count_sketches(self, few, kernel, n):
        """Σ over all p-tuples of columns: the product of entries and signs, at the hashes' sum."""
        model = TensorSketch(kernel, n, random_state=0).fit(few)
        a = kernel.maclaurin(6)
        expected = []
        for factors in model._random.sketches:
            p, size = len(factors), factors[0].shape[0]
            tables = [factor.toarray() for factor in factors]
            for table in tables:
                assert (np.count_nonzero(table, axis=0) == 1).all()
                assert_allclose(np.abs(table).max(axis=0), np.abs(table).max())
            hashes = [np.argmax(np.abs(table), axis=0) for table in tables]
            signs = [table.sum(axis=0) for table in tables]
            block = np.zeros((len(few), size))
            for columns in np.ndindex(*(4,) * p):
                place = sum(h[c] for h, c in zip(hashes, columns, strict=True)) % size
                sign = np.prod([s[c] for s, c in zip(signs, columns, strict=True)])
                block[:, place] += sign * np.prod(few[:, columns], axis=1)
            expected.append(block)
            squared = np.prod([np.abs(s).max() for s in signs]) ** 2
            assert squared <= a[p] * (1 + 1e-12)
        Z = model.transform(few)
        got = Z[:, :-1] if a[0] else Z
        assert_allclose(got, np.hstack(expected), atol=1e-10)
        assert Z.shape == (6, n)

    def test_no_length_is_slow(self, few):
        for n in (1, 2, 97, 997, 1009):
            model = TensorSketch(Polynomial(2, 1.0, 0.0), n, random_state=0).fit(few)
            sizes = [factors[0].shape[0] for factors in model._random.sketches]
            assert sum(sizes) == n
            for size in sizes:
                for prime in (2, 3, 5):
                    while size % prime == 0:
                        size //= prime
                assert size == 1

    def test_less_error_than_one_sketch_with_the_constant(self, digits):
        from sklearn.kernel_approximation import PolynomialCountSketch

        X = digits[:300]
        K = Polynomial(7, 1.0, 1.0)(X)
        ours, theirs = (
            np.mean([relative(K, (Z := make(s).fit_transform(X)) @ Z.T) for s in range(6)])
            for make in (
                lambda s: TensorSketch(Polynomial(7, 1.0, 1.0), 300, random_state=s),
                lambda s: PolynomialCountSketch(
                    degree=7, gamma=1.0, coef0=1, n_components=300, random_state=s
                ),
            )
        )
        assert ours < theirs


class TestCRAFT:
    @pytest.mark.slow
    @pytest.mark.parametrize("degree", [3, 7, 10])
    @pytest.mark.parametrize("load", [load_digits, load_breast_cancer, load_iris])
    def test_below_random_maclaurin(self, load, degree):
        X = normalize(load().data)[::3][:150]
        kernel = Polynomial(degree, 1.0, 1.0)
        K = kernel(X)

        def error(model):
            runs = [clone(model).set_params(random_state=s).fit(X)(X) for s in range(15)]
            return np.sqrt(np.mean([relative(K, run) ** 2 for run in runs]))

        plain = error(RandomMaclaurin(kernel, 100))
        assert error(CRAFT(kernel, 100)) < (0.9 if degree == 3 else 0.7) * plain

    def test_projection_is_the_real_fourier_matrix(self, few):
        """Signs, then rows of cosines and sines, which keep inner products in expectation."""
        kernel = Polynomial(2, 1.0, 0.0)
        for n in (10, 11):
            model = CRAFT(kernel, n, random_state=0).fit(few)
            part = model._random
            many = np.empty((6, part.up.width))
            part.up.fill(few, many)
            angle = 2 * np.pi * np.outer(np.arange(part.up.width), part.frequencies)
            angle /= part.up.width
            F = np.hstack((np.cos(angle), -np.sin(angle)))
            if n % 2:
                F = np.hstack((F, np.full((part.up.width, 1), 0.5**0.5)))
            assert F.shape[1] == n
            assert_allclose(np.abs(part.signs), np.sqrt(2 / n))
            assert len(set(part.frequencies)) == n // 2
            assert_allclose(model.transform(few), (many * part.signs) @ F, atol=1e-10)
            # each number that comes in keeps its square
            assert_allclose((np.abs(part.signs[:, None]) * F) ** 2 @ np.ones(n), 1.0)

    @pytest.mark.slow
    def test_up_is_better_than_the_other_map_at_its_size(self, digits):
        """The many features have little of the error: what is left is the projection's."""
        X = digits[:150]
        kernel = Polynomial(7, 1.0, 1.0)
        errors = [
            np.mean([
                relative(kernel(X), CRAFT(kernel, 60, expansion=e, random_state=s).fit(X)(X))
                for s in range(8)
            ])
            for e in (1, 4, 16)
        ]  # fmt: skip
        assert errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize("model", MAPS, ids=NAMES)
class TestRows:
    def test_sparse_is_dense(self, digits, model):
        X = digits[:80].copy()
        model = clone(model).set_params(kernel=ExponentialDot(1.0), random_state=0)
        dense = clone(model).fit(X).transform(X)
        for kind in (scipy.sparse.csr_array, scipy.sparse.csr_matrix):
            assert_allclose(clone(model).fit(kind(X)).transform(kind(X)), dense, atol=1e-12)

    @pytest.mark.parametrize("scale", [1.0, 30.0, 0.01])
    def test_float32_keeps_its_range(self, digits, model, scale):
        """Degree 20 on rows of any size: no product on the way leaves float32."""
        X = (scale * digits[:60]).astype(np.float32)
        kernel = Polynomial(20, 1 / scale**2, 1.0)
        fitted = clone(model).set_params(kernel=kernel, n_components=50, random_state=0).fit(X)
        Z = fitted.transform(X)
        assert Z.dtype == np.float32
        double = clone(fitted).fit(X.astype(float)).transform(X.astype(float))
        assert_allclose(Z, double, atol=2e-5 * np.abs(double).max())

    def test_kernels_with_rules(self, digits, model):
        X = 3.0 * digits[:100]
        fitted = clone(model).set_params(n_components=2000, random_state=0).fit(X)
        assert isinstance(fitted.kernel_, Polynomial)
        assert fitted.kernel_.gamma_ == pytest.approx(1 / (64 * X.var()))
        assert float(relative_error(fitted, X)) < 0.2

    def test_new_rows_and_rows_of_zeros(self, few, model):
        fitted = clone(model).set_params(kernel=ExponentialDot(0.5), random_state=0).fit(few)
        new = np.vstack((np.zeros(4), few[:2]))
        assert_allclose(fitted.transform(new)[1:], fitted.transform(few)[:2], atol=1e-12)
        assert_allclose(fitted(new)[0], 1.0, rtol=1e-12)  # exp(0), from the constant
        clone(fitted).fit(np.zeros((3, 4)))

    def test_learners(self, digits, model):
        X = digits[:300]
        y = np.sin(7.0 * X[:, 20]) + X[:, 30]
        approximation = clone(model).set_params(
            kernel=Polynomial(3, 1.0, 1.0), n_components=80, random_state=0
        )
        approximation.fit(X)
        K, new = approximation(X), digits[300:330]
        cross = approximation(new, X)
        ridge = KernelRidge(0.1, kernel=approximation, fit_intercept=False).fit(X, y)
        expected = cross @ np.linalg.solve(K + 0.1 * np.eye(300), y)
        assert_allclose(ridge.predict(new), expected, atol=1e-8)
        start = np.arange(0, 300, 60)
        clusters = KernelKMeans(5, kernel=approximation, init=start, tol=0).fit(X)
        dense = KernelKMeans(5, kernel="precomputed", init=start, tol=0).fit(K)
        assert (clusters.labels_ == dense.labels_).all()
        assert_allclose(clusters.inertia_, dense.inertia_, rtol=1e-8)
        pca = KernelPCA(4, kernel=approximation).fit(X)
        exact = KernelPCA(4, kernel="precomputed", solver="direct").fit(K)
        assert_allclose(pca.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
        scale = np.sqrt(exact.eigenvalues_[0])
        assert_allclose(pca.transform(new), exact.transform(cross), atol=1e-7 * scale)
        unfitted = KernelRidge(0.1, kernel=clone(approximation), fit_intercept=False).fit(X, y)
        assert_allclose(unfitted.predict(new), expected, atol=1e-8)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"kernel": RBF(0.1)}, r"got RBF\(gamma=0.1\)\. Use RandomFourier or Nystroem\."),
            ({"kernel": RBF() + Linear()}, "needs a dot-product kernel with non-negative"),
            ({"kernel": Cosine()}, "needs a dot-product kernel with non-negative"),
            ({"kernel": lambda x, y: x @ y.T}, "needs a dot-product kernel"),
            ({"kernel": Sigmoid()}, r"got Sigmoid\(\)\. Use an exact learner: kernel=Exact"),
            (
                {"kernel": Polynomial(3, 1.0, -1.0)},
                "whose coefficient of degree 0 is negative. Use an exact learner",
            ),
            ({"kernel": ExponentialDot(1e4)}, "not finite.*Scale the rows"),
            ({"n_components": 0}, "n_components of .* must be a positive integer; got 0"),
            ({"n_components": "sqrt"}, "n_components of .* must be a positive integer"),
            ({"kernel": "polynomal"}, "Did you mean 'polynomial'"),
        ],
    )
    def test_errors(self, few, model, params, message):
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(**params).fit(few)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomMaclaurin(n_components=5, keep_linear=True), "keeps the 4 columns.*at least 6; got"),
        (RandomMaclaurin(keep_linear="yes"), "keep_linear .* must be True or False; got 'yes'"),
        (CRAFT(up="fourier"), "up of CRAFT must be one of 'tensor_sketch', 'maclaurin'"),
        (CRAFT(expansion=0), "expansion of CRAFT must be a positive integer; got 0"),
    ],
)
def test_errors_of_one_map(few, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(few)


def test_a_matrix_has_no_inner_products(few):
    with pytest.raises(ValueError, match=r"dot-product kernel.*got Precomputed\(\)"):
        TensorSketch("precomputed").fit(Linear()(few))


def test_features_do_not_depend_on_the_library(few):
    torch = pytest.importorskip("torch")
    single = torch.asarray(few, dtype=torch.float32)
    for model in VARIANTS:
        theirs = clone(model).set_params(random_state=0).fit(single).transform(single)
        assert theirs.dtype == torch.float32
        ours = clone(model).set_params(random_state=0).fit(few).transform(few)
        assert_allclose(array_ops.to_numpy(theirs), ours, atol=1e-4)
