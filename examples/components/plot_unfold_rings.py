"""
What do kernel components look like?
====================================

Each component is a function on the plane. The first ones of an RBF kernel tell rings apart, which
no straight direction can.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

from gramian import RBF, KernelPCA

X, rings = make_circles(500, factor=0.35, noise=0.06, random_state=0)
pca = KernelPCA(5, kernel=RBF(4.0)).fit(X)

grid = np.linspace(-1.4, 1.4, 120)
points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
values = pca.transform(points).reshape(120, 120, 5)

figure, panels = plt.subplots(2, 3, figsize=(9, 5.6))
for k, axes in enumerate(panels.flat[:5]):
    most = np.abs(values[:, :, k]).max()
    axes.imshow(values[:, :, k], extent=(-1.4, 1.4, -1.4, 1.4), origin="lower", cmap="RdBu_r",
                vmin=-most, vmax=most)  # fmt: skip
    axes.scatter(*X.T, s=1.5, color="black", alpha=0.5)
    axes.set_title(f"component {k + 1}: {pca.explained_variance_ratio_[k]:.0%} of the variance")
    axes.set(xticks=[], yticks=[])
separating = max(range(5), key=lambda k: abs(np.corrcoef(pca.transform(X)[:, k], rings)[0, 1]))
scores = pca.transform(X)
other = 0 if separating else 1
panels[1, 2].scatter(scores[:, separating], scores[:, other], c=rings, s=6, cmap="tab10", vmax=9)
panels[1, 2].set(xlabel=f"component {separating + 1}", ylabel=f"component {other + 1}")
panels[1, 2].set(xticks=[], yticks=[], title="the rings, unfolded")
