"""Local: exact inside blocks, and nothing lost between them; what it takes and what it refuses."""

import pickle

import numpy as np
import pyarrow
import pyarrow.csv
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    KernelHuberRegressor,
    KernelJL,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelSVR,
    Laplacian,
    Local,
    MemoryBudgetError,
    Nystroem,
    RandomFourier,
    config_context,
    relative_error,
)
from gramian.testing import check_approximation, check_memory

KERNEL = RBF(0.3)
INNER = [KERNEL, Nystroem(KERNEL, 20, random_state=0)]


@pytest.fixture(name="X")
def rows(rng):
    return rng.standard_normal((150, 4))


def dense(local, X):
    """K̃ of training rows by its definition."""
    K = KERNEL(X)
    between = local.approximation_
    low = np.zeros_like(K) if between is None else between(X)
    return np.where(local.labels_[:, None] == local.labels_, K, low)


class TestMatrix:
    @pytest.mark.parametrize("inner", INNER)
    @pytest.mark.parametrize("partition", ["balanced", "kmeans", "spectral", "random"])
    def test_it_is_exact_inside_blocks_and_low_rank_between(self, X, inner, partition):
        local = Local(inner, 5, partition=partition, random_state=0).fit(X)
        K = local.factor(X).dense()
        if partition in ("balanced", "kmeans"):  # rows belong to the block of the nearest centre
            assert_allclose(K, dense(local, X), atol=1e-8)
        factors = local.factor_rows(local._trained_on() or gramian.as_rows(X))
        assert_allclose(np.diagonal(factors.dense()), 1.0, atol=1e-8)
        assert np.linalg.eigvalsh(K)[0] >= -1e-8

    @settings(max_examples=12)
    @given(
        n=st.integers(10, 60), blocks=st.integers(1, 6), gamma=st.floats(0.01, 10.0),
        m=st.integers(1, 10),
    )  # fmt: skip
    def test_the_error_is_never_above_that_between_blocks(self, n, blocks, gamma, m):
        X, kernel = np.random.default_rng(n).standard_normal((n, 3)), RBF(gamma)
        between = Nystroem(kernel, m, random_state=0).fit(X)
        local = Local(between, blocks, random_state=0).fit(X)
        K = kernel(X)
        error, alone = K - local(X), K - between(X)
        inside = local.labels_[:, None] == local.labels_
        assert np.abs(error[inside]).max() <= 1e-8
        assert_allclose(error[~inside], alone[~inside], atol=1e-8)
        assert np.linalg.norm(error) <= np.linalg.norm(alone) + 1e-8
        assert np.linalg.eigvalsh(local(X))[0] >= -1e-8 * n

    def test_new_rows_are_exact_against_their_own_block(self, X, rng):
        new = rng.standard_normal((40, 4))
        local = Local(INNER[1], 5, random_state=0).fit(X)
        nearest = ((new[:, None] - local.centres_) ** 2).sum(axis=2).argmin(axis=1)
        low, exact = local.approximation_(new, X), KERNEL(new, X)
        expected = np.where(nearest[:, None] == local.labels_, exact, low)
        assert_allclose(local(new, X), expected, atol=1e-8)

    @pytest.mark.parametrize("inner", INNER)
    def test_one_block_is_the_kernel(self, X, inner):
        local = Local(inner, 1).fit(X)
        assert_allclose(local(X), KERNEL(X), atol=1e-12)
        assert float(relative_error(local, X)) < 1e-12

    def test_one_block_for_each_row_is_what_is_between_and_the_diagonal(self, X):
        local = Local(INNER[1], len(X), random_state=0).fit(X)
        expected = local.approximation_(X)
        np.fill_diagonal(expected, 1.0)
        assert_allclose(local(X), expected, atol=1e-10)

    @pytest.mark.parametrize("inner", INNER)
    def test_features_have_its_inner_products(self, X, rng, inner):
        local, new = Local(inner, 5, random_state=0).fit(X), rng.standard_normal((9, 4))
        Z = local.transform(X)
        assert Z.shape == (150, local.n_components_)
        assert_allclose(Z @ Z.T, local(X), atol=1e-6)
        assert_allclose(local.transform(new) @ Z.T, local(new, X), atol=1e-6)


class TestRows:
    def test_float32(self, X):
        double = Local(INNER[1], 5, random_state=0).fit(X)
        single = Local(INNER[1], 5, random_state=0).fit(X.astype(np.float32))
        assert (single.labels_ == double.labels_).all()
        assert single.transform(X.astype(np.float32)).dtype == np.float32
        assert_allclose(single(X.astype(np.float32)), double(X), atol=1e-4)

    @pytest.mark.parametrize("inner", INNER)
    def test_sparse(self, X, inner):
        X[np.abs(X) < 0.5] = 0.0
        sparse = scipy.sparse.csr_array(X)
        both = [Local(inner, 5, random_state=0).fit(each) for each in (X, sparse)]
        assert_allclose(both[1](sparse), both[0](X), atol=1e-8)

    def test_labels_of_each_row(self, X):
        labels = np.repeat(["b", "a", "c"], 50)
        local = Local(KERNEL, partition=labels).fit(X)
        assert (local.block_sizes_ == 50).all()
        assert (local.labels_ == np.repeat([1, 0, 2], 50)).all()

    def test_precomputed_matrices_are_refused(self):
        with pytest.raises(ValueError, match=r"must be vectors; got a precomputed matrix"):
            Local("precomputed", 2).fit(np.eye(6))

    @pytest.mark.parametrize("ending", [".npy", ".csv"])
    def test_files_give_what_the_array_gives(self, X, tmp_path, ending):
        path = tmp_path / f"rows{ending}"
        if ending == ".npy":
            np.save(path, X)
        else:
            header = ",".join("abcd")
            np.savetxt(path, X, delimiter=",", header=header, comments="", fmt="%.17g")
        y = np.sin(X[:, 0])
        for inner in INNER:
            kernel = Local(inner, 4, random_state=0)
            array = KernelRidge(0.1, kernel=kernel).fit(X, y)
            file = KernelRidge(0.1, kernel=kernel).fit(gramian.open_rows(path), y)
            assert_allclose(file.dual_coef_, array.dual_coef_, atol=1e-8)
            assert_allclose(file.predict(gramian.open_rows(path)), array.predict(X), atol=1e-8)

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", [".npy", ".csv"])
    def test_files_larger_than_the_budget_are_refused(self, rng, tmp_path, ending):
        X = rng.standard_normal((22_000, 100)).round(1)
        path = tmp_path / f"rows{ending}"
        if ending == ".npy":
            np.save(path, X)
        else:
            pyarrow.csv.write_csv(pyarrow.table({f"c{i}": X[:, i] for i in range(100)}), path)
        with (
            config_context(memory_budget="16MB"),
            pytest.raises(MemoryBudgetError, match=r"training rows .* Local keeps the training"),
        ):
            KernelRidge(0.1, kernel=Local(RBF(0.1))).fit(gramian.open_rows(path), X[:, 0])


class TestParameters:
    @pytest.mark.parametrize(
        "inner",
        [
            MEKA(KERNEL, 20),
            BKA(KERNEL, 20),
            RandomFourier(KERNEL, 20),
            KernelJL(KERNEL, 20),
            Local(KERNEL, 3),
        ],
        ids=lambda inner: type(inner).__name__,
    )
    def test_approximations_that_may_exceed_the_kernel_are_refused(self, X, inner):
        words = f"positive semi-definite, such as Nystroem; got {type(inner).__name__}"
        with pytest.raises(ValueError, match=words):
            Local(inner, 3).fit(X)
        with pytest.raises(ValueError, match=words):
            KernelRidge(kernel=Local(inner, 3)).fit(X, X[:, 0])

    def test_a_fitted_approximation_is_used_as_it_is(self, X):
        between = Nystroem(KERNEL, 15, random_state=0).fit(X[:60])
        local = Local(between, 4, random_state=0).fit(X)
        assert local.approximation_ is between
        assert_allclose(local(X), dense(local, X), atol=1e-8)

    def test_an_approximation_that_is_not_fitted_stays_so(self, X):
        between = Nystroem(KERNEL, 15)
        local = Local(between, 4, random_state=0).fit(X)
        assert local.approximation_ is not between
        assert not hasattr(between, "n_components_")

    def test_the_number_of_blocks_is_chosen(self, rng):
        X = rng.standard_normal((2500, 2))
        with config_context(memory_budget="1GB", n_threads=1):
            assert 3 <= len(Local(KERNEL, random_state=0).fit(X).block_sizes_) <= 7
        with config_context(memory_budget="8MB", n_threads=1):
            small = Local(KERNEL, random_state=0).fit(X)
        assert small.block_sizes_.mean() < 100

    def test_more_blocks_than_rows(self, X):
        with pytest.raises(ValueError, match="n_blocks=151 exceeds the 150 rows"):
            Local(KERNEL, 151).fit(X)

    @pytest.mark.parametrize("bad", [0, -1, 2.5, "many"])
    def test_bad_numbers_of_blocks(self, X, bad):
        with pytest.raises(ValueError, match="n_blocks"):
            Local(KERNEL, bad).fit(X)

    def test_bad_partitions(self, X):
        with pytest.raises(ValueError, match="partition"):
            Local(KERNEL, 3, partition="halves").fit(X)
        with pytest.raises(ValueError, match="needs one for each of the 150 rows"):
            Local(KERNEL, 3, partition=np.zeros(9, dtype=int)).fit(X)

    def test_a_block_that_exceeds_the_budget_is_refused(self, rng):
        labels = np.repeat([0, 1], [3000, 100])
        with (
            config_context(memory_budget="20MB"),
            pytest.raises(MemoryBudgetError, match="more blocks"),
        ):
            Local(KERNEL, partition=labels).fit(rng.standard_normal((3100, 2)))


@pytest.mark.parametrize("inner", INNER)
def test_models_come_back_from_files_and_pickles(X, tmp_path, inner):
    local = Local(inner, 4, random_state=0).fit(X)
    gramian.save(local, tmp_path / "model.gram")
    for again in (gramian.load(tmp_path / "model.gram"), pickle.loads(pickle.dumps(local))):
        assert (again.labels_ == local.labels_).all()
        assert_allclose(again(X), local(X), atol=1e-12)
        assert_allclose(again.transform(X[:5]), local.transform(X[:5]), atol=1e-12)


@pytest.mark.parametrize(
    "local",
    [
        Local(KERNEL, 4),
        Local(Nystroem(KERNEL, 20), 4),
        Local(Laplacian(0.1), 3, partition="kmeans"),
        Local("rbf"),
    ],
)
def test_laws(local):
    check_approximation(local)


@pytest.mark.slow
@pytest.mark.parametrize("local", [Local(KERNEL, 4), Local(Nystroem(KERNEL, 20)), Local("rbf")])
def test_memory(local):
    check_memory(local)


class TestOtherTrainingRows:
    """A fitted Local keeps its training rows; a learner that is trained on others has its own."""

    @pytest.mark.parametrize("inner", INNER)
    @pytest.mark.parametrize("partition", ["balanced", np.arange(100) % 3])
    def test_a_learner_solves_for_its_own_rows(self, X, inner, partition):
        local = Local(inner, 4, partition=partition, random_state=0).fit(X[:100])
        before, y, T = local(X[:100]), np.sin(2 * X[50:, 0]), X[:60]
        model = KernelRidge(0.1, kernel=local, fit_intercept=False).fit(X[50:], y)
        used = model.approximation_
        a = np.linalg.solve(used(X[50:]) + 0.1 * np.eye(100), y)
        assert used.block_sizes_.sum() == 100
        assert_allclose(model.predict(T), used(T, X[50:]) @ a, atol=1e-8)
        assert_allclose(model.predict(X[50:]), used(X[50:]) @ a, atol=1e-8)
        assert_allclose(local(X[:100]), before)  # the approximation itself stays as it was

    def test_more_rows_of_lower_precision(self, X):
        local = Local(INNER[1], 4, random_state=0).fit(X[:60].astype(np.float32))
        model = KernelRidge(0.1, kernel=local).fit(X, np.sin(X[:, 0]))
        fresh = KernelRidge(0.1, kernel=INNER[1]).fit(X, np.sin(X[:, 0]))
        assert len(model.approximation_.labels_) == len(X)
        assert model.score(X, np.sin(X[:, 0])) >= fresh.score(X, np.sin(X[:, 0]))

    @pytest.mark.parametrize(
        "learner",
        [KernelKMeans(3, random_state=0), KernelPCA(2), KernelSVR(0.1), KernelHuberRegressor(0.1)],
        ids=lambda learner: type(learner).__name__,
    )
    def test_learners_do_not_depend_on_the_rows_of_the_approximation(self, X, learner):
        local = Local(INNER[1], 4, random_state=0).fit(X[:100])
        results = []
        for kernel in (local, local.trained_on(gramian.as_rows(X[:30]))):
            model = learner.set_params(kernel=kernel).fit(X[50:], np.sin(X[50:, 0]))
            predict = model.transform if isinstance(model, KernelPCA) else model.predict
            results.append(predict(X[:60]))
        assert_allclose(*results, atol=1e-10)

    def test_the_rows_count_in_the_memory_budget(self, rng):
        local = Local(RBF(0.005), 40, random_state=0).fit(rng.standard_normal((200, 100)))
        X = np.ones((22_000, 100))
        with (
            config_context(memory_budget="16MB"),
            pytest.raises(MemoryBudgetError, match=r"training rows .* Local keeps the training"),
        ):
            KernelRidge(0.1, kernel=local).fit(X, X[:, 0])
