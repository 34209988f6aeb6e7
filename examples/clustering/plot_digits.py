"""
What do clusters of digits look like?
=====================================

Ten clusters of handwritten digits, without their labels. The mean image of each cluster shows what
it holds; a bar shows which digits those are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from gramian import RBF, KernelKMeans

digits = load_digits()
X, y = digits.data / 16, digits.target
model = KernelKMeans(10, kernel=RBF("median"), n_init=10, random_state=0).fit(X)
print(f"agreement with the digits (NMI): {normalized_mutual_info_score(y, model.labels_):.2f}")

counts = np.array([np.bincount(y[model.labels_ == k], minlength=10) for k in range(10)])
order = counts.argmax(1).argsort(kind="stable")
figure, panels = plt.subplots(
    2, 10, figsize=(10, 2.9), gridspec_kw={"height_ratios": [1, 0.8]}, sharex="row", sharey="row"
)
colours = plt.get_cmap("tab10").colors
for (image, bars), k in zip(panels.T, order):
    image.imshow(X[model.labels_ == k].mean(0).reshape(8, 8), cmap="gray_r")
    image.set(xticks=[], yticks=[])
    bars.bar(range(10), counts[k], color=colours)
    bars.set(xticks=[0, 5, 9])
    bars.tick_params(labelsize=7)
panels[0, 0].set_ylabel("mean")
panels[1, 0].set_ylabel("digits")

# %%
# Most clusters hold one digit. Where two digits share a cluster, the mean image shows both.
