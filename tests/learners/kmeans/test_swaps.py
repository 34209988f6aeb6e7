"""Swaps of centres after Lloyd's algorithm has converged."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from gramian import MEKA, RBF, KernelKMeans, Nystroem, as_rows
from gramian.learners.kmeans import swaps
from gramian.learners.kmeans.lloyd import means, one_pass

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
    removed, divided = swaps._pairs(costs, heirs, np.asarray([0.0, 0.0, 60.0, 20.0]))
    # Centre 1 stays, it inherits the rows of centre 0.
    assert (removed.tolist(), divided.tolist()) == ([0], [2])


def test_sure_swaps_come_first():
    costs, heirs = np.asarray([1.0, 3.0, 9.0, 9.0, 9.0]), np.asarray([4, 4, 4, 4, 3])
    removed, divided = swaps._pairs(costs, heirs, np.asarray([0.0, 0.0, 2.5, 2.0, 0.0]))
    assert (removed.tolist(), divided.tolist()) == ([0], [2])
    removed, divided = swaps._pairs(costs + 2.0, heirs, np.asarray([0.0, 0.0, 2.6, 3.0, 0.0]))
    assert (removed.tolist(), divided.tolist()) == ([0, 1], [3, 2]), "all are tried if none is sure"


@pytest.mark.parametrize("blocks", [1, 3])
def test_gains_and_costs_are_those_of_dividing_and_merging(blobs, blocks):
    X, truth = blobs
    kernel: Any = Nystroem(RBF(0.01), 50, random_state=0)
    if blocks > 1:
        kernel = MEKA(RBF(0.01), n_components=60, n_blocks=blocks, random_state=0)
    factors = kernel.fit(X).factor_rows(as_rows(X)).persist()
    weights = np.random.default_rng(0).random(len(X))
    labels = truth // 2  # each cluster consists of two blobs
    matrix = factors.dense()

    def objective(labels):
        total = weights @ np.diag(matrix)
        for label in np.unique(labels):
            w = np.where(labels == label, weights, 0.0)
            total -= w @ matrix @ w / w.sum()
        return total

    k, arranged = K // 2, factors.arrange(weights)
    run = one_pass(factors, weights, means(factors, weights, labels, k))
    run.labels, run.masses = factors.arrange(labels), np.bincount(labels, weights)
    rows = factors.coordinates(np.asarray([np.flatnonzero(truth == 2 * j)[0] for j in range(k)]))
    found, gains = swaps._halves(run, factors, arranged, np.arange(k), rows)
    costs, heirs = swaps._costs(run)
    for j in range(k):
        divided = np.where(truth == 2 * j, k, labels)
        assert gains[j] == pytest.approx(objective(labels) - objective(divided))
        merged = [objective(np.where(labels == j, i, labels)) for i in range(k) if i != j]
        assert costs[j] == pytest.approx(min(merged) - objective(labels))
        assert heirs[j] == np.insert(merged, j, np.inf).argmin()
    halves = means(factors, weights, np.where(truth % 2, labels, labels + k), 2 * k)
    assert found == pytest.approx(halves)


def test_centres_that_the_user_sets_are_not_swapped(blobs):
    X = blobs[0]
    kernel = Nystroem(RBF(0.01), 50, random_state=0).fit(X)
    model = KernelKMeans(2, kernel=kernel, init=X[:2], n_init=1, max_iter=1).fit(X)
    assert model.n_iter_ == 1
