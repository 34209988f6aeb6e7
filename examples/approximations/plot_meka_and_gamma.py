"""
MEKA or Nyström, as gamma grows
===============================

A smooth kernel (small gamma) is nearly of low rank, and a few landmarks are enough. A local kernel
is not, but its matrix falls into blocks. MEKA gives each block of rows its own basis. Both get the
same memory here.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from gramian import MEKA, RBF, Nystroem, relative_error

X, _ = make_blobs(2500, n_features=3, centers=12, cluster_std=1.2, random_state=2)
X = (X - X.min(0)) / (X.max(0) - X.min(0))
gammas = np.geomspace(0.5, 500, 9)

errors = {"Nyström": [], "MEKA": []}
for gamma in gammas:
    meka = MEKA(RBF(gamma), 240, n_blocks=12, random_state=0).fit(X)
    size = max(1, round(meka.nbytes_ / (8 * len(X))))  # as many numbers per row
    nystroem = Nystroem(RBF(gamma), size, random_state=0).fit(X)
    for name, approximation in (("Nyström", nystroem), ("MEKA", meka)):
        errors[name].append(float(relative_error(approximation, X)))

figure = plt.figure(figsize=(10, 4))
grid = figure.add_gridspec(3, 2, width_ratios=[2.2, 1])
axes = figure.add_subplot(grid[:, 0])
for name, values in errors.items():
    axes.loglog(gammas, values, "o-", label=name)
axes.set(xlabel="gamma", ylabel="relative error at equal memory")
axes.legend()
order = MEKA(RBF(1.0), 60, n_blocks=12, random_state=0).fit(X).labels_.argsort(kind="stable")[::5]
for i, gamma in enumerate((1.0, 20.0, 400.0)):
    panel = figure.add_subplot(grid[i, 1])
    panel.imshow(RBF(gamma)(X[order]), vmin=0, vmax=1, cmap="magma")
    panel.set(xticks=[], yticks=[], ylabel=f"gamma {gamma:g}")

# %%
# On the right is the kernel matrix with its rows sorted by block. The smaller the length scale, the
# more of it lies in the diagonal blocks.
