"""
Two features that separate rings
================================

Kernel-JL projects the feature space at random onto a few directions. No matrix is decomposed, yet
two features are enough to separate a ring from a disc, because directions with a large variance
count most.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression

from gramian import RBF, KernelJL, KernelPCA, RandomFourier

X, rings = make_circles(2000, factor=0.3, noise=0.06, random_state=0)
maps = {
    "the plane": X,
    "Kernel-JL": KernelJL(RBF(2.0), 2, random_state=3).fit_transform(X),
    "kernel PCA": KernelPCA(2, kernel=RBF(2.0)).fit_transform(X),
    "random Fourier": RandomFourier(RBF(2.0), 2, random_state=3).fit_transform(X),
}

figure, panels = plt.subplots(1, 4, figsize=(11, 3))
for axes, (name, Z) in zip(panels, maps.items()):
    Z = Z / Z.std(0)
    score = LogisticRegression(C=1e4).fit(Z, rings).score(Z, rings)
    axes.scatter(*Z.T, c=rings, s=3, cmap="tab10", vmax=9)
    axes.set(title=f"{name}: {score:.0%}", xticks=[], yticks=[])

# %%
# The percentages say how many points a straight line classifies correctly.
