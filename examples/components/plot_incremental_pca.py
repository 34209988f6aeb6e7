"""
Kernel PCA in batches
=====================

``partial_fit`` sees each batch once and keeps none. After the last one, its components are those
that ``fit`` finds on all rows at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gramian import RBF, KernelPCA, Nystroem

X, y = load_digits(return_X_y=True)
X = X / 16
approximation = Nystroem(RBF(0.05), 150, random_state=0).fit(X)
whole = KernelPCA(2, kernel=approximation).fit(X)
target = whole.transform(X)

stream = KernelPCA(2, kernel=approximation)
agreement, seen, pictures = [], [], {}
for batch in np.array_split(np.random.default_rng(0).permutation(len(X)), 30):
    stream.partial_fit(X[batch])
    seen.append(len(batch) + (seen[-1] if seen else 0))
    found = stream.transform(X)
    correlation = [abs(np.corrcoef(found[:, k], target[:, k])[0, 1]) for k in range(2)]
    agreement.append(1 - np.array(correlation))
    if len(seen) in (1, 5, 30):
        pictures[seen[-1]] = found * np.sign((found * target).sum(0))

figure, panels = plt.subplots(1, 4, figsize=(11, 3.1))
for axes, (rows, points) in zip(panels, pictures.items()):
    axes.scatter(*points.T, c=y, s=3, cmap="tab10")
    axes.set(title=f"after {rows:,} rows", xticks=[], yticks=[])
panels[3].semilogy(seen, np.maximum(agreement, 1e-16), "o-", ms=3)
panels[3].set(xlabel="rows seen", title="1 - correlation with fit")
panels[3].legend(["component 1", "component 2"], fontsize=8)
