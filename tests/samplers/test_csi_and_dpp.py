"""CSI and k-DPP landmarks, against brute force on dense matrices."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian import RBF, Gram, KernelRidge, Nystroem, config_context
from gramian.samplers import csi
from gramian.samplers.csi import CSI, _orthonormalise
from gramian.samplers.dpp import KDPP, _Swept, swaps

SAMPLERS = [CSI(), CSI(delta=3, centred=False, mixing=0.5), KDPP(), KDPP(n_steps=100)]


def rows(n=120, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * 0.6 ** np.arange(d)


def chosen(sampler, kernel, X, m, seed=0, y=None):
    gram = kernel if isinstance(kernel, Gram) else Gram(kernel, X)
    y = np.arange(gram.shape[0], dtype=float) if y is None else y
    return sampler.select(gram, m, np.random.default_rng(seed), y).indices


def trace_error(K, indices):
    C = K[:, indices]
    return np.trace(K) - np.trace(C @ np.linalg.pinv(K[np.ix_(indices, indices)], 1e-12) @ C.T)


def loss(K, indices, Y):
    """The squared residual of centred targets after regression on these columns."""
    C = K[:, indices] - K[:, indices].mean(axis=0)
    Y = Y - Y.mean(axis=0)
    return np.sum((Y - C @ np.linalg.lstsq(C, Y, rcond=1e-10)[0]) ** 2)


# both


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (2, 2), (2, 5), (40, 7), (40, 40), (40, 99)])
def test_landmarks_are_distinct_rows(sampler, n, m):
    X = rows(n)
    landmarks = sampler.select(Gram(RBF(1.0), X), m, np.random.default_rng(0), X[:, 0])
    indices = landmarks.indices
    assert len(landmarks) == len(set(indices.tolist())) == min(n, m)
    assert (landmarks.points == X[indices]).all()
    assert landmarks.probabilities is None


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_deficient_matrices_give_as_many_rows_as_their_rank(sampler, dtype):
    X = rows(50, 3).astype(dtype)
    X[::5] = 0  # rows of zeros
    X[1] = X[2]  # and a row that is there twice
    indices = chosen(sampler, "linear", X, 10)
    assert len(indices) == 3
    assert np.linalg.matrix_rank(X[indices]) == 3
    twice = np.repeat(rows(6, 2).astype(dtype), 4, axis=0)
    indices = chosen(sampler, RBF(1.0), twice, 24)
    assert sorted(indices // 4) == list(range(6))
    assert len(chosen(sampler, "linear", np.zeros((4, 2), dtype), 3)) == 1


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearly_singular_matrices(sampler, dtype):
    X = rows(60, 2).astype(dtype)
    for gamma in 1e-3, 1e-2, 1e-1:
        for seed in range(3):
            indices = chosen(sampler, RBF(gamma), X, 50, seed)
            assert 3 <= len(indices) < 50
            assert len(set(indices.tolist())) == len(indices)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_a_stored_matrix_gives_the_same_rows(sampler):
    X = rows()
    stored = Gram("precomputed", np.array(Gram(RBF(0.5), X).dense()))
    for seed in range(3):
        expected = chosen(sampler, RBF(0.5), X, 15, seed)
        assert (chosen(sampler, stored, None, 15, seed) == expected).all()


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_other_libraries_and_float32(sampler):
    torch = pytest.importorskip("torch")
    X = rows()
    K = np.array(Gram(RBF(0.5), X).dense())
    exact = trace_error(K, chosen(sampler, RBF(0.5), X, 20))
    X32 = X.astype(np.float32)
    y = torch.asarray(X[:, 0])
    for other in X32, torch.asarray(X), torch.asarray(X32):
        indices = chosen(sampler, RBF(0.5), other, 20, y=y)
        assert isinstance(indices, np.ndarray)
        assert len(set(indices.tolist())) == 20
        assert trace_error(K, indices) < 3 * exact


def test_seeds_reproduce():
    X = rows()
    runs = [chosen(KDPP(), RBF(0.5), X, 10, seed).tolist() for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]
    assert (chosen(CSI(), RBF(0.5), X, 10, 0) == chosen(CSI(), RBF(0.5), X, 10, 1)).all()


@pytest.mark.slow
@given(st.integers(1, 60), st.integers(1, 70), st.integers(1, 200))
def test_evaluations_stay_within_the_bounds_stated(n, m, steps):
    X = rows(n, 2)
    gram = Gram(RBF(2.0), X)
    CSI(delta=9).select(gram, m, np.random.default_rng(0), X[:, 1])
    assert gram.evaluations <= CSI(delta=9).most_evaluations(n, min(m, n))

    gram = Gram(RBF(2.0), X)
    KDPP(n_steps=steps).select(gram, m, np.random.default_rng(0))
    m = min(m, n)
    batch = max(m, 32)
    assert gram.evaluations <= n * (1 + m) + -(-steps // batch) * (m + batch) ** 2


def test_the_chain_is_short_unless_asked():
    X = rows(2000, 2)
    counts = []
    for sampler in KDPP(), KDPP(n_steps=400):
        gram = Gram(RBF(2.0), X)
        sampler.select(gram, 40, np.random.default_rng(0))
        counts.append(gram.evaluations)
    assert counts[0] == counts[1] < 2000 * (1 + 40 + 40)


# CSI


def gains_by_brute_force(K, taken, Y):
    """What each further row takes off the trace and off the loss."""
    before = np.array([trace_error(K, taken), loss(K, taken, Y)])
    after = [(trace_error(K, [*taken, i]), loss(K, [*taken, i], Y)) for i in range(len(K))]
    return (before - np.array(after)).T


@pytest.mark.parametrize("kappa", [0.0, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("targets", [1, 3])
def test_with_all_columns_ahead_the_pivots_are_the_best(kappa, targets):
    X = rows(30, 3)
    Y = np.sin(3 * X[:, :targets]) * [1.0, 2.0, 3.0][:targets] + 5
    K = np.array(Gram(RBF(0.5), X).dense())
    pivots = chosen(CSI(delta=30, mixing=kappa), RBF(0.5), X, 6, y=Y if targets > 1 else Y[:, 0])
    whole = np.trace(K), np.sum((Y - Y.mean(axis=0)) ** 2)
    for k, pivot in enumerate(pivots):
        explains, predicts = gains_by_brute_force(K, list(pivots[:k]), Y)
        gains = (1 - kappa) * explains / whole[0] + kappa * predicts / whole[1]
        assert gains[pivot] == pytest.approx(gains.max(), rel=1e-7)


def scaled(K, Y, centred):
    Y = Y - Y.mean(axis=0) if centred else Y
    return Y, np.trace(K), np.sum(Y**2)


def away(K, taken, centred, C):
    """C less its projection on the columns of the pivots, and on the constants."""
    B = np.column_stack([np.ones((len(K), int(centred))), K[:, taken]])
    Q = np.linalg.qr(B)[0]
    C = C - Q @ (Q.T @ C)
    return C - Q @ (Q.T @ C)


def residual(K, rows):
    E = K - K[:, rows] @ np.linalg.pinv(K[np.ix_(rows, rows)], 1e-13) @ K[rows]
    E[rows] = E[:, rows] = 0.0
    return E


def in_dense_matrices(K, Y, m, delta, kappa, centred):
    """CSI as documented: exact gains of the rows ahead, which the residuals choose in blocks."""
    Y, trace, total = scaled(K, Y, centred)
    taken, ahead = [], []
    while len(taken) < m:
        if len(ahead) < delta:
            missed = np.sum(away(K, taken, centred, Y) ** 2, axis=1)
            chances = (1 - kappa) / len(K) + kappa * missed / missed.sum()
            while len(ahead) < min(delta + delta // 2, m + delta - len(taken)):
                unseen = residual(K, taken + ahead).diagonal()
                ahead.append(int(np.argmax(np.where(unseen > 1e-12, unseen * chances, -1))))
        C, R = residual(K, taken)[:, ahead], away(K, taken, centred, Y)
        explains = np.sum(C**2, axis=0) / C[ahead, range(len(ahead))]
        PC = away(K, taken, centred, C)
        predicts = np.sum((R.T @ PC) ** 2, axis=0) / np.sum(PC**2, axis=0)
        taken.append(
            ahead.pop(int(np.argmax((1 - kappa) * explains / trace + kappa * predicts / total)))
        )
    return taken


def as_published(K, Y, m, delta, kappa, centred):
    """CSI as Bach and Jordan, and kernlab, have it: all rows have gains, most of them estimated."""
    Y, trace, total = scaled(K, Y, centred)
    taken, ahead = [], []
    while len(taken) < m:
        E = residual(K, taken)
        while len(ahead) < delta:
            ahead.append(int(np.argmax(residual(E, ahead).diagonal())))
        unseen = np.maximum(residual(E, ahead).diagonal(), 0.0)
        seen, D = E - residual(E, ahead), E.diagonal()
        explains = np.sum(seen**2, axis=0) + D**2 - (D - unseen) ** 2
        PC = away(K, taken, centred, seen)
        lengths = np.sum(PC**2, axis=0)
        predicts = np.sum((Y.T @ PC) ** 2, axis=0) / np.maximum(lengths, 1e-12)
        gains = (1 - kappa) * explains / np.maximum(D, 1e-12) / trace + kappa * predicts / total
        gains[taken] = -1.0
        taken.append(int(np.argmax(gains)))
        ahead = [row for row in ahead if row != taken[-1]]
    return taken


@pytest.mark.parametrize(("kappa", "centred"), [(0.0, True), (0.5, False), (0.99, True)])
def test_it_chooses_what_the_dense_matrices_say(kappa, centred):
    X = rows(90)
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]])
    K = np.array(Gram(RBF(0.5), X).dense())
    found = chosen(CSI(8, centred, kappa), RBF(0.5), X, 25, y=Y)
    assert found.tolist() == in_dense_matrices(K, Y, 25, 8, kappa, centred)


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_of_rows_and_threads_change_nothing(monkeypatch, threads):
    X = rows(90)
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]])
    K = np.array(Gram(RBF(0.5), X).dense())
    monkeypatch.setattr(csi, "BLOCK", 16)
    with config_context(n_threads=threads):
        found = chosen(CSI(8), RBF(0.5), X, 25, y=Y)
    assert found.tolist() == in_dense_matrices(K, Y, 25, 8, 0.99, True)


def test_it_leaves_the_target_as_it_is():
    X = rows(200)
    for centred in True, False:
        chosen(CSI(5, centred), RBF(0.5), X, 20, y=(y := X[:, 1].copy()))
        assert (y == X[:, 1]).all()


def test_float32_rows_have_the_same_pivots():
    X = rows(400).astype(np.float32)
    y = np.sin(2 * X[:, 0])
    found = [chosen(CSI(8), RBF(0.5), each, 40, y=y) for each in (X, X.astype(np.float64))]
    assert found[0].tolist() == found[1].tolist()


def test_a_basis_of_columns_that_are_nearly_dependent():
    F = np.random.default_rng(0).standard_normal((200, 4)) * [1.0, 1e-8, 1e8, 1.0]
    for last in (F[:, 3], F[:, 0] + 1e-6 * F[:, 3], F[:, 0] + 1e-12 * F[:, 3]):
        F[:, 3] = last
        _orthonormalise(columns := F.T.copy())
        Q = columns.T
        np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=1e-13)
        np.testing.assert_allclose(Q @ (Q.T @ F), F, atol=1e-9 * np.abs(F).max())


def test_without_the_target_it_is_incomplete_cholesky():
    X = rows(300)
    K = np.array(Gram(RBF(0.5), X).dense())
    left, greedy = K.copy(), []
    for _ in range(25):
        greedy.append(int(np.argmax(np.diag(left))))
        left -= np.outer(left[:, greedy[-1]], left[greedy[-1]]) / left[greedy[-1], greedy[-1]]
    for kappa in 0.0, 1e-6:
        pivots = chosen(CSI(delta=10, mixing=kappa), RBF(0.5), X, 25, y=X[:, 3])
        assert trace_error(K, pivots) < 1.02 * trace_error(K, greedy)


@pytest.mark.parametrize("seed", range(3))
def test_it_predicts_what_a_direction_of_small_variance_says(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 12)) * 3.0
    X[:, 0] = np.where(np.arange(300) < 30, 1.0, 0.0) * rng.standard_normal(300)
    X[:30, 1:] *= 0.05  # few rows show it, and they are the short ones
    y, K = X[:, 0], X @ X.T
    blind = [chosen(CSI(mixing=0.0), "linear", X, 5, y=y)]
    blind += [rng.choice(300, 5, replace=False) for _ in range(20)]
    found = loss(K, chosen(CSI(), "linear", X, 5, y=y), y)
    assert found < 0.1 * np.median([loss(K, indices, y) for indices in blind])
    assert found < 0.1 * loss(K, blind[0], y)


@pytest.mark.parametrize("seed", range(2))
def test_on_a_slow_spectrum_it_predicts_better_than_the_published_form(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((250, 10))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    K, Y = np.array(Gram(RBF(0.2), X).dense()), y[:, None]
    found = loss(K, chosen(CSI(20), RBF(0.2), X, 20, y=y), Y)
    uniform = [loss(K, rng.choice(250, 20, replace=False), Y) for _ in range(5)]
    assert found < 0.7 * np.mean(uniform)
    assert found < 0.9 * loss(K, as_published(K, Y, 20, 20, 0.99, True), Y)


@pytest.mark.slow
def test_on_slow_spectra_the_default_predicts_unseen_rows_better_than_uniform_rows():
    errors = {"csi": [], "uniform": []}
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((900, 5 if seed % 2 else 10))
        gamma = 1.0 if seed % 2 else 0.2
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
        for name, found in errors.items():
            approximation = Nystroem(RBF(gamma), 50, landmarks=name, random_state=seed)
            model = KernelRidge(0.1, approximation).fit(X[:400], y[:400])
            found.append(1 - model.score(X[400:], y[400:]))
    ratios = np.divide(errors["csi"], errors["uniform"])
    assert ratios.mean() < 0.8
    assert (ratios < 1).all()


def test_what_it_says_of_a_bad_target_or_parameter():
    gram, rng = Gram(RBF(1.0), rows(20)), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"needs y: fit\(X, y\)"):
        CSI().select(gram, 3, rng)
    with pytest.raises(ValueError, match="each of the 20 rows; got shape"):
        CSI().select(gram, 3, rng, np.zeros(19))
    with pytest.raises(ValueError, match="y as numbers"):
        CSI().select(gram, 3, rng, np.array(["a", "b"] * 10))
    with pytest.raises(ValueError, match="NaN"):
        CSI().select(gram, 3, rng, np.full(20, np.nan))
    for wrong in CSI(mixing=1.5), CSI(mixing=-0.1), CSI(delta=0):
        with pytest.raises(ValueError, match="of CSI must be"):
            wrong.select(gram, 3, rng, np.zeros(20))
    with pytest.raises(ValueError, match="n_steps of KDPP"):
        KDPP(n_steps=0).select(gram, 3, rng)
    assert len(CSI(mixing=1.0).select(gram, 3, rng, np.ones(20))) == 3  # nothing to predict
    assert len(CSI().select(gram, 3, rng, np.arange(20))) == 3  # classes, as integers


# k-DPP

PAIRS = list(combinations(range(6), 2))
FAR = 36.1  # a chi-square of 14 degrees of freedom is above it once in a thousand


def six_rows():
    X = np.array([[3.0, 0.0], [2.0, 0.5], [1.5, -0.5], [0.0, 0.6], [0.3, -0.8], [0.1, 0.7]])
    K = X @ X.T + 0.1 * np.eye(6)
    return K, np.array([np.linalg.det(K[np.ix_(pair, pair)]) for pair in PAIRS])


def chi_square(visited, weights):
    expected = len(visited) * weights / weights.sum()
    observed = np.zeros(len(PAIRS))
    for pair in visited:
        observed[PAIRS.index(tuple(sorted(int(i) for i in pair)))] += 1
    return np.sum((observed - expected) ** 2 / expected)


@pytest.mark.slow
def test_the_chain_visits_sets_as_their_determinants_say(rng):
    K, weights = six_rows()
    candidates = rng.integers(6, size=100_000)
    visited = list(swaps(K, np.array([0, 3]), candidates, rng))[::25]  # all but independent
    assert chi_square(visited, weights) < FAR
    # the tolerance is tight enough to tell other laws apart
    for wrong in weights**0.8, np.ones(15), weights**2:
        draws = rng.choice(15, size=len(visited), p=wrong / wrong.sum())
        assert chi_square([PAIRS[i] for i in draws], weights) > 2 * FAR


@pytest.mark.slow
def test_the_sampler_draws_sets_as_their_determinants_say():
    K, weights = six_rows()  # where the pivots of the start follow another law
    gram, rng = Gram("precomputed", K), np.random.default_rng(1)
    sampler = KDPP(n_steps=40)  # two batches
    drawn = [sampler.select(gram, 2, rng).indices for _ in range(1000)]
    assert chi_square(drawn, weights) < FAR


def test_swaps_keep_the_inverse():
    X = rows(9)
    K = np.array(Gram(RBF(0.5), X).dense())
    members, positions = np.array([4, 0, 7, 2]), {4, 0, 7, 2}
    few = _Swept(K, np.linalg.inv(K[np.ix_(members, members)]), members, np.arange(9))
    # row 7 leaves and comes back, row 8 enters and leaves
    for old, new in [(7, 8), (0, 1), (2, 5), (8, 3), (5, 7)]:
        before = list(positions)
        positions = positions - {old} | {new}
        after = list(positions)
        ratio = np.linalg.det(K[np.ix_(after, after)]) / np.linalg.det(K[np.ix_(before, before)])
        assert not few.swap(old, new, ratio * (1 + 1e-7))
        assert few.swap(old, new, ratio * (1 - 1e-7))
        assert not few.swap(old, new, 0.0)  # it is a member now
        found, inverse = few.result()
        assert set(found.tolist()) == positions
        expected = np.linalg.inv(K[np.ix_(found, found)])
        np.testing.assert_allclose(inverse, expected, rtol=1e-6, atol=1e-8)


def test_it_leaves_less_than_uniform_rows():
    X = rows(400)
    X[:370] *= 0.2  # most rows are alike
    K = np.array(Gram(RBF(0.5), X).dense())
    rng = np.random.default_rng(0)
    uniform = [trace_error(K, rng.choice(400, 20, replace=False)) for _ in range(10)]
    drawn = [trace_error(K, chosen(KDPP(), RBF(0.5), X, 20, seed)) for seed in range(10)]
    assert np.mean(drawn) < 0.7 * np.mean(uniform)
