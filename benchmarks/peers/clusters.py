"""Jobs of k-means with many clusters, from a single start."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.peers.data import Scale
from benchmarks.peers.features import ours
from benchmarks.peers.job import OURS, Contender, Data, Goal, Inputs, Job, Quality
from benchmarks.peers.learners import (
    lloyd_work,
    mean_squared_distance,
    our_centres,
    their_centres,
)

ROWS, COLUMNS, LANDMARKS, BLOBS = 200_000, 32, 300, 300
GOALS = {100: 2.0, 500: 3.0}  # clusters, and how many times as fast as scikit-learn
LLOYD = "scikit-learn KMeans"


def jobs(scale: Scale) -> list[Job]:
    return [_many_clusters(k, goal, scale) for k, goal in GOALS.items()]


def _many_clusters(k: int, goal: float, scale: Scale) -> Job:
    few = scale.few(k)
    return Job(
        f"k-means step, 200,000 blobs by 32, m = 300, k = {k}, n_init = 1, float32",
        Data("features of blobs", partial(_features_of_blobs, scale)),
        (
            Contender(OURS, partial(our_centres, few, n_init=1), "gramian"),
            Contender(LLOYD, partial(their_centres, few, "sklearn.cluster", n_init=1)),
        ),
        Quality("objective", mean_squared_distance, slack=0.0),
        (Goal(LLOYD, goal),),
        lloyd_work,
    )


def _features_of_blobs(scale: Scale) -> Inputs:
    """Nyström features of rows around centres that overlap."""
    X, _ = make_blobs(
        scale.rows(ROWS), COLUMNS, centers=scale.few(BLOBS), cluster_std=4.0, random_state=0
    )
    X = X.astype(np.float32)
    gamma = float(0.5 / X.var(axis=0).sum())  # of the mean squared distance
    return {"X": ours(gamma, scale.few(LANDMARKS), "uniform", 0).fit_transform(X)}
