"""
New clusters in a stream
========================

Batches arrive one by one, and clusters appear that were not there before.
:class:`~gramian.OnlineKernelKMeans` opens a cluster when it needs one.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, OnlineKernelKMeans, RandomFourier

rng = np.random.default_rng(4)
centres = np.array([[0, 0], [3, 1], [1, 4], [5, 4], [4, -2.5], [-2.5, 3]])
features = RandomFourier(RBF(0.2), 400, frequencies="orthogonal", random_state=0)
model = OnlineKernelKMeans(threshold=0.9, kernel=features, random_state=0)

counts = []
for step in range(30):
    known = 1 + step // 5  # a new source every five batches
    source = rng.integers(known, size=60)
    X = centres[source] + 0.3 * rng.standard_normal((60, 2))
    model.partial_fit(X)
    counts.append((known, model.n_clusters_))

grid = np.stack(np.meshgrid(np.linspace(-4.5, 7, 150), np.linspace(-4.5, 6, 140)), axis=-1)
labels = model.predict(grid.reshape(-1, 2)).reshape(140, 150)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9))
sources, clusters = np.array(counts).T
left.step(np.arange(1, 31), sources, where="mid", label="sources", color="0.8", lw=7)
left.step(np.arange(1, 31), clusters, where="mid", label="clusters")
left.set(xlabel="batches seen", ylabel="number")
left.legend()
right.imshow(labels, extent=(-4.5, 7, -4.5, 6), origin="lower", cmap="tab10", alpha=0.35, vmax=9)
sample = centres[rng.integers(6, size=600)] + 0.3 * rng.standard_normal((600, 2))
right.scatter(*sample.T, c=model.predict(sample), s=6, cmap="tab10", vmax=9)
right.set(xticks=[], yticks=[], title=f"{model.n_clusters_} clusters after 30 batches")
