"""Where rows are, and what a walk over them needs."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gramian
from gramian import ArrayRows, FeatureRows, Rows
from gramian.rows import JoinedRows, Walk

X = np.arange(24.0).reshape(8, 3)


def doubled(x, out=None):
    return 2 * x


@pytest.fixture(params=["array", "features", "joined"])
def rows(request):
    array = ArrayRows(X)
    kinds = {
        "array": array,
        "features": FeatureRows(array, doubled, 3, array.dtype),
        "joined": JoinedRows([ArrayRows(X[:3]), ArrayRows(X[3:])]),
    }
    return kinds[request.param]


class TestThisProcess:
    def test_arrays_with_an_entry_for_each_row(self, rows):
        assert_array_equal(rows.place.constant(2.0), np.full(8, 2.0))
        assert rows.place.align(range(8), np.float32).dtype == np.float32
        assert rows.place.column(3.0).shape == ()

    def test_groups(self, rows):
        labels = np.arange(8) % 2
        even, odd = rows.place.split(rows, labels, 2)
        assert_array_equal(even.collect(), rows.collect()[::2])
        assert_array_equal(odd.collect(), rows.collect()[1::2])
        assert rows.place.by_parts(rows, lambda: pytest.fail("one process has all rows")) is None

    def test_results_are_the_callers(self, rows):
        values = np.zeros(8)
        assert rows.place.here(rows) is rows
        assert rows.place.hand_back(values) is values is rows.place.hand_back_kept(values)
        assert rows.place.memory_to_hand_back((8, 2), np.float64) is None

    def test_room(self, rows):
        with gramian.config_context(memory_budget="40MB"):
            assert rows.place.room() == 40_000_000
            assert rows.place.share(None, True) == (20_000_000, True)
            with pytest.raises(MemoryError, match="a result"):
                rows.place.check_room(50_000_000, "a result", "Use less")

    def test_columns_grow_in_their_memory(self, rows):
        first = rows.place.empty_columns(2, np.float64)
        grown = rows.place.with_columns(first, 1, np.ones((8, 1)))
        assert grown is first
        assert_array_equal(grown[:, 1], np.ones(8))


class TestWalk:
    def test_defaults_follow_from_the_result(self):
        walk = Walk(width=5).for_map(np.float32)
        assert walk.dtype == np.float32
        assert walk.row_bytes == 20
        assert walk.ending == (5,)
        assert Walk().for_map(np.float64).row_bytes == 8
        assert Walk(row_bytes=0, width=5).for_map(np.float32).row_bytes == 0

    def test_unknown_options_are_errors(self, rows):
        with pytest.raises(TypeError, match="colour"):
            rows.map(lambda x, out: x[:, 0], colour="red")

    def test_blocks_as_they_are_stored(self):
        rows, seen = ArrayRows(X.astype(np.float16)), []

        def total(x):
            seen.append(x.dtype)
            return x.sum(dtype=np.float64)

        assert rows.sum(total) == rows.sum(total, stored=True) == X.sum()
        assert seen == [np.float32, np.float16]


def test_rows_are_narrow():
    public = {name for name in dir(Rows) if not name.startswith("_")}
    assert len(public | set(Rows.__annotations__)) <= 14
