"""alpha="loo", the default, works in every fit, without a warning."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import gramian
from gramian import RBF, Exact, KernelRidge, KernelRidgeClassifier, Local, Nystroem, config_context

KERNELS = [RBF(0.5), Exact(RBF(0.5)), Nystroem(RBF(0.5), 20), Local(RBF(0.5), 2)]


def rows(n, d=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def test_it_is_chosen():
    X, y = rows(500)
    assert KernelRidge().alpha == KernelRidgeClassifier().alpha == "loo"
    chosen = KernelRidge(kernel=RBF(0.5)).fit(X[:400], y[:400])
    worst = min(
        KernelRidge(alpha, RBF(0.5)).fit(X[:400], y[:400]).score(X[400:], y[400:])
        for alpha in (1e-3, 30.0)
    )
    assert chosen.path_ is not None
    assert chosen.score(X[400:], y[400:]) > worst + 0.1


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("kernel", [RBF(0.5), Nystroem(RBF(0.5), 2)])
def test_a_few_rows(kernel, n):
    X, y = rows(n)
    assert np.isfinite(KernelRidge(kernel=kernel, random_state=0).fit(X, y).predict(X)).all()
    model = KernelRidgeClassifier(kernel=kernel, random_state=0).fit(X, np.arange(n))
    assert len(model.predict_proba(X)) == n


def test_one_row_of_each_class():
    X, _ = rows(8)
    model = KernelRidgeClassifier(kernel=RBF(0.5)).fit(X, np.arange(8))
    assert (model.predict(X) == np.arange(8)).all()  # however large alpha is


@pytest.mark.parametrize("value", [0.0, 3.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_constant_target(kernel, value):
    X, _ = rows(60)
    model = KernelRidge(kernel=kernel, random_state=0).fit(X, np.full(60, value))
    assert_allclose(model.predict(X), value, atol=1e-9)


def test_rows_that_a_kernel_maps_to_zero():
    model = KernelRidge(kernel="linear").fit(np.zeros((5, 2)), np.arange(5.0))
    assert_allclose(model.predict(np.zeros((1, 2))), 2.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_target_of_noise_is_not_followed(kernel):
    X, _ = rows(400)
    y = np.random.default_rng(1).standard_normal(400)
    fitted = KernelRidge(kernel=kernel, random_state=0).fit(X, y)
    assert fitted.predict(X).var() < 0.1 * y.var()


@pytest.mark.parametrize("n", [200, 600])  # with all eigenvectors, and by a search
def test_repeated_rows_are_not_learned_by_heart(n):
    X, _ = rows(n // 2)
    y = np.random.default_rng(1).standard_normal(n)
    model = KernelRidge(kernel=RBF(0.5)).fit(np.repeat(X, 2, axis=0), y)
    assert model.predict(X).var() < 0.1 * y.var()


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 300))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(60)
    assert KernelRidge().fit(X[:40], y[:40]).score(X[40:], y[40:]) > -0.1


@pytest.mark.parametrize("model", [KernelRidge(), KernelRidgeClassifier()])
@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (RBF(0.5), {"validation_fraction": 0.2}),
        (Nystroem(RBF(0.5), 20), {"validation_fraction": 0.2}),
        (Nystroem(RBF(0.5), 20), {"solver": "iterative"}),
        (Exact(RBF(0.5)), {"solver": "iterative"}),
    ],
)
def test_iterations(model, kernel, options):
    X, y = rows(300)
    y = y > 0 if isinstance(model, KernelRidgeClassifier) else y
    weights = np.arange(300) % 3  # some are 0
    model = clone(model).set_params(kernel=kernel, random_state=0, **options)
    assert model.fit(X, y, weights).score(X, y) > 0.6
    assert model.alpha_ == model.path_.alphas[model.path_.errors.argmin()]


def test_batches_take_generalised_cross_validation():
    X, y = rows(400)
    fitted = Nystroem(RBF(0.5), 20, random_state=0).fit(X)
    batches = [KernelRidge(alpha, fitted) for alpha in ("loo", "gcv")]
    for model in batches:
        model.partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    whole = KernelRidge("gcv", fitted).fit(X, y)
    assert batches[0].alpha_ == batches[1].alpha_ == pytest.approx(whole.alpha_)


def test_a_small_memory_budget(monkeypatch):
    X, y = rows(2000)
    sizes = []
    solve = gramian.learners.ridge.sampled.ExactSearch.solve
    monkeypatch.setattr(
        gramian.learners.ridge.sampled.ExactSearch, "solve",
        lambda self, system: (sizes.append(len(system.Y)), solve(self, system))[1],
    )  # fmt: skip
    with config_context(memory_budget="20MB"):
        model = KernelRidge(kernel=Exact(RBF(0.5)), random_state=0).fit(X, y)
    assert 300 <= sizes[0] < 400
    assert model.score(X, y) > 0.7


def test_the_same_from_a_file(tmp_path):
    X, y = rows(400)
    np.save(tmp_path / "X.npy", X)
    kernel = Nystroem(RBF(0.5), 20, random_state=0)
    for solver in ("direct", "iterative"):
        model = KernelRidge(kernel=kernel, solver=solver, random_state=0)
        file = clone(model).fit(tmp_path / "X.npy", y)
        assert_allclose(file.alpha_, model.fit(X, y).alpha_, rtol=1e-6)
