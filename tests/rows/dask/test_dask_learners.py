"""Learners on rows of dask: in its threads, and on a cluster of two worker processes."""

from contextlib import nullcontext

import numpy as np
import pytest
from dask_examples import (
    ALPHA,
    APPROXIMATIONS,
    GROUPS,
    KERNEL,
    QUIET,
    D,
    N,
    X,
    Y,
    da,
    dask,
    refuse,
    spread,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import gramian
from gramian import (
    MEKA,
    Exact,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    OnlineKernelKMeans,
    as_rows,
)
from gramian.learners.kmeans import lloyd
from gramian.learners.kmeans.passes import Looks
from gramian.rows.dask.rows import DaskRows

pytestmark = QUIET

EVERYWHERE = [(name, 511, "threads") for name in APPROXIMATIONS]
EVERYWHERE += [("nystroem", N, "threads"), ("meka", 700, "cluster"), ("jl", 700, "cluster")]
WITH_ONLINE = [("nystroem", "threads"), ("meka", "threads"), ("jl", "cluster")]


@pytest.mark.slow
@pytest.mark.parametrize("name, chunk, scheduler", EVERYWHERE, indirect=["scheduler"])
def test_learners_are_those_of_numpy(name, chunk, scheduler):
    approximation, alpha = APPROXIMATIONS[name], ALPHA.get(name, 1e-3)
    data = spread(X, chunk)
    here = KernelKMeans(4, kernel=approximation, random_state=0).fit(X)
    there = KernelKMeans(4, kernel=approximation, random_state=0).fit(data)
    assert isinstance(there.labels_, da.Array)
    assert there.labels_.dtype == np.int32
    assert adjusted_rand_score(here.labels_, there.labels_) == 1.0
    assert_array_equal(here.labels_, there.labels_)
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-8)
    assert_allclose(there.counts_, here.counts_)
    # Labels of blocks that were drawn belong to the training rows, which a sum tells from others.
    with nullcontext() if name == "bka" else dask.config.set(scheduler=refuse):
        lazy = there.predict(spread(X)), there.transform(spread(X))
    assert all(isinstance(each, da.Array) for each in lazy)
    assert_array_equal(lazy[0], here.predict(X))
    assert_allclose(lazy[1], here.transform(X), atol=1e-6)
    plain = there.predict(X)
    assert type(plain) is np.ndarray
    assert_array_equal(plain, here.predict(X))

    # The approximation is fitted on dask's rows, and on NumPy's: to the same.
    mine, theirs = here.approximation_, there.approximation_
    ridge = KernelRidge(alpha, kernel=mine).fit(X, Y)
    spread_ridge = KernelRidge(alpha, kernel=theirs).fit(data, spread(Y, 500))
    assert type(spread_ridge.coef_) is np.ndarray
    size = np.abs(ridge.coef_).max()
    assert_allclose(spread_ridge.coef_, ridge.coef_, atol=1e-6 * size)
    assert_allclose(spread_ridge.predict(spread(X, 333)), ridge.predict(X), atol=1e-6)
    pca = KernelPCA(3, kernel=mine).fit(X)
    spread_pca = KernelPCA(3, kernel=theirs).fit(data)
    assert isinstance(spread_pca.eigenvectors_, da.Array)
    assert_allclose(spread_pca.eigenvalues_, pca.eigenvalues_, rtol=1e-8)
    assert_allclose(spread_pca.eigenvectors_, pca.eigenvectors_, atol=1e-7)
    assert_allclose(spread_pca.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-8)
    assert_allclose(spread_pca.transform(data), pca.transform(X), atol=1e-6)
    assert_allclose(theirs.transform(data), mine.transform(X), atol=1e-6)
    classes = KernelRidgeClassifier(alpha, kernel=mine).fit(X, GROUPS)
    spread_classes = KernelRidgeClassifier(alpha, kernel=theirs).fit(data, spread(GROUPS, 500))
    size = np.abs(classes.coef_).max()
    assert_allclose(spread_classes.coef_, classes.coef_, atol=1e-6 * size)
    assert_array_equal(spread_classes.predict(data), classes.predict(X))
    if (name, scheduler) not in WITH_ONLINE:
        return  # many passes over features, whatever they approximate
    online = OnlineKernelKMeans(kernel=mine, expected_clusters=4, random_state=0).fit(X)
    spread_online = OnlineKernelKMeans(kernel=theirs, expected_clusters=4, random_state=0).fit(data)
    assert spread_online.n_clusters_ == online.n_clusters_ > 1
    assert adjusted_rand_score(spread_online.labels_, online.labels_) == 1.0
    assert spread_online.inertia_ == pytest.approx(online.inertia_, rel=1e-6)


@pytest.mark.slow
def test_a_chunk_for_each_row():
    model = KernelKMeans(4, kernel=MEKA(KERNEL, 20, n_blocks=2), random_state=0)
    with np.errstate(all="raise"):
        here = clone(model).fit(X[:60]).labels_
        assert_array_equal(clone(model).fit(spread(X[:60], 1)).labels_, here)


def test_the_exact_matrix_and_its_default(scheduler):
    rows, y = X[:400], Y[:400]
    ridge = KernelRidge(0.1, kernel="rbf").fit(rows, y)
    there = KernelRidge(0.1, kernel="rbf").fit(spread(rows, 150), spread(y, 150))
    assert there.approximation_ is None
    assert_allclose(there.dual_coef_, ridge.dual_coef_, atol=1e-8)
    assert_allclose(there.predict(spread(rows, 90)), ridge.predict(rows), atol=1e-8)
    labels = KernelKMeans(4, kernel=Exact(KERNEL), random_state=0).fit(spread(rows, 150)).labels_
    assert isinstance(labels, da.Array)
    assert_array_equal(
        labels, KernelKMeans(4, kernel=Exact(KERNEL), random_state=0).fit(rows).labels_
    )
    pca = KernelPCA(2, kernel=KERNEL, fit_inverse_transform=True)
    scores = pca.fit_transform(spread(rows, 150))
    assert isinstance(scores, da.Array)
    assert_allclose(scores, clone(pca).fit_transform(rows), atol=1e-8)
    with gramian.config_context(memory_budget="10kB"), pytest.raises(MemoryError, match="Nystroem"):
        KernelRidge(0.1, kernel=Exact(KERNEL)).fit(spread(rows, 150), y)


class TestRidge:
    @pytest.mark.slow
    def test_every_way_to_solve(self, scheduler):
        weights = np.random.default_rng(0).random(N)
        approximation = Nystroem(KERNEL, 30, random_state=1).fit(X)
        for options in (
            {"alpha": 1e-3, "solver": "iterative"},
            {"alpha": "loo"},
            {"alpha": 1e-3, "validation_fraction": 0.2},
        ):
            model = KernelRidge(kernel=approximation, random_state=0, **options)
            here = clone(model).fit(X, Y, weights)
            there = clone(model).fit(spread(X), spread(Y), spread(weights))
            assert_allclose(there.predict(X), here.predict(X), atol=1e-6)
            assert_allclose(there.alpha_, here.alpha_)

    def test_batches(self):
        model = KernelRidge(1e-3, kernel=Nystroem(KERNEL, 20, random_state=0))
        here, there = clone(model), clone(model)
        for half in (slice(0, 1200), slice(1200, N)):
            here.partial_fit(X[half], Y[half])
            there.partial_fit(spread(X[half], 500), Y[half])
        assert_allclose(there.coef_, here.coef_, atol=1e-6)

    @pytest.mark.parametrize("classes", [np.arange(4), np.array(["n", "e", "s", "w"])])
    def test_classes(self, scheduler, classes):
        y = classes[GROUPS]
        kernel = Nystroem(KERNEL, 20, random_state=0)
        model = KernelRidgeClassifier(1e-3, kernel=kernel, class_weight="balanced")
        here, there = clone(model).fit(X, y), clone(model).fit(spread(X), spread(y))
        assert_array_equal(there.classes_, here.classes_)
        assert_allclose(there.coef_, here.coef_, atol=1e-8)
        with dask.config.set(scheduler=refuse):
            predicted = there.predict(spread(X))
        assert predicted.dtype == y.dtype
        assert_array_equal(predicted, here.predict(X))

    def test_targets_that_are_none(self):
        with pytest.raises(ValueError, match="inconsistent"):
            KernelRidge(kernel=APPROXIMATIONS["fourier"]).fit(spread(X), Y[:-1])
        bad = Y.copy()
        bad[7] = np.nan
        with pytest.raises(ValueError, match="finite"):
            KernelRidge(kernel=APPROXIMATIONS["fourier"]).fit(spread(X), spread(bad))


class TestKMeans:
    @pytest.mark.slow
    def test_weights(self, scheduler):
        weights = (np.arange(N) % 3).astype(float)
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0)
        here = clone(model).fit(X, sample_weight=weights)
        for given_weights in (weights, spread(weights, 500)):
            there = clone(model).fit(spread(X), sample_weight=given_weights)
            assert_array_equal(there.labels_, here.labels_)
            assert_allclose(there.counts_, here.counts_)
        score = there.score(spread(X), sample_weight=weights)
        assert score == pytest.approx(here.score(X, sample_weight=weights))

    @pytest.mark.slow
    def test_batches_and_streams(self):
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], batch_size=300, random_state=0)
        assert_array_equal(clone(model).fit(spread(X)).labels_, clone(model).fit(X).labels_)
        here, there = clone(model), clone(model)
        for half in (slice(0, 1200), slice(1200, N)):
            here.partial_fit(X[half])
            there.partial_fit(spread(X[half], 500))
        assert_array_equal(there.labels_, here.labels_)

    @pytest.mark.slow
    def test_a_stream_of_dp_means(self):
        model = OnlineKernelKMeans(0.7, kernel=APPROXIMATIONS["nystroem"], random_state=0)
        here, there = clone(model), clone(model)
        for half in (slice(0, 1200), slice(1200, N)):
            here.partial_fit(X[half])
            there.partial_fit(spread(X[half], 500))
        assert there.n_clusters_ == here.n_clusters_ > 1
        assert_array_equal(there.labels_, here.labels_)
        assert_allclose(there.centres_, here.centres_, atol=1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["nystroem", "bka"])
    def test_late_passes_look_at_rows_in_doubt(self, name, monkeypatch):
        """Each process picks out its own; without a margin all rows would be looked at."""
        rows = as_rows(np.random.default_rng(0).standard_normal((N, D)))  # no clusters: many passes
        approximation = clone(APPROXIMATIONS[name]).fit(rows)
        there = as_rows(spread(rows.data, 800))
        looked, products = [], Looks._products

        def counting(self, z):
            looked.append(len(z))
            return products(self, z)

        monkeypatch.setattr(Looks, "_products", counting)
        found = []
        for each in (rows, there):
            factors = approximation.factor_rows(each).persist()
            first = [approximation.factor_rows(rows).coordinates(np.arange(6))]
            looked.clear()
            (run,) = lloyd.on_factors(
                factors, factors.parts.place.constant(1.0), first, factors, max_iter=100, tol=0
            )
            found.append((run, sum(looked)))
        (run, some), (spread_run, own) = found
        assert len(run.history) > 15
        assert_allclose(spread_run.history, run.history, rtol=1e-10)
        assert_array_equal(spread_run.labels, run.labels)
        assert own < 0.6 * N * len(run.history)
        assert own < 1.5 * some

    def test_features_that_do_not_fit_are_computed_anew(self, scheduler):
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0)
        here = clone(model).fit(X).labels_
        with gramian.config_context(memory_budget="300kB"):
            rows = as_rows(spread(X))
            factors = clone(APPROXIMATIONS["nystroem"]).fit(rows).factor(rows)
            assert factors.persist() is factors
            assert_array_equal(clone(model).fit(rows).labels_, here)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "scheduler"),
        [("nystroem", "cluster"), ("meka", "threads")],
        indirect=["scheduler"],
    )
    def test_half_precision(self, name, scheduler):
        model = KernelKMeans(4, kernel=APPROXIMATIONS[name], half_precision=True, random_state=0)
        found = model.fit(spread(X)).labels_.compute()
        assert_array_equal(found, model.fit(X).labels_)
        factors = clone(APPROXIMATIONS[name]).fit(spread(X)).factor(spread(X))
        assert np.dtype(factors.persist(half=True).dtype) == np.float32


class TestPCA:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("kept", "scheduler"),
        [(True, "threads"), (False, "threads"), (False, "cluster")],
        indirect=["scheduler"],
    )
    def test_pre_images_of_many_rows(self, kept, scheduler, monkeypatch):
        monkeypatch.setattr("gramian.learners.pca.pre_images._exactly", lambda scores, rows: False)
        if not kept:
            monkeypatch.setattr("gramian.learners.pca.featured.keeps_vectors", lambda *sizes: False)
        model = KernelPCA(4, kernel=APPROXIMATIONS["meka"], fit_inverse_transform=True)
        here, there = clone(model).fit(X), clone(model).fit(spread(X))
        scores = here.transform(X)
        restored = there.inverse_transform(spread(scores))
        assert isinstance(restored, da.Array)
        assert_allclose(restored, here.inverse_transform(scores), atol=1e-5)

    def test_batches(self):
        model = KernelPCA(3, kernel=APPROXIMATIONS["nystroem"])
        here, there = clone(model), clone(model)
        for half in (slice(0, 1200), slice(1200, N)):
            here.partial_fit(X[half])
            there.partial_fit(spread(X[half], 500))
        assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-8)
        assert_allclose(there.transform(X), here.transform(X), atol=1e-7)


def test_tensors_on_the_workers(scheduler):
    pytest.importorskip("torch")
    rows = DaskRows(spread(X), device="cpu")
    for name in ("nystroem", "meka") if scheduler == "threads" else ():
        model = KernelKMeans(4, kernel=APPROXIMATIONS[name], random_state=0)
        there = clone(model).fit(rows)
        assert_array_equal(there.labels_, clone(model).fit(X).labels_)
        assert_array_equal(there.predict(rows), there.labels_)
    kernel = Nystroem(KERNEL, 20, random_state=0)
    here = KernelRidge(1e-3, kernel=kernel).fit(X, Y)
    there = KernelRidge(1e-3, kernel=kernel).fit(rows, Y)
    assert_allclose(there.coef_, here.coef_, atol=1e-6)
    assert_allclose(there.predict(rows), here.predict(X), atol=1e-6)
    if scheduler == "cluster":
        return
    pca = KernelPCA(2, kernel=kernel)
    assert_allclose(clone(pca).fit_transform(rows), clone(pca).fit_transform(X), atol=1e-6)


def test_a_device_is_for_rows_of_one_process(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")
    model = KernelKMeans(4, kernel=clone(APPROXIMATIONS["nystroem"]), random_state=0)
    monkeypatch.setattr("gramian.backend.config.device", lambda: "cpu")
    assert isinstance(model.fit(spread(X)).labels_, da.Array)
    with pytest.raises(ValueError, match="was fitted on cpu, where dask rows cannot be moved"):
        model.fit(X).predict(spread(X))


@pytest.mark.slow
def test_models_are_saved_with_their_labels(tmp_path):
    model = KernelKMeans(4, kernel=APPROXIMATIONS["meka"], random_state=0).fit(spread(X))
    gramian.save(model, tmp_path / "model.gramian")
    again = gramian.load(tmp_path / "model.gramian")
    assert type(again.labels_) is np.ndarray
    assert_array_equal(again.labels_, model.labels_)
    assert_array_equal(again.predict(X), model.predict(X))
