"""Scales of columns, and parameters of kernels that are learned from a target."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import gramian
from gramian import (
    RBF,
    Cauchy,
    Chi2,
    Exponential,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Matern,
    Nystroem,
    Polynomial,
    RandomFourier,
    RationalQuadratic,
)
from gramian.kernels import gamma, learning, leave_one_out, refining
from gramian.testing import check_kernel

SCALES = np.array([2.0, 0.5, 0.0, 1.0, 3.0])
DISTANCE_KERNELS = [RBF, Laplacian, Exponential, Matern, RationalQuadratic, Cauchy]


def data(n=160, d=4, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) + noise * rng.standard_normal(n)


# Given scales.


@pytest.mark.parametrize("kernel", DISTANCE_KERNELS)
def test_scales_multiply_the_columns(kernel):
    X = np.random.default_rng(0).standard_normal((20, 5))
    found = kernel(0.2, scales=SCALES)(X)
    np.testing.assert_allclose(found, kernel(0.2)(X * SCALES), rtol=1e-12)
    sparse = kernel(0.2, scales=SCALES)(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse, found, atol=1e-12)


def test_a_matrix_maps_the_rows():
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((20, 5)), rng.standard_normal((5, 5))
    np.testing.assert_allclose(RBF(0.2, scales=A)(X), RBF(0.2)(X @ A), rtol=1e-11)


@pytest.mark.parametrize("kernel", [RBF, Laplacian, Matern])
def test_kernels_with_scales_obey_the_laws(kernel):
    check_kernel(kernel(0.1, scales=SCALES))


def test_chi_squared_takes_scales_too():
    X = np.random.default_rng(0).uniform(size=(20, 5))
    np.testing.assert_allclose(Chi2(1.0, scales=SCALES)(X), Chi2(1.0)(X * SCALES), rtol=1e-12)


@pytest.mark.parametrize("rule", ["scale", "median", "mean", ("percentile", 30)])
def test_rules_for_gamma_see_the_scaled_rows(rule):
    X = np.random.default_rng(0).standard_normal((50, 5))
    expected = RBF(rule).fit(X * SCALES).gamma_
    assert RBF(rule, scales=SCALES).fit(X).gamma_ == pytest.approx(expected, rel=1e-9)


def test_random_features_follow_the_scales():
    X = np.random.default_rng(0).standard_normal((30, 5))
    for kernel in (RBF(0.1, scales=SCALES), Laplacian(0.1, scales=SCALES)):
        Z = RandomFourier(kernel, 4000, random_state=0).fit_transform(X)
        assert np.abs(Z @ Z.T - kernel(X)).max() < 0.1


def test_a_product_of_kernels_with_different_scales_has_no_random_features():
    X = np.random.default_rng(0).standard_normal((30, 5))
    other = RBF(0.1) * RBF(0.1, scales=SCALES)
    assert other.spectrum() is None
    both = RBF(0.1, scales=SCALES) * RBF(0.2, scales=SCALES)
    Z = RandomFourier(2.0 * both, 4000, random_state=0).fit_transform(X)
    assert np.abs(Z @ Z.T - 2.0 * both(X)).max() < 0.2


def test_bad_scales_are_refused():
    X = np.zeros((4, 3))
    with pytest.raises(ValueError, match="are for 2 columns, but the rows have 3"):
        RBF(1.0, scales=[1.0, 2.0])(X)
    for bad in (np.ones((2, 3)), [1.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="one number for each column"):
            RBF(1.0, scales=bad)(X)
    with pytest.raises(ValueError, match="'learn', 'metric'; got 'lern'"):
        RBF(1.0, scales="lern").fit(*data())


# The leave-one-out error and its search, against the plain computation.


@given(seed=st.integers(0, 10**6), alpha=st.floats(1e-3, 10.0))
@settings(max_examples=15, deadline=None)
def test_leave_one_out_errors_are_those_of_fits_without_the_row(seed, alpha):
    rng = np.random.default_rng(seed)
    n = 8
    X, Y, mass = rng.standard_normal((n, 2)), rng.standard_normal((n, 2)), rng.uniform(0.5, 2, n)
    sample = leave_one_out.centred(X, Y, mass)
    K = RBF(0.5)(X)
    found = leave_one_out.fit(K, sample, alpha)
    for i in range(n):
        rest = np.arange(n) != i
        system = K[np.ix_(rest, rest)] + alpha * np.diag(1 / sample.weights[rest])
        left_out = K[i, rest] @ np.linalg.solve(system, sample.Y[rest])
        np.testing.assert_allclose(found.missed[i], sample.Y[i] - left_out, rtol=1e-8, atol=1e-10)
    squares = (sample.weights[:, None] * found.missed**2).sum()
    assert found.error == pytest.approx(squares / (sample.weights[:, None] * sample.Y**2).sum())


def test_the_search_for_alpha_finds_what_a_grid_finds_from_any_start():
    X, y = data()
    sample = leave_one_out.centred(X, y[:, None], np.ones(len(X)))
    K = RBF(0.3)(X)
    grid = [leave_one_out.fit(K, sample, alpha).error for alpha in np.geomspace(1e-6, 1e3, 60)]
    for start in (None, 1e-6, 1e3):
        assert leave_one_out.best_alpha(K, sample, start).error < 1.01 * min(grid)


def test_equal_rows_become_one_with_their_weight_and_mean_target():
    X = np.array([[1.0], [2.0], [1.0], [3.0]])
    Y = np.array([[1.0], [5.0], [4.0], [0.0]])
    sample = leave_one_out.grouped(X, Y, np.array([2.0, 1.0, 1.0, 1.0]))
    np.testing.assert_array_equal(sample.X, [[1.0], [2.0], [3.0]])
    np.testing.assert_allclose(sample.weights, np.array([3.0, 1.0, 1.0]) * 3 / 5)
    np.testing.assert_allclose(np.diff(sample.Y[:, 0]), [3.0, -5.0])


# Gradients.


@pytest.mark.parametrize("kernel", DISTANCE_KERNELS)
@pytest.mark.parametrize("scales", [None, SCALES[:4]])
def test_gradients_are_those_of_differences(kernel, scales):
    rng = np.random.default_rng(1)
    X, coefficients = rng.standard_normal((12, 4)), rng.standard_normal((12, 2))
    at = rng.standard_normal((3, 4))  # no training rows: rough kernels have a kink there
    trial = kernel(0.3, scales=scales)
    Z, z = (X, at) if scales is None else (X * scales, at * scales)
    found = np.stack(list(learning.gradients(kernel(0.3), z, Z, coefficients)), axis=2)
    found = found if scales is None else found * scales[:, None]
    step = 1e-5
    for c in range(4):
        moved = np.eye(4)[c] * step
        change = (trial(at + moved, X) - trial(at - moved, X)) @ coefficients / (2 * step)
        np.testing.assert_allclose(found[:, c], change, rtol=1e-4, atol=1e-6)


def test_the_metric_is_the_root_of_the_mean_outer_product_of_gradients():
    X, y = data()
    sample = leave_one_out.centred(X, y[:, None], np.ones(len(X)))
    trial = learning.search(RBF("loo"), sample, np.eye(4))
    (G,) = learning.gradients(RBF(trial.kernel.gamma), X, X, trial.fit.coefficients)
    A = learning.next_scales(trial, sample, metric=True)
    expected = G.T @ G
    np.testing.assert_allclose(A @ A / np.trace(A @ A), expected / np.trace(expected), atol=1e-8)


# Learned parameters.


@pytest.mark.parametrize("kernel", [RBF, Laplacian, Matern])
def test_learned_scales_find_the_column_that_matters(kernel):
    X, y = data()
    new, truth = data(seed=1, noise=0.0)
    plain = KernelRidge("loo", kernel("loo"), random_state=0).fit(X, y)
    model = KernelRidge("loo", kernel(scales="learn"), random_state=0).fit(X, y)
    assert model.kernel_.scales_.argmax() == 0
    assert model.kernel_.scales_.mean() == pytest.approx(1.0)
    assert model.kernel_.feature_importances_[0] > 0.9
    assert model.kernel_.feature_importances_.sum() == pytest.approx(1.0)
    missed = [np.mean((each.predict(new) - truth) ** 2) for each in (model, plain)]
    assert missed[0] < 0.85 * missed[1]


def test_a_metric_finds_a_direction_across_the_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    direction = np.array([1.0, 1.0, -1.0, 0.0]) / 3**0.5
    y = np.sin(2 * X @ direction)
    model = KernelRidge("loo", RBF(scales="metric"), random_state=0).fit(X, y)
    values, vectors = np.linalg.eigh(model.kernel_.scales_)
    assert values[-1] > 5 * values[-2]
    assert abs(vectors[:, -1] @ direction) > 0.99
    assert model.score(X, y) > 0.99


def test_every_part_of_the_library_takes_a_kernel_that_learns():
    X, y = data()
    for kernel in (
        Nystroem(RBF(scales="learn"), 50, random_state=0),
        RBF("loo") * Laplacian("loo"),
    ):
        assert KernelRidge("loo", kernel, random_state=0).fit(X, y).score(X, y) > 0.5
    classes = np.where(X[:, 0] > 0, "up", "down")
    model = KernelRidgeClassifier("loo", Laplacian(scales="learn"), random_state=0)
    assert model.fit(X, classes).kernel_.feature_importances_.argmax() == 0


def test_a_learned_kernel_is_saved_with_what_it_learned(tmp_path):
    X, y = data()
    model = KernelRidge("loo", RBF(scales="learn"), random_state=0).fit(X, y)
    gramian.save(model, tmp_path / "model")
    np.testing.assert_array_equal(gramian.load(tmp_path / "model").predict(X), model.predict(X))


def test_gamma_is_searched_with_alpha():
    X, y = data(d=1)
    best = KernelRidge("loo", RBF("loo"), random_state=0).fit(X, y)
    for factor in (0.1, 10.0):
        other = KernelRidge("loo", RBF(factor * best.kernel_.gamma_)).fit(X, y)
        assert best.path_.errors.min() < other.path_.errors.min()
    by_width = KernelRidge("loo", RBF(bandwidth="loo"), random_state=0).fit(X, y)
    assert by_width.kernel_.gamma_ == best.kernel_.gamma_


def test_smoothness_and_degree_are_chosen_too():
    X, y = data(noise=0.02)
    smooth = KernelRidge("loo", Matern("loo", nu="loo"), random_state=0).fit(X, y)
    assert smooth.kernel_.nu_ == 2.5
    rough = KernelRidge("loo", Matern("loo", nu="loo"), random_state=0).fit(X[:, :1], np.sign(y))
    assert rough.kernel_.nu_ < 2.5
    curve = 1.0 + X[:, 0] * X[:, 1]
    chosen = KernelRidge("loo", Polynomial(degree="loo", gamma="loo"), random_state=0)
    assert chosen.fit(X, curve).kernel_.degree_ == 2


def test_a_number_or_a_rule_for_gamma_is_kept_while_scales_are_learned():
    X, y = data()
    assert RBF(0.25, scales="learn").fit(X, y).gamma_ == 0.25
    kernel = RBF("median", scales="learn").fit(X, y)
    assert kernel.gamma_ == pytest.approx(RBF("median").fit(X * kernel.scales_).gamma_)


def test_what_learns_needs_a_target_and_a_kernel_with_gradients():
    X = np.random.default_rng(0).uniform(size=(30, 3))
    with pytest.raises(ValueError, match="learns from a target: use a learner that has one"):
        KernelPCA(2, kernel=RBF("loo")).fit(X)
    with pytest.raises(ValueError, match=r"scales='learn', which are learned .*fit\(X, y\)"):
        RBF(1.0, scales="learn")(X)
    with pytest.raises(ValueError, match="for kernels of the Euclidean distance"):
        Chi2(scales="learn").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="scales='metric' is for kernels of the Euclidean"):
        Laplacian(scales="metric").fit(X, X[:, 0])


def test_the_sample_keeps_within_the_memory_budget():
    X, y = data(n=3000)
    rows = gramian.as_rows(X)
    with gramian.config_context(memory_budget="16MB"):
        count = RBF("loo")._learnt_rows(rows)
        assert RBF("loo").fit_bytes(rows) < 16e6 and count < 300
        assert RBF("loo").fit(X, y).gamma_ > 0


def test_bad_targets_are_refused():
    X, y = data(n=30)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidge("loo", RBF("loo")).fit(X, y[:-1])
    y[3] = np.nan
    with pytest.raises(ValueError, match="y contains NaN"):
        KernelRidge("loo", RBF("loo")).fit(X, y)


# Many rows: ridge over landmarks.


@pytest.fixture
def few(monkeypatch):
    """Let 'many rows' be hundreds."""
    monkeypatch.setattr(gamma, "LEARNT_ROWS", 60)
    monkeypatch.setattr(refining, "LEAST_ROWS", 100)
    monkeypatch.setattr(refining, "LANDMARKS", 60)
    monkeypatch.setattr(refining, "BLOCK", 70)


def test_ridge_over_landmarks_is_the_dense_formula(few):
    X, y = data(n=300)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 300)
    bench = refining.Bench(leave_one_out.centred(X, np.stack([y, X[:, 1]], axis=1), weights))
    assert not set(bench.fitted) & set(bench.judged)
    found = bench.solve(RBF(0.3, scales=np.ones(X.shape[1])), 0.1)
    kernel, w = RBF(0.3), bench.sample.weights[bench.fitted]
    K, P = kernel(X[bench.fitted], bench.landmarks), kernel(bench.landmarks)
    system = K.T @ (w[:, None] * K) + found.alpha * P
    a = np.linalg.solve(system, K.T @ (w[:, None] * bench.Y[bench.fitted]))
    missed = bench.Y[bench.judged] - kernel(X[bench.judged], bench.landmarks) @ a
    np.testing.assert_allclose(found.missed, missed, atol=1e-5)
    squares = bench.sample.weights[bench.judged] @ np.square(missed)
    truth = bench.sample.weights[bench.judged] @ np.square(bench.Y[bench.judged])
    assert found.error == pytest.approx(squares.sum() / truth.sum(), rel=1e-4)


@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_more_rows_find_the_column_that_matters(kernel, few):
    X, y = data(n=400, d=6, noise=0.5)
    bench = refining.Bench(leave_one_out.centred(X, y[:, None], np.ones(400)))
    equal = kernel(0.1, scales=np.ones(6))
    found = refining.refine(equal, 0.1, bench)
    assert found.kernel.scales[1:].max() < 0.4 * found.kernel.scales[0]
    assert found.error < 0.9 * bench.near(equal, 0.1, lambda _: None).error
    harmful = kernel(0.1, scales=np.array([0.1, 1.0, 1.0, 1.0, 1.0, 5.0]))
    assert refining.refine(harmful, 0.1, bench).error == pytest.approx(found.error, rel=0.02)


def test_many_rows_of_a_file_teach_what_an_array_does(few, tmp_path):
    X, y = data(n=300)
    np.save(tmp_path / "rows.npy", X)
    model = KernelRidge("loo", Nystroem(RBF(scales="learn"), 40), random_state=0)
    from_file = clone(model).fit(tmp_path / "rows.npy", y).kernel_
    learned = model.fit(X, y).kernel_
    np.testing.assert_allclose(from_file.scales_, learned.scales_)
    assert learned.feature_importances_[0] > 0.9
    assert learned.feature_importances_.sum() == pytest.approx(1.0)


def test_a_metric_and_a_rule_for_gamma_are_kept_on_many_rows(few):
    X, y = data(n=300)
    kernel = RBF("median", scales="metric").fit(X, y)
    assert kernel.scales_.shape == (X.shape[1], X.shape[1])
    assert RBF(0.25, scales="learn").fit(X, y).gamma_ == 0.25


def test_noise_and_constants_leave_the_columns_as_they_are_on_many_rows(few):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    assert np.ptp(RBF(scales="learn").fit(X, rng.standard_normal(400)).scales_) < 1.5
    np.testing.assert_array_equal(RBF(scales="learn").fit(X, np.ones(400)).scales_, np.ones(4))
    copies = RBF(scales="learn").fit(np.repeat(X[:30], 20, axis=0), np.repeat(X[:30, 0], 20))
    assert copies.scales_.argmax() == 0


def test_refining_keeps_within_the_memory_that_it_states():
    X, _ = data(n=6000, d=20)
    rows = gramian.as_rows(X)
    kernel = RBF(scales="learn")
    assert kernel._refining_rows(rows) == 6000
    with gramian.config_context(memory_budget="16MB"):
        assert kernel._refining_rows(rows) == 0
        assert kernel.fit_bytes(rows) < 16e6
    with gramian.config_context(memory_budget="150MB"):
        assert 0 < kernel.fit_bytes(rows) < 75e6


# Guards: what is learned does no harm.


def test_a_target_of_noise_leaves_the_columns_as_they_are():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((150, 6)), rng.standard_normal(150)
        new, truth = rng.standard_normal((500, 6)), rng.standard_normal(500)
        models = [KernelRidge("loo", RBF("loo", scales=s), random_state=0) for s in (None, "learn")]
        missed = [np.mean((m.fit(X, y).predict(new) - truth) ** 2) for m in models]
        assert missed[1] < 1.03 * missed[0]


def test_more_columns_than_rows_and_one_row_of_each_class():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 100))
    wide = KernelRidge("loo", RBF(scales="learn"), random_state=0).fit(X, X[:, 0])
    assert np.isfinite(wide.predict(X)).all()
    single = KernelRidgeClassifier("loo", RBF(scales="learn"), random_state=0)
    assert set(single.fit(X[:6], list("abcdef")).predict(X)) <= set("abcdef")


def test_copies_of_rows_change_nothing_that_is_learned():
    X, y = data(n=80, noise=1.0)
    once = RBF(scales="learn").fit(X, y)
    twice = RBF(scales="learn").fit(np.vstack((X, X)), np.concatenate((y, y)))
    assert twice.gamma_ == pytest.approx(once.gamma_)
    np.testing.assert_allclose(twice.scales_, once.scales_, atol=1e-6)


def test_rows_that_are_all_the_same_and_a_constant_target():
    X, y = data(n=40)
    assert RBF(scales="learn").fit(np.ones((40, 3)), y).gamma_ > 0
    kernel = RBF(scales="learn").fit(X, np.ones(40))
    np.testing.assert_array_equal(kernel.scales_, np.ones(4))
    np.testing.assert_allclose(kernel.feature_importances_, 0.25)
