"""
What does gamma do to clusters?
===============================

The same data and the same number of clusters, with four length scales. If gamma is small, kernel
k-means is ordinary k-means. If it is large, only near neighbours are alike.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from gramian import RBF, KernelKMeans, KernelWarning

X, moons = make_moons(500, noise=0.06, random_state=3)
figure, panels = plt.subplots(2, 4, figsize=(10, 4.6))
for (above, below), gamma in zip(panels.T, (0.1, 3.0, 8.0, 2000.0)):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)  # the last gamma is far too large on purpose
        model = KernelKMeans(2, kernel=RBF(gamma), n_init=20, random_state=0).fit(X)
    agreement = adjusted_rand_score(moons, model.labels_)
    above.scatter(*X.T, c=model.labels_, s=6, cmap="tab10", vmax=9)
    above.set(title=f"gamma {gamma:g}: {agreement:.2f}", xticks=[], yticks=[])
    order = moons.argsort(kind="stable")
    below.imshow(RBF(gamma)(X[order]), vmin=0, vmax=1, cmap="magma")
    below.set(xticks=[], yticks=[])
panels[1, 0].set_ylabel("kernel matrix")

# %%
# The lower row shows the kernel matrix with the rows sorted by moon. In the first it is nearly
# constant, in the last nearly the identity, and neither says much about the moons. In between,
# there are two blocks. Rules look for such a value; a small percentile for a local kernel:

print("10th percentile:", RBF(("percentile", 10)).fit(X).gamma_)
print("median:", RBF("median").fit(X).gamma_)
