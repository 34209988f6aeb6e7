"""
What does kernel k-means see?
=============================

``transform`` gives the distance of any point to each centre in feature space. Drawn over the plane,
it shows what the clusters look like from inside, and where the model is unsure.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

from gramian import RBF, KernelKMeans

X, _ = make_circles(600, factor=0.35, noise=0.07, random_state=0)
model = KernelKMeans(2, kernel=RBF(5.0), n_init=10, random_state=0).fit(X)

grid = np.linspace(-1.5, 1.5, 120)
points = np.stack(np.meshgrid(grid, grid), axis=-1)
distances = model.transform(points.reshape(-1, 2)).reshape(120, 120, 2)

figure, panels = plt.subplots(1, 3, figsize=(10, 3.4))
extent = (-1.5, 1.5, -1.5, 1.5)
for k, axes in enumerate(panels[:2]):
    axes.imshow(distances[:, :, k], extent=extent, origin="lower", cmap="viridis_r")
    axes.scatter(*X[model.labels_ == k].T, s=3, color="white")
    axes.set_title(f"distance to centre {k + 1}")
gap = distances[:, :, 0] - distances[:, :, 1]
most = np.abs(gap).max()
panels[2].imshow(gap, extent=extent, origin="lower", cmap="RdBu", vmin=-most, vmax=most)
panels[2].contour(grid, grid, gap, [0], colors="black", linewidths=1.2)
panels[2].set_title("difference, and the border")
for axes in panels:
    axes.set(xticks=[], yticks=[])

# %%
# The border in the plane is a circle; in feature space it is flat. Far from all rows (the corners)
# both distances are nearly equal: there the model has nothing to go by.
