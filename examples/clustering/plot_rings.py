"""
Clusters that k-means cannot see
================================

k-means draws straight borders: every cluster is the set of points nearest to one centre. Rings and
moons have no such borders. Kernel k-means moves the same algorithm into the kernel's feature space,
where a straight border can be a curve in the plane.
"""

# %%
# Three data sets and two methods. Clusters that wind around each other need a local kernel, with a
# length scale between the width of a cluster and the distance to the next.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from gramian import RBF, KernelKMeans

rings = make_circles(600, factor=0.4, noise=0.06, random_state=0)
moons = make_moons(500, noise=0.06, random_state=3)
blobs = make_blobs(600, centers=3, cluster_std=1.1, random_state=7)

figure, panels = plt.subplots(2, 3, figsize=(9, 5.6))
for column, (X, truth), name in zip(panels.T, (rings, moons, blobs), ("rings", "moons", "blobs")):
    k = len(np.unique(truth))
    kernel = RBF("scale") if name == "blobs" else RBF(gamma=6.0)
    models = (
        KMeans(k, n_init=10, random_state=0),
        KernelKMeans(k, kernel=kernel, n_init=10, random_state=0),
    )
    for axes, model in zip(column, models):
        labels = model.fit_predict(X)
        agreement = adjusted_rand_score(truth, labels)
        axes.scatter(*X.T, c=labels, s=6, cmap="tab10", vmax=9)
        axes.set_title(f"{type(model).__name__}, {name}: {abs(agreement):.2f}")
        axes.set(xticks=[], yticks=[], aspect="equal")

# %%
# The numbers are adjusted Rand indices: 1 is perfect agreement with the shapes that were drawn, 0
# is what chance gives. On blobs both methods do equally well; use plain k-means there.
