"""Rows of dask: in its threads, and on a cluster of two worker processes."""

import gc
import importlib
import os
import signal
import sys
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_info

import gramian
from gramian import (
    BKA,
    CRAFT,
    MEKA,
    RBF,
    SQUEAK,
    ArrayRows,
    Exact,
    Gram,
    KernelJL,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Nystroem,
    OnlineKernelKMeans,
    Polynomial,
    RandomFourier,
    as_rows,
)
from gramian.backend import array_ops
from gramian.command import main
from gramian.learners.kmeans import lloyd
from gramian.testing import check_rows

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'gramian[dask]'")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from gramian.rows.dask import calls  # noqa: E402
from gramian.rows.dask.rows import DaskRows  # noqa: E402

# A closed cluster leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed.*:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

N, D = 2400, 5
X, GROUPS = make_blobs(N, D, centers=4, cluster_std=1.0, random_state=3)
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
KERNEL = RBF(0.02)

APPROXIMATIONS = {
    "nystroem": Nystroem(KERNEL, 30, random_state=1),
    "rpcholesky": Nystroem(KERNEL, 30, landmarks="rpcholesky", rank=20, random_state=1),
    "meka": MEKA(KERNEL, 40, n_blocks=3, random_state=1),
    "bka": BKA(KERNEL, 40, n_blocks=3, partition="random", random_state=1),
    "fourier": RandomFourier(KERNEL, 60, random_state=1),
    "jl": KernelJL(KERNEL, 30, random_state=1),
    "craft": CRAFT(Polynomial(2, gamma=0.01), 30, random_state=1),
}
ALPHA = {"jl": 1e-8}  # its values are small


def new_cluster(**options):
    options = {"memory_limit": "1GB", **options}
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", **options
    )


@pytest.fixture(scope="session")
def running():
    with new_cluster() as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(running):
    with running.as_current():
        yield running


@pytest.fixture(params=["threads", "cluster"])
def scheduler(request):
    """Where dask computes."""
    if request.param == "cluster":
        request.getfixturevalue("client")
    yield request.param


def spread(a, chunk=900):
    return da.from_array(a, chunks=(chunk, *a.shape[1:]))


def refuse(*args, **kwargs):
    raise AssertionError("something was computed")


MAIN = ("nystroem", "meka", "fourier", "jl")
EVERYWHERE = [(name, 511, "threads") for name in APPROXIMATIONS]
EVERYWHERE += [(name, N, "threads") for name in MAIN]
EVERYWHERE += [(name, 700, "cluster") for name in MAIN]


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
    if scheduler == "cluster" and name != "nystroem":
        return  # many passes, which differ in the sums alone
    online = OnlineKernelKMeans(kernel=mine, expected_clusters=4, random_state=0).fit(X)
    spread_online = OnlineKernelKMeans(kernel=theirs, expected_clusters=4, random_state=0).fit(data)
    assert spread_online.n_clusters_ == online.n_clusters_ > 1
    assert adjusted_rand_score(spread_online.labels_, online.labels_) == 1.0
    assert spread_online.inertia_ == pytest.approx(online.inertia_, rel=1e-6)


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

    def test_batches_and_streams(self):
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], batch_size=300, random_state=0)
        assert_array_equal(clone(model).fit(spread(X)).labels_, clone(model).fit(X).labels_)
        here, there = clone(model), clone(model)
        for half in (slice(0, 1200), slice(1200, N)):
            here.partial_fit(X[half])
            there.partial_fit(spread(X[half], 500))
        assert_array_equal(there.labels_, here.labels_)

    def test_a_stream_of_dp_means(self):
        model = OnlineKernelKMeans(0.7, kernel=APPROXIMATIONS["nystroem"], random_state=0)
        here, there = clone(model), clone(model)
        for half in (slice(0, 1200), slice(1200, N)):
            here.partial_fit(X[half])
            there.partial_fit(spread(X[half], 500))
        assert there.n_clusters_ == here.n_clusters_ > 1
        assert_array_equal(there.labels_, here.labels_)
        assert_allclose(there.centres_, here.centres_, atol=1e-9)

    @pytest.mark.parametrize("name", ["nystroem", "bka"])
    def test_late_passes_look_at_rows_in_doubt(self, name, monkeypatch):
        """Each process picks out its own; without a margin all rows would be looked at."""
        rows = as_rows(np.random.default_rng(0).standard_normal((N, D)))  # no clusters: many passes
        approximation = clone(APPROXIMATIONS[name]).fit(rows)
        there = as_rows(spread(rows.data, 800))
        looked, matmul = [], array_ops.matmul

        def counting(z, right, *more):
            if right.shape[1] == 6:  # the centres
                looked.append(len(z))
            return matmul(z, right, *more)

        monkeypatch.setattr(array_ops, "matmul", counting)
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

    @pytest.mark.parametrize("name", ["nystroem", "meka"])
    def test_half_precision(self, name, scheduler):
        model = KernelKMeans(4, kernel=APPROXIMATIONS[name], half_precision=True, random_state=0)
        found = model.fit(spread(X)).labels_.compute()
        assert_array_equal(found, model.fit(X).labels_)
        factors = clone(APPROXIMATIONS[name]).fit(spread(X)).factor(spread(X))
        assert np.dtype(factors.persist(half=True).dtype) == np.float32


class TestSamplers:
    ALONE = ("csi", "leverage")  # these need whole columns, or all of the matrix
    CUT = ("squeak",)  # merges what the parts give

    @pytest.mark.parametrize("landmarks", sorted({*gramian.sampler_names()} - {*ALONE, *CUT}))
    def test_the_same_rows_are_chosen(self, landmarks):
        model = Nystroem(KERNEL, 12, landmarks=landmarks, random_state=5)
        here, there = clone(model).fit(X[:500]), clone(model).fit(spread(X[:500], 130))
        assert_allclose(there.landmarks_.points, here.landmarks_.points, atol=1e-12)
        assert there.evaluations_ == here.evaluations_

    @pytest.mark.parametrize("landmarks", ALONE)
    def test_those_that_cannot_say_so(self, landmarks):
        model = Nystroem(KERNEL, 12, landmarks=landmarks)
        with pytest.raises(ValueError, match=r"one process.*rpcholesky"):
            model.fit(spread(X), spread(Y))

    def test_dictionaries_are_merged(self, scheduler):
        rows = X[:1400].copy()
        far = [3, 500, 1100]  # whatever the cut, their scores are near 1
        rows[far] = 100.0 * np.eye(D)[:3]
        model = Nystroem(KERNEL, 60, landmarks=SQUEAK(ridge=0.5), random_state=0)
        for chunk in (1400, 400, 90):
            there = clone(model).fit(spread(rows, chunk))
            indices = there.landmarks_.indices
            assert len(indices) == len(set(indices)) == 60
            assert set(far) <= set(indices)
            assert_array_equal(there.landmarks_.points, rows[indices])
        error = gramian.relative_error(clone(model).fit(spread(X, 400)), X)
        plain = gramian.relative_error(clone(model).fit(X), X)
        assert float(error) < 1.5 * float(plain)


def test_errors_of_approximations():
    model = Nystroem(KERNEL, 12, random_state=0).fit(X)
    for norm in ("fro", "trace", "spectral"):
        here = gramian.relative_error(model, X[:500], norm)
        assert float(gramian.relative_error(model, spread(X[:500], 130), norm)) == pytest.approx(
            float(here), rel=1e-6
        )
    sampled = gramian.relative_error(model, spread(X), exact=False)
    assert float(sampled) == pytest.approx(float(gramian.relative_error(model, X, exact=False)))


def test_kernels_and_matrices():
    some = X[:40]
    lazy = KERNEL(spread(X), some)
    assert isinstance(lazy, da.Array)
    assert_allclose(lazy, KERNEL(X, some), atol=1e-12)
    gram, V = Gram(KERNEL, spread(X)), np.ones((N, 2))
    assert_allclose(gram.matmul(V), Gram(KERNEL, X).matmul(V), atol=1e-8)
    assert_allclose(gram.columns([3, 1000]), Gram(KERNEL, X).columns([3, 1000]), atol=1e-12)
    for name in ("nystroem", "meka"):
        model = clone(APPROXIMATIONS[name]).fit(X)
        assert_allclose(model(spread(X), some), model(X, some), atol=1e-10)


class TestFrames:
    FRAME = pd.DataFrame(X, columns=[f"column {i}" for i in range(D)])

    @pytest.mark.parametrize("known", [True, False])
    def test_columns_are_known_by_name(self, scheduler, known):
        frame = dd.from_pandas(self.FRAME, npartitions=3, sort=known)
        frame = frame if known else frame[frame["column 0"] > -1e9].clear_divisions()
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0).fit(frame)
        assert list(model.feature_names_in_) == list(self.FRAME.columns)
        here = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0).fit(self.FRAME)
        assert_array_equal(model.labels_, here.labels_)
        assert_array_equal(model.predict(frame), here.labels_)
        assert_array_equal(model.predict(self.FRAME), here.labels_)

    def test_empty_partitions_and_targets(self):
        frame = dd.from_pandas(self.FRAME.assign(y=Y), npartitions=6)
        later = frame[frame["column 0"] > np.median(X[:, 0])]
        later = later[later["column 1"] < 0]
        nothing = dd.concat([later[later["y"] > 1e9], later])
        columns = list(self.FRAME.columns)
        model = KernelRidge(0.1, kernel=Nystroem(KERNEL, 10, random_state=0))
        there = clone(model).fit(nothing[columns], nothing["y"])
        whole = nothing.compute()
        here = clone(model).fit(whole[columns], whole["y"])
        assert_allclose(there.coef_, here.coef_, atol=1e-8)

    def test_text_is_refused(self):
        frame = dd.from_pandas(self.FRAME.assign(town="here"), npartitions=2)
        with pytest.raises(ValueError, match="'town'"):
            KernelKMeans(2).fit(frame)
        with pytest.raises(ValueError, match="names"):
            KernelKMeans(2, kernel=Nystroem(KERNEL, 5)).fit(self.FRAME).predict(
                dd.from_pandas(self.FRAME.rename(columns={"column 0": "other"}), npartitions=2)
            )


def test_unknown_sizes_of_chunks(scheduler):
    unknown = spread(X)[spread(X[:, 0]) > 0]
    assert np.isnan(unknown.shape[0])
    rows = as_rows(unknown)
    assert rows.shape == (int((X[:, 0] > 0).sum()), D)
    assert np.isnan(unknown.shape[0]), "the user's array stays as it is"
    assert_allclose(rows.collect(), X[X[:, 0] > 0])


def test_what_is_no_table(client):
    with pytest.raises(ValueError, match="2D"):
        as_rows(spread(X[:, 0]))
    with pytest.raises(TypeError, match="dask array or dataframe"):
        as_rows(dask.delayed(X))
    with pytest.raises(ValueError, match="Complex"):
        as_rows(spread(X + 1j))
    with pytest.raises(ValueError, match="minimum of 2"):
        KernelKMeans(1).fit(spread(X[:1]))
    bad = X.copy()
    bad[1234, 2] = np.inf
    before = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0).fit(X)
    state = dict(vars(before))
    with pytest.raises(ValueError, match="row 1234, column 2"):
        before.fit(spread(bad))
    assert vars(before) == state or all(vars(before)[k] is v for k, v in state.items())


class TestPCA:
    @pytest.mark.parametrize("kept", [True, False])
    def test_pre_images_of_many_rows(self, kept, scheduler, monkeypatch):
        monkeypatch.setattr("gramian.learners.pca.pre_images._exactly", lambda scores, rows: False)
        if not kept:
            monkeypatch.setattr(KernelPCA, "_keeps_vectors", lambda self, n, k, room: False)
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


class TestMemory:
    """What grows with the rows is where they are; what does not counts here."""

    def test_rows_do_not_count(self):
        rows = as_rows(da.zeros((10**9, 20), chunks=(10**7, 20), dtype=np.float32))
        for learner in (KernelKMeans(10), KernelRidge(1.0), KernelPCA(5), OnlineKernelKMeans()):
            learner.set_params(kernel=Nystroem(KERNEL, 1000))
            with gramian.config_context(memory_budget="1GB", n_threads=2):
                assert learner._estimate(rows).fits()

    def test_landmarks_do(self):
        with gramian.config_context(memory_budget="20MB"), pytest.raises(MemoryError, match="budg"):
            KernelKMeans(4, kernel=Nystroem(KERNEL, 2000)).fit(spread(X))

    def test_the_budget_of_each_worker(self, client):
        rows = as_rows(spread(X))
        with gramian.config_context(memory_budget="50MB"):
            assert rows.place.room() == 100_000_000
        free = rows.place.room()  # of two workers of 1 GB, up to where dask writes to disk
        assert 0.2e9 < free < 1.2e9


def test_bytes_of_a_pass_do_not_grow_with_the_rows(client):
    """By the workers' own counters. Now and then dask moves a chunk: the middle pass counts."""
    k, m, chunk = 4, 30, 20_000
    approximation = clone(APPROXIMATIONS["nystroem"]).fit(X)

    def moved(chunks):
        rows = as_rows(spread(np.resize(X, (chunks * chunk, D)), chunk).persist())
        factors, weights = approximation.factor_rows(rows).persist(), rows.place.constant(1.0)
        first = factors.coordinates(np.arange(k))
        doubt, run = lloyd.Doubt(factors), lloyd.Run(lloyd.no_labels(weights), means=first)
        lloyd.assign(factors, weights, [run], True, doubt)
        counts = [sent()]
        for _ in range(7):
            run.means = run.means + 1e-3
            doubt.move(run)
            lloyd.assign(factors, weights, [run], False, doubt)
            counts.append(sent())
        return np.median(np.diff(counts))

    def sent():
        counted = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        return sum(counted.values())

    small, large = moved(4), moved(12)
    sums = 8 * k * (m + 1)
    assert 0 < large < 2 * small
    assert large < 10 * sums  # of two workers; messages have their own size


class TestRows:
    """The laws of rows, with NumPy's as the reference."""

    @settings(max_examples=15)
    @given(
        chunks=st.lists(st.integers(1, 20), min_size=1, max_size=5),
        seed=st.integers(0, 99),
        dtype=st.sampled_from([np.float64, np.float32, np.uint8, np.int64]),
    )
    def test_laws(self, chunks, seed, dtype):
        rng = np.random.default_rng(seed)
        n = sum(chunks)
        data = rng.integers(0, 9, (n, 3)).astype(dtype)
        here, there = ArrayRows(data), DaskRows(da.from_array(data, chunks=(tuple(chunks), 3)))
        assert there.shape == here.shape
        assert there.dtype == here.dtype
        assert there.example().dtype == here.example().dtype
        numbers = np.sort(rng.integers(n, size=7))
        w, labels = rng.random(n), rng.integers(3, size=n)

        def double(x, v, out):
            return x[:, 0] * v

        def total(x, v, i):
            return (x.T @ x, v @ x), np.asarray([i.start + i.stop >= 0])

        def both(x, v, s):
            s += v
            return v @ x

        assert_allclose(there.map(double, w), here.map(double, w))
        assert_allclose(there.sum(lambda x, v: v @ x, w), here.sum(lambda x, v: v @ x, w))
        assert there.map(double, w).dtype == here.map(double, w).dtype
        assert_allclose(there.take(numbers[::-1]), data[numbers[::-1]])
        assert there.take([]).shape == (0, 3)
        assert_allclose(there.choose(numbers).collect(), data[numbers])
        assert_allclose(there.collect(), data)
        assert_allclose(there.persist().collect(), data)
        split = [each.place.split(each, labels, 4) for each in (here, there)]
        for mine, theirs in zip(*split, strict=True):
            assert_allclose(theirs.collect(), mine.collect())
        state = np.zeros(n)
        expected, (same,) = here.sum(both, w, state=[state])
        assert same is state
        result, (written,) = there.sum(both, w, state=[np.zeros(n)])
        assert_allclose(result, expected)
        assert_allclose(written, w)
        assert_allclose(there.place.constant(2.0), here.place.constant(2.0))
        with pytest.raises(IndexError):
            there.take([n])

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
    def test_what_holds_for_all_rows(self, dtype):
        data = np.random.default_rng(0).integers(0, 9, (90, 5)).astype(dtype)
        check_rows(DaskRows(spread(data, 40)), data)

    def test_parts(self, scheduler):
        def described(rows, number):
            return number, rows.shape, float(rows.collect()[0, 0])

        expected = [(start, (min(700, N - start), D)) for start in range(0, N, 700)]
        rows = as_rows(spread(X, 700))
        parts = rows.place.by_parts(rows, lambda: described)
        assert parts == [(start, shape, X[start, 0]) for start, shape in expected]
        model = RandomFourier(KERNEL, 8, random_state=0).fit(X)
        (features,) = model.factor(spread(X, 700)).parts
        assert [part[:2] for part in features.place.by_parts(features, lambda: described)] == [
            (start, (length, 8)) for start, (length, _) in expected
        ]
        here = as_rows(X)
        assert here.place.by_parts(here, lambda: described) is None

    def test_many_chosen_rows_stay_where_they_are(self, monkeypatch, scheduler):
        monkeypatch.setattr("gramian.rows.dask.rows.GATHERED_BYTES", 0)
        numbers = np.arange(1, N, 3)
        chosen = as_rows(spread(X)).choose(numbers)
        assert isinstance(chosen, DaskRows)
        assert_allclose(chosen.collect(), X[numbers])
        assert_allclose(chosen.sum(lambda x: x.sum(axis=0)), X[numbers].sum(axis=0))

    def test_wide_results_come_in_small_chunks(self, monkeypatch):
        monkeypatch.setattr("gramian.rows.dask.places.CHUNK_BYTES", 10_000)
        features = RandomFourier(KERNEL, 50, random_state=0).fit(X).transform(spread(X, N))
        assert max(features.chunks[0]) * 50 * 8 <= 10_000
        kmeans = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0)
        assert_array_equal(clone(kmeans).fit(spread(X, N)).labels_, clone(kmeans).fit(X).labels_)

    def test_one_thread_for_each_task(self, scheduler):
        def threads(x):
            numpys = [each for each in threadpool_info() if "numpy" in each["filepath"]]
            blas = max(each["num_threads"] for each in numpys)
            return np.asarray([blas, gramian.get_config()["n_threads"]])

        assert_array_equal(as_rows(spread(X, N)).sum(threads), [1, 1])

    def test_results_are_never_written_into(self):
        with pytest.raises(ValueError, match="lazy"):
            KERNEL(spread(X), X[:3], out=np.empty((N, 3)))


class TestCalls:
    def test_large_arrays_travel_once(self, client, monkeypatch):
        sent = []
        scatter = type(client).scatter
        monkeypatch.setattr(
            type(client),
            "scatter",
            lambda self, a, **o: sent.append(a.shape) or scatter(self, a, **o),
        )
        monkeypatch.setattr(calls, "LARGE_BYTES", 1000)
        rows, W = as_rows(spread(X)), np.ones((D, 100))
        for _ in range(3):
            rows.sum(lambda x: (x @ W).sum(axis=0))
        assert sent == [(D, 100)]
        W[0] = 2.0  # other numbers in the same memory
        assert_allclose(rows.sum(lambda x: (x @ W).sum(axis=0)), (X @ W).sum(axis=0))
        assert len(sent) == 2

    def test_lazy_results_keep_what_they_need(self, client, monkeypatch):
        monkeypatch.setattr(calls, "LARGE_BYTES", 1000)
        model = Nystroem(KERNEL, 30, random_state=0).fit(X)
        lazy = model.transform(spread(X))
        gc.collect()
        assert_allclose(lazy, model.transform(X), atol=1e-10)

    def test_rows_keep_chunks_on_the_workers(self, client):
        model = Nystroem(KERNEL, 30, random_state=0).fit(X)
        for shift in (0.0, 1.0):  # the chunks themselves, and what is made of them
            held = spread(X).persist()
            rows = as_rows(held + shift if shift else held)
            lazy = model.transform(held + shift if shift else held)
            del held
            gc.collect()
            assert_allclose(rows.collect(), X + shift)
            assert_allclose(lazy, model.transform(X + shift), atol=1e-10)

    def test_rows_never_travel(self, client):
        rows = as_rows(spread(X))
        with pytest.raises(TypeError, match="blocks alone"):
            rows.sum(lambda x: x.sum() + rows.shape[0])

    def test_tensors(self):
        torch = pytest.importorskip("torch")
        small, large = torch.ones(3), torch.ones(40_000)
        data, apart = calls.packed(lambda: (small, large, large))
        assert len(apart) == 1
        again = calls.Call(None, data).function([each.array for each in apart], "cpu")()
        assert all(torch.is_tensor(each) for each in again)
        assert [len(each) for each in again] == [3, 40_000, 40_000]


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
    with pytest.raises(ValueError, match="was fitted on cpu, from rows of one process"):
        model.fit(X).predict(spread(X))


def test_other_kernels_reach_the_workers(client):
    model = KernelPCA(2, kernel=Nystroem(Laplacian(0.1) + 0.5 * RBF("median"), 20, random_state=0))
    assert_allclose(clone(model).fit(spread(X)).transform(X), clone(model).fit(X).transform(X))


def test_models_are_saved_with_their_labels(tmp_path):
    model = KernelKMeans(4, kernel=APPROXIMATIONS["meka"], random_state=0).fit(spread(X))
    gramian.save(model, tmp_path / "model.gramian")
    again = gramian.load(tmp_path / "model.gramian")
    assert type(again.labels_) is np.ndarray
    assert_array_equal(again.labels_, model.labels_)
    assert_array_equal(again.predict(X), model.predict(X))


def test_dask_is_named_where_it_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.delitem(sys.modules, "gramian.rows.dask.rows")
    with pytest.raises(ImportError, match=r"gramian\[dask\]"):
        importlib.import_module("gramian.rows.dask.rows")


def _made(rows, columns, block_info=None):
    """Rows that no one keeps."""
    number = block_info[None]["chunk-location"][0]
    noise = np.random.default_rng(number).random((1000, columns), dtype=np.float32)
    noise += 4.0 * np.eye(4, columns, dtype=np.float32)[np.arange(1000) % 4]
    return np.tile(noise, (rows // 1000, 1))


def spilled(dask_scheduler):
    return sum(sum(w.metrics["spilled_bytes"].values()) for w in dask_scheduler.workers.values())


@pytest.mark.cluster
def test_more_data_than_a_worker_has_memory():
    limit, rows, columns, chunks = 540_000_000, 11_000, 200, 62
    data = da.map_blocks(
        _made, rows, columns, chunks=((rows,) * chunks, (columns,)), dtype=np.float32
    )
    assert data.nbytes > limit
    kernel = Nystroem(RBF(0.1), 10, landmarks="uniform", random_state=0)
    with new_cluster(memory_limit=limit) as cluster, distributed.Client(cluster) as client:
        model = KernelKMeans(4, kernel=kernel, max_iter=2, tol=1e-2, random_state=0).fit(data)
        expected = np.arange(rows) % 4
        assert adjusted_rand_score(expected, model.labels_[-rows:]) == 1.0
        ridge = KernelRidge(1.0, kernel=model.approximation_).fit(data, data[:, 0])
        error = (ridge.predict(data[:rows]) - data[:rows, 0]).std().compute()
        assert error < data[:rows, 0].std().compute() / 2
        assert client.run_on_scheduler(spilled) == 0


@pytest.mark.cluster
def test_a_worker_is_killed_in_the_middle(monkeypatch):
    killed, assign = [], lloyd.assign
    expected = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], tol=0, random_state=0).fit(X)
    with new_cluster() as cluster, distributed.Client(cluster) as client:

        def killing(factors, *arguments, **options):
            result = assign(factors, *arguments, **options)
            if factors.parts.arrays() is None and not killed:
                workers = client.run(os.getpid)
                killed.append(next(iter(workers.values())))
                os.kill(killed[0], signal.SIGKILL)
            return result

        monkeypatch.setattr(lloyd, "assign", killing)
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], tol=0, random_state=0)
        model.fit(spread(X, 300))
        assert killed
        assert_array_equal(model.labels_, expected.labels_)
        assert model.inertia_ == pytest.approx(expected.inertia_, rel=1e-9)


@pytest.mark.cluster
def test_a_scheduler_that_is_gone_is_an_error(monkeypatch):
    assign, raised = lloyd.assign, []
    patience = {"distributed.comm.timeouts.connect": "3s"}  # of dask itself, by default 30 s
    with dask.config.set(patience), new_cluster() as cluster, distributed.Client(cluster):

        def closing(factors, *arguments, **options):
            if factors.parts.arrays() is None:
                cluster.sync(cluster.scheduler.close)
            return assign(factors, *arguments, **options)

        monkeypatch.setattr(lloyd, "assign", closing)
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0)

        def fit():
            try:
                model.fit(spread(X))
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=fit, daemon=True)
        thread.start()
        thread.join(timeout=60)
        assert not thread.is_alive(), "it hangs"
        assert isinstance(raised[0], ConnectionError)
        assert "scheduler" in str(raised[0])
        assert not hasattr(model, "labels_")


class TestCommand:
    """``gramian cluster --scheduler``: workers read the files."""

    @pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
    def test_files(self, running, kind, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        rows = pd.DataFrame(X[:1200], columns=list("abcde"))
        if kind == "npy":
            np.save("rows.npy", rows.to_numpy())
        else:
            os.mkdir("rows")
            for i, part in enumerate((rows[:500], rows[500:])):
                getattr(part, f"to_{kind}")(f"rows/{i}.{kind}", index=False)
        data = "rows.npy" if kind == "npy" else "rows"
        monkeypatch.setattr("gramian.rows.dask.places.CHUNK_BYTES", 50_000)
        options = ["cluster", data, "--n-clusters", "4", "--approximation", "nystroem"]
        options += ["--scale", "standard", "--quiet", "-o"]
        assert main([*options, "here.csv"]) == 0
        address = running.scheduler.address
        there = [*options, "there.csv", "--model", "model.gramian", "--scheduler", address]
        assert main(there) == 0, capsys.readouterr().err
        labels = [pd.read_csv(f"{name}.csv")["cluster"] for name in ("here", "there")]
        assert_array_equal(*labels)
        assert_array_equal(gramian.load("model.gramian").predict(data), labels[0])

    def test_a_scheduler_that_is_not_there(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        np.save("rows.npy", X)
        monkeypatch.setattr("gramian.rows.dask.rows.PATIENCE", "1s")
        assert main(["cluster", "rows.npy", "--scheduler", "tcp://127.0.0.1:1"]) == 2
        assert "No dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err
        assert main(["cluster", "-", "--scheduler", "tcp://127.0.0.1:1"]) == 2
        assert "standard input" in capsys.readouterr().err
