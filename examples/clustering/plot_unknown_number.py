"""
How many clusters are there?
============================

k-means must be told the number of clusters. :class:`~gramian.OnlineKernelKMeans` is told a distance
instead: a row farther than ``threshold`` from every centre, in feature space, opens a new cluster.
"""

# %%
# Seven blobs of different sizes. We fit a range of thresholds and count the clusters. A wide
# plateau means that many different thresholds agree on the number.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from gramian import RBF, OnlineKernelKMeans

places = [[0, 0], [6, 1], [2, 6], [9, 6], [12, 0], [-5, 4], [5, 11]]
X, _ = make_blobs(
    [250, 200, 150, 150, 100, 80, 70], centers=places, cluster_std=0.45, random_state=8
)
kernel = RBF(gamma=0.03)
thresholds = np.linspace(0.2, 1.1, 19)
counts = [
    OnlineKernelKMeans(threshold=t, kernel=kernel, random_state=0).fit(X).n_clusters_
    for t in thresholds
]
model = OnlineKernelKMeans(threshold=0.6, kernel=kernel, random_state=0).fit(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
left.step(thresholds, counts, where="mid")
left.axvline(0.6, color="0.6", ls="--", lw=1)
left.set(xlabel="threshold", ylabel="number of clusters", yscale="log")
left.set_yticks([1, 2, 4, 7, 15, 30, 60], ["1", "2", "4", "7", "15", "30", "60"])
left.minorticks_off()
right.scatter(*X.T, c=model.labels_, s=7, cmap="tab10")
right.set_title(f"threshold 0.6: {model.n_clusters_} clusters")
right.set(xticks=[], yticks=[])

# %%
# With an RBF kernel no distance in feature space exceeds √2, so the useful thresholds lie well
# below it. If you have a guess of the number instead, pass ``expected_clusters``; the threshold
# then follows from the data.
