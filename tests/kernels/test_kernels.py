"""What is particular to single kernels; the common laws are in test_laws.py."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise as sk

import gramian
from gramian import (
    RBF,
    AdditiveChi2,
    Cauchy,
    Chi2,
    Cosine,
    Exponential,
    ExponentialDot,
    FunctionKernel,
    KernelWarning,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    as_kernel,
    kernel_names,
)
from gramian.kernels.spectrum import Law
from gramian.testing import check_kernel


@pytest.fixture
def rows(rng):
    return rng.random((60, 5)), rng.random((17, 5))


REFERENCES = [
    (RBF(0.7), lambda X, Y: sk.rbf_kernel(X, Y, gamma=0.7)),
    (RBF(bandwidth=1.5), gp.RBF(1.5)),
    (Laplacian(0.7), lambda X, Y: sk.laplacian_kernel(X, Y, gamma=0.7)),
    (Exponential(0.7), lambda X, Y: np.exp(-0.7 * sk.euclidean_distances(X, Y))),
    (Exponential(bandwidth=2.0), gp.Matern(2.0, nu=0.5)),
    *((Matern(bandwidth=0.8, nu=nu), gp.Matern(0.8, nu=nu)) for nu in (0.5, 1.5, 2.5, 0.3, 3.7)),
    (RationalQuadratic(bandwidth=0.8, alpha=0.6), gp.RationalQuadratic(0.8, alpha=0.6)),
    (Cauchy(0.7), lambda X, Y: 1 / (1 + 0.7 * sk.euclidean_distances(X, Y) ** 2)),
    (Linear(), sk.linear_kernel),
    (Polynomial(5, 0.3, 2.0), lambda X, Y: sk.polynomial_kernel(X, Y, 5, 0.3, 2.0)),
    (Cosine(), sk.cosine_similarity),
    (ExponentialDot(0.3), lambda X, Y: np.exp(0.3 * X @ Y.T)),
    (Sigmoid(0.3, -0.5), lambda X, Y: sk.sigmoid_kernel(X, Y, 0.3, -0.5)),
    (Chi2(0.7), lambda X, Y: sk.chi2_kernel(X, Y, gamma=0.7)),
    (
        AdditiveChi2(),
        lambda X, Y: (sk.additive_chi2_kernel(X, Y) + X.sum(1)[:, None] + Y.sum(1)) / 2,
    ),
]


@pytest.mark.parametrize(("kernel", "reference"), REFERENCES)
def test_values(rows, kernel, reference):
    X, Y = rows
    assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-10, atol=1e-12)


def test_composition(rows):
    X, Y = rows
    a, b = RBF(0.5), Polynomial(2, 0.1)
    assert_allclose((2 * a + b * a)(X, Y), 2 * a(X, Y) + b(X, Y) * a(X, Y))
    kernel = clone(0.5 * a + b)
    assert kernel.get_params()["left__kernel__gamma"] == 0.5
    kernel.set_params(left__kernel__gamma=3.0, left__factor=1.0)
    assert_allclose(kernel(X, Y), RBF(3.0)(X, Y) + b(X, Y))
    assert a.gamma == 0.5, "a clone does not share its parts"
    fitted = (RBF("scale") + Linear()).fit(X)
    assert fitted.left.gamma_ == pytest.approx(1 / (5 * X.var()))
    with pytest.raises(TypeError):
        RBF() + 1
    with pytest.raises(ValueError, match="factor of Scaled must be a positive number; got -1"):
        (-1 * a)(X)


def test_the_law_of_the_spectrum_sees_a_wrong_one():
    class Wrong(RBF):
        def spectrum(self):
            return [Law(variance=self._gamma)]

    with pytest.raises(AssertionError, match="cosines of random frequencies"):
        check_kernel(Wrong(0.1))


def test_every_name_is_a_kernel():
    assert kernel_names() == [
        "additive_chi2", "categorical", "cauchy", "chi2", "cosine", "exponential",
        "exponential_dot", "laplacian", "linear", "matern", "poly", "polynomial", "precomputed",
        "rational_quadratic", "rbf", "sigmoid",
    ]  # fmt: skip
    for name in kernel_names():
        assert type(as_kernel(name)).__name__.lower().startswith(name.split("_")[0][:4])


def test_psd_is_declared():
    assert not Sigmoid().psd
    assert not Polynomial(coef0=-1.0).psd
    assert not (RBF() + Sigmoid()).psd
    assert (RBF() * Linear()).psd


class TestGammaRules:
    def test_scale_is_sklearns(self, rng):
        X = rng.standard_normal((500, 4)) * [1, 2, 3, 4] + 1000.0
        assert RBF("scale").fit(X).gamma_ == pytest.approx(1 / (4 * X.var()))
        assert RBF().fit(X).gamma_ == RBF("scale").fit(X).gamma_
        assert Polynomial(gamma="scale").fit(X).gamma_ == pytest.approx(1 / (4 * X.var()))
        assert Laplacian().fit(X).gamma_ == pytest.approx(1 / (4 * X.std()))
        assert Exponential().fit(X).gamma_ == pytest.approx(1 / np.sqrt(4 * X.var()))
        sparse = scipy.sparse.random_array((200, 7), density=0.3, rng=rng, format="csr")
        assert RBF().fit(sparse).gamma_ == pytest.approx(1 / (7 * sparse.toarray().var()))

    def test_of_distances(self, rng):
        X = rng.standard_normal((80, 3))
        distances = sk.euclidean_distances(X)[np.triu_indices(80, 1)]
        manhattan = sk.manhattan_distances(X)[np.triu_indices(80, 1)]
        median, mean = np.median(distances), np.mean(distances**2)
        quarter = np.percentile(distances, 25)
        assert RBF("median").fit(X).gamma_ == pytest.approx(1 / (2 * median**2))
        assert RBF("mean").fit(X).gamma_ == pytest.approx(1 / (2 * mean))
        assert RBF(("percentile", 25)).fit(X).gamma_ == pytest.approx(1 / quarter**2)
        assert Matern("median").fit(X).gamma_ == pytest.approx(1 / (2 * median**2))
        assert Exponential("median").fit(X).gamma_ == pytest.approx(1 / median)
        assert Laplacian("median").fit(X).gamma_ == pytest.approx(1 / np.median(manhattan))
        assert Laplacian(("percentile", 50)).fit(X).gamma_ == pytest.approx(
            1 / np.median(manhattan)
        )

    def test_on_a_sample_of_many_rows(self, rng):
        X = rng.standard_normal((20_000, 3))
        exact = 2 * X.var(axis=0).sum()  # the mean squared distance of two rows
        assert RBF("mean").fit(X).gamma_ == pytest.approx(1 / (2 * exact), rel=0.1)
        assert RBF("mean").fit(X).gamma_ == RBF("mean").fit(X).gamma_, "no chance without a seed"
        assert RBF("mean").fit(X).gamma_ != RBF("mean").fit(X, random_state=1).gamma_

    def test_weights_count_rows(self, rng):
        X = rng.standard_normal((30, 2))
        counts = rng.integers(0, 4, 30)
        repeated = np.repeat(X, counts, axis=0)
        weighted = RBF().fit_rows(gramian.as_rows(X), rng, counts.astype(float))
        assert weighted.gamma_ == pytest.approx(RBF().fit(repeated).gamma_)

    def test_a_number_wins_over_an_earlier_fit(self, rng):
        kernel = RBF("median").fit(rng.standard_normal((20, 2)))
        kernel.set_params(gamma=7.0)
        assert_allclose(kernel([[0.0]], [[1.0]]), np.exp(-7.0))


class TestWarnings:
    @pytest.mark.parametrize("kernel", [RBF(1.0), Exponential(1.0), Matern(gamma=1.0), Cauchy(1.0)])
    def test_a_glance_misses_nothing(self, kernel):
        """Rows that look fine on average are fine: also with outliers, and in clusters."""
        rng, seen = np.random.default_rng(0), []
        for size in 10.0 ** np.arange(-4, 6, 0.25):
            for outliers in (0, 1, 20):
                sample = size * rng.standard_normal((40, 3))
                sample[:outliers] *= 1e-3
                moderate = kernel._is_moderate(sample)
                assert not moderate or kernel._flatness(sample) is None
                seen.append(moderate)
        assert any(seen) and not all(seen)

    @pytest.mark.parametrize("cls", [RBF, Laplacian, Exponential, Matern, Cauchy])
    def test_of_gammas_that_say_nothing(self, rng, cls):
        X = rng.standard_normal((300, 10))
        with pytest.warns(KernelWarning, match=r"nearly all kernel values are 1.*Try gamma=") as w:
            cls(gamma=1e-9).fit(X)
        hint = float(str(w[0].message).rsplit("=", 1)[1].rstrip("."))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cls(gamma=hint).fit(X)
            cls().fit(X)

    @pytest.mark.parametrize("cls", [RBF, Laplacian, Exponential])
    def test_of_underflow(self, rng, cls):
        X = rng.standard_normal((300, 10))
        with pytest.warns(KernelWarning, match=r"different rows are 0.*Try gamma="):
            cls(gamma=1e4).fit(X)

    def test_many_far_clusters_are_no_underflow(self, rng):
        X = np.repeat(100.0 * rng.standard_normal((100, 3)), 10, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel = RBF(gamma=1.0).fit(X + 0.1 * rng.standard_normal(X.shape))
        assert kernel.gamma_ == 1.0


class TestFloat32:
    @pytest.mark.parametrize("kernel", [RBF(0.1), Matern(0.1), Exponential(0.1), Cauchy(0.1)])
    def test_far_from_the_origin(self, rng, kernel):
        X = (rng.standard_normal((400, 8)) + 1000.0).astype(np.float32)
        assert_allclose(kernel(X), kernel(X.astype(np.float64)), atol=5e-6)

    def test_centring_alone_keeps_float32_accurate(self, rng):
        class Trusting(RBF):
            tolerance = np.inf  # never falls back to float64

        X = (rng.standard_normal((400, 8)) + 1000.0).astype(np.float32)
        assert_allclose(Trusting(0.1)(X), RBF(0.1)(X.astype(np.float64)), atol=5e-6)

    def test_close_pairs_at_a_large_gamma(self, rng):
        centres = rng.standard_normal((200, 8))
        X = np.concatenate((centres, centres + 1e-3)).astype(np.float32)
        kernel = RBF(1e5)
        assert_allclose(kernel(X), kernel(X.astype(np.float64)), atol=2e-5)
        assert_allclose(kernel(X, X), kernel(X.astype(np.float64)), atol=2e-5)

    def test_the_diagonal_is_exact(self, rng):
        X = (rng.standard_normal((50, 3)) + 1e4).astype(np.float32)
        assert (np.diagonal(RBF(10.0)(X)) == 1.0).all()

    def test_mixed_with_float64(self, rng):
        X, Y = rng.standard_normal((9, 3)), rng.standard_normal((4, 3))
        mixed = RBF(0.5)(X.astype(np.float32), Y)
        assert mixed.dtype == np.float64
        assert_allclose(mixed, RBF(0.5)(X.astype(np.float32).astype(float), Y))


finite_rows = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 30), st.integers(1, 6)),
    elements=st.floats(-50, 50, width=32),
)


@given(X=finite_rows, gamma=st.floats(1e-3, 1e3))
def test_stationary_kernels_on_any_rows(X, gamma):
    for cls in (RBF, Laplacian, Exponential, Matern, RationalQuadratic, Cauchy):
        K = cls(gamma=gamma)(X)
        assert np.isfinite(K).all() and (K <= 1).all() and (K >= 0).all()
        assert (K == K.T).all() and (np.diagonal(K) == 1).all()
        assert np.linalg.eigvalsh(K).min() > -1e-6 * len(X)


def test_a_function_is_called_with_blocks(rng):
    X = rng.standard_normal((50, 3))
    sizes = []

    def function(x, y):
        sizes.append((len(x), len(y)))
        return np.tanh(x @ y.T)

    assert_allclose(as_kernel(function)(X), np.tanh(X @ X.T))
    assert max(size[0] for size in sizes) <= 50
    pairwise = FunctionKernel(lambda x, y: np.tanh(x @ y), pairwise=True)
    assert_allclose(pairwise(X), np.tanh(X @ X.T))
    assert_allclose(pairwise.diag(X), np.tanh((X**2).sum(1)))


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_matrix_is_written_into_given_memory(symmetric, rng):
    X = rng.normal(size=(300, 3))
    Y = None if symmetric else rng.normal(size=(40, 3))
    expected = RBF(0.3)(X, Y)
    out = np.full_like(expected, np.nan)
    assert RBF(0.3)(X, Y, out=out) is out
    np.testing.assert_array_equal(out, expected)
    for wrong in (out[:-1], out.astype(np.float32), out.tolist()):
        with pytest.raises(ValueError, match=r"out must be an array of .*float64.* and shape"):
            RBF(0.3)(X, Y, out=wrong)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.3),
        Exponential(0.3),
        Laplacian(0.3),
        Polynomial(2),
        RBF(0.3, scales=[1, 2, 3]) + Linear(),
    ],
)
@pytest.mark.parametrize("offset", [1.0, 300.0])  # far from 0, float32 does not do
def test_a_matrix_of_rows_with_themselves(kernel, dtype, offset, rng):
    X = (rng.normal(size=(801, 3)) + offset * rng.normal(size=(801, 1))).astype(dtype)
    kernel.fit(X)
    with gramian.config_context(n_threads=1):
        K = kernel(X)
    assert np.array_equal(K, K.T)
    with gramian.config_context(n_threads=3):
        assert np.array_equal(kernel(X), K)
    exact = kernel(X.astype(float), X.astype(float))
    assert_allclose(K, exact, rtol=1e-4 if dtype == np.float32 else 1e-9, atol=2e-5)
