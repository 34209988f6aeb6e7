"""Landmarks by ridge leverage scores, against the dense formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramian
from gramian import RBF, Gram
from gramian.samplers.leverage import (
    BLESS,
    SQUEAK,
    LeverageScores,
    RecursiveLeverage,
    exact_leverage_scores,
)
from gramian.samplers.leverage.scores import (
    Dictionary,
    covered_dimension,
    draw,
    scores_from_factor,
    scores_from_spectrum,
    spectrum,
)
from gramian.samplers.leverage.squeak import _Passing

ALL = [LeverageScores, RecursiveLeverage, BLESS, SQUEAK]
DISTINCT = ALL[1:]
N, M, OUTLIERS = 600, 60, 5


def crowd_and_outliers():
    """A dense cluster, and a few rows far from it and from each other; in no order."""
    rng = np.random.default_rng(7)
    far = np.repeat(10.0 * np.arange(1, OUTLIERS + 1)[:, None], 2, axis=1)
    X = np.vstack([0.2 * rng.normal(size=(N - OUTLIERS, 2)), far])
    order = rng.permutation(N)
    return X[order], np.flatnonzero(order >= N - OUTLIERS)


X, FAR = crowd_and_outliers()
K = Gram(RBF(1.0), X).dense()


def gram():
    return Gram(RBF(1.0), X)


def choose(sampler, seed=0, m=M, of=None):
    return sampler.select(of or gram(), m, np.random.default_rng(seed))


def dense_scores(A, ridge):
    return np.diag(A @ np.linalg.inv(A + ridge * np.eye(len(A))))


def trace_left(S):
    C = K[:, S]
    inverse = np.linalg.pinv(K[np.ix_(S, S)], rcond=1e-10, hermitian=True)
    return np.trace(K - C @ inverse @ C.T)


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_exact_scores(ridge):
    scores = exact_leverage_scores(K, ridge)
    np.testing.assert_allclose(scores, dense_scores(K, ridge), rtol=1e-8, atol=1e-12)
    values = np.linalg.eigvalsh(K)
    np.testing.assert_allclose(scores.sum(), np.sum(values / (values + ridge)), rtol=1e-8)


def test_exact_scores_reject_nonsense():
    with pytest.raises(ValueError, match="square"):
        exact_leverage_scores(np.ones((2, 3)), 1.0)
    with pytest.raises(ValueError, match="ridge"):
        exact_leverage_scores(np.eye(2), 0.0)


def test_probabilities_are_the_normalised_scores():
    landmarks = choose(LeverageScores(ridge=2.0))
    scores = dense_scores(K, 2.0)
    assert len(landmarks) == M
    np.testing.assert_allclose(
        landmarks.probabilities, (scores / scores.sum())[landmarks.indices], rtol=1e-8
    )
    np.testing.assert_array_equal(landmarks.points, X[landmarks.indices])


def test_default_ridge_gives_a_dimension_that_m_draws_cover():
    _, scores = LeverageScores()._scored(gram(), M, None)
    assert scores.sum() == pytest.approx(M / (2 * np.log(M + np.e)), rel=1e-6)


def test_too_large_for_exact_scores():
    gramian.set_config(memory_budget="1MiB")
    with pytest.raises(ValueError, match="RecursiveLeverage"):
        choose(LeverageScores())


def test_dictionary_scores_follow_the_weighted_formula(rng):
    S, ridge = rng.choice(N, 50, replace=False), 0.7
    weights = rng.uniform(1, 9, size=50)
    rows = rng.permutation(N)[:400]  # more than one block
    inner = np.linalg.inv(K[np.ix_(S, S)] + ridge * np.diag(1 / weights))
    cross = K[np.ix_(rows, S)]
    expected = (1 - np.einsum("is,st,it->i", cross, inner, cross)) / ridge
    scores = Dictionary(gram(), S, weights).scores(rows, ridge)
    np.testing.assert_allclose(scores, expected.clip(0, 1), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("sampler", [RecursiveLeverage, BLESS])
@pytest.mark.parametrize("ridge", [1.0, 40.0])
def test_approximate_scores_are_near_the_exact_ones(sampler, ridge):
    exact = exact_leverage_scores(K, ridge)
    for seed in range(5):
        rows, scores = sampler(ridge)._scored(gram(), 100, np.random.default_rng(seed))
        ratio = scores / exact[rows]
        assert ratio.min() > 1 / 3 and ratio.max() < 3


def test_squeak_weighs_its_dictionary_as_all_rows():
    sums = [SQUEAK(5.0)._scored(gram(), M, np.random.default_rng(s))[1].sum() for s in range(10)]
    assert np.mean(sums) == pytest.approx(exact_leverage_scores(K, 5.0).sum(), rel=0.1)


def test_bless_looks_at_few_rows_while_the_ridge_is_large():
    rows, _ = BLESS(ridge=40.0)._scored(gram(), M, np.random.default_rng(0))
    assert M <= len(rows) < N / 2
    assert len(np.unique(rows)) == len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [None, 0.5])
@pytest.mark.parametrize("sampler", ALL)
def test_outliers_are_found(sampler, ridge):
    found, left, uniform = [], [], []
    for seed in range(10):
        S = choose(sampler(ridge), seed).indices
        found.append(np.isin(FAR, S).mean())
        left.append(trace_left(S))
        uniform.append(trace_left(np.random.default_rng(seed).choice(N, M, replace=False)))
    assert np.mean(found) > (0.95 if sampler is LeverageScores else 0.999)
    assert np.mean(left) < 0.1 * np.mean(uniform)


@pytest.mark.parametrize("sampler", ALL)
def test_seeds_reproduce(sampler):
    first, again, other = (choose(sampler(), seed).indices for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("sampler", ALL)
def test_precomputed_matrix_gives_the_same_landmarks(sampler):
    expected = choose(sampler(ridge=1.0))
    landmarks = choose(sampler(ridge=1.0), of=Gram("precomputed", K))
    np.testing.assert_array_equal(landmarks.indices, expected.indices)


@pytest.mark.parametrize(
    "sampler, bound",
    [
        (LeverageScores(), N * (N + 1)),
        (RecursiveLeverage(), N * (2 * M + 1) + 5 * M**2),
        (BLESS(ridge=0.1), 1.8 * N * M),  # the first subsets are small: the ridge starts above
        (BLESS(ridge=40.0), N * M / 2),
        (SQUEAK(), N * (2 * M + 1)),
        (SQUEAK(block_size=10), N * (M + 11)),
    ],
)
def test_evaluations(sampler, bound):
    oracle = gram()
    choose(sampler, of=oracle)
    assert 0 < oracle.evaluations <= bound
    assert oracle.evaluations <= sampler.most_evaluations(N, M) <= max(bound, 2.2 * N * M)


@pytest.mark.parametrize("m", [3, 20])
@pytest.mark.parametrize("block_size", [None, 1, 7, 45])
@pytest.mark.parametrize("n", [30, 161, 200, 361, 600])
def test_squeak_keeps_to_the_evaluations_it_states(n, m, block_size):
    sampler, oracle = SQUEAK(block_size=block_size), Gram(RBF(1.0), X[:n])
    choose(sampler, m=m, of=oracle)
    assert oracle.evaluations <= sampler.most_evaluations(n, m)


@pytest.mark.parametrize("sampler", DISTINCT)
def test_blocks_stay_small(sampler, monkeypatch):
    sizes, block = [], Gram.block
    monkeypatch.setattr(Gram, "block", lambda self, i, j: sizes.append(len(i)) or block(self, i, j))
    choose(sampler())
    assert max(sizes) <= 256


@pytest.mark.parametrize("sampler", DISTINCT)
@pytest.mark.parametrize("m", [1, 2, 3, 9, 61])
def test_as_many_distinct_landmarks_as_asked_for(sampler, m):
    indices = choose(sampler(), m=m).indices
    assert len(indices) == len(np.unique(indices)) == m


@pytest.mark.parametrize("sampler", DISTINCT)
@pytest.mark.parametrize("m", [4, 5])
def test_all_rows_where_m_is_as_many(sampler, m):
    np.testing.assert_array_equal(
        choose(sampler(), m=m, of=Gram(RBF(1.0), X[:4])).indices, range(4)
    )


def test_independent_draws_may_be_more_than_rows():
    landmarks = choose(LeverageScores(), m=9, of=Gram(RBF(1.0), X[:4]))
    assert len(landmarks) == len(landmarks.probabilities) == 9


@pytest.mark.parametrize("sampler", ALL)
def test_two_rows(sampler):
    assert len(choose(sampler(), m=1, of=Gram(RBF(1.0), [[0.0], [1.0]]))) == 1


@pytest.mark.parametrize("sampler", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates(sampler, dtype):
    rows = np.repeat(np.array([[0.0], [1.0], [50.0]], dtype), [60, 37, 3], axis=0)
    S = choose(sampler(), m=20, of=Gram(RBF(1.0), rows)).indices
    assert set(rows[S, 0]) == {0.0, 1.0, 50.0}


@pytest.mark.parametrize("sampler", ALL)
def test_rows_of_zeros_are_no_landmarks(sampler):
    rows = np.zeros((90, 3))
    rows[[10, 50, 80]] = np.eye(3)
    S = choose(sampler(), m=12, of=Gram("linear", rows)).indices
    assert set(S) == {10, 50, 80}


@pytest.mark.parametrize("sampler", ALL)
def test_a_matrix_of_zeros(sampler):
    assert len(choose(sampler(), m=5, of=Gram("linear", np.zeros((20, 2))))) == 5


@pytest.mark.parametrize("sampler", ALL)
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_of_the_matrix_does_not_matter(sampler, scale):
    scaled = choose(sampler(), of=Gram("precomputed", scale * K))
    np.testing.assert_array_equal(scaled.indices, choose(sampler()).indices)


@pytest.mark.parametrize("sampler", DISTINCT)
def test_a_row_that_dwarfs_the_others(sampler, rng):
    rows = rng.normal(size=(200, 5))
    rows[77] *= 1e8
    for seed in range(5):
        assert 77 in choose(sampler(ridge=1e-9), seed, m=20, of=Gram("linear", rows)).indices


@pytest.mark.parametrize("sampler", ALL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch(sampler, dtype):
    torch = pytest.importorskip("torch")
    rows = torch.asarray(X, dtype=getattr(torch, dtype))
    landmarks = choose(sampler(ridge=1.0), of=Gram(RBF(1.0), rows))
    assert torch.equal(landmarks.points, rows[landmarks.indices])
    assert np.isin(FAR, landmarks.indices).mean() > 0.7
    if dtype == "float64":
        np.testing.assert_array_equal(landmarks.indices, choose(sampler(ridge=1.0)).indices)


@pytest.mark.parametrize("sampler", ALL)
def test_bad_parameters(sampler):
    with pytest.raises(ValueError, match=f"ridge of {sampler.__name__}"):
        choose(sampler(ridge=-1.0))
    with pytest.raises(ValueError, match=f"m of {sampler.__name__}"):
        choose(sampler(), m=0)
    with pytest.raises(ValueError, match="block_size of SQUEAK"):
        choose(SQUEAK(block_size=0))
    with pytest.raises(ValueError, match="without separate columns"):
        choose(sampler(), of=Gram(RBF(1.0), X, X))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 30), st.integers(0, 99))
def test_draw_gives_distinct_positions_of_positive_score(scores, size, seed):
    scores = np.array(scores)
    picked, chances = draw(scores, size, np.random.default_rng(seed))
    wanted = np.flatnonzero(scores > 1e-300)
    wanted = wanted if len(wanted) else np.arange(len(scores))
    assert len(np.unique(picked)) == len(picked) == min(size, len(wanted))
    assert set(picked) <= set(wanted)
    assert np.all((chances > 0) & (chances <= 1))


@pytest.mark.slow
def test_draw_keeps_to_the_chances_it_states(rng):
    scores = np.array([5.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.0])
    expected = np.array([1.0, 0.8, 0.4, 0.4, 0.2, 0.2, 0.0])  # c = 0.4 makes three of these
    counts, neighbours = np.zeros(7), 0
    for _ in range(4000):
        picked, chances = draw(scores, 3, rng)
        np.testing.assert_allclose(chances, expected[picked])
        counts[picked] += 1
        neighbours += {2, 3} <= set(picked)
    np.testing.assert_allclose(counts / 4000, expected, atol=0.03)
    assert neighbours > 0  # in a random order, or rows next to each other would exclude each other


def test_scores_from_a_factor_are_those_of_the_spectrum():
    K = np.array(Gram(RBF(0.5), np.random.default_rng(0).standard_normal((60, 3))).dense())
    K[7] = K[:, 7] = 0.0
    values, vectors = spectrum(K)
    for ridge in 1e-3, 0.1, 10.0:
        expected = scores_from_spectrum(values, vectors, ridge)
        np.testing.assert_allclose(scores_from_factor(K, ridge), expected, atol=1e-10)
    assert scores_from_factor(K, 0.1)[7] == 0.0
    assert scores_from_factor(-np.eye(3), 0.5) is None


@pytest.mark.parametrize("kernel", [RBF(1.0), "precomputed"])
def test_parts_of_squeak_are_merged_as_they_are_whatever_the_threads(kernel):
    found = []
    for threads in 1, 3:
        with gramian.config_context(n_threads=threads):
            rows = X if isinstance(kernel, RBF) else K
            found.append(choose(SQUEAK(), m=20, of=Gram(kernel, rows)).indices)  # four parts
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], choose(SQUEAK(), m=20).indices)


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-10), ("float32", 5e-5)])
@pytest.mark.parametrize("ridge", [None, 3.0, 5e-3])
def test_every_block_of_squeak_has_the_scores_of_a_suitable_ridge(monkeypatch, ridge, dtype, atol):
    seen, score = [], _Passing._score

    def watched(self, K, sampler, m, dtype):
        score(self, K, sampler, m, dtype)
        seen.append((K.copy(), self.scores))

    monkeypatch.setattr(_Passing, "_score", watched)
    X = np.random.default_rng(0).standard_normal((600, 3)).astype(dtype)
    gram = Gram(RBF(0.5), X)
    SQUEAK(ridge).select(gram, 40, np.random.default_rng(1))
    assert len(seen) == 30 + 2  # blocks, and parts that are merged
    for K, scores in seen:
        assert K.dtype == dtype
        values, vectors = spectrum(K.astype(np.float64))
        if ridge is None:
            assert scores.sum() == pytest.approx(covered_dimension(40), rel=0.031)
        else:
            expected = scores_from_spectrum(values, vectors, ridge)
            np.testing.assert_allclose(scores, expected, atol=atol)
