"""Blocks: quantities against dense formulas, bounds over many data, slips of the texts."""

from math import e, log, sqrt

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

import gramian
from gramian import (
    MEKA,
    RBF,
    Cauchy,
    Exponential,
    FunctionKernel,
    Gram,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from gramian.backend.threads import one_blas_thread
from gramian.theory import block_rank_bound, d_kernel, d_kernel_bound, d_kmeans, meka_bound


@pytest.fixture(scope="module", autouse=True)
def small_matrices_need_no_threads():
    with one_blas_thread():
        yield


def clusters(seed, n=60, d=3, blocks=4, spread=0.5):
    """Rows around some centres, and labels that need be neither from 0 nor in order."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(blocks, size=n)
    labels[:blocks] = np.arange(blocks)  # none is empty
    X = 2 * rng.normal(size=(blocks, d))[labels] + spread * rng.normal(size=(n, d))
    return X, 3 * labels - 2


def dense_d_kernel(K, labels):
    return sum(np.sum(K[np.ix_(own, own)] ** 2) / own.sum() for own in each_block(labels))


def dense_d_kmeans(X, labels):
    return sum(np.sum((X[own] - X[own].mean(axis=0)) ** 2) for own in each_block(labels))


def each_block(labels):
    return [labels == value for value in np.unique(labels)]


# Kernels with f(0) = k(x, x) and their Lipschitz constants on d columns.
STATIONARY = {
    "RBF": (RBF(0.7), lambda d: sqrt(2 * 0.7 / e)),
    "Exponential": (Exponential(0.4), lambda d: 0.4),
    "Laplacian": (Laplacian(0.3), lambda d: 0.3 * sqrt(d)),
    "Cauchy": (Cauchy(0.6), lambda d: sqrt(0.6) * 3 * sqrt(3) / 8),
    "scaled": (2.5 * RBF(0.7), lambda d: 2.5 * sqrt(2 * 0.7 / e)),
}


class TestObjectives:
    def test_they_are_the_dense_formulas(self):
        X, labels = clusters(0)
        for kernel in RBF(0.3), Polynomial(2, gamma=0.2):
            assert d_kernel(kernel, X, labels) == pytest.approx(
                dense_d_kernel(kernel(X), labels), rel=1e-12
            )
        assert d_kernel("precomputed", RBF(0.3)(X), labels) == pytest.approx(
            d_kernel(RBF(0.3), X, labels), rel=1e-12
        )
        assert d_kmeans(X, labels) == pytest.approx(dense_d_kmeans(X, labels), rel=1e-12)

    def test_of_the_finest_and_the_coarsest_partition(self):
        X, _ = clusters(1, n=30)
        assert d_kernel(RBF(1.0), X, np.arange(30)) == 30.0
        assert d_kmeans(X, np.arange(30)) == 0.0
        whole = np.zeros(30)
        assert d_kernel(RBF(1.0), X, whole) == pytest.approx(np.sum(RBF(1.0)(X) ** 2) / 30)
        assert d_kmeans(X, whole) == pytest.approx(30 * X.var(axis=0).sum())

    def test_of_objects(self):
        def shared(a, b):
            return len(set(a) & set(b))

        kernel = FunctionKernel(shared, pairwise=True)
        assert d_kernel(kernel, ["ab", "bc", "xyz"], ["l", "l", "r"]) == (4 + 4 + 1 + 1) / 2 + 9

    def test_d_kmeans_of_tight_blocks_far_apart(self):
        X, labels = clusters(2)
        tight = 1e-4 * X + 1e4 * labels[:, None]
        assert d_kmeans(tight, labels) == pytest.approx(dense_d_kmeans(1e-4 * X, labels), rel=1e-6)

    @pytest.mark.parametrize("library", ["torch", "array_api_strict", "sparse", "float32"])
    def test_of_any_rows(self, library):
        X, labels = clusters(3)
        if library == "sparse":
            rows = scipy.sparse.csr_array(X)
        elif library == "float32":
            rows = X.astype(np.float32)
        else:
            rows = pytest.importorskip(library).asarray(X)
        assert d_kmeans(rows, labels) == pytest.approx(d_kmeans(X, labels), rel=1e-6)
        for function in d_kernel, d_kernel_bound:
            assert function(RBF(0.3), rows, labels) == pytest.approx(
                function(RBF(0.3), X, labels), rel=1e-5
            )
        assert_allclose(
            block_rank_bound(RBF(0.3), rows, labels, 2),
            block_rank_bound(RBF(0.3), X, labels, 2),
            rtol=1e-6,
        )
        sampled = d_kernel(RBF(0.3), rows, labels, max_rows=5, rng=0)
        assert sampled == pytest.approx(d_kernel(RBF(0.3), X, labels, max_rows=5, rng=0), rel=1e-5)

    def test_small_memory_changes_nothing(self):
        X, labels = clusters(4, n=400)
        with gramian.config_context(memory_budget="100 kB", n_threads=1):
            value = d_kernel(RBF(0.3), X, labels, max_rows=None)
            squares = d_kmeans(X, labels)
        assert value == pytest.approx(d_kernel(RBF(0.3), X, labels), rel=1e-12)
        assert squares == pytest.approx(d_kmeans(X, labels), rel=1e-12)

    @pytest.mark.slow
    def test_sampling_is_unbiased_and_knows_its_error(self):
        X, labels = clusters(5, n=600, blocks=3)
        labels[:5] = 77  # a small block, which is summed exactly
        kernel = RBF(0.3) + Linear()  # a diagonal that varies
        exact, none = d_kernel(kernel, X, labels, return_std=True)
        assert none == 0.0
        found = np.array(
            [
                d_kernel(kernel, X, labels, max_rows=40, return_std=True, rng=seed)
                for seed in range(300)
            ]
        )
        z = (found[:, 0] - exact) / found[:, 1]
        assert abs((found[:, 0].mean() - exact) / found[:, 0].std() * sqrt(300)) < 3
        assert 0.85 < found[:, 0].std() / sqrt(np.mean(found[:, 1] ** 2)) < 1.15
        assert 0.9 < np.mean(abs(z) < 1.96) <= 0.98

    def test_sampling_costs_what_it_says(self, monkeypatch):
        X, labels = clusters(6, n=500, blocks=2)
        seen = []
        monkeypatch.setattr(
            "gramian.theory.blocks.Gram", lambda *args: seen.append(Gram(*args)) or seen[-1]
        )
        d_kernel(RBF(0.3), X, labels, max_rows=20)
        assert seen[0].evaluations == 500 + 2 * 20**2


class TestObjectivesBound:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", STATIONARY)
    def test_holds(self, name):
        kernel, constant = STATIONARY[name]
        for seed in range(60):
            spread = [0.01, 0.1, 0.5, 2.0][seed % 4]
            X, labels = clusters(seed, d=1 + seed % 5, blocks=1 + seed % 7, spread=spread)
            bound = d_kernel_bound(kernel, X, labels, lipschitz=constant(X.shape[1]))
            assert bound <= d_kernel(kernel, X, labels)

    def test_is_its_formula(self):
        X, labels = clusters(0)
        squares = dense_d_kmeans(X, labels)
        gaussian = 60 / 2 - 2 * 0.7 * (2 / e) * squares
        assert d_kernel_bound(RBF(0.7), X, labels) == pytest.approx(gaussian)
        assert d_kernel_bound(RBF(bandwidth=1 / sqrt(1.4)), X, labels) == pytest.approx(gaussian)
        other = d_kernel_bound(3.0 * Exponential(0.4), X, labels, lipschitz=1.2)
        assert other == pytest.approx(60 * 9 / 2 - 2 * 1.44 * squares)

    @pytest.mark.parametrize("name", STATIONARY)
    def test_constants_are_the_largest_slopes(self, name):
        # Tight, so that a smaller constant would be wrong: along the diagonal of the columns.
        kernel, constant = STATIONARY[name]
        t = np.linspace(0, 8, 20_001)
        values = kernel(t[:, None] * np.full(4, 0.5), np.zeros((1, 4)))[:, 0]
        slope = np.abs(np.diff(values)).max() / (t[1] - t[0])
        assert slope == pytest.approx(constant(4), rel=1e-3)

    @pytest.mark.parametrize(
        ("name", "squared"),
        # Where the bound without the factor 2 is farthest off: at u = γd² of the Gaussian with
        # e^(-2u) = R²/4, at t = γd of the exponential kernel with e^(-2t) = t/2.
        [("RBF", log(2 * e) / 2 / 0.7), ("Exponential", (0.601 / 0.4) ** 2)],
    )
    def test_without_the_factor_2_that_the_texts_lack_it_is_wrong(self, name, squared):
        kernel, constant = STATIONARY[name]
        n = 400
        X = sqrt(squared / 2) * np.eye(n)  # all rows as far from each other
        one_block = np.zeros(n)
        value = d_kernel(kernel, X, one_block)
        printed = n / 2 - constant(n) ** 2 * d_kmeans(X, one_block)
        assert d_kernel_bound(kernel, X, one_block, lipschitz=constant(n)) <= value < printed


class TestBlockRankBound:
    def test_is_its_formula(self):
        X, labels = clusters(0, d=3)
        blocks = [X[own] for own in each_block(labels)]
        radii = [np.linalg.norm(x - x.mean(axis=0), axis=1).max() for x in blocks]
        bound = block_rank_bound(RBF(0.7), X, labels, 5)
        assert bound.shape == (4, 4)
        for s in range(4):
            for t in range(4):
                size = sqrt(len(blocks[s]) * len(blocks[t])) * min(radii[s], radii[t])
                assert bound[s, t] == pytest.approx(4 * sqrt(1.4 / e) * 5 ** (-1 / 3) * size)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", STATIONARY)
    def test_holds(self, name):
        kernel, constant = STATIONARY[name]
        nearest = np.inf
        for seed in range(40):
            X, labels = clusters(seed, n=80, d=1 + seed % 3, spread=[0.02, 0.3, 1.0][seed % 3])
            blocks = [X[own] for own in each_block(labels)]
            values = [
                [np.linalg.svd(kernel(x, y), compute_uv=False) for y in blocks] for x in blocks
            ]
            for rank in (1, 3, 10):
                bound = block_rank_bound(kernel, X, labels, rank, lipschitz=constant(X.shape[1]))
                errors = np.array([[np.linalg.norm(s[rank:]) for s in row] for row in values])
                assert (errors <= bound).all()
                nearest = min(nearest, (bound / np.maximum(errors, 1e-300)).min())
        assert nearest < 40  # not so far above that anything would do

    def test_says_more_than_that_0_would_do_for_tight_blocks_of_few_columns(self):
        X, labels = clusters(1, d=1, spread=0.02)
        sizes = np.bincount((labels + 2) // 3)
        whole = np.array(
            [[np.linalg.norm(RBF(0.7)(X[a], X[b])) for b in each_block(labels)]
             for a in each_block(labels)]
        )  # fmt: skip
        bound = block_rank_bound(RBF(0.7), X, labels, 4)
        on = np.diag_indices(len(sizes))
        assert (bound[on] < 0.2 * whole[on]).all()


def uniform(rng, labels, sampled):
    return rng.choice(len(labels), size=sampled, replace=False)


def from_the_first_block(rng, labels, sampled):
    return np.flatnonzero(labels == labels[0])[:sampled]


def meka_of_the_theorem(K, labels, rank, sampled, rng, draw=uniform):
    """K̃ as theorem 3 has it: Nyström of the block-diagonal part, least squares between blocks."""
    same = labels[:, None] == labels
    B = np.where(same, K, 0.0)
    drawn = draw(rng, labels, sampled)
    values, vectors = np.linalg.eigh(B[np.ix_(drawn, drawn)])
    order = np.argsort(-values)[:rank]  # of all blocks together: the largest eigenvalues
    order = order[values[order] > 1e-10 * values.max()]
    Z = B[:, drawn] @ (vectors[:, order] / np.sqrt(values[order]))
    # An eigenvector of B's sample belongs to one block, so that Z's columns do too.
    basis = np.linalg.svd(Z, full_matrices=False)
    left = basis[0][:, basis[1] > 1e-7 * basis[1][0]]
    P = np.where(same, left @ left.T, 0.0)
    return Z @ Z.T + np.where(same, 0.0, P @ K @ P)


class TestMEKABound:
    @pytest.mark.parametrize("norm", ["fro", "spectral"])
    def test_is_its_formula(self, norm):
        X, labels = clusters(0, n=50)
        kernel = 2.0 * RBF(0.2) + Linear()
        K = kernel(X)
        n, c, k, m = 50, 4, 3, 8
        delta_matrix = np.where(labels[:, None] == labels, 0.0, K)
        eigenvalues = np.sort(np.linalg.eigvalsh(K))[::-1]
        largest, squared = 0.0, 0.0
        for i in range(n):
            largest = max(largest, K[i, i])
            for j in range(n):
                squared = max(squared, K[i, i] + K[j, j] - 2 * K[i, j])
        beta = 1 - 1 / (2 * max(m, n - m))
        theta = sqrt((n - m) / (n - 0.5) / beta * log(1 / 0.1)) * sqrt(squared) / sqrt(largest)
        if norm == "fro":
            expected = np.linalg.norm(eigenvalues[c * k :]) + 2 * np.linalg.norm(delta_matrix)
            expected += (64 * k / m) ** 0.25 * n * largest * sqrt(1 + theta)
        else:
            expected = eigenvalues[c * k] + 2 * np.linalg.norm(delta_matrix, 2)
            expected += 1 / sqrt(c) * 2 * n / sqrt(m) * largest * (1 + theta)
        found = meka_bound(kernel, X, labels, c * k, c * m, delta=0.1, norm=norm)
        assert found == pytest.approx(expected, rel=1e-10)

    @pytest.mark.slow
    @pytest.mark.parametrize("norm", ["fro", "spectral"])
    def test_holds(self, norm):
        order = {"fro": "fro", "spectral": 2}[norm]
        for seed in range(20):
            X, labels = clusters(seed, n=120, spread=[0.1, 0.5, 2.0][seed % 3])
            kernel = [RBF(0.5), Laplacian(0.5), Polynomial(2, gamma=0.2)][seed % 3]
            K = kernel(X)
            bound = meka_bound(kernel, X, labels, 16, 40, norm=norm)
            approximate = meka_of_the_theorem(K, labels, 16, 40, np.random.default_rng(seed))
            assert np.linalg.norm(K - approximate, order) <= bound
            if kernel.stationary:
                fitted = MEKA(kernel, 16, partition=labels, random_state=seed).fit(X)
                assert np.linalg.norm(K - fitted(X), order) <= bound

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("norm", "sizes", "sampled", "delta"),
        [("spectral", [300, 300], 300, 0.05), ("fro", [100, 900], 999, 0.5)],
    )
    def test_a_sampler_that_leaves_out_a_block_breaks_it(self, norm, sizes, sampled, delta):
        labels = np.repeat([0, 1], sizes)
        X = 9.0 * labels[:, None]  # two points far apart: K has two blocks of ones
        K = RBF(1.0)(X)
        bound = meka_bound(RBF(1.0), X, labels, 2, sampled, norm=norm, delta=delta)
        for draw, holds in ((uniform, True), (from_the_first_block, False)):
            found = meka_of_the_theorem(K, labels, 2, sampled, np.random.default_rng(0), draw)
            assert (np.linalg.norm(K - found, 2 if norm == "spectral" else "fro") <= bound) == holds

    def test_least_squares_may_raise_the_spectral_norm_by_2_over_root_3(self):
        # What the proof denies. Blocks s, t of two rows each, and a basis of one column for each:
        # Δ between them is 0 but for M, and P M P is left out.
        a = 1 / sqrt(3)
        M = np.array([[-a, sqrt(1 - a**2)], [sqrt(1 - a**2), a]])
        P = np.diag([1.0, 0.0])
        delta_matrix = np.block([[np.zeros((2, 2)), M], [M, np.zeros((2, 2))]])
        left = np.block([[np.zeros((2, 2)), M - P @ M @ P], [M - P @ M @ P, np.zeros((2, 2))]])
        ratio = np.linalg.norm(left, 2) / np.linalg.norm(delta_matrix, 2)
        assert ratio == pytest.approx(2 / sqrt(3))
        assert np.linalg.norm(left) <= np.linalg.norm(delta_matrix)


X, LABELS = np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]
BAD = {
    "labels": (lambda: d_kernel(RBF(1.0), X, [0, 1]), r"each of the 4 rows; got shape \(2,\)"),
    "labels of d_kmeans": (lambda: d_kmeans(X, [[0], [0], [1], [1]]), r"labels of d_kmeans .*4, 1"),
    "max_rows": (lambda: d_kernel(RBF(1.0), X, LABELS, max_rows=2), "at least 3, or None; got 2"),
    "max_rows 0": (lambda: d_kernel(RBF(1.0), X, LABELS, max_rows=0), "positive integer; got 0"),
    "not stationary": (lambda: d_kernel_bound(Linear(), X, LABELS, lipschitz=1), r"Linear\(\) is"),
    "not stationary, blocks": (lambda: block_rank_bound(RBF(1.0) + Linear(), X, LABELS, 1), "not"),
    "no constant": (lambda: d_kernel_bound(Exponential(1.0), X, LABELS), "Pass lipschitz="),
    "constant": (lambda: d_kernel_bound(RBF(1.0), X, LABELS, lipschitz=-1), "lipschitz .* got -1"),
    "rank": (lambda: block_rank_bound(RBF(1.0), X, LABELS, 0), "rank of block_rank_bound .* got 0"),
    "norm": (lambda: meka_bound(RBF(1.0), X, LABELS, 1, 2, norm="trace"), "norm .* got 'trace'"),
    "delta": (lambda: meka_bound(RBF(1.0), X, LABELS, 1, 2, delta=1), r"delta .* \(0, 1\); got 1"),
    "landmarks": (lambda: meka_bound(RBF(1.0), X, LABELS, 2, 5), "landmarks=5 and 4 rows"),
    "rank above": (lambda: meka_bound(RBF(1.0), X, LABELS, 3, 2), "rank=3, landmarks=2"),
    "indefinite": (lambda: meka_bound(Sigmoid(1.0, 0.0), X - 3, LABELS, 1, 2), "semi-definite"),
    "text": (lambda: d_kmeans(["a", "b"], [0, 1]), "."),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
