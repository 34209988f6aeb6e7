"""Rows and settings: budgets, threads, progress; every kind of data is in test_laws.py."""

import os
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import DataConversionWarning
from threadpoolctl import threadpool_info

import gramian
from gramian import (
    RBF,
    ArrayRows,
    FeatureRows,
    Gram,
    MemoryBudgetError,
    config_context,
    get_config,
    set_config,
)
from gramian.backend.config import format_bytes, free_memory, memory_budget, n_threads, parse_bytes
from gramian.backend.threads import one_blas_thread
from gramian.rows import even_spans
from gramian.rows.arrays import far_apart
from gramian.rows.reading import as_labels


@given(start=st.integers(0, 50), n=st.integers(0, 500), most=st.integers(1, 80))
def test_spans_cover_all_rows_once(start, n, most):
    spans = even_spans(start, start + n, most)
    assert [i for a, b in spans for i in range(a, b)] == list(range(start, start + n))
    assert all(0 < b - a <= most for a, b in spans)


@given(count=st.integers(0, 200), threads=st.integers(2, 9))
def test_threads_that_take_spans_in_turns_work_far_apart(count, threads):
    order = far_apart(range(count), threads)
    assert sorted(order) == list(range(count))
    share = -(-count // threads)
    assert all(abs(i - j) >= share - 1 for i, j in pairwise(order))
    assert far_apart(range(count), 1) == list(range(count))


def test_blocks_keep_the_budget(rng):
    rows = ArrayRows(rng.standard_normal((1000, 10)))
    largest = []
    with config_context(memory_budget=20_000, n_threads=2):
        rows.sum(lambda x: largest.append(len(x)) or x.sum(), row_bytes=20)
    assert max(largest) * (80 + 20) * 2 <= 20_000
    assert len(largest) > 8


def test_large_results_come_from_many_rows():
    rows = ArrayRows(np.empty((100_000, 3000)))
    with config_context(memory_budget="20GB"):
        assert rows._blocking(0, 8 * 500**2).rows < 1000 <= rows._blocking(0, 8 * 3000**2).rows
    with config_context(memory_budget="100MB", n_threads=2):
        assert rows._blocking(0, 8 * 3000**2).rows < 1000


def test_sums_in_stretches_of_blocks_are_those_of_single_blocks(rng):
    X = rng.standard_normal((40_000, 3)) * 10.0 ** rng.integers(-6, 6, (40_000, 1))
    weights = rng.exponential(1.0, len(X))

    def total(result_bytes):
        sizes = []

        def function(x, w):
            sizes.append(len(x))
            return x.T @ w, x.sum(axis=0)

        with config_context(memory_budget=500_000, n_threads=2):
            found = ArrayRows(X).sum(function, weights, result_bytes=result_bytes)
        return found, sorted(sizes)

    assert ArrayRows(X)._blocking(0).together == 1  # results of unknown size
    with config_context(memory_budget=500_000, n_threads=2):
        size = ArrayRows(X)._blocking(0, 48)
        assert size.together > 1
        # Results that wait take memory.
        assert ArrayRows(X).walk_bytes(0, 48) - ArrayRows(X).walk_bytes(0) >= 48 * size.together
        assert ArrayRows(X)._blocking(0, 20_000).together == 1
    (one, sizes), (many, others) = total(0), total(48)
    assert sizes == others and len(sizes) > 16
    for a, b in zip(one, many, strict=True):
        assert np.array_equal(a, b)


def test_any_thread_may_hold_blas_to_one():
    def limits():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    def hold():
        with one_blas_thread():
            seen.append(limits())

    seen, before = [], limits()
    for _ in range(2):
        hold()
        thread = threading.Thread(target=hold)
        thread.start()
        thread.join()
    assert seen == [{1}] * 4
    assert limits() == before


def test_a_budget_too_small_for_one_row(rng):
    rows = ArrayRows(rng.standard_normal((10, 1000)))
    with config_context(memory_budget="4kB"), pytest.raises(MemoryBudgetError, match="one row"):
        rows.sum(np.sum)
    with pytest.raises(MemoryBudgetError, match=r"shape \(10, 10\).*Use Gram"):  # noqa: SIM117
        with config_context(memory_budget=500):
            RBF(1.0)(rng.standard_normal((10, 2)))


def test_integers_and_files_are_not_copied_whole(tmp_path, rng):
    X = rng.integers(0, 255, (5000, 20), dtype=np.uint8)
    np.save(tmp_path / "x.npy", X)
    for data in (X, np.load(tmp_path / "x.npy", mmap_mode="r")):
        rows = gramian.as_rows(data)
        assert rows.data.dtype == np.uint8
        assert rows.dtype == np.float32, "bytes need no more"
        kept = rows.persist()
        assert kept.data.dtype == np.float32
        with config_context(memory_budget="100kB"):
            assert rows.persist() is rows, "what does not fit stays where it is"
    for wider in (np.int16, np.int64, bool, np.float64):
        assert gramian.as_rows(X.astype(wider)).dtype == np.float64
    floats = gramian.as_rows(X.astype(float))
    assert floats.persist() is floats


def test_sums_do_not_depend_on_threads(rng):
    rows = ArrayRows(rng.standard_normal((20_000, 30)))
    sums = []
    for threads in (1, 2, 5):
        with config_context(n_threads=threads):
            sums.append(rows.sum(lambda x: x.T @ x))
    assert (sums[0] == sums[1]).all() and (sums[0] == sums[2]).all()


def test_threads_work_and_blas_is_held(rng):
    rows = ArrayRows(rng.standard_normal((50_000, 40)))
    seen, blas = set(), set()

    def look(x):
        seen.add(threading.get_ident())
        blas.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return x.sum()

    before = [lib["num_threads"] for lib in threadpool_info()]
    with config_context(n_threads=3):
        rows.sum(look)
    assert 1 < len(seen) <= 3
    assert threading.get_ident() not in seen
    assert blas == {1}
    assert [lib["num_threads"] for lib in threadpool_info()] == before


def test_blas_is_held_in_a_single_block_too(rng):
    rows, blas = ArrayRows(rng.standard_normal((300, 40))), []

    def look(x, out=None):
        blas.extend(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return x

    rows.sum(look)
    FeatureRows(rows, look, 40, rows.dtype).take(np.arange(200))
    assert set(blas) == {1} and len(blas) >= 2


@pytest.mark.parametrize(("evaluations", "count"), [(2000, 4), (20, 1)])
def test_threads_share_few_rows_whose_features_take_long(rng, evaluations, count):
    sizes = []

    def features(x, out=None):
        sizes.append(len(x))
        return np.square(x)

    X = rng.standard_normal((1000, 40))
    rows = FeatureRows(ArrayRows(X), features, 40, X.dtype, row_evaluations=evaluations)
    with config_context(n_threads=2):
        assert_allclose(rows.collect(), X**2)
        assert len(sizes) == count and sum(sizes) == 1000
        assert_allclose(rows.sum(lambda z: z.sum(axis=0)), (X**2).sum(axis=0))
    assert len(sizes) == 2 * count and max(sizes) - min(sizes) <= 1


def test_labels_in_an_array_are_not_copied():
    for y in (np.array([1, 2]), np.array(["a", "b"]), np.array([True, False])):
        assert as_labels(y) is y
    with pytest.warns(DataConversionWarning):
        assert as_labels(np.array([[1], [2]])).shape == (2,)
    with pytest.raises(ValueError, match="1d array"):
        as_labels(np.ones((2, 2)))


def test_the_blas_limit_is_lifted_by_the_last(rng):
    before = [lib["num_threads"] for lib in threadpool_info()]
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    held = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert set(held) == {1}
    second.__exit__(None, None, None)
    assert [lib["num_threads"] for lib in threadpool_info()] == before


def test_an_error_in_a_block_reaches_the_caller(rng):
    rows = ArrayRows(rng.standard_normal((50_000, 40)))

    def fail(x):
        raise RuntimeError("in a block")

    for threads in (1, 3):
        with config_context(n_threads=threads), pytest.raises(RuntimeError, match="in a block"):
            rows.sum(fail)
    before = [lib["num_threads"] for lib in threadpool_info()]
    assert before == [lib["num_threads"] for lib in threadpool_info()]


class TestSettings:
    def test_context_and_process(self):
        unset = {"memory_budget": None, "n_threads": None, "device": None, "progress": False}
        assert get_config() == unset
        with config_context(memory_budget="1.5GB", n_threads=3):
            assert get_config()["memory_budget"] == 1_500_000_000 == memory_budget()
            assert n_threads() == 3
            with config_context(n_threads=1):
                assert get_config()["memory_budget"] == 1_500_000_000
        assert n_threads() >= 1
        set_config(n_threads=2)
        try:
            assert n_threads() == 2
        finally:
            set_config(n_threads=None)

    def test_default_budget_is_a_quarter_of_what_is_free(self, monkeypatch):
        assert 0 < free_memory() < 1e15
        monkeypatch.setattr(gramian.backend.config, "free_memory", lambda: 8_000)
        monkeypatch.setattr(gramian.backend.config, "_free", (-1.0, 0))
        assert memory_budget() == 2_000

    def test_joblib_workers_get_their_share(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        assert n_threads() == 1
        monkeypatch.delenv("OMP_NUM_THREADS")
        assert n_threads() >= len(os.sched_getaffinity(0)) // 2

    @pytest.mark.parametrize(
        ("text", "size"), [("2GB", 2e9), ("500 MiB", 500 * 2**20), ("64k", 64e3), (1e6, 1e6)]
    )
    def test_sizes(self, text, size):
        assert parse_bytes(text) == size

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"memory_budget": "much"}, ValueError, "Expected a size in bytes.*got 'much'"),
            ({"memory_budget": 0}, ValueError, "must be positive"),
            ({"n_threads": 0}, ValueError, "positive integer; got 0"),
            ({"n_threads": 1.5}, ValueError, "positive integer; got 1.5"),
            ({"progress": "yes"}, ValueError, "True or False"),
            ({"treads": 1}, TypeError, "no setting 'treads'.*n_threads"),
        ],
    )
    def test_wrong_ones(self, settings, error, message):
        before = get_config()
        with pytest.raises(error, match=message):
            set_config(**settings)
        assert get_config() == before

    def test_format(self):
        assert [format_bytes(size) for size in (3, 2e3, 3.2e9, 1e15)] == [
            "3 B", "2 kB", "3.2 GB", "1e+03 TB",
        ]  # fmt: skip


@pytest.mark.slow
def test_progress_is_shown_when_asked(rng, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the captured stream for a terminal
    monkeypatch.setenv("TERM", "xterm")
    X = rng.standard_normal((3000, 20))
    Gram(RBF(0.1), X).matmul(X)
    assert capfd.readouterr().err == ""
    with config_context(progress=True):
        gramian.KernelKMeans(3, random_state=0).fit(X)
    assert "kernel k-means" in capfd.readouterr().err


def test_gram_counts_and_checks(rng):
    X = rng.standard_normal((40, 3))
    gram = Gram(RBF(0.5), X)
    gram.diag()
    gram.diag()
    assert gram.evaluations == 40, "the diagonal is asked for once"
    gram.columns([1, 2, 3])
    assert gram.evaluations == 40 + 120
    gram.matmul(np.ones(40))
    assert gram.evaluations == 160 + 1600
    with pytest.raises(IndexError, match="from 0 to 39"):
        gram.columns([40])
    with pytest.raises(TypeError, match="row numbers"):
        gram.block([0.5], [1])
    with pytest.raises(ValueError, match="40 columns, so V needs as many rows"):
        gram.matmul(np.ones((39, 2)))
    with pytest.raises(ValueError, match="without separate columns"):
        Gram(RBF(0.5), X, X[:5]).diag()


def test_gram_keeps_only_small_matrices(rng):
    X = rng.standard_normal((300, 3))
    gram = Gram(RBF(0.5), X)
    kept = gram.persist()
    V = rng.standard_normal((300, 4))
    assert kept is not gram
    assert_allclose(kept.matmul(V), gram.matmul(V), atol=1e-11)
    with config_context(memory_budget="1MB"):
        assert gram.persist() is gram
