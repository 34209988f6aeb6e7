"""How many restarts there are, and how far they run."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from gramian import RBF, Exact, KernelKMeans, Nystroem, config_context
from gramian.learners.kmeans import exact, lloyd, starts, swaps

DIGITS = load_digits().data[:600] / 16.0


@pytest.fixture
def draws(monkeypatch):
    """The numbers of clusters for which first centres are drawn."""
    seen = []
    for module in (exact, starts):
        drawn = module.drawn

        def watching(matrix, k, *others, drawn=drawn):
            seen.append(k)
            return drawn(matrix, k, *others)

        monkeypatch.setattr(module, "drawn", watching)
    return seen


def test_more_starts_where_the_exact_matrix_is_kept(draws):
    model = KernelKMeans(3, kernel=Exact(RBF(0.1)), n_init=2, random_state=0)
    model.fit(DIGITS[:200])
    assert draws == [3] * 8
    draws.clear()
    with config_context(memory_budget=3_000_000):  # the matrix of 600 rows takes 2.9 MB
        model.fit(DIGITS)
    assert draws == [3] * 2


def test_more_starts_of_few_clusters(draws):
    for k, restarts, begun in ((2, 3, 12), (10, 3, 4), (14, 3, 3), (30, 1, 1), (5, 1, 4)):
        kernel = Nystroem(RBF(0.1), 20, random_state=0)
        KernelKMeans(k, kernel=kernel, n_init=restarts, random_state=0).fit(DIGITS[:200])
        assert draws == [k] * begun
        draws.clear()


def test_defaults_are_as_good_as_many_restarts():
    def mean(**options):
        models = [
            KernelKMeans(7, kernel=Exact(RBF(0.1)), random_state=s, **options) for s in range(4)
        ]
        return np.mean([model.fit(DIGITS[:300]).inertia_ for model in models])

    assert mean() < 1.003 * mean(n_init=10)


@pytest.mark.parametrize("kernel", [Exact(RBF(0.1)), Nystroem(RBF(0.1), 60, random_state=0)])
def test_all_passes_count(kernel, monkeypatch):
    monkeypatch.setattr(swaps, "improved", lambda run, *others: run)
    for most in (2, 5, 11):
        model = KernelKMeans(9, kernel=kernel, max_iter=most, tol=0.0, random_state=0).fit(DIGITS)
        assert model.n_iter_ == len(model.inertia_history_) <= most
        assert model.n_iter_ == most or most == 11  # it may have converged
        assert (np.diff(model.inertia_history_) < 0).all()


@pytest.mark.parametrize("k", [10, 60])
def test_the_objective_is_not_above_that_of_scikit_learn(k):
    kernel = Nystroem(RBF(0.1), 60, random_state=0).fit(DIGITS)
    Z, seeds = kernel.transform(DIGITS), range(3)
    ours = [KernelKMeans(k, kernel=kernel, n_init=1, random_state=s).fit(DIGITS) for s in seeds]
    theirs = [KMeans(k, n_init=1, random_state=s).fit(Z) for s in seeds]
    assert sum(m.inertia_ for m in ours) <= sum(m.inertia_ for m in theirs)


@pytest.mark.slow
def test_nor_where_first_centres_are_drawn_from_few_rows(rng):
    X = np.concatenate([load_digits().data / 16.0] * 3)
    X += 0.1 * rng.standard_normal(X.shape)
    kernel = Nystroem(RBF(0.1), 60, random_state=0).fit(X)
    Z, seeds = kernel.transform(X), range(2)
    assert starts.seeding_size(len(X), 60) < len(X)
    ours = [KernelKMeans(60, kernel=kernel, n_init=2, random_state=s).fit(X) for s in seeds]
    theirs = [KMeans(60, n_init=2, random_state=s).fit(Z) for s in seeds]
    assert sum(m.inertia_ for m in ours) <= sum(m.inertia_ for m in theirs)


@pytest.mark.parametrize("seed", [0, 1])
def test_many_restarts_that_are_close_are_not_told_apart_too_early(seed, monkeypatch):
    """As on rows without groups; scikit-learn completes all restarts."""
    X = np.random.default_rng(1000 + seed).standard_normal((3000, 10))
    kernel = Nystroem(RBF("median"), 100, landmarks="uniform", random_state=seed).fit(X)
    model = KernelKMeans(20, kernel, n_init=10, random_state=seed)
    early = clone(model).fit(X).inertia_
    monkeypatch.setattr(lloyd, "RACE", 10**6)
    assert early == pytest.approx(model.fit(X).inertia_, rel=1e-4)
