"""Kernel PCA on many rows: batches, shares of variance, pre-images, a small memory budget."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    ArrayRows,
    BlockCore,
    Exact,
    Factors,
    FileRows,
    KernelPCA,
    KernelRidge,
    Laplacian,
    MemoryBudgetError,
    Nystroem,
    Polynomial,
    RandomFourier,
    open_rows,
)
from gramian.backend.linalg import spectrum
from gramian.learners.pca import featured, moments
from gramian.learners.pca.moments import Moments
from gramian.learners.pca.pre_images import PreImages

NYSTROEM = Nystroem(RBF(0.3), 30, random_state=0)
APPROXIMATIONS = [
    NYSTROEM,
    Nystroem(Polynomial(2, gamma=0.5, coef0=1.0), 12, random_state=0),
    RandomFourier(Laplacian(0.3), 40, random_state=0),
    BKA(RBF(0.3), 30, n_blocks=3, random_state=0),
    MEKA(RBF(0.3), 30, n_blocks=3, random_state=0),
]


def table(n=600, seed=0, dtype=np.float64):
    """Rows that lie off the origin, and whose variances differ."""
    X = np.random.default_rng(seed).standard_normal((n, 4)) * [2.0, 1.2, 0.8, 0.4] + 0.5
    return X.astype(dtype)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data / 16.0


def assert_same(model, other, X, tolerance=1e-8):
    largest = float(other.eigenvalues_[0])
    assert_allclose(model.eigenvalues_, other.eigenvalues_, atol=tolerance * largest)
    assert_allclose(model.explained_variance_, other.explained_variance_, atol=tolerance * largest)
    assert_allclose(
        model.explained_variance_ratio_, other.explained_variance_ratio_, atol=tolerance
    )
    assert model.n_samples_seen_ == other.n_samples_seen_
    assert_allclose(model.transform(X), other.transform(X), atol=10 * tolerance)


class TestBatches:
    @pytest.mark.parametrize("approximation", APPROXIMATIONS)
    def test_batches_give_what_all_rows_do(self, approximation, monkeypatch):
        monkeypatch.setattr(moments, "SIGN_ROWS", 250)  # fewer than there are rows
        X, new = table(), table(50, seed=1)
        fitted = clone(approximation).fit(X)
        whole = KernelPCA(5, kernel=fitted).fit(X)
        model = KernelPCA(5, kernel=fitted)
        for start, stop in ((0, 1), (1, 4), (4, 200), (200, 520), (520, 600)):
            model.partial_fit(X[start:stop])
            assert model.n_samples_seen_ == stop
            assert model.transform(new).shape == (50, 5)
        assert_same(model, whole, new)
        again = pickle.loads(pickle.dumps(model)).partial_fit(X[:300])
        assert_same(again, KernelPCA(5, kernel=fitted).fit(np.concatenate((X, X[:300]))), new)

    @settings(max_examples=10)
    @given(cuts=st.lists(st.integers(1, 199), max_size=6, unique=True))
    def test_wherever_the_rows_are_cut(self, cuts):
        X = table(200)
        fitted = clone(NYSTROEM).fit(X)
        model = KernelPCA(3, kernel=fitted)
        for batch in np.split(X, sorted(cuts)):
            model.partial_fit(batch)
        assert_same(model, KernelPCA(3, kernel=fitted).fit(X), X)

    def test_the_first_batch_fits_the_approximation(self):
        X = table()
        model = KernelPCA(4, kernel=NYSTROEM, random_state=0)
        model.partial_fit(X[:200]).partial_fit(X[200:])
        assert_same(model, KernelPCA(4, kernel=clone(NYSTROEM).fit(X[:200])).fit(X), X)
        bare = KernelPCA(4, kernel=RBF("median"), random_state=0).partial_fit(X[:300])
        assert len(bare.approximation_.landmarks_) == 140
        gamma = bare.kernel_.gamma_
        assert bare.partial_fit(10 * X).kernel_.gamma_ == gamma, "what it taught stays"

    def test_after_a_fit(self):
        X = table()
        fitted = clone(NYSTROEM).fit(X)
        whole = KernelPCA(4, kernel=fitted).fit(X)
        on = KernelPCA(4, kernel=fitted).fit(X[:250]).partial_fit(X[250:])
        assert_same(on, whole, X)
        anew = KernelPCA(4, kernel=RBF(0.3)).fit(X[:250])
        assert anew.approximation_ is None
        assert_same(anew.set_params(kernel=fitted).partial_fit(X), whole, X)
        assert_same(on.fit(X), whole, X)  # a fit forgets the batches
        exact = on.set_params(kernel=RBF(0.3)).fit(X[:250])
        assert exact.partial_fit(X[:300]).n_samples_seen_ == 300

    def test_eigenvectors_are_those_of_a_fit(self):
        X = table()
        model = KernelPCA(3, kernel=NYSTROEM)
        assert not hasattr(model, "eigenvectors_")
        assert model.fit(X).eigenvectors_.shape == (600, 3)
        model.partial_fit(X[:10])
        assert not hasattr(model, "eigenvectors_")
        with pytest.raises(AttributeError, match=r"no eigenvectors of 610 rows: partial_fit"):
            model.eigenvectors_  # noqa: B018
        assert model.fit(X).eigenvectors_.shape == (600, 3)

    @pytest.mark.parametrize("approximation", APPROXIMATIONS)
    def test_few_rows(self, approximation):
        X = table()
        fitted = clone(approximation).fit(X)
        model = KernelPCA(4, kernel=fitted).partial_fit(X[:1])
        assert_array_equal(model.eigenvalues_, np.zeros(4))
        assert_array_equal(model.explained_variance_ratio_, np.zeros(4))
        assert_array_equal(model.transform(X), np.zeros((600, 4)))
        model.partial_fit(X[1:3])  # three rows span two directions
        assert (model.eigenvalues_[:2] > 1e-3).all()
        assert_array_equal(model.eigenvalues_[2:], 0.0)
        assert_array_equal(model.transform(X)[:, 2:], 0.0)
        every = KernelPCA(None, kernel=fitted).partial_fit(X[:1])
        assert every.transform(X).shape == (600, 0)
        assert every.partial_fit(X[1:3]).transform(X).shape == (600, 2)

    def test_signs_do_not_follow_the_landmarks_and_stay(self, monkeypatch):
        monkeypatch.setattr(moments, "SIGN_ROWS", 100)
        X = table(1500)
        fits = [
            KernelPCA(3, kernel=Nystroem(RBF(0.01), 40), random_state=seed).fit(X)
            for seed in range(4)
        ]
        expected = KernelPCA(3, kernel=RBF(0.01), solver="iterative", random_state=0).fit_transform(
            X
        )
        largest = np.abs(expected[:100]).argmax(axis=0)
        expected = expected * np.sign(expected[largest, range(3)])
        for model in fits:
            assert_allclose(model.transform(X), expected, atol=0.05)
        stream = KernelPCA(3, kernel=fits[0].approximation_)
        before = stream.partial_fit(X[:300]).transform(X)
        for start in range(300, 1500, 100):
            after = stream.partial_fit(X[start : start + 100]).transform(X)
            assert ((before * after).sum(axis=0) > 0).all()
            before = after

    @pytest.mark.parametrize("parts", [1, 3])
    def test_means_that_are_far_larger_than_deviations(self, parts):
        # Squares about 0 in float32 would leave nothing of the deviations.
        rng = np.random.default_rng(0)
        Z = [(1000 * (p + 1) + rng.standard_normal((700, 3))).astype(np.float32) for p in range(3)]
        Z = Z[:parts]
        wide = np.asarray(
            np.concatenate(
                [np.pad(z, ((0, 0), (3 * p, 3 * (parts - 1 - p)))) for p, z in enumerate(Z)]
            ),
            dtype=np.float64,
        )
        scatter = np.cov(wide.T, ddof=0) * len(wide)
        whole = Moments.over(Factors([ArrayRows(z) for z in Z]), None)
        halves = [
            [z[:5] for z in Z],
            [z[5:] for z in Z],
        ]
        first = Moments.over(Factors([ArrayRows(z) for z in halves[0]]), None)
        later = Moments.over(Factors([ArrayRows(z) for z in halves[1]]), None, first)
        for pooled in (whole, first.plus(later)):
            mean, found = pooled._pooled()
            assert_allclose(mean, wide.mean(axis=0), rtol=1e-9)
            assert_allclose(
                scipy.linalg.block_diag(*pooled.scatters),
                scipy.linalg.block_diag(*(np.cov(z.T.astype(float), ddof=0) * 700 for z in Z)),
                atol=0.02,
            )
            assert_allclose(found, scatter, rtol=1e-5, atol=0.02)

    def test_a_batch_that_fails_changes_nothing(self):
        X = table()
        model = KernelPCA(3, kernel=NYSTROEM, random_state=0).partial_fit(X[:300])
        before = dict(vars(model))
        for bad in (X[:5, :3], np.full((5, 4), np.nan)):
            with pytest.raises(ValueError):
                model.partial_fit(bad)
            assert all(vars(model)[name] is value for name, value in before.items())
        fresh = KernelPCA(3, kernel=NYSTROEM)
        with pytest.raises(ValueError, match="minimum of 2"):
            fresh.partial_fit(X[:1])
        assert not hasattr(fresh, "n_features_in_")

    def test_what_needs_all_rows(self):
        X = table(50)
        with pytest.raises(AttributeError) as error:
            KernelPCA(fit_inverse_transform=True).partial_fit(X)
        assert "needs all rows at once" in str(error.value.__cause__)
        with pytest.raises(AttributeError) as error:
            KernelPCA(solver="direct").partial_fit(X)
        assert "which partial_fit does not use" in str(error.value.__cause__)
        with pytest.raises(ValueError, match="partial_fit of KernelPCA needs features"):
            KernelPCA(kernel=Exact("rbf")).partial_fit(X)
        with pytest.raises(ValueError, match="n_components of KernelPCA"):
            KernelPCA(0).partial_fit(X)
        model = KernelPCA(kernel=NYSTROEM).fit(X).set_params(fit_inverse_transform=True)
        with pytest.raises(ValueError, match="was set after the fit"):
            model.inverse_transform(np.zeros((1, 2)))

    def test_kinds_of_rows(self, tmp_path):
        X = table()
        fitted = clone(NYSTROEM).fit(X)
        expected = KernelPCA(3, kernel=fitted).fit(X)
        np.save(tmp_path / "x.npy", X[:400])
        of_files = KernelPCA(3, kernel=fitted).partial_fit(open_rows(tmp_path / "x.npy"))
        assert_same(of_files.partial_fit(X[400:]), expected, X)
        sparse = KernelPCA(3, kernel=fitted)
        for part in (slice(0, 100), slice(100, 600)):
            sparse.partial_fit(scipy.sparse.csr_array(X[part]))
        assert_same(sparse, expected, X)
        single = KernelPCA(3, kernel=Nystroem(RBF(0.3), landmarks=X[:40]))
        double = clone(single).fit(X)
        for part in (slice(0, 100), slice(100, 600)):
            single.partial_fit(X[part].astype(np.float32))
        assert single.transform(X.astype(np.float32)).dtype == np.float32
        assert_allclose(single.transform(X.astype(np.float32)), double.transform(X), atol=1e-3)

    def test_a_precomputed_matrix_and_words(self):
        X = table()
        K = RBF(0.3)(X)
        fitted = Nystroem("precomputed", 40, random_state=0).fit(K[:200, :200])
        expected = KernelPCA(3, kernel=fitted).fit(K[:200, :200]).partial_fit(K[200:, :200])
        landmarks = X[:200][fitted.landmarks_.indices]
        rows = KernelPCA(3, kernel=Nystroem(RBF(0.3), landmarks=landmarks)).fit(X)
        assert_allclose(expected.eigenvalues_, rows.eigenvalues_)
        assert_allclose(expected.transform(K[:, :200]), rows.transform(X), atol=1e-8)

        def letters(a, b):
            return len(set(a) & set(b))

        words = ["kernel", "colonel", "lonely", "matrix", "tricks", "strict"]
        kernel = gramian.FunctionKernel(letters, pairwise=True)
        model = KernelPCA(2, kernel=Nystroem(kernel, 4, random_state=0)).partial_fit(words[:4])
        assert model.partial_fit(words[4:]).transform(["only"]).shape == (1, 2)

    def test_torch(self):
        torch = pytest.importorskip("torch")
        X = table()
        expected = KernelPCA(3, kernel=Nystroem(RBF(0.3), landmarks=X[:30])).fit(X)
        model = KernelPCA(3, kernel=Nystroem(RBF(0.3), landmarks=torch.asarray(X[:30])))
        for part in (slice(0, 100), slice(100, 600)):
            model.partial_fit(torch.asarray(X[part]))
        assert isinstance(model.transform(torch.asarray(X)), torch.Tensor)
        assert_allclose(model.transform(torch.asarray(X)), expected.transform(X), atol=1e-8)


class TestVariance:
    @pytest.mark.parametrize("kernel", ["linear", Exact("linear"), Nystroem("linear", 30)])
    @pytest.mark.parametrize("k", [2, 4])
    def test_of_a_linear_kernel_is_that_of_pca(self, kernel, k):
        X = table(300)
        expected = PCA(k).fit(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 4 columns have no more than 4 landmarks' features
            model = KernelPCA(k, kernel=kernel, random_state=0).fit(X)
        assert_allclose(model.explained_variance_, expected.explained_variance_)
        assert_allclose(model.explained_variance_ratio_, expected.explained_variance_ratio_)
        scores = model.transform(X)
        assert_allclose(np.abs(scores), np.abs(expected.transform(X)), atol=1e-8)
        assert_allclose(scores.var(axis=0, ddof=1), model.explained_variance_)

    def test_what_an_approximation_leaves_out_is_not_explained(self, digits):
        X = digits[:400]
        K = RBF(0.02)(X)
        total = np.trace(K) - K.mean() * 400
        every = KernelPCA(None, kernel=Nystroem(RBF(0.02), 50, random_state=0)).fit(X)
        left_out = 1.0 - every.explained_variance_ratio_.sum()
        trace_error = gramian.relative_error(every.approximation_, X, norm="trace")
        assert left_out == pytest.approx(float(trace_error) * np.trace(K) / total, rel=1e-3)
        assert left_out > 0.05
        own = KernelPCA(None, kernel=RandomFourier(RBF(0.02), 50, random_state=0)).fit(X)
        assert own.explained_variance_ratio_.sum() == pytest.approx(1.0)

    def test_no_file_is_read_for_a_constant_diagonal(self, tmp_path, monkeypatch):
        np.save(tmp_path / "x.npy", table())
        rows = open_rows(tmp_path / "x.npy")
        monkeypatch.setattr(FileRows, "map", None)
        assert_array_equal((2.0 * RBF(0.3)).diagonal(rows), np.full(600, 2.0))


class TestDefault:
    @pytest.mark.slow
    def test_leading_components_are_those_of_the_exact_matrix(self, digits, monkeypatch):
        monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 8 * 1000**2)
        kernel = RBF("mean")
        exact = KernelPCA(10, kernel=Exact(kernel), random_state=0).fit(digits)
        for dtype in (np.float32, np.float64):
            model = KernelPCA(10, kernel=kernel, random_state=0).fit(digits.astype(dtype))
            assert len(model.approximation_.landmarks_) == 200
            overlap = np.linalg.norm(model.eigenvectors_.T @ exact.eigenvectors_) ** 2 / 10
            assert overlap > 0.995
            off = np.abs(model.eigenvalues_ - exact.eigenvalues_).max()
            assert off < 0.005 * exact.eigenvalues_[0]
            assert_allclose(
                model.explained_variance_ratio_, exact.explained_variance_ratio_, atol=2e-3
            )

    def test_the_count_of_landmarks(self):
        model = KernelPCA(20)
        for n, m in ((200, 200), (10_000, 300), (1_000_000, 1000)):
            assert model._default_approximation(RBF(), n).n_components == m

    @pytest.mark.parametrize("core", [False, True])
    def test_a_few_eigenvalues_are_the_largest_of_all(self, core, rng):
        Z = rng.standard_normal((60, 12))
        S = None
        if core:
            S = rng.standard_normal((12, 12))
            S = S + S.T
        values, P = spectrum(Z.T @ Z, S)
        for count in (3, 9):
            few, Q = spectrum(Z.T @ Z, S, count)
            assert_allclose(few, values[:count])
            assert_allclose(np.abs(Z @ Q), np.abs(Z @ P[:, :count]), atol=1e-8)


class TestSmallMemory:
    BUDGET = 8 * 4000 * 40  # a quarter of it holds ten columns of 4,000 rows

    @pytest.mark.parametrize("approximation", [NYSTROEM, APPROXIMATIONS[-1]])
    def test_what_does_not_fit_is_not_kept(self, approximation):
        X = table(4000)
        fitted = clone(approximation).fit(X)
        large = KernelPCA(11, kernel=fitted).fit(X)
        scores = large.transform(X)
        with gramian.config_context(memory_budget=self.BUDGET):
            small = KernelPCA(11, kernel=fitted)
            assert_allclose(small.fit_transform(X), scores, atol=1e-7)
            assert not hasattr(small, "eigenvectors_")
            with pytest.raises(AttributeError, match="more than a quarter of the memory budget"):
                small.eigenvectors_  # noqa: B018
            assert_same(small, large, X[:50])
            assert KernelPCA(10, kernel=fitted).fit(X).eigenvectors_.shape == (4000, 10)
        assert_allclose(large.fit_transform(X), scores, atol=1e-7)

    def test_features_are_not_held(self, monkeypatch):
        X = table(4000)
        fitted = clone(NYSTROEM).fit(X)
        rows = []
        features = Nystroem._features

        def counted(self, x, out=None):
            rows.append(len(x))
            return features(self, x, out)

        monkeypatch.setattr(Nystroem, "_features", counted)
        KernelPCA(3, kernel=fitted).fit(X)
        assert sum(rows) == 4000, "kept where they fit"
        rows.clear()
        with gramian.config_context(memory_budget=8 * 4000 * 30):
            KernelPCA(3, kernel=fitted).fit(X)
        # One pass for the moments, after a look at some rows; the eigenvectors need kernel values
        # alone.
        assert sum(rows) == 4000 + moments.SIGN_ROWS + moments.SHIFT_ROWS
        assert max(rows) < 4000

    def test_a_decomposition_that_does_not_fit(self):
        X = table()
        with (
            gramian.config_context(memory_budget=3 * 8 * 30**2 - 1),
            pytest.raises(MemoryBudgetError, match="a matrix of 30 features"),
        ):
            KernelPCA(3, kernel=clone(NYSTROEM).fit(X)).partial_fit(X[:2])


class TestPreImages:
    @pytest.fixture
    def few_exact(self, monkeypatch):
        """No more than 500 rows are few enough for the exact regression."""
        monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 8 * 500**2)

    def test_the_regression_of_many_rows(self, few_exact):
        X, new = table(), table(50, seed=1)
        model = KernelPCA(3, kernel=NYSTROEM, fit_inverse_transform=True, alpha=0.1).fit(X)
        assert isinstance(model._pre_images, PreImages)
        own = model._pre_images.approximation
        ridge = KernelRidge(0.1, kernel=own, solver="direct", fit_intercept=False)
        ridge.fit(model.transform(X), X)
        scores = model.transform(new)
        back = model.inverse_transform(scores)
        assert back.shape == (50, 4)
        assert_allclose(back, ridge.predict(scores), atol=1e-7)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.inverse_transform(scores), back)

    @pytest.mark.slow
    def test_as_good_as_the_exact_regression(self, digits, monkeypatch):
        train, new = digits[:1200], digits[1200:]
        model = KernelPCA(20, kernel=RBF("median"), fit_inverse_transform=True, random_state=0)
        errors = []
        for most in (1200, 800):
            monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 8 * most**2)
            fitted = clone(model).set_params(kernel=Exact(RBF("median"))).fit(train)
            assert isinstance(fitted._pre_images, KernelRidge if most == 1200 else PreImages)
            back = fitted.inverse_transform(fitted.transform(new))
            errors.append(((back - new) ** 2).sum(axis=1).mean())
        assert errors[1] < 1.1 * errors[0]
        assert errors[0] < 0.4 * new.var(axis=0).sum()

    @pytest.mark.parametrize("ending", [".npy", ".parquet"])
    @pytest.mark.parametrize("kept", [True, False])
    def test_rows_stay_in_their_files(self, tmp_path, few_exact, monkeypatch, ending, kept):
        X = table(1500, dtype=np.float32)
        path = tmp_path / f"x{ending}"
        if ending == ".npy":
            np.save(path, X)
        else:
            pd = pytest.importorskip("pandas")
            pytest.importorskip("pyarrow")
            pd.DataFrame(X, columns=list("abcd")).to_parquet(path, row_group_size=200)
        model = KernelPCA(3, kernel=NYSTROEM, fit_inverse_transform=True, random_state=0)
        expected = clone(model).fit(X)
        monkeypatch.setattr(FileRows, "persist", lambda self: self)
        monkeypatch.setattr(FileRows, "collect", None)
        if not kept:
            monkeypatch.setattr(featured, "eigenvectors", lambda found, factors: None)
        fitted = clone(model).fit(path)
        assert hasattr(fitted, "eigenvectors_") == kept
        scores = fitted.transform(open_rows(path))
        assert_allclose(scores, expected.transform(X), atol=1e-5)
        back = fitted.inverse_transform(scores)
        assert back.dtype == np.float32
        assert_allclose(back, expected.inverse_transform(scores), atol=1e-3)
        assert ((back - X) ** 2).sum(axis=1).mean() < 0.3 * X.var(axis=0).sum()

    @pytest.mark.parametrize("approximation", APPROXIMATIONS)
    def test_scores_that_are_not_kept(self, few_exact, monkeypatch, approximation):
        X = table()
        fitted = clone(approximation).fit(X)
        model = KernelPCA(3, kernel=fitted, fit_inverse_transform=True)
        scores = model.fit_transform(X)
        expected = model.inverse_transform(scores)
        monkeypatch.setattr(featured, "eigenvectors", lambda found, factors: None)
        assert_allclose(clone(model).set_params(kernel=fitted).fit_transform(X), scores, atol=1e-7)
        assert_allclose(
            clone(model).set_params(kernel=fitted).fit(X).inverse_transform(scores),
            expected,
            atol=1e-3,
        )

    def test_sparse_rows(self, few_exact):
        X = scipy.sparse.random_array((700, 30), density=0.1, random_state=0, format="csr")
        model = KernelPCA(4, kernel=Nystroem(RBF(0.5), 40, random_state=0), random_state=0)
        model.set_params(fit_inverse_transform=True)
        sparse, dense = clone(model).fit(X), clone(model).fit(X.toarray())
        scores = np.zeros((3, 4))
        assert sparse.inverse_transform(scores).shape == (3, 30)
        assert dense.inverse_transform(scores).shape == (3, 30)

    @pytest.mark.slow
    def test_landmarks_follow_the_memory(self, few_exact):
        X = table(4000)
        model = KernelPCA(2, kernel=NYSTROEM, fit_inverse_transform=True)
        counts = []
        for budget in ("20MB", "200MB", "1GB"):
            with gramian.config_context(memory_budget=budget, n_threads=2):
                counts.append(len(clone(model).fit(X)._pre_images.approximation.landmarks_))
        assert 100 < counts[0] < counts[1] == counts[2] == int(4000**0.5 * np.log(4000))
        wide = scipy.sparse.random_array((600, 50_000), density=1e-4, random_state=0, format="csr")
        with (
            gramian.config_context(memory_budget="50MB"),
            pytest.raises(MemoryBudgetError, match="pre-images of 50000 columns"),
        ):
            clone(model).fit(wide)

    def test_bad_alpha(self):
        with pytest.raises(ValueError, match="alpha of KernelPCA must be a positive number"):
            KernelPCA(fit_inverse_transform=True, alpha=0).fit(table(20))


def test_blocks_with_links_in_batches():
    """A core, and rows whose part has none in some batch."""
    rng = np.random.default_rng(0)
    Z = [rng.standard_normal((n, 2)) for n in (30, 40)]
    S = np.array([[2.0, 0.1, 0.3, 0.0], [0.1, 1.0, 0.2, 0.1], [0.3, 0.2, 3.0, 0.0], [0, 0.1, 0, 1]])
    factors = Factors([ArrayRows(z) for z in Z], BlockCore(S, [2, 2]))
    K = factors.dense()
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    one = Factors([ArrayRows(Z[0]), ArrayRows(Z[1][:0])], factors.core)
    two = Factors([ArrayRows(Z[0][:0]), ArrayRows(Z[1])], factors.core)
    first = Moments.over(one, None)
    moments = first.plus(Moments.over(two, None, first))
    found = moments.components(factors.core, 3)
    values = np.linalg.eigvalsh(K)[::-1]
    assert_allclose(found.values, values[:3])
    assert found.total == pytest.approx(np.trace(K))
    scores = factors.features_matmul(found.projection) - found.offset
    assert_allclose(scores.T @ scores, np.diag(values[:3]), atol=1e-9)
    assert_allclose(scores.mean(axis=0), 0.0, atol=1e-12)


class TestRowsThatDoNotVary:
    """Their variance is 0, however the kernel values are rounded; so are all that follows."""

    KERNELS = (
        RBF(0.1),
        gramian.Linear(),
        Polynomial(3, gamma=0.3),
        Nystroem(RBF(0.1), 5, random_state=0),
        Nystroem("linear", 5, random_state=0),
        RandomFourier(RBF(0.1), 10, random_state=0),
        BKA(RBF(0.1), 6, n_blocks=2, random_state=0),
        MEKA(RBF(0.1), 6, n_blocks=2, random_state=0),
    )

    @staticmethod
    def rows(value, n, dtype):
        return np.full((n, 3), value, dtype) * np.array([1.0, -1.7, 0.3], dtype)

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("how", ["fit", "partial_fit", "iterative"])
    @pytest.mark.parametrize("n_components", [2, None])
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_no_variance(self, kernel, n_components, how):
        exact = not isinstance(kernel, gramian.Approximation)
        if how == "iterative" and not (exact and n_components):
            return
        solver = "iterative" if how == "iterative" else "auto"
        for value, n, dtype in ((0.1, 101, "f8"), (7.77, 30, "f4"), (0.3, 3, "f8")):
            X = self.rows(value, n, dtype)
            pca = KernelPCA(n_components, kernel=kernel, solver=solver, random_state=0)
            if how == "partial_fit":
                pca.partial_fit(X[: n // 2 + 1]).partial_fit(X[n // 2 + 1 :])
            else:
                pca.fit(X)
            count = len(pca.eigenvalues_)
            assert count <= n_components if n_components else count == 0
            for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
                assert_array_equal(getattr(pca, name), np.zeros(count))
            assert_array_equal(pca.transform(X), np.zeros((n, count)))

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("n_components", [2, None])
    @pytest.mark.parametrize("kernel", [RBF(0.1), NYSTROEM])
    def test_their_pre_image_is_the_row(self, kernel, n_components, tmp_path):
        X = self.rows(0.7, 30, "f8")
        for rows in (X, scipy.sparse.csr_array(X)):
            pca = KernelPCA(n_components, kernel=kernel, fit_inverse_transform=True).fit(rows)
            assert_allclose(pca.inverse_transform(pca.transform(rows)), X)
        gramian.save(pca, tmp_path / "pca.gramian")
        again = gramian.load(tmp_path / "pca.gramian")
        assert_allclose(again.inverse_transform(again.transform(X[:4])), X[:4])

    def test_small_components_of_far_rows_are_kept(self):
        X = 1000.0 + 1e-3 * table(200)
        pca = KernelPCA(4, kernel=gramian.Linear()).fit(X)
        assert_allclose(pca.explained_variance_, PCA(4).fit(X).explained_variance_, rtol=1e-2)

    @pytest.mark.parametrize("landmarks", ["auto", "uniform", "rpcholesky"])
    def test_a_matrix_of_zeros(self, landmarks):
        kernel = Nystroem("linear", 5, landmarks=landmarks, random_state=0)
        with pytest.raises(ValueError, match=r"nothing to approximate: Linear\(\) is 0 for all"):
            KernelPCA(2, kernel=kernel).fit(np.zeros((30, 3)))


def test_iterations_on_few_rows_end_with_the_whole_space(rng):
    """40 rows leave no room for a fifth block of nine vectors; four are missing still."""
    X = rng.standard_normal((40, 5))
    found, exact = (
        KernelPCA(1, RBF(0.2), solver=solver, tol=0.0, random_state=0).fit(X)
        for solver in ("iterative", "direct")
    )
    assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=1e-12)
    assert_allclose(np.abs(found.transform(X)), np.abs(exact.transform(X)), atol=1e-9)
