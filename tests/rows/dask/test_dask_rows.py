"""Rows of dask: the laws of rows, data frames, and what is sent to workers."""

import gc
import importlib
import sys

import numpy as np
import pytest
from dask_examples import APPROXIMATIONS, KERNEL, QUIET, D, N, X, Y, da, dask, dd, pd, spread
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_info

import gramian
from gramian import (
    ArrayRows,
    KernelKMeans,
    KernelRidge,
    Nystroem,
    RandomFourier,
    as_rows,
)
from gramian.rows.dask import calls
from gramian.rows.dask.rows import DaskRows
from gramian.testing import check_rows

pytestmark = QUIET


class TestRows:
    """The laws of rows, with NumPy's as the reference."""

    @pytest.mark.slow
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
        assert there.place.reference.dtype == here.place.reference.dtype
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

    @pytest.mark.slow
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


class TestFrames:
    FRAME = pd.DataFrame(X, columns=[f"column {i}" for i in range(D)])

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("scheduler", "known"), [("threads", True), ("cluster", False)], indirect=["scheduler"]
    )
    def test_columns_are_known_by_name(self, scheduler, known):
        frame = dd.from_pandas(self.FRAME, npartitions=3, sort=known)
        frame = frame if known else frame[frame["column 0"] > -1e9].clear_divisions()
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0).fit(frame)
        assert list(model.feature_names_in_) == list(self.FRAME.columns)
        here = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0).fit(self.FRAME)
        assert_array_equal(model.labels_, here.labels_)
        assert_array_equal(model.predict(frame), here.labels_)
        assert_array_equal(model.predict(self.FRAME), here.labels_)

    @pytest.mark.slow
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
        with pytest.raises(TypeError, match="only blocks"):
            rows.sum(lambda x: x.sum() + rows.shape[0])

    def test_tensors(self):
        torch = pytest.importorskip("torch")
        small, large = torch.ones(3), torch.ones(40_000)
        data, apart = calls.packed(lambda: (small, large, large))
        assert len(apart) == 1
        again = calls.Call(None, data).function([each.array for each in apart], "cpu")()
        assert all(torch.is_tensor(each) for each in again)
        assert [len(each) for each in again] == [3, 40_000, 40_000]


def test_dask_is_named_where_it_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.delitem(sys.modules, "gramian.rows.dask.rows")
    with pytest.raises(ImportError, match=r"gramian\[dask\]"):
        importlib.import_module("gramian.rows.dask.rows")
