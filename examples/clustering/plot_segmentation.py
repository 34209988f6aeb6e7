"""
Can I segment a photograph?
===========================

Every pixel is a row: its colour and its place. A photograph has hundreds of thousands of them, far
too many for a kernel matrix, so a plain kernel becomes a Nyström approximation by itself.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from gramian import RBF, KernelKMeans

image = load_sample_image("flower.jpg") / 255.0
height, width, _ = image.shape
place = np.stack(np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height)), axis=-1)
X = np.concatenate([2 * image, 0.6 * place], axis=-1).reshape(-1, 5).astype(np.float32)

start = perf_counter()
model = KernelKMeans(5, kernel=RBF(3.0), random_state=0).fit(X)
landmarks = len(model.approximation_.landmarks_)
print(f"{len(X):,} pixels, {landmarks} landmarks, {perf_counter() - start:.1f} s")

# %%
# Each pixel in the mean colour of its cluster:

labels = model.labels_
colours = np.array([image.reshape(-1, 3)[labels == k].mean(0) for k in range(5)])
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6))
for axes, picture, title in zip(
    panels, (image, colours[labels].reshape(image.shape)), ("photograph", "five clusters")
):
    axes.imshow(picture)
    axes.set_title(title)
    axes.axis("off")
