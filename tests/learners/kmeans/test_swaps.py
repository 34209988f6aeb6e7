"""Swaps of centres after Lloyd's algorithm has converged."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from gramian import MEKA, RBF, KernelKMeans, Nystroem
from gramian.learners.kmeans import swaps

K = 20


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(2000, 8, centers=K, cluster_std=0.5, random_state=0)


@pytest.mark.parametrize("namespace", ["numpy", "torch"])
def test_every_start_ends_in_the_clusters_that_are_there(blobs, namespace):
    X, truth = blobs
    if namespace == "torch":
        X = pytest.importorskip("torch").asarray(X)
    kernel = Nystroem(RBF(0.01), 50, random_state=0).fit(X)
    for seed in range(4):
        model = KernelKMeans(K, kernel=kernel, init="random", n_init=1, random_state=seed).fit(X)
        labels = np.asarray(model.labels_)
        assert len({*zip(labels.tolist(), truth.tolist(), strict=True)}) == K
        assert (np.diff(model.inertia_history_) <= 0).all()
        assert model.n_iter_ == len(model.inertia_history_)


def test_lloyd_alone_does_not_find_them(blobs, monkeypatch):
    monkeypatch.setattr(swaps, "improved", lambda run, *others: run)
    model = KernelKMeans(K, kernel=Nystroem(RBF(0.01), 50), init="random", n_init=1).fit(blobs[0])
    assert len({*zip(model.labels_.tolist(), blobs[1].tolist(), strict=True)}) > K


def test_parts_in_another_order(blobs, monkeypatch):
    X = blobs[0]
    kernel = MEKA(RBF(0.01), n_components=60, n_blocks=3, random_state=0).fit(X)
    model = KernelKMeans(K, kernel=kernel, init="random", n_init=1, random_state=0)
    swapped = model.fit(X).inertia_
    monkeypatch.setattr(swaps, "improved", lambda run, *others: run)
    assert swapped < 0.9 * model.fit(X).inertia_


def test_pairs_leave_alone_the_clusters_that_they_need():
    costs = np.asarray([1.0, 2.0, 30.0, 40.0])
    heirs = np.asarray([1, 0, 3, 2])
    homes, gains = np.asarray([2, 3, 2]), np.asarray([50.0, 20.0, 60.0])
    removed, chosen = swaps._pairs(costs, heirs, homes, gains)
    # Cluster 2 gives its better candidate; centre 1 stays, it inherits the rows of centre 0.
    assert (removed.tolist(), chosen.tolist()) == ([0], [2])


def test_centres_that_the_user_sets_are_not_swapped(blobs):
    X = blobs[0]
    kernel = Nystroem(RBF(0.01), 50, random_state=0).fit(X)
    model = KernelKMeans(2, kernel=kernel, init=X[:2], n_init=1, max_iter=1).fit(X)
    assert model.n_iter_ == 1
