"""
Fine detail: exact inside blocks
================================

Only three in ten pixels of a photograph are known. Its brightness is a function of the place,
smooth in the sky and rough on the roofs. :class:`~gramian.Nystroem` has one basis for the whole
picture and blurs what is finer than the distance between its landmarks. :class:`~gramian.Local` is
exact inside blocks of neighbouring pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from gramian import Exponential, KernelRidge, Local, Nystroem

image = load_sample_image("china.jpg")[:320:2, 160:480:2].mean(axis=2) / 255
height, width = image.shape
places = np.indices(image.shape).reshape(2, -1).T / height
values = image.ravel()
known = np.random.default_rng(0).random(values.size) < 0.3
print(f"{known.sum():,} of {values.size:,} pixels are known")

# %%
# The kernel is rough, with a length scale of twelve pixels.

kernel = Exponential(bandwidth=12.0 / height)
mean = values[known].mean()
kernels = {
    "Nyström, 800 landmarks": Nystroem(kernel, 800),
    "Local, 16 blocks": Local(kernel, n_blocks=16),
    "Local around Nyström": Local(Nystroem(kernel, 200), n_blocks=16),
}
pictures = {"known pixels": np.where(known, values, np.nan)}
for name, approximation in kernels.items():
    model = KernelRidge(0.02, kernel=approximation, random_state=0)
    model.fit(places[known], values[known] - mean)
    pictures[name] = model.predict(places) + mean
pictures["truth"] = values

figure, panels = plt.subplots(2, 5, figsize=(11.5, 4.9))
detail = np.s_[55:105, 60:110]
for (above, below), (name, picture) in zip(panels.T, pictures.items()):
    wrong = (picture - values)[~known]
    square, absolute = np.sqrt(np.mean(wrong**2)), np.abs(wrong).mean()
    title = f"{name}\n{square:.3f}, {absolute:.3f}" if name in kernels else f"{name}\n"
    above.imshow(picture.reshape(image.shape), cmap="gray", vmin=0, vmax=1)
    above.add_patch(plt.Rectangle((60, 55), 50, 50, fill=False, color="#e08a1e", lw=1.5))
    below.imshow(picture.reshape(image.shape)[detail], cmap="gray", vmin=0, vmax=1)
    above.set_title(title, fontsize=10)
    for axes in (above, below):
        axes.set(xticks=[], yticks=[])

# %%
# The two numbers are the root mean square and the mean absolute error over the pixels that were not
# known; brightness is between 0 and 1. By the first, ``Local`` gains little; by the second, more.
# Below is the part inside the frame. A block's model knows only the pixels of the block, so
# predictions may jump where two blocks meet; around Nyström, the blocks share what is smooth. See
# :doc:`/local` for measurements on ten data sets.
