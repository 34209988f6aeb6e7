"""Bounds against what is measured over seeds: they hold, and break when the sampler is broken."""

from math import ceil, exp, log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian import RBF, Gram, Laplacian, Linear, MemoryBudgetError, Sigmoid, theory
from gramian.backend.threads import one_blas_thread
from gramian.theory import (
    approximate_product,
    columns_needed,
    effective_dimension,
    is_preserving,
    kmeans_plus_plus_factor,
    landmarks_needed,
    linear_time_svd,
    nystrom_bound,
    product_bound,
    ridge_leverage_scores,
    svd_bound,
)

DELTA = 0.1


@pytest.fixture(scope="module", autouse=True)
def small_matrices_need_no_threads():
    with one_blas_thread():
        yield


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).normal(size=(300, 3))


def groups(*sizes):
    """K of groups of identical rows, orthogonal to the other groups."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return (labels[:, None] == labels).astype(float)


class TestLeverage:
    def test_scores_are_the_diagonal_of_the_smoother(self, rows):
        K = RBF(0.5)(rows)
        smoother = K @ np.linalg.inv(K + 0.7 * np.eye(len(K)))
        scores = ridge_leverage_scores(Gram(RBF(0.5), rows), ridge=0.7)
        assert_allclose(scores, np.diag(smoother), rtol=1e-10)
        assert_allclose(ridge_leverage_scores(RBF(0.5), rows, ridge=0.7), scores)
        assert_allclose(ridge_leverage_scores(K, ridge=0.7), scores)
        assert_allclose(effective_dimension(K, ridge=0.7), np.trace(smoother))

    def test_scores_of_float32_rows(self, rows):
        scores = ridge_leverage_scores(RBF(0.5), rows.astype(np.float32), ridge=0.7)
        assert scores.dtype == np.float64
        assert_allclose(scores, ridge_leverage_scores(RBF(0.5), rows, ridge=0.7), atol=1e-5)

    @pytest.mark.parametrize("ridge", [1e-9, 1.0, 1e6])
    def test_effective_dimension_is_below_rank_and_trace_and_reaches_both(self, rows, ridge):
        gram = Gram(Linear(), rows)  # of rank 3
        limit = min(3, gram.trace() / ridge)
        value = effective_dimension(gram, ridge=ridge)
        assert value <= limit
        assert ridge == 1.0 or value == pytest.approx(limit, rel=1e-3)

    def test_refuses_what_exceeds_the_budget(self, rows):
        with (
            gramian.config_context(memory_budget="100 kB"),
            pytest.raises(MemoryBudgetError),
        ):
            ridge_leverage_scores(RBF(0.5), rows, ridge=1.0)

    @pytest.mark.slow
    def test_estimate_is_unbiased_and_knows_its_error(self, rows):
        gram = Gram(Laplacian(1.0), rows)  # a slow spectrum: the factor leaves something to sample
        exact, none = effective_dimension(gram, ridge=0.3, return_std=True)
        assert none == 0.0
        with gramian.config_context(memory_budget="400 kB"):
            assert not gram.fits()
            found = np.array(
                [
                    effective_dimension(gram, ridge=0.3, return_std=True, probes=24, rng=seed)
                    for seed in range(25)
                ]
            )
        z = (found[:, 0] - exact) / found[:, 1]
        assert abs(z.mean()) < 4 / sqrt(len(z))
        assert 0.6 < np.sqrt(np.mean(z**2)) < 1.6
        assert np.all(found[:, 1] < sqrt(2 * exact / 24))

    def test_estimate_is_nearly_exact_where_the_factor_is(self, rows):
        gram = Gram(RBF(0.05), rows)
        exact = effective_dimension(gram, ridge=1.0)
        with gramian.config_context(memory_budget="1 MB"):
            value = effective_dimension(gram, ridge=1.0, rng=0)
        assert value == pytest.approx(exact, abs=1e-5)

    def test_estimate_warns_where_the_iteration_ends_early(self, rows, monkeypatch):
        monkeypatch.setattr(theory.landmarks, "CG_ITERATIONS", 1)
        with (
            gramian.config_context(memory_budget="400 kB"),
            pytest.warns(ConvergenceWarning, match="too large"),
        ):
            value = effective_dimension(Laplacian(1.0), rows, ridge=1e-3, rng=0)
        assert value > effective_dimension(Laplacian(1.0), rows, ridge=1e-3)

    def test_indefinite_kernels_are_refused(self, rows):
        with pytest.raises(ValueError, match="positive semi-definite; Sigmoid"):
            ridge_leverage_scores(Sigmoid(1.0, -1.0), rows, ridge=1e-3)
        with (
            gramian.config_context(memory_budget="400 kB"),
            pytest.raises(ValueError, match="positive semi-definite; Sigmoid"),
        ):
            effective_dimension(Sigmoid(1.0, -1.0), rows, ridge=1e-3, rng=0)


def literally_preserving(K, chosen, ridge, epsilon):
    """Definition 2 of 003 in coordinates of the feature space, where Φ is a root of K."""
    eigenvalues, vectors = np.linalg.eigh(K)
    kept = eigenvalues > 1e-10 * eigenvalues[-1]
    phi = np.sqrt(eigenvalues[kept])[:, None] * vectors[:, kept].T
    identity = np.eye(len(phi))
    projection = phi[:, chosen] @ np.linalg.pinv(phi[:, chosen], rcond=1e-10)
    right = ridge / (1 - epsilon) * np.linalg.inv(phi @ phi.T + ridge * identity)
    return np.linalg.eigvalsh(right - identity + projection)[0] >= -1e-12


class TestDictionaries:
    @pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
    def test_is_the_definition(self, epsilon, rng):
        X = rng.normal(size=(40, 2))
        gram, K = Gram(RBF(0.3), X), RBF(0.3)(X)
        ridge = 0.3 * (1 - epsilon) / epsilon
        answers = []
        for m in range(1, 30):
            chosen = rng.choice(40, size=m)  # with repetitions
            answers.append(is_preserving(gram, chosen, ridge, epsilon))
            assert answers[-1] == literally_preserving(K, chosen, ridge, epsilon)
        assert len(set(answers)) == 2

    def test_all_rows_preserve_and_a_missing_group_does_not(self):
        K = groups(5, 5)
        assert is_preserving(K, range(10), ridge=1e-9)
        assert is_preserving(K, [0, 9], ridge=1e-9)
        # the residual is 5, and must be at most γ ε/(1-ε)
        assert not is_preserving(K, [0, 1], ridge=4.99)
        assert is_preserving(K, [0, 1], ridge=5.01)
        assert is_preserving(RBF(1.0), [0, 1], ridge=1.0, X=[[0.0], [1.0]])

    def test_counts_of_the_lemmas(self):
        assert landmarks_needed(1000, ridge=10, kappa=2, epsilon=0.3, delta=0.01) == ceil(
            12 * 4 * 100 * log(1e5) / 0.09
        )
        assert landmarks_needed(1000, ridge=10, kappa=2, effective_dimension=7) == ceil(
            12 * 4 * 7 * log(20000) / 0.25
        )
        # scores know no scale: a small K with a small ridge needs as many as before
        assert landmarks_needed(
            1000, ridge=1e-3, kappa=0.1, effective_dimension=7
        ) == landmarks_needed(1000, ridge=0.1, effective_dimension=7)
        assert landmarks_needed(10, ridge=1e9) == 1

    @staticmethod
    def failures(K, m, ridge, epsilon, p=None):
        """The fraction of draws that give no preserving dictionary."""
        draws = (np.random.default_rng(seed).choice(len(K), size=m, p=p) for seed in range(20))
        return np.mean([not is_preserving(K, draw, ridge, epsilon) for draw in draws])

    def test_lemma_1_and_that_its_growth_is_needed(self):
        # Ten groups of 20: each must be met, as in collecting coupons, where γ ε/(1-ε) < 20.
        K, ridge = groups(*[20] * 10), 19.0
        m = landmarks_needed(200, ridge=ridge, epsilon=0.5, delta=DELTA)
        assert self.failures(K, m, ridge, 0.5) <= DELTA
        assert self.failures(K, m // 200, ridge, 0.5) > DELTA

    @pytest.mark.slow
    def test_lemma_3_and_that_it_needs_leverage(self):
        # One row unlike the others: uniform draws of the same number miss it.
        K, ridge, epsilon = groups(249, 1), 0.1, 0.9
        scores = ridge_leverage_scores(K, ridge=ridge)
        m = landmarks_needed(
            250, ridge=ridge, epsilon=epsilon, delta=DELTA, effective_dimension=scores.sum()
        )
        assert m < 250
        assert self.failures(K, m, ridge, epsilon, scores / scores.sum()) <= DELTA
        assert self.failures(K, m, ridge, epsilon) > DELTA


def product_errors(A, B, c, p=None, seeds=200, scaled=True):
    errors = []
    for seed in range(seeds):
        C, R = approximate_product(A, B, c, p, rng=seed)
        if not scaled:  # as if 1/√(c p) had been forgotten
            C, R = C / np.linalg.norm(C, axis=0), R / np.linalg.norm(R, axis=1)[:, None]
        errors.append(np.linalg.norm(A @ B - C @ R))
    return np.array(errors)


class TestProduct:
    @pytest.fixture
    def factors(self, rng):
        scale = np.exp(rng.normal(size=60))
        return rng.normal(size=(8, 60)) * scale, rng.normal(size=(60, 6)) * scale[:, None]

    @pytest.mark.slow
    @pytest.mark.parametrize("uniform", [False, True])
    def test_is_unbiased(self, factors, uniform):
        A, B = factors
        p = np.full(60, 1 / 60) if uniform else None
        draws = np.array([np.matmul(*approximate_product(A, B, 20, p, rng=s)) for s in range(2000)])
        z = (draws.mean(axis=0) - A @ B) / (draws.std(axis=0) / sqrt(2000))
        assert np.abs(z).max() < 4.5
        assert 0.5 < np.sqrt(np.mean(z**2)) < 1.7

    def test_the_error_is_what_its_variance_says(self, factors):
        A, B = factors
        sizes = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=1)
        expected = (sizes.sum() ** 2 - np.linalg.norm(A @ B) ** 2) / 20
        assert np.mean(product_errors(A, B, 20, seeds=1000) ** 2) == pytest.approx(
            expected, rel=0.1
        )

    def test_theorem_1_in_expectation_and_in_probability(self, factors):
        A, B = factors
        errors = product_errors(A, B, 20)
        assert errors.mean() <= product_bound(A, B, 20)
        assert np.mean(errors > product_bound(A, B, 20, delta=DELTA)) <= DELTA
        ratio = product_bound(A, B, 20, delta=exp(-2)) / product_bound(A, B, 20)
        assert ratio == pytest.approx(5.0)

    def test_theorem_1_is_tight_for_the_identity(self):
        bound = product_bound(np.eye(10), np.eye(10), 40)
        mean = product_errors(np.eye(10), np.eye(10), 40, seeds=500).mean()
        assert 0.9 * bound < mean <= bound

    def test_theorem_1_with_probabilities_that_are_nearly_right(self, rng):
        A = rng.normal(size=(5, 80)) * np.exp(rng.normal(size=80))
        best = (A**2).sum(axis=0) / (A**2).sum()
        beta = 0.25
        errors = product_errors(A, A.T, 30, beta * best + (1 - beta) / 80)
        assert errors.mean() <= product_bound(A, A.T, 30, beta)
        assert np.mean(errors > product_bound(A, A.T, 30, beta, DELTA)) <= DELTA

    def test_broken_samplers_break_it(self):
        A = np.ones((1, 400))
        A[0, 0] = 1000.0
        bound = product_bound(A, A.T, 100)
        assert product_errors(A, A.T, 100).mean() <= bound
        assert product_errors(A, A.T, 100, np.full(400, 1 / 400)).mean() > bound
        assert product_errors(A, A.T, 100, scaled=False).mean() > bound

    def test_of_zeros_is_zero(self):
        C, R = approximate_product(np.zeros((2, 3)), np.ones((3, 2)), 4, rng=0)
        assert_allclose(C @ R, 0.0)


class TestSVD:
    @pytest.fixture
    def A(self, rng):  # noqa: N802
        return (rng.normal(size=(20, 3)) * [10, 5, 2]) @ rng.normal(size=(3, 200)) + rng.normal(
            size=(20, 200)
        )

    @staticmethod
    def errors(A, k, c, p=None):
        projected = (linear_time_svd(A, k, c, p, rng=s)[0] for s in range(100))
        return np.array([np.linalg.norm(A - H @ (H.T @ A)) ** 2 for H in projected])

    def test_gives_orthonormal_columns_and_keeps_the_norm(self, A):
        H, _ = linear_time_svd(A, 8, 12, rng=0)
        assert_allclose(H.T @ H, np.eye(8), atol=1e-12)
        _, sigma = linear_time_svd(A, 12, 12, rng=0)
        assert np.all(np.diff(sigma) <= 0)
        assert np.sum(sigma**2) == pytest.approx(np.linalg.norm(A) ** 2)  # ‖C‖_F = ‖A‖_F

    def test_has_fewer_columns_where_the_rank_is_less(self, rng):
        A = np.outer(rng.normal(size=6), rng.normal(size=30))
        H, sigma = linear_time_svd(A, 4, 10, rng=0)
        assert H.shape == (6, 1) and sigma.shape == (1,)
        assert_allclose(H @ (H.T @ A), A)

    def test_theorem_3_for_each_sample(self, A):
        best = np.sum(np.linalg.svd(A, compute_uv=False)[2:] ** 2)
        for seed in range(50):
            H, _ = linear_time_svd(A, 2, 15, rng=seed)
            C, R = approximate_product(A, A.T, 15, rng=seed)  # the same columns
            error = np.linalg.norm(A - H @ (H.T @ A)) ** 2
            assert best <= error <= best + 2 * sqrt(2) * np.linalg.norm(A @ A.T - C @ R)
        assert svd_bound(A, 2, 10**12) == pytest.approx(best, rel=1e-3)  # many columns: the best

    def test_theorem_3_with_theorem_1(self, A):
        errors = self.errors(A, 2, 15)
        assert errors.mean() <= svd_bound(A, 2, 15)
        assert np.mean(errors > svd_bound(A, 2, 15, delta=DELTA)) <= DELTA
        assert svd_bound(A, 2, 400) < np.linalg.norm(A) ** 2  # it says more than that 0 would do

    def test_uniform_columns_break_it(self):
        A = 1e-3 * np.ones((2, 400))
        A[:, 7] = [1.0, -1.0]
        assert self.errors(A, 1, 30).mean() <= svd_bound(A, 1, 30)
        assert self.errors(A, 1, 30, np.full(400, 1 / 400)).mean() > svd_bound(A, 1, 30)


def nystrom(K, k, c, p, rng):
    """C W_k⁺ Cᵀ of 000's algorithm."""
    drawn = rng.choice(len(K), size=c, p=p)
    scale = 1 / np.sqrt(c * p[drawn])
    C = K[:, drawn] * scale
    eigenvalues, vectors = (
        part[..., ::-1][..., :k] for part in np.linalg.eigh(C[drawn] * scale[:, None])
    )
    return C @ (vectors / eigenvalues) @ vectors.T @ C.T


def nystrom_errors(K, k, c, p, seeds=20, scaled=True):
    """‖K - C W_k⁺ Cᵀ‖_F, by lemma 5 of 000 that of Xᵀ U_k U_kᵀ X for K = XᵀX: c is far above n."""
    eigenvalues, vectors = np.linalg.eigh(K)
    X = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T
    errors = []
    for seed in range(seeds):
        drawn = np.random.default_rng(seed).choice(len(K), size=c, p=p)
        weights = np.bincount(drawn, minlength=len(K)) / (c * p if scaled else 1.0)
        U = np.linalg.eigh((X * weights) @ X.T)[1][:, -k:]
        errors.append(np.linalg.norm(K - X.T @ U @ U.T @ X))
    return np.array(errors)


class TestNystrom:
    def test_columns_and_bound_are_inverse(self, rows):
        rows = rows[:100]
        K = RBF(0.1)(rows)
        tail = np.linalg.norm(np.linalg.eigvalsh(K)[:-2])
        for delta in None, DELTA:
            c = columns_needed(2, 0.5, delta)
            assert nystrom_bound(K, 2, c, delta) == pytest.approx(tail + 0.5 * 100, rel=1e-3)
            assert nystrom_bound(RBF(0.1), 2, c, delta, X=rows) == nystrom_bound(K, 2, c, delta)
        assert columns_needed(2, 0.5) == 2048
        assert columns_needed(3, 1.0, exp(-2)) == 64 * 3 * 25

    def test_theorem_10_in_expectation_and_in_probability(self, rng):
        X = np.exp(rng.normal(size=(80, 1))) * (rng.normal(size=(80, 4)) * [5, 1, 1, 1])
        K = X @ X.T
        p = np.diag(K) / np.trace(K)
        c = columns_needed(1, 0.6)
        errors = nystrom_errors(K, 1, c, p)
        assert errors.mean() <= nystrom_bound(K, 1, c)
        assert np.mean(errors > nystrom_bound(K, 1, c, DELTA)) <= DELTA
        assert nystrom_bound(K, 1, 4 * c) < np.linalg.norm(K)  # more than that 0 would do

    def test_its_short_form_here_is_the_algorithm(self, rows):
        K, p = Laplacian(0.5)(rows[:50]), np.linspace(1, 3, 50) / 100
        error = np.linalg.norm(K - nystrom(K, 4, 12, p, np.random.default_rng(0)))
        assert nystrom_errors(K, 4, 12, p, seeds=1) == pytest.approx(error)

    def test_a_sampler_that_leaves_rows_out_breaks_it(self):
        K = groups(60, 40)
        c = columns_needed(2, 0.35)
        assert nystrom_errors(K, 2, c, np.full(100, 0.01)).mean() < nystrom_bound(K, 2, c)
        one_group = np.repeat([1 / 60, 1e-9], [60, 40])
        errors = nystrom_errors(K, 2, c, one_group / one_group.sum())
        assert errors.mean() > nystrom_bound(K, 2, c)

    def test_a_sampler_without_weights_breaks_it(self):
        # Many small rows hold the largest eigenvector; without 1/√(c p) a large row looks larger.
        K = groups(200, 1)
        K[-1, -1] = 60.0
        p = np.diag(K) / np.trace(K)
        c = columns_needed(1, 0.25)
        bound = nystrom_bound(K, 1, c)
        assert nystrom_errors(K, 1, c, p, seeds=3).mean() <= bound
        assert nystrom_errors(K, 1, c, p, seeds=3, scaled=False).mean() > bound

    def test_the_sum_of_squares_that_the_text_prints_cannot_be(self, rng):
        X = rng.normal(size=(60, 5))
        K = 1e-3 * X @ X.T
        p = np.diag(K) / np.trace(K)
        c = 64
        error = nystrom_errors(K, 1, c, p).mean()
        printed = np.linalg.norm(np.linalg.eigvalsh(K)[:-1]) + np.sum(np.diag(K) ** 2)  # ε = 1
        assert printed < error <= nystrom_bound(K, 1, c)


class TestKMeansPlusPlus:
    def test_seeding_is_within_the_factor_and_uniform_seeding_is_not(self, rng):
        # Unequal groups far apart: a group that is missed costs dearly.
        sizes, centres = [200, 10, 10, 10], np.array([[0, 0], [1e3, 0], [0, 1e3], [1e3, 1e3]])
        labels = np.repeat(np.arange(4), sizes)
        X = centres[labels] + rng.normal(size=(230, 2))
        means = np.array([X[labels == j].mean(axis=0) for j in range(4)])

        def cost(points):
            return ((X[:, None] - points) ** 2).sum(axis=2).min(axis=1).sum()

        limit = kmeans_plus_plus_factor(4) * cost(means)
        seeded = [kmeans_plusplus(X, 4, random_state=s, n_local_trials=1)[0] for s in range(50)]
        uniform = [X[rng.choice(230, size=4, replace=False)] for _ in range(50)]
        assert np.mean([cost(points) for points in seeded]) <= limit
        assert np.mean([cost(points) for points in uniform]) > limit

    def test_of_one_cluster(self):
        assert kmeans_plus_plus_factor(1) == 16.0


EYE, P = np.eye(3), [0.5, 0.25, 0.25]
BAD = {
    "c": (lambda: approximate_product(EYE, EYE, 0), "c of approximate_product must be .*; got 0"),
    "c of a bound": (lambda: product_bound(EYE, EYE, -1), "c of product_bound .* got -1"),
    "k above c": (lambda: linear_time_svd(EYE, 3, 2), "at most c.* got k=3 and c=2"),
    "k above c in a bound": (lambda: nystrom_bound(EYE, 3, 2), "got k=3 and c=2"),
    "k above c in svd_bound": (lambda: svd_bound(EYE, 3, 2), "got k=3 and c=2"),
    "sum": (lambda: approximate_product(EYE, EYE, 2, [0.5, 0.2, 0.2]), "sum to 1; .* sum to 0.9"),
    "length": (lambda: linear_time_svd(EYE, 1, 2, [0.5, 0.5]), r"shape \(3,\); got \(2,\)"),
    "negative": (lambda: approximate_product(EYE, EYE, 2, [-0.5, 1, 0.5]), "non-negative .* -0.5"),
    "nan": (lambda: approximate_product(EYE, EYE, 2, [np.nan, 0.5, 0.5]), "non-negative"),
    "shapes": (lambda: approximate_product(EYE, np.eye(2), 2), r"got shapes \(3, 3\), \(2, 2\)"),
    "vector": (lambda: linear_time_svd([1.0, 2.0], 1, 1), r"matrix .* got shape \(2,\)"),
    "infinite": (lambda: product_bound([[np.inf]], [[1.0]], 1), "NaN or infinity"),
    "epsilon 0": (lambda: columns_needed(1, 0.0), r"in \(0, 1\]; got 0.0"),
    "epsilon above 1": (lambda: landmarks_needed(9, ridge=1, epsilon=1.5), "epsilon .* got 1.5"),
    "epsilon 1": (lambda: is_preserving(EYE, [0], 1.0, 1.0), r"in \(0, 1\); got 1.0"),
    "delta": (lambda: columns_needed(1, 0.5, 1.0), r"delta .* in \(0, 1\); got 1.0"),
    "beta": (lambda: product_bound(EYE, EYE, 2, 2.0), "beta .* got 2.0"),
    "ridge": (lambda: ridge_leverage_scores(EYE, ridge=0), "ridge .* positive number; got 0"),
    "ridge of a count": (lambda: landmarks_needed(9, ridge=-1), "ridge .* got -1"),
    "n": (lambda: landmarks_needed(0, ridge=1), "n of landmarks_needed .* got 0"),
    "dimension": (lambda: landmarks_needed(9, ridge=1, effective_dimension=0), "got 0"),
    "probes": (lambda: effective_dimension(EYE, ridge=1, probes=1), "at least 2; got 1"),
    "k": (lambda: kmeans_plus_plus_factor(0), "k of kmeans_plus_plus_factor .* got 0"),
    "kernel alone": (lambda: effective_dimension(RBF(1.0), ridge=1), "got RBF.* without X"),
    "matrix and X": (lambda: effective_dimension(EYE, EYE, ridge=1), "and X"),
    "Gram and X": (lambda: nystrom_bound(Gram(RBF(1.0), EYE), 1, 2, X=EYE), "and X"),
    "other points": (lambda: effective_dimension(Gram(RBF(1.0), EYE, EYE), ridge=1), "themselves"),
    "not symmetric": (lambda: nystrom_bound([[1.0, 2.0], [0.0, 1.0]], 1, 2), "symmetric"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_landmarks_that_are_no_rows():
    with pytest.raises(IndexError, match="from 0 to 2"):
        is_preserving(EYE, [3], ridge=1.0)


def test_given_probabilities_are_taken():
    C, _ = approximate_product(np.diag([1.0, 2.0, 3.0]), EYE, 50, [0.0, 1.0, 0.0], rng=0)
    assert_allclose(C @ C.T, np.diag([0.0, 4.0, 0.0]), atol=1e-12)
    assert_allclose(np.matmul(*approximate_product(EYE, EYE, 20_000, P, rng=0)), EYE, atol=0.05)


def test_clustering_on_landmarks_costs_at_most_the_bound(rng):
    middles = 6.0 * np.array([[0, 0], [1, 0], [0, 1]])
    X = np.repeat(middles, 30, axis=0) + rng.standard_normal((90, 2))
    gram, n, k = Gram(RBF(0.5), X), len(X), 3
    K, labels = np.array(gram.dense()), np.repeat(np.arange(k), 30)
    S = (labels[:, None] == labels) / 30.0  # the projection on this clustering
    for ridge in 0.5, 2.0, 8.0:
        dimension = theory.effective_dimension(gram, ridge=ridge)
        for m in 10, 30, 60:
            chosen = rng.choice(n, m, replace=False)
            if not theory.is_preserving(gram, chosen, ridge):
                continue
            C = K[:, chosen]
            projected = C @ np.linalg.pinv(K[np.ix_(chosen, chosen)], 1e-12) @ C.T
            excess = np.trace(S @ (K - projected) @ S) / n
            bound = theory.clustering_bound(n, k, ridge=ridge, effective_dimension=dimension)
            assert excess <= bound
    assert theory.clustering_bound(100, 5, ridge=2.0, effective_dimension=3.0) == 3 * 2 / 50
    assert theory.clustering_bound(100, 3, ridge=2.0, effective_dimension=5.0) == 3 * 2 / 50


def test_diagonal_draws_by_what_the_bound_needs():
    gram = Gram("linear", [[1.0], [2.0], [3.0]])
    drawn = gramian.Diagonal().select(gram, 50, np.random.default_rng(0))
    assert_allclose(drawn.probabilities, np.array([1, 4, 9])[drawn.indices] / 14)
