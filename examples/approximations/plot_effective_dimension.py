"""
How many directions does my kernel have?
========================================

The effective dimension counts the eigenvalues that are larger than a penalty. It is the least
number of landmarks that could do. Leverage scores divide it among the rows: they show which rows
are hard to replace.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gramian import RBF, Gram
from gramian.theory import ridge_leverage_scores

X, _ = make_moons(600, noise=0.08, random_state=0)
X = np.concatenate([X, [[2.6, 1.3], [-1.6, -0.7], [0.5, 1.6]]])  # and three strays
ridges = np.geomspace(1e-3, 1e2, 30)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9))
for gamma in (0.5, 2.0, 10.0, 50.0):
    values = np.linalg.eigvalsh(RBF(gamma)(X)).clip(0)
    left.loglog(ridges, [(values / (values + r)).sum() for r in ridges], label=f"gamma {gamma:g}")
left.set(xlabel="penalty", ylabel="effective dimension")
left.legend()

scores = ridge_leverage_scores(Gram(RBF(10.0), X), ridge=1.0)
shown = right.scatter(*X.T, c=scores, s=14, cmap="viridis", norm="log")
figure.colorbar(shown, ax=right, label="leverage score")
right.set(xticks=[], yticks=[], title=f"their sum is {scores.sum():.0f} (gamma 10, penalty 1)")
