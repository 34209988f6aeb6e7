"""
Can kernel PCA remove noise?
============================

A few components keep the shape of the digits and lose the noise. ``inverse_transform`` maps them
back to images: these are pre-images, learned by a kernel ridge regression from components to rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from gramian import RBF, KernelPCA

X = load_digits().data / 16
rng = np.random.default_rng(0)
noisy = X + 0.3 * rng.standard_normal(X.shape)
train, test = slice(0, 1400), slice(1400, None)

linear = PCA(15).fit(X[train])
kernel = KernelPCA(20, kernel=RBF(0.03), fit_inverse_transform=True, alpha=0.5).fit(X[train])
images = {
    "clean": X[test],
    "noisy": noisy[test],
    "PCA": linear.inverse_transform(linear.transform(noisy[test])),
    "KernelPCA": kernel.inverse_transform(kernel.transform(noisy[test])),
}
for name, cleaned in images.items():
    distance = np.sqrt(np.mean((cleaned - X[test]) ** 2))
    print(f"{name:10} distance from the clean images: {distance:.3f}")

figure, panels = plt.subplots(4, 12, figsize=(10, 3.6))
for row, (name, rows) in zip(panels, images.items()):
    for axes, image in zip(row, rows):
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)

# %%
# Both models were trained on clean images of other digits, with numbers of components that suit
# them. The kernel's pre-images stay closer to what a digit can look like.
