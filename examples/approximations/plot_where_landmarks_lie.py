"""
Where do landmarks lie?
=======================

Six samplers choose 25 landmarks for the same rows. The number is the error of Nyström's
approximation with these landmarks.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, Nystroem, relative_error

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 700)
ring = np.c_[np.cos(angle), np.sin(angle)] * (1 + 0.05 * rng.standard_normal((700, 1)))
lump = 0.12 * rng.standard_normal((1400, 2)) + [0.2, 0.1]
strays = rng.uniform(-1.8, 1.8, (25, 2))
X = np.concatenate([ring, lump, strays])

figure, panels = plt.subplots(2, 3, figsize=(9.5, 6.4))
names = ("uniform", "kmeans", "rpcholesky", "greedy", "kmeans++", "recursive-leverage")
for axes, name in zip(panels.flat, names):
    approximation = Nystroem(RBF(4.0), 25, landmarks=name, random_state=0).fit(X)
    axes.scatter(*X.T, s=2, color="0.75")
    axes.scatter(*np.asarray(approximation.landmarks_.points).T, s=26, color="#c8463c")
    axes.set_title(f"{name}: {relative_error(approximation, X)}")
    axes.set(xticks=[], yticks=[], aspect="equal")

# %%
# Uniform landmarks crowd where the rows are and leave gaps in the ring. Greedy pivots run after the
# strays. The others spread over the ring and the lump.
