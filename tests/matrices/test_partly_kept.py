"""Features of some rows in memory, of others computed: rows in doubt, iterations, all the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs

import gramian
from gramian import BKA, RBF, ArrayRows, Factors, KernelKMeans, KernelRidge, Nystroem
from gramian.approximations.projected import ProjectedKernel
from gramian.learners.kmeans import lloyd, passes
from gramian.matrices.factors import keepable
from gramian.matrices.normal_equations import inner
from gramian.rows import JoinedRows
from gramian.rows.features import spread

KERNEL = RBF(0.05)


@pytest.fixture(name="X", scope="module")
def clouds():
    """Clouds that overlap, so that many passes are needed."""
    return make_blobs(6000, centers=12, n_features=4, cluster_std=3.0, random_state=0)[0]


@pytest.fixture
def made(monkeypatch):
    """How many rows had their features, or kernel values, computed."""
    counts = []
    for name in ("features", "values"):
        function = getattr(ProjectedKernel, name)

        def counted(self, x, out=None, function=function):
            counts.append(x.shape[0])
            return function(self, x, out)

        monkeypatch.setattr(ProjectedKernel, name, counted)
    return counts


def partly(factors, fraction):
    room = int(fraction * factors.nbytes) + 8 * factors.shape[0]
    return factors.persist(room, partly=True)


class TestFactors:
    def test_kept_rows_are_spread_over_all(self):
        inside = spread(10_000, 2_500, stretch=100)
        assert inside.sum() == 2_500
        halves = inside.reshape(4, -1).sum(axis=1)
        assert halves.max() - halves.min() <= 200

    @pytest.mark.parametrize(
        "approximation",
        [Nystroem(KERNEL, 40, random_state=0), BKA(KERNEL, 40, n_blocks=4, random_state=0)],
        ids=["one part", "blocks"],
    )
    def test_they_give_the_same(self, X, rng, approximation):
        whole = approximation.fit(X).factor(X)
        factors = partly(whole, 0.4)
        assert all(isinstance(Z, JoinedRows) for Z in factors.parts)
        V = rng.standard_normal((len(X), 2))
        assert_allclose(factors.matmul(V), whole.matmul(V), rtol=1e-9, atol=1e-9)
        assert_allclose(factors.diagonal(), whole.diagonal(), rtol=1e-12)
        assert_allclose(factors.columns([3, 17, 4001]), whole.columns([3, 17, 4001]), atol=1e-12)
        assert_allclose(inner(factors), inner(whole), rtol=1e-9, atol=1e-9)
        some, numbers = factors.parts.kept()
        assert 0.3 * len(X) < len(numbers) <= 0.42 * len(X)
        assert_allclose(Factors(some).diagonal(), whole.diagonal()[numbers], rtol=1e-12)
        places = np.flatnonzero(rng.random(len(X)) < 0.1)
        chosen = factors.arrange(whole.diagonal())[places]
        assert_allclose(Factors(factors.parts.choose(places)).diagonal(), chosen, rtol=1e-12)

    def test_nothing_all_or_some(self, X):
        whole = Nystroem(KERNEL, 40, random_state=0).fit(X).factor(X)
        assert keepable(whole, whole.nbytes) == keepable(whole, whole.nbytes, partly=True) == len(X)
        assert keepable(whole, whole.nbytes - 1) == 0
        assert keepable(whole, 1000, partly=True) == 0  # not worth it
        assert 0 < keepable(whole, whole.nbytes // 2, partly=True) < len(X) / 2
        kept = whole.persist(whole.nbytes)
        assert isinstance(kept.parts[0], ArrayRows)
        assert kept.parts.kept() is None
        assert whole.persist(whole.nbytes - 1) is whole


class TestDoubt:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_passes_are_those_over_all_rows(self, X, rng, dtype, weighted, monkeypatch):
        Z = Nystroem(KERNEL, 30, random_state=0).fit_transform(X).astype(dtype)
        weights = rng.uniform(0, 2, len(X)) if weighted else np.ones(len(X))
        factors, first = Factors(ArrayRows(Z)), [Z[:12].astype(float)]
        looked, look = [], passes.Looks.look

        def counting(looks, z, *more):
            looked.append(len(z))
            return look(looks, z, *more)

        monkeypatch.setattr(passes.Looks, "look", counting)
        stop = {"max_iter": 200, "tol": 0.0}
        (sparing,) = lloyd.on_factors(factors, weights, first, factors, **stop)
        assert sum(looked) < 0.5 * len(sparing.history) * len(X)
        monkeypatch.setattr(lloyd.Doubt, "is_possible", lambda factors: False)
        looked.clear()
        (plain,) = lloyd.on_factors(factors, weights, first, factors, **stop)
        assert sum(looked) == len(plain.history) * len(X)
        assert len(plain.history) > 10
        assert_array_equal(sparing.labels, plain.labels)
        assert_allclose(sparing.history, plain.history, rtol=1e-12)
        assert_allclose(sparing.sums, plain.sums, rtol=1e-9)
        assert_allclose(sparing.masses, plain.masses, rtol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_rows_are_compared_with_the_few_centres_that_moved_far(self, rng, dtype, monkeypatch):
        Z = rng.standard_normal((4000, 8)).astype(dtype)
        factors, weights = Factors(ArrayRows(Z)), np.ones(4000)
        (run,) = lloyd.started(factors, [Z[:64].astype(float)])
        lloyd.advance(factors, weights, [run], factors, max_iter=60, tol=0.0)
        centres = run.next_centres.copy()
        centres[[3, 20]] = Z[[100, 200]]
        other = run.branch(centres)
        assert len(other.doubt.far)
        looked, look = [], passes.Looks.look

        def counting(looks, z, *more):
            looked.append(len(z))
            return look(looks, z, *more)

        monkeypatch.setattr(passes.Looks, "look", counting)
        lloyd.advance(factors, weights, [other], factors, max_iter=1, tol=0.0)
        assert 0 < sum(looked) < 0.5 * len(Z)
        squared = ((Z[:, None].astype(float) - centres) ** 2).sum(axis=2)
        assert_array_equal(other.labels, squared.argmin(axis=1))
        assert_allclose(other.inertia, squared.min(axis=1).sum(), rtol=1e-5)
        assert_allclose(run.centres[3], run.next_centres[3], atol=0.5)  # it did not move with it

    def test_a_margin_is_how_far_the_next_centre_is(self, rng):
        z, C = rng.standard_normal((50, 3)), rng.standard_normal((4, 3))
        distances = np.sqrt(((z[:, None] - C) ** 2).sum(axis=2))
        products = (C**2).sum(axis=1) - 2 * z @ C.T
        new = products.argmin(axis=1)
        found = lloyd.Doubt.margin(products, new, (z**2).sum(axis=1))
        nearest, second = np.sort(distances, axis=1)[:, :2].T
        assert_allclose(found, second - nearest, atol=1e-12)

    def test_one_cluster_has_no_doubt(self, X):
        model = KernelKMeans(1, kernel=Nystroem(KERNEL, 20, random_state=0), random_state=0).fit(X)
        assert model.n_iter_ <= 2


class TestKMeans:
    @pytest.mark.slow
    def test_few_rows_are_computed_again(self, X, made):
        model = KernelKMeans(6, kernel=Nystroem(KERNEL, 60, random_state=0), tol=0, random_state=0)
        whole = clone(model).fit(X)
        made.clear()
        budget = 9_500_000
        with gramian.config_context(memory_budget=budget, n_threads=2):
            need = model.estimate_memory(*X.shape)
            assert any(name.startswith("features of ") for name in need.parts), need
            model.fit(X)
        assert model.n_iter_ > 3
        assert sum(made) < 3 * len(X) + 4400  # of all, of some again, and of the sample
        assert_allclose(model.inertia_, whole.inertia_, rtol=2e-3)
        labels = model.predict(X)
        assert np.mean(labels == model.labels_) > 0.999

    @pytest.mark.slow
    def test_the_objective_is_that_of_all_rows(self, X):
        model = KernelKMeans(6, kernel=Nystroem(KERNEL, 60, random_state=0), random_state=0)
        with gramian.config_context(memory_budget=9_500_000, n_threads=2):
            model.fit(X)
        distances = model.transform(X)[np.arange(len(X)), model.labels_] ** 2
        assert_allclose(model.inertia_, distances.sum(), rtol=1e-6)
        assert (np.diff(model.inertia_history_) <= 1e-9 * model.inertia_).all()


class TestRidge:
    def test_kernel_values_of_some_rows_are_kept(self, X, made):
        y = np.sin(X[:, 0])
        fitted = Nystroem(KERNEL, 100, random_state=0).fit(X)
        model = KernelRidge(1e-2, fitted, solver="iterative", tol=1e-10, random_state=0)
        whole = clone(model).fit(X, y)
        made.clear()
        with gramian.config_context(memory_budget=7_000_000, n_threads=2):
            assert "kernel values of" in str(model.estimate_memory(*X.shape))
            model.fit(X, y)
        assert_allclose(model.coef_, whole.coef_, rtol=1e-5, atol=1e-8)
        passes = model.n_iter_ + 1
        assert len(X) * passes * 0.2 < sum(made) < len(X) * passes * 0.8

    def test_weights_follow_the_rows(self, X, rng):
        y, weights = np.sin(X[:, 0]), rng.uniform(0.1, 3.0, len(X))
        fitted = Nystroem(KERNEL, 100, random_state=0).fit(X)
        model = KernelRidge(1e-2, fitted, solver="iterative", tol=1e-10, random_state=0)
        whole = clone(model).fit(X, y, weights)
        with gramian.config_context(memory_budget=7_000_000, n_threads=2):
            model.fit(X, y, weights)
        assert_allclose(model.predict(X), whole.predict(X), rtol=1e-5, atol=1e-7)
