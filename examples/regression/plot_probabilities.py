"""
How do I get probabilities?
===========================

:class:`~gramian.KernelRidgeClassifier` predicts classes. scikit-learn's ``CalibratedClassifierCV``
turns its scores into probabilities, and a reliability diagram shows whether to believe them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

from gramian import KernelRidgeClassifier

X, y = make_moons(1500, noise=0.35, random_state=0)
train, test = slice(0, 700), slice(700, None)

# %%
# First tune gamma, then calibrate the best model.

grid = {"kernel__gamma": [0.1, 0.5, 1.0, 2.0, 5.0]}
search = GridSearchCV(KernelRidgeClassifier("loo", kernel="rbf"), grid, cv=3)
search.fit(X[train], y[train])
model = CalibratedClassifierCV(search.best_estimator_, cv=5).fit(X[train], y[train])
print(search.best_params_, f"accuracy on unseen rows: {model.score(X[test], y[test]):.3f}")

# %%
# Left: the probability of the orange class over the plane. Right: of the unseen rows that were
# given a probability of 0.7, about 70 % should be orange.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[1.4, 1])
a, b = np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.6, 2.1, 90))
probability = model.predict_proba(np.c_[a.ravel(), b.ravel()])[:, 1].reshape(a.shape)
filled = left.contourf(a, b, probability, np.linspace(0, 1, 11), cmap="PuOr_r", alpha=0.85)
left.scatter(*X[test].T, c=y[test], cmap="PuOr_r", s=8, edgecolor="black", lw=0.2, vmin=-0.2,
             vmax=1.2)  # fmt: skip
left.set(xticks=[], yticks=[], xlim=(-2, 3), ylim=(-1.6, 2.1))
figure.colorbar(filled, ax=left, label="probability")
given = model.predict_proba(X[test])[:, 1]
share, mean = calibration_curve(y[test], given, n_bins=8)
right.plot([0, 1], [0, 1], color="0.7", lw=1)
right.plot(mean, share, "o-")
right.set(xlabel="probability given", ylabel="share of orange rows", aspect="equal")
