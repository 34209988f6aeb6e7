"""Diagnostics of block approximations, against dense computations and direct fits."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    Exponential,
    FunctionKernel,
    Linear,
    Nystroem,
    config_context,
    relative_error,
)
from gramian.diagnostics import (
    Table,
    block_ranks,
    link_thresholds,
    partitions,
    principal_cosines,
    step_times,
)

SIZES = [30, 50, 40]
LABELS = np.repeat([2, 0, 5], SIZES)  # in the order of the sorted labels: 50, 30, 40 rows


@pytest.fixture(scope="module")
def X():  # noqa: N802
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    return np.repeat(centres, SIZES, axis=0) + 0.3 * rng.normal(size=(120, 2))


@pytest.fixture(scope="module")
def blocks(X):
    return [X[np.equal(LABELS, value)] for value in (0, 2, 5)]


class TestBlockRanks:
    @pytest.mark.parametrize("delta", [None, 1e-6, 1e-3])
    def test_are_those_of_the_dense_blocks(self, X, blocks, delta):
        kernel = RBF(1.0)
        found = block_ranks(kernel, X, LABELS, delta=delta)
        threshold = np.finfo(float).eps if delta is None else delta
        for s, x in enumerate(blocks):
            for t, y in enumerate(blocks):
                values = np.linalg.svd(kernel(x, y), compute_uv=False)
                above = values > max(len(x), len(y)) * values[0] * threshold
                # At the last digits two decompositions may count a value or two differently.
                off = 2 if delta is None else 0
                assert abs(found.numerical[s, t] - above.sum()) <= off
        assert_array_equal(found.rows, [50, 30, 40])
        assert found.allocated is None

    def test_of_a_linear_kernel_are_the_columns(self, X):
        assert_array_equal(block_ranks(Linear(), X, LABELS).numerical, np.full((3, 3), 2))

    def test_of_a_block_of_zeros_is_0(self):
        K = scipy.linalg.block_diag(np.ones((3, 3)), np.eye(2))
        found = block_ranks("precomputed", K, [0, 0, 0, 1, 1])
        assert_array_equal(found.numerical, [[1, 0], [0, 2]])

    def test_of_a_fitted_approximation(self, X):
        model = MEKA(RBF(1.0), 20, n_blocks=4, random_state=0).fit(X)
        found = block_ranks(model, X, delta=1e-6)
        given = block_ranks(model.kernel_, X, model.labels_, delta=1e-6)
        assert_array_equal(found.numerical, given.numerical)
        assert_array_equal(found.allocated, model.ranks_)
        assert found.numerical.shape == (4, 4)

    def test_of_sampled_rows_are_near_those_of_all(self, rng):
        X = rng.random((1600, 3))
        labels = np.arange(1600) % 2
        whole = block_ranks(RBF(1.0), X, labels, delta=1e-7, max_rows=800)
        some = block_ranks(RBF(1.0), X, labels, delta=1e-7, max_rows=200, random_state=1)
        assert_array_equal(whole.rows, [800, 800])
        assert_array_equal(some.rows, [200, 200])
        # With the sample's own 200 rows in the threshold they would be a third higher.
        assert_allclose(some.numerical, whole.numerical, rtol=0.1)
        again = block_ranks(RBF(1.0), X, labels, delta=1e-7, max_rows=200, random_state=1)
        assert_array_equal(some.numerical, again.numerical)

    @pytest.mark.parametrize("library", ["torch", "array_api_strict", "float32"])
    def test_of_any_rows(self, X, library):
        if library == "float32":
            rows = X.astype(np.float32)
            # Values of float32 rows are known to 1.2e-7: that is then the threshold.
            assert block_ranks(RBF(1.0), rows, LABELS).numerical.max() < 45
        else:
            rows = pytest.importorskip(library).asarray(X)
        found = block_ranks(RBF(1.0), rows, LABELS, delta=1e-4)
        assert_array_equal(found.numerical, block_ranks(RBF(1.0), X, LABELS, delta=1e-4).numerical)

    def test_do_not_depend_on_threads(self, X):
        with config_context(n_threads=1):
            one = block_ranks(RBF(1.0), X, LABELS, delta=1e-6)
        with config_context(n_threads=3):
            three = block_ranks(RBF(1.0), X, LABELS, delta=1e-6)
        assert_array_equal(one.numerical, three.numerical)

    def test_of_objects(self):
        def shared(a, b):
            return len(set(a) & set(b))

        kernel = FunctionKernel(shared, pairwise=True)
        found = block_ranks(kernel, ["ab", "bc", "xy", "yx"], ["l", "l", "r", "r"])
        assert_array_equal(found.numerical, [[2, 0], [0, 1]])

    def test_are_shown_as_a_table(self, X):
        model = BKA(Linear(), 6, partition=LABELS, random_state=0)
        with pytest.warns(gramian.ApproximationWarning, match="stationary"):
            model.fit(X)
        assert str(block_ranks(model, X)).splitlines() == [
            "block  0  1  2  rows  allocated",
            "    0  2  2  2    50          2",
            "    1  2  2  2    30          2",
            "    2  2  2  2    40          2",
        ]


class TestPrincipalCosines:
    def test_are_those_of_the_dense_blocks(self, X, blocks):
        kernel, r = Exponential(0.5), 6
        found = principal_cosines(kernel, X, LABELS, ranks=[r, 2], pairs=[(0, 2), (2, 1)])
        assert found.pairs == [(0, 2), (2, 1)] and list(found.cosines) == [r, 2]
        for i, (s, t) in enumerate(found.pairs):
            own = np.linalg.eigh(kernel(blocks[s]))[1][:, -r:]
            other = np.linalg.svd(kernel(blocks[s], blocks[t]))[0][:, :r]
            cosines = np.linalg.svd(own.T @ other, compute_uv=False)
            assert_allclose(found.cosines[r][i], cosines, atol=1e-9)

    def test_are_1_where_all_rows_span_the_space_and_nan_beyond_the_rank(self, X):
        found = principal_cosines(Linear(), X, LABELS, ranks=[3])
        assert len(found.pairs) == 6
        assert_allclose(found.cosines[3][:, :2], 1.0)
        assert np.isnan(found.cosines[3][:, 2]).all()

    def test_are_0_where_blocks_share_nothing(self):
        # Block 0 sees itself along one direction and block 1 along another.
        K = np.block(
            [[np.diag([2.0, 1.0]), np.array([[0.0], [0.5]])], [np.array([[0.0, 0.5, 3.0]])]]
        )
        found = principal_cosines("precomputed", K, [0, 0, 1], ranks=[1], pairs=[(0, 1)])
        assert_allclose(found.cosines[1], 0.0, atol=1e-12)

    def test_of_blocks_with_nothing_between_them(self):
        K = scipy.linalg.block_diag(np.ones((3, 3)), np.ones((2, 2)))
        found = principal_cosines("precomputed", K, [0, 0, 0, 1, 1], ranks=[1])
        assert np.isnan(found.cosines[1]).all()
        assert "nan" in str(found)

    def test_pairs_of_many_blocks_are_drawn(self, X):
        labels = np.arange(120) % 10
        drawn = principal_cosines(RBF(1.0), X, labels, ranks=[2], random_state=3).pairs
        assert len(set(drawn)) == 20
        assert drawn == principal_cosines(RBF(1.0), X, labels, ranks=[2], random_state=3).pairs
        assert drawn != principal_cosines(RBF(1.0), X, labels, ranks=[2], random_state=4).pairs

    def test_of_a_fitted_approximation_on_sampled_rows(self, X):
        model = MEKA(RBF(0.1), 12, n_blocks=3, random_state=0).fit(X)
        found = principal_cosines(model, X, ranks=[2], max_rows=15)
        assert found.cosines[2].shape == (6, 2)
        assert ((found.cosines[2] >= 0) & (found.cosines[2] <= 1)).all()
        assert found.cosines[2][:, 0].min() > 0.9  # a wide kernel: the blocks see each other
        lines = str(found).splitlines()
        assert lines[0].split() == ["rank", "cosines", "mean", "median", "smallest", "above", "0.9"]
        assert lines[1].split()[:2] == ["2", "12"]


class TestStepTimes:
    def test_are_those_of_the_fits(self, X):
        model = MEKA(RBF(1.0), 24, random_state=0)
        table = step_times(model, X, [2, 4])
        assert [(row.n_blocks, row.n_components) for row in table] == [(2, 24), (4, 24)]
        for row in table:
            parts = [row.partition, row.basis, row.links, row.psd]
            assert min(parts[:3]) > 0 and sum(parts) <= row.total
        assert not hasattr(model, "labels_") and model.n_blocks == 10

    def test_with_a_rank_for_each_block(self, X):
        table = step_times(BKA(RBF(1.0), 5), X, [2, 4], rank_per_block=3)
        assert [row.n_components for row in table] == [6, 12]
        assert all(row.links == row.psd == 0.0 for row in table)

    def test_shown(self, X):
        lines = repr(step_times(MEKA(RBF(1.0), 12), X, [3])).splitlines()
        assert lines[0].split() == [
            "n_blocks", "n_components", "partition", "basis", "links", "psd", "total"
        ]  # fmt: skip
        assert lines[1].split()[:2] == ["3", "12"]
        assert repr(Table()) == "Table([])"


class TestLinkThresholds:
    def test_are_those_of_the_fits(self, X):
        model = MEKA(RBF(1.0), 24, n_blocks=5, link_fraction=0.5, random_state=0)
        table = link_thresholds(model, X, [0.0, 0.2, 1.0])
        for row in table:
            fitted = (
                clone(model).set_params(link_fraction=None, link_threshold=row.threshold).fit(X)
            )
            assert row.links == np.triu(fitted.links_).sum()
            assert float(row.error) == float(relative_error(fitted, X))
        assert table[0].links == 10 > table[1].links > table[2].links == 0
        assert table[0].error < table[1].error < table[2].error
        assert model.link_threshold is None and model.link_fraction == 0.5

    def test_without_a_seed_all_fits_have_the_same(self, X):
        table = link_thresholds(MEKA(RBF(1.0), 24, n_blocks=5), X, [0.1, 0.1])
        # but for the order in which scikit-learn's threads add up the means of clusters
        assert float(table[0].error) == pytest.approx(float(table[1].error), rel=1e-6)


class TestPartitions:
    @pytest.mark.slow
    def test_are_those_of_the_fits(self, X):
        sides = [BKA(RBF(1.0), 12, n_blocks=3, random_state=0),
                 MEKA(RBF(1.0), 12, n_blocks=3, random_state=0)]  # fmt: skip
        table = partitions(sides, X)
        kinds = ["kmeans", "spectral", "random"]
        names = [(row.approximation, row.partition) for row in table]
        assert names == [(side, kind) for side in ("BKA", "MEKA") for kind in kinds]
        for row in table:
            fitted = clone(sides[row.approximation == "MEKA"]).set_params(partition=row.partition)
            expected = float(relative_error(fitted.fit(X), X))
            assert float(row.error) == pytest.approx(expected, rel=1e-6)
            assert 0 < row.partition_seconds <= row.seconds
        of_bka = [float(row.error) for row in table[:3]]
        assert max(of_bka[:2]) < 0.5 * of_bka[2]  # near rows in one block serve, others do not

    def test_of_given_labels(self, X):
        table = partitions(BKA(RBF(1.0), 12, random_state=0), X, [LABELS, "random"])
        assert [row.partition for row in table] == ["given", "random"]
        assert table[0].error < 0.5 * float(table[1].error)


def test_bad_input_is_named(X):
    model = MEKA(RBF(1.0), 12, n_blocks=3, random_state=0)
    bad = {
        r"kernel and labels.* got RBF\(gamma=1.0\) without labels": (
            lambda: block_ranks(RBF(1.0), X)
        ),
        "got MEKA.* and labels": lambda: principal_cosines(model, X, LABELS),
        "the 120 rows that MEKA was fitted on; got 5": lambda: block_ranks(
            clone(model).fit(X), X[:5]
        ),
        r"each of the 120 rows; got shape \(3,\)": lambda: block_ranks(RBF(1.0), X, [0, 1, 2]),
        "max_rows of block_ranks .* got 0": lambda: block_ranks(RBF(1.0), X, LABELS, max_rows=0),
        "delta of block_ranks .* got 0": lambda: block_ranks(RBF(1.0), X, LABELS, delta=0),
        "0.02 times 50 leaves no singular value": (
            lambda: block_ranks(RBF(1.0), X, LABELS, delta=0.02)
        ),
        "ranks of principal_cosines .* got 0": (
            lambda: principal_cosines(RBF(1.0), X, LABELS, ranks=[0])
        ),
        r"from 0 to 2; got \[\(0, 3\)\]": (
            lambda: principal_cosines(RBF(1.0), X, LABELS, pairs=[(0, 3)])
        ),
        r"got \[\(1, 1\)\]": lambda: principal_cosines(RBF(1.0), X, LABELS, pairs=[(1, 1)]),
        "two or more; got one": lambda: principal_cosines(RBF(1.0), X, np.zeros(120)),
        "n_blocks of step_times .* got 'two'": lambda: step_times(model, X, ["two"]),
        "given as labels": lambda: step_times(BKA(RBF(1.0), 12, partition=LABELS), X, [2]),
        "rank_per_block .* got 0": lambda: step_times(model, X, [2], rank_per_block=0),
        "thresholds of link_thresholds .* got -1": lambda: link_thresholds(model, X, [-1]),
        "partition of MEKA must be one of": lambda: partitions(model, X, ["kmean"]),
    }
    for message, call in bad.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(NotFittedError):
        block_ranks(model, X)
    for call in (
        lambda: step_times(Nystroem(RBF(1.0), 5), X, [2]),
        lambda: link_thresholds(BKA(RBF(1.0), 5), X, [0.1]),
        lambda: partitions(RBF(1.0), X),
    ):
        with pytest.raises(TypeError, match="needs a "):
            call()
