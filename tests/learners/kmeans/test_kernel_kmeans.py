"""Kernel k-means at scale: centres by landmarks, mini-batches, streams, restarts on a sample."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score

import gramian
from gramian import (
    MEKA,
    RBF,
    ArrayRows,
    Exact,
    Factors,
    KernelKMeans,
    Linear,
    Nystroem,
    RandomFourier,
)
from gramian.backend import array_ops
from gramian.learners.kmeans import featured, lloyd, starts, swaps
from gramian.learners.kmeans.clustering import Run, best_few
from gramian.testing.comparing import LIBRARIES

KERNEL = RBF(0.05)


@pytest.fixture(name="X", scope="module")
def digits():
    return load_digits().data / 16.0


class TestCentresByLandmarks:
    @pytest.mark.parametrize(
        "approximation",
        [
            Nystroem(KERNEL, 40, random_state=0),
            Nystroem(KERNEL, 40, landmarks="leverage", random_state=0),
            Nystroem(KERNEL, 40, landmarks="uniform", rank=15, random_state=0),
            Nystroem(KERNEL, 40, landmarks="uniform", rank=15, truncation="core", random_state=0),
        ],
        ids=["k-means centres", "with probabilities", "rank", "rank of the core"],
    )
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_they_give_the_distances(self, X, approximation, dtype):
        X, new = X[:500].astype(dtype), X[500:700].astype(dtype)
        model = KernelKMeans(6, kernel=approximation, random_state=0).fit(X)
        landmarks, A = model.approximation_.landmarks_.points, model.centre_coefficients_
        assert A.shape == (40, 6)
        norms = np.einsum("ij,ij->j", A, KERNEL(landmarks.astype(float)) @ A)
        squared = 1.0 + norms - 2.0 * KERNEL(new.astype(float), landmarks.astype(float)) @ A
        assert (squared.argmin(axis=1) == model.predict(new)).all()
        tolerance = 1e-8 if dtype == np.float64 else 1e-4
        assert_allclose(squared.min(axis=1).mean(), model.risk(new), rtol=tolerance)
        own = model.approximation_.diag(new) - 1.0
        assert_allclose(squared + own[:, None], model.transform(new) ** 2, atol=10 * tolerance)
        assert (model.predict(X) == model.labels_).mean() > 0.998
        assert_allclose(model.transform(X).min(axis=1) ** 2 @ np.ones(500), model.inertia_, 1e-3)

    def test_exact_centres_are_means_of_the_rows(self, X):
        model = KernelKMeans(4, kernel=KERNEL, tol=0, random_state=0).fit(X[:200])
        members = model.labels_[:, None] == np.arange(4)
        assert_allclose(model.centre_coefficients_, members / members.sum(axis=0))
        assert_allclose(model.counts_, members.sum(axis=0))
        assert not hasattr(model, "centres_")

    def test_other_features(self, X):
        for approximation in (MEKA(KERNEL, 40, n_blocks=3), RandomFourier(KERNEL, 60)):
            model = KernelKMeans(4, kernel=approximation, tol=0, random_state=0).fit(X[:300])
            assert model.centres_.shape == (4, model.approximation_.n_components_)
            assert not hasattr(model, "centre_coefficients_")
            Z = model.approximation_.factor(X[:300]).coordinates(np.arange(300))
            means = [Z[model.labels_ == j].mean(axis=0) for j in range(4)]
            assert_allclose(model.centres_, means, atol=1e-10)
        exact = model.set_params(kernel=KERNEL).fit(X[:300])
        assert not hasattr(exact, "centres_")


class TestPasses:
    """Lloyd's steps on features: sums follow from the rows that moved."""

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_sums_are_those_of_the_labels(self, rng, dtype):
        Z = rng.standard_normal((3000, 20)).astype(dtype) + 5.0
        weights = rng.uniform(0.0, 2.0, 3000)
        weights[:300] = 0.0
        factors = Factors(ArrayRows(Z))
        first = [Z[300:305].astype(float), Z[400:405].astype(float)]
        runs = lloyd.on_factors(factors, weights, first, factors, max_iter=25, tol=0)
        assert all(len(run.history) > 10 for run in runs)
        for run in runs:
            members = (run.labels[:, None] == np.arange(5)) * weights[:, None]
            assert_allclose(run.masses, members.sum(axis=0), rtol=1e-12)
            assert_allclose(run.sums, members.T @ Z.astype(float), rtol=1e-12)
            squared = ((Z.astype(float) - run.centres[run.labels]) ** 2).sum(axis=1)
            tolerance = 1e-10 if dtype == np.float64 else 1e-5
            assert_allclose(run.inertia, weights @ squared, rtol=tolerance)
            assert (np.diff(run.history) <= 1e-6 * run.history[0]).all()

    def test_of_equal_restarts_the_first_is_taken(self):
        runs = [Run(np.zeros(1), trace=10.0, history=[h]) for h in (2.0, 1.0, 1.0 - 1e-13, 1.5)]
        assert best_few(runs, 1, np.float64)[0] is runs[1]

    @pytest.mark.parametrize(("dtype", "taken"), [(np.float64, 1), (np.float32, 0)])
    def test_what_counts_as_equal_depends_on_the_precision(self, dtype, taken):
        runs = [Run(np.zeros(1), trace=10.0, history=[h]) for h in (1.0 + 1e-6, 1.0)]
        assert best_few(runs, 1, dtype)[0] is runs[taken]

    @pytest.mark.parametrize("shape", [(1000, 300, 7), (257, 40, 3), (5, 4, 2), (600, 800, 90)])
    def test_tall_products(self, rng, shape):
        n, m, k = shape
        a, b = rng.standard_normal((n, m)), rng.standard_normal((m, k))
        assert_allclose(array_ops.matmul(a, b), a @ b, atol=1e-11)
        assert_allclose(array_ops.matmul(np.asfortranarray(a), b), a @ b, atol=1e-11)
        assert array_ops.matmul(a.astype(np.float32), b.astype(np.float32)).dtype == np.float32

    @pytest.mark.parametrize("k", [6, 40, 70])
    @pytest.mark.parametrize("library", ["numpy", *LIBRARIES])
    def test_sums_by_label(self, rng, library, k):
        xp = pytest.importorskip(library)
        x, w = rng.standard_normal((1300, 3)).astype(np.float32), rng.uniform(size=1300)
        labels, before = rng.integers(0, k - 1, (2, 1300))
        expected, masses = np.zeros((k, 3)), np.zeros(k)
        np.add.at(expected, labels, w[:, None] * x)
        np.add.at(masses, labels, w)
        given = [xp.asarray(a) for a in (x, labels, w)]
        sums = array_ops.sum_by_label(*given, k)
        assert sums.dtype == xp.float64
        assert_allclose(array_ops.to_numpy(sums), expected, rtol=1e-12)
        found = array_ops.mass_by_label(*given[1:], k)
        assert_allclose(array_ops.to_numpy(found), masses, rtol=1e-12)
        np.subtract.at(expected, before, w[:, None] * x)
        change = array_ops.sum_by_label(*given, k, xp.asarray(before))
        assert_allclose(array_ops.to_numpy(change), expected, rtol=1e-9, atol=1e-12)


class TestRestartsOnASample:
    def test_one_start_goes_on_over_all_rows(self, monkeypatch):
        X, _ = make_blobs(6000, centers=6, n_features=4, random_state=0)
        passes = []
        assign = lloyd.assign

        def counting(factors, weights, runs, *more):
            passes.append((factors.shape[0], len(runs)))
            return assign(factors, weights, runs, *more)

        monkeypatch.setattr(lloyd, "assign", counting)
        approximation = Nystroem(RBF(0.05), 50, random_state=0).fit(X)
        model = KernelKMeans(6, kernel=approximation, n_init=5, random_state=0).fit(X)
        assert {runs for n, runs in passes if n == 6000} == {1}
        assert max(runs for n, runs in passes if n == 2560) == 6  # 40 // 6 of few clusters
        assert sum(n == 6000 for n, _ in passes) == model.n_iter_
        features = approximation.transform(X)
        reference = KMeans(6, n_init=5, random_state=0).fit(features).inertia_
        assert model.inertia_ <= reference * (1 + 1e-3)

    def test_many_rows_afford_more_starts(self, rng, monkeypatch):
        begun = []

        def watching(run):
            def watched(factors, weights, first, *others, **options):
                begun.append(len(first))
                return run(factors, weights, first, *others, **options)

            return watched

        monkeypatch.setattr(starts, "COLUMNS", 0)  # not because there are few clusters
        for run in (lloyd.best_run, swaps.swapped_run):
            for module in (starts, featured):
                monkeypatch.setattr(module, run.__name__, watching(run))
        for n in (12_000, 30_000, 100_000):  # the sample has 2,800 rows
            X = rng.standard_normal((n, 1))
            approximation = Nystroem(Linear(), 1, random_state=0)
            KernelKMeans(2, kernel=approximation, n_init=1, random_state=0).fit(X)
        assert begun == [1, 1, 2, 1, 4, 1]

    def test_rows_weigh_in_the_sample_as_they_do(self, rng, monkeypatch):
        X, seen = rng.standard_normal((5000, 2)), []

        def watching(run):
            def watched(factors, weights, *others, **options):
                seen.append((factors.shape[0], weights.min(), weights.max()))
                return run(factors, weights, *others, **options)

            return watched

        for run in (lloyd.best_run, swaps.swapped_run):
            for module in (starts, featured):
                monkeypatch.setattr(module, run.__name__, watching(run))
        model = KernelKMeans(3, kernel=Nystroem(RBF(0.2), 20, random_state=0), random_state=0)
        model.fit(X, sample_weight=np.where(np.arange(5000) % 2, 2.0, 5.0))
        assert seen[0] == (3200, 2.0, 5.0)
        assert seen[-1] == (5000, 2.0, 5.0)
        assert len({*seen}) == 2

    def test_each_step_has_more_rows_than_the_one_before(self, rng, monkeypatch):
        seen = []

        def watching(run):
            def watched(factors, weights, first, *others, **options):
                sizes = factors.shape[0], factors.rank
                seen.append((run.__name__, sizes, len(first), weights.sum()))
                return run(factors, weights, first, *others, **options)

            return watched

        for run in (lloyd.raced, lloyd.best_run, swaps.swapped_run):
            monkeypatch.setattr(starts, run.__name__, watching(run))
        X = rng.standard_normal((21_000, 6))
        kernel = Nystroem(RBF(0.5), 200, landmarks="uniform", random_state=0)
        model = KernelKMeans(40, kernel=kernel, n_init=2, random_state=0)
        model.fit(X, sample_weight=np.full(len(X), 3.0))
        assert seen == [
            ("raced", (2560, 64), 2, 3.0 * 2560),
            ("swapped_run", (6000, 64), 1, 3.0 * 6000),
            ("best_run", (18_000, 64), 1, 3.0 * 18_000),
        ]

    def test_rows_without_weight_are_not_in_it(self, rng):
        X = rng.standard_normal((5000, 2))
        X[:2500] += 8.0
        weights = np.where(np.arange(5000) < 2500, 0.0, 1.0)
        approximation = Nystroem(RBF(0.2), 60, random_state=0).fit(X)
        for batch_size in (None, 500):
            model = KernelKMeans(
                3, kernel=approximation, batch_size=batch_size, tol=0, random_state=0
            )
            model.fit(X, sample_weight=weights)
            assert len(np.unique(model.labels_[2500:])) == 3
            assert_allclose(model.counts_.sum(), 2500)


class TestMiniBatches:
    @pytest.mark.slow
    def test_close_to_full_passes(self, X):
        approximation = Nystroem(KERNEL, 60, random_state=0).fit(X)
        full, batched = (
            [
                KernelKMeans(8, kernel=approximation, batch_size=size, random_state=s).fit(X)
                for s in range(3)
            ]
            for size in (None, 300)
        )
        best = min(model.inertia_ for model in full)
        assert all(best <= model.inertia_ * (1 + 1e-9) < 1.03 * best for model in batched)
        for model in batched:
            assert (model.predict(X) == model.labels_).all()
            assert_allclose(-model.score(X), model.inertia_)
            assert_allclose(model.counts_, np.bincount(model.labels_, minlength=8))
            assert model.n_iter_ == len(model.inertia_history_) > 10
            # Each batch estimates the objective of all rows.
            assert_allclose(np.mean(model.inertia_history_[-10:]), model.inertia_, rtol=0.03)

    def test_the_same_seed_gives_the_same(self, X):
        model = KernelKMeans(5, kernel=KERNEL, batch_size=100, random_state=3)
        first, second = clone(model).fit(X), clone(model).fit(X)
        assert isinstance(first.approximation_, Nystroem)  # few rows, and yet features
        assert_allclose(first.centres_, second.centres_, atol=0)
        other = clone(model).set_params(random_state=4).fit(X)
        assert abs(other.centres_[0] - first.centres_[0]).max() > 1e-3

    def test_features_of_all_rows_are_never_kept(self, X, monkeypatch):
        persist, sizes = gramian.Factors.persist, []

        def counting(self, *room, **how):
            sizes.append(self.shape[0])
            return persist(self, *room, **how)

        monkeypatch.setattr(gramian.Factors, "persist", counting)
        approximation = Nystroem(KERNEL, 30, random_state=0)
        KernelKMeans(4, kernel=approximation, batch_size=128, random_state=0).fit(X)
        assert max(sizes) == 128

    def test_more_batches_than_one_pass(self, X):
        model = KernelKMeans(4, kernel=KERNEL, batch_size=100, max_iter=1, tol=0, random_state=0)
        assert model.fit(X).n_iter_ <= 18 + 1  # 1,797 rows, and the pass for the labels

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_other_arrays(self, X, library):
        xp = pytest.importorskip(library)
        model = KernelKMeans(4, kernel=KERNEL, batch_size=100, random_state=0)
        ours, theirs = clone(model).fit(X[:600]), clone(model).fit(xp.asarray(X[:600]))
        assert_allclose(array_ops.to_numpy(theirs.labels_), ours.labels_)
        assert_allclose(theirs.inertia_, ours.inertia_, rtol=1e-6)

    def test_bad_input(self, X):
        with pytest.raises(ValueError, match="batch_size of KernelKMeans must be a positive int"):
            KernelKMeans(batch_size=0).fit(X)
        with pytest.raises(ValueError, match=r"needs features here.*use kernel='rbf'"):
            KernelKMeans(kernel=Exact("rbf"), batch_size=50).fit(X)


def on_the_plane(k, init, **parameters):
    """k-means in the plane: the features of a linear kernel are its coordinates, turned."""
    landmarks = np.array([[1.0, 0.0], [0.0, 1.0]])
    return KernelKMeans(
        k, kernel=Nystroem(Linear(), 2, landmarks=landmarks), init=init, **parameters
    )


def places(model):
    """The centres in the plane, from their distances to three points."""
    squared = model.transform(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])) ** 2
    return (squared[0] - squared[1:] + 1.0).T / 2.0


class TestStream:
    def test_running_means_by_hand(self):
        init = np.array([[0.0, 0.0], [10.0, 0.0]])
        model = on_the_plane(2, init)
        model.partial_fit([[0.0, 1.0], [1.0, 0.0], [9.0, 0.0]])
        assert_allclose(places(model), [[0.5, 0.5], [9.0, 0.0]], atol=1e-12)
        assert_allclose(model.counts_, [2, 1])
        assert list(model.labels_) == [0, 0, 1]
        assert_allclose(model.inertia_, 3.0)
        assert list(model.predict([[4.0, 0.0], [6.0, 0.0]])) == [0, 1]
        # (4, 0) is nearer to (0.5, 0.5); weights count as rows do.
        model.partial_fit([[4.0, 0.0], [11.0, 0.0]], sample_weight=[1.0, 3.0])
        assert_allclose(places(model), [[5 / 3, 1 / 3], [42 / 4, 0.0]], atol=1e-12)
        assert_allclose(model.counts_, [3, 4])
        assert_allclose(model.inertia_, 3.5**2 + 0.5**2 + 3 * 2.0**2)
        assert model.n_iter_ == 2

    def test_the_first_batch_is_a_step_of_lloyd(self, X):
        approximation = Nystroem(KERNEL, 30, random_state=0).fit(X)
        model = KernelKMeans(5, kernel=approximation, init=X[:5], tol=0)
        streamed = clone(model).set_params(kernel=approximation).partial_fit(X)
        # The centres after one step are those that the second pass of a fit refers to.
        fitted = clone(model).set_params(kernel=approximation, max_iter=2).fit(X)
        assert_allclose(streamed.centres_, fitted.centres_, atol=1e-12)

    def test_a_dead_centre_goes_to_the_farthest_row(self):
        model = on_the_plane(3, np.array([[0.0, 0.0], [10.0, 0.0], [500.0, 500.0]]))
        model.partial_fit([[0.0, 0.0], [10.0, 0.0], [10.0, 3.0], [10.0, -2.0]])
        assert_allclose(places(model)[2], [10.0, 3.0], atol=1e-11)
        assert_allclose(model.counts_, [1, 3, 0])
        model.partial_fit([[11.0, 5.0]])
        assert_allclose(places(model)[2], [11.0, 5.0], atol=1e-11)
        assert_allclose(model.counts_, [1, 3, 1])

    def test_a_stream_comes_close_to_a_fit(self, X):
        order = np.random.default_rng(0).permutation(len(X))
        model = KernelKMeans(8, kernel=KERNEL, random_state=0)
        for batch in np.array_split(X[order], 6):
            assert model.partial_fit(batch).predict(X[:5]).shape == (5,)
        assert_allclose(model.counts_.sum(), len(X))
        assert len(model.approximation_.landmarks_) == 100  # more than the root of a batch
        together = KernelKMeans(8, kernel=KERNEL, random_state=0).fit(X)
        assert model.risk(X) < 1.05 * together.risk(X)

    def test_it_goes_on_from_a_fit(self, X):
        approximation = Nystroem(KERNEL, 40, random_state=0)
        model = KernelKMeans(5, kernel=approximation, tol=0, random_state=0).fit(X[:1000])
        before, passes = model.centres_, model.n_iter_
        model.partial_fit(X[1000:])
        assert_allclose(model.counts_.sum(), len(X))
        assert abs(model.centres_ - before).max() < 0.1
        assert model.n_iter_ == passes + 1
        exact = KernelKMeans(5, kernel=KERNEL, random_state=0).fit(X[:300])
        assert exact.partial_fit(X[300:600]).counts_.sum() == 300
        assert exact.n_iter_ == 1

    def test_a_fitted_approximation_is_used_as_it_is(self, X):
        approximation = RandomFourier(KERNEL, 50, random_state=0).fit(X[:10])
        model = KernelKMeans(3, kernel=approximation, random_state=0).partial_fit(X[:100])
        assert model.approximation_ is approximation

    def test_a_bad_batch_changes_nothing(self, X):
        model = KernelKMeans(4, kernel=KERNEL, random_state=0).partial_fit(X[:200])
        before = dict(vars(model))
        for bad, error in ((np.full((5, 64), np.nan), "NaN"), (X[:9, :3], "3 features")):
            with pytest.raises(ValueError, match=error):
                model.partial_fit(bad)
        with pytest.raises(ValueError, match="one number for each of the 9 rows"):
            model.partial_fit(X[:9], sample_weight=[1.0])
        assert all(vars(model)[name] is value for name, value in before.items())
        with pytest.raises(ValueError, match="fewer rows than clusters"):
            KernelKMeans(4).partial_fit(X[:3])

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_other_arrays(self, X, library):
        xp = pytest.importorskip(library)
        models = [KernelKMeans(4, kernel=KERNEL, random_state=0) for _ in range(2)]
        for batch in (X[:200], X[200:300]):
            models[0].partial_fit(batch)
            models[1].partial_fit(xp.asarray(batch))
        assert type(models[1].centres_) is type(xp.asarray(X))
        assert_allclose(array_ops.to_numpy(models[1].centres_), models[0].centres_, atol=1e-6)

    def test_objects(self):
        words = ["kernel", "colonel", "lonely", "matrix", "tricks", "strict"]
        kernel = gramian.FunctionKernel(lambda a, b: len(set(a) & set(b)), pairwise=True)
        model = KernelKMeans(2, kernel=kernel, random_state=0).partial_fit(words)
        assert len(set(model.partial_fit(["kennel", "trim"]).predict(["lone", "trick"]))) == 2


class TestHalfPrecision:
    def test_labels_and_memory(self, rng):
        X = rng.normal(size=(3000, 5)) + 3 * rng.integers(4, size=(3000, 1))
        kernel = Nystroem(RBF(0.05), 60, random_state=0)
        plain = KernelKMeans(4, kernel=kernel, random_state=0).fit(X)
        half = KernelKMeans(4, kernel=kernel, half_precision=True, random_state=0).fit(X)
        assert np.mean(plain.labels_ != half.labels_) < 0.005
        assert half.inertia_ == pytest.approx(plain.inertia_, rel=1e-4)
        assert half.inertia_ != plain.inertia_
        wide = KernelKMeans(4, kernel=Nystroem(RBF(0.05), 1000))
        full, halved = (
            wide.set_params(half_precision=flag).estimate_memory(10**5, 5, dtype="float32")
            for flag in (False, True)
        )
        assert full - halved == 10**5 * 1000 * 2

    def test_where_features_of_some_rows_are_kept(self, rng):
        X = rng.normal(size=(9000, 5)) + 3 * rng.integers(4, size=(9000, 1))
        model = KernelKMeans(4, kernel=Nystroem(RBF(0.05), 60), random_state=0)
        plain = model.fit(X).labels_
        model.set_params(half_precision=True)
        with gramian.config_context(memory_budget="6MB", n_threads=1):
            assert "%" in str(model.estimate_memory(*X.shape))
            assert adjusted_rand_score(model.fit(X).labels_, plain) > 0.99

    def test_what_it_cannot_hold_is_an_error(self, rng):
        X = 1000 * rng.normal(size=(400, 3))
        model = KernelKMeans(2, kernel=Nystroem("linear", 3), half_precision=True)
        with pytest.raises(ValueError, match="half_precision=False"):
            model.fit(1000 * X)

    def test_libraries_without_it(self, rng):
        xp = pytest.importorskip("array_api_strict")
        model = KernelKMeans(2, kernel=Nystroem(RBF(0.1), 9), half_precision=True)
        with pytest.raises(ValueError, match="array_api_strict has no half precision"):
            model.fit(xp.asarray(rng.normal(size=(90, 3))))
